"""What is known of users from jobs that have ended, and the features that predictions look at.

Memory has a row for each user, ratios one for all jobs, then one for each user, then one for each
class: jobs of a user with the same number of processors.
"""

from __future__ import annotations

import math

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import RUNNING
from hpcgym.scheduler.estimates.by_name import ROUNDED_S
from hpcgym.scheduler.estimates.learned import (
    LAST,
    LAST_END,
    NUMBER,
    PROCESSORS,
    RATIOS,
    RUN,
)

# -- columns of ratios, see docs/prediction.md -----------------------------------------------------
WEIGHT, LOGARITHMS = range(2)  # of the jobs that have ended, and of their ratios, the sum
DECAY = 0.95  # what a job counts when the next of its class has ended; all count among all jobs
PRIOR = 1.0  # jobs that what is known of the wider class counts as

DAY, WEEK = 86_400, 604_800  # [s]


@jit_part
def asked_by(jobs, asked, job):
    """Return how many processors a job asked for; see ``online.Estimators.asked``."""
    if len(asked) > 0:
        return asked[job]
    return jobs[job].processors


@jit_part
def remember(memory, job, processors, end):
    """Add a job that has ended to what is known of its user."""
    memory[NUMBER] += 1.0
    memory[RUN] += job.run
    memory[PROCESSORS] += processors
    memory[LAST_END] = end
    memory[RATIOS] += job.run / job.requested
    for k in range(len(memory) - 1, LAST, -1):
        memory[k] = memory[k - 1]
    memory[LAST] = job.run


@jit_part
def remember_ratio(ratios, job, of_user, of_class):
    """Add the ratio of a job that has ended to those of all jobs, of its user and of its class."""
    ratio = math.log(np.float64(job.run) / np.float64(job.requested))
    ratios[0, WEIGHT] += 1.0
    ratios[0, LOGARITHMS] += ratio
    for row in (of_user, of_class):
        ratios[row, WEIGHT] = DECAY * ratios[row, WEIGHT] + 1.0
        ratios[row, LOGARITHMS] = DECAY * ratios[row, LOGARITHMS] + ratio


@jit_part
def typical_ratio(ratios, of_user, of_class):
    """Return the geometric mean of run time / requested time of a user's jobs, and of a class.

    That of all jobs stands for the user's while few of those have ended, and that for the class's;
    the last two are averaged.
    """
    mean = ratios[0, LOGARITHMS] / max(ratios[0, WEIGHT], 1.0)
    user = shrunk(ratios[of_user], mean)
    return math.exp((user + shrunk(ratios[of_class], user)) / 2.0)


@jit_part
def shrunk(ratios, wider):
    """Return the mean logarithm of a class, with ``wider`` as that of PRIOR jobs more."""
    return (ratios[LOGARITHMS] + PRIOR * wider) / (ratios[WEIGHT] + PRIOR)


@jit
def describe(jobs, asked, users, sim, progress, blocks, entries, memory, job, x):
    """Write the features of a job to ``x``; see :data:`hpcgym.scheduler.estimates.JOB_FEATURES`.

    ``asked`` is that of the estimators.
    """
    user, now = users[job], sim.time
    number, processors = memory[user, NUMBER], np.float64(asked_by(jobs, asked, job))
    x[0] = jobs[job].requested
    for k in range(3):
        x[1 + k] = memory[user, LAST + k]
    x[4] = (x[1] + x[2]) / max(min(number, 2.0), 1.0)
    x[5] = (x[1] + x[2] + x[3]) / max(min(number, 3.0), 1.0)
    x[6] = memory[user, RUN] / max(number, 1.0)
    x[7] = processors
    x[8] = memory[user, PROCESSORS] / max(number, 1.0)
    x[9] = processors / x[8] if number > 0 else 0.0
    count, longest, total, occupied = 0.0, 0.0, 0.0, 0.0
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            other = entries[i].job
            if users[other] == user and other != job:
                # a job may wait for processors that are being switched on
                elapsed = np.float64(max(now - progress[other].start, 0))
                count += 1.0
                longest = max(longest, elapsed)
                total += elapsed
                occupied += asked_by(jobs, asked, other)
    x[10] = occupied / max(count, 1.0)
    x[11] = count
    x[12] = longest
    x[13] = total
    x[14] = occupied
    # what is remembered may be of another part of the trace, with later ends
    x[15] = max(now - memory[user, LAST_END], 0.0) if number > 0 else 0.0
    day = 2.0 * math.pi * ((now % DAY) / DAY)
    week = 2.0 * math.pi * ((now % WEEK) / WEEK)
    x[16], x[17] = math.cos(day), math.sin(day)
    x[18], x[19] = math.cos(week), math.sin(week)


@jit_part
def whole_seconds(seconds):
    """Return a prediction of at least 0 in whole seconds: rounded down, see ``ROUNDED_S``."""
    return np.int64(seconds + ROUNDED_S)
