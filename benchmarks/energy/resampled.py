"""Intervals of means, by resamples of what was averaged; "-" where there are too few values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.evaluation.intervals import FEWEST


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
