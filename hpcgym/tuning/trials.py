"""Trying rules on jobs: in workers of any executor, with a file from which a search goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.lockstep import Checkpoint
from hpcgym.cluster.pool import Cluster
from hpcgym.schedule.measures import MEASURES, measures, weekly_sums
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.speedups import Heatmap
from hpcgym.sweep.executors import slots
from hpcgym.tuning.bounds import Bound
from hpcgym.tuning.jitters import jittered, mean_over_jitters, weeks_of
from hpcgym.tuning.search import Asked
from hpcgym.workload.model import Workload

#: What the search makes small -> the column of weekly sums that it is made of.
OBJECTIVES = {"weekly_bsld": "bsld", "mean_bsld": "bsld", "mean_wait_h": "wait"}

#: What breaking a bound by a factor e costs: as much as an objective e^10 times as large.
_PENALTY = 10.0
#: Of each bound this much is used up by the search: later weeks are other weeks.
MARGIN = 0.8
_LEAST = 1e-3  # of what a logarithm is taken of: waits may be 0

_A_TASK = 24  # simulations that are sent to a worker at once, a second or less of most logs


class Tried(NamedTuple):
    """What some rules lead to, each on some jitters of the submissions.

    Attributes
    ----------
    values : (n_rules, n_seeds, n_measures) :data:`hpcgym.schedule.measures.MEASURES`.
    weeks : (n_rules, n_seeds, n_weeks, 3) of the jobs of each week: how many they are, the sum of
        their bounded slowdowns, the sum of their waits [h].
    """

    values: NDArray[np.float64]
    weeks: NDArray[np.float64]


def try_rules(
    workload: Workload,
    cluster: Cluster,
    rules: Sequence[dict[str, Any]],
    seeds: Sequence[int],
    since: float = 0,
    speedups: Heatmap | None = None,
) -> Tried:
    """Simulate the workload under each of some rules, on each jitter of its submissions.

    Parameters
    ----------
    rules : of schedulers.
    seeds : see :func:`hpcgym.tuning.jitters.jittered`.
    since : [s] of the log's clock; only jobs submitted from then on, before any jitter, are looked
        at, of a schedule that has all.
    speedups : of codes beside each other, where jobs share nodes.
    """
    values, weeks = [], []
    n_weeks = weeks_of(workload)
    for seed in seeds:
        jobs, which = jittered(workload, seed)
        results = [
            simulate(jobs, Scheduler(**one), cluster=cluster, speedups=speedups) for one in rules
        ]
        looked_at = workload.submit_time[which] >= since
        values.append([list(measures(one, looked_at).values()) for one in results])
        weeks.append([weekly_sums(one, looked_at, n_weeks) for one in results])
    return Tried(np.array(values).swapaxes(0, 1), np.array(weeks).swapaxes(0, 1))


@dataclass
class Trials:
    """Jobs and a machine on which rules are tried.

    Attributes
    ----------
    workload : the jobs.
    cluster : the machine.
    executor : where simulations run.
    speedups : of codes beside each other, where jobs share nodes; None where they have their own.
    """

    workload: Workload
    cluster: Cluster
    executor: Executor
    speedups: Heatmap | None = None

    def of(self, rules: Sequence[dict[str, Any]], seeds: Sequence[int], since: float = 0) -> Tried:
        """Do as :func:`try_rules`, some rules at a time on each worker."""
        n = max(1, min(_A_TASK // len(seeds), -(-len(rules) // slots(self.executor))))
        alike = self.workload, self.cluster
        tasks = [
            self.executor.submit(try_rules, *alike, rules[k : k + n], seeds, since, self.speedups)
            for k in range(0, len(rules), n)
        ]
        parts = [task.result() for task in tasks]
        return Tried(*(np.concatenate(one) for one in zip(*parts, strict=True)))

    def each(
        self, rules: Sequence[dict[str, Any]], seeds: Sequence[int], since: float = 0
    ) -> list[Tried]:
        """Do the same; return what came of each of the rules by itself."""
        values, weeks = self.of(rules, seeds, since)
        return [Tried(values[k : k + 1], weeks[k : k + 1]) for k in range(len(rules))]


@dataclass
class Losses:
    """What a search is told of rules: one number, the less, the better.

    Attributes
    ----------
    trials : of the early part of a log.
    objective : a name of :data:`OBJECTIVES`, whose mean over the jitters should be small.
    limits : bounds, and what each means in numbers.
    checkpoint : what is known already.
    progress : told how many rules have been tried in all, the stage, and the least loss of those
        that were tried last.
    """

    trials: Trials
    objective: str
    limits: list[tuple[Bound, float]]
    checkpoint: Checkpoint
    progress: Callable[[int, str, float], None]
    tried: int = 0

    def answer(self, asked: Asked) -> NDArray[np.float64]:
        """Return the loss of each of the rules that are asked for."""
        told = self.checkpoint.take(len(asked.rules))
        if told is None:
            told = self.of(self.trials.of(asked.rules, asked.seeds).values)[:, None]
            self.checkpoint.add(told)
        self.tried += len(told)
        self.progress(self.tried, asked.stage, float(told.min()))
        return np.asarray(told[:, 0])

    def of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log(objective), and more where a bound is not kept; (n_rules,).

        A bound counts as broken from :data:`MARGIN` of it on, by the mean over the jitters.
        """
        means = dict(zip(MEASURES, mean_over_jitters(values).T, strict=True))
        loss: NDArray[np.float64] = np.log(np.maximum(means[self.objective], _LEAST))
        for bound, limit in self.limits:
            share = means[bound.measure] / max(MARGIN * limit, _LEAST)
            loss += _PENALTY * np.log(np.maximum(share, 1.0))
        return loss


def by_week(weeks: NDArray[np.float64], objective: str) -> NDArray[np.float64]:
    """Return what each week adds to an objective, relative to it; (n_rules, n_weeks).

    Of "weekly_bsld" it is the logarithm of the week's mean; of means over jobs it is the week's sum
    times the number of weeks, over the least sum of any of the rules. Weeks without jobs are left
    out.

    Parameters
    ----------
    weeks : of :class:`Tried`.
    """
    some = (weeks[..., 0] > 0).all(axis=(0, 1))
    number, bsld, wait = np.moveaxis(weeks[:, :, some], -1, 0)
    if objective == "weekly_bsld":
        logs: NDArray[np.float64] = np.log(bsld / number).mean(axis=1)
        return logs
    sums = (wait if OBJECTIVES[objective] == "wait" else bsld).mean(axis=1)
    shares: NDArray[np.float64] = sums * sums.shape[1] / max(sums.sum(axis=1).min(), _LEAST)
    return shares
