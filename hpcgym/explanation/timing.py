"""How long an explanation may take: on machines with nodes each simulation may take seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from hpcgym.errors import HpcgymError, is_number

#: [s] that an explanation takes at most, unless somebody says how long.
SECONDS = 20.0


class TimeOverError(Exception):
    """There is no time for what would come next."""


def time_of(seconds: Any) -> float:
    """Return how long an explanation may take [s], or say that this is no time; None: for ever.

    Raises
    ------
    HpcgymError : no number, or one below 0.
    """
    if seconds is None:
        return float("inf")
    if not is_number(seconds) or not seconds >= 0:
        raise HpcgymError(f"seconds must be a number of at least 0, or None, not {seconds!r}")
    return float(seconds)


def over_after(seconds: float) -> Callable[[], bool]:
    """Return what tells whether so many seconds have passed since now."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end
