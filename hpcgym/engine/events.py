"""The event loop: submissions, ends and expiring predictions, up to the next scheduling pass.

What happens at equal times is the whole difference between the two rules for passes:

- per timestamp: expiries, all ends in the order of the starts, all submissions, then one pass;
- per event: expiries, then each submission and after them each end, a pass following each.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_inline, jit_part
from hpcgym.engine.idle_power import rest, wake
from hpcgym.engine.ordered import (
    BLOCK,
    NOTHING,
    ONE,
    block_at,
    copy_entry,
    find,
    insert,
    move_back,
    remove,
    tidy,
    tidy_swept,
)
from hpcgym.engine.orders.narrow import widen_narrow
from hpcgym.engine.orders.scores import widen
from hpcgym.engine.state import (
    A_CORRECTION,
    A_PREDICTION,
    A_RENEWAL,
    AGAIN,
    AVERAGE,
    BACKFILLED,
    CORRECTED,
    DOUBLING,
    EACH_TIME,
    FOREVER,
    GIVEN,
    INCREMENTAL,
    KEYED,
    KILL,
    PER_EVENT,
    PREDICTION,
    PRIMARY_QUEUE,
    QUEUE,
    RUNNING,
    SCORED,
    STARTED_AS,
    SUBMISSION,
    UNCORRECTED,
    UNLIMITED,
)

# [s] Glesser 2016, section 7.4.2: added to the first prediction, one after the other
INCREMENTS = np.array(
    [60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000], np.int64
)


@jit_inline
def next_pass(sim, jobs, progress, users, history, blocks, entries, freed, idle, ended, stop_time):
    """Advance to the next scheduling pass at ``stop_time`` [s] or before; False if none is left.

    False also where a prediction is asked for: ``sim.asked`` says so. Called again, it goes on.
    """
    if sim.asked == A_RENEWAL:
        sim.asked = 0
        sim.ended_at_pass = sim.ended
        return True
    while True:
        due = False
        if sim.asked == A_PREDICTION:
            sim.asked = 0
            due = sim.pass_due == 1
            time = sim.time
        else:
            end = next_end(blocks)
            time = end
            if sim.next < len(jobs):
                time = min(time, jobs[sim.next].submit)
            if sim.correction != UNCORRECTED:
                time = min(time, first_predicted_end(blocks, entries))
            if time > stop_time or time == FOREVER:
                return False
            sim.time = time
            if sim.correction != UNCORRECTED and first_predicted_end(blocks, entries) == time:
                expire(sim, jobs, progress, blocks, entries)
                if sim.asked == A_CORRECTION:
                    return False
            arriving = sim.next < len(jobs) and jobs[sim.next].submit == time
            if end == time and not (arriving and sim.passes == PER_EVENT):
                due = True
                if order_matters_not(sim):
                    end_all(sim, blocks, entries, idle)
                    end = FOREVER
                while end == time:
                    end_first(
                        sim, jobs, progress, users, history, blocks, entries, freed, idle, ended
                    )
                    end = FOREVER if sim.passes == PER_EVENT else next_end(blocks)
        while sim.next < len(jobs) and jobs[sim.next].submit == time:
            job = sim.next
            if sim.learns == 1 and job >= sim.answered:
                sim.asked = A_PREDICTION
                sim.pass_due = np.int64(due)
                return False
            submit(sim, jobs, progress, users, history, job)
            due = True
            if sim.passes == PER_EVENT:
                # the original simulator looks at its queue only if the new job could start, unless
                # the order of backfilling is not that of submission; it holds no jobs back
                if sim.secondary == SUBMISSION and sim.depth != UNLIMITED and sim.holds == 0:
                    free = free_processors(sim, blocks, entries)
                    due = jobs[job].processors <= free
                break
        if due:
            news = sim.renews == EACH_TIME or sim.ended > sim.ended_at_pass
            if sim.renews > 0 and news and (blocks[QUEUE].count > 0 or sim.arrived > 0):
                sim.asked = A_RENEWAL
                return False
            sim.ended_at_pass = sim.ended
            return True


@jit_part
def order_matters_not(sim):
    """Return whether jobs that end together may end in any order."""
    return (
        sim.passes != PER_EVENT
        and sim.estimate == GIVEN
        and sim.logs == 0
        and sim.depth != UNLIMITED
    )


@jit_part
def first_predicted_end(blocks, entries):
    """Return the first predicted end of a running job, FOREVER if none runs."""
    return entries[RUNNING * BLOCK].key if blocks[RUNNING].count > 0 else FOREVER


@jit_part
def next_end(blocks):
    """Return when the next running job ends, FOREVER if none runs."""
    end = blocks[RUNNING].least_span
    for k in range(1, blocks[RUNNING].in_use):
        end = min(end, blocks[block_at(blocks, RUNNING, k)].least_span)
    return end


@jit_part
def end_all(sim, blocks, entries, idle):
    """End all running jobs whose end is now, where their order makes no difference."""
    sim.changed = 1
    k = 0
    while k < blocks[RUNNING].in_use:
        block = block_at(blocks, RUNNING, k)
        k += 1
        if blocks[block].least_span == sim.time:
            end_in_block(sim, blocks, entries, idle, block)
            if blocks[RUNNING].in_use > 1:
                k = tidy_swept(blocks, entries, RUNNING, k)


@jit_inline
def end_in_block(sim, blocks, entries, idle, block):
    """End the running jobs of one block whose end is now."""
    time = sim.time
    base = np.uint64(block * BLOCK)
    end = base + np.uint64(blocks[block].count)
    least = NOTHING
    kept = base
    while entries[kept].span != time:
        least = min(least, entries[kept].span)
        kept += ONE
    freed = entries[kept].width
    for i in range(kept + ONE, end):
        span = entries[i].span
        if span == time:
            freed += entries[i].width
        else:
            copy_entry(entries, kept, i)
            kept += ONE
            least = min(least, span)
    blocks[block].count = np.int64(kept - base)
    blocks[block].least_span = least
    blocks[block].sum_width -= freed
    sim.free += freed
    if sim.managed == 1:
        rest(sim, idle, freed)


@jit_part
def end_first(sim, jobs, progress, users, history, blocks, entries, freed, idle, ended):
    """End the running job whose end is now; of several the one that started first."""
    several = blocks[RUNNING].in_use > 1
    position = block_of_next_end(sim, progress, blocks, entries) if several else 0
    block = block_at(blocks, RUNNING, position)
    base = np.uint64(block * BLOCK)
    last = base + np.uint64(blocks[block].count) - ONE
    i = next_in_block(sim.time, progress, entries, base, last)
    job, width, predicted_end = entries[i].job, entries[i].width, entries[i].key
    least = NOTHING
    for k in range(base, i):
        least = min(least, entries[k].span)
    for k in range(i, last):
        copy_entry(entries, k, k + ONE)
        least = min(least, entries[k].span)
    blocks[block].least_span = least
    blocks[block].count -= 1
    blocks[block].sum_width -= width
    if blocks[RUNNING].in_use > 1:
        tidy(blocks, entries, RUNNING, position)
    sim.free += width
    if sim.managed == 1:
        rest(sim, idle, width)
    sim.changed = 1
    if sim.depth == UNLIMITED and predicted_end > sim.time:
        freed[sim.ended_early].until = predicted_end
        freed[sim.ended_early].width = width
        sim.ended_early += 1
    if sim.logs == 1:
        ended[sim.ended] = job
        sim.ended += 1
    if sim.estimate == AVERAGE:
        user = users[job]
        for k in range(history.shape[1] - 1):
            history[user, k] = history[user, k + 1]
        history[user, history.shape[1] - 1] = jobs[job].run


@jit_part
def next_in_block(time, progress, entries, base, last):
    """Return the entry that ends at ``time`` and started first, of those up to ``last``."""
    found = base
    while entries[found].span != time:
        found += ONE
    for i in range(found + ONE, last + ONE):
        if (
            entries[i].span == time
            and progress[entries[i].job].marks < progress[entries[found].job].marks
        ):
            found = i
    return found


@jit
def block_of_next_end(sim, progress, blocks, entries):
    """Return the position of the block with the job that ends now and started first."""
    chosen = -1
    started = NOTHING
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        if blocks[block].least_span == sim.time:
            base = np.uint64(block * BLOCK)
            last = base + np.uint64(blocks[block].count) - ONE
            i = next_in_block(sim.time, progress, entries, base, last)
            if progress[entries[i].job].marks < started:
                started = progress[entries[i].job].marks
                chosen = k
    return chosen


@jit_part
def submit(sim, jobs, progress, users, history, job):
    """Make a job known; the next pass starts it or puts it into the queue."""
    sim.next = job + 1
    sim.arrived += 1
    if sim.estimate == AVERAGE:
        progress[job].predicted = average_of_last(history, users[job], jobs[job].requested)
    if sim.correction == KILL:
        jobs[job].run = min(jobs[job].run, progress[job].predicted)


@jit_part
def average_of_last(history, user, requested):
    """Return the mean run time of the user's last jobs, at most ``requested``, or that without."""
    if history[user, 0] < 0:
        return requested
    total = 0
    for k in range(history.shape[1]):
        total += history[user, k]
    return min(total // history.shape[1], requested)


@jit_part
def enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job):
    """Put a job into the queue."""
    width = jobs[job].processors
    predicted = progress[job].predicted
    key = listing_key(sim, jobs, progress, keys, job)
    block = insert(blocks, entries, QUEUE, key, job, predicted, width)
    if blocks[block].narrow_known == 1:
        widen_narrow(narrow, block, width, predicted)
    if sim.primary >= SCORED:
        widen(jobs, scores, blocks, block, job)
    if sim.primary == KEYED:
        insert(blocks, entries, PRIMARY_QUEUE, keys[job], job, predicted, width)


@jit_part
def listing_key(sim, jobs, progress, keys, job):
    """Return the key of a job in the queue, which is listed in secondary order."""
    if sim.secondary == PREDICTION:
        return progress[job].predicted
    if sim.secondary == KEYED:
        return keys[len(jobs) + job]
    return job


@jit_part
def leave_queue(sim, jobs, progress, keys, blocks, entries, job):
    """Take a job out of the queue."""
    key = listing_key(sim, jobs, progress, keys, job)
    position, block, i = find(blocks, entries, QUEUE, key, job)
    remove(blocks, entries, QUEUE, position, block, i)
    if sim.primary == KEYED:
        leave_primary_queue(keys, blocks, entries, job)


@jit
def leave_primary_queue(keys, blocks, entries, job):
    """Take a job out of the list in primary order."""
    position, block, i = find(blocks, entries, PRIMARY_QUEUE, keys[job], job)
    remove(blocks, entries, PRIMARY_QUEUE, position, block, i)


@jit_inline
def start(sim, jobs, progress, blocks, entries, idle, job):
    """Start a job that is not, or no longer, in the queue."""
    time = sim.time
    width = jobs[job].processors
    if sim.managed == 1:
        time += wake(sim, idle, width)
    predicted_end = time + progress[job].predicted
    progress[job].start = time
    progress[job].marks += sim.started * STARTED_AS
    sim.started += 1
    sim.free -= width
    insert(blocks, entries, RUNNING, predicted_end, job, time + jobs[job].run, width)


@jit_part
def expire(sim, jobs, progress, blocks, entries):
    """Correct the predictions that end now, of jobs that run on."""
    while True:
        position, block, i = first_expired(sim, blocks, entries)
        if position < 0:
            return
        job = entries[i].job
        if sim.correction == AGAIN and sim.asked != A_CORRECTION:
            sim.asked = A_CORRECTION
            sim.expiring = job
            return
        predicted_end = progress[job].start + corrected(sim, jobs, progress, job)
        sim.asked = 0
        move_back(blocks, entries, RUNNING, position, block, i, predicted_end)
        sim.changed = 1
        sim.expired = 1


@jit_part
def first_expired(sim, blocks, entries):
    """Return where a running job stands whose prediction ends now though it runs on, else -1."""
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[i].key > sim.time:
                return -1, -1, -1
            if entries[i].span > sim.time:
                return k, block, i
    return -1, -1, -1


@jit_part
def corrected(sim, jobs, progress, job):
    """Return the run time that is predicted for a job that has reached its prediction."""
    requested = jobs[job].requested
    count = progress[job].marks % BACKFILLED
    if count < BACKFILLED - 1:
        progress[job].marks += CORRECTED
    if sim.correction == AGAIN and sim.renewed > sim.time - progress[job].start:
        return min(sim.renewed, requested)
    if sim.correction == INCREMENTAL and count < len(INCREMENTS):
        return min(progress[job].predicted + INCREMENTS[count], requested)
    if sim.correction == DOUBLING:
        # not bounded by the requested time: so the published values were obtained
        return 2 * (sim.time - progress[job].start)
    return requested


@jit_part
def free_processors(sim, blocks, entries):
    """Return the processors free now, with those of jobs that are predicted to end now."""
    free = sim.free
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[i].key > sim.time:
                return free
            free += entries[i].width
    return free
