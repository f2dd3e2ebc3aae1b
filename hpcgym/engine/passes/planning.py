"""A pass with reservations for the first few jobs that wait, made anew each time.

In primary order, a job starts if it fits for as long as it is predicted to run, beside those that
run and all that is reserved before it; else it gets a reservation, until there are ``sim.depth``.
Then the others are tried in secondary order: each starts if it fits so.

Between two passes at which a job ends or a prediction expires, nothing becomes free: the first time
at which the plan frees processors is the predicted end of a running job. So at a submission alone
the plan still holds, and a job that comes after all who have reservations is judged alone.

Where ``sim.every`` says so, as in Slurm, jobs start at an event in primary order until one does not
fit now. A pass as above is made only at looks, see :mod:`hpcgym.engine.passes.looks`.
It looks at the first ``sim.tested`` jobs, but of each user only at ``sim.tested_of_user``, if that
is not 0: further jobs of the user do not count. It reserves nothing that begins later than
``sim.window`` seconds from now.

A machine gives what it does differently, which is compiled in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import enqueue, leave_queue, start
from hpcgym.engine.loop import loop_of
from hpcgym.engine.ordered import BLOCK, NOTHING, block_at, length
from hpcgym.engine.orders.scores import score_now
from hpcgym.engine.passes.heads import promise
from hpcgym.engine.passes.lining_up import line_up, sort_line
from hpcgym.engine.passes.looks import is_looked_at, next_planned_pass, note_next_look
from hpcgym.engine.state import (
    ALL_JOBS,
    BACKFILLED,
    FOREVER,
    KEYED,
    NO_THRESHOLD,
    PRIMARY_QUEUE,
    QUEUE,
    SCORED,
    SUBMISSION,
)


class Parts(NamedTuple):
    """What a machine does its own way in such passes; each is compiled in.

    Attributes
    ----------
    before : what it does at the beginning of a pass.
    plan_running : makes the plan of the running jobs alone, by their predicted ends.
    reserve : gives a job a place in the plan at the earliest time, ``line[job].reserved``; none
        if that is later than its last argument.
    place_now : gives it one that begins now, if there is one; returns whether there is.
    fits_now : gives it room beside the running jobs alone, if there is any; returns the same.
    free_until : returns up to when so many processors are free from now on, or a later time.
    begin : turns the place of a job that starts now into its predicted run.
    has_room : returns whether a job finds room beside those that run, and changes nothing.
    """

    before: Any
    plan_running: Any
    reserve: Any
    place_now: Any
    fits_now: Any
    free_until: Any
    begin: Any
    has_room: Any


def inside(parts: Parts) -> Parts:
    """Return the parts of a machine for one that has it as its field ``machine``.

    All but ``before`` and ``plan_running``, which mostly do something else there.
    """
    reserve, place_now, fits_now, begin = (
        parts.reserve, parts.place_now, parts.fits_now, parts.begin,
    )  # fmt: skip
    has_room = parts.has_room

    @jit_part
    def reserve_inside(sim, jobs, progress, profile, line, machine, job, last):
        """Give a job a place in the plan."""
        reserve(sim, jobs, progress, profile, line, machine.machine, job, last)

    @jit_part
    def place_inside(sim, jobs, progress, profile, line, machine, job):
        """Give a job a place that begins now, if there is one."""
        return place_now(sim, jobs, progress, profile, line, machine.machine, job)

    @jit_part
    def fits_inside(sim, jobs, progress, profile, line, machine, job):
        """Give a job room beside the running jobs, if there is."""
        return fits_now(sim, jobs, progress, profile, line, machine.machine, job)

    @jit_part
    def begin_inside(sim, jobs, progress, blocks, entries, machine, job):
        """Let a job begin."""
        begin(sim, jobs, progress, blocks, entries, machine.machine, job)

    @jit_part
    def has_room_inside(sim, jobs, machine, job):
        """Return whether a job finds room beside those that run, whatever is closed."""
        return has_room(sim, jobs, machine.machine, job)

    return parts._replace(
        reserve=reserve_inside,
        place_now=place_inside,
        fits_now=fits_inside,
        begin=begin_inside,
        has_room=has_room_inside,
    )


def loop_planned(parts: Parts) -> Any:
    """Return the loop of a machine with such passes, which nothing else restricts."""
    before, plan_and_start = parts.before, planning_of(parts)

    @jit_part
    def do_pass(
        jobs, keys, scores, users,
        sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
        ended, machine,
    ):  # fmt: skip
        """Start what may start."""
        before(sim, profile, ended, machine)
        plan_and_start(
            jobs, keys, scores, sim, progress, blocks, entries, profile, line, narrow, idle, machine
        )  # fmt: skip

    return loop_of(next_planned_pass, do_pass)


def planning_of(parts: Parts, barred: Any = None) -> Any:
    """Return the pass of a machine.

    Parameters
    ----------
    parts : of the machine.
    barred : returns whether a job may not start now, whatever is free, and is passed over; None: no
        job is.
    """
    plan_running, reserve, place_now = parts.plan_running, parts.reserve, parts.place_now
    fits_now, free_until, begin = parts.fits_now, parts.free_until, parts.begin
    bars = barred is not None
    if not bars:
        barred = never_barred

    @jit
    def start_queued(sim, jobs, keys, progress, blocks, entries, idle, machine, job):
        """Start a queued job that has a place now."""
        begin(sim, jobs, progress, blocks, entries, machine, job)
        leave_queue(sim, jobs, progress, keys, blocks, entries, job)
        start(sim, jobs, progress, blocks, entries, idle, job)

    @jit
    def serve(sim, jobs, keys, progress, blocks, entries, profile, line, idle, machine, job):
        """Start a queued job now, or let it have a reservation if there may be one more."""
        if barred(machine, job):
            return
        last, reserves = sim.time + sim.window, sim.reserved < sim.depth
        if reserves:
            reserve(sim, jobs, progress, profile, line, machine, job, last)
            starts = line[job].reserved == sim.time
        else:
            starts = place_now(sim, jobs, progress, profile, line, machine, job)
        if not starts:
            if sim.head < 0:
                sim.head, sim.shadow = job, -1
            if reserves and line[job].reserved <= last:
                keep_reservation(sim, progress, line, job)
            elif reserves:
                sim.beyond = min(sim.beyond, line[job].reserved)
            return
        if sim.head >= 0:
            progress[job].marks += BACKFILLED
        start_queued(sim, jobs, keys, progress, blocks, entries, idle, machine, job)

    @jit
    def may_start(sim, blocks, entries, profile, line):
        """Return whether a queued job without a reservation may fit now.

        If none does, whatever would be reserved for others makes no difference before the next
        pass, which plans anew.
        """
        for k in range(blocks[QUEUE].in_use):
            block = block_at(blocks, QUEUE, k)
            if blocks[block].least_width > sim.free:
                continue
            window = free_until(sim, profile, blocks[block].least_width) - sim.time
            if blocks[block].least_span > window:
                continue
            for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
                job, width, span = entries[i].job, entries[i].width, entries[i].span
                if width > sim.free or span > window or has_reservation(sim, line, job):
                    continue
                if span <= free_until(sim, profile, width) - sim.time:
                    return True
        return False

    @jit
    def line_up_fitting(sim, jobs, scores, blocks, entries, profile, line):
        """Write the jobs without a reservation that may fit now to ``line``, in secondary order.

        Return how many there are. The bounds of the blocks that are looked at are mended.
        """
        count = 0
        for k in range(blocks[QUEUE].in_use):
            block = block_at(blocks, QUEUE, k)
            if blocks[block].least_width > sim.free:
                continue
            window = free_until(sim, profile, blocks[block].least_width) - sim.time
            if blocks[block].least_span > window:
                continue
            least_width, least_span = NOTHING, NOTHING
            for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
                job, width, span = entries[i].job, entries[i].width, entries[i].span
                least_width, least_span = min(least_width, width), min(least_span, span)
                if width > sim.free or span > window:
                    continue
                if has_reservation(sim, line, job):
                    continue
                line[count].job = job
                if sim.secondary >= SCORED:
                    second, waiting = scores[len(jobs) + job], sim.time - jobs[job].submit
                    line[count].score = score_now(
                        sim.secondary, second.score, second.patience, waiting
                    )
                count += 1
            blocks[block].least_width, blocks[block].least_span = least_width, least_span
        if sim.secondary >= SCORED:
            sort_line(line, np.int64(0), count)
        return count

    @jit_part
    def is_passed_over(sim, line, machine, job):
        """Return whether a pass has looked at enough jobs of a user; if not, count this one too.

        One that is barred now does not count.
        """
        user = line[job].user
        if line[user].tested >= sim.tested_of_user:
            return True
        if not barred(machine, job):
            line[user].tested += 1
        return False

    @jit
    def plan(sim, jobs, keys, scores, progress, blocks, entries, profile, line, idle, machine):
        """Make all reservations anew, and start what can start."""
        sim.changed = sim.expired = sim.reserved = 0
        sim.head = sim.last_reserved = -1
        sim.beyond = FOREVER
        # under restrictions the first that waits may be another than the first that may start
        if not bars and sim.by_plan == 0 and none_fits(sim, progress, blocks, entries):
            sim.changed = 1  # nothing has been planned
            return
        plan_running(sim, blocks, entries, profile, machine)
        most = np.int64(ALL_JOBS)
        if sim.tested == ALL_JOBS and not bars:  # each job that starts takes a processor
            most = sim.depth + sim.free
        elif sim.tested_of_user == 0:
            most = sim.tested
        queued = line_up(sim, jobs, scores, blocks, entries, line, most)
        if sim.tested_of_user > 0:
            forget_tested(line, queued)
        i, count, looked = 0, min(queued, min(most, sim.tested)), 1
        while i < count and (sim.tested < ALL_JOBS or sim.reserved < sim.depth):
            job = line[i].job
            i += 1
            if sim.tested_of_user > 0 and is_passed_over(sim, line, machine, job):
                count = min(count + 1, queued)
                continue
            serve(sim, jobs, keys, progress, blocks, entries, profile, line, idle, machine, job)
            if sim.reserved < looked:
                continue
            if sim.by_plan == 0 and not may_start(sim, blocks, entries, profile, line):
                sim.changed = 1  # the plan is not whole
                return
            looked *= 2
        if sim.tested == ALL_JOBS and sim.reserved == sim.depth:
            for i in range(line_up_fitting(sim, jobs, scores, blocks, entries, profile, line)):
                job = line[i].job
                serve(sim, jobs, keys, progress, blocks, entries, profile, line, idle, machine, job)

    @jit
    def start_in_order(
        sim, jobs, keys, scores, progress, blocks, entries, profile, line, idle, machine
    ):  # fmt: skip
        """Start jobs in primary order until one does not fit beside the running jobs.

        Under Slurm only the first are looked at, but now and then all.
        """
        sim.changed = 1  # what was planned does not hold
        sim.head = -1
        sim.all_due = FOREVER
        looked = ALL_JOBS
        if sim.every > 0 and sim.time % sim.all_every != 0:
            looked = sim.at_events
        most = ALL_JOBS if bars else sim.free + 1
        for i in range(line_up(sim, jobs, scores, blocks, entries, line, most)):
            if i == looked:
                sim.all_due = (sim.time // sim.all_every + 1) * sim.all_every
                return
            job = line[i].job
            if barred(machine, job):
                continue
            if not fits_now(sim, jobs, progress, profile, line, machine, job):
                sim.head, sim.shadow = job, -1
                return
            start_queued(sim, jobs, keys, progress, blocks, entries, idle, machine, job)

    @jit_part
    def do_pass(
        jobs, keys, scores, sim, progress, blocks, entries, profile, line, narrow, idle, machine
    ):  # fmt: skip
        """Put the new jobs into the queue; start what may start."""
        arrived = sim.arrived
        sim.arrived = 0
        for job in range(sim.next - arrived, sim.next):
            enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
        job = sim.next - 1
        if sim.every > 0 or sim.depth == 0:
            start_in_order(
                sim, jobs, keys, scores, progress, blocks, entries, profile, line, idle, machine
            )  # fmt: skip
        if sim.depth == 0:  # strict order, only under restrictions: nothing is planned
            return
        queued = length(blocks, QUEUE)
        if sim.every > 0 and not is_looked_at(sim, queued > 0):
            return
        # under quotas a job with a reservation may be passed over now, since another has started
        if arrived == 1 and not bars and plan_holds(sim, keys, job):
            serve(sim, jobs, keys, progress, blocks, entries, profile, line, idle, machine, job)
        elif queued > 0:
            plan(
                sim, jobs, keys, scores, progress, blocks, entries, profile, line, idle, machine
            )  # fmt: skip
        if sim.every > 0:
            note_next_look(sim, queued, length(blocks, QUEUE))

    return do_pass


@jit_part
def never_barred(machine, job):
    """Return that a job may start, as far as it is not for what is free."""
    return False


@jit_part
def none_fits(sim, progress, blocks, entries):
    """Return whether all queued jobs need more than what is free, and no promise is to be made."""
    for k in range(blocks[QUEUE].in_use):
        if blocks[block_at(blocks, QUEUE, k)].least_width <= sim.free:
            return False
    if sim.primary >= SCORED:
        return True
    if sim.threshold != NO_THRESHOLD or (sim.primary == SUBMISSION and sim.secondary != SUBMISSION):
        return False  # who is first would have to be looked for
    which = PRIMARY_QUEUE if sim.primary == KEYED else QUEUE
    return progress[entries[block_at(blocks, which, 0) * BLOCK].job].promised >= 0


@jit_part
def forget_tested(line, count):
    """Let a pass that begins have looked at no job of any user, of so many jobs in ``line``."""
    for i in range(count):
        line[line[line[i].job].user].tested = 0


@jit_part
def has_reservation(sim, line, job):
    """Return whether a queued job has been given a reservation in this pass."""
    return line[job].reserved_at == sim.time < line[job].reserved


@jit_part
def keep_reservation(sim, progress, line, job):
    """Note that a job has a reservation; if it is the first that waits, it is promised to it."""
    line[job].reserved_at = sim.time
    sim.reserved += 1
    sim.last_reserved = job
    if sim.head != job:
        return
    sim.shadow = line[job].reserved
    promise(sim, progress, job, line[job].reserved)


@jit_part
def plan_holds(sim, keys, job):
    """Return whether what is planned holds, with a new job that comes after all reservations."""
    if sim.changed == 1 or sim.every > 0 or sim.primary >= SCORED or sim.threshold != NO_THRESHOLD:
        return False
    last = sim.last_reserved
    return last < 0 or sim.primary != KEYED or keys[job] >= keys[last]
