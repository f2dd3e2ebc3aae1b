"""A scheduling pass with a reservation for every queued job: conservative backfilling.

A job gets its reservation at submission: the earliest time at which enough processors are free over
its whole predicted run time, beside the running jobs and all other reservations. When jobs end
early the reservations are compressed: in primary order each is lifted and made anew, at the
earliest time, which is never later than it was; a job whose reservation is now starts. When a
prediction expires, reservations may no longer hold: all are made anew, in primary order.

If no reservation moved at the last compression and no job has ended early since, none can move.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import enqueue, free_processors, leave_queue, start
from hpcgym.engine.loop import loop_of, next_event_pass
from hpcgym.engine.machines.pool.profile import earliest, forget_past, occupy
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.orders.scores import score_now
from hpcgym.engine.state import (
    BACKFILLED,
    FOREVER,
    KEYED,
    PER_EVENT,
    PRIMARY_QUEUE,
    QUEUE,
    RUNNING,
    SCORED,
)


@jit_part
def do_pass(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, machine,
):  # fmt: skip
    """Reserve for the new jobs and start those whose reservation is now."""
    forget_past(sim, profile)
    release_freed(sim, profile, freed)
    replanned = sim.expired == 1
    if replanned:
        replan(sim, jobs, scores, progress, blocks, entries, profile, line)
    arrived = sim.arrived
    sim.arrived = 0
    for job in range(sim.next - arrived, sim.next):
        reserve(sim, jobs, progress, profile, line, job)
        enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
    if sim.passes == PER_EVENT and arrived == 1:
        width = jobs[sim.next - 1].processors
        if width > free_processors(sim, blocks, entries):
            # what was planned for now will have to be planned again
            sim.may_advance = max(sim.may_advance, np.int64(replanned))
            return
    compress(sim, jobs, keys, scores, progress, blocks, entries, profile, line, idle)


@jit_part
def release_freed(sim, profile, freed):
    """Give back to the profile what jobs that ended early since the last pass were to use still."""
    # where a prediction has expired the profile is made anew
    if sim.expired == 0:
        for i in range(sim.ended_early):
            occupy(sim, profile, sim.time, freed[i].until, -freed[i].width)
            sim.may_advance = 1
    sim.ended_early = 0


@jit_part
def reserve(sim, jobs, progress, profile, line, job):
    """Give a job a reservation at the earliest time; the first is what it is promised."""
    width, length = jobs[job].processors, progress[job].predicted
    time = earliest(sim, profile, width, length, np.int64(FOREVER))
    occupy(sim, profile, time, time + length, width)
    line[job].reserved = time
    if progress[job].promised < 0:
        progress[job].promised = time
    sim.first_reserved = min(sim.first_reserved, time)


@jit_part
def compress(sim, jobs, keys, scores, progress, blocks, entries, profile, line, idle):
    """Make reservations earlier where that is possible, and start the jobs that are due."""
    loose = sim.may_advance == 1
    if not loose and sim.first_reserved > sim.time:
        return
    sim.may_advance = 0
    sim.first_reserved = FOREVER
    waiting = False
    for i in range(line_up(sim, jobs, scores, blocks, entries, line)):
        job = line[i].job
        if loose and line[job].reserved != sim.time:
            advance(sim, jobs, progress, profile, line, job)
        if line[job].reserved > sim.time:
            sim.first_reserved = min(sim.first_reserved, line[job].reserved)
            waiting = True
            continue
        if waiting:
            progress[job].marks += BACKFILLED
        # what was reserved is now the predicted run of a running job: the profile is the same
        leave_queue(sim, jobs, progress, keys, blocks, entries, job)
        start(sim, jobs, progress, blocks, entries, idle, job)


@jit_part
def advance(sim, jobs, progress, profile, line, job):
    """Make the reservation of a job anew if it can be earlier, or if its time was missed."""
    width, length, before = jobs[job].processors, progress[job].predicted, line[job].reserved
    latest = before
    if before < sim.time:
        occupy(sim, profile, sim.time, before + length, -width)
        latest = FOREVER
    time = earliest(sim, profile, width, length, latest)
    if time == before:
        return
    if time < before:
        occupy(sim, profile, before, before + length, -width)
    occupy(sim, profile, time, time + length, width)
    line[job].reserved = time
    sim.may_advance = 1


@jit
def replan(sim, jobs, scores, progress, blocks, entries, profile, line):
    """Make all reservations anew, in primary order, beside the running jobs' predicted ends."""
    sim.expired = 0
    sim.may_advance = 0
    sim.first_reserved = FOREVER
    profile_of_running(sim, blocks, entries, profile)
    for i in range(line_up(sim, jobs, scores, blocks, entries, line)):
        reserve(sim, jobs, progress, profile, line, line[i].job)


@jit
def profile_of_running(sim, blocks, entries, profile):
    """Make the profile of the running jobs alone."""
    end = 0
    profile[0].time = sim.time
    profile[0].free = free_processors(sim, blocks, entries)
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[i].key > profile[end].time:
                end += 1
                profile[end].time = entries[i].key
                profile[end].free = profile[end - 1].free
            if entries[i].key > sim.time:
                profile[end].free += entries[i].width
    sim.profile_first = 0
    sim.profile_end = end + 1


@jit
def line_up(sim, jobs, scores, blocks, entries, line):
    """Write the queued jobs to ``line`` in primary order; return how many there are."""
    starved = 0
    if sim.threshold >= 0 or sim.primary >= SCORED:
        starved = line_up_starved(sim, jobs, blocks, entries, line)
    which = PRIMARY_QUEUE if sim.primary == KEYED else QUEUE
    count = starved
    for k in range(blocks[which].in_use):
        block = block_at(blocks, which, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            waiting = sim.time - jobs[job].submit
            if starved > 0 and waiting > sim.threshold:
                continue
            line[count].job = job
            if sim.primary >= SCORED:
                line[count].score = score_now(
                    sim.primary, scores[job].score, scores[job].patience, waiting
                )
            count += 1
    if sim.primary >= SCORED:
        sort_line(line, starved, count)
    return count


@jit
def line_up_starved(sim, jobs, blocks, entries, line):
    """Write the jobs that have waited longer than the threshold to ``line``, oldest first."""
    count = 0
    if sim.threshold < 0:
        return count
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            if sim.time - jobs[job].submit <= sim.threshold:
                return count
            line[count].job = job
            count += 1
    return count


@jit
def sort_line(line, start, end):
    """Sort a part of ``line`` by score, highest first, equals by job (heap sort, in place)."""
    size = end - start
    for root in range(size // 2 - 1, -1, -1):
        sift_down(line, start, root, size)
    for last in range(size - 1, 0, -1):
        job, score = line[start].job, line[start].score
        line[start].job, line[start].score = line[start + last].job, line[start + last].score
        line[start + last].job, line[start + last].score = job, score
        sift_down(line, start, np.int64(0), last)


@jit
def sift_down(line, start, root, size):
    """Let the entry at ``root`` of a heap, last in order on top, sink to its place."""
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and comes_later(line, start + child + 1, start + child):
            child += 1
        if not comes_later(line, start + child, start + root):
            return
        a, b = start + root, start + child
        job, score = line[a].job, line[a].score
        line[a].job, line[a].score = line[b].job, line[b].score
        line[b].job, line[b].score = job, score
        root = child


@jit_part
def comes_later(line, a, b):
    """Return whether entry ``a`` comes after entry ``b`` in order."""
    if line[a].score != line[b].score:
        return line[a].score < line[b].score
    return line[a].job > line[b].job


run = loop_of(next_event_pass, do_pass)
