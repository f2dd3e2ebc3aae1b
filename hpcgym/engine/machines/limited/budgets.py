"""Accounts of energy budgets: what was drawn, saved and reserved, and what is still to come."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit
from hpcgym.engine.machines.limited.nodes import (
    cap_near,
    switch_off_free,
    switch_on,
    wake,
    width_of,
)
from hpcgym.engine.machines.limited.state import LESS, NEVER, OFF, ON, SWITCHING_OFF
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import FOREVER, RUNNING


@jit
def count_to(machine, time):
    """Count what has been drawn up to ``time`` [s], since when nothing has changed."""
    scalars = machine.scalars[0]
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        seconds = min(time, budget.end) - max(scalars.counted_to, budget.start)
        if seconds > 0:
            budget.spent += scalars.drawn * seconds
    scalars.used += scalars.drawn * max(time - max(scalars.counted_to, scalars.begin), 0)
    scalars.counted_to = time


@jit
def look(machine, time):
    """Look at the meter where it is time: what has been saved, what is still reserved."""
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        if not budget.start <= time <= budget.end:
            continue
        if time == budget.end or (time - budget.start) % budget.period == 0:
            budget.saved = budget.mean_mw * (time - budget.start) - budget.spent
            budget.looked = time
            budget.reserved = 0
            for i in range(budget.n_reserving):
                budget.reserved += reserved_for(machine, b, machine.reserving[b, i], time)


@jit
def reserved_for(machine, b, job, time):
    """Return what is reserved at ``time`` [s] for a job that runs above the mean power [mJ]."""
    budget, task = machine.budgets[b], machine.tasks[job]
    left = min(task.until, budget.end) - max(time, task.passed)
    return (machine.with_mw[b, job] - budget.mean_mw) * max(left, 0)


@jit
def reserve(machine, b, job, with_mw):
    """Reserve what a job that starts now will draw above the mean power."""
    budget = machine.budgets[b]
    machine.with_mw[b, job] = with_mw
    machine.reserving[b, budget.n_reserving] = job
    budget.n_reserving += 1
    budget.reserved += reserved_for(machine, b, job, budget.looked)


@jit
def give_back(machine, job):
    """Give back what is still reserved for a job that has ended."""
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        for i in range(budget.n_reserving):
            if machine.reserving[b, i] == job:
                budget.reserved -= reserved_for(machine, b, job, budget.looked)
                budget.n_reserving -= 1
                machine.reserving[b, i] = machine.reserving[b, budget.n_reserving]
                break


# --- What is to come ------------------------------------------------------------------------------


@jit
def weigh(machine, blocks, entries, time):
    """Reckon what will be charged up to the end of each budget if nothing else starts."""
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        if budget.end <= time:
            continue
        begin = max(time, budget.start)
        budget.in_use = np.int64(budget.start <= time)
        weigh_free(machine, budget, begin)
        for k in range(blocks[RUNNING].in_use):
            block = block_at(blocks, RUNNING, k)
            for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
                weigh_job(machine, budget, begin, entries[i].job)


@jit
def weigh_free(machine, budget, begin):
    """Begin with the nodes that are free, and what stands above them."""
    scalars = machine.scalars[0]
    components, off_mw = above_mw(machine, budget), off_for(machine, budget)
    seconds = budget.end - begin
    budget.ahead = scalars.free_on * idle_mj(machine, budget, begin)
    budget.ahead += (scalars.free_off * off_mw + components) * seconds
    budget.at_start_mw = scalars.free_on * scalars.rest_mw + scalars.free_off * off_mw
    budget.at_start_mw += components
    for i in range(scalars.n_switching):
        record = machine.nodes[machine.switching[i]]
        if record.job < 0:
            budget.ahead += free_mj(machine, budget, begin, machine.switching[i])
            budget.at_start_mw += start_mw(machine, budget, record.state)


@jit
def off_for(machine, budget):
    """Return what a budget reckons for a node that is off [mW]; the meter sees what it draws."""
    return machine.scalars[0].rest_mw if budget.as_idle == 1 else machine.scalars[0].off_mw


@jit
def above_mw(machine, budget):
    """Return what a budget reckons for what stands above nodes, as they are now [mW]."""
    saved = 0 if budget.as_idle == 1 else machine.scalars[0].saved_mw
    return machine.scalars[0].components_mw - saved


@jit
def start_mw(machine, budget, state):
    """Return what a free node, as it is now, counts as when a budget begins [mW]."""
    off = state in (OFF, SWITCHING_OFF)
    return off_for(machine, budget) if off else machine.scalars[0].rest_mw


@jit
def idle_mj(machine, budget, begin):
    """Return what a node is charged that is free from ``begin`` [s] to the end of a budget [mJ].

    Where the budget says so it is switched off at once.
    """
    seconds = max(budget.end - begin, 0)
    if budget.shuts == 0:
        return machine.scalars[0].rest_mw * seconds
    switching = min(seconds, machine.scalars[0].off_time)
    return machine.scalars[0].rest_mw * switching + off_for(machine, budget) * (seconds - switching)


@jit
def free_mj(machine, budget, begin, node):
    """Return what a free node is charged from ``begin`` [s] to the end of a budget [mJ]."""
    record, scalars = machine.nodes[node], machine.scalars[0]
    if record.state == ON:
        return idle_mj(machine, budget, begin)
    if record.state == OFF:
        return off_for(machine, budget) * (budget.end - begin)
    done = min(max(record.until, begin), budget.end)
    if record.state == SWITCHING_OFF:
        return scalars.rest_mw * (done - begin) + off_for(machine, budget) * (budget.end - done)
    return scalars.rise_mw * (done - begin) + idle_mj(machine, budget, done)


@jit
def weigh_job(machine, budget, begin, job):
    """Add a job that has its nodes."""
    task = machine.tasks[job]
    budget.ahead += job_mj(machine, budget, begin, job)
    if task.until <= budget.start:
        budget.at_start_mw += width_of(machine, job) * machine.scalars[0].rest_mw
    else:
        budget.in_use = 1
        budget.at_start_mw += task.wait_mw if task.ready > budget.start else task.work_mw


@jit
def job_mj(machine, budget, begin, job):
    """Return what a job, and then its nodes, are charged from ``begin`` [s] to the end [mJ]."""
    task, end = machine.tasks[job], budget.end
    ready = min(max(task.ready, begin), end)
    until = min(max(task.until, begin), end)
    return (
        task.wait_mw * (ready - begin)
        + task.work_mw * max(until - ready, 0)
        + width_of(machine, job) * idle_mj(machine, budget, max(task.until, begin))
    )


@jit
def switch_off_idle(machine, time):
    """Begin to switch off the nodes that have been idle long enough, after a pass."""
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        if budget.shuts == 1 and budget.start <= time < budget.end:
            switch_off_free(machine, time, len(machine.nodes), NEVER)
            return
    if machine.scalars[0].timeout < FOREVER:
        switch_off_free(machine, time, len(machine.nodes), time - machine.scalars[0].timeout)


# --- Free nodes that are switched on again --------------------------------------------------------


@jit
def wake_free(machine, blocks, entries, time, begin, end):
    """Switch on the free nodes from ``begin`` up to ``end`` that budgets suffice for."""
    weigh(machine, blocks, entries, time)
    for node in range(begin, end):
        record = machine.nodes[node]
        # of one that is still being switched off see `wake_late`
        if record.job < 0 and (record.state != OFF or count_woken(machine, time, node)):
            wake(machine, time, node)


@jit
def wake_late(machine, blocks, entries, time):
    """Switch on the free nodes that were to be, and had to be off first."""
    if machine.scalars[0].to_wake == 0:
        return
    machine.scalars[0].to_wake = 0
    near = cap_near(machine, time)  # a cap may have been announced since
    weigh(machine, blocks, entries, time)
    for node in range(len(machine.nodes)):
        record = machine.nodes[node]
        if record.boots == 1 and record.state == OFF:
            record.boots = 0
            if not near and count_woken(machine, time, node):
                switch_on(machine, time, node)


@jit
def count_woken(machine, time, node):
    """Return whether all budgets in use suffice for a free node to be switched on, then count it.

    Jobs that may run into the period of a budget were started as if the node stayed off.
    """
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        if budget.binds == 1 and budget.in_use == 1 and budget.end > time:
            more = woken_mj(machine, budget, time, node)
            if budget.spent + budget.ahead + more > budget.mj:
                return False
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        if budget.end > time:
            budget.ahead += woken_mj(machine, budget, time, node)
    return True


@jit
def woken_mj(machine, budget, time, node):
    """Return what it adds up to the end of a budget if a free node is switched on now [mJ]."""
    scalars = machine.scalars[0]
    begin = max(time, budget.start)
    ready = min(max(time + scalars.on_time, begin), budget.end)
    stays = off_for(machine, budget)
    if budget.as_idle == 0:
        stays -= woken_mw(machine, node, LESS)
    more = scalars.rise_mw * (ready - begin) + idle_mj(machine, budget, ready)
    return more - stays * (budget.end - begin)


@jit
def woken_mw(machine, node, before):
    """Return the power of what stands above a node and is off, but not above the one ``before``."""
    woken = 0
    for level in range(len(machine.size)):
        size = machine.size[level]
        if machine.awake[machine.place[level] + node // size] > 0:
            break
        if before < 0 or before // size != node // size:
            woken += machine.component_mw[level]
            if level == 0:
                begin = node // size * size
                end = min(begin + size, len(machine.nodes))
                woken += (end - begin) * machine.scalars[0].off_mw
    return woken
