"""Passes with reservations for the first few jobs that wait, on processors that are all alike."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import free_processors
from hpcgym.engine.machines.pool.conservative import profile_of_running
from hpcgym.engine.machines.pool.profile import (
    add_step,
    earliest,
    forget_past,
    free_until,
    make_first,
    occupy,
    step_at,
    take,
)
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.passes.joining import HALF_MINUTE, raised, rounded, rounded_end, wider
from hpcgym.engine.passes.planning import Parts, loop_planned
from hpcgym.engine.passes.preempting import Stopping, loop_preempting
from hpcgym.engine.passes.restricted import Restricting, loop_restricted
from hpcgym.engine.state import FOREVER, NO_STEP, RUNNING


@jit_part
def before(sim, profile, ended, machine):
    """Forget what of the plan is past, where it still holds."""
    if sim.changed == 0:
        forget_past(sim, profile)


@jit_part
def plan_running(sim, blocks, entries, profile, machine):
    """Make the profile of the running jobs alone."""
    if sim.every > 0:
        profile_of_joined(sim, blocks, entries, profile)
    else:
        profile_of_running(sim, blocks, entries, profile, machine)


@jit
def profile_of_joined(sim, blocks, entries, profile):
    """Make the profile of the running jobs alone, which end together as Slurm has it."""
    make_first(sim, profile, free_processors(sim, blocks, entries))
    step = sim.profile_first
    start, span = np.int64(-1), np.int64(-1)
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            end = entries[i].key
            if end <= sim.time:
                continue
            if span < 0:
                start, span = raised(end), np.int64(HALF_MINUTE)
                step = add_step(sim, profile, step, end)
            elif end > start + span:
                span = wider(sim, span, end - start)
                step = add_step(sim, profile, step, end)
            profile[step].time = end
            profile[step].free += entries[i].width


@jit_part
def hold_place(sim, jobs, progress, profile, line, machine, job, last):
    """Give a job a reservation at the earliest time, unless that is later than ``last``."""
    width, length = jobs[job].processors, progress[job].predicted
    step = earliest(
        profile, sim.profile_first, width, length + sim.strict, np.int64(FOREVER)
    )  # fmt: skip
    time = profile[step].time
    line[job].reserved = time
    if time > last:
        return
    if sim.every > 0 and time > sim.time:
        hold_rounded(sim, profile, step, time, time + length, width)
    else:
        take(profile, step, step_at(sim, profile, step, time + length), width)


@jit
def hold_rounded(sim, profile, step, begin, end, width):
    """Reserve from a step on, which begins at ``begin``, up to ``end``, as Slurm rounds them."""
    until = rounded_end(sim, begin, end)
    begin = max(rounded(sim, begin), sim.time)
    while profile[step].time > begin:
        step = profile[step].before
    step = step_at(sim, profile, step, begin)
    take(profile, step, step_at(sim, profile, step, until), width)


@jit_part
def place_now(sim, jobs, progress, profile, line, machine, job):
    """Let a job have its processors from now on, if they are free throughout its run."""
    width, end = jobs[job].processors, sim.time + progress[job].predicted
    fits = width <= sim.free and end + sim.strict <= free_until(sim, profile, width)
    if fits:
        occupy(sim, profile, sim.time, end, width)
    return fits


@jit_part
def fits_now(sim, jobs, progress, profile, line, machine, job):
    """Return whether a job fits beside those that run."""
    return jobs[job].processors <= sim.free


@jit_part
def welcome(machine, job):
    """Do nothing: who waits makes no difference to processors."""


@jit_part
def close(sim, profile, machine, processors, begin, end):
    """Take processors from the plan for the time of a window."""
    occupy(sim, profile, begin, end, processors)


@jit_part
def begin(sim, jobs, progress, blocks, entries, machine, job):
    """Do nothing: what was reserved is the predicted run of a running job, in the same profile."""


@jit_part
def free(sim, jobs, machine, job, sign):
    """Give back the processors of a job, or take them again."""
    sim.free += sign * jobs[job].processors


@jit_part
def has_room(sim, jobs, machine, job):
    """Return whether a job fits beside those that run."""
    return jobs[job].processors <= sim.free


@jit_part
def stop(machine, pool, job, mode):
    """Do nothing: processors that are alike are on no record."""


@jit_part
def goes_on(sim, jobs, machine, job):
    """Return whether a suspended job can go on: any processors are as good as its own."""
    return jobs[job].processors <= sim.free


@jit_part
def meets(machine, one, other):
    """Return that any two jobs can be in each other's way."""
    return True


@jit_part
def plan_end(sim, profile, machine, job, width, end):
    """Let the plan give back the processors of a suspended job when it is expected to end."""
    take(profile, step_at(sim, profile, sim.profile_first, end), NO_STEP, -width)


_PARTS = Parts(
    before, plan_running, hold_place, place_now, fits_now, free_until, begin, has_room
)  # fmt: skip
_RESTRICTING = Restricting(welcome, close, fits_around=place_now)
_STOPPING = Stopping(free, stop, free, free, goes_on, meets, plan_end)

run = loop_planned(_PARTS)
run_restricted = loop_restricted(_PARTS, _RESTRICTING)
run_preempting = loop_preempting(_PARTS, _RESTRICTING, _STOPPING)
