"""When jobs that wait are looked at, where that is not at each event but as Slurm does.

A look comes ``sim.every`` seconds after the last, as long as jobs wait or something has happened
since; else at the next event. ``sim.look`` is when the next one may come. ``sim.due`` is when there
must be one although nothing happens: other looks would find what the last one found, and are only
counted, at the next event.

On nodes (``sim.by_plan``) it depends on the plan, too, whether looks go on though nothing happens.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit_part
from hpcgym.engine.events import next_pass
from hpcgym.engine.state import (
    A_LOOK,
    A_RENEWAL,
    AN_EVENT,
    EACH_TIME,
    FOREVER,
    NO_THRESHOLD,
    OVER_ALL,
    QUEUE,
    SCORED,
    UNCORRECTED,
)


@jit_part
def next_planned_pass(
    sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, machine, stop_time
):
    """Advance to the next event, or to the next look or pass over all jobs that is due.

    Orders that are worked out anew at each pass are asked for as before a pass at an event.
    """
    due = min(sim.due, sim.all_due)
    stop = min(stop_time, due)
    if next_pass(sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, stop):
        return True
    if sim.asked != 0 or due > stop_time or due == FOREVER:
        return False
    sim.woken = np.int64(A_LOOK if due < sim.all_due else OVER_ALL)
    return go_to(sim, blocks, due)


@jit_part
def go_to(sim, blocks, time):
    """Let it be a later time at which nothing ends; return False if an order is asked for first."""
    sim.time = time
    news = sim.renews == EACH_TIME or (sim.renews > 0 and sim.ended > sim.ended_at_pass)
    if news and blocks[QUEUE].count > 0:
        sim.asked = A_RENEWAL
        return False
    return True


@jit_part
def is_looked_at(sim, waits):
    """Return whether the jobs that wait are looked at now; if not, note when they are.

    ``waits``: whether there are any.
    """
    late = sim.time - sim.look
    if sim.look < 0:
        sim.look = sim.time
    elif late > 0 and sim.waited == 0:
        if sim.had_planned == 1:  # nobody waited at that look, which has freed the nodes
            sim.look += sim.every
            sim.had_planned = 0
        if sim.look < sim.time:
            sim.look = max(sim.time, sim.look + sim.every)
    elif late > 0:  # looks that would have found nothing new are counted now
        sim.look += -(-late // sim.every) * sim.every
    now = sim.look == sim.time
    if now:
        sim.look += sim.every
    else:
        sim.woken = AN_EVENT
    sim.due = sim.look if waits and not now else FOREVER
    sim.waited = np.int64(waits)
    return now


@jit_part
def note_next_look(sim, queued, left):
    """After a look note the next; ``queued`` jobs waited before it, ``left`` do now."""
    woken = sim.woken == A_LOOK
    sim.woken = AN_EVENT
    if left > 0:
        look_for_starts(sim, left < queued)
    sim.waited = np.int64(left > 0)
    if sim.by_plan == 0:
        return
    if queued > 0:
        go_on_by_plan(sim, left, left < queued or not woken)
    else:
        sim.had_planned = 0


@jit_part
def look_for_starts(sim, started):
    """Note when jobs that wait may be able to start though nothing happens.

    They may if their order or a predicted end changes, or once a reservation that was too late is
    near enough. They may if jobs have ``started`` in this look: others are among the first now, and
    on nodes reservations go by what running jobs leave.
    """
    if started or order_moves(sim):
        sim.due = sim.look
    elif sim.beyond < FOREVER:
        late = max(sim.beyond - sim.window - sim.look, 0)
        sim.due = sim.look + -(-late // sim.every) * sim.every


@jit_part
def order_moves(sim):
    """Return whether the order of the queue or predicted ends may change though nothing happens."""
    moves = sim.primary >= SCORED or sim.threshold != NO_THRESHOLD
    return moves or sim.correction != UNCORRECTED


@jit_part
def go_on_by_plan(sim, left, happened):
    """Note whether looks on nodes go on though nothing happens.

    Slurm looks again if something has changed since it looked. So has it for Slurm where two jobs
    wait, where a plan reserves a node without a job, or the plan before did, and where a job would
    fit before the time that it was tried from. Then all looks that follow find the same.
    ``happened``: whether this look has changed something itself, or came with an event.
    """
    planned_before = sim.had_planned == 1
    sim.had_planned = np.int64(sim.idle_planned > 0)
    again = left > 1 or sim.had_planned == 1 or sim.put_off == 1
    sim.waited = np.int64(again)
    if not (again or happened or planned_before):  # there is no look until something happens
        sim.look -= sim.every
        sim.due = FOREVER
    elif not again and sim.due > sim.look:
        sim.due = FOREVER
