"""What a sweep has found, in numbers: means, intervals, ratios and paired differences."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.evaluation.intervals import Floats, bootstrap, p_values
from hpcgym.schedule.groups import GROUPED_BY
from hpcgym.sweep.source import OF_GROUPS, OF_JOBS

if TYPE_CHECKING:
    import pandas as pd


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
    rows : of :func:`hpcgym.sweep.read_table`; there ``by`` a group of jobs, here too.
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
    - ``m_low``, ``m_high``, with ``intervals``: ends of its 95 % bootstrap interval, see
      :func:`hpcgym.evaluation.intervals.bootstrap`; nan of fewer than five.
    - with ``paired`` ``m_above``: mean of the differences, in the unit of the metric;
      ``m_above_low`` and ``m_above_high``, its interval; ``m_effect``: that mean over the standard
      deviation of the differences (Cohen's d of pairs); ``m_p``: the p-value of the permutation
      test of :func:`hpcgym.evaluation.intervals.p_values`. All nan of that scheduler itself.

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
    found: dict[str, Any] = {}
    if normalise is None:
        values = values[~np.isnan(values)]
    else:
        other = grid[normalise].to_numpy(np.float64) if normalise in grid else values * np.nan
        usable = (values > 0) & (other > 0)
        values = np.log(values[usable] / other[usable])
        found[f"{name}_ratios"] = len(values)
    ends = [_mean(values), *(_ends(values) if interval else ())]
    if normalise is not None:
        ends = [float(np.exp(one)) for one in ends]
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=False)) | found


def _pairs(name: str, grid: pd.DataFrame, scheduler: str, paired: str) -> dict[str, float]:
    """Return how a scheduler differs from another on the same jobs."""
    told = (f"{name}_above", f"{name}_above_low", f"{name}_above_high")
    if scheduler == paired or paired not in grid:
        return dict.fromkeys((*told, f"{name}_effect", f"{name}_p"), float("nan"))
    both = grid[[scheduler, paired]].dropna().to_numpy(np.float64)
    change = both[:, 0] - both[:, 1]
    spread = float(change.std(ddof=1)) if len(change) > 1 else 0.0
    return {
        **dict(zip(told, (_mean(change), *_ends(change)), strict=True)),
        f"{name}_effect": _mean(change) / spread if spread else float("nan"),
        f"{name}_p": float(p_values(change[:, None])[0]) if len(change) else float("nan"),
    }


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _ends(values: Floats) -> tuple[float, float]:
    """Return the ends of the interval of a mean."""
    low, high = bootstrap(values[:, None])
    return float(low[0]), float(high[0])
