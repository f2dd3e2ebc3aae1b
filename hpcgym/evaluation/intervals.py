"""Intervals over slices, shuffles or weeks, and over seeds, by resampling; p-values of pairs.

A policy has a value on each of n slices; several trainings of one agent have S x n of them. Both
the slices and the trainings are samples, of the jobs and the seeds that there could have been, so
both are drawn anew: with k_1..k_n ~ Multinomial(n, 1/n) and m_1..m_S ~ Multinomial(S, 1/S), which
are independent, the resampled mean is

    sum over s, i of m_s k_i X_si / (S n).

All trainings meet the same slices, so a slice is drawn for all of them at once, and a training with
all its slices: the two-way ("pigeonhole") bootstrap of Owen, The pigeonhole bootstrap, Annals of
Applied Statistics 1 (2), 2007. With S = 1 it is the usual bootstrap over slices. Of few trainings
the part of the variance that is theirs comes out too small by (S - 1) / S, as in any bootstrap.

That seeds belong into intervals, and the interquartile mean, are from Agarwal et al., Deep
Reinforcement Learning at the Edge of the Statistical Precipice, NeurIPS 2021. Its bootstrap is
stratified: trainings are drawn in each task by themselves, and tasks stay. That fits trainings that
were done for each task anew. Here one training acts on all slices, and the stratified bootstrap
would let what is good or bad about it average out. This is why the package of that paper, rliable,
is not used; it also needs arch, statsmodels and seaborn for these few lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import check_whole

#: Means of fewer values have no interval. Resamples of few values differ too little: of five values
#: that are normally distributed, a "95 %" interval holds the true mean five times in six, of three
#: it is little more than the least and the greatest value.
FEWEST = 5

#: Signs of so many differences are all tried, 2 to the power of them; of more, FLIPS random ones.
EXACT = 13
FLIPS = 9999

_TOGETHER = 250  # resamples at a time: memory stays small

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]

#: Values of each policy, (seeds, slices).
Rows = Sequence[Floats]


class Drawn(NamedTuple):
    """How often each resample has each slice, and of each policy each seed.

    Attributes
    ----------
    slices : (resamples, n) int64.
    seeds : of each policy (resamples, S) int64; None where it has one.
    """

    slices: NDArray[np.int64]
    seeds: Sequence[NDArray[np.int64] | None]


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


def how_often(
    n: int, resamples: int, seed: int | np.random.Generator, block: int = 1
) -> NDArray[np.int64]:
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


def intervals(
    rows: Rows, statistic: Callable[[Rows, Drawn], Floats], resamples: int, seed: int
) -> Ends:
    """Return the ends of the 95 % intervals of a statistic of policies, by the module's formula.

    Parameters
    ----------
    rows : values of each of k policies.
    statistic : :func:`means_of`, :func:`iqms_of`, or what makes (resamples, j) of them.
    resamples, seed : as of :func:`bootstrap`; slices are drawn for all policies at once.

    Returns
    -------
    low, high : (j,) float64; nan with fewer than :data:`FEWEST` slices.

    Raises
    ------
    HpcgymError : no resamples.
    """
    check_whole("resamples", resamples, 1)
    n = rows[0].shape[1]
    if n < FEWEST:
        none = np.full(statistic(rows, draw(rows, 1, seed)).shape[1], np.nan)
        return none, none.copy()
    low, high = np.percentile(statistic(rows, draw(rows, resamples, seed)), [2.5, 97.5], axis=0)
    return low, high


def draw(rows: Rows, resamples: int, seed: int) -> Drawn:
    """Return resamples of the slices, and of the seeds of those policies that have several."""
    rng = np.random.default_rng(seed)
    slices = how_often(rows[0].shape[1], resamples, rng)
    seeds = [how_often(len(one), resamples, rng) if len(one) > 1 else None for one in rows]
    return Drawn(slices, seeds)


def means_of(rows: Rows, drawn: Drawn) -> Floats:
    """Return the mean of each policy in each resample, (resamples, policies)."""
    n = drawn.slices.shape[1]
    means: Floats = drawn.slices @ np.stack([one.mean(axis=0) for one in rows], axis=1) / n
    for place, (values, seeds) in enumerate(zip(rows, drawn.seeds, strict=True)):
        if seeds is not None:
            means[:, place] = ((seeds @ values) * drawn.slices).sum(axis=1) / values.size
    return means


def iqm(values: NDArray[Any]) -> float:
    """Return the mean of the middle half of all values: without a quarter, rounded down, each end.

    The interquartile mean of Agarwal et al. 2021; nan if a value is.
    """
    flat = np.sort(values, axis=None)  # with nan last
    cut = flat.size // 4
    return float("nan") if np.isnan(flat[-1]) else float(flat[cut : flat.size - cut].mean())


def iqms_of(rows: Rows, drawn: Drawn) -> Floats:
    """Return the interquartile mean of each policy in each resample, (resamples, policies)."""
    found = np.full((len(drawn.slices), len(rows)), np.nan)
    for place, (values, seeds) in enumerate(zip(rows, drawn.seeds, strict=True)):
        if np.isnan(values).any():
            continue
        order = np.argsort(values, axis=None)
        ascending, cut = values.ravel()[order], values.size // 4
        for begin in range(0, len(found), _TOGETHER):
            some = slice(begin, begin + _TOGETHER)
            times = drawn.slices[some, None, :]
            if seeds is not None:
                times = seeds[some, :, None] * times
            # which of the sorted values are left between the two cuts, and how often
            upto = times.reshape(len(times), -1)[:, order].cumsum(axis=1)
            kept = np.diff(upto.clip(cut, values.size - cut), axis=1, prepend=cut)
            found[some, place] = kept @ ascending / (values.size - 2 * cut)
    return found


def p_values(differences: Floats, seed: int = 0) -> Floats:
    """Return two-sided p-values of the columns' means being 0, by flipping signs.

    The paired permutation test: if two policies were equally good on each slice, the difference
    could as well have the other sign. The p-value is the share of all 2^n ways to give signs whose
    mean is as far from 0 as the one that was found. Of more than :data:`EXACT` slices it is (b + 1)
    / (FLIPS + 1), with b of :data:`FLIPS` random ways (Phipson and Smyth 2010). It tests the mean,
    by which policies are ranked, and supposes no distribution; the test of Wilcoxon has ranks in
    place of values, so that it says little of the few crowded slices that make the mean.

    Parameters
    ----------
    differences : (n, k) a row a slice, a column a pair of policies.
    seed : of random signs.

    Returns
    -------
    p : (k,) float64; nan where a difference is.
    """
    n, columns = differences.shape
    found = np.abs(differences.sum(axis=0)) * (1 - 1e-12)  # sums that differ by rounding are equal
    rng = np.random.default_rng(seed)
    total = 2**n if n <= EXACT else FLIPS
    as_far = np.zeros(columns)
    for begin in range(0, total, _TOGETHER):
        number = np.arange(begin, min(begin + _TOGETHER, total))
        if n <= EXACT:
            signs = 1.0 - 2.0 * (number[:, None] >> np.arange(n) & 1)
        else:
            signs = 1.0 - 2.0 * rng.integers(0, 2, (len(number), n))
        as_far += (np.abs(signs @ differences) >= found).sum(axis=0)
    shares = as_far / total if n <= EXACT else (as_far + 1) / (total + 1)
    return np.where(np.isnan(found), np.nan, shares)


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


def win_rates(values: Floats) -> Floats:
    """Return the share of the rows on which no column is less, (k,) float64.

    k columns that are equally good get 1/k each, so that the rates add up to 1; nan never wins.
    """
    best = np.fmin.reduce(values, axis=1)[:, None]  # fmin passes over nan
    wins = values == best
    rates: Floats = (wins / np.maximum(wins.sum(axis=1, keepdims=True), 1)).mean(axis=0)
    return rates
