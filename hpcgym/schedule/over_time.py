"""How many jobs wait, and how many processors are busy, as time goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


def queue_length(result: Result) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of waiting jobs over time.

    Returns
    -------
    times : (n_times,) int64 [s], strictly increasing; each value holds from its time to the next.
    lengths : (n_times,) int64; the last is 0.
    """
    seen = result.runs.from_begin
    ones = np.ones(len(seen.start), np.int64)
    return _steps(seen.workload.submit_time, seen.start, ones)


def processors_in_use(result: Result) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of busy processors over time, as :func:`queue_length` does."""
    seen = result.runs.from_begin
    return _steps(seen.start, seen.end, seen.workload.requested_processors)


def mean_congestion(result: Result) -> float:
    """Return how many times as long files take, averaged over the makespan; 1 without congestion.

    Of a machine with a bandwidth: max(1, what running jobs ask for / bandwidth), see
    :class:`hpcgym.speedups.Heatmap`.
    """
    run, bandwidth = result.coschedule, result.cluster.io_bytes_s
    assert run is not None
    assert bandwidth is not None
    demand = result.workload.requested_processors * run.speedups.io_bytes_s[run.code]
    times, asked = _steps(result.start, result.end, demand)
    longer = np.maximum(asked[:-1] / bandwidth, 1) - 1
    span = result.end.max(initial=0) - result.workload.submit_time.min(initial=0)
    return 1 + float((longer * np.diff(times)).sum()) / float(span) if span else 1.0


def _steps(
    begin: NDArray[np.int64], end: NDArray[np.int64], amount: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the step function that is the sum of ``amount`` over [begin, end) of all jobs."""
    moments = np.concatenate([begin, end])
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    totals = np.cumsum(np.concatenate([amount, -amount])[order])
    last = np.flatnonzero(np.diff(moments, append=moments[-1:] + 1))  # of all changes at a time
    return moments[last], totals[last]


def longest_queue(result: Result) -> int:
    """Return the greatest number of waiting jobs: some submission reaches it."""
    submits, starts = result.workload.submit_time, np.sort(result.start)
    longest = 0
    for first in range(0, submits.size, 1_000_000):
        times = submits[first : first + 1_000_000]
        waiting = np.searchsorted(submits, times, "right") - np.searchsorted(starts, times, "right")
        longest = max(longest, int(waiting.max()))
    return longest
