"""Conservative backfilling over nodes: a start time and nodes are reserved for every queued job.

The rules are those of :mod:`hpcgym.engine.machines.pool.conservative`. The plan is a list of times
at which jobs will take their nodes and give them back; a job's reservation begins at the first of
these times, or now, from which nodes are free throughout its predicted run time.

A reservation that could not be earlier when it was last tried can be so only by room that the plan
has gained since: what a job that ended early was to keep, and what reservations that moved have
left. It then begins before the end of such room, ``gained_until``: no later time is tried.
``left_until`` is the part of that which reservations have left in the present pass. Those of jobs
before them in order have not been tried with it.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import enqueue
from hpcgym.engine.loop import loop_of, next_event_pass
from hpcgym.engine.machines.nodes.filling import held_by, note_waiting, weigh_all
from hpcgym.engine.machines.nodes.placement import (
    ANY_UNITS,
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
from hpcgym.scheduler.allocations import FIRST_FIT

# Rows of `ahead`. NOW: what is free when a job would start. WITHIN: what is free at a time while it
# runs. AT_ONE_TIME: what is free where the plan has been looked at last. SPARE: in place of the
# first node, what all nodes have together beyond what the job needs.
NOW, WITHIN, AT_ONE_TIME, SPARE = range(4)


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
    loose = sim.may_advance == 1
    compress(
        sim, jobs, keys, scores, progress, blocks, entries, profile, line, narrow, idle, machine
    )  # fmt: skip
    if loose:  # all have been tried with what there was at the beginning of the pass
        machine.scalars[0].gained_until = machine.scalars[0].left_until
        machine.scalars[0].left_until = 0


@jit_part
def forget_ended(sim, ended, nodes):
    """Free the nodes of the jobs that have ended since the last pass, now and in the plan."""
    while nodes.scalars[0].released < sim.ended:
        job = ended[nodes.scalars[0].released]
        give_back(nodes, job)
        note_gain(nodes, job)
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


@jit_part
def note_gain(nodes, job):
    """Note that what a job has in the plan will be free; return until when the job had it [s]."""
    until = np.int64(0)
    for i in range(nodes.scalars[0].n_events):
        if nodes.plan[i].job == job:
            until = max(until, nodes.plan[i].time)
    nodes.scalars[0].gained_until = max(nodes.scalars[0].gained_until, until)
    return until


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

    If there is no such time, return ``latest``; the job keeps the cells that it has. What the job
    itself has in the plan does not count.
    """
    plan, n = nodes.plan, nodes.scalars[0].n_events
    time, length = sim.time, progress[job].predicted + sim.strict
    note_spare(nodes, job)
    copy_room(nodes.ahead[NOW], nodes.free)
    copy_room(nodes.ahead[AT_ONE_TIME], nodes.free)
    found = count_held(nodes.free, nodes.needs, job)
    i = summed = counted = happened = 0
    while True:
        while i < n and plan[i].time <= time:
            i += 1
        # Most places fail by what the whole machine has, which is quickly added up, or by what
        # the nodes have at one time. What has been looked at for one start holds for later ones.
        summed, short = runs_short(nodes, job, summed, i, time, time + length)
        if short == FOREVER:
            counted, found, short = has_no_room(nodes, job, counted, i, time, time + length, found)
        if short == FOREVER:
            while happened < i:
                if plan[happened].job != job:
                    change(nodes, nodes.ahead[NOW], plan[happened].job, plan[happened].sign)
                happened += 1
            if lasts(nodes, job, i, time + length):
                if nodes.scalars[0].allocation != FIRST_FIT:
                    weigh_all(nodes, nodes.later)
                place(nodes, nodes.later, job, False, False)
                return time
            short = time
        # once all that is planned is over, the machine is empty, and any job fits
        while i < n and plan[i].time <= short:
            i += 1
        time = plan[i].time if i < n else latest
        if time >= latest:
            return latest


@jit
def note_spare(nodes, job):
    """Note what is free on all nodes together beyond what a job needs, of each resource.

    It is FOREVER, so that it never runs short, of a resource that the job does not need, and of all
    of them where a node may have less than nothing: sums say nothing then.
    """
    spare, needs, free = nodes.ahead[SPARE, 0], nodes.needs, nodes.free
    for r in range(len(spare)):
        spare[r] = FOREVER
        if needs[job, r + 1] > 0 and nodes.scalars[0].overdrawn == 0:
            spare[r] = -needs[job, 0] * needs[job, r + 1]
            for node in range(len(free)):
                spare[r] += free[node, r]


@jit_part
def spend(nodes, job, i):
    """Let entry ``i`` of the plan change what is spare."""
    spare, needs, other = nodes.ahead[SPARE, 0], nodes.needs, nodes.plan[i].job
    if other != job:
        units = nodes.plan[i].sign * needs[other, 0]
        for r in range(len(spare)):
            spare[r] += units * needs[other, r + 1]


@jit_part
def lacks(nodes):
    """Return whether there is too little of any resource."""
    least = np.int64(0)
    for r in range(nodes.ahead.shape[2]):
        least = min(least, nodes.ahead[SPARE, 0, r])
    return least < 0


@jit_part
def is_whole(nodes, i):
    """Return whether all that happens at one time in the plan is before entry ``i``."""
    return i == nodes.scalars[0].n_events or nodes.plan[i].time > nodes.plan[i - 1].time


@jit
def runs_short(nodes, job, summed, i, begin, end):
    """Return how far the plan has been added up, and when there is first too little for a job.

    The latter is FOREVER if there is enough from ``begin`` to ``end``. If not, the job cannot start
    up to that time. ``summed``: how many entries have been added up before. ``i``: how many have
    happened at ``begin``.
    """
    while summed < i:
        spend(nodes, job, summed)
        summed += 1
    if lacks(nodes):
        return summed, begin
    while summed < nodes.scalars[0].n_events and nodes.plan[summed].time < end:
        spend(nodes, job, summed)
        summed += 1
        if is_whole(nodes, summed) and lacks(nodes):
            return summed, nodes.plan[summed - 1].time
    return summed, np.int64(FOREVER)


@jit
def has_no_room(nodes, job, counted, i, begin, end, found):
    """Return how many entries have happened, how many units fit then, and when too few fit first.

    As :func:`runs_short`, but it looks at each node. ``found``: how many units of the job fit once
    ``counted`` entries of the plan have happened.
    """
    room, units = nodes.ahead[AT_ONE_TIME], nodes.needs[job, 0]
    while counted < i:
        found += shift(nodes, room, counted, job)
        counted += 1
    if found < units:
        return counted, found, begin
    while counted < nodes.scalars[0].n_events and nodes.plan[counted].time < end:
        found += shift(nodes, room, counted, job)
        counted += 1
        if found < units and is_whole(nodes, counted):
            return counted, found, nodes.plan[counted - 1].time
    return counted, found, np.int64(FOREVER)


@jit
def lasts(nodes, job, i, end):
    """Return whether a job fits what is free throughout up to ``end``, which ``later`` is then.

    What comes next in the plan is its entry ``i``.
    """
    within, later, needs = nodes.ahead[WITHIN], nodes.later, nodes.needs
    units, most = needs[job, 0], needs[job, 0] + ANY_UNITS
    copy_room(within, nodes.ahead[NOW])
    copy_room(later, within)
    found = count_held(later, needs, job)
    while i < nodes.scalars[0].n_events and nodes.plan[i].time < end and found >= units:
        other, sign = nodes.plan[i].job, nodes.plan[i].sign
        i += 1
        if other == job:
            continue
        change(nodes, within, other, sign)
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
    """Let entry ``i`` of the plan happen to ``room``; return how many units more of a job fit.

    What the job itself has in the plan does not count.
    """
    other, sign, needs = nodes.plan[i].job, nodes.plan[i].sign, nodes.needs
    most = needs[job, 0] + ANY_UNITS
    more = 0
    if other == job:
        return more
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
    latest = min(before, nodes.scalars[0].gained_until)
    if sim.time < before and latest <= sim.time:
        return
    time = earliest(sim, progress, nodes, job, latest)
    if time == latest:
        return
    until = note_gain(nodes, job)
    nodes.scalars[0].left_until = max(nodes.scalars[0].left_until, until)
    withdraw(nodes, job)
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
