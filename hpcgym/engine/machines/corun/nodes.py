"""Nodes that jobs share: which of them a job may take, which it takes, and what it gives back."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.corun.rates import is_delayed, renew_rate
from hpcgym.engine.machines.corun.state import BESIDE_HEAD, BRIEFLY, FILL, FIRST, NOBODY_THERE, PART
from hpcgym.engine.passes.node_bits import next_open


@jit_part
def nodes_with_room(machine, job):
    """Return how many nodes there are on which a job may find room, whoever is there."""
    scalars = machine.scalars[0]
    if machine.tasks[job].placement == PART:
        return scalars.n_idle + scalars.n_open
    return scalars.n_idle


@jit_part
def alike(machine, job):
    """Return a number for all jobs that may take the same nodes, whatever they are like."""
    task = machine.tasks[job]
    return task.code if task.placement == PART else len(machine.alone)


@jit_part
def was_refused(machine, job, guard):
    """Return whether a job like this was refused so few nodes since anything changed."""
    nodes = machine.tasks[job].nodes
    if nodes_with_room(machine, job) < nodes:
        return True
    refused, row = machine.refused, alike(machine, job)
    return refused[guard, row, 1] == machine.scalars[0].version and nodes >= refused[guard, row, 0]


@jit
def choose(machine, sim, jobs, progress, job, guard):
    """Write the nodes that a job would take into its cells; return whether there are enough.

    ``guard``: what must be left alone, FREELY, BRIEFLY or BESIDE_HEAD.
    """
    if was_refused(machine, job, guard):
        return False
    task = machine.tasks[job]
    if task.placement == PART:
        gather(machine, sim, jobs, progress, job, guard)
        rank_candidates(machine)
    else:
        gather_idle(machine, job, guard)
    chosen, slack = 0, machine.scalars[0].slack
    for i in range(machine.scalars[0].n_candidates):
        node = machine.order[1, i]
        if guard == BESIDE_HEAD and costs_head(machine, sim, job, node):
            if slack == 0:
                continue
            slack -= 1
        machine.cells[task.first + chosen] = node
        chosen += 1
        if chosen == task.nodes:
            return True
    # what was refused before, if nothing has changed since, was more
    machine.refused[guard, alike(machine, job), 0] = task.nodes
    machine.refused[guard, alike(machine, job), 1] = machine.scalars[0].version
    return False


@jit
def gather_idle(machine, job, guard):
    """List the idle nodes by number: so many as a job needs, or all if some must be left."""
    most = len(machine.free) if guard == BESIDE_HEAD else machine.tasks[job].nodes
    found, node = 0, next_open(machine.idle, 0)
    while node < len(machine.free) and found < most:
        machine.order[1, found] = node
        found += 1
        node = next_open(machine.idle, node + 1)
    machine.scalars[0].n_candidates = found


@jit
def gather(machine, sim, jobs, progress, job, guard):
    """List the nodes that a job with a part of each may take, with their levels."""
    task, n_nodes, n_codes = machine.tasks[job], len(machine.free), len(machine.alone)
    by_number = machine.scalars[0].partners == FIRST
    found, node = 0, next_open(machine.open, 0)
    while node < n_nodes:
        level = level_of(machine, sim, jobs, progress, job, node, guard)
        if level >= 0:
            machine.level[node] = 1 if by_number else level
            machine.order[0, found] = node
            found += 1
        node = next_open(machine.open, node + 1)
    level = 1 + machine.rank[task.code, n_codes]
    if by_number:
        level = 1
    elif machine.scalars[0].partners == FILL:
        level = n_codes + 2
    most = found + (n_nodes if guard == BESIDE_HEAD else task.nodes)
    node = next_open(machine.idle, 0)
    while node < n_nodes and found < most:
        machine.level[node] = level
        machine.order[0, found] = node
        found += 1
        node = next_open(machine.idle, node + 1)
    machine.scalars[0].n_candidates = found


@jit
def level_of(machine, sim, jobs, progress, job, node, guard):
    """Return how good a node in use is for a job, from 0; -1 if the job may not go there."""
    code, worst = machine.tasks[job].code, 0
    for k in range(machine.who.shape[1]):
        other = machine.who[node, k]
        if other == NOBODY_THERE:
            break
        if other == machine.scalars[0].beside:
            return 0
        beside = machine.tasks[other].code
        if machine.scalars[0].selective == 1 and machine.partner[code, beside] == 0:
            return -1
        if guard >= BRIEFLY and is_delayed(
            machine, jobs, progress, sim.time, sim.shadow, other, code
        ):
            machine.scalars[0].delays = 1
            return -1
        worst = max(worst, machine.rank[code, beside])
    return 1 + worst


@jit
def rank_candidates(machine):
    """Bring the nodes that may be taken into the order of their levels, then of their numbers."""
    bounds, order, level = machine.bounds, machine.order, machine.level
    found = machine.scalars[0].n_candidates
    if machine.scalars[0].partners != FILL:
        merge_by_number(machine)
    for b in range(len(bounds)):
        bounds[b] = 0
    for i in range(found):
        bounds[level[order[0, i]]] += 1
    before = 0
    for b in range(len(bounds)):
        before, bounds[b] = before + bounds[b], before
    for i in range(found):
        node = order[0, i]
        place = bounds[level[node]]
        bounds[level[node]] = place + 1
        order[1, place] = node


@jit
def merge_by_number(machine):
    """Merge nodes in use and idle ones, each by number, into one order by number."""
    order, found = machine.order, machine.scalars[0].n_candidates
    in_use = 0
    while in_use < found and machine.idle[order[0, in_use] >> 6] >> np.uint64(
        order[0, in_use] & 63
    ) & np.uint64(1) == np.uint64(0):
        in_use += 1
    i, k = 0, in_use
    for place in range(found):
        if k == found or (i < in_use and order[0, i] < order[0, k]):
            order[1, place] = order[0, i]
            i += 1
        else:
            order[1, place] = order[0, k]
            k += 1
    for place in range(found):
        order[0, place] = order[1, place]


@jit_part
def counts_for(machine, head, node, plan):
    """Return whether a node has room for the head once the jobs that the plan marks have left."""
    if machine.tasks[head].placement != PART:
        return machine.later[node] == machine.who.shape[1]
    if machine.later[node] == 0:
        return False
    if machine.scalars[0].selective == 1:
        for k in range(machine.who.shape[1]):
            other = machine.who[node, k]
            if other == NOBODY_THERE:
                break
            task = machine.tasks[other]
            if task.stamp != plan and machine.partner[machine.tasks[head].code, task.code] == 0:
                return False
    return True


@jit_part
def costs_head(machine, sim, job, node):
    """Return whether the head would lose a node if a job stayed on it past the shadow time."""
    if machine.counts[node] == 0:
        return False
    head, task = sim.head, machine.tasks[job]
    if machine.tasks[head].placement != PART or task.placement != PART or machine.later[node] == 1:
        return True
    code = machine.tasks[head].code
    return machine.scalars[0].selective == 1 and machine.partner[code, task.code] == 0


@jit
def reserve_beside(machine, sim, job):
    """Note that a job stays on its nodes past the shadow time."""
    task = machine.tasks[job]
    parts = 1 if task.placement == PART else machine.who.shape[1]
    for i in range(task.first, task.first + task.nodes):
        node = machine.cells[i]
        if costs_head(machine, sim, job, node):
            machine.counts[node] = 0
            machine.scalars[0].slack -= 1
        machine.later[node] -= parts


# --- Taking and giving back -----------------------------------------------------------------------


@jit_part
def write_bit(bits, node, value):
    """Set the bit of a node, or clear it."""
    word, bit = node >> 6, np.uint64(1) << np.uint64(node & 63)
    bits[word] = bits[word] | bit if value else bits[word] & ~bit


@jit
def take(machine, job):
    """Let a job have the nodes of its cells."""
    task, who, free = machine.tasks[job], machine.who, machine.free
    task.neighbours = 0
    for i in range(task.first, task.first + task.nodes):
        node = np.int64(machine.cells[i])
        k = 0
        while who[node, k] != NOBODY_THERE:
            machine.tasks[who[node, k]].neighbours += 1
            k += 1
        task.neighbours += k
        who[node, k] = job
        free[node] = free[node] - 1 if task.placement == PART else 0
        note_room(machine, node, k == 0)
    machine.scalars[0].version += 1


@jit_part
def note_room(machine, node, was_idle):
    """Write anew, after a job has come, whether a node is idle and whether it is open."""
    scalars = machine.scalars[0]
    if was_idle:
        write_bit(machine.idle, node, False)
        scalars.n_idle -= 1
        if machine.free[node] > 0:
            write_bit(machine.open, node, True)
            scalars.n_open += 1
    elif machine.free[node] == 0:
        write_bit(machine.open, node, False)
        scalars.n_open -= 1


@jit
def give_back(machine, job):
    """Free the nodes of a job that has ended; they remain on record."""
    task, who, free, scalars = machine.tasks[job], machine.who, machine.free, machine.scalars[0]
    parts = who.shape[1]
    for i in range(task.first, task.first + task.nodes):
        node = np.int64(machine.cells[i])
        k = 0
        while who[node, k] != job:
            machine.tasks[who[node, k]].neighbours -= 1
            k += 1
        while k + 1 < parts and who[node, k + 1] != NOBODY_THERE:
            who[node, k] = who[node, k + 1]
            machine.tasks[who[node, k]].neighbours -= 1
            k += 1
        who[node, k] = NOBODY_THERE
        was_full = free[node] == 0
        free[node] = free[node] + 1 if task.placement == PART else parts
        if k == 0:
            write_bit(machine.idle, node, True)
            scalars.n_idle += 1
            if not was_full:
                write_bit(machine.open, node, False)
                scalars.n_open -= 1
        elif was_full:
            write_bit(machine.open, node, True)
            scalars.n_open += 1
    scalars.version += 1


@jit
def renew_neighbours(machine, sim, jobs, progress, blocks, entries, job):
    """Renew the rates of those that have, or had, a part of the nodes of a job."""
    task = machine.tasks[job]
    if task.placement != PART:
        return
    machine.scalars[0].stamp += 1
    stamp = machine.scalars[0].stamp
    task.stamp = stamp
    for i in range(task.first, task.first + task.nodes):
        node = machine.cells[i]
        for k in range(machine.who.shape[1]):
            other = machine.who[node, k]
            if other == NOBODY_THERE:
                break
            if machine.tasks[other].stamp != stamp:
                machine.tasks[other].stamp = stamp
                renew_rate(machine, sim.time, jobs, progress, blocks, entries, other)
