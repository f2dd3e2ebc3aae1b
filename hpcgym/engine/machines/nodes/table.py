"""Places for jobs as Slurm finds them: on nodes that no reservation before them takes.

The plan has the predicted ends of the running jobs. Reservations and windows take whole nodes, for
a time: these are in a table. A job is tried on the nodes that are open in the table while it would
run, if it started now: beside the running jobs, and then with these gone one after the other,
several at once where they end together. Where that gives no place, or one after other nodes have
become open, it is tried from then on; see docs/slurm.md.

The table has periods, one behind the other, and for each the sets of the nodes that reservations
leave open, and that windows do. A set has a bit for each node.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.nodes.conservative import put
from hpcgym.engine.machines.nodes.filling import held_by, weigh_all
from hpcgym.engine.machines.nodes.placement import (
    FOR_JOB,
    IDLE,
    LAYERS,
    OPEN,
    RESERVATIONS,
    SCRATCH,
    SEEN,
    SETS,
    WINDOWS,
    WRITTEN,
    place,
)
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.passes.joining import HALF_MINUTE, raised, rounded, rounded_end, wider
from hpcgym.engine.passes.looks import order_moves
from hpcgym.engine.passes.node_bits import add, is_in, next_open, remove
from hpcgym.engine.state import FOREVER, RUNNING
from hpcgym.scheduler.allocations import FIRST_FIT

NO_TIME = -1
_ALL = np.uint64(2**64 - 1)


@jit
def note(nodes, time, job):
    """Put into the plan that a job gives back what it has at that time; of one time, by number."""
    i = nodes.scalars[0].n_events
    while i > 0 and (
        nodes.plan[i - 1].time > time
        or (nodes.plan[i - 1].time == time and nodes.plan[i - 1].job > job)
    ):
        i -= 1
    put(nodes, i, time, job, np.int64(1))
    nodes.scalars[0].lists_leaving = 0


@jit
def list_leaving(nodes):
    """Write which nodes those have who give them back, in the order of the plan.

    Within a look, a plan changes only where :func:`note` changes it.
    """
    if nodes.scalars[0].lists_leaving == 1:
        return
    nodes.scalars[0].lists_leaving = 1
    for i in range(nodes.scalars[0].n_events):
        list_nodes(nodes, nodes.plan[i].job, nodes.sets[nodes.scalars[0].first_leaving + i])


@jit
def plan_ends(sim, blocks, entries, nodes):
    """Let the plan be what the running jobs give back at their predicted ends; all is open."""
    nodes.scalars[0].n_events = nodes.scalars[0].lists_leaving = 0
    nodes.scalars[0].n_periods = 1
    nodes.periods[0].begin, nodes.periods[0].row = -FOREVER, len(SETS)
    for word in range(nodes.sets.shape[1]):
        nodes.sets[len(SETS) + RESERVATIONS, word] = _ALL
        nodes.sets[len(SETS) + WINDOWS, word] = _ALL
        nodes.sets[IDLE, word] = 0
    sim.idle_planned = sim.put_off = 0
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            note(nodes, entries[i].key, entries[i].job)


@jit_part
def list_nodes(nodes, job, bits):
    """Let a set be the nodes that a job has."""
    for word in range(len(bits)):
        bits[word] = 0
    first = nodes.held[job].first
    for c in range(first, first + nodes.held[job].count):
        add(bits, np.int64(nodes.cells[c].node))


@jit_part
def have_common(bits, others):
    """Return whether two sets have a node in common."""
    common = np.uint64(0)
    for word in range(len(bits)):
        common |= bits[word] & others[word]
    return common != 0


@jit_part
def period_at(nodes, time):
    """Return in which period of the table a time lies."""
    low, high = np.int64(0), np.int64(nodes.scalars[0].n_periods)
    while high - low > 1:
        middle = (low + high) // 2
        if nodes.periods[middle].begin <= time:
            low = middle
        else:
            high = middle
    return low


@jit
def split(nodes, time):
    """Let a period of the table begin at that time, and return which."""
    periods, sets, new = nodes.periods, nodes.sets, nodes.scalars[0].n_periods
    before = period_at(nodes, time)
    if periods[before].begin == time:
        return before
    for p in range(new, before + 1, -1):
        periods[p].begin, periods[p].row = periods[p - 1].begin, periods[p - 1].row
    nodes.scalars[0].n_periods += 1
    row, like = np.int64(len(SETS) + len(LAYERS) * new), periods[before].row
    periods[before + 1].begin, periods[before + 1].row = time, row
    for layer in range(len(LAYERS)):
        for word in range(sets.shape[1]):
            sets[row + layer, word] = sets[like + layer, word]
    return before + 1


@jit
def shut(nodes, layer, begin, end, job):
    """Shut the nodes that a job has from one time to another, of a layer of the table."""
    list_nodes(nodes, job, nodes.sets[SCRATCH])
    first, last = split(nodes, begin), split(nodes, end)
    for p in range(first, last):
        for word in range(nodes.sets.shape[1]):
            nodes.sets[nodes.periods[p].row + layer, word] &= ~nodes.sets[SCRATCH, word]


@jit
def note_reserved(sim, progress, nodes, job, time):
    """Put a reservation that begins then, whose cells are written, into the table."""
    end = time + progress[job].predicted
    shut(nodes, RESERVATIONS, rounded(sim, time), rounded_end(sim, time, end), job)
    first = nodes.held[job].first
    for c in range(first, first + nodes.held[job].count):
        node = np.int64(nodes.cells[c].node)
        is_empty = nodes.free[node, 0] == nodes.capacity[node, 0]
        if is_empty and not is_in(nodes.sets[IDLE], node):
            add(nodes.sets[IDLE], node)
            sim.idle_planned += 1


@jit
def note_begun(sim, progress, nodes, job):
    """Put the end of a job that begins now into the plan; its nodes are idle no longer."""
    note(nodes, sim.time + progress[job].predicted, job)
    first = nodes.held[job].first
    for c in range(first, first + nodes.held[job].count):
        node = np.int64(nodes.cells[c].node)
        if is_in(nodes.sets[IDLE], node):
            remove(nodes.sets[IDLE], node)
            sim.idle_planned -= 1


@jit
def find_place(sim, progress, nodes, job, last):
    """Return when a job can start, and write its cells unless that is later than ``last``.

    FOREVER: it has no place.
    """
    length = progress[job].predicted
    # Most jobs come too late, and how late matters to few: beyond `latest`, any later time will do.
    # Nobody reads it: not `sim.beyond`, which is earlier, or not read where the order moves. And
    # `sim.put_off` says nothing new where two jobs wait, this one and the head.
    latest = np.int64(FOREVER)
    if sim.head >= 0:
        latest = last if order_moves(sim) else max(last, sim.beyond)
    after = sim.time
    while after <= latest:
        opens = look_ahead(nodes, job, after, after + length)
        stop = latest if opens == NO_TIME else min(opens, latest)
        time = fits_after_ends(sim, nodes, job, stop)
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
        choose(nodes, job, False)
        if time == sim.time or not is_taken(sim, progress, nodes, job, time):
            return time
        after = time
    return after


@jit
def starts_now(sim, progress, nodes, job, others):
    """Return whether a job can start now, and write its cells if it can; ``others`` as below."""
    look_ahead(nodes, job, sim.time, sim.time + progress[job].predicted)
    if open_units(nodes, job) < nodes.needs[job, 0]:
        return False
    choose(nodes, job, others)
    return True


@jit_part
def usable_by(nodes, job):
    """Return the set of the nodes that hold a unit of a job when they are empty."""
    kind = nodes.kind[job]
    if nodes.known[kind].listed == 0:
        nodes.known[kind].listed = 1
        for node in range(len(nodes.capacity)):
            if held_by(nodes.capacity, node, nodes.needs, job, np.int64(1)) > 0:
                add(nodes.sets[nodes.scalars[0].first_kind + kind], node)
    return nodes.sets[nodes.scalars[0].first_kind + kind]


@jit_part
def both(sets, row, word):
    """Return which nodes reservations and windows leave open in the period with that row."""
    return sets[row + RESERVATIONS, word] & sets[row + WINDOWS, word]


@jit
def look_ahead(nodes, job, after, until):
    """Note which nodes the table leaves open from one time to another; return when others open.

    That is the end of the first period behind which a node is open that has been shut in the
    periods before. Of those that begin after ``until`` only the first counts. NO_TIME: none opens.
    """
    periods, sets, may_have = nodes.periods, nodes.sets, usable_by(nodes, job)
    p = period_at(nodes, after)
    before = periods[p].row
    for word in range(sets.shape[1]):
        sets[OPEN, word] = both(sets, before, word)
        sets[SEEN, word] = sets[OPEN, word]
    opens, began = np.int64(NO_TIME), after
    for q in range(p + 1, nodes.scalars[0].n_periods):
        period, time = periods[q].row, periods[q].begin
        changed, opened = np.uint64(0), np.uint64(0)
        for word in range(sets.shape[1]):
            now = both(sets, period, word)
            changed |= now ^ both(sets, before, word)
            opened |= now & ~sets[SEEN, word] & may_have[word]
        if changed == 0:
            continue
        before = period
        if opened != 0 and opens == NO_TIME:
            opens = time
        if began > until or (opens != NO_TIME and time > until):
            break
        began = time
        for word in range(sets.shape[1]):
            now = both(sets, period, word)
            sets[SEEN, word] &= now
            if began <= until:
                sets[OPEN, word] &= now
    return opens


@jit
def open_units(nodes, job):
    """Return how many units of a job fit now on the nodes that are open, at most all of them."""
    may_have, units, found = usable_by(nodes, job), nodes.needs[job, 0], 0
    sets = nodes.sets
    for word in range(sets.shape[1]):
        sets[FOR_JOB, word] = sets[OPEN, word] & may_have[word]
        sets[SCRATCH, word] = sets[FOR_JOB, word] & nodes.open[word]
        sets[WRITTEN, word] = 0
    node = next_open(sets[SCRATCH], 0)
    while node < len(nodes.free) and found < units:
        found += held_by(nodes.free, node, nodes.needs, job, units)
        node = next_open(sets[SCRATCH], node + 1)
    return found


@jit
def fits_after_ends(sim, nodes, job, stop):
    """Return when a job fits on the open nodes, now or once running jobs have ended.

    These are gone through by their predicted ends, those of one span together. NO_TIME: it does not
    fit. If it does not before ``stop``, any later time may be returned.
    """
    units, plan, n = nodes.needs[job, 0], nodes.plan, nodes.scalars[0].n_events
    found = open_units(nodes, job)
    if found >= units:
        return sim.time
    list_leaving(nodes)
    last, start, span = np.int64(NO_TIME), np.int64(NO_TIME), np.int64(HALF_MINUTE)
    for i in range(n):
        if found < units and plan[i].time > stop:
            return plan[i].time
        # who has none of the nodes is passed over, and the one behind it not asked when it ends
        if not have_common(nodes.sets[nodes.scalars[0].first_leaving + i], nodes.sets[FOR_JOB]):
            continue
        found += leave(nodes, job, plan[i].job)
        last = plan[i].time
        if start == NO_TIME:
            start = raised(last)
        if i + 1 < n and plan[i + 1].time > start + span:
            if found >= units:
                return last
            span = wider(sim, span, plan[i + 1].time - start)
    return last if found >= units else np.int64(NO_TIME)


@jit
def leave(nodes, job, other):
    """Let a running job leave the open nodes; return how many units of another more fit then.

    No node counts for more than all units.
    """
    later, needs, sets = nodes.later, nodes.needs, nodes.sets
    most = needs[job, 0]
    gained = 0
    first = nodes.held[other].first
    for c in range(first, first + nodes.held[other].count):
        node = np.int64(nodes.cells[c].node)
        if not is_in(sets[FOR_JOB], node):
            continue
        if not is_in(sets[WRITTEN], node):
            add(sets[WRITTEN], node)
            for r in range(later.shape[1]):
                later[node, r] = nodes.free[node, r]
        gained -= held_by(later, node, needs, job, most)
        for r in range(later.shape[1]):
            later[node, r] += np.int64(nodes.cells[c].units) * needs[other, r + 1]
        gained += held_by(later, node, needs, job, most)
    return gained


@jit
def choose(nodes, job, others):
    """Write the cells of a job that fits on the open nodes, where ``later`` is written, or free.

    Nodes that are shut have no room. Those that hold nothing of it when empty keep what they have
    if ``others``: allocations look at the room of the whole machine.
    """
    later, sets = nodes.later, nodes.sets
    usable = sets[OPEN] if others else sets[FOR_JOB]
    for node in range(len(later)):
        if is_in(sets[WRITTEN], node):
            continue
        is_usable = is_in(usable, node)
        for r in range(later.shape[1]):
            later[node, r] = nodes.free[node, r] if is_usable else 0
    if nodes.scalars[0].allocation != FIRST_FIT:
        weigh_all(nodes, later)
    place(nodes, later, job, False, False)


@jit
def is_taken(sim, progress, nodes, job, time):
    """Return whether the table shuts any node of a job that is to start then, while it has it.

    Reservations are compared as they stand in the table, windows with when the job would run.
    """
    end = time + progress[job].predicted
    list_nodes(nodes, job, nodes.sets[SCRATCH])
    begin, until = rounded(sim, time), rounded_end(sim, time, end)
    return shuts_some(nodes, RESERVATIONS, begin, until) or shuts_some(nodes, WINDOWS, time, end)


@jit_part
def shuts_some(nodes, layer, begin, end):
    """Return whether a layer of the table shuts nodes of the set ``SCRATCH`` in that time."""
    p = period_at(nodes, begin)
    while p < nodes.scalars[0].n_periods and nodes.periods[p].begin < end:
        for word in range(nodes.sets.shape[1]):
            if nodes.sets[SCRATCH, word] & ~nodes.sets[nodes.periods[p].row + layer, word] != 0:
                return True
        p += 1
    return False
