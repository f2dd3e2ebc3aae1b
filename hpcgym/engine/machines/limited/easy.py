"""A scheduling pass under limits of power and energy, with no reservation or one (EASY).

The rules are those of :mod:`hpcgym.engine.machines.pool.easy`, on whole nodes. What differs is when
a job may start, and at which level (:mod:`hpcgym.engine.machines.limited.starts`), what the head's
reservation is (:mod:`hpcgym.engine.machines.limited.reservations`), and that there are passes when
limits begin and end, when meters are looked at and when nodes have been switched. Where somebody
outside says what is to start, it starts as heads do, and nothing beside it.
"""

from __future__ import annotations

from hpcgym.compilation import jit, jit_entry, jit_inline, jit_part
from hpcgym.engine.events import (
    end_first,
    enqueue,
    leave_queue,
    next_pass,
)
from hpcgym.engine.loop import loop_of
from hpcgym.engine.machines.limited.at_levels import drawn_mw
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
from hpcgym.engine.machines.limited.starts import begin, best_level, widest
from hpcgym.engine.machines.limited.state import LESS, NEVER, ZERO
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.passes.backfilling import sweep_of, sweep_scored_of
from hpcgym.engine.passes.heads import (
    asks_for_order,
    first_in_order,
    promise,
)
from hpcgym.engine.state import (
    A_RENEWAL,
    AN_ORDER,
    EACH_START,
    FOREVER,
    NOBODY,
    QUEUE,
    RUNNING,
    SCORED,
    SELECTION,
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
            if scalars.limited == 1 and sim.renews > 0 and sim.next > sim.started:
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


@jit
def may_start(machine, sim, jobs, progress, job):
    """Return whether a job may start now, and note at which level."""
    level = best_level(machine, sim, jobs, progress, job)
    machine.scalars[0].level = level
    return level >= 0


@jit_part
def begin_noted(machine, sim, jobs, progress, blocks, entries, idle, job):
    """Start a job, no longer in the queue, at the level that was noted for it."""
    begin(machine, jobs, sim, progress, blocks, entries, job, machine.scalars[0].level)


@jit_part
def bounds(machine, sim):
    """Return the most nodes of a job, those of one that runs on, and when it does so."""
    scalars = machine.scalars[0]
    spare = len(machine.nodes) if scalars.contiguous == 1 else scalars.spare_nodes
    return widest(machine, sim), spare, sim.shadow - sim.time


sweep = sweep_of(may_start, begin_noted, bounds, knows_narrow=True)
sweep_scored = sweep_scored_of(may_start, begin_noted)


@jit
def may_wait(machine, sim, jobs, progress, blocks, entries):
    """Return whether the pass is to end, or to be interrupted for new orders, before all else."""
    if sim.keeps == 0 and none_may_start(machine, sim, jobs, progress, blocks, entries):
        sim.asked = 0  # whoever answered may have set a ceiling under which nobody starts
        return True
    return asks_for_order(sim)


@jit_part
def none_may_start(machine, sim, jobs, progress, blocks, entries):
    """Return whether no queued job may start now."""
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if best_level(machine, sim, jobs, progress, entries[i].job) >= 0:
                return False
    return True


@jit_part
def serve_queue(machine, sim, jobs, keys, scores, progress, blocks, entries, narrow, idle):
    """Start heads while they may start, then jobs behind the first head that may not."""
    head = -1
    machine.scalars[0].backfills = 0
    if sim.asks == EACH_START:
        if not none_may_start(machine, sim, jobs, progress, blocks, entries):
            sim.asked = AN_ORDER
        return
    asks = sim.asks != NOBODY
    if asks and may_wait(machine, sim, jobs, progress, blocks, entries):
        return
    while blocks[QUEUE].count > 0:
        head = first_in_order(sim, jobs, scores, progress, blocks, entries)
        if head < 0:
            sim.asked = AN_ORDER
            return
        level = best_level(machine, sim, jobs, progress, head)
        if level < 0 and machine.scalars[0].controlled == 1 and blocks[RUNNING].count == 0:
            level = level_without_control(machine, sim, jobs, progress, head)
        if level < 0:
            break
        leave_queue(sim, jobs, progress, keys, blocks, entries, head)
        begin(machine, jobs, sim, progress, blocks, entries, head, level)
        head = -1
        sim.selected = -1
        again = asks and sim.primary == SELECTION
        if again and may_wait(machine, sim, jobs, progress, blocks, entries):
            return
    if sim.keeps == 0:
        sim.selected = -1
    sim.head = head
    if head < 0 or sim.depth == 0:
        return
    machine.scalars[0].backfills = 1
    find_shadow(machine, sim, jobs, blocks, entries, head)
    promise(sim, progress, head, sim.shadow)
    if sim.secondary >= SCORED:
        sweep_scored(machine, sim, jobs, keys, scores, progress, blocks, entries, idle)
    else:
        sweep(machine, sim, jobs, keys, progress, blocks, entries, narrow, idle)


@jit
def level_without_control(machine, sim, jobs, progress, head):
    """Return at which level the head may start where no job runs, whatever a control says."""
    control = machine.caps[len(machine.caps) - 1]
    known, control.known = control.known, ZERO
    level = best_level(machine, sim, jobs, progress, head)
    control.known = known
    return level


@jit_entry
def allowed_now(machine, sim, jobs, progress, queued, allowed):
    """Note which queued jobs limits let start now, each alone; return when they may change [s].

    That is when there is something to do next without an event of a job: FOREVER if never, or if
    no pass follows it.
    """
    for i in range(len(queued)):
        allowed[i] = best_level(machine, sim, jobs, progress, queued[i]) >= 0
    return next_control(machine) if machine.scalars[0].limited == 1 else NEVER


@jit_entry
def start_proposed(jobs, keys, sim, progress, blocks, entries, machine, job):
    """Start a queued job that is proposed from outside; return False if limits do not let it."""
    level = best_level(machine, sim, jobs, progress, job)
    if level < 0:
        return False
    leave_queue(sim, jobs, progress, keys, blocks, entries, job)
    begin(machine, jobs, sim, progress, blocks, entries, job, level)
    return True


@jit_part
def usage_at_level(jobs, progress, machine, job):
    """Return when a job has ended, and its power divided by that at full frequency."""
    full = drawn_mw(machine, job, machine.scalars[0].highest)
    drawn = machine.tasks[job].drawn_mw / full if full > 0 else 1.0
    return progress[job].start + jobs[job].run, drawn


@jit_part
def do_pass(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, machine,
):  # fmt: skip
    """Let limits do what they do at this time, then start what may start."""
    time = sim.time
    if sim.asks == EACH_START and sim.asked == AN_ORDER:  # what was to start has started
        sim.asked = 0
        switch_off_idle(machine, time)
        return
    if sim.asked != AN_ORDER:  # else the pass goes on
        announce(machine, blocks, entries, time)
        switch_for_control(machine, blocks, entries, time)
        switch_for_caps(machine, blocks, entries, time)
        kill_for_caps(
            machine, sim, jobs, progress, users, history, blocks, entries, freed, idle, ended
        )
        look(machine, time)
        for job in range(sim.next - sim.arrived, sim.next):
            enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
        sim.arrived = 0
    if blocks[QUEUE].count > 0:
        weigh(machine, blocks, entries, time)
        serve_queue(machine, sim, jobs, keys, scores, progress, blocks, entries, narrow, idle)
    if sim.asked != AN_ORDER:
        switch_off_idle(machine, time)


run = loop_of(advance, do_pass)
