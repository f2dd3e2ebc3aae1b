"""Caps of power as time goes on: announced, in force, over; and when there is anything to do.

A cap has nodes that are off throughout, the first ones, and a forecast for its start: a floor
(these nodes off, all others on and idle, what stands above them) and what the jobs add that may
still run then, by their requested times. From its start on, the charged power takes its place.
"""

from __future__ import annotations

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.limited.budgets import wake_free
from hpcgym.engine.machines.limited.nodes import (
    cap_near,
    count_below,
    next_timeout,
    switch_off_free,
    width_of,
)
from hpcgym.engine.machines.limited.state import MORE, NEVER, ON, SWITCHING_OFF, SWITCHING_ON, ZERO
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import FOREVER, RUNNING

# --- Times at which there is something to do ------------------------------------------------------


@jit
def next_control(machine):
    """Return when there is something to do that is no event of a job [s], FOREVER if never."""
    scalars = machine.scalars[0]
    now = scalars.counted_to
    time = min(scalars.next_switched, scalars.next_ready)
    if scalars.timeout < FOREVER:
        time = min(time, next_timeout(machine))
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 0:
            time = min(time, after(cap.announced, now))
            continue
        if cap.off > 0:
            time = min(time, after(cap.start - scalars.off_time, now))
        time = min(time, after(cap.start, now), after(cap.end, now))
    for b in range(len(machine.budgets)):
        budget = machine.budgets[b]
        time = min(time, after(budget.start, now), after(budget.end, now))
        if budget.start <= now < budget.end:
            time = min(time, next_look(budget, now))
    return time


@jit_part
def after(time, now):
    """Return a time if it is still to come, else FOREVER."""
    return time if time > now else FOREVER


@jit
def next_look(budget, now):
    """Return when the meter is looked at next in the period of a budget, or when that ends [s]."""
    return min(now + budget.period - (now - budget.start) % budget.period, budget.end)


# --- Caps -----------------------------------------------------------------------------------------


@jit
def announce(machine, blocks, entries, time):
    """Make known the caps whose time has come to be announced."""
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 1 or cap.announced > time:
            continue
        cap.known = 1
        cap.idle_mw = idle_mw(machine, cap.off)
        for k in range(blocks[RUNNING].in_use):
            block = block_at(blocks, RUNNING, k)
            for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
                add_to_forecast(machine, cap, entries[i].job, MORE)
        set_floor(machine, cap, time)


@jit_part
def idle_mw(machine, off):
    """Return what is charged without jobs while the first ``off`` nodes are off [mW]."""
    scalars, n_nodes = machine.scalars[0], len(machine.nodes)
    power = off * scalars.off_mw + (n_nodes - off) * scalars.rest_mw + scalars.components_mw
    for level in range(len(machine.size)):
        size = machine.size[level]
        dark = n_nodes if off == n_nodes else off // size * size
        power -= -(-dark // size) * machine.component_mw[level]
        if level == 0:  # not even what is off draws anything
            power -= dark * scalars.off_mw
    return power


@jit
def set_floor(machine, cap, time):
    """Set the floor of a forecast: what the nodes without a job that runs on then are charged.

    Nodes that are to be off, but not in time, are charged as they will be at the start; and so are
    those that still boot. Components below which a node is late, or has such a job, are not off.
    """
    scalars = machine.scalars[0]
    cap.floor_mw = cap.idle_mw
    for i in range(scalars.n_switching):
        record = machine.nodes[machine.switching[i]]
        if record.job < 0 and record.state == SWITCHING_ON and record.until > cap.start:
            cap.floor_mw += scalars.rise_mw - scalars.rest_mw
    if cap.inside == 0 and not some_late(machine, ZERO, cap.off, cap.start, time):
        return
    for node in range(cap.off):
        if is_late(machine, node, cap.start, time):
            cap.floor_mw += scalars.rest_mw - scalars.off_mw
    for level in range(len(machine.size)):
        size = machine.size[level]
        begin = ZERO
        while begin < cap.off:
            end = min(begin + size, len(machine.nodes))
            if end <= cap.off and (
                some_run_on(machine, begin, end, cap.start)
                or some_late(machine, begin, end, cap.start, time)
            ):
                cap.floor_mw += machine.component_mw[level]
                if level == 0:
                    cap.floor_mw += (end - begin) * scalars.off_mw
            begin = end


@jit
def is_late(machine, node, start, time):
    """Return whether a node without a job from ``start`` [s] on cannot be off by then."""
    record, off_time = machine.nodes[node], machine.scalars[0].off_time
    if record.job >= 0:
        until = machine.tasks[record.job].until
        return until <= start < until + off_time
    if record.state == ON:
        return time + off_time > start
    if record.state == SWITCHING_ON:
        return record.until + off_time > start
    return record.state == SWITCHING_OFF and record.until > start


@jit
def some_late(machine, begin, end, start, time):
    """Return whether some of these nodes cannot be off by ``start`` [s]."""
    node = begin
    while node < end and not is_late(machine, node, start, time):
        node += 1
    return node < end


@jit
def some_run_on(machine, begin, end, time):
    """Return whether a job on some of these nodes may run beyond ``time`` [s]."""
    for node in range(begin, end):
        job = machine.nodes[node].job
        if job >= 0 and machine.tasks[job].until > time:
            return True
    return False


@jit
def add_to_forecast(machine, cap, job, sign):
    """Add a running job to the forecast of a cap, or take it out where ``sign`` is -1."""
    task = machine.tasks[job]
    if task.until <= cap.start:
        return
    inside = count_below(machine, job, cap.off)
    cap.inside += sign * inside
    cap.outside += sign * (width_of(machine, job) - inside)
    cap.work_mw += sign * (task.wait_mw if task.ready > cap.start else task.work_mw)


@jit
def forecast_start(machine, time, job, sign):
    """Note in all forecasts that a job has started, or that it has ended where ``sign`` is -1."""
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 1 and cap.start > time:
            add_to_forecast(machine, cap, job, sign)
            if machine.scalars[0].n_switching > 0 or count_below(machine, job, cap.off) > 0:
                set_floor(machine, cap, time)


@jit
def forecast_mw(machine, cap):
    """Return the power charged at the start of a cap, which is to come [mW]."""
    scalars = machine.scalars[0]
    return cap.floor_mw + cap.work_mw - cap.outside * scalars.rest_mw - cap.inside * scalars.off_mw


@jit
def nodes_off(machine, begin, end):
    """Return how many of the first nodes no job may have from ``begin`` up to ``end`` [s]."""
    most = ZERO
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 1 and begin < cap.end and end > cap.start - machine.scalars[0].off_time:
            most = max(most, cap.off)
    return most


@jit
def switch_for_caps(machine, blocks, entries, time):
    """Begin to switch off the nodes that caps say are to be off, and on those of caps that end."""
    due = ZERO
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.known == 0 or cap.off == 0:
            continue
        if cap.start - machine.scalars[0].off_time <= time < cap.end:
            due = max(due, cap.off)
        elif cap.end == time and not cap_near(machine, time):
            wake_free(machine, blocks, entries, time, ZERO, cap.off)
    if due > 0:
        switch_off_free(machine, time, due, NEVER)
