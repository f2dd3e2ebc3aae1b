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
from hpcgym.engine.events import enqueue, free_processors
from hpcgym.engine.loop import loop_of, next_event_pass
from hpcgym.engine.machines.pool.profile import earliest, forget_past, occupy
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.passes.reserving import compress_of, replan_of
from hpcgym.engine.state import FOREVER, PER_EVENT, RUNNING


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
        replan(sim, jobs, scores, progress, blocks, entries, profile, line, machine)
    arrived = sim.arrived
    sim.arrived = 0
    for job in range(sim.next - arrived, sim.next):
        reserve(sim, jobs, progress, profile, line, machine, job)
        enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
    if sim.passes == PER_EVENT and arrived == 1:
        width = jobs[sim.next - 1].processors
        if width > free_processors(sim, blocks, entries):
            # what was planned for now will have to be planned again
            sim.may_advance = max(sim.may_advance, np.int64(replanned))
            return
    compress(sim, jobs, keys, scores, progress, blocks, entries, profile, line, idle, machine)


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
def reserve(sim, jobs, progress, profile, line, machine, job):
    """Give a job a reservation at the earliest time; the first is what it is promised."""
    hold_place(sim, jobs, progress, profile, line, machine, job, np.int64(FOREVER))
    if progress[job].promised < 0:
        progress[job].promised = line[job].reserved


@jit_part
def hold_place(sim, jobs, progress, profile, line, machine, job, last):
    """Give a job a reservation at the earliest time, unless that is later than ``last``."""
    width, length = jobs[job].processors, progress[job].predicted
    time = earliest(sim, profile, width, length + sim.strict, np.int64(FOREVER))
    line[job].reserved = time
    if time > last:
        return
    occupy(sim, profile, time, time + length, width)
    sim.first_reserved = min(sim.first_reserved, time)


@jit_part
def advance(sim, jobs, progress, profile, line, machine, job):
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
def profile_of_running(sim, blocks, entries, profile, machine):
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


@jit_part
def begin(sim, progress, machine, job):
    """Do nothing: what was reserved is the predicted run of a running job, in the same profile."""


replan = replan_of(profile_of_running, reserve)
compress = compress_of(advance, begin)


run = loop_of(next_event_pass, do_pass)
