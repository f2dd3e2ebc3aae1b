"""Passes with reservations for the first few jobs that wait, over nodes: of nodes by name."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.nodes import conservative, table
from hpcgym.engine.machines.nodes.conservative import (
    commit,
    earliest,
    foresee,
    forget_ended,
    withdraw,
)
from hpcgym.engine.machines.nodes.filling import note_waiting, weigh, weigh_all
from hpcgym.engine.machines.nodes.placement import WINDOWS, find_nodes, move, take
from hpcgym.engine.machines.nodes.placement import fits as fits_free
from hpcgym.engine.passes.node_bits import add, remove
from hpcgym.engine.passes.planning import Parts, loop_planned
from hpcgym.engine.passes.preempting import CANCEL, REQUEUE, Stopping, loop_preempting
from hpcgym.engine.passes.requeueing import note_cells
from hpcgym.engine.passes.restricted import Restricting, loop_restricted
from hpcgym.engine.state import FOREVER
from hpcgym.scheduler.allocations import FIRST_FIT


@jit_part
def before(sim, profile, ended, nodes):
    """Free the nodes of jobs that have ended, and note who waits now."""
    sim.by_plan = np.int64(sim.every > 0)
    forget_ended(sim, ended, nodes)
    for job in range(sim.next - sim.arrived, sim.next):
        note_waiting(nodes, job, np.int64(1))


@jit_part
def plan_running(sim, blocks, entries, profile, nodes):
    """Let the plan be what the running jobs give back at their predicted ends."""
    if sim.every > 0:
        table.plan_ends(sim, blocks, entries, nodes)
    else:
        conservative.plan_running(sim, blocks, entries, profile, nodes)


@jit_part
def hold_place(sim, jobs, progress, profile, line, nodes, job, last):
    """Give a job a reservation at the earliest time, unless that is later than ``last``."""
    if sim.every > 0:
        line[job].reserved = table.find_place(sim, progress, nodes, job, last)
        if sim.time < line[job].reserved <= last:
            table.note_reserved(sim, progress, nodes, job, line[job].reserved)
    else:
        conservative.hold_place(sim, jobs, progress, profile, line, nodes, job, last)


@jit_part
def place_now(sim, jobs, progress, profile, line, nodes, job):
    """Let a job have nodes from now on, if they are free throughout its run."""
    if jobs[job].processors > sim.free:
        return False
    if sim.every > 0:
        return table.starts_now(sim, progress, nodes, job, False)
    fits = earliest(sim, progress, nodes, job, sim.time + 1) == sim.time
    if fits:
        commit(sim, progress, line, nodes, job, sim.time)
    return fits


@jit_part
def begin(sim, jobs, progress, blocks, entries, nodes, job):
    """Let a job take its nodes now, and give them back at its predicted end."""
    if sim.every > 0:
        withdraw(nodes, job)
        table.note_begun(sim, progress, nodes, job)
        take(nodes, job)
    else:
        conservative.begin(sim, jobs, progress, blocks, entries, nodes, job)


@jit_part
def free_until(sim, profile, width):
    """Return that they may be free for ever: the plan of nodes is looked up for each job."""
    return np.int64(FOREVER)


@jit_part
def fits_now(sim, jobs, progress, profile, line, nodes, job):
    """Let a job have nodes beside those that run, if there are any."""
    if jobs[job].processors > sim.free:
        return False
    if nodes.scalars[0].allocation != FIRST_FIT:  # plans have weighed what is free later
        weigh_all(nodes, nodes.free)
    return find_nodes(nodes, job, False)


@jit_part
def fits_around(sim, jobs, progress, profile, line, nodes, job):
    """Let a job have nodes beside those that run, and the windows while it runs, if there are."""
    if sim.every == 0:
        return place_now(sim, jobs, progress, profile, line, nodes, job)
    return jobs[job].processors <= sim.free and table.starts_now(sim, progress, nodes, job, True)


@jit_part
def welcome(nodes, job):
    """Note that a job waits now."""
    note_waiting(nodes, job, np.int64(1))


@jit_part
def close(sim, profile, nodes, holder, begin, end):
    """Take nodes from the plan for the time of a window."""
    if sim.every > 0:
        table.shut(nodes, WINDOWS, begin, end, holder)
    else:
        nodes.scalars[0].overdrawn = 1  # jobs may run there that should have ended
        foresee(nodes, begin, holder, np.int64(-1))
        foresee(nodes, end, holder, np.int64(1))


@jit_part
def free(sim, jobs, nodes, job, sign):
    """Give back the nodes of a job, or take them again."""
    sim.free += sign * jobs[job].processors
    move(nodes, job, sign)


@jit_part
def has_room(sim, jobs, nodes, job):
    """Return whether a job finds nodes beside those that run."""
    return jobs[job].processors <= sim.free and fits_free(nodes, job)


@jit_part
def stop(machine, nodes, job, mode):
    """Note which nodes a job had that is stopped, and that it waits if it does."""
    withdraw(nodes, job)
    if mode != CANCEL:
        note_cells(machine, nodes, job)
    if mode == REQUEUE:
        note_waiting(nodes, job, np.int64(1))


@jit_part
def lend(sim, jobs, nodes, job, sign):
    """Give back the cores of a job, or take them again; what else it has it keeps."""
    sim.free += sign * jobs[job].processors
    hide(sim, jobs, nodes, job, sign)


@jit_part
def hide(sim, jobs, nodes, job, sign):
    """Take the cores of a job from what is free, where ``sign`` is -1, or add them to it.

    Less than nothing may be free on a node then. ``sim.free`` is only a bound, and stays.
    """
    nodes.scalars[0].version += 1
    nodes.scalars[0].overdrawn = 1
    first = nodes.held[job].first
    for c in range(first, first + nodes.held[job].count):
        node = np.int64(nodes.cells[c].node)
        nodes.free[node, 0] += sign * np.int64(nodes.cells[c].units) * nodes.needs[job, 1]
        if nodes.free[node, 0] > 0:
            add(nodes.open, node)
        else:
            remove(nodes.open, node)
        weigh(nodes, nodes.free, node)


@jit_part
def goes_on(sim, jobs, nodes, job):
    """Return whether the cores that a suspended job had are free."""
    first = nodes.held[job].first
    for c in range(first, first + nodes.held[job].count):
        cores = np.int64(nodes.cells[c].units) * nodes.needs[job, 1]
        if nodes.free[np.int64(nodes.cells[c].node), 0] < cores:
            return False
    return True


@jit
def meets(nodes, one, other):
    """Return whether two jobs have a node in common."""
    first, begin = nodes.held[one].first, nodes.held[other].first
    for c in range(first, first + nodes.held[one].count):
        for d in range(begin, begin + nodes.held[other].count):
            if nodes.cells[c].node == nodes.cells[d].node:
                return True
    return False


@jit_part
def plan_end(sim, profile, nodes, job, width, end):
    """Let the plan give back all that a suspended job has when it is expected to end."""
    if sim.every > 0:
        table.note(nodes, end, job)
    else:
        foresee(nodes, end, job, np.int64(1))


_PARTS = Parts(
    before, plan_running, hold_place, place_now, fits_now, free_until, begin, has_room
)  # fmt: skip
_RESTRICTING = Restricting(welcome, close, fits_around)
_STOPPING = Stopping(free, stop, lend, hide, goes_on, meets, plan_end)

run = loop_planned(_PARTS)
run_restricted = loop_restricted(_PARTS, _RESTRICTING)
run_preempting = loop_preempting(_PARTS, _RESTRICTING, _STOPPING)
