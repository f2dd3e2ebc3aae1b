"""Rows of many simulations: which arrays of them are one for all, and which have a row for each.

Environments and batches have the arrays of many simulations in one NamedTuple. The annotation of
each field says which of the two it is, so that nothing has to be cut by its place.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, cast, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

#: One array for all simulations, which nobody changes.
Shared = Annotated[NDArray[Any], "shared"]
#: An array with a row for each simulation.
Rows = Annotated[NDArray[Any], "rows"]


@cache
def names_of(kind: Any, cls: Any, other: Any = None) -> tuple[str, ...]:
    """Return the fields of a NamedTuple that are ``kind``, in order; of ``other`` too, if given."""
    hints = get_type_hints(cls, include_extras=True)
    names = [name for name, hint in hints.items() if get_args(hint)[1:] == get_args(kind)[1:]]
    return tuple(name for name in names if other is None or name in other.__annotations__)


def shared_arrays(rows: Any) -> tuple[NDArray[Any], ...]:
    """Return the arrays that are one for all simulations."""
    return tuple(getattr(rows, name) for name in names_of(Shared, cast(Any, type(rows))))


def arrays_of_rows(rows: Any) -> tuple[NDArray[Any], ...]:
    """Return the arrays that have a row for each simulation."""
    return tuple(getattr(rows, name) for name in names_of(Rows, cast(Any, type(rows))))


def empty_rows(one: Any, number: int, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Return arrays by name for that many simulations, whose rows are like the arrays of ``one``.

    They are filled with zeros.
    """
    arrays = {name: getattr(one, name) for name in names}
    return {name: np.zeros((number, *array.shape), array.dtype) for name, array in arrays.items()}
