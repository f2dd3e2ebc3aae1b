"""Portfolio look-ahead: which weights to follow at a pass, by draining the present queue.

At each pass at which some queued job fits, the queue is drained, without further arrivals and on
estimated run times, once for each weight vector of a portfolio; the vector whose drained queue has
the least sum of estimated bounded slowdowns is followed up to the next pass. The drained simulation
goes on from a copy of the lists of queued and running jobs, by the same kernel and under the same
job numbers. Each vector is first tried for the present pass alone; where all start the same jobs,
there is nothing to choose, and the queue is not drained to its end.

Run times are estimated from those of ended jobs only: of the same user and request (``believe``),
or of the same user. The run time of a job that has not ended is never read, unless the estimate is
the clairvoyant one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_inline, jit_part
from hpcgym.engine.easy import run
from hpcgym.engine.mixing import mix
from hpcgym.engine.ordered import BLOCK, NOTHING, block_at, insert
from hpcgym.engine.state import (
    AN_ORDER,
    ASKED,
    ASKS,
    CHANGED,
    CORRECTION,
    ESTIMATE,
    FOREVER,
    GIVEN,
    HEAD,
    LEARNS,
    LOGS,
    MANAGED,
    NEVER,
    NEXT,
    NOBODY,
    PASSES,
    PER_EVENT,
    QUEUE,
    RUNNING,
    TIME,
)

# -- slots of `Foresight.settings` -----------------------------------------------------------------
(
    ESTIMATOR,  # how run times are estimated
    KNOWN,  # jobs before this one are known to `unfinished`
    N_UNFINISHED,
) = range(3)
N_SETTINGS = 3
LEARNED, USER_RATIO, REQUESTED, CLAIRVOYANT = range(4)  # ESTIMATOR

# Run times are counted by their ratio to the requested time: 1, 2**-0.5, ... 2**-19.5 or less.
BINS = 40
RATIOS = 2.0 ** (-0.5 * np.arange(BINS))
# Classes of jobs, each within the one before: all jobs, the user's, those of the same request too.
LEVELS = 3
DECAY = 0.9  # what a run time counts when the next of its class is known; all count among all jobs
PRIOR = 1.0  # run times that what is known of the wider class counts as


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
    sim: NDArray[np.int64]
    progress: NDArray[np.void]
    blocks: NDArray[np.void]
    entries: NDArray[np.void]
    narrow: NDArray[np.int64]
    # scratch
    queued: NDArray[np.int64]  # (n_jobs,)
    importance: NDArray[np.float64]  # (n_jobs,) [1/s] bounded slowdown that a second's wait adds
    belief: NDArray[np.float64]  # (BINS,)
    started: NDArray[np.int64]  # (n_vectors,) a hash of the jobs that start now


@jit_entry
def follow_best(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, look,
):  # fmt: skip
    """Simulate to the end under look-ahead; ``sim[ASKS]`` must be EACH_PASS, the order SCORED."""
    while True:
        run(
            jobs, keys, scores, users,
            sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
            ended, np.int64(FOREVER), np.int64(FOREVER),
        )  # fmt: skip
        if sim[ASKED] == 0:
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
    best, least = np.int64(0), np.inf
    for v in range(n_vectors):
        drain(
            keys, users, sim, progress, history, blocks, entries, profile, line, freed, idle,
            ended, look, np.int64(v), np.int64(FOREVER),
        )  # fmt: skip
        cost = cost_of(look, n)
        if cost < least:
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
        look.sim, look.progress, history, look.blocks, look.entries, profile, line, look.narrow,
        freed, idle, ended, np.int64(FOREVER), passes,
    )  # fmt: skip


@jit_part
def copy_machine(sim, progress, blocks, entries, look):
    """Set the drained simulation to the present pass: no job to come, ends as estimated."""
    for i in range(len(sim)):
        look.sim[i] = sim[i]
    look.sim[NEXT] = len(look.jobs)
    look.sim[ASKED] = AN_ORDER  # go on with this pass
    look.sim[ASKS] = NOBODY
    look.sim[ESTIMATE] = GIVEN
    look.sim[LEARNS] = 0
    look.sim[LOGS] = 0
    look.sim[MANAGED] = 0  # no processor has to be switched on first
    look.sim[HEAD] = -1
    look.sim[CHANGED] = 1
    empty(look.blocks, np.int64(RUNNING))
    empty(look.blocks, np.int64(QUEUE))
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            key, job = entries[i].key, entries[i].job
            # where events are handled one by one, a job may be about to end as predicted
            end = progress[job].start + look.jobs[job].run if key > sim[TIME] else key
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


@jit
def empty(blocks, which):
    """Take all entries out of a list."""
    for k in range(blocks[which].in_use):
        block = block_at(blocks, which, k)
        blocks[block].count = 0
        blocks[block].least_width = blocks[block].least_span = NOTHING
        blocks[block].sum_width = 0
        blocks[block].narrow_known = 0
        blocks[block].greatest_gain = np.inf
    blocks[which].in_use = 1


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


@jit_part
def cost_of(look, n):
    """Return the sum of estimated bounded slowdowns of the drained queue, but for a constant."""
    cost = 0.0
    for i in range(n):
        job = look.queued[i]
        cost += look.importance[job] * (look.progress[job].start - look.jobs[job].submit)
    return cost


# -- run times -------------------------------------------------------------------------------------


@jit
def learn(sim, jobs, progress, look):
    """Take note of the jobs that have ended, in the order of their ends."""
    settings, unfinished = look.settings, look.unfinished
    for job in range(settings[KNOWN], sim[NEXT]):
        unfinished[settings[N_UNFINISHED]] = job
        settings[N_UNFINISHED] += 1
    settings[KNOWN] = sim[NEXT]
    for i in range(settings[N_UNFINISHED]):
        # the drained simulation looks for its oldest job among those that have not started
        look.progress[unfinished[i]].start = progress[unfinished[i]].start
    # where events are handled one by one, an end of this second may be yet to be handled
    latest = sim[TIME] - 1 if sim[PASSES] == PER_EVENT else sim[TIME]
    while True:
        found, end = -1, latest + 1
        for i in range(settings[N_UNFINISHED]):
            start = progress[unfinished[i]].start
            if start >= 0 and start + jobs[unfinished[i]].run < end:
                found, end = i, start + jobs[unfinished[i]].run
        if found < 0:
            return
        job = unfinished[found]
        settings[N_UNFINISHED] -= 1
        for i in range(found, settings[N_UNFINISHED]):
            unfinished[i] = unfinished[i + 1]
        look.learned[job] = progress[job].start
        count(look, job, jobs[job].run, jobs[job].requested)


@jit_part
def count(look, job, run_time, requested):
    """Count a run time in all classes of the job."""
    b = min(np.int64(2.0 * np.log2(requested / run_time) + 0.5), BINS - 1)
    for level in range(LEVELS):
        row = look.classes[job, level]
        if level > 0:
            for k in range(BINS):
                look.counts[row, k] *= DECAY
        look.counts[row, b] += 1.0
        look.ratios[row, 0] += run_time / requested
        look.ratios[row, 1] += 1.0


@jit
def believe(look, job):
    """Write to ``look.belief`` how probable each ratio of run time to requested time is.

    Without any ended job it is 1. The counts of each class have the wider one's belief as a prior.
    """
    belief = look.belief
    row = look.classes[job, 0]
    number = look.ratios[row, 1]
    for k in range(BINS):
        belief[k] = look.counts[row, k] / number if number > 0 else 0.0
    if number == 0:
        belief[0] = 1.0
    for level in range(1, LEVELS):
        row = look.classes[job, level]
        if look.ratios[row, 1] > 0:
            total = PRIOR
            for k in range(BINS):
                total += look.counts[row, k]
            for k in range(BINS):
                belief[k] = (PRIOR * belief[k] + look.counts[row, k]) / total


@jit_inline
def estimate_all(sim, jobs, progress, blocks, entries, look, n):
    """Estimate the run times of running and queued jobs, and what a second's wait costs."""
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            # one that waits for processors to be switched on starts later
            elapsed = max(sim[TIME] - progress[job].start, 0)
            look.jobs[job].run = estimated(sim, jobs, progress, look, job, elapsed)
    for i in range(n):
        job = look.queued[i]
        look.jobs[job].run = estimated(sim, jobs, progress, look, job, np.int64(0))
        look.importance[job] = importance_of(jobs, look, job)


@jit
def estimated(sim, jobs, progress, look, job, elapsed):
    """Return the estimated run time of a job that has run for ``elapsed`` seconds so far [s]."""
    requested = jobs[job].requested
    mean = np.float64(requested)
    estimator = look.settings[ESTIMATOR]
    if estimator == CLAIRVOYANT:
        return jobs[job].run
    if estimator == USER_RATIO:
        row = look.classes[job, 1]
        if look.ratios[row, 1] > 0:
            mean *= look.ratios[row, 0] / look.ratios[row, 1]
    elif estimator == LEARNED:
        believe(look, job)
        # the mean of the run times that are still possible
        share = total = 0.0
        for k in range(BINS):
            if requested * RATIOS[k] > elapsed:
                share += look.belief[k]
                total += look.belief[k] * (requested * RATIOS[k])
        if share > 0:
            mean = total / share
    most = requested
    if sim[CORRECTION] == NEVER:
        most = min(most, progress[job].predicted)  # which no job outlives
    return min(max(np.int64(mean), elapsed + 1), most)


@jit_part
def importance_of(jobs, look, job):
    """Return the expected bounded slowdown of a second's wait; its run time is estimated."""
    if look.settings[ESTIMATOR] != LEARNED:
        return 1.0 / max(np.float64(look.jobs[job].run), look.tau)
    # short run times are rare and all that counts: the mean of the inverse, not that of the mean;
    # the belief is still that of this job
    total = 0.0
    for k in range(BINS):
        total += look.belief[k] / max(jobs[job].requested * RATIOS[k], look.tau)
    return total


# -- scores ----------------------------------------------------------------------------------------


@jit_entry
def fill_scores(jobs, weights, places, static, waiting, serial, scores):
    """Write the scores of all jobs under each vector, as an environment computes them.

    ``weights`` is (n_vectors, n_features), for the rest see :mod:`hpcgym.engine.mixing`.
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
