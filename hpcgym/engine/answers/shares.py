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
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.engine.answers.fair_tree import rank, rounded
from hpcgym.engine.answers.told import Told, nobody
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.orders.scores import forget_bounds
from hpcgym.engine.state import A_PREDICTION, A_RENEWAL, QUEUE, RUNNING
from hpcgym.schedule.records import whole_numbers

CPU, ENERGY = 0, 1  # what is counted

# -- `Shares.kinds`: what an order makes of usage --------------------------------------------------
# nothing; the least usage of processors or energy for the share first; the least sum of both, each
# over its present maximum; priorities, weighted, beside other features
UNAWARE, BY_CPU, BY_ENERGY, BY_BOTH, MIXED = range(5)

# The scalars of the accounts, in one record. Times are of the simulation's clock.
BOOK = whole_numbers(
    "leaves",  # accounts that jobs have; they are the first
    "half_life",  # 0: nothing is forgotten
    "ticks",  # of the clock in a second
    "begin",  # from when on there was something to use
    "epoch",  # when usage is multiplied by 1
    "charged",  # how many of the jobs that have ended have been charged
    "stopped",  # how many of the runs that others have ended have been charged
    "open",  # the first of them whose charge is not in `used` yet
    "open_at",  # when these ended
    "version",  # goes up with each charge
    "written",  # the version that scores are of
    "written_at",  # the time that they are of
    "stamp",  # goes up whenever terms are made anew
    "in_a_tree",  # 1: priorities are places in a row (`fair_tree`), and not a formula of usage
)

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
    base: NDArray[np.void]  # (n_scores,) SCORES without usage
    capacity: NDArray[np.float64]  # (2,) what there is to use in a second
    damping: NDArray[np.float64]  # (1,)
    used: NDArray[np.float64]  # (2, A) times 2^((time - epoch) / half-life)
    recent: NDArray[np.float64]  # (2, A) charged at `book.open_at`
    greatest: NDArray[np.float64]  # (2,) the present maximum of usage / share, where it is needed
    places: NDArray[np.float64]  # (2, n_leaves) priorities of a tree, where they are needed
    tree: NDArray[np.void]  # (A + 1,) TREE, to work with
    terms: NDArray[np.float64]  # (2, n_leaves) what is added to scores in the two orders
    stamp: NDArray[np.int64]  # (n_leaves,) when they were made
    book: NDArray[np.void]  # (1,) BOOK


class ShareRows(NamedTuple):
    """Accounts of many simulations, and which weights look at them."""

    rows: Shares  # with one more axis in front
    by_usage: NDArray[np.int64]  # (2,) places of the weights of both priorities, -1: it has none


@cache
def counting(told: Told) -> Any:
    """Return what keeps the accounts of a machine while it is simulated; ``told``: of it."""
    usage_of, stopped, coming = told.usage_of, told.stopped or nobody, told.coming or nobody
    stops, comes = told.stopped is not None, told.coming is not None

    @jit_entry
    def count_usage(jobs, scores, sim, progress, blocks, entries, ended, machine, shares, learns):
        """Charge the jobs that have ended, and give jobs the scores that follow.

        ``learns``: whether what is learned of run times may have changed scores without usage.
        """
        book = shares.book[0]
        if stops:  # in the last pass, before all that has ended since
            charge_stopped(ended, shares, *stopped(machine))
        if book.charged < sim.ended:
            move_epoch(shares, sim.time)
            for k in range(book.charged, sim.ended):
                end, drawn = usage_of(jobs, progress, machine, ended[k])
                charge(progress, ended, shares, k, end, drawn)
            book.charged = sim.ended
            book.version += 1
        mixed = shares.kinds[0] == MIXED or shares.kinds[1] == MIXED
        mixed = mixed and book.in_a_tree == 0  # places stay until somebody is charged
        renewed = learns and sim.asked == A_RENEWAL
        if renewed or book.version != book.written or (mixed and book.written_at != sim.time):
            write_all(scores, sim, blocks, entries, shares)
            if stops:  # they may wait again in the pass that follows
                write_list(scores, sim, blocks, entries, shares, RUNNING)
        if comes:
            count, others = coming(sim, ended, machine)
            for i in range(count):
                write(scores, sim, shares, others[i], growth(book, book.open_at))
        # a job that is to be submitted; its prediction is known, or is made by the simulator
        if sim.asked == A_PREDICTION:
            write(scores, sim, shares, sim.next, growth(book, book.open_at))
            sim.answered = sim.next + 1

    return count_usage


@jit
def charge_stopped(ended, shares, count, runs):
    """Charge the runs that others have ended, and that have not been charged yet, of so many."""
    book = shares.book[0]
    if book.stopped >= count:
        return
    settle(ended, shares, book.charged)
    for k in range(book.stopped, count):
        if runs[k].end != book.open_at:
            settle_all(shares)
            move_epoch(shares, runs[k].end)
            book.open_at = runs[k].end
        seconds = (runs[k].end - runs[k].start) / book.ticks
        account = shares.owner[runs[k].job]
        while account >= 0:
            for what in range(2):
                shares.recent[what, account] += shares.rate[what, runs[k].job] * seconds
            account = shares.parent[account]
    settle_all(shares)
    book.open, book.stopped = book.charged, count
    book.version += 1


@jit
def charge(progress, ended, shares, k, end, drawn):
    """Charge the job at place ``k`` of those that have ended to its accounts."""
    book, job = shares.book[0], ended[k]
    if end != book.open_at:
        settle(ended, shares, k)
        book.open, book.open_at = k, end
    # whole seconds stay whole: their sums are exact
    seconds = (end - progress[job].start) / book.ticks
    account = shares.owner[job]
    while account >= 0:
        shares.recent[CPU, account] += shares.rate[CPU, job] * seconds
        shares.recent[ENERGY, account] += shares.rate[ENERGY, job] * seconds * drawn
        account = shares.parent[account]


@jit_entry
def begin(scores, sim, blocks, entries, shares):
    """Give the jobs that wait when a simulation begins the scores of then."""
    write_all(scores, sim, blocks, entries, shares)


@jit_part
def settle_all(shares):
    """Add what was charged at `open_at` to all before."""
    factor = growth(shares.book[0], shares.book[0].open_at)
    for what in range(2):
        for account in range(len(shares.share)):
            shares.used[what, account] += shares.recent[what, account] * factor
            shares.recent[what, account] = 0.0


@jit_part
def settle(ended, shares, end):
    """Add what was charged at `open_at`, of the jobs before the place ``end``, to all before."""
    book = shares.book[0]
    factor = growth(book, book.open_at)
    for k in range(book.open, end):
        account = shares.owner[ended[k]]
        while account >= 0:
            for what in range(2):
                shares.used[what, account] += shares.recent[what, account] * factor
                shares.recent[what, account] = 0.0
            account = shares.parent[account]


@jit_part
def growth(book, time):
    """Return 2^((time - epoch) / half-life)."""
    if book.half_life == 0:
        return 1.0
    whole = (time - book.epoch) // book.half_life
    rest = time - book.epoch - whole * book.half_life
    return times_two_to(np.exp2(rest / book.half_life), whole)


@jit_part
def times_two_to(number, exponent):
    """Return number * 2^exponent; ldexp takes a C int, which longer exponents would overflow.

    Before the first end, and after millions of half-lives, exponents are as long as one likes.
    """
    return math.ldexp(number, int(min(max(exponent, -4_000), 1_000)))


@jit_part
def move_epoch(shares, time):
    """Let the epoch be at most so many half-lives before ``time``."""
    book = shares.book[0]
    if book.half_life == 0:
        return
    whole = (time - book.epoch) // book.half_life
    if whole > MOST_HALF_LIVES:
        factor = times_two_to(1.0, -whole)
        for what in range(2):
            for account in range(len(shares.share)):
                shares.used[what, account] *= factor
        book.epoch += whole * book.half_life


@jit
def write_all(scores, sim, blocks, entries, shares):
    """Give all waiting jobs the scores of now."""
    book = shares.book[0]
    book.stamp += 1
    book.written, book.written_at = book.version, sim.time
    factor = growth(book, book.open_at)
    if shares.kinds[0] == BY_BOTH or shares.kinds[1] == BY_BOTH:
        for what in range(2):
            shares.greatest[what] = 0.0
            for leaf in range(book.leaves):
                usage = effective(shares, what, leaf, factor) / shares.share[leaf]
                shares.greatest[what] = max(shares.greatest[what], usage)
    if book.in_a_tree == 1:
        place_all(shares, factor)
    write_list(scores, sim, blocks, entries, shares, QUEUE)
    for job in range(sim.next - sim.arrived, sim.next):
        write(scores, sim, shares, job, factor)
    forget_bounds(blocks)


@jit
def write_list(scores, sim, blocks, entries, shares, which):
    """Give all jobs of a list the scores of now."""
    factor = growth(shares.book[0], shares.book[0].open_at)
    for k in range(blocks[which].in_use):
        block = block_at(blocks, which, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            write(scores, sim, shares, entries[i].job, factor)


@jit
def place_all(shares, factor):
    """Put users in a row by each kind of usage that an order looks at."""
    for what in range(2):
        if shares.weights[0, what] != 0 or shares.weights[1, what] != 0:
            for account in range(len(shares.parent)):
                usage = shares.used[what, account] + shares.recent[what, account] * factor
                shares.tree[account].usage = usage
            leaves = shares.book[0].leaves
            rank(shares.places[what], shares.parent, shares.part, shares.tree, leaves)


@jit_part
def write(scores, sim, shares, job, factor):
    """Give a job the scores of now; ``factor`` is the growth up to `open_at`."""
    leaf = shares.owner[job]
    if shares.stamp[leaf] != shares.book[0].stamp:
        shares.stamp[leaf] = shares.book[0].stamp
        for half in range(2):
            if shares.kinds[half] != UNAWARE:
                shares.terms[half, leaf] = term(shares, half, leaf, sim.time, factor)
    # of an order that does not look at usage the terms are 0
    for half in range(2):
        place = half * len(shares.owner) + job
        base = shares.base[place]
        scores[place].score = base.score + shares.terms[half, leaf]
        scores[place].patience = base.patience


@jit
def term(shares, half, leaf, time, factor):
    """Return what an account's usage adds to the scores of its jobs in one of the orders."""
    kind = shares.kinds[half]
    total = 0.0
    for what in range(2):
        weight = shares.weights[half, what]
        if weight == 0:
            continue
        if shares.book[0].in_a_tree == 1:
            total += shares.places[what, leaf] * (weight if kind == MIXED else np.sign(weight))
            continue
        usage = effective(shares, what, leaf, factor) / shares.share[leaf]
        if kind == MIXED:
            total += weight * priority(shares, what, usage, time)
        elif kind != BY_BOTH:
            total -= usage if weight > 0 else -usage
        elif shares.greatest[what] > 0:
            total -= usage / shares.greatest[what]
    return rounded(total)


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
    book = shares.book[0]
    passed = (time - book.begin) / book.ticks
    if book.half_life > 0:
        # all that there was to use, which has decayed likewise
        in_half_life = book.half_life / book.ticks / math.log(2.0)
        passed = -in_half_life * math.expm1(-passed / in_half_life)
    normalised = usage / growth(book, time) / (shares.capacity[what] * passed)
    return np.exp2(-normalised / shares.damping[0])
