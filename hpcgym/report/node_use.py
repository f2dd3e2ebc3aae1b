"""How many nodes have jobs over time, and how many of them more than one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


def nodes_in_use(result: Result) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of nodes with jobs over time, of a schedule that tells the nodes of jobs.

    Returns
    -------
    times : (n_times,) [s], strictly increasing; each value holds from its time to the next.
    used, shared : (n_times,) int64, nodes with a job, and with two or more; the last are 0.
    """
    seen = result.runs.from_begin
    assert seen.allocation is not None
    job = np.repeat(np.arange(len(seen.start)), np.diff(seen.allocation.first))
    moments = np.concatenate((seen.start[job], seen.end[job]))
    node = np.tile(seen.allocation.node, 2)
    order = np.lexsort((moments, node))
    moments, node = moments[order], node[order]
    jobs = np.cumsum(np.repeat([1, -1], len(job))[order])  # each node ends with none
    last = np.append((np.diff(node) != 0) | (np.diff(moments) != 0), True)[: len(node)]
    moments, node, jobs = moments[last], node[last], jobs[last]
    before = np.append(0, jobs[:-1])[: len(jobs)]
    times, place = np.unique(moments, return_inverse=True)

    def over_time(least: int) -> NDArray[np.int64]:
        changes = (jobs >= least).astype(np.int64) - (before >= least)
        return np.cumsum(np.bincount(place, changes, len(times)).astype(np.int64))

    return times, over_time(1), over_time(2)


def time_mean(times: NDArray[Any], values: NDArray[Any], span: float) -> float:
    """Return the mean of a step function that is 0 in the end over ``span`` seconds; else 0."""
    return float((values[:-1] * np.diff(times)).sum()) / span if span else 0.0
