"""How long a job takes at a level, and its power there."""

from __future__ import annotations

from hpcgym.compilation import jit
from hpcgym.engine.machines.limited.nodes import width_of

MILLION = 1_000_000


@jit
def slowed(machine, job, level, time):
    """Return how long a job takes at a level, of its time at the highest, rounded up [s]."""
    millionths = machine.slowdown[machine.kind[job], level]
    # in two parts, so that no product overflows
    return time // MILLION * millionths - (-(time % MILLION) * millionths) // MILLION


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
