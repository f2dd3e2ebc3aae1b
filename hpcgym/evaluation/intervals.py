"""Confidence intervals of means over slices or shuffles, by resampling them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import check_whole

#: Means of fewer values have no interval. Resamples of few values differ too little: of five values
#: that are normally distributed, a "95 %" interval holds the true mean five times in six, of three
#: it is little more than the least and the greatest value.
FEWEST = 5

Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


def bootstrap(values: NDArray[Any], resamples: int = 2000, seed: int = 0) -> Ends:
    """Return the ends of the 95 % confidence intervals of the columns' means.

    They are percentiles of the means over random resamples of the rows, the same resamples for all
    columns, so that differences of columns may be taken before.

    Parameters
    ----------
    values : (n, k) a row a slice or shuffle, a column a policy or scheduler.
    resamples, seed : how many, and of which random numbers.

    Returns
    -------
    low, high : (k,) float64; nan with fewer than :data:`FEWEST` rows.

    Raises
    ------
    HpcgymError : no resamples.
    """
    check_whole("resamples", resamples, 1)
    n, columns = values.shape
    if n < FEWEST:
        return np.full(columns, np.nan), np.full(columns, np.nan)
    # how often each resample has each row
    times = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), size=resamples)
    low, high = np.percentile(times @ values / n, [2.5, 97.5], axis=0)
    return low, high


def why_no_intervals(number: int, of: str) -> str:
    """Return why means over so many slices have no intervals, in a line; nothing if they have.

    ``of`` is what the means are over, such as "slices".
    """
    if number >= FEWEST:
        return ""
    return f"no 95 % intervals: they need {FEWEST} {of} or more, and there are {number:,}"


def win_rates(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of the rows on which no column is less, (k,) float64.

    k columns that are equally good get 1/k each, so that the rates add up to 1; nan never wins.
    """
    best = np.fmin.reduce(values, axis=1)[:, None]  # fmin passes over nan
    wins = values == best
    rates: NDArray[np.float64] = (wins / np.maximum(wins.sum(axis=1, keepdims=True), 1)).mean(
        axis=0
    )
    return rates
