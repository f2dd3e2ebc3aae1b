"""A scheduling pass with no reservation or one (EASY): start what can start.

The head of the queue (first in primary order) starts while it fits. If it does not, it gets the
one reservation: the shadow time, the earliest at which the running jobs' predicted ends leave it
enough processors, and the extra processors, those it leaves free then. Any other job may start now
if it fits and either ends by the shadow time or takes extra processors only.

Starting such a job moves neither the shadow time nor the head, and as time passes no more jobs come
to fit. So until a job ends, a prediction expires or the head changes, a pass need only look at the
jobs that have arrived since the last one. Where long jobs are held back, more may come to fit as
time passes: there each pass is a full one.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_inline, jit_part
from hpcgym.engine.events import (
    enqueue,
    first_predicted_end,
    free_processors,
    leave_primary_queue,
    leave_queue,
    start,
)
from hpcgym.engine.holding import needed
from hpcgym.engine.loop import loop_of, next_event_pass
from hpcgym.engine.ordered import (
    BLOCK,
    NOTHING,
    ONE,
    block_at,
    copy_entry,
    tidy_swept,
)
from hpcgym.engine.orders.narrow import least_of_narrow, summarise_narrow
from hpcgym.engine.orders.scores import best_to_backfill
from hpcgym.engine.passes.heads import (
    asks_for_order,
    count_backfilled,
    first_in_order,
    promise,
)
from hpcgym.engine.state import (
    AN_ORDER,
    KEYED,
    NOBODY,
    PER_EVENT,
    QUEUE,
    RUNNING,
    SCORED,
    SELECTION,
    SUBMISSION,
)


@jit_part
def do_pass(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, machine,
):  # fmt: skip
    """Start what may start; ``machine`` is an empty tuple, for ``sim`` tells all of a pool."""
    # processors of jobs that are predicted to end now: only passes at single events see any
    leaving = 0
    if sim.passes == PER_EVENT and first_predicted_end(blocks, entries) <= sim.time:
        leaving = free_processors(sim, blocks, entries) - sim.free
        sim.changed = 1
    if sim.holds > 0:
        sim.changed = 1
    arrived = sim.arrived
    sim.arrived = 0
    settled = starts = False
    if arrived == 1 and sim.asks == NOBODY and sim.holds == 0:
        settled, starts = settle_arrival(sim, jobs, keys, progress, blocks, leaving)
    if starts:
        start(sim, jobs, progress, blocks, entries, idle, sim.next - 1)
    else:
        for job in range(sim.next - arrived, sim.next):
            enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
    if not settled and blocks[QUEUE].count > 0:
        serve_queue(sim, jobs, keys, scores, progress, blocks, entries, line, narrow, idle, leaving)


@jit_part
def settle_arrival(sim, jobs, keys, progress, blocks, leaving):
    """Judge a single new job alone, where that settles the pass: (settled, the job starts)."""
    job = sim.next - 1
    fits = jobs[job].processors <= sim.free + leaving
    if blocks[QUEUE].count == 0:
        return fits, fits
    head = sim.head
    if sim.changed == 1 or head < 0 or sim.primary >= SCORED:
        return False, False
    if sim.primary != SUBMISSION and (sim.threshold >= 0 or keys[job] < keys[head]):
        return False, False
    if not fits or sim.depth == 0:
        return True, False
    width, predicted = jobs[job].processors, progress[job].predicted
    starts = may_backfill(sim, width, predicted, leaving)
    if starts:
        count_backfilled(sim, progress, job, width, predicted)
    return True, starts


@jit_part
def serve_queue(sim, jobs, keys, scores, progress, blocks, entries, line, narrow, idle, leaving):
    """Start heads while they fit, then jobs behind the first head that does not."""
    if sim.primary >= SELECTION and may_wait(sim, jobs, line, blocks, entries, leaving):
        return
    head = -1
    while blocks[QUEUE].count > 0:
        head = first_in_order(sim, jobs, scores, progress, blocks, entries)
        if head < 0:
            sim.asked = AN_ORDER
            return
        if needed(sim, jobs, line, head) > sim.free + leaving:
            break
        leave_queue(sim, jobs, progress, keys, blocks, entries, head)
        start(sim, jobs, progress, blocks, entries, idle, head)
        sim.changed = 1
        sim.selected = -1
        head = -1
        if sim.primary == SELECTION and may_wait(sim, jobs, line, blocks, entries, leaving):
            return
    if sim.keeps == 0:
        sim.selected = -1
    if head < 0 or sim.depth == 0:
        sim.head = head
        sim.changed = 0
        return
    # where jobs are held back, all passes are full ones: here nobody could start
    if sim.holds > 0 and head == sim.head and least_width(blocks) > sim.free + leaving:
        return
    if sim.changed == 1 or head != sim.head:
        sim.changed = 0
        sim.head = head
        find_shadow(sim, progress, blocks, entries, needed(sim, jobs, line, head))
    if sim.secondary >= SCORED:
        sweep_scored(sim, jobs, keys, scores, progress, blocks, entries, line, idle, leaving)
    else:
        sweep(sim, jobs, keys, progress, blocks, entries, line, narrow, idle, leaving)


@jit_part
def may_wait(sim, jobs, line, blocks, entries, leaving):
    """Return whether the pass is to end, or to be interrupted for new scores, before all else.

    It is to end where no job can start: then the order of the queue, which may be another at the
    next pass, makes no difference. If it is left in the middle, it is not over.
    """
    if sim.keeps == 0:
        free = sim.free + leaving
        # bounds may be too low; what is asked must not depend on them
        if (
            least_width(blocks) > free
            or (sim.asks != NOBODY and none_fits(blocks, entries, free))
            or (sim.holds > 0 and all_held(sim, jobs, line, blocks, entries, free))
        ):
            sim.changed = 1
            return True
    return asks_for_order(sim)


@jit_part
def least_width(blocks):
    """Return a number of processors that no queued job needs less than."""
    least = blocks[QUEUE].least_width
    for k in range(1, blocks[QUEUE].in_use):
        least = min(least, blocks[block_at(blocks, QUEUE, k)].least_width)
    return least


@jit
def none_fits(blocks, entries, free):
    """Return whether all queued jobs need more processors than that, and mend the bounds."""
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        if blocks[block].least_width <= free:
            least = NOTHING
            for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
                least = min(least, entries[i].width)
            blocks[block].least_width = least
            if least <= free:
                return False
    return True


@jit
def all_held(sim, jobs, line, blocks, entries, free):
    """Return whether all queued jobs need more processors than that to be free."""
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if needed(sim, jobs, line, entries[i].job) <= free:
                return False
    return True


@jit_inline
def find_shadow(sim, progress, blocks, entries, width):
    """Set the shadow time of the head, which needs so many processors, and what is left then."""
    missing = width - sim.free
    time = -1
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        if blocks[RUNNING].in_use > 1 and time < 0 and blocks[block].sum_width < missing:
            missing -= blocks[block].sum_width
            continue
        i = np.uint64(block * BLOCK)
        last = i + np.uint64(blocks[block].count)
        while i < last and missing > 0:
            missing -= entries[i].width
            time = entries[i].key
            i += ONE
        # all that is released at the shadow time counts
        while i < last and entries[i].key == time:
            missing -= entries[i].width
            i += ONE
        if i < last:
            break
    sim.shadow = time
    sim.extra = -missing if sim.strict == 0 else 0
    promise(sim, progress, sim.head, time)


@jit_part
def may_backfill(sim, width, predicted, leaving):
    """Return whether a job fits now and does not delay the head; the shadow must be known."""
    if width > sim.free + leaving:
        return False
    return width <= sim.extra or sim.time + predicted <= sim.shadow - sim.strict


@jit_part
def sweep(sim, jobs, keys, progress, blocks, entries, line, narrow, idle, leaving):
    """Go through the queue in secondary order, passing over blocks in which no job can start."""
    k = 0
    while k < blocks[QUEUE].in_use:
        block = block_at(blocks, QUEUE, k)
        k += 1
        free = sim.free + leaving
        if blocks[block].least_width > free:
            continue
        window = sim.shadow - sim.strict - sim.time
        if blocks[block].least_width > sim.extra:
            if blocks[block].least_span > window:
                continue
            if blocks[block].narrow_known == 1 and least_of_narrow(narrow, block, free) > window:
                continue
        sweep_block(sim, jobs, keys, progress, blocks, entries, line, idle, leaving, block)
        if blocks[QUEUE].in_use > 1:
            if sim.secondary == SUBMISSION:
                summarise_narrow(blocks, entries, narrow, block)
            k = tidy_swept(blocks, entries, QUEUE, k)


@jit_inline
def sweep_block(sim, jobs, keys, progress, blocks, entries, line, idle, leaving, block):
    """Start the jobs of one block that may start, and make its summary anew."""
    i = np.uint64(block * BLOCK)
    end = i + np.uint64(blocks[block].count)
    # the head does not fit, and so is passed over
    free = sim.free + leaving
    extra = sim.extra
    window = sim.shadow - sim.strict - sim.time
    least_span = NOTHING
    least_width = NOTHING
    while True:
        while i < end:
            width, predicted = entries[i].width, entries[i].span
            may_start = width <= free and (width <= extra or predicted <= window)
            if may_start and sim.holds > 0:
                may_start = needed(sim, jobs, line, entries[i].job) <= free
            if may_start:
                break
            least_span = min(least_span, predicted)
            least_width = min(least_width, width)
            i += ONE
        if i == end:
            break
        free -= entries[i].width
        start_swept(sim, jobs, keys, progress, blocks, entries, idle, block, i)
        end -= ONE
        extra = sim.extra
    blocks[block].least_span = least_span
    blocks[block].least_width = least_width


@jit_part
def start_swept(sim, jobs, keys, progress, blocks, entries, idle, block, i):
    """Start the job of an entry before the head; the block is tidied when the sweep has left it."""
    job, width, predicted = entries[i].job, entries[i].width, entries[i].span
    blocks[block].count -= 1
    last = np.uint64(block * BLOCK + blocks[block].count)
    while i < last:
        copy_entry(entries, i, i + ONE)
        i += ONE
    if sim.primary == KEYED:
        leave_primary_queue(keys, blocks, entries, job)
    count_backfilled(sim, progress, job, width, predicted)
    start(sim, jobs, progress, blocks, entries, idle, job)


@jit
def sweep_scored(sim, jobs, keys, scores, progress, blocks, entries, line, idle, leaving):
    """Start the best of the jobs that may start, again and again: an order that time changes."""
    while True:
        job = best_to_backfill(sim, jobs, line, scores, blocks, entries, leaving)
        if job < 0:
            return
        leave_queue(sim, jobs, progress, keys, blocks, entries, job)
        count_backfilled(sim, progress, job, jobs[job].processors, progress[job].predicted)
        start(sim, jobs, progress, blocks, entries, idle, job)


run = loop_of(next_event_pass, do_pass)
