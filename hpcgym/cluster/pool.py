"""A pool of identical processors and the power that they draw."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hpcgym.errors import HpcgymError


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
    HpcgymError : no processors, or a power that is negative or no number.
    """

    processors: int
    idle_power_w: float = 117.0
    busy_power_w: float = 358.0

    def __post_init__(self) -> None:
        if not isinstance(self.processors, int) or self.processors < 1:
            raise HpcgymError(f"processors must be a whole number from 1, not {self.processors!r}")
        for name in ("idle_power_w", "busy_power_w"):
            power = getattr(self, name)
            if not (math.isfinite(power) and power >= 0):
                raise HpcgymError(f"{name} must be a power of at least 0 W, not {power!r}")
