"""A slice of a workload: the jobs of an episode, of a week or a month of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hpcgym._engine import FOREVER
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.units import MONTH_S, WEEK_S
from hpcgym.workload.extracts import months, weeks
from hpcgym.workload.model import Workload

#: Kind of episodes -> how long a period is [s], and what one is called.
PERIODS = {"weeks": (WEEK_S, "week"), "months": (MONTH_S, "month")}

_CUT: dict[str, Callable[[Workload], list[Workload]]] = {"weeks": weeks, "months": months}


class Episode(NamedTuple):
    """The jobs of an episode: rows ``start`` to ``stop`` (exclusive) of ``Episodes.workload``.

    Attributes
    ----------
    first, last : rows from the first to the last (exclusive) of the slice that has this name, where
        the episode has jobs before or after it; -1 where the slice is all of it.
    until : [s] when the episode is truncated.
    endless : whether it goes on to ``until`` even when no job is left.
    beginning : its place in ``Episodes.listing`` where it begins with jobs, and its rows are those
        of its own jobs; else -1.
    period : number of its week or month in the trace; -1 of others.
    """

    name: str
    start: int
    stop: int
    first: int = -1
    last: int = -1
    until: int = FOREVER
    beginning: int = -1
    endless: bool = False
    period: int = -1

    @property
    def counting(self) -> tuple[int, int, int | None]:
        """Which of its jobs count, first and last (exclusive), and when it is over; None: never.

        That is what :func:`hpcgym.schedule.measures.metrics_within` takes.
        """
        until = None if self.until == FOREVER else self.until
        if self.last < 0:
            return 0, self.stop - self.start, until
        return self.first - self.start, self.last - self.start, until


def periods_of(workload: Workload, kind: str) -> list[Episode]:
    """Return the weeks or months of a workload, but for the first, with all their jobs.

    Numbers and lengths are those of :func:`hpcgym.workload.extracts.slices`, which leaves out jobs
    that cross a boundary.
    """
    length, label = PERIODS[kind]
    number = (workload.submit_time - workload.first_submit_s) // length
    episodes = []
    for k in np.unique(number[number >= 1]).tolist():
        first, last = np.searchsorted(number, [k, k + 1]).tolist()
        episodes.append(Episode(f"{label} {k}", first, last, period=k))
    return episodes


def periods_alone(workload: Workload, kind: str) -> tuple[Workload, list[Episode]]:
    """Return the jobs of all periods one after the other, and which rows each has."""
    try:
        parts = _CUT[kind](workload)
    except WorkloadError as error:
        raise WorkloadError(f"episodes={kind!r}: {error}") from None
    stops = np.cumsum([len(p) for p in parts]).tolist()
    length, label = PERIODS[kind]
    numbers = [int(p.submit_time[0] - workload.first_submit_s) // length for p in parts]
    periods = [
        Episode(f"{label} {number}", stop - len(p), stop, period=number)
        for number, stop, p in zip(numbers, stops, parts, strict=True)
    ]
    return joined(workload, parts), periods


def joined(workload: Workload, parts: list[Workload]) -> Workload:
    """Return the jobs of parts that follow one another in time as one workload.

    The columns need no check and no sorting: they are rows of a checked workload, in its order.
    """
    columns = {c: _one_column([p.columns[c] for p in parts]) for c in workload.columns}
    asked = [p.units for p in parts if p.units is not None]
    units = _one_column(asked) if asked else None
    per_unit = {r: _one_column([p.per_unit[r] for p in parts]) for r in workload.per_unit}
    killed = _one_column([p.killed for p in parts])
    joined = replace(workload, columns=columns, killed=killed, units=units, per_unit=per_unit)
    for p in parts:
        joined = joined.counted(p.cleaning)
    return joined


def _one_column(pieces: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    if all(piece.strides == (0,) for piece in pieces):  # a column that takes no memory
        return np.broadcast_to(pieces[0][0], sum(map(len, pieces)))
    joined = np.concatenate(pieces)
    joined.flags.writeable = False
    return joined


def check_beginning(workload: Workload, what: str, start: int, stop: int) -> None:
    """Raise an HpcgymError for rows of an extract with which it does not begin."""
    initial = workload.initial
    if initial is None:
        return
    name, begin = workload.name, initial.begin
    number = int(np.searchsorted(workload.submit_time, begin))
    if start > 0 or stop < number:
        raise HpcgymError(
            f"{what}: an episode of {name} begins with all jobs that run or wait at {begin} s,"
            f" rows 0:{number}"
        )
    if initial.running[:stop].all():
        raise HpcgymError(
            f"{what}: all its jobs run at {begin} s, when {name} begins, so that there is"
            " nothing to decide"
        )
