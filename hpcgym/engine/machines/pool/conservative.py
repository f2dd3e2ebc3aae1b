"""A scheduling pass with a reservation for every queued job: conservative backfilling.

A job gets its reservation at submission: the earliest time at which enough processors are free over
its whole predicted run time, beside the running jobs and all other reservations. When jobs end
early the reservations are compressed: in primary order each is lifted and made anew, at the
earliest time, which is never later than it was; a job whose reservation is now starts. When a
prediction expires, reservations may no longer hold: all are made anew, in primary order.

If no reservation moved at the last compression and no job has ended early since, none can move.
Otherwise only the jobs that :mod:`hpcgym.engine.machines.pool.earlier` has noted can. Each job
knows the steps of the profile at which its reservation begins and ends, and most move by few steps.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import enqueue, free_processors
from hpcgym.engine.loop import loop_of, next_event_pass
from hpcgym.engine.machines.pool.earlier import (
    FINDS_A_HOLE,
    SLIDES,
    list_job,
    may_be_late,
    next_noted,
    note,
    note_due,
    note_given_back,
    step_to_begin_at,
    stretch_before,
    strike_job,
)
from hpcgym.engine.machines.pool.profile import (
    add_step,
    earliest,
    earliest_up_to,
    forget_past,
    let_go,
    make_first,
    step_at,
    take,
)
from hpcgym.engine.ordered import BLOCK, block_at, empty
from hpcgym.engine.orders.narrow import CLASSES
from hpcgym.engine.passes.heads import oldest
from hpcgym.engine.passes.reserving import compress_of, replan_of, starting_of
from hpcgym.engine.state import (
    BY_LENGTH,
    FOREVER,
    NO_STEP,
    PER_EVENT,
    QUEUE,
    RUNNING,
    SUBMISSION,
)


@jit_part
def do_pass(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, machine,
):  # fmt: skip
    """Reserve for the new jobs and start those whose reservation is now."""
    note_due(sim, profile, line)
    forget_past(sim, profile)
    release_freed(sim, jobs, blocks, entries, profile, line, narrow, freed)
    replanned = sim.expired == 1
    if replanned:
        list_queue(jobs, progress, blocks, entries, narrow)
        replan(sim, jobs, scores, progress, blocks, entries, profile, line, machine)
    arrived = sim.arrived
    sim.arrived = 0
    for job in range(sim.next - arrived, sim.next):
        reserve_new(sim, jobs, progress, blocks, entries, profile, line, job)
        list_job(jobs, progress, blocks, entries, narrow, job)
        enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
    if sim.passes == PER_EVENT and arrived == 1:
        width = jobs[sim.next - 1].processors
        if width > free_processors(sim, blocks, entries):
            # what was planned for now will have to be planned again
            sim.may_advance = max(sim.may_advance, np.int64(replanned))
            return
    if sim.primary == SUBMISSION:
        compress_noted(
            sim, jobs, keys, scores, progress, blocks, entries, profile, line, narrow, idle, machine
        )  # fmt: skip
    else:
        compress(
            sim, jobs, keys, scores, progress, blocks, entries, profile, line, narrow, idle, machine
        )  # fmt: skip


@jit
def list_queue(jobs, progress, blocks, entries, narrow):
    """List all queued jobs by length."""
    empty(blocks, BY_LENGTH)
    narrow[BY_LENGTH * CLASSES : (BY_LENGTH + 1) * CLASSES] = FOREVER
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            list_job(jobs, progress, blocks, entries, narrow, entries[i].job)


@jit_part
def release_freed(sim, jobs, blocks, entries, profile, line, narrow, freed):
    """Give back to the profile what jobs that ended early since the last pass were to use still."""
    # where a prediction has expired the profile is made anew
    if sim.expired == 0:
        for i in range(sim.ended_early):
            end = step_at(sim, profile, sim.profile_first, freed[i].until)
            give_back(
                sim, jobs, blocks, entries, profile, line, narrow, sim.profile_first, end,
                freed[i].width,
            )  # fmt: skip
            let_go(sim, profile, end)
            sim.may_advance = 1
    sim.ended_early = 0


@jit_part
def give_back(sim, jobs, blocks, entries, profile, line, narrow, begin, end, width):
    """Give back processors from one step to another, and note who may begin earlier now."""
    take(profile, begin, end, -width)
    note_given_back(sim, jobs, blocks, entries, profile, line, narrow, begin, end, width)


@jit_part
def reserve_new(sim, jobs, progress, blocks, entries, profile, line, job):
    """Give a job that has come a reservation at the earliest time."""
    width, length = jobs[job].processors, progress[job].predicted
    step = step_to_begin_at(sim, blocks, entries, profile, line, width, length)
    reserve_noted(sim, jobs, progress, profile, line, job, step)


@jit_part
def reserve(sim, jobs, progress, profile, line, machine, job):
    """Give a job a reservation at the earliest time."""
    reserve_noted(sim, jobs, progress, profile, line, job, sim.profile_first)


@jit_part
def reserve_noted(sim, jobs, progress, profile, line, job, step):
    """Give a job a reservation, not before ``step``, and note it if that is now."""
    reserve_from(sim, jobs, progress, profile, line, job, step)
    if line[job].reserved == sim.time:
        note(line, job)


@jit
def reserve_from(sim, jobs, progress, profile, line, job, step):
    """Give a job a reservation, not before ``step``; the first is what it is promised."""
    width, length = jobs[job].processors, progress[job].predicted
    step = earliest(profile, step, width, length, np.int64(FOREVER))
    hold_steps(sim, profile, line, job, width, step, profile[step].time + length)
    line[job].reserved = profile[step].time
    sim.first_reserved = min(sim.first_reserved, line[job].reserved)
    if progress[job].promised < 0:
        progress[job].promised = line[job].reserved


@jit
def hold_steps(sim, profile, line, job, width, step, until):
    """Let a job have its processors from a step on, until a later time."""
    end = step_at(sim, profile, step, until)
    take(profile, step, end, width)
    join(profile, line, job, step, end)


@jit_part
def join(profile, line, job, begin, end):
    """Note where the reservation of a job begins and ends."""
    line[job].begins, line[job].ends = begin, end
    profile[begin].uses += 1
    profile[end].uses += 1
    other = profile[begin].job
    line[job].next, line[job].before = other, -1
    if other >= 0:
        line[other].before = job
    profile[begin].job = job
    line[job].loose = 0


@jit_part
def leave(profile, line, job):
    """Take a job off those whose reservations begin at its step."""
    other, before = line[job].next, line[job].before
    if other >= 0:
        line[other].before = before
    if before >= 0:
        line[before].next = other
    else:
        profile[line[job].begins].job = other


@jit_part
def advance(sim, jobs, progress, blocks, entries, profile, line, narrow, machine, job):
    """Make the reservation of a job anew if it can be earlier, or if its time was missed."""
    if line[job].reserved < sim.time:
        lift_missed(sim, jobs, progress, blocks, entries, profile, line, narrow, job)
        reserve_from(sim, jobs, progress, profile, line, job, sim.profile_first)
        may_be_late(jobs, progress, blocks, entries, job)
        sim.may_advance = 1
    elif line[job].loose != 0:
        step = earlier_step(sim, jobs, progress, profile, line, job)
        line[job].loose = 0
        if step != line[job].begins:
            move(sim, jobs, progress, blocks, entries, profile, line, narrow, job, step)
            sim.may_advance = 1


@jit
def lift_missed(sim, jobs, progress, blocks, entries, profile, line, narrow, job):
    """Lift what is left of a reservation that has begun without its job."""
    end = line[job].ends  # where it begins has been forgotten
    if line[job].reserved + progress[job].predicted > sim.time:
        give_back(
            sim, jobs, blocks, entries, profile, line, narrow, sim.profile_first, end,
            jobs[job].processors,
        )  # fmt: skip
        let_go(sim, profile, end)


@jit
def earlier_step(sim, jobs, progress, profile, line, job):
    """Return the first step at which a job can begin that may be earlier; else where it does."""
    width, step = jobs[job].processors, line[job].begins
    if line[job].loose & SLIDES:
        step = stretch_before(sim, profile, step, width)
    if line[job].loose & FINDS_A_HOLE:
        hole = line[job].hole
        if profile[hole].time != line[job].hole_time:  # it has been dropped, or has begun
            hole = sim.profile_first
        if profile[hole].time < profile[step].time:
            length, latest = progress[job].predicted, line[job].reserved
            found = earliest_up_to(profile, hole, width, length, latest, line[job].last_begin)
            if found != NO_STEP and profile[found].time < profile[step].time:
                step = found
    return step


@jit
def move(sim, jobs, progress, blocks, entries, profile, line, narrow, job, step):
    """Let the reservation of a job begin at an earlier step."""
    width, begin, end = jobs[job].processors, line[job].begins, line[job].ends
    time = profile[step].time
    until = time + progress[job].predicted
    new_end = end
    while profile[profile[new_end].before].time >= until:
        new_end = profile[new_end].before
    if profile[new_end].time > until:
        new_end = add_step(sim, profile, profile[new_end].before, until)
    leave(profile, line, job)
    join(profile, line, job, step, new_end)
    line[job].reserved = time
    # what it has in both places it keeps
    overlaps = until > profile[begin].time
    take(profile, step, begin if overlaps else new_end, width)
    freed = new_end if overlaps else begin
    give_back(sim, jobs, blocks, entries, profile, line, narrow, freed, end, width)
    line[job].loose = 0
    let_go(sim, profile, begin)
    let_go(sim, profile, end)


@jit
def profile_of_running(sim, blocks, entries, profile, machine):
    """Make the profile of the running jobs alone."""
    make_first(sim, profile, free_processors(sim, blocks, entries))
    step = sim.profile_first
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[i].key <= sim.time:
                continue
            if entries[i].key > profile[step].time:
                step = add_step(sim, profile, step, entries[i].key)
            profile[step].free += entries[i].width
            profile[step].uses += 1


@jit_part
def begin(sim, jobs, progress, blocks, entries, machine, job):
    """Note that a job waits no longer; the profile has its predicted run."""
    strike_job(jobs, progress, blocks, entries, job)


replan = replan_of(profile_of_running, reserve)
compress = compress_of(advance, begin)
start_reserved = starting_of(begin)


@jit
def compress_noted(
    sim, jobs, keys, scores, progress, blocks, entries, profile, line, narrow, idle, machine
):  # fmt: skip
    """Do as ``compress`` does, in order of submission, with no look at jobs that cannot move.

    Jobs that are noted meanwhile are looked at now if they come later in order, else next time.
    """
    if sim.next == sim.started:
        return
    job = next_noted(line, oldest(sim, progress), sim.next)
    while job >= 0:
        if line[job].reserved != sim.time:
            advance(sim, jobs, progress, blocks, entries, profile, line, narrow, machine, job)
        if line[job].reserved == sim.time:
            backfilled = oldest(sim, progress) != job
            start_reserved(
                sim, jobs, keys, progress, blocks, entries, idle, machine, job, backfilled
            )  # fmt: skip
        job = next_noted(line, job + 1, sim.next)


run = loop_of(next_event_pass, do_pass)
