"""Who comes first: the head of the queue, which a pass starts or makes a reservation for."""

from __future__ import annotations

from hpcgym.compilation import jit_part
from hpcgym.engine.ordered import BLOCK
from hpcgym.engine.orders.scores import best_scored
from hpcgym.engine.state import (
    AN_ORDER,
    BACKFILLED,
    EACH_PASS,
    PRIMARY_QUEUE,
    QUEUE,
    SCORED,
    SELECTION,
    SUBMISSION,
)


@jit_part
def asks_for_order(sim):
    """Return whether the pass is to be interrupted for a new order; it is asked for once."""
    if sim.asks == EACH_PASS:
        answered = sim.asked == AN_ORDER
        sim.asked = 0 if answered else AN_ORDER
        sim.changed = 1
        return not answered
    sim.asked = 0
    return False


@jit_part
def first_in_order(sim, jobs, scores, progress, blocks, entries):
    """Return the queued job that is first in primary order, -1 if it is yet to be selected.

    The queue must not be empty.
    """
    order = sim.primary
    if order == SUBMISSION and sim.secondary == SUBMISSION:
        return entries[QUEUE * BLOCK].job
    if order == SELECTION:
        return sim.selected
    if order == SUBMISSION or sim.threshold >= 0:
        job = oldest(sim, progress)
        if order == SUBMISSION or sim.time - jobs[job].submit > sim.threshold:
            return job
    if order >= SCORED:
        return best_scored(sim, jobs, scores, progress, blocks, entries)
    return entries[PRIMARY_QUEUE * BLOCK].job


@jit_part
def oldest(sim, progress):
    """Return the queued job that was submitted first."""
    job = sim.oldest
    while progress[job].start >= 0:
        job += 1
    sim.oldest = job
    return job


@jit_part
def promise(sim, progress, head, time):
    """Promise a time to the head, if nothing has been promised to it.

    Where the order changes as jobs wait, the next pass may have another head: no promise.
    """
    if progress[head].promised < 0 and sim.primary < SELECTION:
        progress[head].promised = time


@jit_part
def count_backfilled(sim, progress, job, width, predicted):
    """Note that a job starts before the head."""
    if sim.time + predicted > sim.shadow:
        sim.extra -= width
    progress[job].marks += BACKFILLED
