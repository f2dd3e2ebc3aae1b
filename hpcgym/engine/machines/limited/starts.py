"""Whether a job may start now under all limits, and at which level; and its start.

A job starts at the highest level at which limits allow it (Glesser 2016, algorithm 3): at which the
charged power with it is within all caps in force, and the forecasts with it within all announced
caps that it may run into, by its requested time. Under budgets see :func:`budgets_allow`.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.limited.at_levels import (
    drawn_mw,
    lowest_level,
    slowed,
    wait_mw,
    work_mw,
)
from hpcgym.engine.machines.limited.budgets import (
    free_mj,
    idle_mj,
    off_for,
    reserve,
    weigh,
    woken_mw,
)
from hpcgym.engine.machines.limited.caps import forecast_mw, forecast_start, nodes_off
from hpcgym.engine.machines.limited.nodes import (
    charged_for,
    pick,
    pick_row,
    ready_time,
    take,
    width_of,
)
from hpcgym.engine.machines.limited.state import (
    ENERGY_BUD,
    MORE,
    OFF,
    POWERCAP,
    REDUCE_PC,
    SUFFICES,
    SWITCHING_OFF,
    ZERO,
)
from hpcgym.engine.ordered import insert
from hpcgym.engine.state import BACKFILLED, RUNNING, STARTED_AS


@jit
def best_level(machine, sim, jobs, progress, job):
    """Return the highest level at which a job may start now, its nodes chosen; -1 if none."""
    if jobs[job].processors > sim.free:
        return -1
    for level in range(machine.scalars[0].ceiling, lowest_level(machine) - 1, -1):
        if may_start(machine, sim, jobs, progress, job, level):
            return level
    return -1


@jit_part
def may_start(machine, sim, jobs, progress, job, level):
    """Return whether a job may start now at a level; its nodes are chosen then."""
    scalars, time = machine.scalars[0], sim.time
    requested = slowed(machine, job, level, jobs[job].requested)
    backfills, contiguous = scalars.backfills == 1, scalars.contiguous == 1
    # first as if all its nodes were on: others would only draw more, and be ready later, but for
    # those that are just being switched on and count as more than idle
    scalars.ready = time
    scalars.picked_mw = width_of(machine, job) * scalars.rest_mw
    scalars.picked_off = scalars.picked_dark = scalars.woken_mw = 0
    if backfills and not leaves_room(machine, sim, progress, job, level):
        return False
    sure = scalars.free_rising == 0
    if sure and not limits_allow(machine, sim, job, level, time + requested):
        return False
    if not choose(machine, time, job, requested, ZERO, ZERO):
        return False
    if backfills and (contiguous or scalars.ready > time):
        if not leaves_room(machine, sim, progress, job, level):
            return False
        predicted = slowed(machine, job, level, progress[job].predicted)
        if contiguous and scalars.ready + predicted > sim.shadow:
            block_from, block_to = scalars.block_from, scalars.block_to
            if not choose(machine, time, job, requested, block_from, block_to):
                return False
    if scalars.all_on == 0:
        weigh_picked(machine, job)
    elif sure:
        return True
    return limits_allow(machine, sim, job, level, scalars.ready + requested)


@jit
def choose(machine, time, job, requested, block_from, block_to):
    """Choose nodes for a job outside a block; return whether it can have enough of them."""
    scalars = machine.scalars[0]
    lowest = nodes_off(machine, time, time + requested)
    while True:
        if scalars.contiguous == 1:
            found = pick_row(machine, job, lowest, block_from, block_to)
        else:
            found = pick(machine, job, lowest)
        if not found:
            return False
        scalars.ready = time
        if scalars.all_on == 1:
            return True
        scalars.ready = ready_time(machine, time, job)
        # one that waits for its nodes ends later, and may run into another cap
        again = nodes_off(machine, time, scalars.ready + requested)
        if again <= lowest:
            return True
        lowest = again


@jit
def leaves_room(machine, sim, progress, job, level):
    """Return whether a job leaves the head its nodes and its power, at the shadow time.

    Whether it leaves the head its row, if nodes stand in a row, is looked at where they are chosen.
    """
    scalars, width = machine.scalars[0], width_of(machine, job)
    if scalars.ready + slowed(machine, job, level, progress[job].predicted) <= sim.shadow:
        return True
    if width > scalars.spare_nodes and scalars.contiguous == 0:
        return False
    work = work_mw(machine, job, level)
    if work - width * scalars.left_mw > scalars.spare_limit_mw:
        return False
    return work - width * scalars.rest_mw <= scalars.spare_mw


@jit
def limits_allow(machine, sim, job, level, until):
    """Return whether all limits that a job may run into allow it on the chosen nodes."""
    return caps_allow(machine, sim.time, job, level, until) and budgets_allow(
        machine, sim, job, level, until
    )


@jit
def widest(machine, sim):
    """Return a number of nodes that no job may start now on more of, by the limits in force."""
    scalars, most = machine.scalars[0], sim.free
    if scalars.free_rising > 0:
        return most
    each = machine.busy_mw[lowest_level(machine)] - scalars.rest_mw
    if each <= 0:
        return most
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 1 and cap.start <= sim.time < cap.end:
            most = min(most, max(cap.mw - scalars.charged, 0) // each)
    if scalars.rule == POWERCAP or scalars.rule == REDUCE_PC:
        for b in range(len(machine.budgets)):
            budget = machine.budgets[b]
            if budget.binds == 1 and budget.start <= sim.time < budget.end:
                most = min(most, max(budget.mean_mw - scalars.charged, 0) // each)
    return most


@jit_part
def weigh_picked(machine, job):
    """Reckon what is charged now for the nodes that were chosen, and wakes with them."""
    scalars = machine.scalars[0]
    scalars.picked_mw = scalars.picked_off = scalars.picked_dark = scalars.woken_mw = 0
    first, end = machine.first[job], machine.first[job + 1]
    for i in range(first, end):
        node = np.int64(machine.cells[i])
        state = machine.nodes[node].state
        scalars.picked_mw += charged_for(machine, state)
        if state in (OFF, SWITCHING_OFF):
            scalars.picked_off += 1
        if state == OFF:
            scalars.picked_dark += 1
            scalars.woken_mw += woken_mw(machine, node, machine.cells[i - 1] if i > first else -1)


@jit
def more_now(machine, time, job, level):
    """Return by how much the charged power rises when a job starts on the chosen nodes [mW]."""
    scalars = machine.scalars[0]
    waits = scalars.ready > time
    power = wait_mw(machine, job, level) if waits else work_mw(machine, job, level)
    return power - scalars.picked_mw + scalars.woken_mw


@jit
def mw_at(machine, time, job, level):
    """Return what a job that starts now on the chosen nodes is charged at a later time [mW]."""
    waits = machine.scalars[0].ready > time
    return wait_mw(machine, job, level) if waits else work_mw(machine, job, level)


@jit_part
def caps_allow(machine, time, job, level, until):
    """Return whether all caps that a job may run into allow it on the chosen nodes."""
    scalars = machine.scalars[0]
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 0 or cap.end <= time or cap.start >= until:
            continue
        if cap.start <= time:
            power = scalars.charged + more_now(machine, time, job, level)
        else:
            power = forecast_mw(machine, cap) + mw_at(machine, cap.start, job, level)
            power -= width_of(machine, job) * scalars.rest_mw
        if power > cap.mw:
            return False
    return True


# --- Budgets --------------------------------------------------------------------------------------


@jit_part
def budgets_allow(machine, sim, job, level, until):
    """Return whether all budgets that a job may run into allow it on the chosen nodes.

    Each must suffice for all that is then certain: what was drawn, what may still run by requested
    times, and the machine idle; also for nodes that a job which ends before has switched on, if
    others may run into the period. Beyond that see :func:`head_allowed`, :func:`backfill_allowed`.
    """
    time, backfills = sim.time, machine.scalars[0].backfills == 1
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        reaches = budget.start < until
        if budget.binds == 0 or budget.end <= time:
            continue
        if not reaches and (budget.in_use == 0 or machine.scalars[0].picked_off == 0):
            continue
        more = more_mj(machine, budget, time, job, level, until)
        sure = budget.spent + budget.ahead + more
        if sure > budget.mj:
            return False
        if not reaches:  # it only leaves nodes on that were off
            continue
        if machine.scalars[0].rule == SUFFICES:
            if backfills and sure + budget.head_mj > budget.mj:
                return False
            continue
        power = with_mw(machine, budget, time, job, level)
        if power <= budget.mean_mw and not backfills:
            continue
        if backfills:
            if not backfill_allowed(machine, sim, budget, power, more):
                return False
        elif not head_allowed(machine, budget, time, power, until):
            return False
    return True


@jit
def with_mw(machine, budget, time, job, level):
    """Return the charged power with a job on the chosen nodes, now or when a budget begins [mW]."""
    scalars = machine.scalars[0]
    if budget.start <= time:
        power = scalars.charged + more_now(machine, time, job, level)
        if budget.as_idle == 1:  # the nodes that stay off, and what stands above them
            dark = scalars.free_off - scalars.picked_dark
            power += dark * (scalars.rest_mw - scalars.off_mw)
            power += scalars.saved_mw - scalars.woken_mw
        return power
    rest = width_of(machine, job) - scalars.picked_off
    rest = rest * scalars.rest_mw + scalars.picked_off * off_for(machine, budget)
    more = mw_at(machine, budget.start, job, level) - rest + woken_for(machine, budget)
    return budget.at_start_mw + more


@jit
def woken_for(machine, budget):
    """Return what a budget reckons for components that are switched on with chosen nodes [mW]."""
    return 0 if budget.as_idle == 1 else machine.scalars[0].woken_mw


@jit
def more_mj(machine, budget, time, job, level, until):
    """Return what a job on the chosen nodes adds to what is charged in a budget's period [mJ]."""
    scalars, width = machine.scalars[0], width_of(machine, job)
    begin, end = max(time, budget.start), budget.end
    ready = min(max(scalars.ready, begin), end)
    done = min(max(until, begin), end)
    more = wait_mw(machine, job, level) * (ready - begin)
    more += work_mw(machine, job, level) * max(done - ready, 0)
    more += width * idle_mj(machine, budget, max(until, begin))
    more += woken_for(machine, budget) * (end - begin)
    if scalars.ready == time and scalars.picked_off == 0:  # all are on
        return more - width * idle_mj(machine, budget, begin)
    for i in range(machine.first[job], machine.first[job + 1]):
        more -= free_mj(machine, budget, begin, np.int64(machine.cells[i]))
    return more


@jit_part
def head_allowed(machine, budget, time, power, until):
    """Return whether enough has been saved for a job that takes the power above the mean."""
    if machine.scalars[0].rule == POWERCAP or time < budget.start:
        return False
    excess = (power - budget.mean_mw) * (min(until, budget.end) - time)
    return excess <= budget.saved - budget.reserved


@jit_part
def backfill_allowed(machine, sim, budget, power, more):
    """Return whether a job leaves the head the energy that is reserved for it."""
    time, rule = sim.time, machine.scalars[0].rule
    if rule == ENERGY_BUD and budget.start <= time:
        return more <= budget.left_mj
    if power > budget.mean_mw:
        return False
    if rule == REDUCE_PC and budget.start <= time:
        seconds = max(min(sim.shadow, budget.end) - time, 0)
        reserved = budget.reserved + budget.head_mj
        return (budget.mean_mw - power) * seconds >= reserved
    return True


# --- The start ------------------------------------------------------------------------------------


@jit
def begin(machine, jobs, sim, progress, blocks, entries, job, level):
    """Start a job, which is no longer queued, at a level on the nodes that were chosen for it."""
    time, scalars = sim.time, machine.scalars[0]
    task = machine.tasks[job]
    task.level = level
    task.passed = time
    task.ready = scalars.ready
    task.work_mw = work_mw(machine, job, level)
    task.wait_mw = wait_mw(machine, job, level)
    task.drawn_mw = drawn_mw(machine, job, level)
    task.predicted = progress[job].predicted
    task.until = task.ready + slowed(machine, job, level, jobs[job].requested)
    # from now on the job is as long as it is at this level: for its end, corrections and histories
    jobs[job].run = slowed(machine, job, level, jobs[job].run)
    jobs[job].requested = slowed(machine, job, level, jobs[job].requested)
    progress[job].predicted = slowed(machine, job, level, progress[job].predicted)
    if scalars.backfills == 1:
        progress[job].marks += BACKFILLED
        take_from_head(machine, sim, progress, job, level)
    settle_budgets(machine, sim, job, level)
    progress[job].start = task.ready
    progress[job].marks += sim.started * STARTED_AS
    sim.started += 1
    sim.free -= jobs[job].processors
    end = task.ready + jobs[job].run
    expected = task.ready + progress[job].predicted
    insert(blocks, entries, RUNNING, expected, job, end, jobs[job].processors)
    take(machine, time, job)
    forecast_start(machine, time, job, MORE)
    weigh(machine, blocks, entries, time)


@jit_part
def take_from_head(machine, sim, progress, job, level):
    """Take from what the head leaves at the shadow time, if a job runs on beyond it."""
    scalars, task = machine.scalars[0], machine.tasks[job]
    if task.ready + progress[job].predicted > sim.shadow:
        width, work = width_of(machine, job), work_mw(machine, job, level)
        scalars.spare_nodes -= width
        scalars.spare_mw -= work - width * scalars.rest_mw
        scalars.spare_limit_mw -= work - width * scalars.left_mw


@jit_part
def settle_budgets(machine, sim, job, level):
    """Reserve what a job takes above the mean power of a budget, and what it takes of the rest."""
    time, until = sim.time, machine.tasks[job].until
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        if budget.binds == 0 or budget.end <= time or budget.start >= until:
            continue
        power = with_mw(machine, budget, time, job, level)
        if budget.start <= time and power > budget.mean_mw and machine.scalars[0].rule != SUFFICES:
            reserve(machine, b, job, power)
        if machine.scalars[0].backfills == 1:
            budget.left_mj -= more_mj(machine, budget, time, job, level, until)
