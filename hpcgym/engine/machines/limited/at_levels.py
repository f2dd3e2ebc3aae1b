"""How long a job takes at a level, and its power there; and what limits reckon with.

Where levels change while jobs run (:mod:`hpcgym.engine.machines.limited.changing`), what is to come
is reckoned at the lowest level: a job can always be slowed down to it.
"""

from __future__ import annotations

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.limited.nodes import width_of

MILLION = 1_000_000
UNITS = 10**9  # of work in a second at the highest level


@jit
def slowed(machine, job, level, time):
    """Return how long a job takes at a level, of its time at the highest, rounded up [s]."""
    return _slowed(machine, machine.changing, job, level, time)


@jit
def _slowed(machine, changing, job, level, time):
    if changing is None:
        millionths = machine.slowdown[machine.kind[job], level]
        # in two parts, so that no product overflows
        return time // MILLION * millionths - (-(time % MILLION) * millionths) // MILLION
    return seconds_for(machine, changing, job, level, time * UNITS)


@jit_part
def seconds_for(machine, changing, job, level, work):
    """Return the whole seconds in which so many units of work are done at a level."""
    return -(-work // changing.speed[machine.kind[job], level])


@jit
def work_mw(machine, job, level):
    """Return what a job is charged while it runs at a level [mW]."""
    power = width_of(machine, job) * machine.busy_mw[level]
    return max(power, machine.measured_mw[job, level]) if len(machine.measured_mw) else power


@jit
def wait_mw(machine, job, level):
    """Return what a job is charged while it waits for its nodes [mW]."""
    return max(width_of(machine, job) * machine.scalars[0].rise_mw, work_mw(machine, job, level))


@jit
def drawn_mw(machine, job, level):
    """Return what a job draws while it runs at a level [mW]."""
    if len(machine.measured_mw) and machine.measured_mw[job, level] >= 0:
        return machine.measured_mw[job, level]
    return width_of(machine, job) * machine.drawn_mw[level]


@jit
def lowest_level(machine):
    """Return the lowest level at which a job may start: where that is above the ceiling, this."""
    return min(machine.scalars[0].lowest, machine.scalars[0].ceiling)


@jit
def reckoned(machine, changing, level):
    """Return the level that is reckoned with in the future of a job that is at this one."""
    if changing is None:
        return level
    return lowest_level(machine)


@jit
def later_mw(machine, changing, job, time):
    """Return what a job that has its nodes is reckoned to be charged at a later time [mW]."""
    task = machine.tasks[job]
    if changing is None:
        return task.wait_mw if task.ready > time else task.work_mw
    if task.ready > time:
        return wait_mw(machine, job, lowest_level(machine))
    return work_mw(machine, job, lowest_level(machine))
