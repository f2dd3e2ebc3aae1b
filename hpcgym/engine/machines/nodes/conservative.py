"""Conservative backfilling over nodes: a start time and nodes are reserved for every queued job.

The rules are those of :mod:`hpcgym.engine.machines.pool.conservative`. The plan is a list of times
at which jobs will take their nodes and give them back; a job's reservation begins at the first of
these times, or now, from which nodes are free throughout its predicted run time.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import enqueue
from hpcgym.engine.loop import loop_of, next_event_pass
from hpcgym.engine.machines.nodes.filling import FIRST_FIT, held_by, note_waiting, weigh_all
from hpcgym.engine.machines.nodes.placement import (
    change,
    copy_room,
    count_held,
    give_back,
    place,
    take,
)
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.passes.reserving import compress_of, replan_of
from hpcgym.engine.state import FOREVER, RUNNING

NOW, WITHIN = 0, 1  # rows of `ahead`: free at a time, and further on in the window that begins then


@jit_part
def do_pass(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, machine,
):  # fmt: skip
    """Reserve for the new jobs and start those whose reservation is now."""
    forget_ended(sim, ended, machine)
    arrived = sim.arrived
    sim.arrived = 0
    for job in range(sim.next - arrived, sim.next):
        note_waiting(machine, job, np.int64(1))
    if sim.expired == 1:
        replan(sim, jobs, scores, progress, blocks, entries, profile, line, machine)
    for job in range(sim.next - arrived, sim.next):
        reserve(sim, jobs, progress, profile, line, machine, job)
        enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
    compress(
        sim, jobs, keys, scores, progress, blocks, entries, profile, line, narrow, idle, machine
    )  # fmt: skip


@jit_part
def forget_ended(sim, ended, nodes):
    """Free the nodes of the jobs that have ended since the last pass, now and in the plan."""
    while nodes.scalars[0].released < sim.ended:
        job = ended[nodes.scalars[0].released]
        give_back(nodes, job)
        withdraw(nodes, job)
        nodes.scalars[0].released += 1
    if sim.ended_early > 0:  # some ended before their predicted end
        sim.may_advance = 1
        sim.ended_early = 0


@jit
def foresee(nodes, time, job, sign):
    """Put what a job takes or gives back at that time into the plan.

    Of one time, what is given back comes first.
    """
    i = nodes.scalars[0].n_events
    while i > 0 and (
        nodes.plan[i - 1].time > time
        or (nodes.plan[i - 1].time == time and nodes.plan[i - 1].sign < sign)
    ):
        i -= 1
    put(nodes, i, time, job, sign)


@jit
def put(nodes, place, time, job, sign):
    """Put what a job takes or gives back into the plan at a place; all from there on move up."""
    for i in range(nodes.scalars[0].n_events, place, -1):
        nodes.plan[i].time = nodes.plan[i - 1].time
        nodes.plan[i].job = nodes.plan[i - 1].job
        nodes.plan[i].sign = nodes.plan[i - 1].sign
    nodes.scalars[0].n_events += 1
    nodes.plan[place].time = time
    nodes.plan[place].job = job
    nodes.plan[place].sign = sign


@jit
def withdraw(nodes, job):
    """Take all of a job out of the plan."""
    kept = 0
    for i in range(nodes.scalars[0].n_events):
        if nodes.plan[i].job != job:
            nodes.plan[kept].time = nodes.plan[i].time
            nodes.plan[kept].job = nodes.plan[i].job
            nodes.plan[kept].sign = nodes.plan[i].sign
            kept += 1
    nodes.scalars[0].n_events = kept


@jit
def reserve(sim, jobs, progress, profile, line, nodes, job):
    """Give a job a reservation at the earliest time; the first is what it is promised."""
    hold_place(sim, jobs, progress, profile, line, nodes, job, np.int64(FOREVER))
    if progress[job].promised < 0:
        progress[job].promised = line[job].reserved


@jit_part
def hold_place(sim, jobs, progress, profile, line, nodes, job, last):
    """Give a job a reservation at the earliest time, unless that is later than ``last``."""
    time = earliest(sim, progress, nodes, job, np.int64(FOREVER))
    line[job].reserved = time
    if time <= last:
        commit(sim, progress, line, nodes, job, time)


@jit_part
def commit(sim, progress, line, nodes, job, time):
    """Put the reservation of a job, whose cells are written, into the plan."""
    foresee(nodes, time, job, np.int64(-1))
    foresee(nodes, time + progress[job].predicted, job, np.int64(1))
    line[job].reserved = time
    sim.first_reserved = min(sim.first_reserved, time)


@jit
def earliest(sim, progress, nodes, job, latest):
    """Return the first time before ``latest`` at which a job could start, and write its cells.

    If there is none, ``latest`` and its cells are what they were.
    """
    now, units = nodes.ahead[NOW], nodes.needs[job, 0]
    copy_room(now, nodes.free)
    found = count_held(now, nodes.needs, job)
    time = sim.time
    i = 0
    while True:
        while i < nodes.scalars[0].n_events and nodes.plan[i].time <= time:
            found += shift(nodes, now, i, job)
            i += 1
        end = time + progress[job].predicted + sim.strict
        if found >= units and lasts(nodes, job, i, end, found):
            if nodes.scalars[0].allocation != FIRST_FIT:
                weigh_all(nodes, nodes.later)
            place(nodes, nodes.later, job, False, False)
            return time
        # once all that is planned is over, the machine is empty, and any job fits
        time = nodes.plan[i].time
        if time >= latest:
            return latest


@jit
def lasts(nodes, job, i, end, found):
    """Return whether a job fits what is free throughout up to ``end``, which ``later`` is then.

    ``found``: how many of its units fit now. What comes next in the plan is its entry ``i``.
    """
    within, later, needs = nodes.ahead[WITHIN], nodes.later, nodes.needs
    units, most = needs[job, 0], needs[job, 0] + 2**40
    copy_room(within, nodes.ahead[NOW])
    copy_room(later, within)
    while i < nodes.scalars[0].n_events and nodes.plan[i].time < end and found >= units:
        other, sign = nodes.plan[i].job, nodes.plan[i].sign
        change(nodes, within, other, sign)
        i += 1
        if sign > 0:
            continue
        first = nodes.held[other].first
        for c in range(first, first + nodes.held[other].count):
            node = np.int64(nodes.cells[c].node)
            found -= held_by(later, node, needs, job, most)
            for r in range(later.shape[1]):
                later[node, r] = min(later[node, r], within[node, r])
            found += held_by(later, node, needs, job, most)
    return found >= units


@jit
def shift(nodes, room, i, job):
    """Let entry ``i`` of the plan happen to ``room``; return how many units it gains."""
    other, sign, needs = nodes.plan[i].job, nodes.plan[i].sign, nodes.needs
    most = needs[job, 0] + 2**40
    more = 0
    first = nodes.held[other].first
    for c in range(first, first + nodes.held[other].count):
        node = np.int64(nodes.cells[c].node)
        more -= held_by(room, node, needs, job, most)
        for r in range(room.shape[1]):
            room[node, r] += sign * np.int64(nodes.cells[c].units) * needs[other, r + 1]
        more += held_by(room, node, needs, job, most)
    return more


@jit_part
def plan_running(sim, blocks, entries, profile, nodes):
    """Let the plan be what the running jobs give back at their predicted ends."""
    nodes.scalars[0].n_events = 0
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            foresee(nodes, entries[i].key, entries[i].job, np.int64(1))


@jit
def advance(sim, jobs, progress, blocks, entries, profile, line, narrow, nodes, job):
    """Make the reservation of a job anew if it can be earlier."""
    before = line[job].reserved
    withdraw(nodes, job)
    time = earliest(sim, progress, nodes, job, before)
    if time < before:
        sim.may_advance = 1
    commit(sim, progress, line, nodes, job, time)


@jit_part
def begin(sim, jobs, progress, blocks, entries, nodes, job):
    """Let a job take its nodes now, and give them back at its predicted end."""
    withdraw(nodes, job)
    foresee(nodes, sim.time + progress[job].predicted, job, np.int64(1))
    take(nodes, job)


replan = replan_of(plan_running, reserve)
compress = compress_of(advance, begin)


run = loop_of(next_event_pass, do_pass)
