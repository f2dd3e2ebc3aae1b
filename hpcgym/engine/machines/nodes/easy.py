"""A scheduling pass over nodes with no reservation or one (EASY), or with starts from outside.

The rules are those of :mod:`hpcgym.engine.machines.pool.easy`; what differs is when a job fits. The
head's reservation is no set of nodes, but the promise that its units will find room at the shadow
time: a job that runs on past that time may take of each node only what the head can spare.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.engine.events import enqueue, leave_queue, start
from hpcgym.engine.holding import needed
from hpcgym.engine.loop import loop_of, next_event_pass
from hpcgym.engine.machines.nodes.filling import goes_by_demand, held_by, note_waiting, shuffle
from hpcgym.engine.machines.nodes.placement import (
    ANY_UNITS,
    change,
    copy_room,
    count_held,
    find_nodes,
    fits,
    give_back,
    take,
)
from hpcgym.engine.ordered import BLOCK, NOTHING, block_at
from hpcgym.engine.passes.backfilling import sweep_of, sweep_scored_of
from hpcgym.engine.passes.heads import (
    asks_for_order,
    count_backfilled,
    first_in_order,
    promise,
)
from hpcgym.engine.state import (
    AN_ORDER,
    EACH_START,
    NOBODY,
    QUEUE,
    RUNNING,
    SCORED,
    SELECTION,
    SUBMISSION,
)
from hpcgym.scheduler.allocations import RANDOM


@jit_part
def release_ended(sim, ended, nodes):
    """Free the nodes of the jobs that have ended since the last pass."""
    while nodes.scalars[0].released < sim.ended:
        give_back(nodes, ended[nodes.scalars[0].released])
        nodes.scalars[0].released += 1


@jit_part
def settle_arrival(sim, keys, blocks, nodes):
    """Return whether a single new job, not yet queued, can change nothing at this pass.

    It waits behind the head and does not fit, or nothing may start before the head. Those that
    waited before it found no nodes at the last pass; that may change once others have started, for
    which nodes are passed over depends on what else is free; and with the new job, where it
    depends on who waits.
    """
    head, job = sim.head, sim.next - 1
    if blocks[QUEUE].count == 0 or sim.changed == 1 or head < 0 or sim.primary >= SCORED:
        return False
    if sim.primary != SUBMISSION and (sim.threshold >= 0 or keys[job] < keys[head]):
        return False
    if sim.depth == 0:
        return True
    if nodes.scalars[0].started_before_head == 1 or goes_by_demand(nodes):
        return False
    return not fits(nodes, job)


@jit_part
def may_wait(sim, jobs, line, blocks, entries, nodes):
    """Return whether the pass is to end, or to be interrupted for new orders, before all else."""
    if sim.keeps == 0 and none_fits(sim, jobs, line, blocks, entries, nodes):
        sim.changed = 1
        return True
    return asks_for_order(sim)


@jit
def none_fits(sim, jobs, line, blocks, entries, nodes):
    """Return whether no queued job fits now."""
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if has_room(sim, jobs, line, nodes, entries[i].job):
                return False
    return True


@jit_part
def has_room(sim, jobs, line, nodes, job):
    """Return whether a job may start now as far as processors and nodes go."""
    return needed(sim, jobs, line, job) <= sim.free and fits(nodes, job)


@jit
def find_shadow(sim, jobs, progress, blocks, entries, line, nodes):
    """Find when the head fits, what is free then and how much of that it can spare."""
    head, later, needs = sim.head, nodes.later, nodes.needs
    copy_room(later, nodes.free)
    units, most = needs[head, 0], needs[head, 0] + ANY_UNITS
    found = count_held(later, needs, head)
    missing = needed(sim, jobs, line, head) - sim.free
    time = -1
    k = 0
    while k < blocks[RUNNING].in_use:
        block = block_at(blocks, RUNNING, k)
        k += 1
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            # all that is released at the shadow time counts
            if found >= units and missing <= 0 and entries[i].key > time:
                k = blocks[RUNNING].in_use
                break
            time = entries[i].key
            missing -= entries[i].width
            job = entries[i].job
            first = nodes.held[job].first
            for c in range(first, first + nodes.held[job].count):
                node = nodes.cells[c].node
                found -= held_by(later, node, needs, head, most)
                for r in range(later.shape[1]):
                    later[node, r] += nodes.cells[c].units * needs[job, r + 1]
                found += held_by(later, node, needs, head, most)
    sim.shadow = time
    sim.extra = -missing
    nodes.scalars[0].guarded = head
    nodes.scalars[0].slack = found - units
    nodes.scalars[0].shadows += 1
    promise(sim, progress, head, time)


@jit
def may_start(machine, sim, jobs, progress, job):
    """Return whether a job may start now, before the head; its cells are written then."""
    nodes, line = machine
    if not has_room(sim, jobs, line, nodes, job):
        return False
    lasts = sim.time + progress[job].predicted > sim.shadow - sim.strict
    if lasts and (sim.strict == 1 or (sim.holds > 0 and jobs[job].processors > sim.extra)):
        return False
    if not find_nodes(nodes, job, lasts):
        return False
    if lasts:
        change(nodes, nodes.later, job, np.int64(-1))
    nodes.scalars[0].started_before_head = 1
    return True


@jit_part
def begin_before_head(machine, sim, jobs, progress, blocks, entries, idle, job):
    """Start a job, no longer in the queue, on the nodes of its cells."""
    take(machine[0], job)
    count_backfilled(sim, progress, job, jobs[job].processors, progress[job].predicted)
    start(sim, jobs, progress, blocks, entries, idle, job)


@jit_part
def bounds(machine, sim):
    """Return how much a job can have at most: of nodes no more is known."""
    return sim.free, NOTHING, NOTHING


sweep = sweep_of(may_start, begin_before_head, bounds, knows_narrow=False)
sweep_scored = sweep_scored_of(may_start, begin_before_head)


@jit_part
def serve_queue(sim, jobs, keys, scores, progress, blocks, entries, line, narrow, idle, nodes):
    """Start heads while they fit, then jobs behind the first head that does not."""
    if sim.asks == EACH_START:
        if not none_fits(sim, jobs, line, blocks, entries, nodes):
            sim.asked = AN_ORDER
        return
    if sim.primary >= SELECTION and may_wait(sim, jobs, line, blocks, entries, nodes):
        return
    head = -1
    while blocks[QUEUE].count > 0:
        head = first_in_order(sim, jobs, scores, progress, blocks, entries)
        if head < 0:
            sim.asked = AN_ORDER
            return
        if not has_room(sim, jobs, line, nodes, head):
            break
        find_nodes(nodes, head, False)
        take(nodes, head)
        leave_queue(sim, jobs, progress, keys, blocks, entries, head)
        start(sim, jobs, progress, blocks, entries, idle, head)
        sim.changed = 1
        sim.selected = -1
        head = -1
        if sim.primary == SELECTION and may_wait(sim, jobs, line, blocks, entries, nodes):
            return
    if sim.keeps == 0:
        sim.selected = -1
    if head < 0 or sim.depth == 0:
        sim.head = head
        sim.changed = 0
        return
    if sim.changed == 1 or head != sim.head:
        sim.changed = 0
        sim.head = head
        find_shadow(sim, jobs, progress, blocks, entries, line, nodes)
    nodes.scalars[0].started_before_head = 0
    if sim.secondary >= SCORED:
        sweep_scored((nodes, line), sim, jobs, keys, scores, progress, blocks, entries, idle)
    else:
        sweep((nodes, line), sim, jobs, keys, progress, blocks, entries, narrow, idle)


@jit_entry
def start_chosen(jobs, keys, sim, progress, blocks, entries, idle, nodes, job, placed):
    """Start a queued job that has been chosen from outside; return whether it fits.

    ``placed``: where its cells say, else where the allocation does. An allocation at random draws
    an order for a job that has its nodes too: else the views of later passes would have the same.
    """
    if placed:
        if not cells_fit(nodes, job):
            return False
        if nodes.scalars[0].allocation == RANDOM:
            shuffle(nodes)
    elif not fits(nodes, job) or not find_nodes(nodes, job, False):
        return False
    take(nodes, job)
    leave_queue(sim, jobs, progress, keys, blocks, entries, job)
    start(sim, jobs, progress, blocks, entries, idle, job)
    sim.changed = 1
    return True


@jit
def cells_fit(nodes, job):
    """Return whether the nodes that the cells of a job name have room for its units there."""
    first = nodes.held[job].first
    for i in range(first, first + nodes.held[job].count):
        units = np.int64(nodes.cells[i].units)
        if held_by(nodes.free, nodes.cells[i].node, nodes.needs, job, units) < units:
            return False
    return True


@jit_part
def do_pass(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, machine,
):  # fmt: skip
    """Free the nodes of jobs that have ended, and start what may start."""
    if sim.asks == EACH_START and sim.asked == AN_ORDER:  # what was to start has started
        sim.asked = 0
        return
    release_ended(sim, ended, machine)
    if sim.holds > 0:  # more may come to fit as time passes
        sim.changed = 1
    arrived = sim.arrived
    sim.arrived = 0
    settled = arrived == 1 and sim.asks == NOBODY and settle_arrival(sim, keys, blocks, machine)
    for job in range(sim.next - arrived, sim.next):
        note_waiting(machine, job, np.int64(1))
        enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
    if not settled and blocks[QUEUE].count > 0:
        serve_queue(sim, jobs, keys, scores, progress, blocks, entries, line, narrow, idle, machine)


run = loop_of(next_event_pass, do_pass)
