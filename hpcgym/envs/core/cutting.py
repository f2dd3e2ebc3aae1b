"""Workloads cut into the weeks or months that are episodes, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.cluster.pool import Cluster
from hpcgym.errors import HpcgymError, WorkloadError, check_choice
from hpcgym.naming import seconds_of
from hpcgym.schedule.result import Result
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.continued import cells_held
from hpcgym.simulation.run import simulate
from hpcgym.workload.extracts import (
    MONTH_S,
    WEEK_S,
    Ongoing,
    extract,
    months,
    recorded_run_time,
    weeks,
)
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
    beginning : with which state of ``Episodes.beginnings`` it begins; -1: an empty machine.
    """

    name: str
    start: int
    stop: int
    first: int = -1
    last: int = -1
    until: int = FOREVER
    beginning: int = -1
    endless: bool = False


def periods_of(workload: Workload, kind: str) -> list[Episode]:
    """Return the weeks or months of a workload, but for the first, with all their jobs.

    Numbers and lengths are those of :func:`hpcgym.workload.extracts.slices`, which leaves out jobs
    that cross a boundary.
    """
    length, label = PERIODS[kind]
    number = (workload.submit_time - workload.first_submit_s) // length
    found = []
    for k in np.unique(number[number >= 1]).tolist():
        first, last = np.searchsorted(number, [k, k + 1]).tolist()
        found.append(Episode(f"{label} {k}", first, last))
    return found


def periods_alone(workload: Workload, kind: str) -> tuple[Workload, list[Episode]]:
    """Return the jobs of all periods one after the other, and which rows each has."""
    try:
        parts = _CUT[kind](workload)
    except WorkloadError as error:
        raise WorkloadError(f"episodes={kind!r}: {error}") from None
    stops = np.cumsum([len(p) for p in parts]).tolist()
    names = [p.name.removeprefix(f"{workload.name} ") for p in parts]
    periods = [
        Episode(name, stop - len(p), stop)
        for name, stop, p in zip(names, stops, parts, strict=True)
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


Ints = NDArray[np.int64]

ARRIVALS = ("stop", "continue")

#: Whose schedule an episode goes on with, where it is not said.
USUAL_START = "easy"

_MOST_S = 100 * 366 * 86_400


class Surroundings(NamedTuple):
    """What is around episodes, by the arguments of :class:`hpcgym.envs.core.episodes.Episodes`.

    Attributes
    ----------
    start : the scheduler that left the machine as an episode finds it; None: it is empty.
    warmup_s, horizon_s : [s]; FOREVER stands for no horizon.
    continues : whether jobs go on to come.
    """

    start: Scheduler | None
    warmup_s: int
    continues: bool
    horizon_s: int

    @property
    def plain(self) -> bool:
        """Whether there is nothing around the jobs."""
        return self == Surroundings(None, 0, False, FOREVER)


def read_surroundings(
    start: Any, warmup: Any, arrivals: Any, horizon: Any, rules: Mapping[str, Any]
) -> Surroundings:
    """Return what episodes have around their jobs, checked.

    ``rules``: what the scheduler keeps that left the machine, whatever it is.

    Raises
    ------
    HpcgymError : no scheduler, no duration, or arrivals that go on without a horizon.
    """
    scheduler = None
    if start != "empty":
        scheduler = find_scheduler(USUAL_START if start == "warm" else start).but(**rules)
    check_choice("arrivals", arrivals, ARRIVALS)
    continues = arrivals == "continue"
    if continues and horizon is None:
        raise HpcgymError(
            "arrivals='continue' needs a horizon, such as horizon='28d': jobs come until then"
        )
    warmup_s = 0 if warmup is None else read_duration("warmup", warmup, 0)
    horizon_s = FOREVER if horizon is None else read_duration("horizon", horizon, 1)
    return Surroundings(scheduler, warmup_s, continues, horizon_s)


def read_duration(name: str, value: Any, least: int) -> int:
    """Return a duration [s], given in seconds or as "30m", "12h", "7d" or "2w".

    Raises
    ------
    HpcgymError : it is neither, or too short or long.
    """
    seconds = -1.0
    if isinstance(value, str):
        read = seconds_of(value)
        seconds = -1.0 if read is None else read
    elif isinstance(value, (int, float, np.integer)) and not isinstance(value, bool):
        seconds = float(value)
    if not least <= seconds <= _MOST_S or seconds != int(seconds):
        raise HpcgymError(
            f"{name} must be a number of seconds, or a duration such as '12h', '7d' or '2w', not"
            f" {value!r}"
        )
    return int(seconds)


def check_surroundable(workload: Workload, kind: str, around: Surroundings) -> None:
    """Raise an HpcgymError unless episodes of this kind can have something around them."""
    if workload.initial is not None:
        raise HpcgymError(
            f"start, warmup, arrivals and horizon are for whole traces: {workload.name} is an"
            " extract, which begins with the jobs that run then"
        )
    if kind == "stream" and not around.plain:
        raise HpcgymError(
            "start, warmup, arrivals and horizon: episodes='stream' have all jobs of the part, and"
            " end with its last submission"
        )
    if kind == "whole" and around.start is not None:
        raise HpcgymError(
            "start: episodes='whole' begin where nothing comes before; give start='empty', or use"
            " weeks or windows"
        )


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


def counted(episode: Episode) -> tuple[int, int, int | None]:
    """Return the first job of an episode that counts, that behind the last, and when it is over.

    That is what :func:`hpcgym.schedule.measures.metrics_within` takes; None: never.
    """
    until = None if episode.until == FOREVER else episode.until
    if episode.last < 0:
        return 0, episode.stop - episode.start, until
    return episode.first - episode.start, episode.last - episode.start, until


def surrounded(episode: Episode, workload: Workload, around: Surroundings, end: int) -> Episode:
    """Return an episode of rows with what is around it.

    Parameters
    ----------
    episode : a slice of the workload, from an empty machine.
    end : the row behind the last job that may come after it.
    """
    firsts, lasts = np.array([episode.start]), np.array([episode.stop])
    starts, stops, untils = rows_around(workload.submit_time, firsts, lasts, around, end)
    return Episode(
        episode.name, int(starts[0]), int(stops[0]), episode.start, episode.stop, int(untils[0])
    )


def rows_around(
    submit: Ints, firsts: Ints, lasts: Ints, around: Surroundings, end: int
) -> tuple[Ints, Ints, Ints]:
    """Return the rows of slices with those around them, and when they are truncated, (n,) each.

    Parameters
    ----------
    submit : (n_jobs,) [s], ascending.
    firsts, lasts : (n,) the rows of slices, the last exclusive.
    end : as of :func:`surrounded`.
    """
    begins = submit[firsts]
    starts = np.searchsorted(submit, begins - around.warmup_s) if around.warmup_s else firsts
    untils = np.full(len(begins), FOREVER)
    if around.horizon_s < FOREVER:
        untils = begins + around.horizon_s
    stops = lasts
    if around.continues:
        coming = np.searchsorted(submit, untils, side="right")
        stops = np.maximum(lasts, np.minimum(end, coming))
    return starts, stops, untils


def warm_parts(
    workload: Workload,
    episodes: list[Episode],
    around: Surroundings,
    end: int,
    cluster: Cluster | None,
    keeps_past: bool,
) -> tuple[list[Workload], list[Episode]]:
    """Return the jobs of each episode with those that run and wait when it begins.

    The whole workload is simulated once by the scheduler of ``around``; an episode begins as its
    schedule was then.

    Parameters
    ----------
    workload : from which the episodes are cut.
    episodes : slices of it, from an empty machine.
    end : the row behind the last job that may come after them.
    cluster : the machine; None: a pool of the workload's processors.
    keeps_past : whether episodes know the jobs that had ended, for users' shares and learned run
        times; else they would only take memory.

    Returns
    -------
    parts : the jobs of each episode, with the state that it begins with.
    episodes : their rows where the parts follow one another.
    """
    assert around.start is not None
    result = simulate(workload, around.start, cluster=cluster)
    ends = result.start + recorded_run_time(workload)
    seen = replace(workload.with_columns(wait_time=result.wait), cleaning={})
    parts, placed, offset = [], [], 0
    for number, episode in enumerate(episodes):
        whole = surrounded(episode, workload, around, end)
        begin = int(workload.submit_time[episode.start]) - around.warmup_s
        # those before the first that runs or waits then are past: a part that keeps none needs none
        first = 0 if keeps_past else int(np.argmax(ends > begin))
        part = extract(seen.take(slice(first, whole.stop), name=workload.name), max(begin, 0))
        if around.start.maintenance and result.allocation is not None:
            part = _on_their_nodes(part, result, first, whole.stop)
        if not keeps_past and part.initial is not None:
            nobody = part.initial.past.take(slice(0, 0))
            part = replace(part, initial=replace(part.initial, past=nobody))
        part = replace(part, cleaning={}, name=f"{workload.name} {episode.name}")
        shift = offset + len(part) - whole.stop  # what comes from the beginning on ends alike
        placed.append(
            whole._replace(
                start=offset,
                stop=offset + len(part),
                first=episode.start + shift,
                last=episode.stop + shift,
                beginning=number,
            )
        )
        parts.append(part)
        offset += len(part)
    return parts, placed


def _on_their_nodes(part: Workload, result: Result, first: int, stop: int) -> Workload:
    """Return an extract of the rows from ``first`` to ``stop`` whose jobs run where they ran.

    On other nodes they might run into a window, which they had been kept out of.
    """
    initial = part.initial
    assert initial is not None
    submit, run = result.workload.submit_time, recorded_run_time(result.workload)
    ended = (submit < initial.begin) & (result.start + run <= initial.begin)
    rows = first + np.flatnonzero(~ended[first:stop])
    held = np.zeros(len(submit), np.bool_)
    held[rows] = initial.running
    assert result.allocation is not None
    cells = cells_held(result.allocation, held)
    unknown = np.full(len(part), -1)
    ongoing = Ongoing(
        {}, result.cluster, np.arange(len(part)), unknown, unknown, cells=cells.take(rows)
    )
    return replace(part, initial=replace(initial, ongoing=ongoing))
