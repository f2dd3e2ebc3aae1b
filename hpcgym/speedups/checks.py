"""What files of speedups hold, checked."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, is_number

MOST_CODES = 4096  # a table of pairs has the square of it


def positive(what: str, value: Any) -> float:
    """Return a number above 0 as a float.

    Raises
    ------
    HpcgymError : any other value; the message begins with ``what``.
    """
    if not is_number(value) or not 0 < value <= sys.float_info.max:
        raise HpcgymError(f"{what} must be a number above 0, not {value!r}")
    return float(value)


def within(what: str, value: Any, most: float) -> float:
    """Return a number from 0 to ``most`` as a float.

    Raises
    ------
    HpcgymError : any other value; the message begins with ``what``.
    """
    if not is_number(value) or not 0 <= value <= most:
        raise HpcgymError(f"{what} must be a number from 0 to {most:g}, not {value!r}")
    return float(value)


def within_text(what: str, text: str, most: float) -> float:
    """Return the number from 0 to ``most`` that a text is, NaN of an empty one.

    Raises
    ------
    HpcgymError : any other value; the message begins with ``what``.
    """
    if not text:
        return math.nan
    number = _number(text)
    return within(what, text if math.isnan(number) else number, most)


def positive_text(what: str, text: str) -> float:
    """Return the number above 0 that a text is, NaN of an empty one.

    Raises
    ------
    HpcgymError : any other value; the message begins with ``what``.
    """
    if not text:
        return math.nan
    number = _number(text)
    if not 0 < number < math.inf:
        raise HpcgymError(f"{what} must be a number above 0, not {text!r}")
    return number


def _number(text: str) -> float:
    """Return the number that a text is, NaN of any other text."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def unknown_pairs(where: str, codes: int) -> NDArray[np.float64]:
    """Return the speedups of that many codes, (codes, codes), all unknown.

    Raises
    ------
    HpcgymError : there are more than ``MOST_CODES``; ``where`` is what the error names.
    """
    if codes > MOST_CODES:
        raise HpcgymError(f"{where} has {codes:,} codes, at most {MOST_CODES:,}")
    return np.full((codes, codes), np.nan)
