"""Run times as look-ahead estimates them, and what the wait of each queued job costs.

Run times are estimated from those of ended jobs only: of the same user and request (``believe``),
or of the same user. The run time of a job that has not ended is never read, unless the estimate is
the clairvoyant one.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_inline, jit_part
from hpcgym.engine.answers.histories import whole_seconds
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import PER_EVENT, RUNNING, UNCORRECTED

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

UNITS = 2.0**40  # what a second's wait of the most important queued job costs


@jit
def learn(sim, jobs, progress, look):
    """Take note of the jobs that have ended, in the order of their ends."""
    settings, unfinished = look.settings, look.unfinished
    for job in range(settings[KNOWN], sim.next):
        unfinished[settings[N_UNFINISHED]] = job
        settings[N_UNFINISHED] += 1
    settings[KNOWN] = sim.next
    for i in range(settings[N_UNFINISHED]):
        # the drained simulation looks for its oldest job among those that have not started
        look.progress[unfinished[i]].start = progress[unfinished[i]].start
    # where events are handled one by one, an end of this second may be yet to be handled
    latest = sim.time - 1 if sim.passes == PER_EVENT else sim.time
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
            elapsed = max(sim.time - progress[job].start, 0)
            look.jobs[job].run = estimated(sim, jobs, progress, look, job, elapsed)
    for i in range(n):
        job = look.queued[i]
        look.jobs[job].run = estimated(sim, jobs, progress, look, job, np.int64(0))
        look.importance[job] = importance_of(jobs, look, job)
    count_units(look, n)


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
    if sim.correction == UNCORRECTED:
        most = min(most, progress[job].predicted)  # which no job outlives
    return min(max(whole_seconds(mean), elapsed + 1), most)


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


@jit_part
def count_units(look, n):
    """Write what a second's wait costs as a whole number, 2**40 for the most important job.

    The sum of whole numbers does not depend on the order in which they are added, so that costs
    that are equal are equal to the last bit; and what only rounding tells apart becomes equal.
    """
    greatest = 0.0
    for i in range(n):
        greatest = max(greatest, look.importance[look.queued[i]])
    for i in range(n):
        job = look.queued[i]
        look.units[job] = np.int64(look.importance[job] / greatest * UNITS + 0.5)
