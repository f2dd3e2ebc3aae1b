"""Confidence intervals of means over slices, shuffles or weeks, by resampling them."""

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


def block_length(n: int) -> int:
    """Return how many weeks that follow one another are resampled together: n^(1/3), rounded up.

    On a machine that does not empty, a week feels the one before. The bootstrap of a mean's
    variance is most accurate with blocks that grow as n^(1/3) (Künsch, The jackknife and the
    bootstrap for general stationary observations, Annals of Statistics 17, 1989). The factor, 1
    here, depends on how alike neighbours are; estimates of it (Politis and White 2004) say little
    of some fifty weeks, and would differ from column to column.
    """
    length = int(np.cbrt(n))
    return max(length + (length**3 < n), 1)


def how_often(n: int, resamples: int, seed: int, block: int = 1) -> NDArray[np.int64]:
    """Return how often each resample has each row, (resamples, n); each has n rows.

    Blocks of rows begin at random rows, all equally likely, and go on at the first row behind the
    last (circular blocks: Politis and Romano 1992), so that each row is as likely as any other. The
    last block is cut off where there are n rows. With ``block=1`` this is the plain bootstrap.

    Parameters
    ----------
    n : number of rows.
    block : rows that are drawn together.
    """
    rng = np.random.default_rng(seed)
    times = np.zeros((resamples, n), np.int64)
    for number, length in ((n // block, block), (1, n % block)):
        if length:
            begun = rng.multinomial(number, np.full(n, 1.0 / n), size=resamples)
            for later in range(length):
                times += np.roll(begun, later, axis=1)
    return times


def bootstrap(
    values: NDArray[Any],
    resamples: int = 2000,
    seed: int = 0,
    *,
    block: int = 1,
    counts: NDArray[Any] | None = None,
) -> Ends:
    """Return the ends of the 95 % confidence intervals of the columns' means.

    They are percentiles of the means over random resamples of the rows, the same resamples for all
    columns, so that differences of columns may be taken before.

    Parameters
    ----------
    values : (n, k) a row a slice, shuffle or week, a column a policy or scheduler.
    resamples, seed : how many, and of which random numbers.
    block : how many rows that follow one another are drawn together, see :func:`block_length`; 1
        where rows have nothing to do with one another.
    counts : (n,) where values are sums over so many jobs, and means those over all jobs; at least
        one is not 0.

    Returns
    -------
    low, high : (k,) float64; nan with fewer than :data:`FEWEST` rows, or whole blocks of them.

    Raises
    ------
    HpcgymError : no resamples.
    """
    check_whole("resamples", resamples, 1)
    n, columns = values.shape
    if n // block < FEWEST:
        return np.full(columns, np.nan), np.full(columns, np.nan)
    times = how_often(n, resamples, seed, block)
    jobs = times @ (np.ones(n) if counts is None else counts)
    drawn = jobs > 0  # resamples of weeks without jobs have no mean
    low, high = np.percentile((times @ values)[drawn] / jobs[drawn, None], [2.5, 97.5], axis=0)
    return low, high


def why_no_intervals(number: int, of: str) -> str:
    """Return why means over so many slices have no intervals, in a line; nothing if they have.

    ``of`` is what the means are over, such as "slices".
    """
    if number >= FEWEST:
        return ""
    return f"no 95 % intervals: they need {FEWEST} {of} or more, and there are {number:,}"


def against(name: str, change: float, low: float, high: float, few: str = "weeks") -> str:
    """Return how something compares with another of this name, in words: better, worse, no better.

    Parameters
    ----------
    change, low, high : how much more it has of what should be small, and the ends of the interval
        [%]; nan where there are too ``few`` of something.
    """
    if np.isnan(low):
        return f"{change:+.0f} % against {name} (fewer than five {few}: no interval)"
    word = "better" if high < 0 else "worse" if low > 0 else "no better"
    return f"{word} than {name}, {change:+.0f} % [{low:+.0f}, {high:+.0f}]"


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
