"""Idle processors that are switched off: what they do until a job needs them.

Idle processors lie in a stack of groups, those that became idle last on top. A group is idle up to
its ``off_at``, then takes ``sim.off_time`` seconds to switch off, and is off from then on. A job
takes processors from the top. Those that are off, or about to be, must be switched on, which takes
``sim.on_time`` seconds; the job starts when the last of them is ready, and the others wait idle.

Nothing of this is an event: it is worked out when a job takes processors, and when somebody asks.
"""

from __future__ import annotations

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.engine.state import FOREVER


@jit
def rest(sim, idle, width):
    """Put processors that have just become idle on top."""
    group = sim.groups
    sim.groups = group + 1
    idle[group].since = sim.time
    idle[group].off_at = FOREVER if sim.timeout >= FOREVER else sim.time + sim.timeout
    idle[group].width = width


@jit
def wake(sim, idle, width):
    """Take processors from the top for a job; return the seconds until all are ready."""
    delay, ready_sum, left = 0, 0, width
    while left > 0:
        group = sim.groups - 1
        taken = min(left, idle[group].width)
        left -= taken
        off_at = idle[group].off_at
        ready = 0
        until = sim.time
        if off_at < sim.time:
            until = max(sim.time, off_at + sim.off_time)
            ready = until - sim.time + sim.on_time
            sim.switching_on_s += taken * sim.on_time
        spend(sim, idle[group].since, off_at, until, taken)
        delay = max(delay, ready)
        ready_sum += taken * ready
        idle[group].width -= taken
        if idle[group].width == 0:
            sim.groups = group
    sim.idle_s += width * delay - ready_sum
    if delay > 0:
        # the job ends later than it was planned to: the head's shadow time may be another now
        sim.changed = 1
    return delay


@jit_part
def spend(sim, since, off_at, until, width):
    """Count what ``width`` processors of a group do from ``since`` to ``until`` [s]."""
    off = min(off_at, FOREVER) + sim.off_time
    sim.idle_s += width * max(min(until, off_at) - since, 0)
    sim.switching_off_s += width * max(min(until, off) - max(since, off_at), 0)
    sim.off_s += width * max(until - max(since, off), 0)


@jit_entry
def settle(sim, idle):
    """Count what the processors that are not in use have done up to now."""
    for group in range(sim.groups):
        spend(sim, idle[group].since, idle[group].off_at, sim.time, idle[group].width)
        # processors that a job has just left for good may already have been counted further
        idle[group].since = max(idle[group].since, sim.time)


@jit
def switch_off(sim, idle):
    """Begin to switch off all idle processors; return whether there were any."""
    found = False
    for group in range(sim.groups):
        if idle[group].off_at > sim.time:
            idle[group].off_at = sim.time
            found = True
    return found


@jit
def some_idle(sim, idle):
    """Return whether there are idle processors that are not being switched off."""
    latest = -1
    for group in range(sim.groups):
        latest = max(latest, idle[group].off_at)
    return latest > sim.time
