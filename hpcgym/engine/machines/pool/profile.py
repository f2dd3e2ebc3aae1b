"""The profile: the processors free from each time on, by running jobs and reservations.

A step function in a flat array, from segment ``sim.profile_first``, in which the present time
lies, up to ``sim.profile_end``; the last segment lasts for ever. Neighbours differ in their number
of free processors.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.state import FOREVER


@jit
def forget_past(sim, profile):
    """Drop the segments that ended before now, and use their room again when it is half of all."""
    first = sim.profile_first
    while first + 1 < sim.profile_end and profile[first + 1].time <= sim.time:
        first += 1
    sim.profile_first = first
    if first > sim.profile_end - first:
        for i in range(first, sim.profile_end):
            profile[i - first].time = profile[i].time
            profile[i - first].free = profile[i].free
        sim.profile_first = 0
        sim.profile_end -= first


@jit
def segment_at(sim, profile, time):
    """Return the segment in which ``time`` lies; it must not be before the first."""
    low = sim.profile_first
    high = sim.profile_end
    while high - low > 1:
        middle = (low + high) // 2
        if profile[middle].time <= time:
            low = middle
        else:
            high = middle
    return low


@jit_part
def insert_segment(sim, profile, i, time):
    """Cut segment ``i - 1`` at ``time``, within it."""
    for k in range(sim.profile_end, i, -1):
        profile[k].time = profile[k - 1].time
        profile[k].free = profile[k - 1].free
    sim.profile_end += 1
    profile[i].time = time
    profile[i].free = profile[i - 1].free


@jit_part
def join_segment(sim, profile, i):
    """Make segment ``i`` a part of the one before if their free processors are equal."""
    if i <= sim.profile_first or i >= sim.profile_end:
        return
    if profile[i].free != profile[i - 1].free:
        return
    sim.profile_end -= 1
    for k in range(i, sim.profile_end):
        profile[k].time = profile[k + 1].time
        profile[k].free = profile[k + 1].free


@jit
def occupy(sim, profile, start, end, width):
    """Take ``width`` processors in [start, end), or give them back if ``width`` is negative."""
    if end <= start:
        return
    first = segment_at(sim, profile, start)
    if profile[first].time < start:
        first += 1
        insert_segment(sim, profile, first, start)
    i = first
    while i < sim.profile_end and profile[i].time < end:
        profile[i].free -= width
        i += 1
    if i == sim.profile_end or profile[i].time > end:
        insert_segment(sim, profile, i, end)
        profile[i].free += width
    join_segment(sim, profile, i)
    join_segment(sim, profile, first)


@jit
def free_until(sim, profile, width):
    """Return up to when so many processors are free from now on."""
    for i in range(sim.profile_first, sim.profile_end):
        if profile[i].free < width:
            return max(profile[i].time, sim.time)
    return np.int64(FOREVER)


@jit
def earliest(sim, profile, width, length, latest):
    """Return the first time from now on with ``width`` processors free for ``length`` seconds.

    A job that holds a reservation of that size at ``latest`` keeps it unless there is an earlier
    time: what it holds itself does not stand in its way, for a start before ``latest`` ends before
    its reservation does.
    """
    anchor = sim.time
    i = sim.profile_first
    while i < sim.profile_end and profile[i].time < min(anchor + length, latest):
        if profile[i].free < width:
            anchor = profile[i + 1].time
            if anchor >= latest:
                return latest
        i += 1
    return anchor
