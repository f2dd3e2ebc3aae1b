"""Places for jobs as Slurm finds them: on nodes that no reservation before them takes.

The plan has the predicted ends of the running jobs, and when reservations and windows begin and
end, each of which takes whole nodes: its table. A job is tried on the nodes that are open in the
table while it would run, if it started now: beside the running jobs, and then with these gone one
after the other, several at once where they end together. Where that gives no place, or one after
other nodes have become open, it is tried from then on; see docs/slurm.md.

``nodes.shut`` has four rows: how many in the table hold a node at a time; 1 where it is shut at
that time; 1 where it is shut at any time looked at; 1 where it is reserved and no job has it.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.nodes.conservative import put
from hpcgym.engine.machines.nodes.filling import FIRST_FIT, held_by, weigh_all
from hpcgym.engine.machines.nodes.placement import copy_room, place
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.passes.joining import HALF_MINUTE, raised, rounded, rounded_end, wider
from hpcgym.engine.state import FOREVER, RUNNING

HOLDERS, SHUT, SEEN, IDLE = range(4)  # rows of `shut`
NO_TIME = -1


@jit
def note(nodes, time, job, sign):
    """Put what a job takes or gives back at that time into the plan; of one time, by number."""
    i = nodes.scalars[0].n_events
    while i > 0 and (
        nodes.plan[i - 1].time > time
        or (nodes.plan[i - 1].time == time and nodes.plan[i - 1].job > job)
    ):
        i -= 1
    put(nodes, i, time, job, sign)


@jit
def plan_ends(sim, blocks, entries, nodes):
    """Let the plan be what the running jobs give back at their predicted ends."""
    nodes.scalars[0].n_events = 0
    nodes.shut[IDLE] = 0
    sim.idle_planned = sim.put_off = 0
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            note(nodes, entries[i].key, entries[i].job, np.int64(1))


@jit_part
def runs(progress, job):
    """Return whether who is in the plan runs; who holds nodes in a window is no job."""
    return job >= 0 and progress[job].start >= 0


@jit
def note_reserved(sim, progress, nodes, job, time):
    """Put a reservation that begins then, whose cells are written, into the plan."""
    end = time + progress[job].predicted
    note(nodes, rounded(sim, time), job, np.int64(-1))
    note(nodes, rounded_end(sim, time, end), job, np.int64(1))
    first = nodes.held[job].first
    for c in range(first, first + nodes.held[job].count):
        node = np.int64(nodes.cells[c].node)
        if nodes.shut[IDLE, node] == 0 and nodes.free[node, 0] == nodes.capacity[node, 0]:
            nodes.shut[IDLE, node] = 1
            sim.idle_planned += 1


@jit
def note_begun(sim, progress, nodes, job):
    """Put the end of a job that begins now into the plan; its nodes are idle no longer."""
    note(nodes, sim.time + progress[job].predicted, job, np.int64(1))
    first = nodes.held[job].first
    for c in range(first, first + nodes.held[job].count):
        node = np.int64(nodes.cells[c].node)
        if nodes.shut[IDLE, node] == 1:
            nodes.shut[IDLE, node] = 0
            sim.idle_planned -= 1


@jit
def find_place(sim, progress, nodes, job, last):
    """Return when a job can start, and write its cells unless that is later than ``last``.

    FOREVER: it has no place.
    """
    length = progress[job].predicted
    after = sim.time
    while True:
        opens = look_ahead(progress, nodes, job, after, after + length)
        time = fits_after_ends(sim, progress, nodes, job)
        if NO_TIME < time < after:
            sim.put_off = 1
        if time == NO_TIME and opens == NO_TIME:
            return np.int64(FOREVER)
        time = max(time, after) if time != NO_TIME else np.int64(FOREVER)
        if opens != NO_TIME and time > opens:
            after = opens
            continue
        if time > last:
            return time
        choose(nodes, job)
        if time == sim.time or not is_taken(sim, progress, nodes, job, time):
            return time
        after = time


@jit
def starts_now(sim, progress, nodes, job, others):
    """Return whether a job can start now, and write its cells if it can; ``others`` as below."""
    look_ahead(progress, nodes, job, sim.time, sim.time + progress[job].predicted)
    if open_units(nodes, job, others) < nodes.needs[job, 0]:
        return False
    choose(nodes, job)
    return True


@jit_part
def may_have(nodes, job, node):
    """Return whether a node holds a unit of a job when it is empty."""
    return held_by(nodes.capacity, node, nodes.needs, job, np.int64(1)) > 0


@jit
def look_ahead(progress, nodes, job, after, until):
    """Note which nodes the table shuts from one time to another; return when others open.

    That is the end of the first period behind which a node is open that has been shut in the
    periods before. Of those that begin after ``until`` only the first counts. NO_TIME: none opens.
    """
    shut, plan = nodes.shut, nodes.plan
    shut[HOLDERS] = 0
    i, n = 0, nodes.scalars[0].n_events
    while i < n and plan[i].time <= after:
        count(progress, nodes, i)
        i += 1
    for node in range(shut.shape[1]):
        shut[SHUT, node] = shut[SEEN, node] = np.int64(shut[HOLDERS, node] > 0)
    opens, begins = np.int64(NO_TIME), after
    while i < n:
        first, time = i, plan[i].time
        while i < n and plan[i].time == time:
            count(progress, nodes, i)
            i += 1
        changed = opened = False
        for k in range(first, i):
            if runs(progress, plan[k].job):
                continue
            cell = nodes.held[plan[k].job].first
            for c in range(cell, cell + nodes.held[plan[k].job].count):
                node = np.int64(nodes.cells[c].node)
                now = np.int64(shut[HOLDERS, node] > 0)
                if now != shut[SHUT, node]:
                    shut[SHUT, node] = now
                    changed = True
                # what has been seen only in a period that begins later counts here alone
                if now == 0 and shut[SEEN, node] != 0 and may_have(nodes, job, node):
                    opened = True
        if not changed:
            continue
        if opened and opens == NO_TIME:
            opens = time
        if begins > until or (opens != NO_TIME and time > until):
            break
        begins = time
        for k in range(first, i):
            if runs(progress, plan[k].job):
                continue
            cell = nodes.held[plan[k].job].first
            for c in range(cell, cell + nodes.held[plan[k].job].count):
                node = np.int64(nodes.cells[c].node)
                if shut[SHUT, node] != 0 and shut[SEEN, node] == 0:
                    shut[SEEN, node] = 1 if time <= until else 2
    for node in range(shut.shape[1]):
        if shut[SEEN, node] == 2:
            shut[SEEN, node] = 0
    return opens


@jit_part
def count(progress, nodes, i):
    """Count what entry ``i`` of the plan changes in the table."""
    job, sign = nodes.plan[i].job, nodes.plan[i].sign
    if not runs(progress, job):
        first = nodes.held[job].first
        for c in range(first, first + nodes.held[job].count):
            nodes.shut[HOLDERS, nodes.cells[c].node] -= sign


@jit
def open_units(nodes, job, others):
    """Return how many units of a job fit now on the nodes that are open; ``later`` is their room.

    Nodes that are shut have none. Those that hold nothing of it when empty keep what they have if
    ``others``: allocations look at the room of the whole machine.
    """
    later, found, most = nodes.later, 0, nodes.needs[job, 0] + 2**40
    copy_room(later, nodes.free)
    for node in range(len(later)):
        if nodes.shut[SEEN, node] != 0 or not (others or may_have(nodes, job, node)):
            for r in range(later.shape[1]):
                later[node, r] = 0
        elif later[node, 0] > 0:
            found += held_by(later, node, nodes.needs, job, most)
    return found


@jit
def fits_after_ends(sim, progress, nodes, job):
    """Return when a job fits on the open nodes, now or once running jobs have ended.

    These are gone through by their predicted ends, those of one span together; ``later`` is what
    the open nodes have free then. NO_TIME: it does not fit.
    """
    units, plan, n = nodes.needs[job, 0], nodes.plan, nodes.scalars[0].n_events
    found = open_units(nodes, job, False)
    if found >= units:
        return sim.time
    last, start, span = np.int64(NO_TIME), np.int64(NO_TIME), np.int64(HALF_MINUTE)
    i = next_end(progress, nodes, np.int64(0))
    while i < n:
        gained = leave(nodes, job, plan[i].job)
        time = plan[i].time
        i = next_end(progress, nodes, i + 1)
        if gained < 0:  # it has none of the nodes, and the one behind it is not asked when it ends
            continue
        found += gained
        if last == NO_TIME:
            start = raised(time)
        last = time
        if i < n and plan[i].time > start + span:
            if found >= units:
                return last
            span = wider(sim, span, plan[i].time - start)
    return last if found >= units else np.int64(NO_TIME)


@jit_part
def next_end(progress, nodes, i):
    """Return the place of the first end of a running job in the plan, from place ``i`` on."""
    while i < nodes.scalars[0].n_events and not runs(progress, nodes.plan[i].job):
        i += 1
    return i


@jit
def leave(nodes, job, other):
    """Let a running job leave the open nodes; return how many units of another more fit then.

    -1 if it has none of these nodes.
    """
    later, needs = nodes.later, nodes.needs
    most = needs[job, 0] + 2**40
    gained, has_some = 0, False
    first = nodes.held[other].first
    for c in range(first, first + nodes.held[other].count):
        node = np.int64(nodes.cells[c].node)
        if nodes.shut[SEEN, node] != 0 or not may_have(nodes, job, node):
            continue
        has_some = True
        gained -= held_by(later, node, needs, job, most)
        for r in range(later.shape[1]):
            later[node, r] += np.int64(nodes.cells[c].units) * needs[other, r + 1]
        gained += held_by(later, node, needs, job, most)
    return gained if has_some else -1


@jit_part
def choose(nodes, job):
    """Write the cells of a job that fits ``later``."""
    if nodes.scalars[0].allocation != FIRST_FIT:
        weigh_all(nodes, nodes.later)
    place(nodes, nodes.later, job, False, False)


@jit
def is_taken(sim, progress, nodes, job, time):
    """Return whether the table shuts any node of a job that is to start then, while it has it.

    Reservations are compared as they stand in the table, windows with when the job would run.
    """
    length, shut, plan = progress[job].predicted, nodes.shut, nodes.plan
    begin, end = rounded(sim, time), rounded_end(sim, time, time + length)
    shut[SHUT] = 0
    shut[HOLDERS] = 0
    for i in range(nodes.scalars[0].n_events):
        other = plan[i].job
        first, until = (time, time + length) if other < 0 else (begin, end)
        if runs(progress, other) or plan[i].time >= until:
            continue
        if plan[i].time <= first:
            count(progress, nodes, i)
        elif plan[i].sign < 0:
            cell = nodes.held[other].first
            for c in range(cell, cell + nodes.held[other].count):
                shut[SHUT, nodes.cells[c].node] = 1
    cell = nodes.held[job].first
    for c in range(cell, cell + nodes.held[job].count):
        node = np.int64(nodes.cells[c].node)
        if shut[HOLDERS, node] > 0 or shut[SHUT, node] != 0:
            return True
    return False
