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
    shutdown_after_s : whole seconds of idleness after which a processor is switched off; None:
        never. A job that takes processors which are off, or on the way there, starts when they
        have been switched on; the scheduler plans as if they were ready at once.
    off_power_w : power of a processor that is off [W], by default as in the same table.
    shutdown_time_s, boot_time_s : whole seconds that it takes to switch off, and on.
    shutdown_power_w, boot_power_w : power meanwhile [W]; by default idle power, and busy power.

    Raises
    ------
    HpcgymError : a number of processors that is not from 1 to 2^31, a power that is negative or
        no number, or a time that is negative or no whole number of seconds.
    """

    processors: int
    idle_power_w: float = 117.0
    busy_power_w: float = 358.0
    shutdown_after_s: int | None = None
    off_power_w: float = 14.0
    shutdown_time_s: int = 0
    boot_time_s: int = 0
    shutdown_power_w: float | None = None
    boot_power_w: float | None = None

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "processors", _whole_number(self.processors))
        for name in ("shutdown_after_s", "shutdown_time_s", "boot_time_s"):
            if name != "shutdown_after_s" or self.shutdown_after_s is not None:
                settle(self, name, _seconds(name, getattr(self, name)))
        for name in _POWERS:
            if name not in _DERIVED_POWERS or getattr(self, name) is not None:
                settle(self, name, _watts(name, getattr(self, name)))

    @property
    def shutdown_w(self) -> float:
        """Power of a processor that is being switched off [W]."""
        return self.idle_power_w if self.shutdown_power_w is None else self.shutdown_power_w

    @property
    def boot_w(self) -> float:
        """Power of a processor that is being switched on [W]."""
        return self.busy_power_w if self.boot_power_w is None else self.boot_power_w


_DERIVED_POWERS = ("shutdown_power_w", "boot_power_w")  # None: as another one
_POWERS = ("idle_power_w", "busy_power_w", "off_power_w", *_DERIVED_POWERS)
MOST_SECONDS = 2**31


def _watts(name: str, power: Any) -> float:
    """Return a power as a float, or say that it is none."""
    try:
        watts = float(power)
    except (TypeError, ValueError):
        watts = math.nan
    if not (math.isfinite(watts) and watts >= 0):
        raise HpcgymError(f"{name} must be a power of at least 0 W, not {power!r}")
    return watts


def _seconds(name: str, seconds: Any) -> int:
    """Return whole seconds as an int, or say that they cannot be."""
    try:
        number = operator.index(seconds)
    except TypeError:
        number = -1
    if not 0 <= number <= MOST_SECONDS:
        raise HpcgymError(f"{name} must be whole seconds from 0 to {MOST_SECONDS}, not {seconds!r}")
    return number


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
