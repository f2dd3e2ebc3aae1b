"""Idle processors that are switched off: what they do until a job needs them.

Idle processors lie in a stack of groups, those that became idle last on top. A group is idle up to
its ``off_at``, then takes ``sim[OFF_TIME]`` seconds to switch off, and is off from then on. A job
takes processors from the top. Those that are off, or about to be, must be switched on, which takes
``sim[ON_TIME]`` seconds; the job starts when the last of them is ready, and the others wait idle.

Nothing of this is an event: it is worked out when a job takes processors, and when somebody asks.
"""

from __future__ import annotations

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.engine.state import (
    CHANGED,
    FOREVER,
    GROUPS,
    IDLE_S,
    OFF_S,
    OFF_TIME,
    ON_TIME,
    SWITCHING_OFF_S,
    SWITCHING_ON_S,
    TIME,
    TIMEOUT,
)


@jit
def rest(sim, idle, width):
    """Put processors that have just become idle on top."""
    group = sim[GROUPS]
    sim[GROUPS] = group + 1
    idle[group].since = sim[TIME]
    idle[group].off_at = FOREVER if sim[TIMEOUT] >= FOREVER else sim[TIME] + sim[TIMEOUT]
    idle[group].width = width


@jit
def wake(sim, idle, width):
    """Take processors from the top for a job; return the seconds until all are ready."""
    delay, ready_sum, left = 0, 0, width
    while left > 0:
        group = sim[GROUPS] - 1
        taken = min(left, idle[group].width)
        left -= taken
        off_at = idle[group].off_at
        ready = 0
        until = sim[TIME]
        if off_at < sim[TIME]:
            until = max(sim[TIME], off_at + sim[OFF_TIME])
            ready = until - sim[TIME] + sim[ON_TIME]
            sim[SWITCHING_ON_S] += taken * sim[ON_TIME]
        spend(sim, idle[group].since, off_at, until, taken)
        delay = max(delay, ready)
        ready_sum += taken * ready
        idle[group].width -= taken
        if idle[group].width == 0:
            sim[GROUPS] = group
    sim[IDLE_S] += width * delay - ready_sum
    if delay > 0:
        # the job ends later than it was planned to: the head's shadow time may be another now
        sim[CHANGED] = 1
    return delay


@jit_part
def spend(sim, since, off_at, until, width):
    """Count what ``width`` processors of a group do from ``since`` to ``until`` [s]."""
    off = min(off_at, FOREVER) + sim[OFF_TIME]
    sim[IDLE_S] += width * max(min(until, off_at) - since, 0)
    sim[SWITCHING_OFF_S] += width * max(min(until, off) - max(since, off_at), 0)
    sim[OFF_S] += width * max(until - max(since, off), 0)


@jit_entry
def settle(sim, idle):
    """Count what the processors that are not in use have done up to now."""
    for group in range(sim[GROUPS]):
        spend(sim, idle[group].since, idle[group].off_at, sim[TIME], idle[group].width)
        # processors that a job has just left for good may already have been counted further
        idle[group].since = max(idle[group].since, sim[TIME])


@jit
def switch_off(sim, idle):
    """Begin to switch off all idle processors; return whether there were any."""
    found = False
    for group in range(sim[GROUPS]):
        if idle[group].off_at > sim[TIME]:
            idle[group].off_at = sim[TIME]
            found = True
    return found


@jit
def some_idle(sim, idle):
    """Return whether there are idle processors that are not being switched off."""
    latest = -1
    for group in range(sim[GROUPS]):
        latest = max(latest, idle[group].off_at)
    return latest > sim[TIME]
