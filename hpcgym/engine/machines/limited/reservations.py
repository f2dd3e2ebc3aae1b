"""The head's reservation under limits: when it can start by predicted ends, and what it leaves.

The shadow time is the earliest of now, predicted ends, ends of caps and budgets, and times at which
the meter of a budget is looked at, at which the head finds nodes and power. The plan takes the
machine to go on as it is: running jobs up to their predicted ends, and no starts. Under caps, nodes
that no cap has off are on; under budgets those that are off now stay off. All are ready at once.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.limited.at_levels import lowest_level, slowed, work_mw
from hpcgym.engine.machines.limited.budgets import above_mw, off_for
from hpcgym.engine.machines.limited.caps import after, next_look
from hpcgym.engine.machines.limited.nodes import count_below, find_row, set_bit, width_of
from hpcgym.engine.machines.limited.state import (
    LESS,
    MORE,
    PLENTY,
    POWERCAP,
    SUFFICES,
    SWITCHING_OFF,
    ZERO,
)
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import FOREVER, RUNNING


@jit
def find_shadow(machine, sim, jobs, blocks, entries, head):
    """Set the shadow time of the head, and what it leaves of nodes, power and energy then."""
    scalars = machine.scalars[0]
    time = sim.time
    off = count_off(machine)
    total, held = begin_plan(machine, blocks, entries, time, off)
    k, i = ZERO, ZERO
    while True:
        free = len(machine.nodes) - held
        if free >= jobs[head].processors:
            level = planned_level(machine, jobs, head, time, total, held, off)
            if level >= 0:
                break
        later = next_planned(machine, blocks, entries, k, i, time)
        if later == FOREVER:  # the machine is empty, and still switches nodes: no job passes by
            sim.shadow = sim.time
            scalars.spare_nodes, scalars.block_from, scalars.block_to = -1, 0, len(machine.nodes)
            scalars.spare_mw = -1
            return
        pass_over(machine, total, held, time, later)
        time = later
        while k < blocks[RUNNING].in_use:
            block = block_at(blocks, RUNNING, k)
            if i == blocks[block].count:
                k, i = k + 1, ZERO
                continue
            entry = entries[block * BLOCK + i]
            if entry.key > time:
                break
            job = entry.job
            total -= machine.tasks[job].work_mw
            held -= width_of(machine, job)
            leave(machine, job)
            i += 1
    sim.shadow = time
    note_spare(machine, sim, jobs, head, level, time, total, held, off)


@jit
def count_off(machine):
    """Return how many free nodes are off, or will be."""
    off = machine.scalars[0].free_off
    for i in range(machine.scalars[0].n_switching):
        record = machine.nodes[machine.switching[i]]
        if record.job < 0 and record.state == SWITCHING_OFF and record.boots == 0:
            off += 1
    return off


@jit_part
def begin_plan(machine, blocks, entries, time, off):
    """Sum up what runs now, and what will still run when limits begin; return power and nodes."""
    scalars = machine.scalars[0]
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        cap.plan_work_mw = cap.plan_held = cap.plan_inside = cap.inside_now = 0
    for b in range(len(machine.budgets)):
        begin_budget(machine, machine.budgets[b], time, off)
    if scalars.contiguous == 1:
        for word in range(len(machine.free)):
            machine.later[word] = machine.free[word]
    total, held = ZERO, ZERO
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job, expected = entries[i].job, entries[i].key
            task, width = machine.tasks[job], width_of(machine, job)
            task.expected = expected
            work = task.work_mw
            total += work
            held += width
            for c in range(len(machine.caps)):
                plan_cap(machine, machine.caps[c], time, job, expected, work)
            for b in range(len(machine.budgets)):
                plan_budget(machine.budgets[b], time, expected, work, width)
    return total, held


@jit_part
def plan_cap(machine, cap, time, job, expected, work):
    """Add a running job to what a cap will find."""
    if cap.known == 0 or cap.end <= time:
        return
    inside = count_below(machine, job, cap.off)
    cap.inside_now += inside
    if expected > cap.start:
        cap.plan_work_mw += work
        cap.plan_held += width_of(machine, job)
        cap.plan_inside += inside


@jit_part
def begin_budget(machine, budget, time, off):
    """Begin with the machine without jobs."""
    off_mw = off_for(machine, budget)
    budget.rest_mw = off_mw if budget.shuts == 1 else machine.scalars[0].rest_mw
    budget.base_mw = off * off_mw + (len(machine.nodes) - off) * budget.rest_mw
    budget.base_mw += above_mw(machine, budget)
    budget.plan_start_mw = budget.base_mw
    budget.plan_spent = budget.spent
    budget.plan_mj = budget.spent
    budget.plan_mj += budget.base_mw * max(budget.end - max(time, budget.start), 0)


@jit_part
def plan_budget(budget, time, expected, work, width):
    """Add a running job to what a budget will find."""
    more = work - width * budget.rest_mw
    begin = max(time, budget.start)
    budget.plan_mj += more * max(min(expected, budget.end) - begin, 0)
    if expected > budget.start:
        budget.plan_start_mw += more


@jit
def next_planned(machine, blocks, entries, k, i, time):
    """Return the next time to be looked at, FOREVER if there is none [s]."""
    later = FOREVER
    if k < blocks[RUNNING].in_use:
        block = block_at(blocks, RUNNING, k)
        if i == blocks[block].count and k + 1 < blocks[RUNNING].in_use:
            block, i = block_at(blocks, RUNNING, k + 1), 0
        if i < blocks[block].count:
            later = entries[block * BLOCK + i].key
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 1:
            later = min(later, after(cap.end, time))
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        later = min(later, after(budget.start, time), after(budget.end, time))
        if budget.start <= time < budget.end and machine.scalars[0].rule > POWERCAP:
            later = min(later, next_look(budget, time))
    return later


@jit_part
def pass_over(machine, total, held, time, later):
    """Count what is drawn from one time to the next."""
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        seconds = min(later, budget.end) - max(time, budget.start)
        if seconds > 0:
            budget.plan_spent += (budget.base_mw + total - held * budget.rest_mw) * seconds


@jit_part
def leave(machine, job):
    """Let a job have left its nodes."""
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 1 and cap.off > 0:
            cap.inside_now -= count_below(machine, job, cap.off)
    if machine.scalars[0].contiguous == 1:
        for i in range(machine.first[job], machine.first[job + 1]):
            set_bit(machine.later, np.int64(machine.cells[i]), MORE)


@jit_part
def planned_level(machine, jobs, head, time, total, held, off):
    """Return the highest level at which the head can start at ``time`` [s], -1 if none."""
    for level in range(machine.scalars[0].ceiling, lowest_level(machine) - 1, -1):
        until = time + slowed(machine, head, level, jobs[head].requested)
        spare, _ = spare_nodes(machine, jobs, head, time, until, held)
        if spare < 0:
            continue
        if spare_below_caps(machine, head, level, time, until, total, held) < 0:
            continue
        if plan_allows(machine, head, level, time, until, total, held, off):
            return level
    return -1


@jit
def spare_nodes(machine, jobs, head, time, until, held):
    """Return how many nodes the head leaves, negative if it lacks some; and its row's first."""
    n_nodes, width = len(machine.nodes), jobs[head].processors
    lowest, inside = ZERO, ZERO
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 0 or cap.off <= lowest:
            continue
        if time < cap.end and until > cap.start - machine.scalars[0].off_time:
            lowest, inside = cap.off, cap.inside_now
    spare = n_nodes - lowest - (held - inside) - width
    if spare < 0 or machine.scalars[0].contiguous == 0:
        return spare, ZERO
    row = find_row(machine.later, n_nodes, lowest, width, ZERO, ZERO)
    return (spare, row) if row >= 0 else (LESS, ZERO)


@jit
def spare_below_caps(machine, head, level, time, until, total, held):
    """Return how much power the head leaves below all caps, negative if one is exceeded [mW]."""
    spare, scalars = PLENTY, machine.scalars[0]
    more = work_mw(machine, head, level) - width_of(machine, head) * scalars.rest_mw
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 0 or cap.end <= time or cap.start >= until:
            continue
        work, width, inside = total, held, cap.inside_now
        if cap.start > time:
            work, width, inside = cap.plan_work_mw, cap.plan_held, cap.plan_inside
        power = cap.idle_mw + work - (width - inside) * scalars.rest_mw
        power -= inside * scalars.off_mw
        spare = min(spare, cap.mw - power - more)
    return spare


@jit_part
def plan_allows(machine, head, level, time, until, total, held, off):
    """Return whether the budgets that the head runs into suffice for it."""
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        if budget.binds == 0 or budget.end <= time or budget.start >= until:
            continue
        seconds = min(until, budget.end) - max(time, budget.start)
        more = planned_more(machine, budget, head, level, held, off)
        if budget.plan_mj + more * seconds > budget.mj:
            return False
        if machine.scalars[0].rule == SUFFICES:
            continue
        power = planned_mw(budget, time, total, held) + more
        if power <= budget.mean_mw:
            continue
        if machine.scalars[0].rule == POWERCAP or time < budget.start:
            return False
        if (power - budget.mean_mw) * seconds > left_at(machine, b, time):
            return False
    return True


@jit
def planned_mw(budget, time, total, held):
    """Return the power without the head, at ``time`` [s] or when the budget begins [mW]."""
    if time < budget.start:
        return budget.plan_start_mw
    return budget.base_mw + total - held * budget.rest_mw


@jit
def planned_more(machine, budget, head, level, held, off):
    """Return by how much the head raises the power, on nodes that are on first [mW]."""
    width = width_of(machine, head)
    on = min(width, len(machine.nodes) - off - held)
    rest = on * budget.rest_mw + (width - on) * off_for(machine, budget)
    return work_mw(machine, head, level) - rest


@jit
def left_at(machine, b, time):
    """Return what will have been saved, and not reserved for jobs that run then [mJ]."""
    budget = machine.budgets[b]
    left = budget.mean_mw * (time - budget.start) - budget.plan_spent
    for i in range(budget.n_reserving):
        job = machine.reserving[b, i]
        task = machine.tasks[job]
        if task.expected > time:
            seconds = min(task.until, budget.end) - time
            left -= (machine.with_mw[b, job] - budget.mean_mw) * max(seconds, 0)
    return left


@jit_part
def note_spare(machine, sim, jobs, head, level, time, total, held, off):
    """Note what the head leaves at the shadow time."""
    scalars = machine.scalars[0]
    until = time + slowed(machine, head, level, jobs[head].requested)
    spare, row = spare_nodes(machine, jobs, head, time, until, held)
    scalars.spare_nodes = spare
    scalars.block_from, scalars.block_to = row, row + jobs[head].processors
    scalars.spare_mw = spare_below_caps(machine, head, level, time, until, total, held)
    scalars.spare_limit_mw, scalars.left_mw = PLENTY, scalars.rest_mw
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        budget.head_mj = 0
        if budget.binds == 0 or budget.end <= sim.time:
            continue
        if budget.start < until and budget.end > time:
            more = planned_more(machine, budget, head, level, held, off)
            seconds = min(until, budget.end) - max(time, budget.start)
            excess = planned_mw(budget, time, total, held) + more - budget.mean_mw
            if scalars.rule == SUFFICES:
                budget.head_mj = more * seconds
            elif excess > 0:
                budget.head_mj = excess * seconds
            elif -excess < scalars.spare_limit_mw:
                scalars.spare_limit_mw, scalars.left_mw = -excess, budget.rest_mw
        if budget.start <= sim.time:
            budget.left_mj = left_at(machine, b, min(time, budget.end)) - budget.head_mj
