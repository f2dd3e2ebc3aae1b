"""The power of nodes, in their states and at their frequencies, and of components above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.errors import HpcgymError, check_whole, real, watts
from hpcgym.names import name_problem
from hpcgym.units import whole_seconds

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


# --- The power of nodes in their states and at their frequencies ----------------------------------

MILLION = 1_000_000
MOST_SLOWDOWN = 1_000.0  # so that no product of whole seconds and millionths overflows
MOST_BELOW = 2**20  # nodes of a machine


@dataclass(frozen=True)
class NodePower:
    """Power of each node of a group [W], in all states, and how fast it computes.

    A node on which a job runs draws ``busy_w`` of the highest level of its jobs, however many of
    its cores they use (Glesser 2016, section 4.4).

    Attributes
    ----------
    idle_w : of a node that is on, without a job.
    busy_w : of a node that runs jobs, at each level, not falling with the frequency; one number
        means one level. Kept as a tuple.
    off_w : of a node that is off.
    frequency_ghz : of each level [GHz], rising; none are needed with one level.
    slowdown : completion time at each level over that at the highest: at least 1, not rising, the
        last is 1. One number is the slowdown at the lowest level; the others are interpolated
        linearly over the frequency (Glesser 2016, section 4.6.2). Kept in millionths, at most
        1,000.
    shutdown_time_s, boot_time_s : whole seconds that it takes to switch off, and on.
    shutdown_w, boot_w : power meanwhile; by default ``idle_w``, and the highest of ``busy_w``.

    Raises
    ------
    HpcgymError : an invalid number, or levels that do not rise; the message names the attribute.
    """

    idle_w: float
    busy_w: float | Sequence[float]
    off_w: float = 0.0
    frequency_ghz: Sequence[float] = ()
    slowdown: float | Sequence[float] = 1.0
    shutdown_time_s: int = 0
    boot_time_s: int = 0
    shutdown_w: float | None = None
    boot_w: float | None = None

    def __post_init__(self) -> None:
        settle = object.__setattr__
        for name in ("idle_w", "off_w"):
            settle(self, name, watts(name, getattr(self, name)))
        busy = tuple(watts("busy_w", power) for power in _listed(self.busy_w))
        if not busy or any(high < low for low, high in pairwise(busy)):
            raise HpcgymError(
                f"busy_w must be a power, or powers that do not fall with the frequency, not {busy}"
            )
        settle(self, "busy_w", busy)
        settle(self, "frequency_ghz", _frequencies(self.frequency_ghz, len(busy)))
        settle(self, "slowdown", _slowdown(self.slowdown, len(busy)))
        for name in ("shutdown_time_s", "boot_time_s"):
            settle(self, name, whole_seconds(name, getattr(self, name)))
        for name, default in (("shutdown_w", self.idle_w), ("boot_w", busy[-1])):
            given = getattr(self, name)
            settle(self, name, default if given is None else watts(name, given))

    @property
    def levels(self) -> int:
        """Number of frequency levels; level 0 is the lowest."""
        return len(self.busy_levels_w)

    @property
    def busy_levels_w(self) -> tuple[float, ...]:
        """``busy_w`` as the tuple that it is."""
        return _listed(self.busy_w)

    @property
    def slowdowns(self) -> tuple[float, ...]:
        """Completion time at each level over that at the highest."""
        if isinstance(self.slowdown, tuple):
            return self.slowdown
        return tuple(self.slowdowns_of(self.slowdown)[0].tolist())

    def slowdowns_of(self, lowest: ArrayLike) -> NDArray[np.float64]:
        """Return the slowdowns of jobs at each level, (n_jobs, levels) float64.

        Parameters
        ----------
        lowest : (n_jobs,) the job's own slowdown at the lowest level, from which others lie on the
            straight line over the frequency; -1: as the node's.
        """
        own = np.atleast_1d(np.asarray(lowest, dtype=np.float64))[:, np.newaxis]
        if self.levels == 1:
            return np.ones((len(own), 1))
        ghz = np.asarray(self.frequency_ghz)
        line = 1 + (own - 1) * (ghz[-1] - ghz) / (ghz[-1] - ghz[0])
        return line if (own >= 0).all() else np.where(own < 0, self.slowdowns, line)


@dataclass(frozen=True)
class Level:
    """Components above nodes that many of them share, such as a chassis or a rack.

    Attributes
    ----------
    name : what one of them is called.
    of : how many of the level below belong to one: of nodes on the first level. They are counted
        from node 0 of the machine, whatever the groups; the last may have fewer.
    power_w : of the component itself [W]. It is saved while all nodes below are off, and on the
        first level so is ``off_w`` of these (Glesser 2016, table 4.1).

    Raises
    ------
    HpcgymError : no name, or a number that cannot be.
    """

    name: str
    of: int
    power_w: float

    def __post_init__(self) -> None:
        if problem := name_problem(self.name):
            raise HpcgymError(f"the name of a level must be {problem}")
        object.__setattr__(self, "of", check_whole("of", self.of, 1, MOST_BELOW))
        object.__setattr__(self, "power_w", watts("power_w", self.power_w))


def slowed(time_s: ArrayLike, slowdown: ArrayLike) -> NDArray[np.int64]:
    """Return how long jobs take when they are slowed down: whole seconds, rounded up.

    A slowdown counts in millionths, so that nothing depends on how a fraction is rounded: 100 s
    slowed by 1.1 are 110 s.

    Parameters
    ----------
    time_s : int64 [s] completion times at the highest frequency, up to 2^53.
    slowdown : factors from 1 to 1,000, of the same shape or one number.
    """
    times = np.asarray(time_s, dtype=np.int64)
    millionths = np.rint(np.asarray(slowdown, dtype=np.float64) * MILLION).astype(np.int64)
    # in two parts, so that no product overflows
    many, rest = np.divmod(times, MILLION)
    return np.asarray(many * millionths - (-rest * millionths) // MILLION, dtype=np.int64)


def unslowed(time_s: ArrayLike, slowdown: ArrayLike) -> NDArray[np.int64]:
    """Return how long jobs would have taken that were slowed down: what :func:`slowed` undoes.

    Parameters and rounding are its own; of times that it does not return, rounded down.
    """
    times = np.asarray(time_s, dtype=np.int64)
    millionths = np.rint(np.asarray(slowdown, dtype=np.float64) * MILLION).astype(np.int64)
    # in two parts, so that no product overflows
    many, rest = np.divmod(times, millionths)
    return np.asarray(many * MILLION + rest * MILLION // millionths, dtype=np.int64)


def _listed(value: Any) -> tuple[Any, ...]:
    """Return one number, or several, as a tuple."""
    return tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,)


def _frequencies(given: Any, levels: int) -> tuple[float, ...]:
    """Return the frequencies of levels [GHz], checked."""
    ghz = tuple(real(number) for number in _listed(given))
    rise = all(low < high for low, high in pairwise((0.0, *ghz, np.inf)))
    if not rise or len(ghz) not in ((0, 1) if levels == 1 else (levels,)):
        raise HpcgymError(
            f"frequency_ghz must be rising frequencies above 0 GHz, one for each of busy_w, of"
            f" which there are {levels}, not {given!r}"
        )
    return ghz


def _slowdown(given: Any, levels: int) -> float | tuple[float, ...]:
    """Return the slowdown at the lowest level, or at each level, checked."""
    factors = tuple(real(number) for number in _listed(given))
    is_number = not isinstance(given, list | tuple | np.ndarray)
    line = (*factors, 1.0) if is_number else factors
    if not (
        all(1 <= low <= high <= MOST_SLOWDOWN for high, low in pairwise((MOST_SLOWDOWN, *line)))
        and line[-1:] == (1.0,)
        and (is_number or len(line) == levels)
    ):
        raise HpcgymError(
            f"slowdown must be a factor from 1 to {MOST_SLOWDOWN:g} at the lowest level, or one"
            f" for each of busy_w, of which there are {levels}, that do not rise and end with 1,"
            f" not {given!r}"
        )
    if is_number and levels == 1 and factors[0] != 1:
        raise HpcgymError(f"slowdown must be 1 with one level of busy_w, not {given!r}")
    return factors[0] if is_number else line
