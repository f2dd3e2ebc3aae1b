"""Learning while it runs: learners and references on one pass through a stream of jobs."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from hpcgym.agents import import_agent
from hpcgym.baselines.schedulers import is_variant
from hpcgym.cluster import Cluster
from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import HpcgymError, check_whole
from hpcgym.evaluation import limited
from hpcgym.evaluation.brought import acts
from hpcgym.evaluation.lineup import (
    by_name,
    find_policy,
    listed,
    other_scheduler,
    scheduler_of,
    with_references,
)
from hpcgym.evaluation.regret import FIXED, Prequential
from hpcgym.evaluation.slices import Progress, silent
from hpcgym.evaluation.stage import checked_rules
from hpcgym.evaluation.static_weights import best_static
from hpcgym.evaluation.stream import features_of, learn_through, weeks_in
from hpcgym.schedule.result import Result
from hpcgym.scheduler.own_code import named_object, names_code
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.site_rules import lifted_by
from hpcgym.scheduler.usage import check_fair_share, counts_usage, without_idle_shares
from hpcgym.simulation.prepare import machine_of
from hpcgym.simulation.run import simulate
from hpcgym.workload import Workload, load_workload

#: Learners of this library by name -> module of hpcgym.agents and class.
LEARNERS = {
    "policy-bandit": ("policy_bandit", "PolicyBandit"),
    "weight-bandit": ("weight_bandit", "WeightBandit"),
}

_ALWAYS = ("saf-typical",)  # a reference beside those of each leaderboard


def prequential(
    learners: Any,
    workload: Any,
    *,
    interval: Any = "day",
    part: str = "all",
    train_share: float = 0.5,
    cluster: Cluster | str | os.PathLike[str] | None = None,
    budget: int = 200,
    resamples: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
    **rules: Any,
) -> Prequential:
    """Let learners go through a whole trace once, learning as they go, and compare what they reach.

    Each learner sets the weights that order the queue, in :class:`hpcgym.envs.MixedPolicy`, for a
    day at a time, and is told of jobs once they have ended: see
    :class:`hpcgym.agents.learner.Learner`. Nothing is trained before, and all jobs count from
    the first one on (prequential, after Dawid, Statistical theory: the prequential approach, 1984).
    The references of each leaderboard, "saf-typical", and the best fixed weights in hindsight are
    simulated on the same jobs.

    Parameters
    ----------
    learners : one, several, or several with names of one's own in a mapping: a name of
        :data:`LEARNERS`; "module:Class", a class, which is made without arguments but for
        ``seed`` if it takes one, or an object of :class:`hpcgym.agents.learner.Learner`; a function
        of (observation, info), which does not learn. An object goes on with what it has learned
        before. What is simulated may be named, too, as for :func:`hpcgym.evaluation.evaluate`.
    workload : a workload, or what :func:`hpcgym.load_workload` takes.
    interval : for how long weights hold: "day", "week", "hour", "6h", a number of submissions.
    part : "all" of the trace, "train", its first ``train_share`` of the jobs, or "test", the rest.
        The machine is empty at first.
    cluster : the machine, as :func:`hpcgym.simulate` takes it.
    budget : number of weight vectors, over the six features of Legrand 2018, among which the best
        fixed ones are sought, each on the whole stream.
    resamples : of the intervals.
    seed : of intervals, of the weight vectors, and of learners that are made here.
    progress : shows how far it is; :func:`hpcgym.progress.counting` does on a terminal.
    rules : as for :func:`hpcgym.evaluation.evaluate`, of learners and references; no
        ``preemption``.

    Raises
    ------
    HpcgymError : an argument that is not one of these, or a learner that fails.
    WorkloadError : a job that the empty machine does not hold.

    Examples
    --------
    >>> from hpcgym.evaluation import prequential
    >>> board = prequential("weight-bandit", "lublin:jobs=2000,processors=64", budget=20)
    >>> sorted(board.table.index)[:3]
    ['best fixed, in hindsight', 'easy', 'easy-sjbf']
    """
    check_whole("budget", budget, 1)
    check_whole("resamples", resamples, 1)
    rules = checked_rules(rules)
    if rules.get("preemption") is not None:
        raise HpcgymError(
            f"preemption={rules['preemption']!r} is not built for one pass (prequential): learners"
            " are told of jobs that have ended, not of runs that others stop; evaluate on slices"
            " (--protocol slices)"
        )
    made = partial(find_learner, seed=check_whole("seed", seed, 0))
    chosen = by_name(listed(learners), made, other_scheduler)
    for name, one in chosen.items():
        if acts(one) and hasattr(one, "begin"):
            raise HpcgymError(
                f"{name} looks into its environment when an episode begins (begin), and learners"
                " see observations alone; hpcgym evaluate without --protocol has it act"
            )
    whole = workload if isinstance(workload, Workload) else load_workload(workload, cluster=cluster)
    if whole.initial is not None:
        raise HpcgymError(
            f"a stream begins with an empty machine, and {whole.name} with the jobs that run at"
            f" {whole.initial.begin} s: take the whole trace"
        )
    episodes = Episodes(whole, "whole", part=part, train_share=train_share)
    stream = whole if part == "all" else episodes.workload_of(episodes.listing[0])
    machine = machine_of(whole, cluster, None)
    lineup, row_of = with_references(chosen, rules, None, _ALWAYS, lifted_by(rules))
    _check(lineup, rules, stream)
    plain = without_idle_shares(scheduler_of("spf", rules))
    results: dict[str, Result] = {}
    decisions: dict[str, int] = {}
    learning = sum(map(acts, lineup.values()))
    total = budget + len(lineup) + 1 + learning * (weeks_in(stream) - 1)
    with (progress or silent)("one pass", total) as step:
        for name, one in lineup.items():
            if acts(one):
                results[name], decisions[name] = learn_through(
                    name, one, stream, rules, interval, machine, step
                )
            else:
                step(name)
                results[name] = simulate(stream, one, cluster=machine)
        weights = best_static([stream], WEIGHTED_FEATURES, plain, budget, seed, step, machine)
        step(FIXED)
        results[FIXED] = simulate(stream, plain.but(policy=weights), cluster=machine)
    return Prequential(stream, results, decisions, weights, row_of["saf"], resamples, seed)


def _check(lineup: Mapping[str, Any], rules: Mapping[str, Any], stream: Workload) -> None:
    """Raise an HpcgymError for limits, which nobody has here, and shares that nobody looks at."""
    limited.check_rows(lineup, None, [stream])
    orders = [one.usage_orders for one in lineup.values() if isinstance(one, Scheduler)]
    weighed = [features_of(one) for one in lineup.values() if acts(one)]
    looks = any(map(any, orders)) or any(counts_usage(Scheduler(), one) for one in weighed)
    check_fair_share(rules.get("fair_share"), looks)


def find_learner(given: Any, seed: int = 0) -> Any:
    """Return the learner that a name, "module:Class" or a class stands for; else what it is itself.

    Parameters
    ----------
    given : of :func:`prequential`.
    seed : of a class that takes one.

    Raises
    ------
    HpcgymError : an unknown name, a module or class that is not there, or one that does not act.
    """
    if isinstance(given, str) and given in LEARNERS:
        module, kind = LEARNERS[given]
        return _made(getattr(import_agent(module), kind), seed)
    if names_code(given) and not is_variant(given):
        given = named_object(given, Path.cwd())
    if not (isinstance(given, type) and acts(given)):
        try:
            return find_policy(given)
        except HpcgymError as error:
            also = f"; learners are {', '.join(LEARNERS)} and module:Class"
            raise HpcgymError(f"{error}{also if isinstance(given, str) else ''}") from None
    return _made(given, seed)


def _made(kind: type, seed: int) -> Any:
    """Return an object of a class of learners, with this seed if it takes one."""
    takes = "seed" in inspect.signature(kind).parameters
    try:
        return kind(seed=seed) if takes else kind()
    except TypeError as error:
        raise HpcgymError(
            f"{kind.__name__} must be made without arguments, but for a seed ({error}): give an"
            " object"
        ) from error
