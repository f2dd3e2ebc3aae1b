"""A simulation that begins with jobs that run and jobs that wait.

Jobs that run are started in the order in which they did, at the times at which they did; what has
expired of their predictions since then is corrected as the event loop does it. Jobs that wait stand
in the queue. All are the first jobs of the simulation, so that the kernels go on from there without
knowing of it.

The state is that just before ``begin``: what happens in that second is the first event. Where
nobody has looked at the queue yet, as in a trace, a pass is due at ``begin`` in any case.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit_entry
from hpcgym.engine.events import (
    end_first,
    enqueue,
    expire,
    first_predicted_end,
    next_end,
    start,
)
from hpcgym.engine.machines.nodes.conservative import commit, foresee
from hpcgym.engine.machines.nodes.filling import note_waiting
from hpcgym.engine.machines.nodes.placement import find_nodes, take
from hpcgym.engine.machines.pool.conservative import hold_steps, list_queue, profile_of_running
from hpcgym.engine.machines.pool.earlier import FINDS_A_HOLE, SLIDES, note
from hpcgym.engine.machines.pool.profile import step_at
from hpcgym.engine.ordered import BLOCK, block_at, insert
from hpcgym.engine.state import (
    A_CORRECTION,
    A_PREDICTION,
    A_RENEWAL,
    FOREVER,
    KILL,
    PER_EVENT,
    QUEUE,
    RUNNING,
    UNCORRECTED,
)


@jit_entry
def list_running(jobs, progress, blocks, entries, running):
    """List the jobs that run, (n_running,) int64, in empty lists, before their ends are known."""
    for job in running:
        start, width = progress[job].start, jobs[job].processors
        insert(blocks, entries, RUNNING, start, job, start + jobs[job].run, width)


@jit_entry
def start_running(jobs, sim, progress, blocks, entries, idle, running, number):
    """Put the jobs that run on the machine, as predicted when it was asked for.

    Parameters
    ----------
    running : (n_running,) int64, jobs that run, in the order of their starts, which ``progress``
        has.
    number : of jobs that were submitted before the simulation begins.
    """
    if sim.correction == KILL:
        for job in range(number):
            jobs[job].run = min(jobs[job].run, progress[job].predicted)
    for job in running:
        sim.time = progress[job].start
        start(sim, jobs, progress, blocks, entries, idle, job)


@jit_entry
def catch_up(sim, jobs, progress, blocks, entries, time, due):
    """Correct the predictions of running jobs that have ended by ``time``, that second only if due.

    Where a new one is asked for, ``sim.asked`` says so. Called again, it goes on.
    """
    while sim.correction != UNCORRECTED and first_predicted_end(blocks, entries) < time:
        sim.time = first_predicted_end(blocks, entries)
        expire(sim, jobs, progress, blocks, entries)
        if sim.asked == A_CORRECTION:
            return
    if due == 1 and sim.correction != UNCORRECTED:
        # what expires in the second in which a pass is due does so before it
        sim.time = time
        expire(sim, jobs, progress, blocks, entries)


@jit_entry
def line_up(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, narrow, freed, idle,
    ended, number, time, due,
):  # fmt: skip
    """Put the jobs that wait into the queue; see :func:`start_running`.

    Parameters
    ----------
    time : [s] when the simulation begins.
    due : 1 if a pass is due then.
    """
    sim.time = time if due == 1 else time - 1
    sim.next = number
    for job in range(number):
        if progress[job].start < 0:
            enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
    sim.changed = 1
    sim.expired = 1  # no reservation has been made
    if due == 1:
        while sim.passes != PER_EVENT and next_end(blocks) == time:
            end_first(sim, jobs, progress, users, history, blocks, entries, freed, idle, ended)
        # an event by itself, or one of all that happens in this second
        sim.asked = A_RENEWAL if sim.passes == PER_EVENT else A_PREDICTION
        sim.pass_due = 1


@jit_entry
def hold(jobs, sim, progress, blocks, entries, profile, line, narrow, reserved):
    """Let the jobs that wait have these reservations, ``reserved`` (n_jobs,) [s]."""
    profile_of_running(sim, blocks, entries, profile, ())
    list_queue(jobs, progress, blocks, entries, narrow)
    sim.expired = 0
    sim.may_advance = 1
    sim.first_reserved = FOREVER
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            time = reserved[job]
            until = time + progress[job].predicted
            line[job].reserved = time
            sim.first_reserved = min(sim.first_reserved, time)
            if until > sim.time:  # some of it is left
                step = step_at(sim, profile, sim.profile_first, max(time, sim.time))
                hold_steps(sim, profile, line, job, jobs[job].processors, step, until)
            # what has been given back since each was last tried is not known
            line[job].loose = SLIDES | FINDS_A_HOLE
            line[job].hole, line[job].hole_time = sim.profile_first, sim.time
            line[job].last_begin = FOREVER
            note(line, job)


@jit_entry
def place_running(nodes, running, placed):
    """Give jobs that run their nodes: where their cells say if ``placed``, else by the allocation.

    Return the first of them that finds no room, -1 if all do.
    """
    for job in running:
        note_waiting(nodes, job, np.int64(1))  # and nobody else
        if not placed and not find_nodes(nodes, job, False):
            return job
        take(nodes, job)
    return -1


@jit_entry
def hold_on_nodes(sim, progress, blocks, entries, line, nodes, reserved):
    """Let the jobs that wait have these reservations, on the nodes that their cells say."""
    sim.expired = 0
    sim.may_advance = 1
    sim.first_reserved = FOREVER
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            foresee(nodes, entries[i].key, entries[i].job, np.int64(1))
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            commit(sim, progress, line, nodes, job, reserved[job])
