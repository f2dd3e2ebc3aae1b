"""Orders of the queue by what users have used: usage that halves with time, priorities from it.

A job is charged to its account, and to all accounts above, when it ends. The simulator stops before
each submission, and before a pass that follows ends; here the jobs that have ended are charged, the
scores of waiting jobs are written anew where they have changed, and it goes on.

Nothing decays step by step: what is charged at time t is multiplied by 2^((t - epoch) / half-life),
so that all usage keeps its proportions as time passes. The epoch moves on by whole half-lives
before numbers become too large; that changes no digit, but usage of more than a thousand half-lives
ago is lost. What has been charged in the same second is kept apart and unscaled: sums of whole
processor seconds are exact, and so are ties.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.engine.machines.nodes import conservative as node_plan
from hpcgym.engine.machines.nodes import easy as node_easy
from hpcgym.engine.machines.pool import conservative, easy
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.orders.scores import forget_bounds
from hpcgym.engine.state import A_PREDICTION, QUEUE

CPU, ENERGY = 0, 1  # what is counted

# -- `Shares.kinds`: what an order makes of usage --------------------------------------------------
# nothing; the least usage of processors or energy for the share first; the least sum of both, each
# over its present maximum; priorities 2^(-usage / share / damping), weighted, beside other features
UNAWARE, BY_CPU, BY_ENERGY, BY_BOTH, MIXED = range(5)

# -- slots of `book` -------------------------------------------------------------------------------
(
    N_LEAVES,  # accounts that jobs have; they are the first
    HALF_LIFE,  # [s] 0: nothing is forgotten
    BEGIN,  # [s] from when on there was something to use
    EPOCH,  # [s] when usage is multiplied by 1
    CHARGED,  # how many of the jobs that have ended have been charged
    OPEN,  # the first of them whose charge is not in `used` yet
    OPEN_AT,  # [s] when these ended
    VERSION,  # goes up with each charge
    WRITTEN,  # the version that scores are of
    WRITTEN_AT,  # [s] the time that they are of
    STAMP,  # goes up whenever terms are made anew
) = range(11)
N_SLOTS = 11

MOST_HALF_LIVES = 256  # between the epoch and now


class Shares(NamedTuple):
    """Accounts, what they may use, what they have used. A accounts: leaves, then those above."""

    owner: NDArray[np.int64]  # (n_jobs,) the leaf that a job is charged to
    rate: NDArray[np.float64]  # (2, n_jobs) what a second of a job counts
    parent: NDArray[np.int64]  # (A,) the account above, -1: the machine
    share: NDArray[np.float64]  # (A,) of the machine
    part: NDArray[np.float64]  # (A,) of the account above
    kinds: NDArray[np.int64]  # (2,) what the two orders make of usage
    weights: NDArray[np.float64]  # (2, 2) of the two priorities, in the two orders
    base: NDArray[np.float64]  # (n_scores,) scores without usage
    capacity: NDArray[np.float64]  # (2,) what there is to use in a second
    damping: NDArray[np.float64]  # (1,)
    used: NDArray[np.float64]  # (2, A) times 2^((time - epoch) / half-life)
    recent: NDArray[np.float64]  # (2, A) charged at OPEN_AT
    greatest: NDArray[np.float64]  # (2,) the present maximum of usage / share, where it is needed
    terms: NDArray[np.float64]  # (2, n_leaves) what is added to scores in the two orders
    stamp: NDArray[np.int64]  # (n_leaves,) when they were made
    book: NDArray[np.int64]  # (N_SLOTS,)


@jit_entry
def run(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, shares, stop_time, max_passes,
):  # fmt: skip
    """Simulate with shares as :func:`hpcgym.engine.machines.pool.easy.run` does without."""
    passes = 0
    while True:
        passes += easy.run(
            jobs, keys, scores, users,
            sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
            ended, stop_time, max_passes - passes,
        )  # fmt: skip
        if sim.asked < A_PREDICTION:
            return passes
        answer(jobs, scores, sim, progress, blocks, entries, ended, shares)


@jit_entry
def run_conservative(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, shares, stop_time, max_passes,
):  # fmt: skip
    """Do the same with a reservation for each queued job."""
    passes = 0
    while True:
        passes += conservative.run(
            jobs, keys, scores, users,
            sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
            ended, stop_time, max_passes - passes,
        )  # fmt: skip
        if sim.asked < A_PREDICTION:
            return passes
        answer(jobs, scores, sim, progress, blocks, entries, ended, shares)


@jit_entry
def run_on_nodes(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, nodes, shares, stop_time, max_passes,
):  # fmt: skip
    """Simulate with shares as :func:`hpcgym.engine.machines.nodes.easy.run` does without."""
    passes = 0
    while True:
        passes += node_easy.run(
            jobs, keys, scores, users,
            sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
            ended, nodes, stop_time, max_passes - passes,
        )  # fmt: skip
        if sim.asked < A_PREDICTION:
            return passes
        answer(jobs, scores, sim, progress, blocks, entries, ended, shares)


@jit_entry
def run_plan_on_nodes(
    jobs, keys, scores, users,
    sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
    ended, nodes, shares, stop_time, max_passes,
):  # fmt: skip
    """Do the same with a reservation for each queued job."""
    passes = 0
    while True:
        passes += node_plan.run(
            jobs, keys, scores, users,
            sim, progress, history, blocks, entries, profile, line, narrow, freed, idle,
            ended, nodes, stop_time, max_passes - passes,
        )  # fmt: skip
        if sim.asked < A_PREDICTION:
            return passes
        answer(jobs, scores, sim, progress, blocks, entries, ended, shares)


@jit
def answer(jobs, scores, sim, progress, blocks, entries, ended, shares):
    """Charge the jobs that have ended, and give jobs the scores that follow."""
    book = shares.book
    charge(jobs, sim, progress, ended, shares)
    mixed = shares.kinds[0] == MIXED or shares.kinds[1] == MIXED
    if book[VERSION] != book[WRITTEN] or (mixed and book[WRITTEN_AT] != sim.time):
        write_all(scores, sim, blocks, entries, shares)
    # a job that is to be submitted; its prediction is known, or is made by the simulator
    if sim.asked == A_PREDICTION:
        write(scores, sim, shares, sim.next, growth(book, book[OPEN_AT]))
        sim.answered = sim.next + 1


@jit
def charge(jobs, sim, progress, ended, shares):
    """Charge the jobs that have ended since the last time to their accounts."""
    book = shares.book
    if book[CHARGED] == sim.ended:
        return
    move_epoch(shares, sim.time)
    for k in range(book[CHARGED], sim.ended):
        job = ended[k]
        end = progress[job].start + jobs[job].run
        if end != book[OPEN_AT]:
            settle(ended, shares, k)
            book[OPEN], book[OPEN_AT] = k, end
        account = shares.owner[job]
        while account >= 0:
            for what in range(2):
                shares.recent[what, account] += shares.rate[what, job] * jobs[job].run
            account = shares.parent[account]
    book[CHARGED] = sim.ended
    book[VERSION] += 1


@jit_entry
def begin(scores, sim, blocks, entries, shares, owner, rate, run, end):
    """Charge jobs that ended before the simulation began, and give waiting jobs their scores.

    Parameters
    ----------
    owner, run, end : (n_past,) leaves, run times [s] and ends [s], rising.
    rate : (2, n_past) what a second counts.
    """
    book = shares.book
    for k in range(len(owner)):
        if end[k] != book[OPEN_AT]:
            settle_all(shares)
            move_epoch(shares, end[k])
            book[OPEN_AT] = end[k]
        account = owner[k]
        while account >= 0:
            for what in range(2):
                shares.recent[what, account] += rate[what, k] * run[k]
            account = shares.parent[account]
    settle_all(shares)
    write_all(scores, sim, blocks, entries, shares)


@jit_part
def settle_all(shares):
    """Add what was charged at OPEN_AT to all before."""
    factor = growth(shares.book, shares.book[OPEN_AT])
    for what in range(2):
        for account in range(len(shares.share)):
            shares.used[what, account] += shares.recent[what, account] * factor
            shares.recent[what, account] = 0.0


@jit_part
def settle(ended, shares, end):
    """Add what was charged at OPEN_AT, of the jobs before the place ``end``, to all before."""
    book = shares.book
    factor = growth(book, book[OPEN_AT])
    for k in range(book[OPEN], end):
        account = shares.owner[ended[k]]
        while account >= 0:
            for what in range(2):
                shares.used[what, account] += shares.recent[what, account] * factor
                shares.recent[what, account] = 0.0
            account = shares.parent[account]


@jit_part
def growth(book, time):
    """Return 2^((time - epoch) / half-life)."""
    if book[HALF_LIFE] == 0:
        return 1.0
    whole = (time - book[EPOCH]) // book[HALF_LIFE]
    rest = time - book[EPOCH] - whole * book[HALF_LIFE]
    return times_two_to(np.exp2(rest / book[HALF_LIFE]), whole)


@jit_part
def times_two_to(number, exponent):
    """Return number * 2^exponent; ldexp takes a C int, which longer exponents would overflow.

    Before the first end, and after millions of half-lives, exponents are as long as one likes.
    """
    return math.ldexp(number, int(min(max(exponent, -4_000), 1_000)))


@jit_part
def move_epoch(shares, time):
    """Let the epoch be at most so many half-lives before ``time``."""
    book = shares.book
    if book[HALF_LIFE] == 0:
        return
    whole = (time - book[EPOCH]) // book[HALF_LIFE]
    if whole > MOST_HALF_LIVES:
        factor = times_two_to(1.0, -whole)
        for what in range(2):
            for account in range(len(shares.share)):
                shares.used[what, account] *= factor
        book[EPOCH] += whole * book[HALF_LIFE]


@jit
def write_all(scores, sim, blocks, entries, shares):
    """Give all waiting jobs the scores of now."""
    book = shares.book
    book[STAMP] += 1
    book[WRITTEN], book[WRITTEN_AT] = book[VERSION], sim.time
    factor = growth(book, book[OPEN_AT])
    if shares.kinds[0] == BY_BOTH or shares.kinds[1] == BY_BOTH:
        for what in range(2):
            shares.greatest[what] = 0.0
            for leaf in range(book[N_LEAVES]):
                usage = effective(shares, what, leaf, factor) / shares.share[leaf]
                shares.greatest[what] = max(shares.greatest[what], usage)
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            write(scores, sim, shares, entries[i].job, factor)
    for job in range(sim.next - sim.arrived, sim.next):
        write(scores, sim, shares, job, factor)
    forget_bounds(blocks)


@jit_part
def write(scores, sim, shares, job, factor):
    """Give a job the scores of now; ``factor`` is the growth up to OPEN_AT."""
    leaf = shares.owner[job]
    if shares.stamp[leaf] != shares.book[STAMP]:
        shares.stamp[leaf] = shares.book[STAMP]
        for half in range(2):
            if shares.kinds[half] != UNAWARE:
                shares.terms[half, leaf] = term(shares, half, leaf, sim.time, factor)
    for half in range(2):
        if shares.kinds[half] != UNAWARE:
            place = half * len(shares.owner) + job
            scores[place].score = shares.base[place] + shares.terms[half, leaf]


@jit
def term(shares, half, leaf, time, factor):
    """Return what an account's usage adds to the scores of its jobs in one of the orders."""
    kind = shares.kinds[half]
    total = 0.0
    for what in range(2):
        weight = shares.weights[half, what]
        if weight == 0:
            continue
        usage = effective(shares, what, leaf, factor) / shares.share[leaf]
        if kind == MIXED:
            total += weight * priority(shares, what, usage, time)
        elif kind != BY_BOTH:
            total -= usage if weight > 0 else -usage
        elif shares.greatest[what] > 0:
            total -= usage / shares.greatest[what]
    return total


@jit_part
def effective(shares, what, leaf, factor):
    """Return the usage of a leaf, to which its share of what those above have used is added.

    Of an account with the part p of the account above: its own usage x (1 - p) + effective usage
    of that one x p; at the top its own.
    """
    total, weight = 0.0, 1.0
    account = leaf
    while True:
        own = shares.used[what, account] + shares.recent[what, account] * factor
        if shares.parent[account] < 0:
            return total + weight * own
        total += weight * (1.0 - shares.part[account]) * own
        weight *= shares.part[account]
        account = shares.parent[account]


@jit_part
def priority(shares, what, usage, time):
    """Return 2^(-U / S / damping) of an account whose ``usage`` is divided by its share S."""
    if usage == 0:
        return 1.0
    book = shares.book
    passed = np.float64(time - book[BEGIN])
    if book[HALF_LIFE] > 0:
        # all that there was to use, which has decayed likewise
        in_half_life = book[HALF_LIFE] / math.log(2.0)
        passed = -in_half_life * math.expm1(-passed / in_half_life)
    normalised = usage / growth(book, time) / (shares.capacity[what] * passed)
    return np.exp2(-normalised / shares.damping[0])
