"""Portfolio look-ahead: which weights to follow at a pass, by draining the present queue.

At each pass at which some queued job fits, the queue is drained, without further arrivals and on
estimated run times, once for each weight vector of a portfolio; the vector whose drained queue has
the least sum of estimated bounded slowdowns is followed up to the next pass. The drained simulation
goes on from a copy of the lists of queued and running jobs, by the same kernel and under the same
job numbers. Each vector is first tried for the present pass alone; where all start the same jobs,
there is nothing to choose, and the queue is not drained to its end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.engine.machines.pool.easy import run
from hpcgym.engine.many.beliefs import estimate_all, learn
from hpcgym.engine.ordered import BLOCK, block_at, empty, insert
from hpcgym.engine.orders.mixing import mix
from hpcgym.engine.state import AN_ORDER, FOREVER, GIVEN, NOBODY, QUEUE, RUNNING

DIGIT = np.int64(2**27)  # base in which costs are counted: products of two digits fit into a word


class Foresight(NamedTuple):
    """What look-ahead works with, beside the simulation that it looks ahead of."""

    settings: NDArray[np.int64]
    tau: float  # [s] run times below this count as this in bounded slowdowns
    scores: NDArray[np.void]  # (n_vectors, n_jobs) SCORES, or 2 * n_jobs as in the kernel
    # what is known of run times
    classes: NDArray[np.int64]  # (n_jobs, LEVELS) rows of the next two
    counts: NDArray[np.float64]  # (n_classes, BINS) ended jobs, by run time / requested time
    ratios: NDArray[np.float64]  # (n_classes, 2) sum of run time / requested time, and number
    unfinished: NDArray[np.int64]  # (n_jobs,) jobs submitted that were not known to have ended
    learned: NDArray[np.int64]  # (n_jobs,) [s] start times of those that were, else -1
    # the drained simulation
    jobs: NDArray[np.void]
    sim: NDArray[np.void]  # (1,) SIM
    progress: NDArray[np.void]
    blocks: NDArray[np.void]
    entries: NDArray[np.void]
    narrow: NDArray[np.int64]
    # scratch
    queued: NDArray[np.int64]  # (n_jobs,)
    importance: NDArray[np.float64]  # (n_jobs,) [1/s] bounded slowdown that a second's wait adds
    units: NDArray[np.int64]  # (n_jobs,) the same as a whole number
    belief: NDArray[np.float64]  # (BINS,)
    started: NDArray[np.int64]  # (n_vectors,) a hash of the jobs that start now


@jit_entry
def follow_best(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, look,
):  # fmt: skip
    """Simulate to the end under look-ahead; ``sim.asks`` must be EACH_PASS, the order SCORED."""
    while True:
        run(
            jobs, keys, scores, users,
            sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
            ended, (), np.int64(FOREVER), np.int64(FOREVER),
        )  # fmt: skip
        if sim.asked == 0:
            return
        best = choose(
            jobs, keys, users,
            sim, progress, history, blocks, entries, profile, line, freed, idle,
            ended, look,
        )  # fmt: skip
        for k in range(blocks[QUEUE].in_use):
            block = block_at(blocks, QUEUE, k)
            blocks[block].greatest_gain = np.inf  # no bound of the scores holds any longer
            for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
                job = entries[i].job
                scores[job].score = look.scores[best, job].score
                scores[job].patience = look.scores[best, job].patience


@jit_entry
def choose(
    jobs, keys, users,
    sim, progress, history, blocks, entries, profile, line, freed, idle,
    ended, look,
):  # fmt: skip
    """Return the vector to follow at the pass that asks now, the first of equals."""
    learn(sim, jobs, progress, look)
    n = list_queue(blocks, entries, look.queued)
    n_vectors = len(look.scores)
    if n < 2 or n_vectors < 2:
        return np.int64(0)
    estimate_all(sim, jobs, progress, blocks, entries, look, n)
    others = 0
    for v in range(n_vectors):
        drain(
            keys, users, sim, progress, history, blocks, entries, profile, line, freed, idle,
            ended, look, np.int64(v), np.int64(1),
        )  # fmt: skip
        look.started[v] = code_of_started(look, n)
        others += look.started[v] != look.started[0]
    if others == 0:
        return np.int64(0)
    best, least = np.int64(0), (np.int64(FOREVER), np.int64(0), np.int64(0))
    for v in range(n_vectors):
        drain(
            keys, users, sim, progress, history, blocks, entries, profile, line, freed, idle,
            ended, look, np.int64(v), np.int64(FOREVER),
        )  # fmt: skip
        cost = cost_of(look, n)
        if is_less(cost, least):
            best, least = np.int64(v), cost
    return best


# -- the drained simulation ------------------------------------------------------------------------


@jit
def drain(
    keys, users, sim, progress, history, blocks, entries, profile, line, freed, idle,
    ended, look, vector, passes,
):  # fmt: skip
    """Simulate the present pass under a vector, and as many more as it takes to make ``passes``.

    The arrays that are passed on without a copy are not written to under the rules set here.
    """
    copy_machine(sim, progress, blocks, entries, look)
    run(
        look.jobs, keys, look.scores[vector], users,
        look.sim[0], look.progress, history, look.blocks, look.entries, profile, line, look.narrow,
        freed, idle, ended, (), np.int64(FOREVER), passes,
    )  # fmt: skip


@jit_part
def copy_machine(sim, progress, blocks, entries, look):
    """Set the drained simulation to the present pass: no job to come, ends as estimated."""
    look.sim[0] = sim
    look.sim[0].next = len(look.jobs)
    look.sim[0].asked = AN_ORDER  # go on with this pass
    look.sim[0].asks = NOBODY
    look.sim[0].estimate = GIVEN
    look.sim[0].learns = 0
    look.sim[0].logs = 0
    look.sim[0].managed = 0  # no processor has to be switched on first
    look.sim[0].head = -1
    look.sim[0].changed = 1
    empty(look.blocks, RUNNING)
    empty(look.blocks, QUEUE)
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            key, job = entries[i].key, entries[i].job
            # where events are handled one by one, a job may be about to end as predicted
            end = progress[job].start + look.jobs[job].run if key > sim.time else key
            look.progress[job].start = progress[job].start
            look.progress[job].marks = progress[job].marks
            look.progress[job].predicted = progress[job].predicted
            insert(look.blocks, look.entries, RUNNING, key, job, end, entries[i].width)
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            key, job, span = entries[i].key, entries[i].job, entries[i].span
            look.progress[job].start = -1
            look.progress[job].marks = 0
            look.progress[job].predicted = progress[job].predicted
            insert(look.blocks, look.entries, QUEUE, key, job, span, entries[i].width)


@jit_part
def list_queue(blocks, entries, queued):
    """Write the queued jobs to ``queued``; return how many there are."""
    n = 0
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            queued[n] = entries[i].job
            n += 1
    return n


@jit_part
def code_of_started(look, n):
    """Return a number that is the same if the same jobs start now, and else another (a hash)."""
    code = np.uint64(14695981039346656037)  # FNV-1a, over job numbers instead of bytes
    for i in range(n):
        if look.progress[look.queued[i]].start >= 0:
            code = (code ^ np.uint64(look.queued[i])) * np.uint64(1099511628211)
            code ^= code >> np.uint64(29)
    return np.int64(code >> np.uint64(1))


# -- costs -----------------------------------------------------------------------------------------


@jit_part
def cost_of(look, n):
    """Return what the waiting of the queued jobs costs in the drained simulation, exactly.

    It is a whole number in three digits to the base ``DIGIT``, the highest first: no single word
    holds it.
    """
    high, middle, low = np.int64(0), np.int64(0), np.int64(0)
    for i in range(n):
        job = look.queued[i]
        wait = look.progress[job].start - look.jobs[job].submit
        units = look.units[job]
        low += (units % DIGIT) * (wait % DIGIT)
        middle += (units // DIGIT) * (wait % DIGIT) + (units % DIGIT) * (wait // DIGIT)
        middle += low // DIGIT
        high += (units // DIGIT) * (wait // DIGIT) + middle // DIGIT
        low %= DIGIT
        middle %= DIGIT
    return high, middle, low


@jit_part
def is_less(cost, other):
    """Return whether one cost is less than another."""
    if cost[0] != other[0]:
        return cost[0] < other[0]
    if cost[1] != other[1]:
        return cost[1] < other[1]
    return cost[2] < other[2]


# -- scores ----------------------------------------------------------------------------------------


@jit_entry
def fill_scores(jobs, weights, places, static, waiting, serial, scores):
    """Write the scores of all jobs under each vector, as an environment computes them.

    ``weights`` is (n_vectors, n_features), for the rest see :mod:`hpcgym.engine.orders.mixing`.
    """
    for v in range(len(weights)):
        total = 0.0
        for k in range(weights.shape[1]):
            total += abs(weights[v, k])
        for job in range(len(jobs)):
            part = serial[job] if len(serial) > 0 else 1.0
            scores[v, job].score, scores[v, job].patience = mix(
                weights[v], places, total, static[job], waiting, part,
                np.float64(jobs[job].requested),
            )  # fmt: skip
