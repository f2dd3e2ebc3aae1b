"""Which jobs delayed another: the schedule again without each of them.

Job X delayed job J by as long as J starts earlier in the simulation of all jobs but X. That counts
all that follows from X, also through others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcgym.progress import silence
from hpcgym.schedule.result import Result
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate


def can_repeat(result: Result) -> bool:
    """Return whether a schedule can be made again with other jobs.

    Not one of an environment, of a dispatcher that keeps what it has learned, with failures or
    preemption; nor one that begins with jobs that run, or that says when jobs are submitted.
    """
    others = (result.interrupted, result.dispatcher, result.workload.initial)
    moved = result.scheduler.moves_submissions
    return all(other is None for other in others) and not (result.outside or moved)


def delays(
    result: Result,
    job: int,
    rows: NDArray[np.int64],
    progress: Callable[[int, int], None] = silence,
    over: Callable[[], bool] = lambda: False,
) -> NDArray[np.int64]:
    """Return how much earlier a job would start without each of some others, (k,) int64 [s].

    Below 0: it would start later.

    Parameters
    ----------
    result : a schedule of :func:`hpcgym.simulate`.
    job, rows : rows of the job, and of the others, (k,).
    progress : is called after each with how many are done, and how many there are.
    over : tells whether there is no time for more: then those that come first are returned, at
        least one.
    """
    start = int(result.start[job])
    # what is submitted after a start has no influence on it
    known = result.workload.submit_time <= start
    found = np.zeros(len(rows), np.int64)
    for place, row in enumerate(rows.tolist()):
        without = _start(result, known, row, job)
        if without > start:  # those that come until then may have an influence
            without = _start(result, np.ones_like(known), row, job)
        found[place] = start - without
        progress(place + 1, len(rows))
        if over():
            return found[: place + 1]
    return found


def _start(result: Result, known: NDArray[np.bool_], row: int, job: int) -> int:
    """Return when a job starts among those that are known, but for that of a row."""
    kept = known.copy()
    kept[row] = False
    mine = int(kept[:job].sum())
    pairs = None if result.coschedule is None else result.coschedule.speedups
    again = simulate(
        replace(result.workload.take(kept), cleaning={}),
        _cut(result.scheduler, kept),
        cluster=result.cluster,
        limits=result.limits,
        speedups=pairs,
    )
    return int(again.start[mine])


def _cut(scheduler: Scheduler, kept: NDArray[np.bool_]) -> Scheduler:
    """Return a scheduler for some of the jobs: estimates may have a number for each."""
    given = {"estimate": scheduler.estimate, "policy_estimate": scheduler.policy_estimate}
    cut = {
        rule: np.asarray(estimate)[kept]
        for rule, estimate in given.items()
        if isinstance(estimate, Sequence | np.ndarray) and not isinstance(estimate, str)
    }
    return scheduler.but(**cut) if cut else scheduler
