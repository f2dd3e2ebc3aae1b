"""Predictions inside a simulation, compiled: what is known of a job, what is learned of one.

The simulator asks for a prediction before each submission, and notes which jobs have ended. All of
those, and no others, have been learned from when the prediction is made.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from hpcgym.compilation import jit, jit_entry, jit_inline, jit_part
from hpcgym.engine.answers import nag
from hpcgym.engine.answers.formulas import Remembered
from hpcgym.engine.answers.histories import (
    asked_by,
    describe,
    remember,
    remember_ratio,
    whole_seconds,
)
from hpcgym.engine.holding import held_back
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.orders.mixing import JobNumbers, rank_one
from hpcgym.engine.orders.scores import forget_bounds
from hpcgym.engine.state import (
    A_CORRECTION,
    A_PREDICTION,
    A_RENEWAL,
    CUBED,
    PER_EVENT,
    QUEUE,
)
from hpcgym.scheduler.estimates.learned import (  # noqa: F401
    BY_FORMULA,
    BY_REGRESSION,
    FOR_BACKFILLING,
    FOR_ORDERING,
    FROM_OUTSIDE,
    KNOWN,
    N_ROWS,
    N_SEEN,
    Estimators,
    Learner,
)

NOW, X, PHI, STATIC, ANSWERS = range(5)  # rows of scratch


class Answers(NamedTuple):
    """What answers a simulation, compiled.

    Attributes
    ----------
    inside : answers in the loop of a machine, and returns True, unless a prediction is to come
        FROM_OUTSIDE.
    alone : does the same where no loop runs.
    """

    inside: Any
    alone: Any


@cache
def answers_by(predict: Any) -> Answers:
    """Return what answers a simulation, by a chain of :mod:`hpcgym.engine.answers.formulas`."""

    @jit
    def consider(jobs, users, sim, progress, blocks, entries, job, estimators, learner):
        """Predict the run time of a job, but for what is FROM_OUTSIDE, and note its features."""
        look_at(jobs, users, sim, progress, blocks, entries, job, estimators, learner)
        x, answers = features_of(sim, job, learner), learner.scratch[ANSWERS]
        for which in range(2):
            kind = estimators.kinds[which]
            if kind == BY_REGRESSION:
                n = fill_phi(x, estimators, learner, which)
                answers[which] = nag.predict(learner.model[which], learner.scratch[PHI][:n])
            elif kind >= BY_FORMULA:
                known = remembered(users[job], job, estimators, learner, which)
                answers[which] = predict(kind - BY_FORMULA, jobs[job].requested, known)

    @jit
    def renew_all(
        jobs, scores, users, sim, progress, blocks, entries, line, ended, estimators, learner
    ):
        """Predict anew how long jobs wait to run whose users had ends since the last pass."""
        first = sim.ended
        for k in range(first, first + list_concerned(users, sim, blocks, entries, ended)):
            job = ended[k]
            consider(jobs, users, sim, progress, blocks, entries, job, estimators, learner)
            renew(jobs, scores, sim, line, job, estimators, learner)
        forget_bounds(blocks)

    @jit
    def inside(
        jobs, scores, users, sim, progress, blocks, entries, line, ended, estimators, learner
    ):
        """Answer the simulator and return True, unless a prediction is to come FROM_OUTSIDE."""
        learn_from_ended(jobs, users, sim, progress, ended, estimators, learner)
        outside = estimators.kinds[FOR_BACKFILLING] == FROM_OUTSIDE
        if sim.asked == A_RENEWAL:
            if estimators.kinds[FOR_ORDERING] == FROM_OUTSIDE:
                return False
            if estimators.kinds[FOR_ORDERING] == KNOWN:  # somebody else asks for renewals
                return True
            renew_all(
                jobs, scores, users, sim, progress, blocks, entries, line, ended, estimators,
                learner,
            )  # fmt: skip
            return True
        job = sim.next if sim.asked == A_PREDICTION else sim.expiring
        consider(jobs, users, sim, progress, blocks, entries, job, estimators, learner)
        if outside or estimators.kinds[FOR_ORDERING] == FROM_OUTSIDE:
            return False
        answer(jobs, scores, sim, progress, line, estimators, learner)
        return True

    @jit_entry
    def alone(
        jobs, scores, users, sim, progress, blocks, entries, line, ended, estimators, learner
    ):
        """Do the same where no loop runs."""
        return inside(
            jobs, scores, users, sim, progress, blocks, entries, line, ended, estimators, learner
        )

    return Answers(inside, alone)


@jit_part
def look_at(jobs, users, sim, progress, blocks, entries, job, estimators, learner):
    """Note the features of a job, where anybody looks at them."""
    if len(learner.seen) > 0:
        x = features_of(sim, job, learner)
        describe(
            jobs, estimators.asked, users, sim, progress, blocks, entries, learner.memory, job, x
        )


@jit_entry
def look_at_one(jobs, users, sim, progress, blocks, entries, job, estimators, learner):
    """Do the same where a predictor in Python asks for them."""
    look_at(jobs, users, sim, progress, blocks, entries, job, estimators, learner)


@jit_part
def features_of(sim, job, learner):
    """Return where the features of a job stand that is looked at now."""
    # what is learned from is what was known at submission
    if len(learner.seen) > 0 and sim.asked == A_PREDICTION:
        return learner.seen[job]
    return learner.scratch[NOW][:N_SEEN]


@jit_part
def remembered(user, job, estimators, learner, which):
    """Return what a formula may look at."""
    of_user, of_class = ratio_rows(user, job, estimators, learner)
    return Remembered(
        learner.memory[user], learner.ratios, of_user, of_class, estimators.last[which]
    )


@jit_entry
def list_concerned(users, sim, blocks, entries, ended):
    """List the waiting jobs whose users' jobs have ended since the last pass; return their number.

    They are written behind the jobs that have ended, where there is room for all others.
    """
    n = 0
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            n = note_concerned(users, sim, ended, entries[i].job, n)
    # those that have just been submitted know of these ends already; but in events alone, a job may
    # have been submitted without a pass, before a job ended
    if sim.passes == PER_EVENT:
        for job in range(sim.next - sim.arrived, sim.next):
            n = note_concerned(users, sim, ended, job, n)
    return n


@jit_part
def note_concerned(users, sim, ended, job, n):
    """List a waiting job if a job of its user is among the last that ended; return how many are."""
    concerned = False
    for k in range(sim.ended_at_pass, sim.ended):
        concerned |= users[ended[k]] == users[job]
    if concerned:
        ended[sim.ended + n] = job
        n += 1
    return n


@jit_part
def renew(jobs, scores, sim, line, job, estimators, learner):
    """Put a waiting job where its new prediction in ``learner.scratch[ANSWERS]`` says."""
    seconds = cut(learner.scratch[ANSWERS, FOR_ORDERING], jobs[job].requested)
    if seconds != learner.ordered_by[job]:
        learner.ordered_by[job] = seconds
        rank_both(jobs, scores, sim, job, estimators, learner)
        note_held(jobs, line, job, estimators, learner)


@jit_entry
def renew_one(jobs, scores, sim, blocks, line, job, estimators, learner):
    """Put a waiting job where its prediction from outside says."""
    renew(jobs, scores, sim, line, job, estimators, learner)
    forget_bounds(blocks)


@jit
def forget(learner):
    """Let nothing have been learned."""
    for user in range(len(learner.memory)):
        for k in range(learner.memory.shape[1]):
            learner.memory[user, k] = 0.0
    for row in range(len(learner.ratios)):
        learner.ratios[row, 0] = learner.ratios[row, 1] = 0.0
    for which in range(2):
        for row in range(N_ROWS):
            for k in range(learner.model.shape[2]):
                learner.model[which, row, k] = 0.0
        learner.model_sums[which, 0] = 0.0
        learner.model_sums[which, 1] = 1.0


@jit_entry
def learn_from_ended(jobs, users, sim, progress, ended, estimators, learner):
    """Learn from the jobs that have ended since the last time."""
    for i in range(sim.learned, sim.ended):
        job = ended[i]
        memory, end = learner.memory[users[job]], progress[job].start + jobs[job].run
        asked = asked_by(jobs, estimators.asked, job)
        remember(memory, jobs[job], asked, end)
        if len(learner.ratios) > 0:
            of_user, of_class = ratio_rows(users[job], job, estimators, learner)
            remember_ratio(learner.ratios, jobs[job], of_user, of_class)
        for which in range(2):
            if estimators.kinds[which] == BY_REGRESSION:
                learn(jobs[job].run, asked, estimators, learner, which, learner.seen[job])
    sim.learned = sim.ended


@jit_part
def ratio_rows(user, job, estimators, learner):
    """Return where the ratios of a job's user and class stand, if there are any."""
    of_class = 1 + len(learner.memory)
    if len(estimators.classes) > 0:
        of_class += estimators.classes[job]
    return 1 + user, of_class


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
def learn(run, asked, estimators, learner, which, x):
    """Learn from a job of ``asked`` processors that ran so long [s] and had features ``x``."""
    n = fill_phi(x, estimators, learner, which)
    loss = estimators.loss[which]
    run = np.float64(run)
    weight = nag.weight_of(loss.weighting, run, np.float64(asked))
    phi = learner.scratch[PHI][:n]
    nag.learn(learner.model[which], learner.model_sums[which], phi, loss, run, weight)


@jit
def cut(seconds, requested):
    """Return a prediction in whole seconds, from 1 to the requested time."""
    # a prediction that is no number says nothing
    if not abs(seconds) < requested:
        return requested
    return max(whole_seconds(abs(seconds)), 1)


@jit_entry
def answer(jobs, scores, sim, progress, line, estimators, learner):
    """Give the simulator the predictions that stand in ``learner.scratch[ANSWERS]``."""
    answers = learner.scratch[ANSWERS]
    if sim.asked == A_CORRECTION:
        sim.renewed = cut(answers[FOR_BACKFILLING], jobs[sim.expiring].requested)
        return
    job = sim.next
    requested = jobs[job].requested
    if estimators.kinds[FOR_BACKFILLING] != KNOWN:
        progress[job].predicted = cut(answers[FOR_BACKFILLING], requested)
    if estimators.kinds[FOR_ORDERING] != KNOWN:
        learner.ordered_by[job] = cut(answers[FOR_ORDERING], requested)
        rank_both(jobs, scores, sim, job, estimators, learner)
        note_held(jobs, line, job, estimators, learner)
    sim.answered = job + 1


@jit_part
def note_held(jobs, line, job, estimators, learner):
    """Note how many processors a job holds back by its prediction, where jobs do so."""
    if len(estimators.hold) > 0:
        line[job].held = held_back(estimators.hold, jobs[job].requested, learner.ordered_by[job])


@jit_part
def rank_both(jobs, scores, sim, job, estimators, learner):
    """Write the scores of a job under the orders that look at predictions."""
    asked = asked_by(jobs, estimators.asked, job)
    if estimators.looks[0] == 1:
        rank(jobs, asked, scores, sim.primary, job, np.int64(0), learner)
    if estimators.looks[1] == 1:
        rank(jobs, asked, scores, sim.secondary, job, np.int64(1), learner)


@jit
def rank(jobs, asked, scores, order, job, half, learner):
    """Write the score of a job of ``asked`` processors under one of the orders, by predictions."""
    place = half * len(jobs) + job
    numbers = JobNumbers(
        np.float64(jobs[job].since_first),
        np.float64(learner.ordered_by[job]),
        np.float64(asked),
    )
    if order == CUBED:
        scores[place].score, scores[place].patience = numbers.processors, numbers.requested
    else:
        scores[place].score, scores[place].patience = rank_one(
            learner.weights[half], learner.scratch[STATIC], numbers
        )
