"""Passes in which some jobs may stop others: before each, those that may are served first.

Groups of jobs have levels: who may stop a group is of a higher level than it. From the highest
level down, the queued jobs of each are looked at in primary order. One that fits starts; else, if
it would fit without some that run and that it may stop, these are stopped, and it starts; else no
other job of its group is looked at so in this pass. Of those that it may stop, who is of a higher
level, or of one level has run for longer, goes on first, as long as the job fits all the same.
Some groups are exempt for a time from the start of a run on. A pass comes when that is over for a
job that a queued one may stop.

Who is stopped waits again, or is cancelled, or suspended (:mod:`hpcgym.engine.passes.suspending`).
The pass itself is that of :mod:`hpcgym.engine.passes.planning`, with reservations made anew.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import enqueue, leave_queue, start
from hpcgym.engine.loop import loop_of
from hpcgym.engine.ordered import BLOCK, block_at, records, whole_numbers
from hpcgym.engine.passes.lining_up import line_up, sort_line
from hpcgym.engine.passes.looks import go_to, next_planned_pass
from hpcgym.engine.passes.planning import never_barred, planning_of
from hpcgym.engine.passes.requeueing import (
    LOG,
    log_is_full,
    note_lost,
    take_off,
    wait_again,
)
from hpcgym.engine.passes.suspending import note_suspended, suspending_of
from hpcgym.engine.state import ALL_JOBS, FOREVER, QUEUE, RUNNING

REQUEUE, CANCEL, SUSPEND = range(3)  # modes: what becomes of jobs that are stopped

VICTIMS = records(  # as those of `line` they are sorted by score, equals by job
    ("job", np.int64),
    ("score", np.float64),  # how long it has run
    ("stops", np.int64),  # 1 if it is to be stopped
)
SCALARS = whole_numbers(
    *LOG,
    "highest",  # level of a group
    "mode",  # what becomes of jobs that are stopped
    "found",  # entries in `victims`
    "count",  # entries in `suspended`
    "exempts",  # 1 if a group is exempt for a time
    "exempt_until",  # [s] when a running job may be stopped that a queued one waits for, or FOREVER
    "short",  # processors by which fewer than none are free beside suspended jobs, at most 0
)


class Preempting(NamedTuple):
    """A machine, and who may stop whom on it; G groups."""

    machine: Any  # as its own kind takes it
    group: NDArray[np.int64]  # (n_jobs,) -1: of none
    level: NDArray[np.int64]  # (G,) 0: may stop nobody
    may: NDArray[np.bool_]  # (G, G) whether the first may stop the second
    exempt: NDArray[np.int64]  # (G,) [s] for how long nobody stops a run
    # (G,) whether no other job of the group is looked at in this pass; after it, whether jobs of it
    blocked: NDArray[np.bool_]  # wait
    victims: NDArray[np.void]  # (n_jobs,) VICTIMS: who might be stopped for the present job
    suspended: NDArray[np.void]  # (n_jobs,) SUSPENDED
    lost: NDArray[np.void]  # LOST: also pieces of runs up to when a job was suspended
    cells: NDArray[np.void]  # CELLS of lost runs, none on a pool
    scalars: NDArray[np.void]  # (1,) SCALARS


@jit_part
def advance(
    sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine, stop_time
):
    """Advance to an event, or to when reservations are made or a job is no longer exempt.

    First the log must have room.
    """
    if log_is_full(machine):
        return False
    time = machine.scalars[0].exempt_until
    if next_planned_pass(
        sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine,
        min(stop_time, time),
    ):  # fmt: skip
        if sim.time == time:
            sim.woken = 0
        return True
    if sim.asked != 0 or time > stop_time or time == FOREVER:
        return False
    return go_to(sim, time)


@jit
def first_exempt_until(sim, progress, blocks, entries, machine):
    """Return when the first running job may be stopped by a queued one, and not now; or FOREVER."""
    first = np.int64(FOREVER)
    if machine.scalars[0].exempts == 0:
        return first
    for group in range(len(machine.blocked)):
        machine.blocked[group] = False
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            group = machine.group[entries[i].job]
            if group >= 0:
                machine.blocked[group] = True
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            group = machine.group[entries[i].job]
            if group < 0 or machine.exempt[group] == 0:
                continue
            until = progress[entries[i].job].start + machine.exempt[group]
            if sim.time < until < first and is_waited_for(machine, group):
                first = until
    return first


@jit_part
def is_waited_for(machine, group):
    """Return whether a job waits, after a pass, that may stop those of a group."""
    for own in range(len(machine.blocked)):
        if machine.blocked[own] and machine.may[own, group]:
            return True
    return False


@jit
def find_victims(sim, progress, blocks, entries, machine, job):
    """Write the running jobs that a job may stop to ``victims``, who has run longest first."""
    count, own = 0, machine.group[job]
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            other = entries[i].job
            group = machine.group[other]
            ran = sim.time - progress[other].start
            if group >= 0 and machine.may[own, group] and ran >= machine.exempt[group]:
                machine.victims[count].job = other
                machine.victims[count].score = np.float64(ran)
                machine.victims[count].stops = 0
                count += 1
    sort_line(machine.victims, np.int64(0), count)
    machine.scalars[0].found = count


@jit
def where_running(blocks, entries, job):
    """Return where a job stands in the list of what runs."""
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[i].job == job:
                return k, block, i
    return -1, -1, -1


def loop_preempting(
    before: Any,
    free: Any,
    has_room: Any,
    stop: Any,
    lend: Any,
    hide: Any,
    goes_on: Any,
    meets: Any,
    plan_end: Any,
    plan_running: Any,
    reserve: Any,
    place_now: Any,
    fits_now: Any,
    free_until: Any,
    begin: Any,
) -> Any:
    """Return the loop of a machine on which some jobs may stop others.

    Parameters
    ----------
    before : what the machine does at the beginning of a pass.
    free : gives back what a running job has, or takes it again where its last argument is -1; for
        ``sim.free`` too.
    has_room : returns whether a job fits what is free now, without a place for it.
    stop : what the machine does when a job is stopped, whose run has been noted; the last argument
        is the mode.
    lend, hide, goes_on, meets, plan_end : as
        :func:`hpcgym.engine.passes.suspending.suspending_of` takes them.
    plan_running, reserve, place_now, fits_now, free_until, begin : as
        :func:`hpcgym.engine.passes.planning.planning_of` takes them.
    """
    hide_from, hide_all, go_on, plan_suspended = suspending_of(lend, hide, goes_on, meets, plan_end)

    @jit_part
    def plan_all(sim, blocks, entries, profile, machine):
        """Make the plan of the running jobs, and of the suspended ones."""
        short = machine.scalars[0].short
        sim.free += short
        plan_running(sim, blocks, entries, profile, machine.machine)
        sim.free -= short
        plan_suspended(sim, blocks, entries, profile, machine)

    @jit_part
    def reserve_place(sim, jobs, progress, profile, line, machine, job, last):
        """Give a job a place in the plan."""
        reserve(sim, jobs, progress, profile, line, machine.machine, job, last)

    @jit_part
    def place(sim, jobs, progress, profile, line, machine, job):
        """Give a job a place that begins now, if there is one."""
        return place_now(sim, jobs, progress, profile, line, machine.machine, job)

    @jit_part
    def fits(sim, jobs, progress, profile, line, machine, job):
        """Give a job room beside the running jobs, if there is."""
        return fits_now(sim, jobs, progress, profile, line, machine.machine, job)

    @jit_part
    def begin_on(sim, jobs, progress, blocks, entries, machine, job):
        """Let a job begin."""
        begin(sim, jobs, progress, blocks, entries, machine.machine, job)

    # none is barred, but reservations never hold up to the next pass, as where some are
    plan_and_start = planning_of(
        plan_all, reserve_place, place, fits, free_until, begin_on, never_barred
    )

    @jit_part
    def give_up(sim, jobs, machine, job, sign):
        """Give back what a job would give up if it was stopped, or take it again."""
        if machine.scalars[0].mode == SUSPEND:
            lend(sim, jobs, machine.machine, job, sign)
        else:
            free(sim, jobs, machine.machine, job, sign)

    @jit
    def make_room(sim, jobs, progress, blocks, entries, machine, job):
        """Say who is stopped so that a job fits, and free what they have; False if it cannot."""
        find_victims(sim, progress, blocks, entries, machine, job)
        victims, found = machine.victims, machine.scalars[0].found
        for i in range(found):
            give_up(sim, jobs, machine, victims[i].job, np.int64(1))
        if found == 0 or not has_room(sim, jobs, machine.machine, job):
            for i in range(found):
                give_up(sim, jobs, machine, victims[i].job, np.int64(-1))
            return False
        for level in range(machine.level[machine.group[job]] - 1, -1, -1):
            for i in range(found):
                victim = victims[i].job
                if machine.level[machine.group[victim]] != level:
                    continue
                give_up(sim, jobs, machine, victim, np.int64(-1))
                if not has_room(sim, jobs, machine.machine, job):
                    give_up(sim, jobs, machine, victim, np.int64(1))
                    victims[i].stops = 1
        return True

    @jit
    def stop_all(sim, jobs, keys, scores, progress, blocks, entries, narrow, machine):
        """Stop the jobs whose room has been freed."""
        mode = machine.scalars[0].mode
        for k in range(machine.scalars[0].found):
            if machine.victims[k].stops == 0:
                continue
            job = machine.victims[k].job
            position, block, i = where_running(blocks, entries, job)
            if mode == SUSPEND:
                note_suspended(sim, progress, entries, machine, i)
            take_off(blocks, entries, position, block, i)
            if mode != CANCEL:
                note_lost(sim, progress, machine, job)
            stop(machine, job, mode)
            if mode == CANCEL:
                jobs[job].run = sim.time - progress[job].start
            elif mode == REQUEUE:
                wait_again(sim, jobs, keys, scores, progress, blocks, entries, narrow, job)

    @jit
    def serve_level(
        level,
        jobs, keys, scores, sim, progress, blocks, entries, profile, line, narrow, idle, machine,
    ):  # fmt: skip
        """Start the jobs of a level that fit, or for which others are stopped."""
        for i in range(line_up(sim, jobs, scores, blocks, entries, line, ALL_JOBS)):
            job = line[i].job
            group = machine.group[job]
            if group < 0 or machine.level[group] != level or machine.blocked[group]:
                continue
            hide_from(sim, jobs, machine, job, np.int64(-1))
            has_place = fits(sim, jobs, progress, profile, line, machine, job)
            if not has_place and make_room(sim, jobs, progress, blocks, entries, machine, job):
                stop_all(sim, jobs, keys, scores, progress, blocks, entries, narrow, machine)
                has_place = fits(sim, jobs, progress, profile, line, machine, job)  # now it has
            hide_from(sim, jobs, machine, job, np.int64(1))  # it may stop who has been now
            if not has_place:
                machine.blocked[group] = True
                continue
            begin_on(sim, jobs, progress, blocks, entries, machine, job)
            leave_queue(sim, jobs, progress, keys, blocks, entries, job)
            start(sim, jobs, progress, blocks, entries, idle, job)

    @jit_part
    def do_pass(
        jobs, keys, scores, users,
        sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
        ended, machine,
    ):  # fmt: skip
        """Serve those who may stop others; then start what may start."""
        before(sim, profile, ended, machine.machine)
        for job in range(sim.next - sim.arrived, sim.next):
            enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
        sim.arrived = 0
        sim.changed = 1  # no plan holds
        for group in range(len(machine.blocked)):
            machine.blocked[group] = False
        for level in range(machine.scalars[0].highest, 0, -1):
            go_on(sim, jobs, progress, blocks, entries, machine, level)
            serve_level(
                level,
                jobs, keys, scores, sim, progress, blocks, entries, profile, line, narrow, idle,
                machine,
            )  # fmt: skip
        go_on(sim, jobs, progress, blocks, entries, machine, 0)
        hide_all(sim, jobs, machine, np.int64(-1))
        machine.scalars[0].short = min(sim.free, 0)
        sim.free -= machine.scalars[0].short
        plan_and_start(
            jobs, keys, scores, sim, progress, blocks, entries, profile, line, narrow, idle, machine
        )  # fmt: skip
        sim.free += machine.scalars[0].short
        hide_all(sim, jobs, machine, np.int64(1))
        until = first_exempt_until(sim, progress, blocks, entries, machine)
        machine.scalars[0].exempt_until = until

    return loop_of(advance, do_pass)
