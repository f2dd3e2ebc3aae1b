"""Preemption: which jobs may stop which others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, is_number, unknown
from hpcgym.names import WITH_QOS
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.units import in_seconds

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

#: Mode -> what happens to stopped jobs.
MODES = {
    "requeue": "they wait again, and then run from the beginning",
    "cancel": "they do not run again",
    "suspend": "they give up their processors, and later go on where they were",
}
_TIMES = {"exempt": "PreemptExemptTime", "grace": "GraceTime"}  # as Slurm calls them
_LONGEST = 10**9  # [s]
SUCH = "'partition:interactive>batch'"  # in messages


@dataclass(frozen=True)
class Preemption:
    """Which jobs may stop which others, and what happens to stopped jobs.

    Attributes
    ----------
    column : the column whose names group jobs, of :data:`hpcgym.names.WITH_QOS`.
    pairs : (one, other) names, or numbers without a name: jobs of one may stop jobs of other.
    mode : a name of :data:`MODES`.
    exempt : (name, seconds): a job of this name cannot be stopped before it has run for so long;
        each of its runs counts anew.
    grace : (name, seconds): a job of this name runs on for so long once it is to stop.

    Raises
    ------
    HpcgymError : an unknown column or mode; no pairs; pairs that form a circle; a name that cannot
        stand in a text; times of names that are never stopped; or times with "suspend", with which
        Slurm has none either.

    Examples
    --------
    >>> from hpcgym.scheduler.restrictions import Preemption
    >>> print(Preemption.parse("partition:debug>interactive>batch,cancel"))
    partition:debug>interactive;debug>batch;interactive>batch,cancel
    """

    column: str
    pairs: tuple[tuple[str, str], ...]
    mode: str = "requeue"
    exempt: tuple[tuple[str, int], ...] = ()
    grace: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if self.column not in WITH_QOS:
            raise HpcgymError(f"preemption: {unknown('column', self.column, WITH_QOS)}")
        if self.mode not in MODES:
            raise HpcgymError(f"preemption: {unknown('mode', self.mode, MODES)}")
        for name in (name for pair in self.pairs for name in pair):
            if not name:
                raise HpcgymError(f"preemption: a name is missing; it must be such as {SUCH}")
            column, colon, rest = name.partition(":")
            if colon and column in WITH_QOS:
                raise HpcgymError(
                    f"preemption: one column is for all names, {self.column}: {rest!r} stands with"
                    f" another, {column}"
                )
            if any(sign in name for sign in ">;,") or name != name.strip():
                raise HpcgymError(
                    f"preemption: no name has blanks at its ends, or > ; , as {name!r}"
                )
        if not self.pairs:
            raise HpcgymError(f"preemption: it has no pairs; it must be such as {SUCH}")
        assert self.levels  # or there is an error
        for kind in _TIMES:
            self._check_times(kind)

    def _check_times(self, kind: str) -> None:
        """Put the times of a kind in order; raise an HpcgymError if they are invalid."""
        given = [(name, in_seconds(seconds, kind)) for name, seconds in getattr(self, kind)]
        if given and self.mode == "suspend":
            raise HpcgymError(
                f"preemption: {kind} goes with requeue and cancel; with suspend Slurm ignores such"
                f" a time, {_TIMES[kind]}"
            )
        names = [name for name, _ in given]
        for name, seconds in given:
            if name not in self.stopped:
                raise HpcgymError(f"preemption: {kind}: no job may stop jobs of {name!r}")
            if names.count(name) > 1:
                raise HpcgymError(f"preemption: {kind}: {name!r} is there twice")
            if not (is_number(seconds) and seconds == int(seconds) and 1 <= seconds <= _LONGEST):
                raise HpcgymError(
                    f"preemption: {kind}: seconds must be a whole number from 1 to {_LONGEST:,},"
                    f" not {seconds!r}"
                )
        in_order = sorted(given, key=lambda pair: self.stopped.index(pair[0]))
        object.__setattr__(self, kind, tuple((name, int(s)) for name, s in in_order))

    def __str__(self) -> str:
        mode = "" if self.mode == "requeue" else f",{self.mode}"
        text = f"{self.column}:{';'.join('>'.join(pair) for pair in self.pairs)}{mode}"
        for kind in _TIMES:
            given: tuple[tuple[str, int], ...] = getattr(self, kind)
            times = {seconds for _, seconds in given}
            if len(given) == len(self.stopped) and len(times) == 1:
                text += f",{kind}={next(iter(times))}"
            elif given:
                text += f",{kind}={';'.join(f'{name}={seconds}' for name, seconds in given)}"
        return text

    @classmethod
    def parse(cls, text: str) -> Preemption:
        """Return the preemption of a text such as ``partition:debug>interactive>batch,requeue``.

        Exempt times [s] may follow, of all names, ``,exempt=600``, or of some,
        ``,exempt=batch=600;interactive=60``; and grace times likewise, ``,grace=120``.

        Raises
        ------
        HpcgymError : it is not one.
        """
        column, colon, rest = text.partition(":")
        chains, *words = (word.strip() for word in rest.split(","))
        times: dict[str, str] = {}
        while words and (kind := words[-1].partition("=")[0]) in _TIMES and "=" in words[-1]:
            if kind in times:
                raise HpcgymError(f"preemption {text!r}: {kind} is there twice")
            times[kind] = words.pop().removeprefix(f"{kind}=")
        if not colon or ">" not in chains:
            raise HpcgymError(f"preemption {text!r} is no rule such as {SUCH}")
        pairs = []
        for chain in filter(None, (chain.strip() for chain in chains.split(";"))):
            names = [name.strip() for name in chain.removeprefix(f"{column}:").split(">")]
            if len(names) < 2:
                raise HpcgymError(f"preemption {text!r}: {chain!r} is no pair such as 'a>b'")
            pairs += [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        unique = tuple(dict.fromkeys(pairs))
        mode = ",".join(words) if words else "requeue"
        parsed = {kind: _times_of(times[kind], unique) for kind in times}
        return cls(column.strip(), unique, mode, **parsed)

    @cached_property
    def levels(self) -> dict[str, int]:
        """The level of each name: 0 if it may stop none, else 1 + the highest that it may stop."""
        levels = dict.fromkeys((name for pair in self.pairs for name in pair), 0)
        for _ in range(len(levels) + 1):
            before = dict(levels)
            for stopper, other in self.pairs:
                levels[stopper] = max(levels[stopper], levels[other] + 1)
            if levels == before:
                return levels
        raise HpcgymError(f"preemption: jobs could stop each other in a circle: {self}")

    def groups(self, workload: Workload) -> NDArray[np.int64]:
        """Return the group of each job, (n_jobs,) int64: its place in ``levels``, -1 if none."""
        group = np.full(len(workload), -1, np.int64)
        columns = JobColumns(workload)
        for place, name in enumerate(self.levels):
            group[columns.is_called(WITH_QOS[self.column], name)] = place
        return group

    @property
    def stopped(self) -> tuple[str, ...]:
        """The names whose jobs may be stopped."""
        return _stopped(self.pairs)

    def of_groups(self, times: tuple[tuple[str, int], ...]) -> NDArray[np.int64]:
        """Return :attr:`exempt` or :attr:`grace` of each group, (G,) int64 [s]; 0 of others."""
        seconds = dict(times)
        return np.array([seconds.get(name, 0) for name in self.levels], np.int64)

    @property
    def may(self) -> NDArray[np.bool_]:
        """Whether the jobs of one group may stop those of another, (G, G)."""
        place = {name: i for i, name in enumerate(self.levels)}
        may = np.zeros((len(place), len(place)), np.bool_)
        for stopper, other in self.pairs:
            may[place[stopper], place[other]] = True
        return may


def _times_of(text: str, pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, Any], ...]:
    """Return the names and seconds of ``600``, which is of all, or ``a=600;b=60``."""
    names = _stopped(pairs)
    times: list[tuple[str, Any]] = []
    for part in text.split(";"):
        name, equals, seconds = (word.strip() for word in part.rpartition("="))
        times += [(stopped, in_seconds(seconds)) for stopped in ([name] if equals else names)]
    return tuple(times)


def _stopped(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names whose jobs may be stopped, once each."""
    return tuple(dict.fromkeys(name for _, name in pairs))


def by_tier(tiers: Iterable[tuple[str, int]]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of names with tiers: each may stop all that have a lower tier."""
    known = sorted(tiers, key=lambda item: -item[1])
    return tuple((a, b) for a, high in known for b, low in known if low < high)
