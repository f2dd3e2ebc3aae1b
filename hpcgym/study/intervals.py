"""Numbers of what was simulated: intervals of means, p-values, ratios and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice, check_whole
from hpcgym.schedule.groups import GROUPED_BY
from hpcgym.study.sweep import OF_GROUPS, OF_JOBS
from hpcgym.words import signed

if TYPE_CHECKING:
    import pandas as pd


# --- Intervals over slices ------------------------------------------------------------------------

#: Means of fewer values have no interval. Resamples of few values differ too little: of five values
#: that are normally distributed, a "95 %" interval holds the true mean five times in six, of three
#: it is little more than the least and the greatest value.
FEWEST = 5

#: Signs of so many differences are all tried, 2 to the power of them; of more, FLIPS random ones.
EXACT = 13
FLIPS = 9999

#: Where no p-value can be so small, people are told.
_SMALL_P = 0.01

_TOGETHER = 250  # resamples at a time: memory stays small

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]

#: Values of each policy, (seeds, slices).
Rows = Sequence[Floats]


class Drawn(NamedTuple):
    """Which slices each resample has, and of each policy how often each seed.

    Attributes
    ----------
    slices : (resamples, n) int64, 0 or 1, see :func:`subsets`.
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


def subsets(n: int, resamples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return which of n slices each resample has, (resamples, n) of 0 and 1.

    All subsets are equally likely but for the empty one; ``n`` is at least 1. Where there are no
    more of them than resamples, none is there twice as long as another is missing.

    If values are independent, and each is as likely above as below the true mean by the same
    amount, the means of the 2^n - 1 subsets part the line at places between any two of which the
    true mean lies with the same chance (Hartigan, Using subsample values as typical values, Journal
    of the American Statistical Association 64, 1969). So the percentiles of these means hold it as
    often as they say, for few slices too. Of skewed values, such as slowdowns of crowded slices,
    they hold it less often, as those of the bootstrap do, which are narrower still for few slices.
    They leave out what :func:`p_values` rejects.
    """
    number = 2**n - 1
    if number <= resamples:
        in_turn = np.resize(1 + rng.permutation(number), resamples)
        return in_turn[:, None] >> np.arange(n) & 1
    drawn = rng.integers(0, 2, (resamples, n))
    while not (filled := drawn.any(axis=1)).all():
        drawn[~filled] = rng.integers(0, 2, (int((~filled).sum()), n))
    return drawn


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
    """Return the ends of the 95 % intervals of a statistic of policies.

    They are percentiles over resamples of slices, :func:`subsets`, and of the seeds of policies
    that have several, each drawn with replacement: crossed, as in the pigeonhole bootstrap (Owen,
    Annals of Applied Statistics 1, 2007).

    Parameters
    ----------
    rows : values of each of k policies.
    statistic : :func:`means_of`, :func:`iqms_of`, or what makes (resamples, j) of them.
    resamples, seed : as of :func:`bootstrap`; slices are drawn for all policies at once, and are
        taken for independent: none may have a job of another.

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


def draw(rows: Rows, resamples: int, seed: int | np.random.Generator) -> Drawn:
    """Return resamples of the slices, and of the seeds of those policies that have several."""
    rng = np.random.default_rng(seed)
    slices = subsets(rows[0].shape[1], resamples, rng)
    seeds = [how_often(len(values), resamples, rng) if len(values) > 1 else None for values in rows]
    return Drawn(slices, seeds)


def means_of(rows: Rows, drawn: Drawn) -> Floats:
    """Return the mean of each policy in each resample, (resamples, policies)."""
    n = drawn.slices.sum(axis=1)
    means: Floats = drawn.slices @ np.stack([values.mean(axis=0) for values in rows], axis=1)
    means /= n[:, None]
    for place, (values, seeds) in enumerate(zip(rows, drawn.seeds, strict=True)):
        if seeds is not None:
            means[:, place] = ((seeds @ values) * drawn.slices).sum(axis=1) / (n * len(values))
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
    iqms = np.full((len(drawn.slices), len(rows)), np.nan)
    for place, (values, seeds) in enumerate(zip(rows, drawn.seeds, strict=True)):
        if np.isnan(values).any():
            continue
        order = np.argsort(values, axis=None)
        ascending, size = values.ravel()[order], drawn.slices.sum(axis=1) * len(values)
        for begin in range(0, len(iqms), _TOGETHER):
            some = slice(begin, begin + _TOGETHER)
            times = drawn.slices[some, None, :]
            if seeds is not None:
                times = seeds[some, :, None] * times
            # which of the sorted values are left between the two cuts, and how often
            upto = times.reshape(len(times), -1)[:, order].cumsum(axis=1)
            whole = size[some, None]
            cut = whole // 4
            kept = np.diff(upto.clip(cut, whole - cut), axis=1, prepend=cut)
            iqms[some, place] = kept @ ascending / (whole - 2 * cut)[:, 0]
    return iqms


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
    differences : (n, k) a row a slice, a column a pair of policies. Slices are taken for
        independent: none may have a job of another.
    seed : of random signs.

    Returns
    -------
    p : (k,) float64; nan where a difference is.
    """
    n, columns = differences.shape
    sums = np.abs(differences.sum(axis=0)) * (1 - 1e-12)  # sums that differ by rounding are equal
    rng = np.random.default_rng(seed)
    total = 2**n if n <= EXACT else FLIPS
    as_far = np.zeros(columns)
    for begin in range(0, total, _TOGETHER):
        number = np.arange(begin, min(begin + _TOGETHER, total))
        if n <= EXACT:
            signs = 1.0 - 2.0 * (number[:, None] >> np.arange(n) & 1)
        else:
            signs = 1.0 - 2.0 * rng.integers(0, 2, (len(number), n))
        as_far += (np.abs(signs @ differences) >= sums).sum(axis=0)
    shares = as_far / total if n <= EXACT else (as_far + 1) / (total + 1)
    return np.where(np.isnan(sums), np.nan, shares)


def why_no_intervals(number: int, of: str) -> str:
    """Return why means over so many slices have no intervals, in a line; nothing if they have.

    ``of`` is what the means are over, such as "slices".
    """
    if number >= FEWEST:
        return ""
    return f"no 95 % intervals: they need {FEWEST} {of} or more, and there are {number:,}"


def why_no_small_p(number: int, of: str) -> str:
    """Return below what no p-value of so few values can be, in a line; nothing if that is small.

    Of n values at least 2 of the 2^n ways to give signs, all alike, are as far from 0 as what was
    found, see :func:`p_values`. ``of`` is what the values are of, such as "slices".
    """
    least = 2.0 ** (1 - max(number, 1))
    if least < _SMALL_P:
        return ""
    return f"no p can be below {least:.3g}: that needs more {of}, and there are {number:,}"


def short_of_weeks(n: int) -> str:
    """Return how many weeks an interval over blocks of weeks needs, beside how many there are."""
    fewest = next(weeks for weeks in count(1) if weeks // block_length(weeks) >= FEWEST)
    return f"no interval: it needs {fewest} weeks, the log has {n}"


def against(
    name: str,
    change: float,
    low: float,
    high: float,
    why_none: str = "fewer than five weeks: no interval",
) -> str:
    """Return how something compares with another of this name, in words: better, worse, no better.

    Parameters
    ----------
    change, low, high : how much more it has of what should be small, and the ends of the interval
        [%]; the ends are nan where there is no interval, all three without jobs.
    why_none : why there is no interval.
    """
    if np.isnan(change):
        return f"not compared with {name}: no jobs"
    if np.isnan(low):
        return f"{signed(change)} % against {name} ({why_none})"
    word = "better" if high < 0 else "worse" if low > 0 else "no better"
    return f"{word} than {name}, {signed(change)} % [{signed(low)}, {signed(high)}]"


def win_rates(values: Floats) -> Floats:
    """Return the share of the rows on which no column is less, (k,) float64.

    k columns that are equally good get 1/k each, so that the rates add up to 1; nan never wins.
    """
    best = np.fmin.reduce(values, axis=1)[:, None]  # fmin passes over nan
    wins = values == best
    rates: Floats = (wins / np.maximum(wins.sum(axis=1, keepdims=True), 1)).mean(axis=0)
    return rates


# --- What a sweep has found, in numbers -----------------------------------------------------------


def summary(
    rows: pd.DataFrame,
    metrics: Sequence[str],
    *,
    intervals: Collection[str] = (),
    paired: str | None = None,
    normalise: str | None = None,
    by: str | None = None,
) -> pd.DataFrame:
    """Return what simulations say together, a row for each scheduler on each workload.

    Simulations of the same jobs under two schedulers are a pair. All are taken for independent of
    one another; p-values are not corrected for the number of rows.

    Parameters
    ----------
    rows : of :func:`hpcgym.study.read_table`; there ``by`` a group of jobs, here too.
    metrics : names of columns.
    intervals : those metrics that have an interval.
    paired : a scheduler that the others are compared with, pair by pair.
    normalise : a scheduler; metrics are then geometric means of the ratios to its values, pair by
        pair, where both are more than 0.
    by : "slice", "seed" or "shuffle", or "class" or "user": a row for each of them.

    Returns
    -------
    The columns that say what a row is of, then ``simulations``, their number, and of each metric m:

    - ``m``: the mean, or that of ratios; of these ``m_ratios`` is the number.
    - ``m_low``, ``m_high``, with ``intervals``: ends of its 95 % interval, see
      :func:`hpcgym.study.intervals.subsets`; nan of fewer than five.
    - with ``paired`` ``m_above``: mean of the differences, in the unit of the metric;
      ``m_above_low`` and ``m_above_high``, its interval; ``m_effect``: that mean over the standard
      deviation of the differences (Cohen's d of pairs); ``m_p``: the p-value of the permutation
      test of :func:`hpcgym.study.intervals.p_values`. All nan of that scheduler itself.

    Raises
    ------
    HpcgymError : a scheduler that the sweep has not, another ``by``, or rows of classes or users
        without it.
    """
    import pandas as pd

    known = [str(name) for name in rows["scheduler"].unique()]
    for argument, name in (("paired", paired), ("normalise", normalise)):
        if name is not None:
            check_choice(argument, name, known)
    for name in GROUPED_BY:
        if name in rows and name != by:
            raise HpcgymError(f"these rows are of each {name}: give by={name!r}")
    if by is not None:
        check_choice("by", by, [name for name in (*OF_JOBS, *GROUPED_BY) if name in rows])
    keys = [name for name in (*OF_GROUPS, by) if name is not None and name in rows]
    jobs = [name for name in OF_JOBS if name in rows]
    lines = []
    for values, part in rows.groupby(keys, sort=False, dropna=False):
        unit = part.groupby(jobs, sort=False, dropna=False).ngroup()
        grids = {
            name: part.assign(unit=unit).pivot(index="unit", columns="scheduler", values=name)
            for name in metrics
        }
        for scheduler in part["scheduler"].unique().tolist():
            line = dict(zip(keys, values, strict=True))
            line |= {"scheduler": scheduler}
            line |= {"simulations": int((part["scheduler"] == scheduler).sum())}
            for name, grid in grids.items():
                line |= _level(name, grid, scheduler, normalise, name in intervals)
                line |= {} if paired is None else _pairs(name, grid, scheduler, paired)
            lines.append(line)
    return pd.DataFrame(lines, columns=None if lines else [*keys, "scheduler", "simulations"])


def _level(
    name: str, grid: pd.DataFrame, scheduler: str, normalise: str | None, interval: bool
) -> dict[str, Any]:
    """Return the mean of a metric, or of its ratios, perhaps with an interval."""
    values = grid[scheduler].to_numpy(np.float64)
    ratios: dict[str, Any] = {}
    if normalise is None:
        values = values[~np.isnan(values)]
    else:
        other = grid[normalise].to_numpy(np.float64) if normalise in grid else values * np.nan
        usable = (values > 0) & (other > 0)
        values = np.log(values[usable] / other[usable])
        ratios[f"{name}_ratios"] = len(values)
    ends = [_mean(values), *(_ends(values) if interval else ())]
    if normalise is not None:
        ends = [float(np.exp(end)) for end in ends]
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=False)) | ratios


def _pairs(name: str, grid: pd.DataFrame, scheduler: str, paired: str) -> dict[str, float]:
    """Return how a scheduler differs from another on the same jobs."""
    columns = (f"{name}_above", f"{name}_above_low", f"{name}_above_high")
    if scheduler == paired or paired not in grid:
        return dict.fromkeys((*columns, f"{name}_effect", f"{name}_p"), float("nan"))
    both = grid[[scheduler, paired]].dropna().to_numpy(np.float64)
    change = both[:, 0] - both[:, 1]
    spread = float(change.std(ddof=1)) if len(change) > 1 else 0.0
    return {
        **dict(zip(columns, (_mean(change), *_ends(change)), strict=True)),
        f"{name}_effect": _mean(change) / spread if spread else float("nan"),
        f"{name}_p": float(p_values(change[:, None])[0]) if len(change) else float("nan"),
    }


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _ends(values: Floats) -> tuple[float, float]:
    """Return the ends of the interval of a mean."""
    if not len(values):
        return float("nan"), float("nan")
    low, high = intervals([values[None, :]], means_of, 2000, 0)
    return float(low[0]), float(high[0])


# --- Means over logs ------------------------------------------------------------------------------

#: Weeks that are resampled together: a week feels those before it.
BLOCK = 4


class Mean(NamedTuple):
    """A mean over logs, with the ends of its 95 % interval; these may be nan."""

    value: float
    low: float
    high: float


def mean_of(logs: Sequence[Floats], block: int = BLOCK) -> Mean:
    """Return the mean over logs of the mean over weeks, with its 95 % interval.

    Parameters
    ----------
    logs : of each log (n_weeks,), or (n_replays, n_weeks) of several replays of it:
        :attr:`hpcgym.schedule.gains.Gain.counted` of a scheduler, or that of one less that of
        another, which compares them in pairs: EASY's slowdowns cancel out.
    block : weeks that are drawn together; 1 of slices that have nothing to do with one another.

    Returns
    -------
    The mean, nan where a log has no weeks. The interval is of 2000 resamples of a bootstrap, seed
    0, see :func:`how_often`: of each log blocks of weeks are drawn, and independently replays, so
    it is over weeks and replays, and not over logs. A resample of rows and columns both makes
    intervals a little too wide rather than too narrow (Owen, The pigeonhole bootstrap, Annals of
    Applied Statistics 1, 2007). Its ends are nan where all together have fewer than :data:`FEWEST`
    whole blocks, or one of them fewer than two.

    Raises
    ------
    HpcgymError : no logs.
    """
    if not logs:
        raise HpcgymError("logs: a mean over none")
    if not all(weeks.size for weeks in logs):
        return Mean(*[float("nan")] * 3)
    value = float(np.mean([weeks.mean() for weeks in logs]))
    tables = [np.atleast_2d(weeks) for weeks in logs]
    blocks = [table.shape[1] // block for table in tables]
    if sum(blocks) < FEWEST or min(blocks) < 2:
        return Mean(value, float("nan"), float("nan"))
    rng = np.random.default_rng(0)
    drawn = []
    for replays in tables:
        each = how_often(replays.shape[1], 2000, rng, block) @ replays.T / replays.shape[1]
        more = len(replays) > 1  # which replays a resample has
        often = how_often(len(replays), 2000, rng) / len(replays) if more else 1
        drawn.append((each * often).sum(axis=1))
    low, high = np.percentile(np.mean(drawn, axis=0), [2.5, 97.5])
    return Mean(value, float(low), float(high))
