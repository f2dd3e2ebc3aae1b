"""Levels that change while jobs run, to keep caps (Glesser 2016, section 8.2).

A job does a whole number of units of work in each second, as its level is: so what it has done is
exact, however often the level changes. Limits reckon with the lowest level for all that is to come.
Where the power is above a cap the jobs that started last are slowed down first; what is left at the
end of a pass speeds up those that started first.

Without this, ``machine.changing`` is None, and nothing here is compiled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.limited.at_levels import (
    UNITS,
    drawn_mw,
    later_mw,
    lowest_level,
    seconds_for,
    wait_mw,
    work_mw,
)
from hpcgym.engine.machines.limited.caps import add_to_forecast, set_floor
from hpcgym.engine.machines.limited.state import MORE, PLENTY, ZERO
from hpcgym.engine.ordered import BLOCK, block_at, records
from hpcgym.engine.passes.running import relist
from hpcgym.engine.state import RUNNING

WORK = records(  # of a job that has its nodes
    ("run", np.int64),  # [s] at the highest level
    ("requested", np.int64),
    ("done", np.int64),  # [units] up to SINCE
    ("since", np.int64),  # [s] from when on it is at its level, or when it begins
    ("awaited", np.int64),  # [units] that are done at its predicted end
    ("told", np.int64),  # its level in the log, -1 before
)
CHANGES = records(("job", np.int64), ("time", np.int64), ("level", np.int64))
COUNTS = records(("running", np.int64), ("logged", np.int64))


class Changing(NamedTuple):
    """What a machine has beside its nodes where levels change while jobs run."""

    speed: NDArray[np.int64]  # (C, L) [units] of work in a second
    work: NDArray[np.void]  # (n_jobs,) WORK
    running: NDArray[np.int64]  # (N,) jobs that have their nodes, in the order of their starts
    log: NDArray[np.void]  # CHANGES: the level of a job from some time on
    counts: NDArray[np.void]  # (1,) COUNTS


def make_changing(speed: NDArray[np.int64], n_jobs: int, n_nodes: int) -> Changing:
    """Return what a machine without jobs has; ``speed`` is (C, L) units of work in a second."""
    return Changing(
        speed,
        np.zeros(n_jobs, WORK),
        np.empty(n_nodes, np.int64),
        np.zeros(4 * n_nodes + n_jobs, CHANGES),
        np.zeros(1, COUNTS),
    )


def with_longer_log(machine: Any) -> Any:
    """Return a machine whose log of changes has twice the room."""
    changing = machine.changing
    log = np.concatenate([changing.log, np.zeros(len(changing.log), CHANGES)])
    return machine._replace(changing=changing._replace(log=log))


@jit
def lacks_room(changing, n_nodes):
    """Return whether the changes of one pass may be more than the log has room for."""
    if changing is None:
        return False
    return len(changing.log) - changing.counts[0].logged < n_nodes


# --- Starts and ends ------------------------------------------------------------------------------


@jit
def keep_work(changing, jobs, progress, job, ready):
    """Keep what a job that starts now is at the highest level."""
    if changing is None:
        return
    work, counts = changing.work[job], changing.counts[0]
    work.run = jobs[job].run
    work.requested = jobs[job].requested
    work.done = 0
    work.since = ready
    work.awaited = progress[job].predicted * UNITS
    work.told = -1
    changing.running[counts.running] = job
    counts.running += 1


@jit
def forget(changing, job):
    """Forget a job that has ended."""
    if changing is None:
        return
    counts = changing.counts[0]
    place = ZERO
    while changing.running[place] != job:
        place += 1
    counts.running -= 1
    for i in range(place, counts.running):
        changing.running[i] = changing.running[i + 1]


# --- What is reckoned with ------------------------------------------------------------------------


@jit
def spared_mw(machine, changing, time, level):
    """Return what jobs may save, by going down to the lowest level, for one that starts at it [mW].

    Not for one at a higher level, nor for one that starts before the head.
    """
    spared = ZERO
    if changing is None:
        return spared
    if level > lowest_level(machine) or machine.scalars[0].backfills == 1:
        return spared
    for i in range(changing.counts[0].running):
        job = changing.running[i]
        spared += mw_now(machine, job, time) - later_mw(machine, changing, job, time)
    return spared


@jit_part
def mw_now(machine, job, time):
    """Return what a job that has its nodes is charged now [mW]."""
    task = machine.tasks[job]
    return task.wait_mw if task.ready > time else task.work_mw


@jit
def renew_until(machine, changing, time):
    """Reckon anew, before a pass, how long jobs may run, and what forecasts make of it.

    That is their requested time, if they are at the lowest level from now on.
    """
    if changing is None:
        return
    for i in range(changing.counts[0].running):
        job = changing.running[i]
        task, work = machine.tasks[job], changing.work[job]
        left = work.requested * UNITS - done_at(machine, changing, job, time)
        seconds = seconds_for(machine, changing, job, lowest_level(machine), left)
        task.until = max(time, task.ready) + seconds
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 0 or cap.start <= time:
            continue
        cap.work_mw = cap.outside = cap.inside = 0
        for i in range(changing.counts[0].running):
            add_to_forecast(machine, cap, changing.running[i], MORE)
        set_floor(machine, cap, time)


@jit_part
def done_at(machine, changing, job, time):
    """Return the units of work that a job has done."""
    work = changing.work[job]
    speed = changing.speed[machine.kind[job], machine.tasks[job].level]
    return work.done + max(time - work.since, 0) * speed


# --- Levels ---------------------------------------------------------------------------------------


@jit
def cap_now(machine, time):
    """Return the least of the caps that are in force [mW]."""
    least = PLENTY
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 1 and cap.start <= time < cap.end:
            least = min(least, cap.mw)
    return least


@jit
def slow_down(machine, changing, jobs, progress, blocks, entries, time):
    """Slow jobs down, the one that started last first, until the caps in force hold."""
    if changing is None:
        return
    most, lowest = cap_now(machine, time), lowest_level(machine)
    i = changing.counts[0].running - 1
    while i >= 0 and machine.scalars[0].charged > most:
        job = changing.running[i]
        others = machine.scalars[0].charged - mw_now(machine, job, time)
        level = machine.tasks[job].level
        while level > lowest and others + mw_at_level(machine, job, level, time) > most:
            level -= 1
        set_level(machine, changing, jobs, progress, blocks, entries, time, job, level)
        i -= 1


@jit
def speed_up(machine, changing, jobs, progress, blocks, entries, time):
    """Speed jobs up, the one that started first first, as far as the caps in force allow."""
    if changing is None:
        return
    most = cap_now(machine, time)
    for i in range(changing.counts[0].running):
        job = changing.running[i]
        others = machine.scalars[0].charged - mw_now(machine, job, time)
        level, now = machine.scalars[0].highest, machine.tasks[job].level
        while level > now and others + mw_at_level(machine, job, level, time) > most:
            level -= 1
        set_level(machine, changing, jobs, progress, blocks, entries, time, job, level)
    tell(machine, changing, time)


@jit_part
def mw_at_level(machine, job, level, time):
    """Return what a job that has its nodes would be charged now at a level [mW]."""
    if machine.tasks[job].ready > time:
        return wait_mw(machine, job, level)
    return work_mw(machine, job, level)


@jit_part
def tell(machine, changing, time):
    """Note in the log whose level is another than before the pass."""
    counts = changing.counts[0]
    for i in range(counts.running):
        job = changing.running[i]
        level = machine.tasks[job].level
        if changing.work[job].told != level:
            changing.work[job].told = level
            change = changing.log[counts.logged]
            change.job = job
            change.time = time
            change.level = level
            counts.logged += 1


@jit
def set_level(machine, changing, jobs, progress, blocks, entries, time, job, level):
    """Let a job go on at another level: what is left of its work is kept, its ends move."""
    task, work, scalars = machine.tasks[job], changing.work[job], machine.scalars[0]
    if level == task.level:
        return
    key = predicted_end(blocks, entries, job)
    speed = changing.speed[machine.kind[job], task.level]
    if key != work.since + seconds_for(
        machine, changing, job, task.level, work.awaited - work.done
    ):  # it has been corrected
        work.awaited = work.done + (key - work.since) * speed
    work.done = done_at(machine, changing, job, time)
    work.since = max(time, task.ready)
    scalars.charged -= mw_now(machine, job, time)
    before = task.drawn_mw
    task.level = level
    task.work_mw = work_mw(machine, job, level)
    task.wait_mw = wait_mw(machine, job, level)
    task.drawn_mw = drawn_mw(machine, job, level)
    scalars.charged += mw_now(machine, job, time)
    if task.ready <= time:
        scalars.drawn += task.drawn_mw - before
    jobs[job].run = length(machine, changing, job, work.run * UNITS)
    jobs[job].requested = length(machine, changing, job, work.requested * UNITS)
    if task.predicted * UNITS > work.done:
        progress[job].predicted = length(machine, changing, job, task.predicted * UNITS)
    predicted = length(machine, changing, job, work.awaited)
    relist(blocks, entries, key, job, task.ready + predicted, task.ready + jobs[job].run)


@jit_part
def length(machine, changing, job, units):
    """Return how long after its start a job has done so many units, at its level from now on."""
    task, work = machine.tasks[job], changing.work[job]
    more = seconds_for(machine, changing, job, task.level, units - work.done)
    return work.since + more - task.ready


@jit_part
def predicted_end(blocks, entries, job):
    """Return the predicted end of a job that has its nodes [s]."""
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[i].job == job:
                return entries[i].key
    return ZERO
