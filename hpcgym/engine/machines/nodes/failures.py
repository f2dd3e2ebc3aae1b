"""Nodes that fail and are repaired; the jobs on them wait again.

A node that is down is an entry among the running jobs: one that holds all of the node until the
repair. So what fits, and when the head finds room, is worked out as always. Such an entry has the
number ``n_jobs + node``, and never ends: the loop stops at each failure and repair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_inline, jit_part
from hpcgym.engine.events import next_pass
from hpcgym.engine.loop import loop_of
from hpcgym.engine.machines.nodes import easy
from hpcgym.engine.machines.nodes.easy import release_ended
from hpcgym.engine.machines.nodes.filling import note_waiting
from hpcgym.engine.machines.nodes.placement import CELLS, Nodes, give_back, make_nodes, take
from hpcgym.engine.ordered import (
    BLOCK,
    block_at,
    find,
    insert,
)
from hpcgym.engine.passes.requeueing import (
    LOG,
    LOST,
    log_is_full,
    note_cells,
    note_lost,
    take_off,
    wait_again,
)
from hpcgym.engine.state import FOREVER, QUEUE, RUNNING
from hpcgym.schedule.records import records, whole_numbers

EVENTS = records(
    ("time", np.int64),  # [s]
    ("node", np.int64),
    ("until", np.int64),  # [s] when a failure will be repaired; -1 of a repair
)
SCALARS = whole_numbers(
    "next",  # the event that comes next
    *LOG,
)
_NEVER = np.int64(FOREVER)


class FailingNodes(NamedTuple):
    """Nodes, when they fail and are repaired, and what has been lost by it."""

    nodes: Nodes  # behind the jobs of the workload stand as many as there are nodes
    events: NDArray[np.void]  # EVENTS by time, of one time repairs first
    lost: NDArray[np.void]  # LOST
    cells: NDArray[np.void]  # CELLS of lost runs
    scalars: NDArray[np.void]  # (1,) SCALARS


def make_failing(
    needs: NDArray[np.int64],
    capacity: NDArray[np.int64],
    allocation: int,
    seed: int,
    failures: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    asks: NDArray[np.int64] | None = None,
) -> FailingNodes:
    """Return empty nodes that will fail.

    Parameters
    ----------
    needs, capacity, allocation, seed, asks : as :func:`make_nodes` takes them.
    failures : node, time and time of repair [s] of each.
    """
    n_jobs, n_nodes = len(needs), len(capacity)
    whole = np.column_stack([np.ones(n_nodes, np.int64), capacity])
    if asks is not None:  # nodes that are down do not wait for anything
        asks = np.concatenate([asks, np.zeros_like(capacity)])
    needs = np.concatenate([needs, whole])
    nodes = make_nodes(needs, capacity, allocation, seed, asks=asks)
    nodes.held["count"][n_jobs:] = 1
    own = nodes.held["first"][n_jobs:]
    nodes.cells["node"][own], nodes.cells["units"][own] = np.arange(n_nodes), 1
    node, time, repaired = failures
    events = np.empty(2 * len(node), EVENTS)
    events["node"] = np.concatenate([node, node])
    events["time"] = np.concatenate([repaired, time])
    events["until"] = np.concatenate([np.full(len(node), -1), repaired])
    scalars = np.zeros(1, SCALARS)
    most = int(capacity[:, 0].sum())
    scalars["most"] = most
    order = np.lexsort((events["until"] >= 0, events["time"]))
    return FailingNodes(
        nodes, events[order], np.empty(2 * most, LOST), np.empty(4 * most, CELLS), scalars
    )


@jit_inline
def advance(
    sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine, stop_time
):
    """Advance to the next pass: after an event, a repair or a failure.

    Repairs come before all else of their time, so that no prediction expires with them; failures
    come in the pass. False also where the logs have to be made longer first: ``full`` says so.
    """
    own = machine.scalars[0]
    if log_is_full(machine):
        return False
    repaired = False
    while True:
        time, repairs = _NEVER, False
        if own.next < len(machine.events):
            time = machine.events[own.next].time
            repairs = machine.events[own.next].until < 0
        until = time - 1 if repairs else time
        if repaired:
            until = sim.time
        by_event = next_pass(
            sim, jobs, progress, users, history, blocks, entries, freed, idle, ended,
            min(stop_time, until),
        )  # fmt: skip
        if by_event or repaired:
            return True
        over = sim.next == len(jobs) and blocks[QUEUE].count == 0
        over = over and sim.started == sim.ended + own.lost
        if time > stop_time or time == FOREVER or over:
            return False
        sim.time = time
        if not repairs:
            return True
        repair(sim, jobs, blocks, entries, machine)
        repaired = True


@jit
def repair(sim, jobs, blocks, entries, machine):
    """Let the nodes be up again that are repaired now."""
    own, events = machine.scalars[0], machine.events
    while own.next < len(events) and events[own.next].time == sim.time:
        if events[own.next].until >= 0:
            break
        holder = len(jobs) + events[own.next].node
        position, block, i = find(blocks, entries, RUNNING, sim.time, holder)
        sim.free += entries[i].width
        take_off(blocks, entries, position, block, i)
        give_back(machine.nodes, holder)
        own.next += 1
    sim.changed = 1


@jit
def fail(sim, jobs, keys, scores, progress, blocks, entries, narrow, machine):
    """Let the nodes be down that fail now, and the jobs on them wait again."""
    own, events = machine.scalars[0], machine.events
    while own.next < len(events) and events[own.next].time == sim.time:
        node, until = events[own.next].node, events[own.next].until
        while True:
            position, block, i = first_on(blocks, entries, machine.nodes, node, len(jobs))
            if position < 0:
                break
            job = entries[i].job
            take_off(blocks, entries, position, block, i)
            give_back(machine.nodes, job)
            note_waiting(machine.nodes, job, np.int64(1))
            note_lost(sim, progress, machine, job)
            note_cells(machine, machine.nodes, job)
            sim.free += jobs[job].processors
            wait_again(sim, jobs, keys, scores, progress, blocks, entries, narrow, job)
        holder, width = len(jobs) + node, machine.nodes.capacity[node, 0]
        take(machine.nodes, holder)
        sim.free -= width
        insert(blocks, entries, RUNNING, until, holder, _NEVER, width)
        sim.changed = 1
        own.next += 1


@jit
def first_on(blocks, entries, nodes, node, n_jobs):
    """Return where the first running job stands that has units on a node; -1 if none has."""
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            if job >= n_jobs:  # a node that is down
                continue
            first = nodes.held[job].first
            for c in range(first, first + nodes.held[job].count):
                if nodes.cells[c].node == node:
                    return k, block, i
    return -1, -1, -1


@jit_part
def do_pass(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, machine,
):  # fmt: skip
    """Let nodes fail that fail now; then do what EASY does on nodes."""
    own = machine.scalars[0]
    if own.next < len(machine.events) and machine.events[own.next].time == sim.time:
        release_ended(sim, ended, machine.nodes)
        fail(sim, jobs, keys, scores, progress, blocks, entries, narrow, machine)
    easy.do_pass(
        jobs, keys, scores, users,
        sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
        ended, machine.nodes,
    )  # fmt: skip


run = loop_of(advance, do_pass)
