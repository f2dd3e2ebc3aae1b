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

Quotas and windows are those of :mod:`hpcgym.engine.passes.restricted`: a job that would exceed a
quota stops nobody. One that would still run when a window begins is tried in a plan of the windows
and of the jobs that would go on; so these are taken off the list of what runs, and put back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.answers.told import Told, usage_by_clock
from hpcgym.engine.events import enqueue, leave_queue, start
from hpcgym.engine.loop import loop_of
from hpcgym.engine.ordered import BLOCK, block_at, insert
from hpcgym.engine.passes.asking import asking_where_some_stop
from hpcgym.engine.passes.exempting import first_exempt_until
from hpcgym.engine.passes.lining_up import line_up, sort_line
from hpcgym.engine.passes.planning import Parts, inside, planning_of
from hpcgym.engine.passes.quotas import exceeds, note
from hpcgym.engine.passes.requeueing import (
    LOG,
    log_is_full,
    note_lost,
    take_off,
    wait_again,
    where_running,
)
from hpcgym.engine.passes.restricted import (
    Restricted,
    Restricting,
    coming_now,
    coming_of,
    next_restricted_pass,
    restricted_parts,
)
from hpcgym.engine.passes.suspending import note_suspended, suspending_of
from hpcgym.engine.passes.windows import are_left, meets_window
from hpcgym.engine.state import ALL_JOBS, AN_ORDER, NOBODY, RUNNING
from hpcgym.schedule.records import records, whole_numbers

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
    "exempt_until",  # [s] when a queued job may stop one that is still exempt, or FOREVER
    "short",  # processors by which fewer than none are free beside suspended jobs, at most 0
)


class Preempting(NamedTuple):
    """A machine, and who may stop whom on it; G groups."""

    machine: Restricted
    group: NDArray[np.int64]  # (n_jobs,) -1: of none
    level: NDArray[np.int64]  # (G,) 0: may stop nobody
    may: NDArray[np.bool_]  # (G, G) whether the first may stop the second
    exempt: NDArray[np.int64]  # (G,) [s] for how long nobody stops a run
    blocked: NDArray[np.bool_]  # (G,) whether no other job of the group is looked at in this pass
    noted: NDArray[np.bool_]  # (G,) whose jobs wait, or may stop one that runs
    victims: NDArray[np.void]  # (n_jobs,) VICTIMS: who might be stopped for the present job
    suspended: NDArray[np.void]  # (n_jobs,) SUSPENDED
    # LOST: runs of cancelled jobs, too, and pieces of runs up to when a job was suspended
    lost: NDArray[np.void]
    cells: NDArray[np.void]  # CELLS of lost runs, none on a pool
    scalars: NDArray[np.void]  # (1,) SCALARS


class Stopping(NamedTuple):
    """What a machine does where jobs stop others.

    Attributes
    ----------
    free : gives back what a running job has, or takes it again where its last argument is -1; for
        ``sim.free`` too.
    stop : what the machine does when a job is stopped, whose run has been noted; the last argument
        is the mode.
    lend, hide, goes_on, meets, plan_end : as
        :func:`hpcgym.engine.passes.suspending.suspending_of` takes them.
    """

    free: Any
    stop: Any
    lend: Any
    hide: Any
    goes_on: Any
    meets: Any
    plan_end: Any


@jit_part
def advance(
    sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine, stop_time
):
    """Advance to an event, or to when a pass is due for another reason.

    Then reservations are made, a window ends or a job is no longer exempt. First the log must have
    room.
    """
    if log_is_full(machine):
        return False
    return next_restricted_pass(
        sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine.machine,
        machine.scalars[0].exempt_until, stop_time,
    )  # fmt: skip


@jit_part
def charged_runs(machine):
    """Return how many stopped runs users are charged for, and the list of stopped runs.

    What suspended jobs have used is charged when they end.
    """
    own = machine.scalars[0]
    return np.int64(0) if own.mode == SUSPEND else own.lost, machine.lost


@jit_part
def coming_on(sim, ended, machine):
    """Return how many jobs may come now, and the list of them."""
    return coming_now(sim, ended, machine.machine)


PREEMPTING = Told(usage_by_clock, charged_runs, coming_on)


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


@jit_part
def barred_here(machine, job):
    """Return whether a job would exceed a quota now."""
    return exceeds(machine.machine.quotas, job)


def loop_preempting(parts: Parts, restricting: Restricting, stopping: Stopping) -> Any:
    """Return the loop of a machine on which some jobs may stop others."""
    restricted = restricted_parts(parts, restricting)
    plan_running = restricted.plan_running
    come = coming_of(restricting.welcome)
    free, stop, lend, hide, goes_on, meets, plan_end = stopping
    hide_from, hide_all, go_on, plan_suspended = suspending_of(lend, hide, goes_on, meets, plan_end)

    @jit_part
    def plan_all(sim, blocks, entries, profile, machine):
        """Make the plan of the running jobs, and of the suspended ones."""
        short = machine.scalars[0].short
        sim.free += short
        plan_running(sim, blocks, entries, profile, machine.machine)
        sim.free -= short
        plan_suspended(sim, blocks, entries, profile, machine)

    own = inside(restricted)._replace(plan_running=plan_all)
    before, fits, begin, has_room = restricted.before, own.fits_now, own.begin, own.has_room
    plan_and_start = planning_of(own, barred_here)
    asks_now = asking_where_some_stop(barred_here, has_room, hide_all)

    @jit_part
    def fits_or_around(sim, jobs, progress, blocks, entries, profile, line, machine, job):
        """Give a job room beside the running jobs, and the windows it would meet, if there is."""
        if are_left(machine.machine.windows):
            plan_running(sim, blocks, entries, profile, machine.machine)
        return fits(sim, jobs, progress, profile, line, machine, job)

    @jit_part
    def finds_room(sim, jobs, progress, blocks, entries, profile, line, machine, job, around):
        """Return whether a job finds room without those that have given up what they have.

        ``around``: it would meet a window.
        """
        if around:
            return fits_or_around(
                sim, jobs, progress, blocks, entries, profile, line, machine, job
            )  # fmt: skip
        return has_room(sim, jobs, machine, job)

    @jit_part
    def give_up(sim, jobs, progress, blocks, entries, machine, job, around):
        """Let a running job give up what it has, as it does if it is stopped.

        ``around``: it is taken off the list of what runs, for a plan without it. Suspended jobs
        meet no windows: ``check_restricted`` of the simulation refuses both together.
        """
        if machine.scalars[0].mode == SUSPEND:
            lend(sim, jobs, machine.machine.machine, job, np.int64(1))
            return
        free(sim, jobs, machine.machine.machine, job, np.int64(1))
        if around:
            position, block, i = where_running(blocks, entries, job)
            take_off(blocks, entries, position, block, i)

    @jit_part
    def have_again(sim, jobs, progress, blocks, entries, machine, job, around):
        """Let a job have again what it has given up."""
        if machine.scalars[0].mode == SUSPEND:
            lend(sim, jobs, machine.machine.machine, job, np.int64(-1))
            return
        free(sim, jobs, machine.machine.machine, job, np.int64(-1))
        if around:
            began, width = progress[job].start, jobs[job].processors
            end = began + jobs[job].run
            insert(blocks, entries, RUNNING, began + progress[job].predicted, job, end, width)

    @jit
    def make_room(sim, jobs, progress, blocks, entries, profile, line, machine, job, around):
        """Say who is stopped so that a job fits, and free what they have; False if it cannot."""
        find_victims(sim, progress, blocks, entries, machine, job)
        victims, found = machine.victims, machine.scalars[0].found
        for i in range(found):
            give_up(sim, jobs, progress, blocks, entries, machine, victims[i].job, around)
        if found == 0 or not finds_room(
            sim, jobs, progress, blocks, entries, profile, line, machine, job, around
        ):  # fmt: skip
            for i in range(found):
                have_again(sim, jobs, progress, blocks, entries, machine, victims[i].job, around)
            return False
        for level in range(machine.level[machine.group[job]] - 1, -1, -1):
            for i in range(found):
                victim = victims[i].job
                if machine.level[machine.group[victim]] != level:
                    continue
                have_again(sim, jobs, progress, blocks, entries, machine, victim, around)
                if not finds_room(
                    sim, jobs, progress, blocks, entries, profile, line, machine, job, around
                ):  # fmt: skip
                    give_up(sim, jobs, progress, blocks, entries, machine, victim, around)
                    victims[i].stops = 1
        return True

    @jit
    def stop_all(sim, jobs, keys, scores, progress, blocks, entries, narrow, machine, around):
        """Stop the jobs whose room has been freed."""
        mode = machine.scalars[0].mode
        for k in range(machine.scalars[0].found):
            if machine.victims[k].stops == 0:
                continue
            job = machine.victims[k].job
            if not around:  # else it is off the list already
                position, block, i = where_running(blocks, entries, job)
                if mode == SUSPEND:
                    note_suspended(sim, progress, entries, machine, i)
                take_off(blocks, entries, position, block, i)
            note_lost(sim, progress, machine, job)
            sim.ended_at_pass = -1  # what users have used changes
            if mode != SUSPEND:  # a suspended job goes on counting
                note(machine.machine.quotas, job, np.int64(1))
            stop(machine, machine.machine.machine, job, mode)
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
            if barred_here(machine, job):
                continue
            hide_from(sim, jobs, machine, job, np.int64(-1))
            has_place = fits_or_around(
                sim, jobs, progress, blocks, entries, profile, line, machine, job
            )  # fmt: skip
            around = meets_window(machine.machine.windows, sim, progress, job)
            if not has_place and make_room(
                sim, jobs, progress, blocks, entries, profile, line, machine, job, around
            ):  # fmt: skip
                stop_all(
                    sim, jobs, keys, scores, progress, blocks, entries, narrow, machine, around
                )  # fmt: skip
                has_place = fits_or_around(
                    sim, jobs, progress, blocks, entries, profile, line, machine, job
                )  # fmt: skip
            hide_from(sim, jobs, machine, job, np.int64(1))  # it may stop who has been now
            if not has_place:
                machine.blocked[group] = True
                continue
            begin(sim, jobs, progress, blocks, entries, machine, job)
            leave_queue(sim, jobs, progress, keys, blocks, entries, job)
            start(sim, jobs, progress, blocks, entries, idle, job)

    @jit_part
    def do_pass(
        jobs, keys, scores, users,
        sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
        ended, machine,
    ):  # fmt: skip
        """Serve those who may stop others; then start what may start."""
        if sim.asked == AN_ORDER:
            sim.asked = 0  # it goes on, with the answer
        else:
            before(sim, profile, ended, machine.machine)
            if not come(
                sim, jobs, keys, scores, progress, blocks, entries, narrow, ended, machine.machine
            ):  # fmt: skip
                return
            for job in range(sim.next - sim.arrived, sim.next):
                enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
            sim.arrived = 0
            sim.changed = 1  # no plan holds
            if sim.asks != NOBODY and asks_now(sim, jobs, progress, blocks, entries, machine):
                sim.asked = AN_ORDER
                return
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
        # jobs that start in order, and not by a plan, need one of the windows all the same
        if are_left(machine.machine.windows) and (sim.every > 0 or sim.depth == 0):
            plan_all(sim, blocks, entries, profile, machine)
        plan_and_start(
            jobs, keys, scores, sim, progress, blocks, entries, profile, line, narrow, idle, machine
        )  # fmt: skip
        sim.free += machine.scalars[0].short
        hide_all(sim, jobs, machine, np.int64(1))
        until = first_exempt_until(sim, progress, blocks, entries, machine)
        machine.scalars[0].exempt_until = until

    return loop_of(advance, do_pass)
