"""What the studies of energy share: energy between two times, and intervals of means."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.power_plans import idle_w
from hpcgym.evaluation.intervals import FEWEST
from hpcgym.schedule.result import Result

# --- What a machine uses from one time to another -------------------------------------------------


def energy_within(result: Result, begin: int, end: int) -> float:
    """Return the energy from ``begin`` up to ``end`` [J].

    By the books of the schedule; before its first submission and after its last end all nodes are
    on and idle.
    """
    books = result.books
    inside = max(min(end, int(books.time[-1])) - max(begin, int(books.time[0])), 0)
    return books.joules(begin, end) + idle_w(result.cluster) * (end - begin - inside)


# --- Intervals of means, by resamples of what was averaged ----------------------------------------


def interval(values: NDArray[np.float64], digits: int = 2) -> str:
    """Return the 95 % interval of a mean, of 2,000 resamples of the values; seeded."""
    n = len(values)
    if n < FEWEST:
        return "-"
    drawn = np.random.default_rng(0).integers(0, n, (2_000, n))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    return f"[{low:.{digits}f}, {high:.{digits}f}]"


def interval_of_groups(groups: Sequence[NDArray[np.float64]], digits: int = 2) -> str:
    """Return the 95 % interval of the mean of the means of groups, each resampled by itself."""
    if min(map(len, groups)) < FEWEST:
        return "-"
    random = np.random.default_rng(0)
    means = [
        values[random.integers(0, len(values), (2_000, len(values)))].mean(axis=1)
        for values in groups
    ]
    low, high = np.percentile(np.mean(means, axis=0), [2.5, 97.5])
    return f"[{low:.{digits}f}, {high:.{digits}f}]"
