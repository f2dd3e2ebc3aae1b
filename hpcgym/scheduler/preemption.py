"""Preemption: jobs of which partitions, or queues, stop those of which others to start at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, is_number, unknown
from hpcgym.naming import WITH_QOS
from hpcgym.scheduler.policies.features import JobColumns

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

#: What becomes of jobs that are stopped.
MODES = {
    "requeue": "they wait again, and then run from the beginning",
    "cancel": "they do not run again",
    "suspend": "they give up their processors, and later go on where they were",
}
_EXEMPT = "exempt="
_MOST = 10**9  # [s]
SUCH = "'partition:interactive>batch'"  # in messages


@dataclass(frozen=True)
class Preemption:
    """Who may stop whom, and what becomes of jobs that are stopped.

    Attributes
    ----------
    column : what jobs are told apart by, of :data:`hpcgym.naming.WITH_QOS`.
    pairs : names, or numbers that have none, of whose jobs may stop whose.
    mode : a name of :data:`MODES`.
    exempt : (name, seconds) of those that nobody stops before they have run for so long; each run
        counts anew.

    Raises
    ------
    HpcgymError : an unknown column or mode, no pairs, pairs by which somebody could stop whoever
        stops it, a name that no text could have, or times of names that nobody stops, or beside
        "suspend", with which Slurm has none either.

    Examples
    --------
    >>> from hpcgym.scheduler.preemption import Preemption
    >>> print(Preemption.parse("partition:debug>interactive>batch,cancel"))
    partition:debug>interactive;debug>batch;interactive>batch,cancel
    """

    column: str
    pairs: tuple[tuple[str, str], ...]
    mode: str = "requeue"
    exempt: tuple[tuple[str, int], ...] = ()

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
            raise HpcgymError(f"preemption: nobody may stop anybody; it must be such as {SUCH}")
        assert self.levels  # or there is an error
        self._check_exempt()

    def _check_exempt(self) -> None:
        """Raise an HpcgymError of times for which runs are exempt that cannot be."""
        if self.exempt and self.mode == "suspend":
            raise HpcgymError(
                "preemption: exempt goes with requeue and cancel; with suspend Slurm ignores such a"
                " time, PreemptExemptTime"
            )
        names = [name for name, _ in self.exempt]
        for name, seconds in self.exempt:
            if name not in self.stopped:
                raise HpcgymError(f"preemption: exempt: nobody may stop jobs of {name!r}")
            if names.count(name) > 1:
                raise HpcgymError(f"preemption: exempt: {name!r} is there twice")
            if not (is_number(seconds) and seconds == int(seconds) and 1 <= seconds <= _MOST):
                raise HpcgymError(
                    f"preemption: exempt: seconds must be a whole number from 1 to {_MOST:,}, not"
                    f" {seconds!r}"
                )
        in_order = sorted(self.exempt, key=lambda one: self.stopped.index(one[0]))
        object.__setattr__(self, "exempt", tuple((name, int(s)) for name, s in in_order))

    def __str__(self) -> str:
        mode = "" if self.mode == "requeue" else f",{self.mode}"
        exempt = ";".join(f"{name}={seconds}" for name, seconds in self.exempt)
        times = {seconds for _, seconds in self.exempt}
        if len(self.exempt) == len(self.stopped) and len(times) == 1:
            exempt = str(*times)
        exempt = f",{_EXEMPT}{exempt}" if exempt else ""
        return f"{self.column}:{';'.join('>'.join(pair) for pair in self.pairs)}{mode}{exempt}"

    @classmethod
    def parse(cls, text: str) -> Preemption:
        """Return the preemption of a text such as ``partition:debug>interactive>batch,requeue``.

        Behind that may stand for how many seconds runs are exempt, ``,exempt=600``, or of some
        names, ``,exempt=batch=600;interactive=60``.

        Raises
        ------
        HpcgymError : it is none.
        """
        column, colon, said = text.partition(":")
        chains, *words = (word.strip() for word in said.split(","))
        times = [words.pop()] if words and words[-1].startswith(_EXEMPT) else []
        if not colon or ">" not in chains:
            raise HpcgymError(f"preemption {text!r} is neither a file nor a rule such as {SUCH}")
        pairs = []
        for chain in filter(None, (chain.strip() for chain in chains.split(";"))):
            names = [name.strip() for name in chain.removeprefix(f"{column}:").split(">")]
            if len(names) < 2:
                raise HpcgymError(f"preemption {text!r}: {chain!r} does not say who stops whom")
            pairs += [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        unique = tuple(dict.fromkeys(pairs))
        mode = ",".join(words) if words else "requeue"
        return cls(column.strip(), unique, mode, _times_of(times[0], unique) if times else ())

    @cached_property
    def levels(self) -> dict[str, int]:
        """The level of each name: 0 if it may stop nobody, else one more than all it may stop."""
        levels = dict.fromkeys((name for pair in self.pairs for name in pair), 0)
        for _ in range(len(levels) + 1):
            before = dict(levels)
            for one, other in self.pairs:
                levels[one] = max(levels[one], levels[other] + 1)
            if levels == before:
                return levels
        raise HpcgymError(f"preemption: jobs could stop each other in a circle: {self}")

    def groups(self, workload: Workload) -> NDArray[np.int64]:
        """Return the group of each job, (n_jobs,) int64: the place in ``levels``, -1 of none."""
        group = np.full(len(workload), -1, np.int64)
        columns = JobColumns(workload)
        for place, name in enumerate(self.levels):
            group[columns.is_called(WITH_QOS[self.column], name)] = place
        return group

    @property
    def stopped(self) -> tuple[str, ...]:
        """The names of those that may be stopped."""
        return _stopped(self.pairs)

    @property
    def exempt_of_groups(self) -> NDArray[np.int64]:
        """For how long nobody stops a run of each group, (G,) int64 [s]."""
        seconds = dict(self.exempt)
        return np.array([seconds.get(name, 0) for name in self.levels], np.int64)

    @property
    def may(self) -> NDArray[np.bool_]:
        """Whether the jobs of one group may stop those of another, (G, G)."""
        place = {name: i for i, name in enumerate(self.levels)}
        may = np.zeros((len(place), len(place)), np.bool_)
        for one, other in self.pairs:
            may[place[one], place[other]] = True
        return may


def _times_of(text: str, pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, Any], ...]:
    """Return the names and seconds of ``exempt=600``, which is of all, or ``exempt=a=600;b=60``."""
    names = _stopped(pairs)
    found: list[tuple[str, Any]] = []
    for part in text.removeprefix(_EXEMPT).split(";"):
        name, equals, seconds = (word.strip() for word in part.rpartition("="))
        value = int(seconds) if seconds.isascii() and seconds.isdigit() else seconds
        found += [(one, value) for one in ([name] if equals else names)]
    return tuple(found)


def _stopped(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names of those that may be stopped, once each."""
    return tuple(dict.fromkeys(name for _, name in pairs))


def by_tier(tiers: Iterable[tuple[str, int]]) -> tuple[tuple[str, str], ...]:
    """Return who may stop whom, of names with tiers: each all that have a lower one."""
    known = sorted(tiers, key=lambda item: -item[1])
    return tuple((a, b) for a, high in known for b, low in known if low < high)
