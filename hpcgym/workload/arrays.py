"""Arrays that nobody can change, and what messages call the jobs of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Return ``values`` so that nobody can change them, copied if their owner still could."""
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
    if values.size and values.strides == (0,) and not isinstance(rows, slice):
        rows = np.asarray(rows)
        if rows.dtype == bool:
            return values[: np.count_nonzero(rows)]
        return np.broadcast_to(values[0], rows.size)
    taken = values[rows]
    taken.flags.writeable = False
    return taken


def called(numbers: NDArray[np.int64], row: int) -> str:
    """Return what messages call the job of a row: its number, and the row if others have it too.

    ``numbers``: of the jobs, (n_jobs,), -1 of those that have none.
    """
    number = int(numbers[row])
    if number < 0:
        return f"the job of row {row}"
    return (
        f"job {number} (row {row})" if np.count_nonzero(numbers == number) > 1 else f"job {number}"
    )
