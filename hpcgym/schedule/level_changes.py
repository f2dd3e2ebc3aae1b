"""Levels of jobs that change while they run: a schedule in pieces, each at one level."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.power import UNITS, units_a_second
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

Ints = NDArray[np.int64]


class LevelChanges(NamedTuple):
    """When jobs that run went on at other levels; k changes, by job and then by time.

    Attributes
    ----------
    job, time, level : (k,) int64; the job's place, [s], and its level from then on.
    """

    job: Ints
    time: Ints
    level: Ints


class Pieces(NamedTuple):
    """Parts of jobs, each at one level; p pieces, by job and then by time.

    Attributes
    ----------
    job, begin, end, level : (p,) int64; from and up to which second.
    """

    job: Ints
    begin: Ints
    end: Ints
    level: Ints


def pieces_of(result: Result) -> Pieces:
    """Return the pieces of a schedule whose levels change.

    Raises
    ------
    HpcgymError : changes that are not by job and time, or not while their jobs run.
    """
    changes, n = result.level_changes, len(result.start)
    assert changes is not None
    if result.frequency is None:
        if len(changes.job):
            raise HpcgymError("level changes: the schedule does not tell levels of jobs")
        none = np.zeros(0, np.int64)
        changes = LevelChanges(none, none, none)
    if len(changes.job) and not 0 <= changes.job.min() <= changes.job.max() < n:
        raise HpcgymError(f"level changes: the schedule has {n} jobs")
    job = np.concatenate([np.arange(n), changes.job])
    begin = np.concatenate([result.start, changes.time])
    order = np.argsort(job, kind="stable")
    job, begin = job[order], begin[order]
    first = np.append(True, job[1:] != job[:-1]) if len(job) else np.zeros(0, np.bool_)
    end = np.empty_like(begin)
    end[:-1] = begin[1:]
    last = np.flatnonzero(np.append(first[1:], True)) if len(job) else first
    end[last] = result.end[job[last]]
    wrong = (end <= begin) & ~(first & (end == begin))
    if wrong.any():
        one = int(job[wrong][0])
        raise HpcgymError(f"level changes: those of job {one} are not one after the other in it")
    if result.frequency is None:
        top = max((g.power.levels for g in result.cluster.groups if g.power is not None), default=1)
        return Pieces(job, begin, end, np.full(len(job), top - 1))
    return Pieces(job, begin, end, np.concatenate([result.frequency, changes.level])[order])


def in_pieces(result: Result) -> tuple[Result, Ints]:
    """Return a schedule with each piece as a job of its own, and whose piece each is, (p,).

    It draws the same power at each second, from the same nodes.
    """
    job, begin, end, level = pieces_of(result)
    same = ("predicted_run_time", "reserved_start", "backfilled")
    of_jobs = {name: getattr(result, name)[job] for name in same}
    divided = replace(
        result,
        workload=result.workload.take(job),
        start=begin,
        run_time=end - begin,
        frequency=level,
        level_changes=None,
        allocation=None if result.allocation is None else result.allocation.rows(job),
        **of_jobs,
    )
    return divided, job


def seconds_done(result: Result) -> Ints:
    """Return the work that jobs did, as seconds at the highest level, rounded down, (n_jobs,).

    In each second a job does as much as its level makes of it
    (:func:`hpcgym.cluster.power.units_a_second`), so that sums are exact.
    """
    job, begin, end, level = pieces_of(result)
    power = result.cluster.groups[0].power if result.cluster.groups else None
    if power is None or power.levels == 1:
        return np.asarray(result.run_time, np.int64)
    factors = power.slowdowns_of(result.workload.slowdown[job])
    speed = units_a_second(factors[np.arange(len(job)), np.minimum(level, power.levels - 1)])
    done = np.zeros(len(result.start), np.int64)
    np.add.at(done, job, speed * (end - begin))
    whole: Ints = done // UNITS
    return whole
