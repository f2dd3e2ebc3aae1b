"""Arguments of generators, checked."""

from __future__ import annotations

import math
from typing import Any

from hpcgym.errors import WorkloadError


def whole(generator: str, name: str, value: Any, least: int, most: int) -> int:
    """Return an argument as an int; a float from a command line may stand for one (1e6).

    Raises
    ------
    WorkloadError : it is no whole number from ``least`` to ``most``.
    """
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = least - 1
    if not least <= number <= most or number != value:
        raise WorkloadError(
            f"{generator}: {name} must be a whole number from {least} to {most}, not {value!r}"
        )
    return number


def positive(generator: str, name: str, value: Any) -> float | None:
    """Return an argument as a float above 0, or None as it is.

    Raises
    ------
    WorkloadError : it is no number above 0.
    """
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf:
        raise WorkloadError(f"{generator}: {name} must be a number above 0, not {value!r}")
    return number
