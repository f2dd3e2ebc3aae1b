"""A pool of identical processors and the power that they draw."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any

from hpcgym.errors import HpcgymError

MOST_PROCESSORS = 2**31  # so that no sum of processors overflows


@dataclass(frozen=True)
class Cluster:
    """A machine of identical processors.

    Attributes
    ----------
    processors : number of processors, at least 1.
    idle_power_w : power of a processor without a job [W]. The default, like that of
        ``busy_power_w``, is a node of the Curie machine (document 004, table 4.2).
    busy_power_w : power of a processor that runs a job [W].

    Raises
    ------
    HpcgymError : a number of processors that is not from 1 to 2^31, or a power that is negative or
        no number.
    """

    processors: int
    idle_power_w: float = 117.0
    busy_power_w: float = 358.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "processors", _whole_number(self.processors))
        for name in ("idle_power_w", "busy_power_w"):
            power = getattr(self, name)
            try:
                object.__setattr__(self, name, float(power))
            except (TypeError, ValueError):
                power = math.nan
            if not (math.isfinite(power) and power >= 0):
                raise HpcgymError(
                    f"{name} must be a power of at least 0 W, not {getattr(self, name)!r}"
                )


def _whole_number(processors: Any) -> int:
    """Return a number of processors as an int, or say that it cannot be one."""
    try:
        size = operator.index(processors)
    except TypeError:
        size = 0
    if not 1 <= size <= MOST_PROCESSORS:
        raise HpcgymError(
            f"processors must be a whole number from 1 to {MOST_PROCESSORS}, not {processors!r}"
        )
    return size
