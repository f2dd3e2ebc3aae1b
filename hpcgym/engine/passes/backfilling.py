"""Jobs that start before the head: the queue is swept in the order of back-filling.

A machine gives what it does differently, which is compiled into its sweep: whether a job may start,
what happens when it does, and bounds by which whole blocks of the queue are passed over. A pool has
a sweep of its own, :mod:`hpcgym.engine.machines.pool.easy`: there all is told by four numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import leave_primary_queue, leave_queue
from hpcgym.engine.ordered import BLOCK, NOTHING, block_at, copy_entry, tidy_swept
from hpcgym.engine.orders.narrow import least_of_narrow, summarise_narrow
from hpcgym.engine.orders.scores import score_now
from hpcgym.engine.state import KEYED, QUEUE, SUBMISSION


def sweep_of(may_start: Any, begin: Any, bounds: Any, knows_narrow: bool) -> Any:
    """Return the sweep of a machine, in an order that time does not change.

    Parameters
    ----------
    may_start : whether a job may start now before the head; the machine notes where and how.
    begin : starts it, once it has left the queue.
    bounds : three numbers: the processors (nodes, parts) that a job can have at most now; those
        that one can have which runs on beyond the shadow time; and the prediction from which on a
        job does so.
    knows_narrow : whether blocks are passed over by their narrow jobs too.
    """

    @jit_part
    def sweep_block(machine, sim, jobs, keys, progress, blocks, entries, idle, block):
        """Start the jobs of one block that may start, and make its summary anew."""
        least_span = least_width = NOTHING
        free, beyond, longest = bounds(machine, sim)
        i = block * BLOCK
        while i < block * BLOCK + blocks[block].count:
            job, width, predicted = entries[i].job, entries[i].width, entries[i].span
            if (
                width <= free
                and (width <= beyond or predicted <= longest)
                and job != sim.head
                and may_start(machine, sim, jobs, progress, job)
            ):
                take_out(sim, keys, blocks, entries, block, i)
                begin(machine, sim, jobs, progress, blocks, entries, idle, job)
                free, beyond, longest = bounds(machine, sim)
                continue
            least_span = min(least_span, predicted)
            least_width = min(least_width, width)
            i += 1
        blocks[block].least_span = least_span
        blocks[block].least_width = least_width

    @jit_part
    def sweep(machine, sim, jobs, keys, progress, blocks, entries, narrow, idle):
        """Go through the queue in secondary order, passing over blocks in which none can start."""
        k = 0
        while k < blocks[QUEUE].in_use:
            block = block_at(blocks, QUEUE, k)
            k += 1
            free, beyond, longest = bounds(machine, sim)
            if blocks[block].least_width > free:
                continue
            if blocks[block].least_width > beyond:
                if blocks[block].least_span > longest:
                    continue
                if (
                    knows_narrow
                    and blocks[block].narrow_known == 1
                    and least_of_narrow(narrow, block, free) > longest
                ):
                    continue
            sweep_block(machine, sim, jobs, keys, progress, blocks, entries, idle, block)
            if blocks[QUEUE].in_use > 1:
                if knows_narrow and sim.secondary == SUBMISSION:
                    summarise_narrow(blocks, entries, narrow, block)
                k = tidy_swept(blocks, entries, QUEUE, k)

    return sweep


def sweep_scored_of(may_start: Any, begin: Any) -> Any:
    """Return the sweep of a machine in an order that time changes; see :func:`sweep_of`."""

    @jit
    def sweep_scored(machine, sim, jobs, keys, scores, progress, blocks, entries, idle):
        """Go through the queue from the best job to the last."""
        job, score = np.int64(-1), np.inf
        while True:
            job, score = next_scored(sim, jobs, scores, blocks, entries, job, score)
            if job < 0:
                return
            if job != sim.head and may_start(machine, sim, jobs, progress, job):
                leave_queue(sim, jobs, progress, keys, blocks, entries, job)
                begin(machine, sim, jobs, progress, blocks, entries, idle, job)

    return sweep_scored


@jit_part
def take_out(sim, keys, blocks, entries, block, i):
    """Take an entry out of the queue; the block is tidied when the sweep has left it."""
    job = entries[i].job
    blocks[block].count -= 1
    while i < block * BLOCK + blocks[block].count:
        copy_entry(entries, i, i + 1)
        i += 1
    if sim.primary == KEYED:
        leave_primary_queue(keys, blocks, entries, job)


@jit
def next_scored(sim, jobs, scores, blocks, entries, last, limit):
    """Return the queued job that comes after job ``last``, of score ``limit``, and its score."""
    best, highest = -1, -np.inf
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        if blocks[block].least_width > sim.free:
            continue
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            if entries[i].width > sim.free:
                continue
            second = scores[len(jobs) + job]
            waiting = sim.time - jobs[job].submit
            score = score_now(sim.secondary, second.score, second.patience, waiting)
            if score > limit or (score == limit and job <= last):
                continue
            if best < 0 or score > highest or (score == highest and job < best):
                best, highest = job, score
    return best, highest
