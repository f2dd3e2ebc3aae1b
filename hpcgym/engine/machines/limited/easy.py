"""A scheduling pass under limits of power and energy, with no reservation or one (EASY).

The rules are those of :mod:`hpcgym.engine.machines.pool.easy`, on whole nodes. What differs is when
a job may start, and at which level (:mod:`hpcgym.engine.machines.limited.starts`), what the head's
reservation is (:mod:`hpcgym.engine.machines.limited.reservations`), and that there are passes when
limits begin and end, when meters are looked at and when nodes have been switched.
"""

from __future__ import annotations

from hpcgym.compilation import jit, jit_inline, jit_part
from hpcgym.engine.events import (
    end_first,
    enqueue,
    leave_primary_queue,
    leave_queue,
    next_pass,
)
from hpcgym.engine.loop import loop_of
from hpcgym.engine.machines.limited.budgets import (
    count_to,
    give_back,
    look,
    switch_off_idle,
    wake_late,
    weigh,
)
from hpcgym.engine.machines.limited.caps import (
    announce,
    forecast_start,
    next_control,
    switch_for_caps,
)
from hpcgym.engine.machines.limited.controls import switch_for_control
from hpcgym.engine.machines.limited.nodes import begin_waiting, end_switching, release
from hpcgym.engine.machines.limited.reservations import find_shadow
from hpcgym.engine.machines.limited.starts import begin, best_level, drawn_mw, widest
from hpcgym.engine.machines.limited.state import LESS, ZERO
from hpcgym.engine.machines.nodes.easy import next_scored
from hpcgym.engine.machines.pool.easy import first_in_order
from hpcgym.engine.ordered import BLOCK, NOTHING, block_at, copy_entry, tidy_swept
from hpcgym.engine.orders.narrow import least_of_narrow, summarise_narrow
from hpcgym.engine.state import (
    A_RENEWAL,
    FOREVER,
    KEYED,
    QUEUE,
    RUNNING,
    SCORED,
    SELECTION,
    SUBMISSION,
)


@jit_inline
def advance(
    sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine, stop_time
):
    """Advance to the next pass: after an event, or where limits or switched nodes need one.

    False also where the log has to be made longer first: ``full`` of the machine says so.
    """
    scalars = machine.scalars[0]
    while True:
        if scalars.switches == 1 and len(machine.log) - scalars.logged < 8 * len(machine.nodes):
            scalars.full = 1
            return False
        control = next_control(machine)
        by_event = next_pass(
            sim, jobs, progress, users, history, blocks, entries, freed, idle, ended,
            min(stop_time, control),
        )  # fmt: skip
        if not by_event:
            over = sim.next == len(jobs) and blocks[QUEUE].count + blocks[RUNNING].count == 0
            if sim.asked != 0 or control > stop_time or control == FOREVER or over:
                return False
            sim.time = control
            if scalars.limited == 1 and sim.renews == 1 and sim.next > sim.started:
                sim.asked = A_RENEWAL  # orders of the queue may have changed without an event
                return False
        count_to(machine, sim.time)
        end_switching(machine, sim.time)
        begin_waiting(machine, sim.time)
        release_ended(machine, sim, ended)
        wake_late(machine, blocks, entries, sim.time)
        if by_event or scalars.limited == 1:
            return True
        switch_off_idle(machine, sim.time)


@jit
def release_ended(machine, sim, ended):
    """Free the nodes of the jobs that have ended since the last pass."""
    scalars = machine.scalars[0]
    while scalars.released < sim.ended:
        job = ended[scalars.released]
        scalars.released += 1
        release(machine, sim.time, job)
        forecast_start(machine, sim.time, job, LESS)
        give_back(machine, job)


@jit_part
def do_pass(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, machine,
):  # fmt: skip
    """Let limits do what they do at this time, then start what may start."""
    time = sim.time
    announce(machine, blocks, entries, time)
    switch_for_control(machine, blocks, entries, time)
    switch_for_caps(machine, blocks, entries, time)
    kill_for_caps(machine, sim, jobs, progress, users, history, blocks, entries, freed, idle, ended)
    look(machine, time)
    for job in range(sim.next - sim.arrived, sim.next):
        enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
    sim.arrived = 0
    if blocks[QUEUE].count > 0:
        weigh(machine, blocks, entries, time)
        serve_queue(machine, sim, jobs, keys, scores, progress, blocks, entries, narrow)
    switch_off_idle(machine, time)


# --- Caps that kill -------------------------------------------------------------------------------


@jit
def kill_for_caps(
    machine, sim, jobs, progress, users, history, blocks, entries, freed, idle, ended
):
    """Kill the jobs that started last until the caps that kill, and begin now, hold."""
    time = sim.time
    for c in range(len(machine.caps)):
        cap = machine.caps[c]
        if cap.kills == 0 or cap.known == 0 or time != max(cap.start, cap.announced):
            continue
        while machine.scalars[0].charged > cap.mw and time < cap.end:
            block, i = last_started(progress, blocks, entries, time)
            if block < 0:
                break
            job = entries[i].job
            jobs[job].run = time - progress[job].start
            entries[i].span = time
            blocks[block].least_span = time
            end_first(sim, jobs, progress, users, history, blocks, entries, freed, idle, ended)
            machine.scalars[0].kills += 1
            release_ended(machine, sim, ended)
            switch_for_caps(machine, blocks, entries, time)


@jit
def last_started(progress, blocks, entries, time):
    """Return the block and the entry of the job that began last, and before now; -1 if none."""
    found, place = -1, -1
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            if progress[job].start >= time:  # waits for its nodes
                continue
            if place < 0 or progress[job].marks > progress[entries[place].job].marks:
                found, place = block, i
    return found, place


# --- The queue ------------------------------------------------------------------------------------


@jit_part
def serve_queue(machine, sim, jobs, keys, scores, progress, blocks, entries, narrow):
    """Start heads while they may start, then jobs behind the first head that may not."""
    head = -1
    machine.scalars[0].backfills = 0
    while blocks[QUEUE].count > 0:
        head = first_in_order(sim, jobs, scores, progress, blocks, entries)
        level = best_level(machine, sim, jobs, progress, head)
        if level < 0 and machine.scalars[0].controlled == 1 and blocks[RUNNING].count == 0:
            level = level_without_control(machine, sim, jobs, progress, head)
        if level < 0:
            break
        leave_queue(sim, jobs, progress, keys, blocks, entries, head)
        begin(machine, jobs, sim, progress, blocks, entries, head, level)
        head = -1
    sim.head = head
    if head < 0 or sim.depth == 0:
        return
    machine.scalars[0].backfills = 1
    find_shadow(machine, sim, jobs, blocks, entries, head)
    # where the order changes as jobs wait, the next pass may have another head: no promise
    if progress[head].promised < 0 and sim.primary < SELECTION:
        progress[head].promised = sim.shadow
    if sim.secondary >= SCORED:
        sweep_scored(machine, sim, jobs, keys, scores, progress, blocks, entries)
    else:
        sweep(machine, sim, jobs, keys, progress, blocks, entries, narrow)


@jit
def level_without_control(machine, sim, jobs, progress, head):
    """Return at which level the head may start where no job runs, whatever a control says."""
    control = machine.caps[len(machine.caps) - 1]
    known, control.known = control.known, ZERO
    level = best_level(machine, sim, jobs, progress, head)
    control.known = known
    return level


@jit_part
def sweep(machine, sim, jobs, keys, progress, blocks, entries, narrow):
    """Go through the queue in secondary order, passing over blocks in which no job can start."""
    k = 0
    while k < blocks[QUEUE].in_use:
        block = block_at(blocks, QUEUE, k)
        k += 1
        free = widest(machine, sim)
        if blocks[block].least_width > free:
            continue
        if blocks[block].least_width > spare_nodes_for(machine):
            window = sim.shadow - sim.time
            if blocks[block].least_span > window:
                continue
            if blocks[block].narrow_known == 1 and least_of_narrow(narrow, block, free) > window:
                continue
        sweep_block(machine, sim, jobs, keys, progress, blocks, entries, block)
        if blocks[QUEUE].in_use > 1:
            if sim.secondary == SUBMISSION:
                summarise_narrow(blocks, entries, narrow, block)
            k = tidy_swept(blocks, entries, QUEUE, k)


@jit_part
def spare_nodes_for(machine):
    """Return how many nodes a job may take at most that runs on beyond the shadow time."""
    scalars = machine.scalars[0]
    return len(machine.nodes) if scalars.contiguous == 1 else scalars.spare_nodes


@jit_part
def sweep_block(machine, sim, jobs, keys, progress, blocks, entries, block):
    """Start the jobs of one block that may start, and make its summary anew."""
    least_span = least_width = NOTHING
    window = sim.shadow - sim.time
    free, spare = widest(machine, sim), spare_nodes_for(machine)
    i = block * BLOCK
    while i < block * BLOCK + blocks[block].count:
        job, width, predicted = entries[i].job, entries[i].width, entries[i].span
        if width <= free and (width <= spare or predicted <= window) and job != sim.head:
            level = best_level(machine, sim, jobs, progress, job)
            if level >= 0:
                take_out(sim, keys, blocks, entries, block, i)
                begin(machine, jobs, sim, progress, blocks, entries, job, level)
                free, spare = widest(machine, sim), spare_nodes_for(machine)
                continue
        least_span = min(least_span, predicted)
        least_width = min(least_width, width)
        i += 1
    blocks[block].least_span = least_span
    blocks[block].least_width = least_width


@jit_part
def take_out(sim, keys, blocks, entries, block, i):
    """Take an entry out of the queue; the block is tidied when the sweep has left it."""
    job = entries[i].job
    blocks[block].count -= 1
    blocks[block].sum_width -= entries[i].width
    while i < block * BLOCK + blocks[block].count:
        copy_entry(entries, i, i + 1)
        i += 1
    if sim.primary == KEYED:
        leave_primary_queue(keys, blocks, entries, job)


@jit
def sweep_scored(machine, sim, jobs, keys, scores, progress, blocks, entries):
    """Go through the queue in an order that time changes, from the best job to the last."""
    job, score = LESS, float("inf")
    while True:
        job, score = next_scored(sim, jobs, scores, blocks, entries, job, score)
        if job < 0:
            return
        if job == sim.head:
            continue
        level = best_level(machine, sim, jobs, progress, job)
        if level >= 0:
            leave_queue(sim, jobs, progress, keys, blocks, entries, job)
            begin(machine, jobs, sim, progress, blocks, entries, job, level)


@jit_part
def usage_at_level(jobs, progress, machine, job):
    """Return when a job has ended, and what it has drawn by what it draws at full frequency."""
    full = drawn_mw(machine, job, machine.scalars[0].highest)
    drawn = machine.tasks[job].drawn_mw / full if full > 0 else 1.0
    return progress[job].start + jobs[job].run, drawn


run = loop_of(advance, do_pass)
