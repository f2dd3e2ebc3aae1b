"""``evaluate``: policies and references on the same slices of a workload."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from hpcgym.cluster import Cluster
from hpcgym.envs.episodes import Episode, Episodes
from hpcgym.errors import HpcgymError, unknown
from hpcgym.evaluation import limited, shared
from hpcgym.evaluation import lineup as lineups
from hpcgym.evaluation.leaderboard import Leaderboard
from hpcgym.evaluation.lineup import STATIC
from hpcgym.evaluation.stage import Stage, acts
from hpcgym.evaluation.static_weights import best_static
from hpcgym.node_simulation import needs_on
from hpcgym.prediction.learning import Learned, check_compiled
from hpcgym.preparation import check_allocation, check_jobs, machine_of
from hpcgym.scheduler import Scheduler
from hpcgym.simulation import learn_at, simulate
from hpcgym.workload import Workload, load_workload

#: Metrics of a schedule that are kept; policies are ranked by the first.
METRICS = ("mean_bsld", "mean_wait_s", "utilization")

#: A title and a number of steps -> a context that gives a function to call before each step.
Progress = Callable[[str, int], AbstractContextManager[Callable[[str], None]]]


def evaluate(
    policies: Any = (),
    workload: Any = "lublin:jobs=10000,processors=256,seed=0",
    *,
    slices: str = "test",
    episodes: str = "windows",
    jobs: int = 256,
    n: int | None = None,
    train_share: float = 0.5,
    seed: int = 0,
    cluster: Cluster | str | os.PathLike[str] | None = None,
    env: Any = None,
    env_options: Mapping[str, Any] | None = None,
    budget: int = 200,
    resamples: int = 2000,
    progress: Progress | None = None,
    **rules: Any,
) -> Leaderboard:
    """Compare policies on the same slices of a workload, each from an empty machine.

    References are always there: EASY, EASY-SJBF, SAF and F1, or with ``backfill="none"`` FCFS, SJF,
    SAF and F1; and "best-static", the best weights that do not change, over the features of
    document 002 (or of MixedPolicy, if policies act in it). These weights are chosen on the
    training part only: of the pure policies and random vectors, 200 (``budget``) in all, those with
    the least mean BSLD over 100 training windows, or all training weeks or months.

    Parameters
    ----------
    policies : one, several, or several with names of one's own in a mapping: a name of
        :data:`hpcgym.baselines.SCHEDULERS` or :data:`hpcgym.baselines.dispatchers.DISPATCHERS`, six
        weights (``"0.1,-0.2,0,0,0,0.7"``), a dispatcher of one's own or a ``Scheduler``, which are
        simulated; "lookahead", for :class:`hpcgym.agents.lookahead.Lookahead`, the path of a saved
        agent, a function of ``(observation, info)`` or an object with such an ``act`` and maybe
        ``begin(env)``, such as :class:`hpcgym.baselines.experts.Expert`, which act in an
        environment; a function of one argument is a dispatcher. Under limits also a rule of
        :data:`hpcgym.scheduler.POWER`, which is EASY that keeps them so, or one with a scheduler,
        as "reduce-pc+saf".
    workload : a workload, or what :func:`hpcgym.load_workload` takes.
    slices : "test", "train" or "all": the chronological part to evaluate on.
    episodes, jobs, train_share : what a slice is; see :class:`hpcgym.envs.episodes.Episodes`.
    n : number of slices, a random choice; by default 100 windows, but all weeks or months.
    seed : of the choice of slices, of the random weights, of the resamples and of resets.
    cluster : the machine, as :func:`hpcgym.simulate` takes it, of simulations and environments; by
        default as many processors as the workload's machine had.
    env : where policies act: the id of an environment such as "hpcgym/JobSelection-v0", or an
        environment of the same workload and kind of episodes. Saved agents know theirs. If it sets
        limits of power or energy, all that is simulated keeps them too, on its machine.
    env_options : further arguments of the environment, where it is not made already.
    budget : number of weight vectors that are tried, each on all training slices; 0: none, and no
        "best-static".
    resamples : of the confidence intervals, which means over fewer than five slices do not have.
    progress : shows how far it is; :func:`hpcgym.cli.running.counting` does on a terminal.
    rules : ``backfill``, ``backfill_order``, ``estimate``, ``policy_estimate``, ``correction``,
        ``passes`` and ``allocation`` of environments and of simulated policies, but for
        ``Scheduler`` objects and for what the names of the EASY family stand for. By default those
        of the environment; without one, the rules of ``SCHEDULERS``. The correction of dispatchers
        is "next-second" unless it is given here, or the environment has another than "requested".

    Schedulers whose estimates learn begin each slice with what a simulation of the whole trace
    under them has learned before it, from the jobs that have ended by then. Policies that act in
    environments, dispatchers, and all on machines with nodes begin it knowing nothing.

    Rows are called as the policies are. A name whose rules differ here from those for which it
    stands in :func:`hpcgym.simulate` has them behind it, such as "saf (backfill fcfs)".

    With a dispatcher that solves a model among the policies the table has ``above_reference``: how
    far the mean is above that of the best of the dispatchers and references.

    Under limits the table has the energy of all, as a whole and while limits hold; schedulers keep
    them by the environment's own rule; and with budgets "powercap" is a row, too, to which
    ``above_reference`` compares all.

    With env="hpcgym/CoSchedule-v0", or a saved agent of it, jobs share nodes: see
    :func:`hpcgym.evaluation.shared.evaluate_shared`. Rows are co-schedulers and policies that act
    there, ``env_options`` has the ``speedups``, and the table the makespans.

    Raises
    ------
    HpcgymError : an argument that is not one of these, or an environment that does not fit. What a
        policy or a dispatcher of one's own does wrong is noted in ``Leaderboard.failures`` instead,
        and said in a warning.
    WorkloadError : a job that the empty machine does not hold.

    Examples
    --------
    >>> from hpcgym.evaluation import evaluate
    >>> board = evaluate("spf", "lublin:jobs=3000,processors=64", n=3, budget=20)
    >>> sorted(board.table.index)
    ['best-static', 'easy', 'easy-sjbf', 'f1', 'saf', 'spf']
    """
    whole = workload if isinstance(workload, Workload) else load_workload(workload, cluster=cluster)
    if shared.is_meant(env, policies):
        for rule in rules:
            raise HpcgymError(unknown("argument", rule, ("env_options", "cluster", "episodes")))
        part = Episodes(whole, episodes, jobs, slices, train_share)
        chosen = part.named(part.usual if n is None else n, seed)
        return shared.evaluate_shared(
            policies, whole, part, chosen, cluster, env_options, seed, resamples, progress
        )
    given = lineups.given(policies)
    _check_number("budget", budget, least=0)
    _check_number("resamples", resamples, least=1)
    part = Episodes(whole, episodes, jobs, slices, train_share)
    chosen = part.named(part.usual if n is None else n, seed)
    training: list[Workload] = []
    if budget > 0:
        training = _training(Episodes(whole, episodes, jobs, "train", train_share), seed)
    acting = {name: policy for name, policy in given.items() if acts(policy)}
    theirs = None if cluster is None else machine_of(whole, cluster, None)
    stage = Stage(whole, theirs, part, rules, env, env_options, acting, seed)
    machine, limits = stage.machine, stage.limits
    try:
        check_allocation(rules.get("allocation") or "first-fit", machine)
        check_jobs(whole, machine.processors)
        needs_on(whole, machine)
        if training:
            _check_static(stage.rules)
        always = limited.references(limits, [part.workload_of(episode) for episode in chosen])
        lineup, rows = lineups.lineup(given, stage.rules, limits, always)
        limited.check_rows(lineup, limits, [part.workload_of(episode) for episode in chosen])
        total = budget + (len(lineup) + (budget > 0)) * len(chosen)
        with (progress or _silent)("evaluating", total) as step:
            weights: dict[str, float] = {}
            if training:
                plain = lineups.kept(lineups.scheduler_of("spf", stage.rules), limits)
                weights = best_static(
                    training, stage.features, plain, budget, seed, step, machine, limits
                )
                lineup[STATIC] = plain.but(policy=weights)
            found, failures = _run(lineup, whole, machine, part, chosen, stage, step)
    finally:
        stage.close()

    for name in dict.fromkeys(policy for policy, _ in failures):
        at = [where for policy, where in failures if policy == name]
        warnings.warn(
            f"{name} failed on {len(at)} of {len(chosen)} slices, first on {at[0]}:"
            f" {failures[name, at[0]]}; see Leaderboard.failures",
            stacklevel=2,
        )

    import pandas as pd

    slices_index = pd.Index([e.name for e in chosen], name="slice")
    by_slice = pd.DataFrame(
        {name: [each[METRICS[0]] for each in values] for name, values in found.items()},
        index=slices_index,
    )
    beside = {name: pd.DataFrame(values).mean(skipna=False) for name, values in found.items()}
    schedulers = {name: None if acts(one) else one for name, one in lineup.items()}
    costs = pd.DataFrame(beside).T[list(METRICS[1:])]
    if limits is not None:
        among = tuple(rows[name] for name in always)
    else:
        among = lineups.references_of(lineup, rows, stage.rules)
    energy = {
        metric: pd.DataFrame(
            {name: [each[metric] for each in values] for name, values in found.items()},
            index=slices_index,
        )
        for metric in (limited.ENERGIES if limits is not None else ())
    }
    return Leaderboard(
        by_slice, schedulers, weights, failures, seed, resamples, costs, among, energy
    )


def _check_static(rules: Mapping[str, Any]) -> None:
    """Raise an HpcgymError for rules that static weights cannot be chosen under."""
    try:
        check_compiled(Scheduler().but(**rules))
    except HpcgymError as error:
        raise HpcgymError(f"{error}; budget=0 (--budget 0) leaves best-static out") from None


def _training(part: Episodes, seed: int) -> list[Workload]:
    """Return the slices that static weights are chosen by."""
    return [part.workload_of(episode) for episode in part.named(part.usual, seed + 1)]


def _run(
    lineup: Mapping[str, Any],
    whole: Workload,
    machine: Cluster,
    part: Episodes,
    chosen: list[Episode],
    stage: Stage,
    step: Callable[[str], None],
) -> tuple[dict[str, list[dict[str, float]]], dict[tuple[str, str], str]]:
    """Return METRICS of each policy on each slice, and what went wrong."""
    values: dict[str, list[dict[str, float]]] = {name: [] for name in lineup}
    failures: dict[tuple[str, str], str] = {}
    for name, policy in lineup.items():
        known = _learned(policy, whole, machine, part, chosen)
        for episode in chosen:
            step(f"{name}: {episode.name}")
            metrics: Mapping[str, float | int] = {}
            first = () if isinstance(policy, Scheduler) else stage.enter(name, policy, episode)
            try:
                if isinstance(policy, Scheduler):
                    jobs, learned = part.workload_of(episode), known[episode.name]
                    held = None if stage.limits is None else stage.limits.of(jobs)
                    result = simulate(jobs, policy, cluster=machine, learned=learned, limits=held)
                    metrics = result.metrics
                    if held is not None:
                        metrics = {**metrics, **limited.measured(result)}
                else:
                    metrics = stage.play(name, policy, *first)
            except Exception as error:  # whatever a user's policy does
                if isinstance(policy, Scheduler) and not callable(policy.dispatcher):
                    raise
                failures[name, episode.name] = f"{type(error).__name__}: {error}"
            wanted = METRICS if stage.limits is None else (*METRICS, *limited.ENERGIES)
            values[name].append({name: float(metrics.get(name, "nan")) for name in wanted})
    return values, failures


def _learned(
    policy: Any, whole: Workload, machine: Cluster, part: Episodes, chosen: list[Episode]
) -> dict[str, Learned | None]:
    """Return what a scheduler has learned of run times before each slice begins, by its name."""
    if not isinstance(policy, Scheduler) or policy.dispatcher is not None or machine.groups:
        return {episode.name: None for episode in chosen}
    begins = {e.name: int(part.workload_of(e).submit_time[0]) for e in chosen}
    names = sorted(begins, key=lambda name: begins[name])
    # one simulation of the whole trace, which is stopped where slices begin
    learned = learn_at(whole, policy, [begins[name] for name in names], machine)
    return dict(zip(names, learned, strict=True))


def _check_number(argument: str, value: Any, *, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise HpcgymError(f"{argument} must be a whole number of at least {least}, not {value!r}")


@contextmanager
def _silent(title: str, total: int) -> Iterator[Callable[[str], None]]:
    """Show no progress."""
    yield lambda text: None
