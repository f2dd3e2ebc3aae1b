"""Columns of jobs: read-only arrays, and the values that each may hold."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError
from hpcgym.machine.power import MOST_SLOWDOWN
from hpcgym.names import (
    CORE,
    JOB_COLUMNS,
    KILLED,
    LICENCE,
    MOST_AMOUNT,
    MOST_NICE,
    NICE,
    OF_WHOLE_JOBS,
    UNITS,
    UNITS_PER_NODE,
)

Ints = NDArray[np.int64]

#: The format's own mark for an unknown value.
MISSING = -1

#: No time lies beyond 2^53 s: scores are float64, and sums of a few times must fit int64.
MAX_TIME = 2**53


class ColumnRange(NamedTuple):
    """The values that a column may hold.

    Attributes
    ----------
    dtype : of the column.
    lowest, highest : the least and the greatest value.
    problem : what is wrong with other values, in words.
    rounded : whether a log may have decimals, which are rounded: SWF allows floating-point times.
    unknown : whether it may be -1 too.
    """

    dtype: type[np.int64] | type[np.float64]
    lowest: float
    highest: float
    problem: str
    rounded: bool = False
    unknown: bool = True

    def outside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which numbers the column may not hold; nan is not among them."""
        lowest, highest = self.lowest, self.highest
        if values.dtype.kind == "f" and float(highest) > highest:  # as 2^63 - 1, which is no float
            highest = math.nextafter(highest, 0)
            lowest = -highest
        wrong: NDArray[np.bool_] = (values < lowest) | (values > highest)
        return wrong & (values != MISSING) if self.unknown else wrong


def _from(lowest: int, highest: int) -> ColumnRange:
    problem = f"but must be a whole number from {lowest} to {highest}"
    return ColumnRange(np.int64, lowest, highest, problem, unknown=False)


_UNKNOWN = f", or {MISSING} where it is unknown"
_WHOLE = ColumnRange(np.int64, 1 - 2**63, 2**63 - 1, "beyond 2^63")
_TIME = ColumnRange(np.int64, -MAX_TIME, MAX_TIME, "beyond 2^53 s", rounded=True)
_AMOUNT = _from(0, MOST_AMOUNT)
_OF_JOB = ColumnRange(np.int64, 0, MOST_AMOUNT, f"{_AMOUNT.problem}{_UNKNOWN}")

#: Times in seconds: the only fields whose values are added up, so their size is limited.
TIME_COLUMNS = ("submit_time", "wait_time", "run_time", "requested_time", "think_time")

#: Columns whose values are not any whole numbers.
_RANGES = {
    **dict.fromkeys(TIME_COLUMNS, _TIME),
    **dict.fromkeys(("used_memory", "requested_memory"), _WHOLE._replace(rounded=True)),
    "average_cpu_time": ColumnRange(np.float64, -math.inf, math.inf, "beyond all numbers"),
    "power_w": ColumnRange(np.float64, 0, math.inf, f"but must be at least 0{_UNKNOWN}"),
    "slowdown": ColumnRange(
        np.float64, 1, MOST_SLOWDOWN, f"but must be from 1 to {MOST_SLOWDOWN:g}{_UNKNOWN}"
    ),
    NICE: ColumnRange(
        np.int64,
        -MOST_NICE,
        MOST_NICE,
        f"but must be from {-MOST_NICE} to {MOST_NICE}{_UNKNOWN}",
    ),
    UNITS_PER_NODE: ColumnRange(
        np.int64,
        1,
        MOST_AMOUNT,
        f"but must be from 1 to {MOST_AMOUNT}, or {MISSING} of any number",
    ),
    **dict.fromkeys(OF_WHOLE_JOBS, _OF_JOB),
    KILLED: _from(0, 1),
    UNITS: _from(1, MOST_AMOUNT),
    CORE: _from(1, MOST_AMOUNT),
}


def kind_of(column: str) -> ColumnRange:
    """Return the values that a column may hold: of jobs, of units, or of a resource of units."""
    other = _OF_JOB if column.startswith(LICENCE) else _AMOUNT
    return _RANGES.get(column, _WHOLE if column in JOB_COLUMNS else other)


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Return ``values`` read-only; a copy, if their owner could still change them."""
    owner: Any = values
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    if not isinstance(owner, np.ndarray) or values.strides == (0,):
        return values
    values = values.copy()
    values.flags.writeable = False
    return values


def rows_of(values: NDArray[Any], rows: NDArray[Any] | slice) -> NDArray[Any]:
    """Index a column, keeping zero-stride columns without memory."""
    if values.strides == (0,) and values.size and not isinstance(rows, slice):
        rows = np.asarray(rows)
        number = int(np.count_nonzero(rows)) if rows.dtype == bool else rows.size
        if number <= values.size:
            return values[:number]
        return np.broadcast_to(values[0], number)
    taken = values[rows]
    taken.flags.writeable = False
    return taken


def is_missing(values: NDArray[Any]) -> bool:
    """Tell whether this is a column that takes no memory because no job has it."""
    return values.size > 0 and values.strides == (0,) and values[0] == MISSING


def as_column(name: str, values: Any, n: int) -> NDArray[Any]:
    """Return ``values`` as a read-only column of ``n`` jobs."""
    kind = kind_of(name)
    if values is None:
        return np.broadcast_to(kind.dtype(MISSING), n)
    given = np.asarray(values)
    if given.shape != (n,):
        raise WorkloadError(f"column {name!r} has shape {given.shape}, 'submit_time' has {(n,)}")
    if n == 0:
        given = given.astype(kind.dtype)
    if given.dtype.kind not in "iufb":
        raise WorkloadError(f"column {name!r} holds {given.dtype}, not numbers")
    with np.errstate(invalid="ignore"):
        column = given.astype(kind.dtype, copy=False)
    whole = kind.dtype is np.int64
    if whole and given.dtype.kind in "uf" and not np.array_equal(column, given):
        raise WorkloadError(f"column {name!r} must hold whole numbers within int64")
    if not whole and not np.isfinite(column).all():
        raise WorkloadError(f"column {name!r} must hold finite numbers")
    if n and (column.min() < kind.lowest or column.max() > kind.highest):
        wrong = kind.outside(column)
        row = int(wrong.argmax())
        if wrong[row]:
            raise WorkloadError(f"column {name!r}, row {row}, is {column[row]}, {kind.problem}")
    return read_only(column)


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """Return the distinct values in order, and the place among them of each, (n_jobs,).

    As ``np.unique(values, return_inverse=True)``, without a sort where values lie close together,
    as those of users and processors do.

    >>> distinct(np.array([7, 5, 7]))
    (array([5, 7]), array([1, 0, 1]))
    """
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    least = int(values.min())
    width = int(values.max()) - least + 1
    if width > 8 * len(values):
        known, place = np.unique(values, return_inverse=True)
        return known.astype(np.int64), place.astype(np.int64)
    there = np.zeros(width, np.bool_)
    there[values - least] = True
    known = np.flatnonzero(there)
    places = np.empty(width, np.int64)
    places[known] = np.arange(len(known))
    return known + least, places[values - least]


def first_of_each(numbers: Ints) -> tuple[Ints, Ints]:
    """Return the distinct numbers in order, and where each stands first; all are at least 0.

    As ``np.unique(numbers, return_index=True)``, for numbers that lie close together.

    >>> first_of_each(np.array([2, 0, 2]))
    (array([0, 2]), array([1, 0]))
    """
    first = np.full(int(numbers.max(initial=-1)) + 1, -1)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    known = np.flatnonzero(first >= 0)
    return known, first[known]
