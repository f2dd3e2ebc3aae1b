"""Tuning a scheduler on the early part of a log, and judging it on the later one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.agents.lockstep import Checkpoint, identity
from hpcgym.cluster.pool import Cluster
from hpcgym.errors import HpcgymError, check_choice, check_whole, is_number
from hpcgym.progress import silence
from hpcgym.schedule.measures import MEASURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.prepare import machine_of
from hpcgym.simulation.run import scheduler_of
from hpcgym.speedups import Heatmap, find_speedups
from hpcgym.sweep.executors import open_executor
from hpcgym.tuning.bounds import USUAL_BOUNDS, Bound
from hpcgym.tuning.choice import simplest
from hpcgym.tuning.comparing import ablated, board_of
from hpcgym.tuning.jitters import mean_over_jitters
from hpcgym.tuning.search import OFTEN, Found, searching
from hpcgym.tuning.shared_space import SharedSpace
from hpcgym.tuning.space import Space
from hpcgym.tuning.trials import OBJECTIVES, Losses, Trials, Tried, by_week
from hpcgym.tuning.tuned import Tuned
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

Progress = Callable[[int, str, float], None]

TUNED = "tuned"  # what it is called beside others

_JITTERS = tuple(range(OFTEN["round"]))  # of comparisons
_FEWEST_JOBS = 100  # of each part


@dataclass(frozen=True)
class Plan:
    """What is searched, for what, and how long.

    Attributes
    ----------
    space : the rules that are searched; :class:`hpcgym.tuning.SharedSpace` where jobs share nodes.
    objective : what is made small: "weekly_bsld", the geometric mean over the weeks of their mean
        bounded slowdowns, in which each week counts as much as any other; "mean_bsld"; or
        "mean_wait_h", or "mean_wait".
    bounds : what must be kept: texts as :meth:`hpcgym.tuning.bounds.Bound.parse` takes them.
    split : the share of the log's time that is searched on; the rest is only looked at in the end.
    budget : how many rules are tried in generations, about; the first look at all arms comes
        before.
    seed : of what is random.

    Raises
    ------
    HpcgymError : a value that is not one of these.
    """

    space: Space | SharedSpace = field(default_factory=Space)
    objective: str = "weekly_bsld"
    bounds: Sequence[str] = USUAL_BOUNDS
    split: float = 0.5
    budget: int = 3000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.objective == "mean_wait":  # as bounds call it
            object.__setattr__(self, "objective", "mean_wait_h")
        check_choice("objective", self.objective, OBJECTIVES)
        if isinstance(self.bounds, str):
            raise HpcgymError(f"bounds must be a list of texts, not {self.bounds!r}")
        self.parsed()
        if not is_number(self.split) or not 0 < self.split < 1:
            raise HpcgymError(f"split must be a number between 0 and 1, not {self.split!r}")
        check_whole("budget", self.budget, 1)
        check_whole("seed", self.seed, 0)

    def parsed(self) -> list[Bound]:
        """Return the bounds."""
        return [Bound.parse(text) for text in self.bounds]


def tune(
    workload: str | Workload,
    plan: Plan | None = None,
    *,
    against: Sequence[str | Scheduler] = (),
    cluster: Cluster | str | None = None,
    processors: int | None = None,
    speedups: Heatmap | str | None = None,
    executor: str | Executor = "processes",
    workers: int | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """Search for the scheduler that serves the early part of a log best; judge it on the later one.

    The search sees jobs that were submitted before ``plan.split`` of the log's time, and none
    later: :func:`hpcgym.tuning.search.searching` says how it goes. Of what it ends with, the
    simplest is taken that the early weeks do not tell from the best. That one is simulated on the
    whole log, and its jobs of the later part are compared with those of EASY, SAF and whoever is
    named; where jobs share nodes, of EASY, all co-schedulers and whoever is named.

    Parameters
    ----------
    workload : a log, or what :func:`hpcgym.load_workload` takes.
    plan : what is searched; by default as :class:`Plan` has it.
    against : the site's present rules, for one: names of schedulers, variants, files, or
        :class:`hpcgym.Scheduler`.
    cluster, processors : the machine; by default that of the log.
    speedups : of codes beside each other, for jobs that share the nodes of ``cluster``: a heatmap,
        or what :func:`hpcgym.speedups.find_speedups` takes.
    executor, workers : where simulations run, see :func:`hpcgym.sweep.open_executor`. The result is
        the same.
    checkpoint : file for what is known so far, written every few seconds and when the search is
        interrupted; the same search goes on from there. It is deleted at the end.
    progress : told how many rules have been tried, the stage, and the least loss of the last ones.

    Raises
    ------
    HpcgymError : an unknown name, too few jobs, a space that is not for these jobs, or a
        checkpoint of another search.

    Examples
    --------
    >>> import hpcgym
    >>> from hpcgym.tuning import Plan, Space, tune
    >>> log = hpcgym.load_workload("lublin:jobs=3000,processors=64,seed=0,load=1.1")
    >>> small = Space(orders=["saf", "spf"], estimates=["requested"], levers=["threshold"])
    >>> tuned = tune(log, Plan(small, bounds=["max_wait <= 14d"], budget=60), executor="serial")
    >>> tuned.scheduler.backfill in ("easy", "until-shadow")
    True
    """
    pairs = None if speedups is None else find_speedups(speedups)
    if plan is None:
        plan = Plan() if pairs is None else Plan(SharedSpace())
    _check_space(plan, pairs)
    log = workload
    if isinstance(log, str):
        log = load_workload(log, processors=processors, cluster=cluster)
    machine = machine_of(log, cluster, processors)
    early, since = _early(log, plan.split)
    others = _named(plan, against)
    with (
        Checkpoint(checkpoint, _identity(plan, log, machine, pairs)) as known,
        open_executor(executor, workers) as workforce,
    ):
        trials, late = (Trials(jobs, machine, workforce, pairs) for jobs in (early, log))
        # first, so that those who cannot be simulated here do not come after a long search
        rules_of_others = [_rules(one) for one in others.values()]
        early_others = trials.each(rules_of_others, _JITTERS)
        limits = _limits(plan, trials.of([{}], range(OFTEN["end"])))
        losses = Losses(trials, plan.objective, limits, known, progress or silence)
        found = _searched(plan, early, losses)
        losses.progress(losses.tried, "choosing", np.nan)
        rules = _chosen(plan, found, losses)
        losses.progress(losses.tried, "later weeks", np.nan)
        way = ablated(rules, plan.space.parts, losses, found.seeds[: OFTEN["round"]])
        steps = [left for _, left in way]  # the first is the tuned scheduler itself
        early_steps = trials.each(steps, _JITTERS)
        later = late.each([*steps, *rules_of_others], _JITTERS, since)
    names = [TUNED, *others]
    tried = dict(zip(names, [later[0], *later[len(way) :]], strict=True))
    before = dict(zip(names, [early_steps[0], *early_others], strict=True))
    bounds = _limits(plan, tried["easy"])
    return Tuned(
        scheduler=Scheduler(**rules),
        objective=plan.objective,
        log=log.name,
        bounds=bounds,
        board=board_of(tried, before, plan.objective, bounds),
        weeks={name: one.weeks[0].mean(axis=0) for name, one in tried.items()},
        steps=[
            (what, _mean(a, plan.objective), _mean(b, plan.objective))
            for (what, _), a, b in zip(way, early_steps, later[: len(way)], strict=True)
        ],
        arms=found.arms,
        rows=found.rows,
        tried=losses.tried,
    )


def _early(log: Workload, split: float) -> tuple[Workload, float]:
    """Return the jobs that are searched on, and the time [s] from which on others are judged."""
    if log.initial is not None:
        raise HpcgymError(f"{log.name} is an extract; tuning takes a log from its beginning")
    submit = log.submit_time
    since = float(submit[0] + split * (submit[-1] - submit[0])) if len(log) else 0.0
    before = submit < since
    if min(before.sum(), (~before).sum()) < _FEWEST_JOBS:
        raise HpcgymError(
            f"{log.name} has {before.sum():,} jobs to search on and {(~before).sum():,} to judge"
            f" by; each must be at least {_FEWEST_JOBS}"
        )
    return log.take(before, name=f"{log.name} early"), since


def _check_space(plan: Plan, speedups: Heatmap | None) -> None:
    """Raise an HpcgymError for rules of shared nodes without speedups, and the other way round."""
    shared = isinstance(plan.space, SharedSpace)
    if shared and speedups is None:
        raise HpcgymError("space: that of jobs that share nodes needs speedups, and a cluster")
    if speedups is not None and not shared:
        raise HpcgymError("space: where jobs share nodes it is a SharedSpace")


def _named(plan: Plan, against: Sequence[str | Scheduler]) -> dict[str, Scheduler]:
    """Return whom the tuned scheduler is compared with, by name."""
    from hpcgym.baselines.labels import scheduler_names

    found = {name: scheduler_of(name, {}) for name in plan.space.references}
    rules = [scheduler_of(one, {}) for one in against]
    for one, name, scheduler in zip(against, scheduler_names(rules), rules, strict=True):
        found[one if isinstance(one, str) else _free_name(name, found)] = scheduler
    if TUNED in found:
        raise HpcgymError(f"against: {TUNED!r} is what the tuned scheduler is called")
    return found


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name that nothing else has."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free


def _identity(plan: Plan, log: Workload, machine: Cluster, speedups: Heatmap | None) -> str:
    """Return a text that only the same search on the same jobs by the same versions has."""
    settings = {"plan": {**vars(plan), "space": vars(plan.space)}, "machine": repr(machine)}
    if speedups is not None:
        settings["speedups"] = speedups.digest
    return identity(settings, [[log]])


def _limits(plan: Plan, easy: Tried) -> list[tuple[Bound, float]]:
    """Return the bounds, and what each means where EASY has these measures."""
    means = dict(zip(MEASURES, mean_over_jitters(easy.values)[0].tolist(), strict=True))
    return [(bound, bound.limit(means)) for bound in plan.parsed()]


def _searched(plan: Plan, early: Workload, losses: Losses) -> Found:
    """Search, from beginning to end."""
    units = plan.space.units([early])
    search = searching(plan.space, units, budget=plan.budget, seed=plan.seed)
    asked = next(search)
    while True:
        try:
            asked = search.send(losses.answer(asked))
        except StopIteration as end:
            found: Found = end.value
            return found


def _chosen(plan: Plan, found: Found, losses: Losses) -> dict[str, Any]:
    """Return the rules that are taken of those with which the search ended."""
    tried = losses.trials.of(found.finalists, found.seeds)
    parts = [plan.space.parts_of(rules) for rules in found.finalists]
    each = by_week(tried.weeks, plan.objective)
    return found.finalists[simplest(losses.of(tried.values), each, parts)]


def _rules(scheduler: Scheduler) -> dict[str, Any]:
    """Return the rules of a scheduler, from which it can be made anew."""
    return {name: value for name, value in vars(scheduler).items() if not name.startswith("_")}


def _mean(tried: Tried, objective: str) -> float:
    """Return the mean of an objective over the jitters, of one scheduler."""
    return float(mean_over_jitters(tried.values)[0, list(MEASURES).index(objective)])
