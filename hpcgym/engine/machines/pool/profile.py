"""The profile: the processors free from each time on, by running jobs and reservations.

A step function as a linked list of steps, from ``sim.profile_first``, which lasts now, to the one
that lasts for ever. So a step is added or dropped without moving others, and a job that knows its
steps changes the profile without looking for them. Steps that are dropped are used again.

Under conservative backfilling:

- ``uses`` of a step counts the reservations and predicted runs that begin or end there, but not
  those of jobs whose beginning is past. A step that none uses has as many processors free as the
  one before, and is dropped; the first is not, for time begins there.
- ``job`` is the first of a list of the queued jobs whose reservations begin at a step. That of
  the first step is never read: its jobs start now or have missed their time, and never leave it.
- A job that remembers a step, as a hole, must look whether it still begins at the same time.

Where reservations are made anew at each pass, nothing is dropped, and these fields are not used.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.state import FOREVER, NO_STEP


@jit_part
def make_first(sim, profile, free):
    """Make a profile of one step, which begins now."""
    profile[0].time, profile[0].free = sim.time, free
    profile[0].next = profile[0].before = NO_STEP
    profile[0].job = -1
    profile[0].uses = 1
    sim.profile_first = 0
    sim.profile_steps = 1
    sim.spare_step = NO_STEP


@jit
def add_step(sim, profile, step, time):
    """Let a new step begin at ``time``, while ``step`` lasts; return it."""
    new = sim.spare_step
    if new == NO_STEP:
        new = sim.profile_steps
        sim.profile_steps += 1
    else:
        sim.spare_step = profile[new].next
    after = profile[step].next
    profile[new].time, profile[new].free = time, profile[step].free
    profile[new].next, profile[new].before = after, step
    profile[new].uses, profile[new].job = 0, -1
    profile[step].next = new
    if after != NO_STEP:
        profile[after].before = new
    return new


@jit_part
def lay_aside(sim, profile, step):
    """Let a step that is in the list no longer be used again."""
    profile[step].time = -1
    profile[step].next = sim.spare_step
    sim.spare_step = step


@jit
def let_go(sim, profile, step):
    """Note that a job begins or ends here no longer; drop the step if no other does."""
    profile[step].uses -= 1
    if profile[step].uses > 0 or step == sim.profile_first:
        return
    before, after = profile[step].before, profile[step].next
    profile[before].next = after
    if after != NO_STEP:
        profile[after].before = before
    lay_aside(sim, profile, step)


@jit
def forget_past(sim, profile):
    """Drop the steps that are over, and let the present one begin now."""
    step = sim.profile_first
    after = profile[step].next
    while after != NO_STEP and profile[after].time <= sim.time:
        lay_aside(sim, profile, step)
        step, after = after, profile[after].next
    profile[step].before, profile[step].job = NO_STEP, -1
    profile[step].time = sim.time
    sim.profile_first = step


@jit
def step_at(sim, profile, step, time):
    """Return the step that begins at ``time``, made if there is none; ``step`` is not later."""
    step = np.uint32(step)
    after = profile[step].next
    while after != NO_STEP and profile[after].time <= time:
        step, after = after, profile[after].next
    return np.int64(step) if profile[step].time == time else add_step(sim, profile, step, time)


@jit_part
def take(profile, step, end, width):
    """Take ``width`` processors from one step up to another, or give back if it is negative."""
    step = np.uint32(step)
    while step != end:
        profile[step].free -= width
        step = profile[step].next


@jit
def occupy(sim, profile, begin, end, width):
    """Take ``width`` processors in [begin, end), which is not before now."""
    if end <= begin:
        return
    first = step_at(sim, profile, sim.profile_first, begin)
    take(profile, first, step_at(sim, profile, first, end), width)


@jit
def free_until(sim, profile, width):
    """Return up to when so many processors are free from now on."""
    step = np.uint32(sim.profile_first)
    while step != NO_STEP:
        if profile[step].free < width:
            return max(profile[step].time, sim.time)
        step = profile[step].next
    return np.int64(FOREVER)


@jit_part
def earliest(profile, step, width, length, latest):
    """Return what :func:`earliest_up_to` does, however late that is."""
    return earliest_up_to(profile, step, width, length, latest, np.int64(FOREVER))


@jit
def earliest_up_to(profile, step, width, length, latest, last):
    """Return the first step, from ``step`` on, with ``width`` processors free for ``length`` [s].

    It begins before ``latest`` and not after ``last``. NO_STEP: no step does. The job may hold a
    reservation of that size at ``latest``. From then on nothing is looked at, for there it has its
    own processors.
    """
    step = begin = np.uint32(step)
    until = min(profile[begin].time + length, latest)
    while step != NO_STEP and profile[step].time < until:
        blocked = profile[step].free < width
        step = profile[step].next
        if blocked:
            if profile[step].time >= latest or profile[step].time > last:
                return NO_STEP
            begin = step
            until = min(profile[begin].time + length, latest)
    return np.int64(begin)
