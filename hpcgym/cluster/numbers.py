"""Numbers that describe machines, checked."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError

MOST_SECONDS = 2**31


def whole(name: str, amount: Any, least: int, most: int, what: str = "a whole number") -> int:
    """Return a whole number as an int, or say that it cannot be one."""
    try:
        number = operator.index(amount)
    except TypeError:
        number = least - 1
    if isinstance(amount, bool) or not least <= number <= most:
        raise HpcgymError(f"{name} must be {what} from {least} to {most}, not {amount!r}")
    return number


def watts(name: str, power: Any) -> float:
    """Return a power as a float, or say that it is none."""
    number = real(power)
    if not (math.isfinite(number) and number >= 0):
        raise HpcgymError(f"{name} must be a power of at least 0 W, not {power!r}")
    return number


def seconds(name: str, time: Any) -> int:
    """Return whole seconds as an int, or say that they cannot be."""
    try:
        number = operator.index(time)
    except TypeError:
        number = -1
    if not 0 <= number <= MOST_SECONDS:
        raise HpcgymError(f"{name} must be whole seconds from 0 to {MOST_SECONDS}, not {time!r}")
    return number


def whole_column(name: str, values: Any) -> NDArray[np.int64]:
    """Return values as an int64 array, or say that they are no whole numbers."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise HpcgymError(f"{name} must hold whole numbers, not {array.dtype}")
    return array.astype(np.int64)


def real(number: Any) -> float:
    """Return a number as a float; not-a-number of what is none."""
    try:
        return float(number)
    except (TypeError, ValueError, OverflowError):
        return math.nan
