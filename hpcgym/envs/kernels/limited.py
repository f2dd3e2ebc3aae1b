"""Machines under limits, as environments step them: controls, energy, what is to be seen; compiled.

An action has, behind the weights of the queue, numbers from -1 to 1 for some of three controls;
`Table.settings` says where each stands. See :mod:`hpcgym.engine.machines.limited.controls`.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.constants import TAU_S
from hpcgym.engine.machines.limited.at_levels import MILLION
from hpcgym.engine.machines.limited.budgets import count_to
from hpcgym.engine.machines.limited.caps import idle_mw
from hpcgym.engine.machines.limited.controls import set_control
from hpcgym.engine.machines.limited.state import NEVER, PLENTY, ZERO
from hpcgym.engine.slowdown import bounded_slowdown

HOUR = 3600.0  # [s]

# -- what is to be seen of power: places in the field "power" of an observation --------------------
(
    TRUE_POWER,
    CHARGED_POWER,
    CAP_NOW,
    CAP_LEFT,
    CAP_NEXT,
    CAP_IN,
    ENERGY_LEFT,
    ENERGY_SAVED,
    POWER_LEFT,
    PERIOD_LEFT,
    PERIOD_IN,
    NODES_OFF,
    NODES_SWITCHING,
    NODES_BUSY,
    CEILING_NOW,
) = range(15)
POWER_SIZE = 15


@jit_part
def share_of(number):
    """Return a number of an action, from -1 to 1, as a share."""
    return min(max((number + 1.0) / 2.0, 0.0), 1.0)


@jit
def greatest_mw(machine):
    """Return the charged power of a machine all of whose nodes are busy [mW]."""
    scalars = machine.scalars[0]
    return len(machine.nodes) * machine.busy_mw[scalars.highest] + scalars.components_mw


@jit
def control(machine, sim, numbers, frequency_at, nodes_at, power_at, end):
    """Set the controls by an action, from the next second on, up to ``end`` [s] at least.

    ``frequency_at``, ``nodes_at`` and ``power_at`` are places in ``numbers``, or -1.
    """
    scalars, n_nodes = machine.scalars[0], len(machine.nodes)
    ceiling, off, mw = scalars.highest, ZERO, PLENTY
    if frequency_at >= 0:
        ceiling = np.int64(np.rint(share_of(numbers[frequency_at]) * scalars.highest))
    if nodes_at >= 0:
        off = n_nodes - np.int64(np.rint(share_of(numbers[nodes_at]) * n_nodes))
    if power_at >= 0 and numbers[power_at] < 1.0:
        idle = idle_mw(machine, ZERO)
        span = greatest_mw(machine) - idle
        mw = idle + np.int64(share_of(numbers[power_at]) * span)
    start = scalars.begin if scalars.counted_to < scalars.begin else sim.time + 1
    set_control(machine, start, end, np.int64(mw), np.int64(off), np.int64(ceiling))


@jit
def take_joules(machine, time):
    """Return the true energy up to ``time`` [s] that nobody has taken account of [J]."""
    count_to(machine, max(time, machine.scalars[0].counted_to))
    joules = machine.scalars[0].used / 1000.0
    machine.scalars[0].used = 0
    return joules


@jit
def bsld_of(submit, run, start, length):
    """Return the bounded slowdown of a job of this length, ``run`` at the highest level."""
    return bounded_slowdown(start - submit + length, run, np.float64(TAU_S))


@jit
def sum_bsld(machine, as_run, progress):
    """Return the sum of the bounded slowdowns of jobs, as long as they ran in the end."""
    total = 0.0
    for job in range(len(as_run)):
        length = as_run[job].run
        full = unslowed(machine, job, length)
        total += bsld_of(as_run[job].submit, full, progress[job].start, length)
    return total


@jit
def unslowed(machine, job, length):
    """Return how long a job would have run at the highest level, of killed ones rounded down [s].

    As :func:`hpcgym.cluster.power.unslowed` has it.
    """
    millionths = machine.slowdown[machine.kind[job], machine.tasks[job].level]
    # in two parts, so that no product overflows
    return length // millionths * MILLION + length % millionths * MILLION // millionths


# --- What is to be seen ---------------------------------------------------------------------------


@jit_part
def soon(seconds):
    """Return a time as observations show it."""
    return seconds / (seconds + HOUR)


@jit
def observe_power(machine, sim, out, at):
    """Write what is known of power, limits and nodes into an observation, from ``at`` on."""
    scalars, n_nodes, most = (
        machine.scalars[0],
        len(machine.nodes),
        np.float64(greatest_mw(machine)),
    )
    out[at + TRUE_POWER] = min(scalars.drawn / most, 1.0)
    out[at + CHARGED_POWER] = min(scalars.charged / most, 1.0)
    observe_caps(machine, sim.time, most, out, at)
    observe_budgets(machine, sim.time, most, out, at)
    out[at + NODES_OFF] = scalars.free_off / n_nodes
    out[at + NODES_SWITCHING] = scalars.n_switching / n_nodes
    out[at + NODES_BUSY] = (n_nodes - sim.free) / n_nodes
    out[at + CEILING_NOW] = scalars.ceiling / scalars.highest if scalars.highest > 0 else 1.0


@jit
def observe_caps(machine, time, most, out, at):
    """Write what is known of caps: the lowest in force, and the first to come."""
    lowest, over, following, begin = most, np.int64(0), most, np.int64(NEVER)
    for c in range(len(machine.caps) - 1):  # the last is the control
        cap = machine.caps[c]
        if cap.announced > time or cap.end <= time:
            continue
        if cap.start <= time and cap.mw < lowest:
            lowest, over = cap.mw, cap.end - time
        elif time < cap.start < begin:
            following, begin = cap.mw, cap.start
    out[at + CAP_NOW] = min(lowest / most, 1.0)
    out[at + CAP_LEFT] = soon(np.float64(over))
    out[at + CAP_NEXT] = min(following / most, 1.0)
    out[at + CAP_IN] = 1.0 if begin == NEVER else soon(np.float64(begin - time))


@jit
def observe_budgets(machine, time, most, out, at):
    """Write what is known of the budget of the present period, or else of the next."""
    found, begin = -1, np.int64(NEVER)
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        if budget.end > time and budget.start < begin:
            found, begin = b, budget.start
    if found < 0:
        out[at + ENERGY_LEFT] = out[at + POWER_LEFT] = out[at + PERIOD_IN] = 1.0
        out[at + ENERGY_SAVED] = out[at + PERIOD_LEFT] = 0.0
        return
    budget = machine.budgets[found]
    total = max(np.float64(budget.mj), 1.0)
    left = np.float64(budget.mj - budget.spent)
    seconds = np.float64(budget.end - max(time, budget.start))
    saved = np.float64(budget.mean_mw) * max(time - budget.start, 0) - budget.spent
    out[at + ENERGY_LEFT] = max(left / total, 0.0)
    out[at + ENERGY_SAVED] = min(max(saved / total, -1.0), 1.0)
    out[at + POWER_LEFT] = min(max(left / (seconds * most), 0.0), 1.0)
    out[at + PERIOD_LEFT] = seconds / (budget.end - budget.start)
    out[at + PERIOD_IN] = soon(np.float64(max(budget.start - time, 0)))
