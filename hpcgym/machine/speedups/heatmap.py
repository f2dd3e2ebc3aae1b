"""A heatmap: how fast each code runs beside each other one."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, is_number, unknown
from hpcgym.names import name_problem

if TYPE_CHECKING:
    import pandas as pd


# --- What files of speedups hold, checked ---------------------------------------------------------

MOST_CODES = 4096  # a table of pairs has the square of it


def positive(what: str, value: Any, most: float | None = None) -> float:
    """Return a number above 0 as a float; or from 0 to ``most``.

    Raises
    ------
    HpcgymError : any other value; the message begins with ``what``.
    """
    right = is_number(value) and (
        0 < value <= sys.float_info.max if most is None else 0 <= value <= most
    )
    if not right:
        limits = "above 0" if most is None else f"from 0 to {most:g}"
        raise HpcgymError(f"{what} must be a number {limits}, not {value!r}")
    return float(value)


# --- A heatmap: how fast each code runs beside each other one -------------------------------------

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNKNOWN_PROCESSES = -1
MOST_DEMAND_MB_S = 1000.0  #: Of a core, so that no sum of all cores overflows.


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Speedups of codes that share nodes, for each ordered pair of codes.

    The speedup of a code beside another is its run time alone on whole nodes ("compact") over its
    run time on half sockets with the other on the other halves (ELiSE, "AppSpeedup"): below
    1 the code is slowed down. It is of the first code; what the second one gains is another entry.

    Attributes
    ----------
    codes : their names, C of them, each once.
    speedup : (C, C) float64, above 0; ``speedup[a, b]`` is of code a beside code b, NaN where it
        was not measured.
    alone : (C,) float64, above 0: of a code on half sockets with no job on the other halves. NaN,
        or not given, becomes the greatest known speedup of the code, as in the public program of
        ELiSE; 1 if none is known.
    compact_s : (C,) float64 [s]: run time alone on whole nodes; NaN where unknown.
    processes : (C,) int64: processes of the code; -1 where unknown.
    source : where it comes from, for messages and manifests.
    dropped : measurements that a file had and that could not be kept, since of the neighbour it
        had nothing else.
    io_share : (C,) float64, 0 to 1: of its run time alone on whole nodes, how much a code reads or
        writes; NaN becomes 0. Looked at where the machine has a bandwidth. None: not known of any.
    io_demand_mb_s : (C,) float64, 0 to 1,000: what each core asks of the file system meanwhile
        [MB/s, 10^6 bytes], counted to the byte; NaN becomes 0, as where ``io_share`` is 0. With
        ``io_share``, or None.

    All arrays are read-only copies.

    Raises
    ------
    HpcgymError : no codes, an invalid or repeated name, an array of another shape, one of
        ``io_share`` and ``io_demand_mb_s`` without the other, or a value that cannot be; the
        message names the code, or the pair.
    """

    codes: tuple[str, ...]
    speedup: Floats
    alone: Floats = None  # type: ignore[assignment]  # None: the greatest of each row
    compact_s: Floats = None  # type: ignore[assignment]  # None: unknown
    processes: Ints = None  # type: ignore[assignment]  # None: unknown
    source: str = "the heatmap"
    dropped: int = 0
    io_share: Floats | None = None
    io_demand_mb_s: Floats | None = None

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "codes", _names(self.source, self.codes))
        size = len(self.codes)
        settle(self, "speedup", self._floats("speedup", self.speedup, (size, size)))
        for name in ("alone", "compact_s"):
            given = np.full(size, np.nan) if getattr(self, name) is None else getattr(self, name)
            settle(self, name, self._floats(name, given, (size,)))
        settle(self, "processes", self._processes())
        for (a, b), value in _wrong(self.speedup):
            self._refuse(f"speedup of {self.codes[a]!r} beside {self.codes[b]!r}", value)
        for what, values in (("speedup alone", self.alone), ("compact run time", self.compact_s)):
            for (a,), value in _wrong(values):
                self._refuse(f"{what} of {self.codes[a]!r}", value)
        settle(self, "alone", np.where(np.isnan(self.alone), _greatest(self.speedup), self.alone))
        for array in (self.speedup, self.alone, self.compact_s, self.processes):
            array.flags.writeable = False
        if (self.io_share is None) != (self.io_demand_mb_s is None):
            raise HpcgymError(f"{self.source}: io_share and io_demand_mb_s are given together")
        if self.io_share is not None and self.io_demand_mb_s is not None:
            for name, most in IO_OF_CODES.items():
                settle(self, name, self._io(name, most))
            for (a,) in np.argwhere((self.io_share == 0) & (self.io_demand_mb_s > 0)).tolist():
                raise HpcgymError(
                    f"{self.source}: io_demand_mb_s of {self.codes[a]!r} is"
                    f" {self.io_demand_mb_s[a]:g}, but its io_share is 0"
                )

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"Heatmap({self.source!r}, {len(self)} codes, {self.unknown} unknown pairs)"

    def __reduce__(self) -> tuple[Any, ...]:
        # arrays come out of a pickle writable, and cached ones need not go into it
        others = (self.alone, self.compact_s, self.processes, self.source, self.dropped)
        io = (self.io_share, self.io_demand_mb_s)
        return Heatmap, (self.codes, self.speedup, *others, *io)

    @property
    def unknown(self) -> int:
        """Number of ordered pairs that were not measured."""
        return int(np.isnan(self.speedup).sum())

    @property
    def mean_speedup(self) -> float:
        """Mean over the known pairs; NaN if none is known."""
        known = ~np.isnan(self.speedup)
        return float(self.speedup[known].mean()) if known.any() else float("nan")

    @cached_property
    def filled(self) -> Floats:
        """Speedups without gaps, (C, C), read-only.

        An unknown pair is the mean of the known ones of the same code, as in the public program of
        ELiSE; 1 for a code of which none is known.
        """
        known = ~np.isnan(self.speedup)
        counts = known.sum(axis=1)
        sums = np.where(known, self.speedup, 0.0).sum(axis=1)
        means = np.where(counts > 0, sums / np.maximum(counts, 1), 1.0)
        filled = np.where(known, self.speedup, means[:, np.newaxis])
        filled.flags.writeable = False
        return filled

    @cached_property
    def io_bytes_s(self) -> Ints:
        """What a core of each code asks for as it reads or writes, (C,) int64 [bytes/s]."""
        demand = np.zeros(len(self)) if self.io_demand_mb_s is None else self.io_demand_mb_s
        rate: Ints = np.rint(demand * 1e6).astype(np.int64)
        rate.flags.writeable = False
        return rate

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the codes and all arrays, in hexadecimal digits; not of the source."""
        sha256 = hashlib.sha256(json.dumps(self.codes).encode())
        for array in (self.speedup, self.alone, self.compact_s):
            # all NaN have the same bits
            sha256.update(np.where(np.isnan(array), np.nan, array).astype("<f8").tobytes())
        sha256.update(self.processes.astype("<i8").tobytes())
        for io in (self.io_share, self.io_demand_mb_s):
            sha256.update(b"" if io is None else io.astype("<f8").tobytes())
        return sha256.hexdigest()

    def place(self, name: str) -> int:
        """Return the row of a code.

        Raises
        ------
        HpcgymError : there is no code of this name; the message has those nearest to it.
        """
        if name not in self._places:
            raise HpcgymError(f"{self.source}: {unknown('code', name, self.codes)}")
        return self._places[name]

    def take(self, codes: Sequence[str]) -> Heatmap:
        """Return the heatmap of some codes, in the order in which they are named.

        What a code does alone stays as it is, also where its best neighbour is left out.

        Raises
        ------
        HpcgymError : a code that there is not, or one that is named twice.
        """
        rows = np.array([self.place(name) for name in codes], np.int64)
        return replace(
            self,
            codes=tuple(codes),
            speedup=self.speedup[np.ix_(rows, rows)],
            alone=self.alone[rows],
            compact_s=self.compact_s[rows],
            processes=self.processes[rows],
            io_share=None if self.io_share is None else self.io_share[rows],
            io_demand_mb_s=None if self.io_demand_mb_s is None else self.io_demand_mb_s[rows],
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the speedups as a table, a row for each code and a column for each neighbour."""
        import pandas as pd

        rows, columns = pd.Index(self.codes, name="code"), pd.Index(self.codes, name="beside")
        return pd.DataFrame(self.speedup.copy(), index=rows, columns=columns)

    def describe(self) -> dict[str, Any]:
        """Return what a manifest says of it: plain texts and numbers."""
        return {
            "source": self.source,
            "codes": list(self.codes),
            "unknown_pairs": self.unknown,
            "dropped": self.dropped,
            "digest": self.digest,
        }

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.codes)}

    def _floats(self, name: str, values: Any, shape: tuple[int, ...]) -> Floats:
        """Return an array of numbers as a copy, or say that it is not one of this shape."""
        try:
            array = np.array(values, np.float64)
        except (TypeError, ValueError):
            raise HpcgymError(f"{self.source}: {name} must hold numbers") from None
        if array.shape != shape:
            raise HpcgymError(f"{self.source}: {name} must be {shape}, not {array.shape}")
        return array

    def _processes(self) -> Ints:
        """Return the processes of each code as a copy."""
        if self.processes is None:
            return np.full(len(self.codes), UNKNOWN_PROCESSES)
        given = self._floats("processes", self.processes, (len(self.codes),))
        for code, number in zip(self.codes, given.tolist(), strict=True):
            whole = number == UNKNOWN_PROCESSES or (1 <= number <= 2**31 and number % 1 == 0)
            if not whole:
                raise HpcgymError(
                    f"{self.source}: processes of {code!r} must be a whole number from 1 to 2^31,"
                    f" or -1 where unknown, not {number:g}"
                )
        return given.astype(np.int64)

    def _io(self, name: str, most: float) -> Floats:
        """Return what codes read and write as a copy, read-only."""
        given = self._floats(name, getattr(self, name), (len(self.codes),))
        values: Floats = np.where(np.isnan(given), 0.0, given)
        for (a,) in np.argwhere(~((values >= 0) & (values <= most))).tolist():
            self._refuse(f"{name} of {self.codes[a]!r}", values[a], f"from 0 to {most:g}")
        values.flags.writeable = False
        return values

    def _refuse(self, what: str, value: float, limits: str = "above 0") -> NoReturn:
        raise HpcgymError(f"{self.source}: {what} must be a number {limits}, not {value:g}")


#: What is known of a code's files -> the most that it can be.
IO_OF_CODES = {"io_share": 1.0, "io_demand_mb_s": MOST_DEMAND_MB_S}


def _wrong(values: Floats) -> Iterator[tuple[list[int], float]]:
    """Yield the places of values that are neither above 0 nor unknown, and what these are."""
    for place in np.argwhere(~np.isnan(values) & ~((values > 0) & (values < np.inf))).tolist():
        yield place, values[tuple(place)]


def _greatest(speedup: Floats) -> Floats:
    """Return the greatest known speedup of each code, 1 where none is known."""
    greatest: Floats = np.where(np.isnan(speedup), 0.0, speedup).max(axis=1)
    return np.where(greatest > 0, greatest, 1.0)


def _names(source: str, codes: Any) -> tuple[str, ...]:
    """Return names of codes, or say what is wrong with them."""
    if isinstance(codes, str) or not isinstance(codes, Sequence) or not codes:
        raise HpcgymError(f"{source}: codes must be names, at least one, not {codes!r}")
    for name in codes:
        # names stand in lines of headers of the Standard Workload Format
        if name_problem(name):
            raise HpcgymError(f"{source}: {name!r} is no name of a code: a text, on one line")
    twice = next((name for place, name in enumerate(codes) if name in codes[:place]), None)
    if twice is not None:
        raise HpcgymError(f"{source}: the code {twice!r} stands there twice")
    return tuple(codes)
