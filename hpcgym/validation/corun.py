"""What is proved of results whose jobs share nodes, for :mod:`hpcgym.validation.validate`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.validation.books import check_books
from hpcgym.validation.passes import (
    check_cells,
    check_owned,
    check_units,
    is_fcfs,
    least_over,
    owner_of,
)
from hpcgym.validation.schedules import cases, check_energy, held_together, over_time

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.schedule.runs import Coschedule


# --- How a file system that jobs share slows them down --------------------------------------------
#
# What running jobs ask for is added up; where it is more than the bandwidth, all that waits for
# files takes so many times as long. n jobs.

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class FileTraffic(NamedTuple):
    """The file system, and what jobs read and write.

    Attributes
    ----------
    bandwidth : whole bytes a second.
    share : (n,) of the run time of each job, alone on nodes of its own, that it waits for files.
    demand : (n,) whole bytes a second that it asks for meanwhile.
    """

    bandwidth: float
    share: Floats
    demand: Ints


class Congestion(NamedTuple):
    """How many times as long files take: k values, each from a time up to that of the next."""

    time: Ints
    times_as_long: Floats


def congestion_of(files: FileTraffic, start: Ints, end: Ints) -> Congestion:
    """Return the congestion by what all jobs ask for that run; ``start`` and ``end``, (n,)."""
    time, place = np.unique(np.concatenate((start, end)), return_inverse=True)
    starts, ends = np.split(place, 2)
    asked = over_time(time.size, starts, ends, files.demand)
    times_as_long = np.maximum(asked / files.bandwidth, 1.0)
    differs = np.ones(time.size, np.bool_)
    differs[1:] = np.diff(times_as_long) != 0
    return Congestion(time[differs], times_as_long[differs])


def changes_within(
    congestion: Congestion, files: FileTraffic, start: Ints, end: Ints
) -> tuple[Ints, Ints]:
    """Return jobs, and times at which another congestion changes their rates as they run; (c,)."""
    first = np.searchsorted(congestion.time, start, "right")
    count = np.searchsorted(congestion.time, end, "left") - first
    count = np.where(files.share > 0, np.maximum(count, 0), 0)
    owner = np.repeat(np.arange(start.size), count)
    before = np.repeat(np.cumsum(count) - count, count)
    return owner, congestion.time[first[owner] + np.arange(owner.size) - before]


def slowed(
    congestion: Congestion, files: FileTraffic, owner: Ints, time: Ints, rate: Floats
) -> Floats:
    """Return rates of jobs from some times on, by those without congestion; (c,) each.

    Work of a second takes 1 / rate, and what is waited for files beyond the share of them.
    """
    place = np.searchsorted(congestion.time, time, "right") - 1
    waits = files.share[owner] * (congestion.times_as_long[place] - 1.0)
    rates: Floats = 1.0 / (1.0 / rate + waits)
    return rates


# --- What can be proved of a schedule in which jobs share nodes -----------------------------------
#
# Rates are those of ELiSE, "The simulation workflow": the least speedup beside any job that is on
# a node of the job's at the same time; where jobs share a file system, less by its congestion.
# Times are in ticks; an end is at a whole one, rounded up. An allocation is cells: so many parts
# of a node that a job has. n jobs, m cells.

COMPACT, SPREAD, PART = 0, 1, 2  #: Shapes: alone on full nodes, alone on half ones, sharing nodes.

_ROUNDING = 1e-15  # of the work left, by double precision, each time that a rate changes


class SharedSchedule(NamedTuple):
    """A schedule, the jobs it is of, and the machine.

    Attributes
    ----------
    ticks : in a second.
    submit, start, end : (n,) ticks.
    work : (n,) ticks that the job takes compact, cut at its requested time.
    promised : (n,) ticks of the start that was promised; -1 where none was.
    processors : (n,) that the job asked for.
    code : (n,) its row in ``pairs``.
    shape : (n,) ``COMPACT``, ``SPREAD`` or ``PART``.
    first : (n + 1,) job j has the cells ``first[j]`` up to ``first[j + 1]``, exclusive.
    node, units : (m,) the node of each cell, and how many of its parts the job has.
    pairs : (codes, codes) speedup of the first code beside the second.
    alone : (codes,) speedup on a part of its nodes with no job beside.
    nodes, sockets, cores : nodes, sockets of each, cores of each socket.
    parts : of each node.
    files : the file system that jobs share; None: none, or one that slows no job down.
    period : ticks, after whose multiples usage counts; 0: as jobs end.
    """

    ticks: int
    submit: Ints
    start: Ints
    end: Ints
    work: Ints
    promised: Ints
    processors: Ints
    code: Ints
    shape: NDArray[np.int8]
    first: Ints
    node: Ints
    units: Ints
    pairs: Floats
    alone: Floats
    nodes: int
    sockets: int
    cores: int
    parts: int
    files: FileTraffic | None = None
    period: int = 0


def prove_shared(
    schedule: SharedSchedule, wanted: int, *, guaranteed: bool
) -> Iterator[tuple[str, list[str]]]:
    """Look at all that can be proved; where jobs are not in their places, at nothing else.

    Parameters
    ----------
    schedule : what is looked at.
    wanted : the shape that the scheduler gives to all jobs but those that are too large for it.
    guaranteed : whether promises are kept whatever happens: under EASY by submission, if the
        scheduler knows the true speedups and no job takes longer than predicted.

    Yields
    ------
    what is looked at, and what is wrong with it; by the names of the functions below.
    """
    places = check_places(schedule, wanted)
    yield "places", places
    if places:
        return
    events = check_starts(schedule)
    yield "events", events
    if not events:
        shares = check_parts(schedule)
        yield "parts", shares
        if not shares:
            yield "work", check_work(schedule)
    if guaranteed:
        yield "reservations", check_promises(schedule)


def check_progress(schedule: SharedSchedule) -> list[str]:
    """Find times at which jobs wait although the whole machine is idle."""
    times, place = np.unique(
        np.concatenate((schedule.submit, schedule.start, schedule.end)), return_inverse=True
    )
    submitted, started, ended = np.split(place, 3)
    waiting = over_time(times.size, submitted, started)
    running = over_time(times.size, started, ended)
    text = "the machine is idle at {1:.9f} s although {2} jobs wait"
    return cases((waiting > 0) & (running == 0), text, times / schedule.ticks, waiting)


def check_places(schedule: SharedSchedule, wanted: int) -> list[str]:
    """Find jobs that have not the shape, the nodes or the parts that they should have.

    Parameters
    ----------
    schedule : what is looked at.
    wanted : as of :func:`prove_shared`.
    """
    first, node, units = schedule.first, schedule.node, schedule.units
    violations = check_cells(first, node, units, len(schedule.start))
    if violations:
        return violations
    shape, needed = _shapes(schedule, wanted)
    text = f"job {{}} has shape {{}} instead of {{}}, of {COMPACT}, {SPREAD} and {PART}"
    violations += cases(schedule.shape != shape, text, schedule.shape, shape)
    text = "job {} has {} nodes instead of {}"
    violations += cases(np.diff(first) != needed, text, np.diff(first), needed)
    job = owner_of(first)
    violations += check_owned(job, node, schedule.nodes)
    has = np.where(shape[job] == PART, 1, schedule.parts)
    text = "job {1} has {2} parts of node {3} instead of {4}"
    return violations + cases(units != has, text, job, units, node, has)


def _shapes(schedule: SharedSchedule, wanted: int) -> tuple[Ints, Ints]:
    """Return the shape of each job, and how many nodes it needs, (n,) each.

    A part is as many whole cores of each socket; a spread job has halves, whatever the parts.
    """
    sockets, cores = schedule.sockets, schedule.cores
    needed = -(-schedule.processors // (sockets * cores))
    shape = np.full(len(needed), COMPACT, np.int64)
    size = sockets * (cores // (2 if wanted == SPREAD else schedule.parts))
    if wanted == COMPACT or size == 0:
        return shape, needed
    in_parts = -(-schedule.processors // size)
    fits = in_parts <= schedule.nodes
    return np.where(fits, wanted, shape), np.where(fits, in_parts, needed)


def check_starts(schedule: SharedSchedule) -> list[str]:
    """Find jobs that start too early, end too early, or start when nothing happens."""
    submit, start, end = schedule.submit, schedule.start, schedule.end
    seconds = start / schedule.ticks
    text = "job {} starts at {:.9f} s, before its submission at {:.9f} s"
    violations = cases(start < submit, text, seconds, submit / schedule.ticks)
    violations += cases(end <= start, "job {} does not end after its start at {:.9f} s", seconds)
    happens = np.isin(start, np.concatenate((submit, end)))
    if schedule.period:
        happens |= (start - 1) % schedule.period == 0
    text = "job {} starts at {:.9f} s, when no job is submitted or ends"
    return violations + cases(~happens, text, seconds)


def check_parts(schedule: SharedSchedule) -> list[str]:
    """Find nodes whose jobs hold more parts than they have; exclusive jobs hold all.

    Time O(m log m).
    """
    job, node = owner_of(schedule.first), schedule.node.astype(np.int64)
    held = np.where(schedule.shape[job] == PART, 1, schedule.parts)
    node, time, total = held_together(node, schedule.start[job], schedule.end[job], held)
    text = f"node {{1}} over-used: at {{2:.9f}} s jobs hold {{3}} of {schedule.parts} parts"
    return cases(total > schedule.parts, text, node, time / schedule.ticks, total)


def check_work(schedule: SharedSchedule) -> list[str]:
    """Find jobs whose rate, summed over time, is not their work, up to one begun tick at the end.

    Rates are computed again from the jobs that ran side by side. Times and places must be sound
    (:func:`check_starts`, :func:`check_places`, :func:`check_parts`): then a cell is beside at most
    parts - 1 others at its start, p pairs in all, and the time is
    O((m + p) log (m + p)). Where files are shared, p counts too how often that changes the rate of
    each job.
    """
    own, other, begin, finish = _neighbours(schedule)
    rate = schedule.pairs[schedule.code[own], schedule.code[other]]
    done, last, pieces = _done(schedule, own, begin, finish, rate)
    work = schedule.work.astype(np.float64)
    error = _ROUNDING * (pieces + 1) * work
    seconds, ticks = work / schedule.ticks, schedule.ticks
    text = "job {} does {:.9f} s of its work of {:.9f} s"
    violations = cases(done < work - error, text, done / ticks, seconds)
    text = "job {} does {:.9f} s of work although it has {:.9f} s"
    return violations + cases(done > work + last + error, text, done / ticks, seconds)


def check_promises(schedule: SharedSchedule) -> list[str]:
    """Find jobs that start after their promised start."""
    late = (schedule.promised >= 0) & (schedule.start > schedule.promised)
    text = "job {} starts at {:.9f} s, after its promised start at {:.9f} s"
    ticks = schedule.ticks
    return cases(late, text, schedule.start / ticks, schedule.promised / ticks)


def _neighbours(schedule: SharedSchedule) -> tuple[Ints, Ints, Ints, Ints]:
    """Return pairs of jobs that run side by side, from when to when, (p,) each, both ways."""
    cell_job = owner_of(schedule.first)
    shares = schedule.shape[cell_job] == PART
    job, node = cell_job[shares], schedule.node[shares].astype(np.int64)
    order = np.lexsort((schedule.start[job], node))
    job, node = job[order], node[order]
    times, place = np.unique(np.concatenate((schedule.start, schedule.end)), return_inverse=True)
    n = len(schedule.start)
    row = node * times.size  # places in time, node after node
    starts, ends = row + place[:n][job], row + place[n:][job]
    # those that start on a node while a cell lasts follow it, in one row
    cell = np.arange(job.size)
    count = np.maximum(np.searchsorted(starts, ends, "left") - cell - 1, 0)
    earlier = np.repeat(cell, count)
    later = np.arange(earlier.size) - np.repeat(np.cumsum(count) - count, count) + earlier + 1
    a, b = job[earlier], job[later]
    both = np.unique(np.minimum(a, b) * n + np.maximum(a, b))  # they may share many nodes
    a, b = np.divmod(both, max(n, 1))
    own, other = np.concatenate((a, b)), np.concatenate((b, a))
    begin = np.maximum(schedule.start[own], schedule.start[other])
    return own, other, begin, np.minimum(schedule.end[own], schedule.end[other])


def _done(
    schedule: SharedSchedule, own: Ints, begin: Ints, finish: Ints, rate: Floats
) -> tuple[Floats, Floats, Ints]:
    """Return what jobs have done [ticks of work], their last rates, and how many they had.

    The time of each job is cut where a neighbour comes or goes, and where the congestion of files
    changes; (n,) each.
    """
    n = len(schedule.start)
    jobs = np.arange(n)
    owner = np.concatenate((jobs, own, own, jobs))
    time = np.concatenate((schedule.start, begin, finish, schedule.end))
    if schedule.files is not None:
        congestion = congestion_of(schedule.files, schedule.start, schedule.end)
        of, at = changes_within(congestion, schedule.files, schedule.start, schedule.end)
        owner, time = np.concatenate((owner, of)), np.concatenate((time, at))
    order = np.lexsort((time, owner))
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    owner, time = owner[order], time[order]
    length = np.zeros(order.size, np.int64)  # of the piece that begins there
    length[:-1] = np.where(np.diff(owner) == 0, np.diff(time), 0)
    comes, goes = place[n : n + own.size], place[n + own.size : n + 2 * own.size]
    least = least_over(order.size, comes, goes, rate, np.inf)
    by_itself = np.where(schedule.shape == COMPACT, 1.0, schedule.alone[schedule.code])
    least = np.where(np.isinf(least), by_itself[owner], least)
    if schedule.files is not None:
        least = slowed(congestion, schedule.files, owner, time, least)
    done = np.zeros(n)
    np.add.at(done, owner, least * length)
    lasts = np.flatnonzero(length > 0)
    last = np.zeros(n)
    last[owner[lasts]] = least[lasts]  # the last of each job stays
    pieces = np.zeros(n, np.int64)
    np.add.at(pieces, owner[lasts], 1)
    return done, last, pieces


# --- What is proved of results whose jobs share nodes ---------------------------------------------

_WANTED = {"spread": SPREAD, "half-socket": PART, "part": PART}  # by allocation; else COMPACT


def prove_coschedule(result: Result) -> Iterator[tuple[str, list[str]]]:
    """Look at all that can be proved; yield what is looked at, and what is wrong with it."""
    shared = result.coschedule
    assert shared is not None
    yield "lengths", _check_lengths(result, shared)
    asked, ones = result.workload.requested_processors, np.ones_like(shared.code)
    needs = np.column_stack([asked, ones, asked])  # any number on a node
    units = check_units(result.allocation, needs, result.cluster.nodes)
    yield "units", units
    if not units:
        allocation = result.scheduler.allocation.partition(":")[0]
        schedule = shared_schedule(result, shared)
        wanted = _WANTED.get(allocation, COMPACT)
        yield from prove_shared(schedule, wanted, guaranteed=_promises_hold(result, shared))
        yield "progress", check_progress(schedule)
    if result.keeps_books:
        yield "energy", check_books(result)
    else:
        work = result.workload.requested_processors * result.run_time
        span = float(result.end.max() - result.workload.submit_time.min()) if len(work) else 0.0
        yield "energy", check_energy(result, span, math.fsum(work.tolist()), 1e-15)


def shared_schedule(result: Result, shared: Coschedule) -> SharedSchedule:
    """Return a result as arrays in ticks; of what a job has of nodes, parts that its cores fill."""
    group = result.cluster.groups[0]
    allocation = result.allocation
    assert allocation is not None
    fair_share = result.scheduler.fair_share
    sockets = group.sockets
    cores = group.resources["core"] // sockets
    units = allocation.units.astype(np.int64)
    part = max(cores // max(shared.parts, 2) * sockets, 1)
    shares = np.repeat(shared.shape == PART, np.diff(allocation.first))
    return SharedSchedule(
        ticks=shared.ticks,
        submit=result.workload.submit_time * shared.ticks,
        start=shared.start_ticks,
        end=shared.end_ticks,
        work=np.minimum(result.workload.run_time, result.workload.requested_time) * shared.ticks,
        promised=shared.promised_ticks,
        processors=result.workload.requested_processors,
        code=shared.code,
        shape=shared.shape,
        first=allocation.first,
        node=allocation.node.astype(np.int64),
        units=np.where(shares, -(-units // part), shared.parts),
        pairs=shared.speedups.filled,
        alone=shared.speedups.alone,
        nodes=result.cluster.nodes,
        sockets=sockets,
        cores=cores,
        parts=shared.parts,
        files=_files(result, shared),
        period=0 if fair_share is None else fair_share.period_s * shared.ticks,
    )


def _files(result: Result, shared: Coschedule) -> FileTraffic | None:
    """Return the file system that the jobs of a result share, None if they do not."""
    bandwidth, speedups = result.cluster.io_bytes_s, shared.speedups
    if bandwidth is None or speedups.io_share is None:
        return None
    demand = result.workload.requested_processors * speedups.io_bytes_s[shared.code]
    return FileTraffic(bandwidth, speedups.io_share[shared.code], demand)


def _promises_hold(result: Result, shared: Coschedule) -> bool:
    """Return whether a promised start can never be missed."""
    if result.outside or shared.pairs is not None or _files(result, shared) is not None:
        return False
    if bool((result.predicted_run_time < shared.compact_s).any()):
        return False
    rules = result.scheduler
    if rules.quota:  # a job that was promised a start may be passed over later
        return False
    if rules.reserve.conservative:
        return True
    in_order = rules.threshold is None and is_fcfs(rules.policy)
    return rules.reserve.one and in_order


def _check_lengths(result: Result, shared: Coschedule) -> list[str]:
    """Compare times in seconds with those in ticks, and what was cut with the workload."""
    workload, wrong = result.workload, []
    pairs = (
        ("starts at", result.start, shared.start_ticks),
        ("ends at", result.end, shared.end_ticks),
        ("runs for", result.run_time, shared.end_ticks - shared.start_ticks),
        ("waits for", result.wait, shared.start_ticks - workload.submit_time * shared.ticks),
        (
            "is promised",
            np.maximum(result.reserved_start, 0),
            np.maximum(shared.promised_ticks, 0),
        ),
    )
    for what, seconds, ticks in pairs:
        expected = ticks / shared.ticks
        differs = ~np.isclose(seconds, expected, rtol=1e-15, atol=0)
        wrong += cases(differs, f"job {{}} {what} {{}} s instead of {{}} s", seconds, expected)
    compact = np.minimum(workload.run_time, workload.requested_time)
    text = "job {} takes {} s compact instead of {} s"
    wrong += cases(shared.compact_s != compact, text, shared.compact_s, compact)
    cut = workload.killed | (workload.run_time > workload.requested_time)
    return wrong + cases(result.killed != cut, "job {} was killed and is not marked, or not and is")
