"""Nodes that are switched off and on, and given whole to jobs: their states and their power."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part, trailing_zeros
from hpcgym.engine.machines.limited.state import (
    LESS,
    MORE,
    NEVER,
    OFF,
    ON,
    SWITCHING_OFF,
    SWITCHING_ON,
)
from hpcgym.engine.passes.node_bits import next_open

# --- The state of a node ------------------------------------------------------------------------


@jit
def charged_for(machine, state):
    """Return what a free node in a state counts as [mW]."""
    if state == OFF:
        return machine.scalars[0].off_mw
    return machine.scalars[0].rise_mw if state == SWITCHING_ON else machine.scalars[0].rest_mw


@jit
def drawn_by(machine, state):
    """Return what a node in a state draws without running a job [mW]."""
    if state == ON:
        return machine.scalars[0].idle_mw
    if state == OFF:
        return machine.scalars[0].off_mw
    return machine.scalars[0].boot_mw if state == SWITCHING_ON else machine.scalars[0].shutdown_mw


@jit
def set_state(machine, time, node, state, until):
    """Let a node that runs no job be in another state from ``time`` [s] on."""
    scalars, record = machine.scalars[0], machine.nodes[node]
    before = record.state
    if record.job < 0:
        scalars.charged += charged_for(machine, state) - charged_for(machine, before)
        count_free(machine, node, before, LESS)
        count_free(machine, node, state, MORE)
    scalars.drawn += drawn_by(machine, state) - drawn_by(machine, before)
    if before != ON and time > record.since:
        interval = machine.log[scalars.logged]
        interval.node = node
        interval.state = before
        interval.begin = record.since
        interval.end = time
        scalars.logged += 1
    record.since = time
    record.until = until
    if before == OFF:
        count_dark(machine, node, LESS)
    elif before != ON:
        scalars.n_switching -= 1
        last = machine.switching[scalars.n_switching]
        machine.switching[record.place] = last
        machine.nodes[last].place = record.place
    record.state = state
    if state == OFF:
        count_dark(machine, node, MORE)
    elif state != ON:
        record.place = scalars.n_switching
        machine.switching[record.place] = node
        scalars.n_switching += 1
        scalars.next_switched = min(scalars.next_switched, until)


@jit
def count_free(machine, node, state, sign):
    """Note that a node in this state is free, or no longer where ``sign`` is -1."""
    if state == OFF:
        machine.scalars[0].free_off += sign
    elif state == SWITCHING_ON:
        machine.scalars[0].free_rising += sign
    elif state == ON:
        machine.scalars[0].free_on += sign
        set_bit(machine.on, node, sign)


@jit
def set_bit(bits, node, sign):
    """Set the bit of a node, or clear it where ``sign`` is -1."""
    word, bit = node >> 6, np.uint64(1) << np.uint64(node & 63)
    bits[word] = bits[word] | bit if sign > 0 else bits[word] & ~bit


@jit
def count_dark(machine, node, sign):
    """Note that a node is off, or no longer where ``sign`` is -1, in all that stands above it."""
    for level in range(len(machine.size)):
        place = machine.place[level] + node // machine.size[level]
        machine.awake[place] -= sign
        if machine.awake[place] > (0 if sign > 0 else 1):
            return
        saved = sign * (machine.component_mw[level] + off_below(machine, level, node))
        machine.scalars[0].saved_mw += saved
        machine.scalars[0].charged -= saved
        machine.scalars[0].drawn -= saved


@jit
def off_below(machine, level, node):
    """Return what is saved of nodes that are off when the component above them is off [mW]."""
    if level > 0:
        return 0
    size = machine.size[0]
    begin = node // size * size
    return (min(begin + size, len(machine.nodes)) - begin) * machine.scalars[0].off_mw


@jit
def switch_off(machine, time, node):
    """Begin to switch off a free node that is on."""
    off_time = machine.scalars[0].off_time
    if off_time == 0:
        set_state(machine, time, node, OFF, NEVER)
    else:
        set_state(machine, time, node, SWITCHING_OFF, time + off_time)


@jit
def switch_on(machine, time, node):
    """Begin to switch on a node that is off."""
    on_time = machine.scalars[0].on_time
    if on_time == 0:
        set_state(machine, time, node, ON, NEVER)
    else:
        set_state(machine, time, node, SWITCHING_ON, time + on_time)


@jit
def wake(machine, time, node):
    """Let a node that is off, or on the way there, be switched on as soon as can be."""
    if machine.nodes[node].state == SWITCHING_OFF:
        machine.nodes[node].boots = 1
    elif machine.nodes[node].state == OFF:
        switch_on(machine, time, node)


@jit
def cap_near(machine, time):
    """Return whether a cap holds, or begins before nodes that are switched on now are on."""
    soon = time + max(machine.scalars[0].on_time, 1)
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.off == 0 and c == len(machine.caps) - machine.scalars[0].controlled:
            continue  # a control without nodes of its own
        if cap.known == 1 and cap.start - machine.scalars[0].off_time < soon and cap.end > time:
            return True
    return False


@jit
def end_switching(machine, time):
    """Let nodes whose switching is done by ``time`` [s] be off or on."""
    scalars = machine.scalars[0]
    if scalars.next_switched > time:
        return
    i = scalars.n_switching - 1
    while i >= 0:  # from the end, for the last takes the place of one that goes
        node = machine.switching[i]
        record = machine.nodes[node]
        if record.until <= time:
            if record.state == SWITCHING_ON:
                set_state(machine, time, node, ON, NEVER)
            else:
                set_state(machine, time, node, OFF, NEVER)
                if record.boots == 1 and record.job < 0:
                    scalars.to_wake = 1
                elif record.boots == 1:
                    record.boots = 0
                    switch_on(machine, time, node)
        i -= 1
    scalars.next_switched = NEVER
    for i in range(scalars.n_switching):
        scalars.next_switched = min(
            scalars.next_switched, machine.nodes[machine.switching[i]].until
        )


@jit
def switch_off_free(machine, time, before, idle_since):
    """Begin to switch off free nodes below number ``before`` that have been idle since so long."""
    node = next_open(machine.on, 0)
    while node < before:
        if machine.nodes[node].since <= idle_since:
            switch_off(machine, time, node)
        node = next_open(machine.on, node + 1)


@jit
def next_timeout(machine):
    """Return when the next free node has been idle for so long that it is switched off [s]."""
    timeout, first = machine.scalars[0].timeout, NEVER
    if timeout < NEVER and machine.scalars[0].free_on > 0:
        node = next_open(machine.on, 0)
        while node < len(machine.nodes):
            first = min(first, machine.nodes[node].since + timeout)
            node = next_open(machine.on, node + 1)
    return first


# --- The nodes of a job -------------------------------------------------------------------------


@jit
def pick(machine, job, lowest):
    """Choose free nodes for a job from number ``lowest`` on; return whether there are enough.

    The lowest that are on, and only if these are too few the lowest of the others as well.
    """
    first, end = machine.first[job], machine.first[job + 1]
    at = first
    node = next_open(machine.on, lowest)
    while at < end and node < len(machine.nodes):
        machine.cells[at] = node
        at += 1
        node = next_open(machine.on, node + 1)
    machine.scalars[0].all_on = np.int64(at == end)
    if at == end:
        return True
    others = end - at
    at = first
    node = next_open(machine.free, lowest)
    while at < end and node < len(machine.nodes):
        is_on = machine.nodes[node].state == ON
        if is_on or others > 0:
            machine.cells[at] = node
            at += 1
            others -= 0 if is_on else 1
        node = next_open(machine.free, node + 1)
    return at == end


@jit
def pick_row(machine, job, lowest, block_from, block_to):
    """Choose consecutive nodes for a job, outside a block; return whether there are enough.

    The lowest that are on; if there are none, the lowest that are free.
    """
    first, width = machine.first[job], machine.first[job + 1] - machine.first[job]
    begin = find_row(machine.on, len(machine.nodes), lowest, width, block_from, block_to)
    machine.scalars[0].all_on = np.int64(begin >= 0)
    if begin < 0:
        begin = find_row(machine.free, len(machine.nodes), lowest, width, block_from, block_to)
    if begin < 0:
        return False
    for i in range(width):
        machine.cells[first + i] = begin + i
    return True


@jit
def find_row(bits, n_nodes, lowest, width, block_from, block_to):
    """Return the first of ``width`` consecutive nodes whose bits are set, -1 if there are none."""
    begin = next_open(bits, lowest)
    while begin < n_nodes:
        end = next_closed(bits, begin)
        if begin < block_to and end > block_from:  # what is left of the row beside the block
            if block_from - begin >= width:
                return begin
            begin = max(begin, min(block_to, end))
        if end - begin >= width:
            return begin
        begin = next_open(bits, end)
    return -1


@jit
def next_closed(bits, node):
    """Return the first node from this one on whose bit is not set."""
    while node >> 6 < len(bits):
        word = ~bits[node >> 6] >> np.uint64(node & 63)
        if word != 0:
            return node + trailing_zeros(word)
        node = ((node >> 6) + 1) << 6
    return node


@jit
def count_below(machine, job, number):
    """Return how many of the nodes of a job have a number below this one."""
    low, high = machine.first[job], machine.first[job + 1]
    while low < high:
        middle = (low + high) // 2
        if machine.cells[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low - machine.first[job]


@jit
def ready_time(machine, time, job):
    """Return when all the nodes that were chosen for a job can be on [s]."""
    ready = time
    for i in range(machine.first[job], machine.first[job + 1]):
        record = machine.nodes[machine.cells[i]]
        if record.state == SWITCHING_ON:
            ready = max(ready, record.until)
        elif record.state != ON:
            since = record.until if record.state == SWITCHING_OFF else time
            ready = max(ready, since + machine.scalars[0].on_time)
    return ready


@jit
def take(machine, time, job):
    """Give a job the nodes that were chosen for it."""
    scalars, task = machine.scalars[0], machine.tasks[job]
    for i in range(machine.first[job], machine.first[job + 1]):
        node = np.int64(machine.cells[i])
        record = machine.nodes[node]
        scalars.charged -= charged_for(machine, record.state)
        count_free(machine, node, record.state, LESS)
        set_bit(machine.free, node, LESS)
        record.job = job
        wake(machine, time, node)
    if task.ready > time:
        scalars.charged += task.wait_mw
        machine.waiting[scalars.n_waiting] = job
        scalars.n_waiting += 1
        scalars.next_ready = min(scalars.next_ready, task.ready)
    else:
        scalars.charged += task.work_mw
        scalars.drawn += task.drawn_mw - width_of(machine, job) * scalars.idle_mw


@jit_part
def width_of(machine, job):
    """Return how many nodes a job takes."""
    return machine.first[job + 1] - machine.first[job]


@jit
def begin_waiting(machine, time):
    """Let jobs begin whose nodes are all on at ``time`` [s]."""
    scalars = machine.scalars[0]
    if scalars.next_ready > time:
        return
    scalars.next_ready = NEVER
    i = 0
    while i < scalars.n_waiting:
        job = machine.waiting[i]
        task = machine.tasks[job]
        if task.ready > time:
            scalars.next_ready = min(scalars.next_ready, task.ready)
            i += 1
            continue
        scalars.charged += task.work_mw - task.wait_mw
        scalars.drawn += task.drawn_mw - width_of(machine, job) * scalars.idle_mw
        scalars.n_waiting -= 1
        machine.waiting[i] = machine.waiting[scalars.n_waiting]


@jit
def release(machine, time, job):
    """Free the nodes of a job that has run; they remain on record."""
    scalars, task, width = machine.scalars[0], machine.tasks[job], width_of(machine, job)
    scalars.charged += width * scalars.rest_mw - task.work_mw
    scalars.drawn += width * scalars.idle_mw - task.drawn_mw
    for i in range(machine.first[job], machine.first[job + 1]):
        node = np.int64(machine.cells[i])
        record = machine.nodes[node]
        record.job = -1
        record.since = time
        set_bit(machine.free, node, MORE)
        count_free(machine, node, ON, MORE)
