"""Predictions inside a simulation, compiled: what is known of a job, what is learned of one.

The simulator asks for a prediction before each submission, and notes which jobs have ended. All of
those, and no others, have been learned from when the prediction is made.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_inline, jit_part
from hpcgym.engine import conservative, easy, nag
from hpcgym.engine.easy import oldest
from hpcgym.engine.mixing import JobNumbers, rank_one
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import (
    A_CORRECTION,
    A_PREDICTION,
    A_RENEWAL,
    ANSWERED,
    ARRIVED,
    ASKED,
    CUBED,
    ENDED,
    EXPIRING,
    HEEDED,
    LEARNED,
    NEXT,
    PASSES,
    PER_EVENT,
    PRIMARY,
    QUEUE,
    RENEWED,
    RUNNING,
    SECONDARY,
    TIME,
)

DAY, WEEK = 86_400, 604_800  # [s]

# -- columns of `Learner.memory`: what is known of a user's jobs that have ended -------------------
NUMBER, RUN, PROCESSORS, LAST_END, SHARE, LAST = range(6)  # from LAST on: run times, latest first
LEAST_LAST = 3  # that many are needed for the features

# -- columns of `Learner.ratios`, and constants of the typical ratio -------------------------------
WEIGHT, LOGARITHMS = range(2)  # of the jobs that have ended, and their sum
DECAY = 0.95  # what a job counts when the next of its class has ended; all count among all jobs
PRIOR = 1.0  # jobs that what is known of the wider class counts as

# -- `Learner.kinds`: how run times are predicted, for what there are two of -----------------------
GIVEN, AVERAGE, USER_RATIO, TYPICAL_RATIO, REGRESSION, OUTSIDE = range(6)
FOR_BACKFILLING, FOR_ORDERING = 0, 1

N_SEEN = 20  # features, see hpcgym.prediction.features.JOB_FEATURES


class Estimators(NamedTuple):
    """How run times are predicted; an entry for each of the two estimates."""

    kinds: NDArray[np.int64]  # (2,) GIVEN, AVERAGE ...
    last: NDArray[np.int64]  # (2,) how many jobs an AVERAGE is of
    loss: NDArray[np.void]  # (2,) nag.LOSS of a REGRESSION
    chosen: NDArray[np.int64]  # (2, N_SEEN) its features, by their places; behind them -1
    looks: NDArray[np.int64]  # (2,) whether the first and the second order look at predictions
    classes: NDArray[np.int64]  # (n_jobs,) a number for each user and number of processors, or (0,)


class Learner(NamedTuple):
    """What a simulation has learned, and what it predicts from that."""

    memory: NDArray[np.float64]  # (n_users, LAST + n)
    ratios: NDArray[np.float64]  # (1 + n_users + n_classes, 2) run time / requested time, or (0, 2)
    seen: NDArray[np.float64]  # (n_jobs, N_SEEN) features at submission, or (0, N_SEEN)
    model: NDArray[np.float64]  # (2, nag.N_ROWS, n_terms)
    model_sums: NDArray[np.float64]  # (2, 2)
    ordered_by: NDArray[np.int64]  # (n_jobs,) [s] predictions FOR_ORDERING, or (0,)
    weights: NDArray[np.float64]  # (2, N_FEATURES) of the features of the two orders
    scratch: NDArray[np.float64]  # (N_SCRATCH, the most that is needed)


# rows of `Learner.scratch`
NOW, X, PHI, STATIC, ANSWERS = range(5)
N_SCRATCH = 5


@jit_entry
def run(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, estimators, learner, stop_time, max_passes,
):  # fmt: skip
    """Simulate with predictions as :func:`hpcgym.engine.easy.run` does without.

    It stops with ``sim[ASKED]`` set where an order is asked for, or a prediction from OUTSIDE.
    """
    passes = 0
    while True:
        passes += easy.run(
            jobs, keys, scores, users,
            sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
            ended, stop_time, max_passes - passes,
        )  # fmt: skip
        if not asks_for_prediction(sim) or not answer_inside(
            jobs, scores, users, sim, progress, blocks, entries, ended, estimators, learner
        ):
            return passes


@jit_entry
def run_conservative(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, estimators, learner, stop_time, max_passes,
):  # fmt: skip
    """Do the same with a reservation for each queued job."""
    passes = 0
    while True:
        passes += conservative.run(
            jobs, keys, scores, users,
            sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
            ended, stop_time, max_passes - passes,
        )  # fmt: skip
        if not asks_for_prediction(sim) or not answer_inside(
            jobs, scores, users, sim, progress, blocks, entries, ended, estimators, learner
        ):
            return passes


@jit_part
def asks_for_prediction(sim):
    """Return whether the simulator waits for a prediction."""
    return sim[ASKED] >= A_PREDICTION


@jit
def answer_inside(jobs, scores, users, sim, progress, blocks, entries, ended, estimators, learner):
    """Answer the simulator and return True, unless a prediction is to come from OUTSIDE."""
    learn_from_ended(jobs, users, sim, progress, ended, estimators, learner)
    outside = estimators.kinds[FOR_BACKFILLING] == OUTSIDE
    if sim[ASKED] == A_RENEWAL:
        if estimators.kinds[FOR_ORDERING] == OUTSIDE:
            return False
        renew_all(jobs, scores, users, sim, progress, blocks, entries, ended, estimators, learner)
        return True
    job = sim[NEXT] if sim[ASKED] == A_PREDICTION else sim[EXPIRING]
    consider(jobs, users, sim, progress, blocks, entries, job, estimators, learner)
    if outside or estimators.kinds[FOR_ORDERING] == OUTSIDE:
        return False
    answer(jobs, scores, sim, progress, estimators, learner)
    return True


@jit
def renew_all(jobs, scores, users, sim, progress, blocks, entries, ended, estimators, learner):
    """Predict anew how long waiting jobs run whose users' jobs have ended since the last pass."""
    for job in range(oldest(sim, progress), end_of_waiting(sim)):
        if progress[job].start < 0 and concerns(sim, users, ended, users[job]):
            consider(jobs, users, sim, progress, blocks, entries, job, estimators, learner)
            renew(jobs, scores, sim, blocks, job, estimators, learner)


@jit_part
def end_of_waiting(sim):
    """Return the first job that has not been submitted, or that knows of the ends of this time."""
    # events alone: a job may have been submitted without a pass, before a job ended
    return sim[NEXT] if sim[PASSES] == PER_EVENT else sim[NEXT] - sim[ARRIVED]


@jit_part
def concerns(sim, users, ended, user):
    """Return whether a job of the user is among those that have ended since the last pass."""
    found = False
    for k in range(sim[HEEDED], sim[ENDED]):
        found |= users[ended[k]] == user
    return found


@jit_part
def renew(jobs, scores, sim, blocks, job, estimators, learner):
    """Put a waiting job where its new prediction in ``learner.scratch[ANSWERS]`` says."""
    seconds = cut(learner.scratch[ANSWERS, FOR_ORDERING], jobs[job].requested)
    if seconds != learner.ordered_by[job]:
        learner.ordered_by[job] = seconds
        rank_both(jobs, scores, sim, job, estimators, learner)
        for k in range(blocks[QUEUE].in_use):
            blocks[block_at(blocks, QUEUE, k)].greatest_gain = np.inf  # bounds hold no longer


@jit_entry
def waiting_of(users, sim, progress, ended, out):
    """Write the waiting jobs that :func:`renew_all` is about to ``out``; return their number."""
    n = 0
    for job in range(oldest(sim, progress), end_of_waiting(sim)):
        if progress[job].start < 0 and concerns(sim, users, ended, users[job]):
            out[n] = job
            n += 1
    return n


@jit_entry
def consider_one(jobs, users, sim, progress, blocks, entries, job, estimators, learner):
    """Note the features of a waiting job in ``learner.scratch[NOW]``."""
    consider(jobs, users, sim, progress, blocks, entries, job, estimators, learner)


@jit_entry
def renew_one(jobs, scores, sim, blocks, job, estimators, learner):
    """Put a waiting job where its prediction from outside says."""
    renew(jobs, scores, sim, blocks, job, estimators, learner)


@jit_entry
def answer_from_outside(jobs, scores, sim, progress, estimators, learner):
    """Answer with the predictions in ``learner.scratch[ANSWERS]``."""
    answer(jobs, scores, sim, progress, estimators, learner)


@jit_entry
def learn_rest(jobs, users, sim, progress, ended, estimators, learner):
    """Learn from the jobs that have ended after the last prediction."""
    learn_from_ended(jobs, users, sim, progress, ended, estimators, learner)


@jit
def forget(learner):
    """Let nothing have been learned."""
    for user in range(len(learner.memory)):
        for k in range(learner.memory.shape[1]):
            learner.memory[user, k] = 0.0
    for row in range(len(learner.ratios)):
        learner.ratios[row, WEIGHT] = learner.ratios[row, LOGARITHMS] = 0.0
    for which in range(2):
        for row in range(nag.N_ROWS):
            for k in range(learner.model.shape[2]):
                learner.model[which, row, k] = 0.0
        learner.model_sums[which, 0] = 0.0
        learner.model_sums[which, 1] = 1.0


@jit
def learn_from_ended(jobs, users, sim, progress, ended, estimators, learner):
    """Learn from the jobs that have ended since the last time."""
    for i in range(sim[LEARNED], sim[ENDED]):
        job = ended[i]
        remember(learner.memory[users[job]], jobs[job], progress[job].start + jobs[job].run)
        if len(learner.ratios) > 0:
            remember_ratio(jobs[job], users[job], len(learner.memory), job, estimators, learner)
        for which in range(2):
            if estimators.kinds[which] == REGRESSION:
                learn(jobs[job], estimators, learner, which, learner.seen[job])
    sim[LEARNED] = sim[ENDED]


@jit
def consider(jobs, users, sim, progress, blocks, entries, job, estimators, learner):
    """Predict the run time of a job, but for what is OUTSIDE, and note its features."""
    x = learner.scratch[NOW][:N_SEEN]
    if len(learner.seen) > 0:
        # what is learned from is what was known at submission
        if sim[ASKED] == A_PREDICTION:
            x = learner.seen[job]
        describe(jobs, users, sim, progress, blocks, entries, learner.memory, job, x)
    answers = learner.scratch[ANSWERS]
    for which in range(2):
        kind = estimators.kinds[which]
        if kind in (AVERAGE, USER_RATIO):
            answers[which] = by_history(
                learner.memory[users[job]], jobs[job].requested, kind, estimators.last[which]
            )
        elif kind == TYPICAL_RATIO:
            ratio = typical_ratio(users[job], job, estimators, learner)
            answers[which] = jobs[job].requested * ratio
        elif kind == REGRESSION:
            n = fill_phi(x, estimators, learner, which)
            answers[which] = nag.predict(learner.model[which], learner.scratch[PHI][:n])


@jit_part
def remember(memory, job, end):
    """Add a job that has ended to what is known of its user."""
    memory[NUMBER] += 1.0
    memory[RUN] += job.run
    memory[PROCESSORS] += job.processors
    memory[LAST_END] = end
    memory[SHARE] += job.run / job.requested
    for k in range(len(memory) - 1, LAST, -1):
        memory[k] = memory[k - 1]
    memory[LAST] = job.run


@jit_part
def remember_ratio(numbers, user, n_users, job, estimators, learner):
    """Add the ratio of a job that has ended to those of all jobs, of its user and of its class."""
    ratio = math.log(np.float64(numbers.run) / np.float64(numbers.requested))
    ratios = learner.ratios
    ratios[0, WEIGHT] += 1.0
    ratios[0, LOGARITHMS] += ratio
    for row in (1 + user, 1 + n_users + estimators.classes[job]):
        ratios[row, WEIGHT] = DECAY * ratios[row, WEIGHT] + 1.0
        ratios[row, LOGARITHMS] = DECAY * ratios[row, LOGARITHMS] + ratio


@jit_part
def typical_ratio(user, job, estimators, learner):
    """Return the geometric mean of run time / requested time of jobs like this one.

    That of all jobs stands for the user's while few of those have ended, and that for those of
    the same number of processors; the last two are averaged.
    """
    ratios = learner.ratios
    mean = ratios[0, LOGARITHMS] / max(ratios[0, WEIGHT], 1.0)
    of_user = shrunk(ratios[1 + user], mean)
    row = 1 + len(learner.memory) + estimators.classes[job]
    return math.exp((of_user + shrunk(ratios[row], of_user)) / 2.0)


@jit_part
def shrunk(ratios, wider):
    """Return the mean logarithm of a class, with ``wider`` as that of PRIOR jobs more."""
    return (ratios[LOGARITHMS] + PRIOR * wider) / (ratios[WEIGHT] + PRIOR)


@jit
def describe(jobs, users, sim, progress, blocks, entries, memory, job, x):
    """Write the features of a job to ``x``; see :data:`hpcgym.prediction.JOB_FEATURES`."""
    user, now = users[job], sim[TIME]
    number, processors = memory[user, NUMBER], np.float64(jobs[job].processors)
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
                occupied += entries[i].width
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
def by_history(memory, requested, kind, last):
    """Return what the user's ended jobs say of the next [s], the requested time if nothing."""
    if kind == USER_RATIO:
        return requested * (memory[SHARE] / memory[NUMBER] if memory[NUMBER] > 0 else 1.0)
    if memory[NUMBER] < last:
        return np.float64(requested)
    total = 0.0
    for k in range(last):
        total += memory[LAST + k]
    return math.floor(total / last)


@jit_inline
def fill_phi(x, estimators, learner, which):
    """Write the terms of the chosen ones of features ``x``; return how many there are."""
    chosen, own = estimators.chosen[which], learner.scratch[X]
    n = 0
    while n < N_SEEN and chosen[n] >= 0:
        own[n] = x[chosen[n]]
        n += 1
    degree = estimators.loss[which].degree
    nag.expand(own[:n], learner.scratch[PHI], degree)
    return 1 + n + (n * (n + 1) // 2 if degree == 2 else 0)


@jit
def learn(job, estimators, learner, which, x):
    """Learn from a job that has ended and had features ``x``."""
    n = fill_phi(x, estimators, learner, which)
    loss = estimators.loss[which]
    run = np.float64(job.run)
    weight = nag.weight_of(loss.weighting, run, np.float64(job.processors))
    phi = learner.scratch[PHI][:n]
    nag.learn(learner.model[which], learner.model_sums[which], phi, loss, run, weight)


@jit
def cut(seconds, requested):
    """Return a prediction in whole seconds, from 1 to the requested time."""
    # a prediction that is no number says nothing
    if not abs(seconds) < requested:
        return requested
    return max(np.int64(abs(seconds)), 1)


@jit
def answer(jobs, scores, sim, progress, estimators, learner):
    """Give the simulator the predictions that stand in ``learner.scratch[ANSWERS]``."""
    answers = learner.scratch[ANSWERS]
    if sim[ASKED] == A_CORRECTION:
        sim[RENEWED] = cut(answers[FOR_BACKFILLING], jobs[sim[EXPIRING]].requested)
        return
    job = sim[NEXT]
    requested = jobs[job].requested
    if estimators.kinds[FOR_BACKFILLING] != GIVEN:
        progress[job].predicted = cut(answers[FOR_BACKFILLING], requested)
    if estimators.kinds[FOR_ORDERING] != GIVEN:
        learner.ordered_by[job] = cut(answers[FOR_ORDERING], requested)
        rank_both(jobs, scores, sim, job, estimators, learner)
    sim[ANSWERED] = job + 1


@jit_part
def rank_both(jobs, scores, sim, job, estimators, learner):
    """Write the scores of a job under the orders that look at predictions."""
    if estimators.looks[0] == 1:
        rank(jobs, scores, sim[PRIMARY], job, 0, learner)
    if estimators.looks[1] == 1:
        rank(jobs, scores, sim[SECONDARY], job, 1, learner)


@jit
def rank(jobs, scores, order, job, half, learner):
    """Write the score of a job under the first or the second order, by predictions."""
    place = half * len(jobs) + job
    numbers = JobNumbers(
        np.float64(jobs[job].submit),
        np.float64(learner.ordered_by[job]),
        np.float64(jobs[job].processors),
    )
    if order == CUBED:
        scores[place].score, scores[place].patience = numbers.processors, numbers.requested
    else:
        scores[place].score, scores[place].patience = rank_one(
            learner.weights[half], learner.scratch[STATIC], numbers
        )
