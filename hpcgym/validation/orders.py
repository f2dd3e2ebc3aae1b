"""Who is first in the queue at each time of a schedule, for orders that do not change with time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.workload.model import Workload

Ints = NDArray[np.int64]

_NEVER = 2**53  # s; no job waits longer

#: One non-zero weight of six is a pure policy: (largest first, smallest first) for each feature.
_PURE = (
    ("lqf", "sqf"),
    ("lpf", "spf"),
    ("fcfs", "lcfs"),
    ("lrf", "srf"),
    ("lexp", "sexp"),
    ("laf", "saf"),
)


def policy_name(policy: Any) -> str | None:
    """Return the name of a pure policy given by name or by six weights, else None."""
    if isinstance(policy, str):
        return policy.lower()
    if not isinstance(policy, (tuple, list, np.ndarray)):
        return None
    weights = np.asarray(policy, dtype=float)
    used = np.flatnonzero(weights)
    if weights.shape != (6,) or used.size != 1:
        return None
    largest_first, smallest_first = _PURE[int(used[0])]
    return largest_first if weights[used[0]] > 0 else smallest_first


def static_rank(workload: Workload, policy: Any, times: Any) -> Ints | None:
    """Return each job's place in a primary order that never changes; None if it may change.

    ``times`` are the run times that the policy looks at, (n_jobs,) [s].
    """
    name = policy_name(policy)
    # double precision, in which scores are defined
    q = workload.requested_processors.astype(np.float64)
    p = np.asarray(times, np.float64)
    keys: dict[str | None, Any] = {
        "fcfs": lambda: workload.submit_time,
        "lcfs": lambda: -workload.submit_time,
        "spf": lambda: p,
        "sjf": lambda: p,
        "lpf": lambda: -p,
        "sqf": lambda: q,
        "lqf": lambda: -q,
        "saf": lambda: p * q,
        "laf": lambda: -(p * q),
        "srf": lambda: p / q,
        "lrf": lambda: -(p / q),
    }
    if name not in keys:
        return None
    rank = np.empty(len(workload), np.int64)
    rank[np.argsort(keys[name](), kind="stable")] = np.arange(len(workload))
    return rank


def first_waiting(
    submit_time: Ints,
    threshold: float | None,
    rank: Ints,
    time: Ints,
    submit: Ints,
    start: Ints,
    number: Ints | None = None,
) -> Ints:
    """Return the place of the first waiting job in primary order at each time of a schedule.

    Places are those of ``place_in_order``; 2 * n_jobs where no job waits. A job waits from its
    submission to its start, the latter excluded.

    Parameters
    ----------
    submit_time : (n_jobs,) int64, seconds.
    threshold : wait in seconds beyond which a job comes first, or None.
    rank : (n_jobs,) int64, of ``static_rank``.
    time : (n_times,) int64, increasing, seconds.
    submit, start : (n_jobs,) int64, the places in ``time`` of each job's submission and start.
    number : (n_jobs,) int64, their places in the order of submission; by default as they stand.

    Returns
    -------
    place : (n_times,) int64.
    """
    n = len(rank)
    numbers = np.arange(n) if number is None else number
    if threshold is None:
        return _least_over_spans(submit, start, rank + n, time.size, 2 * n)
    # A job joins those that come first, in submission order, once its wait exceeds the threshold.
    after = submit_time + float(min(threshold, _NEVER))
    starved = np.minimum(np.searchsorted(time, after, side="right"), start)
    starved = np.maximum(starved, submit)  # one that waits again may have waited so long before
    return np.minimum(
        _least_over_spans(submit, starved, rank + n, time.size, 2 * n),
        _least_over_spans(starved, start, numbers, time.size, 2 * n),
    )


def place_in_order(
    wait: Ints, threshold: float | None, rank: Ints, number: Ints | None = None
) -> Ints:
    """Return each job's place at its start: starved jobs by number, others n_jobs + rank."""
    n = len(rank)
    if threshold is None:
        return rank + n
    return np.where(wait > threshold, np.arange(n) if number is None else number, rank + n)


def _least_over_spans(first: Ints, stop: Ints, value: Ints, size: int, nothing: int) -> Ints:
    """Return at each of ``size`` places the least value of the spans [first, stop) over it.

    A span is covered by two blocks of 2**k places; blocks hand their least value down to their
    two halves, from the largest to single places: O((n_jobs + size) log size), no loop over jobs.
    """
    length = stop - first
    level = np.full(length.shape, -1)
    level[length > 0] = np.frexp(length[length > 0].astype(np.float64))[1] - 1
    least = np.full(size, nothing, np.int64)
    for k in range(int(level.max(initial=0)), -1, -1):
        spans = np.flatnonzero(level == k)
        np.minimum.at(least, first[spans], value[spans])
        np.minimum.at(least, stop[spans] - 2**k, value[spans])
        half = 2**k // 2
        if half > 0:
            least[half:] = np.minimum(least[half:], least[:-half])
    return least
