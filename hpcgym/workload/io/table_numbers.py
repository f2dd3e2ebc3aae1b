"""Numbers in tables: what of a column is one, and what a column cannot hold.

The limits and the reasons by which rows are counted are those of lines of the Standard Workload
Format (:mod:`hpcgym.workload.io.swf_lines`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.power import MOST_SLOWDOWN
from hpcgym.naming import KILLED, MOST_NICE, NICE
from hpcgym.workload.io.table_files import as_numbers
from hpcgym.workload.model import (
    FLOAT_COLUMNS,
    MAX_TIME,
    MISSING,
    ROUNDED_COLUMNS,
    TIME_COLUMNS,
)

if TYPE_CHECKING:
    import pandas as pd

#: Reasons by which rows are dropped.
TEXT = "line with text in a numeric field"
_LARGE = "line with a number too large"
_FRACTION = "line with a fraction where only whole numbers make sense"

#: Column -> least and most that it may hold; -1 is unknown.
_LIMITS = {
    "power_w": (0.0, np.inf),
    "slowdown": (1.0, MOST_SLOWDOWN),
    NICE: (-MOST_NICE, MOST_NICE),
}


def numbers_alone(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of texts and objects as numbers; what is none is missing.

    True and False are none, in files of JSON too.
    """
    given = series.astype(object)
    truths = given.map(lambda value: isinstance(value, bool | np.bool_)).to_numpy(np.bool_)
    return as_numbers(given.where(~truths, None) if truths.any() else series)


def wrong_numbers(series: pd.Series[Any], column: str) -> dict[tuple[str, str], NDArray[np.bool_]]:
    """Return which rows of a column of numbers hold what it cannot.

    Parameters
    ----------
    series : numbers, (n_jobs,); what is missing is not wrong.
    column : one of ``JOB_COLUMNS``, or ``killed``, which says what it can hold.

    Returns
    -------
    (reason, problem) -> (n_jobs,) bool: the reason by which such rows are counted, and what is
    wrong with the value, in words.
    """
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    if column == KILLED:
        wrong = ~np.isnan(values) & (values != 0) & (values != 1)
        return {(f"line with {KILLED} neither 0 nor 1", "but must be 0 or 1"): wrong}
    found = {(_LARGE, "no finite number"): np.isinf(values)}
    if column in _LIMITS:
        least, most = _LIMITS[column]
        outside = ((values < least) | (values > most)) & (values != MISSING) & np.isfinite(values)
        limits = f"at least {least:g}" if np.isinf(most) else f"from {least:.10g} to {most:.10g}"
        problem = f"but must be {limits}, or {MISSING} where it is unknown"
        found[f"line with {column} out of its limits", problem] = outside
    if column in FLOAT_COLUMNS:
        return found
    if column in TIME_COLUMNS:
        found[_LARGE, "beyond 2^53 s"] = _beyond(series, values, MAX_TIME)
    else:
        found[_LARGE, "beyond 2^63"] = _beyond(series, values, 2**63 - 1)
    if column not in ROUNDED_COLUMNS:
        fraction = np.isfinite(values) & (np.floor(values) != values)
        found[_FRACTION, "not a whole number"] = fraction
    return found


def _beyond(series: pd.Series[Any], values: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """Return which numbers, ``values`` as floats, are beyond ``most`` or below -``most``."""
    kind = series.dtype.kind
    if kind == "u":
        return series.to_numpy(dtype=np.uint64, na_value=0) > np.uint64(most)
    if kind == "i":
        exact = series.to_numpy(dtype=np.int64, na_value=0)
        return (exact > most) | (exact < -most)
    limit = float(most)
    if int(limit) > most:  # 2^63 - 1 is no float, and 2^63 is beyond
        limit = math.nextafter(limit, 0)
    return np.isfinite(values) & (np.abs(values) > limit)
