"""A scheduling pass over nodes that jobs share: no reservation, or one (EASY).

The rules are those of :mod:`hpcgym.engine.machines.pool.easy`. What differs is which nodes a job
may take (:mod:`hpcgym.engine.machines.corun.nodes`), that ends move as neighbours come and go
(:mod:`hpcgym.engine.machines.corun.rates`), and therefore what keeps the head's reservation: a job
that starts before it must slow down none that is to end by the shadow time so that it ends later.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import enqueue, leave_queue
from hpcgym.engine.loop import loop_of, next_event_pass
from hpcgym.engine.machines.corun.files.shared import (
    close_files,
    in_congestion,
    keep_beside,
    open_files,
)
from hpcgym.engine.machines.corun.nodes import (
    choose,
    counts_for,
    give_back,
    renew_neighbours,
    reserve_beside,
    take,
)
from hpcgym.engine.machines.corun.orders import best_waiting, count_waiting
from hpcgym.engine.machines.corun.rates import (
    lasting_rate,
    note_spell,
    rate_of,
    renew_readers,
    ticks_for,
)
from hpcgym.engine.machines.corun.state import (
    BESIDE_HEAD,
    BRIEFLY,
    COMPACT,
    FREELY,
    NOBODY_THERE,
    PART,
)
from hpcgym.engine.ordered import BLOCK, NOTHING, block_at, insert
from hpcgym.engine.passes.backfilling import sweep_of, sweep_scored_of
from hpcgym.engine.passes.heads import (
    first_in_order,
    promise,
)
from hpcgym.engine.state import (
    AN_ORDER,
    BACKFILLED,
    KEYED,
    QUEUE,
    RUNNING,
    SCORED,
    SELECTION,
    STARTED_AS,
)


@jit
def release_ended(machine, sim, jobs, progress, blocks, entries, ended):
    """Free the nodes of the jobs that have ended since the last pass; renew their neighbours."""
    first = machine.scalars[0].released
    while machine.scalars[0].released < sim.ended:
        job = ended[machine.scalars[0].released]
        machine.scalars[0].released += 1
        if machine.scalars[0].logs_spells == 1:
            note_spell(machine, machine.tasks[job].end, job)
        give_back(machine, job)
        close_files(machine.io, job, machine.tasks[job].code)
    for i in range(first, sim.ended):
        renew_neighbours(machine, sim, jobs, progress, blocks, entries, ended[i])
    renew_readers(machine, sim.time, jobs, progress, blocks, entries)


@jit
def begin(machine, sim, jobs, progress, blocks, entries, job):
    """Start a job, no longer in the queue, on the nodes of its cells."""
    time, task = sim.time, machine.tasks[job]
    take(machine, job)
    open_files(machine.io, job, task.code)
    count_waiting(machine, task.code, np.int64(-1))
    progress[job].start = time
    progress[job].marks += sim.started * STARTED_AS
    sim.started += 1
    sim.free -= jobs[job].processors
    beside, task.limit = rate_of(machine, job)
    task.rate = in_congestion(machine.io, task.code, beside)
    keep_beside(machine.io, job, beside)
    task.left = np.float64(jobs[job].run)
    task.since = task.begun = time
    task.end = time + ticks_for(task.left, task.rate)
    task.least = lasting_rate(machine, job, beside)
    task.predicted_end = time + ticks_for(np.float64(progress[job].predicted), task.least)
    insert(blocks, entries, RUNNING, task.predicted_end, job, task.end, jobs[job].processors)
    renew_neighbours(machine, sim, jobs, progress, blocks, entries, job)
    renew_readers(machine, sim.time, jobs, progress, blocks, entries)
    sim.changed = 1


# --- The queue ------------------------------------------------------------------------------------


@jit_part
def is_settled(machine, sim, keys, arrived):
    """Return whether only new jobs, which come behind the head, have to be looked at.

    Nothing has started or ended since the last pass, so that the head still waits, for the same
    nodes. New jobs must not be more than one, for they stand in the order of back-filling.
    """
    head = sim.head
    if head < 0 or sim.changed == 1 or arrived != 1 or sim.primary >= SCORED:
        return False
    # who would delay a neighbour too long now may not when there is less left of it
    if machine.scalars[0].delays == 1 or machine.scalars[0].weighed == 1 or sim.threshold >= 0:
        return False
    return sim.primary != KEYED or keys[sim.next - 1] >= keys[head]


@jit_part
def first_of_queue(machine, sim, jobs, scores, progress, blocks, entries):
    """Return the job that is first in the queue, which must not be empty."""
    if machine.scalars[0].weighed == 1:
        waiting = sim.next - sim.started
        nobody = np.int64(-1)
        return best_waiting(machine, jobs, blocks, entries, waiting, nobody, nobody)
    return first_in_order(sim, jobs, scores, progress, blocks, entries)


@jit
def find_shadow(machine, sim, progress, blocks, entries, head):
    """Find when the head can start, on which nodes, and how many of them it does not need."""
    later, counts, scalars = machine.later, machine.counts, machine.scalars[0]
    scalars.stamp += 1
    scalars.version += 1
    scalars.delays = 0
    plan = scalars.stamp
    needed, found, time = machine.tasks[head].nodes, 0, sim.time
    for node in range(len(later)):
        later[node] = machine.free[node]
        counts[node] = counts_for(machine, head, node, plan)
        found += counts[node]
    k = 0
    while k < blocks[RUNNING].in_use:
        block = block_at(blocks, RUNNING, k)
        k += 1
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            # all that leaves at the shadow time counts
            if found >= needed and entries[i].key > time:
                k = blocks[RUNNING].in_use
                break
            time = entries[i].key
            found += leave(machine, head, entries[i].job, plan)
    sim.shadow = time
    scalars.slack = found - needed
    scalars.rest_beside_head = most_beside_head(machine, head)
    if scalars.weighed == 0:  # else the order changes as jobs wait
        promise(sim, progress, head, time)


@jit
def leave(machine, head, job, plan):
    """Let a job have left its nodes; return how many more count for the head then."""
    task, more = machine.tasks[job], 0
    parts = 1 if task.placement == PART else machine.who.shape[1]
    task.stamp = plan
    for i in range(task.first, task.first + task.nodes):
        node = machine.cells[i]
        machine.later[node] += parts
        before = machine.counts[node]
        machine.counts[node] = counts_for(machine, head, node, plan)
        more += machine.counts[node] - before
    return more


@jit
def most_beside_head(machine, head):
    """Return a number of parts that no job can have more of and stay past the shadow time."""
    shared, whole, parts = 0, 0, machine.who.shape[1]
    for node in range(len(machine.free)):
        if machine.free[node] == 0:
            continue
        free_of_head = machine.counts[node] == 0
        if free_of_head or (machine.later[node] > 1 and machine.tasks[head].placement == PART):
            shared += 1
        if free_of_head and machine.free[node] == parts:
            whole += 1
    return max(shared + machine.scalars[0].slack, (whole + machine.scalars[0].slack) * parts)


# --- Jobs behind the head -------------------------------------------------------------------------


@jit
def may_start(machine, sim, jobs, progress, job):
    """Return whether a job may start before the head; its cells are written then."""
    if machine.scalars[0].fills == 1:
        return choose(machine, sim, jobs, progress, job, FREELY)
    task, predicted = machine.tasks[job], np.float64(progress[job].predicted)
    most = 1.0 if task.placement == COMPACT else machine.believed_alone[task.code]
    most = in_congestion(machine.io, task.code, most)
    if sim.time + ticks_for(predicted, most) <= sim.shadow:
        if not choose(machine, sim, jobs, progress, job, BRIEFLY):
            return False
        if sim.time + ticks_for(predicted, rate_there(machine, job)) <= sim.shadow:
            return True
    if not choose(machine, sim, jobs, progress, job, BESIDE_HEAD):
        return False
    reserve_beside(machine, sim, job)
    return True


@jit
def rate_there(machine, job):
    """Return the least rate that is believed of a job on the nodes that it is to take.

    With the congestion of files that there is before it starts.
    """
    task = machine.tasks[job]
    if task.placement == COMPACT:
        return in_congestion(machine.io, task.code, 1.0)
    rate = machine.believed_alone[task.code]
    for i in range(task.first, task.first + task.nodes):
        node = machine.cells[i]
        for k in range(machine.who.shape[1]):
            other = machine.who[node, k]
            if other == NOBODY_THERE:
                break
            rate = min(rate, machine.believed[task.code, machine.tasks[other].code])
    return in_congestion(machine.io, task.code, rate)


@jit_part
def begin_before_head(machine, sim, jobs, progress, blocks, entries, idle, job):
    """Start a job, no longer in the queue, on the nodes of its cells, before the head."""
    progress[job].marks += BACKFILLED
    begin(machine, sim, jobs, progress, blocks, entries, job)


@jit_part
def begin_swept(machine, sim, jobs, progress, blocks, entries, idle, job):
    """Do the same, and note what the head leaves to others now."""
    begin_before_head(machine, sim, jobs, progress, blocks, entries, idle, job)
    if machine.scalars[0].fills == 0:
        machine.scalars[0].rest_beside_head = most_beside_head(machine, sim.head)


@jit_part
def bounds(machine, sim):
    """Return the most parts of a job, those of one that runs on, and when it does so."""
    scalars = machine.scalars[0]
    beyond = NOTHING if scalars.fills == 1 else scalars.rest_beside_head
    # a job that takes longer than this, compact, does not end by the shadow time at any rate
    return sim.free, beyond, (sim.shadow - sim.time) * machine.greatest[0]


@jit
def start_before_head(machine, sim, jobs, keys, progress, blocks, entries, idle, job):
    """Start a job before the head if it may; return whether it has started."""
    if not may_start(machine, sim, jobs, progress, job):
        return False
    leave_queue(sim, jobs, progress, keys, blocks, entries, job)
    begin_before_head(machine, sim, jobs, progress, blocks, entries, idle, job)
    return True


sweep = sweep_of(may_start, begin_swept, bounds, knows_narrow=True)
sweep_scored = sweep_scored_of(may_start, begin_before_head)


@jit
def fill_weighed(machine, sim, jobs, keys, progress, blocks, entries, idle):
    """Start the best of the jobs that find room, again and again."""
    while blocks[QUEUE].count > 0:
        waiting = sim.next - sim.started
        job = best_waiting(machine, jobs, blocks, entries, waiting, sim.free, sim.head)
        if job < 0:
            return
        # where it is refused, jobs like it are passed over from now on
        start_before_head(machine, sim, jobs, keys, progress, blocks, entries, idle, job)


@jit_part
def serve_queue(machine, sim, jobs, keys, scores, progress, blocks, entries, narrow, idle, arrived):
    """Start heads while they may start, then jobs behind the first head that may not."""
    if sim.primary == SELECTION:
        serve_selected(machine, sim, jobs, keys, progress, blocks, entries)
        return
    same = is_settled(machine, sim, keys, arrived)
    if same and sim.depth == 0 and machine.scalars[0].fills == 0:
        return
    head = sim.head if same else -1
    while head < 0 and blocks[QUEUE].count > 0:
        head = first_of_queue(machine, sim, jobs, scores, progress, blocks, entries)
        if not choose(machine, sim, jobs, progress, head, FREELY):
            break
        leave_queue(sim, jobs, progress, keys, blocks, entries, head)
        begin(machine, sim, jobs, progress, blocks, entries, head)
        head = -1
    sim.head = head
    # a job that starts behind the head may let another take other nodes: it is set again then
    sim.changed = 0
    if head < 0 or (sim.depth == 0 and machine.scalars[0].fills == 0):
        return
    if machine.scalars[0].fills == 0 and not same:
        find_shadow(machine, sim, progress, blocks, entries, head)
    if same:
        # all others were refused at the last pass
        for job in range(sim.next - arrived, sim.next):
            start_before_head(machine, sim, jobs, keys, progress, blocks, entries, idle, job)
    elif machine.scalars[0].weighed == 1 and machine.scalars[0].fills == 1:
        fill_weighed(machine, sim, jobs, keys, progress, blocks, entries, idle)
    elif sim.secondary >= SCORED:
        sweep_scored(machine, sim, jobs, keys, scores, progress, blocks, entries, idle)
    else:
        sweep(machine, sim, jobs, keys, progress, blocks, entries, narrow, idle)


# --- Jobs that are selected from outside ----------------------------------------------------------


@jit
def serve_selected(machine, sim, jobs, keys, progress, blocks, entries):
    """Start the job that was selected, if it finds room; ask for another while one would."""
    if sim.asked == AN_ORDER:
        sim.asked = 0
        job = sim.selected
        sim.selected = -1
        if job < 0:
            return
        if choose(machine, sim, jobs, progress, job, FREELY):
            leave_queue(sim, jobs, progress, keys, blocks, entries, job)
            begin(machine, sim, jobs, progress, blocks, entries, job)
    if some_fits(machine, sim, jobs, progress, blocks, entries):
        sim.asked = AN_ORDER


@jit
def some_fits(machine, sim, jobs, progress, blocks, entries):
    """Return whether some waiting job finds room now."""
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            if choose(machine, sim, jobs, progress, job, FREELY):
                return True
    return False


@jit_part
def usage_beside(jobs, progress, machine, job):
    """Return when a job has ended, however fast it ran, at its usual power."""
    return machine.tasks[job].end, 1.0


@jit_part
def do_pass(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, machine,
):  # fmt: skip
    """Free the nodes of jobs that have ended, and start what may start.

    Where jobs are selected from outside, the answer to a question is ``sim.selected``, below 0 if
    no job is to start now.
    """
    release_ended(machine, sim, jobs, progress, blocks, entries, ended)
    arrived = sim.arrived
    sim.arrived = 0
    for job in range(sim.next - arrived, sim.next):
        enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
        count_waiting(machine, machine.tasks[job].code, np.int64(1))
    if blocks[QUEUE].count > 0:
        serve_queue(
            machine, sim, jobs, keys, scores, progress, blocks, entries, narrow, idle, arrived
        )


run = loop_of(next_event_pass, do_pass)
