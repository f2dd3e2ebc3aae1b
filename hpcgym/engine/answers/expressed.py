"""Orders of the queue by expressions that are worked out anew: before each pass, all that waits.

The simulator stops before each pass in which a job waits; here the scores of that time are written,
and it goes on. What usage adds to them has been worked out before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_inline
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.orders.programs import value_of
from hpcgym.engine.orders.scores import forget_bounds
from hpcgym.engine.state import QUEUE, RUNNING
from hpcgym.scheduler.policies.operations import Program


class Expressed(NamedTuple):
    """The expressions of the two orders."""

    first: Program  # without steps, it is another order
    second: Program
    ticks: NDArray[np.int64]  # (1,) of the clock in a second
    again: NDArray[np.int64]  # (1,) 1: jobs that run may be stopped, and wait again in a pass


@jit_entry
def express_all(jobs, scores, sim, blocks, entries, expressed, shares):
    """Give all jobs that wait, or have just been submitted, the scores of now.

    So it does for those that run, where they may wait again in the pass that follows.

    ``shares``: those whose terms are added, None if nobody counts usage.
    """
    first, second, ticks, again = expressed
    for half, program in enumerate((first, second)):
        if len(program.codes) == 0:
            continue
        for which in (QUEUE, RUNNING):
            if which == QUEUE or again[0] == 1:
                express(
                    jobs, scores, sim, blocks, entries, program, ticks, shares, np.int64(half),
                    which,
                )  # fmt: skip
    forget_bounds(blocks)


@jit
def express(jobs, scores, sim, blocks, entries, program, ticks, shares, half, which):
    """Do so for one of the orders, for those in a list."""
    for k in range(blocks[which].in_use):
        block = block_at(blocks, which, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            waiting = (sim.time - jobs[job].submit) / ticks[0]
            express_one(scores, program, shares, half, job, waiting)
    for job in range(sim.next - sim.arrived, sim.next):
        waiting = (sim.time - jobs[job].submit) / ticks[0]
        express_one(scores, program, shares, half, job, waiting)


@jit_inline
def express_one(scores, program, shares, half, job, waiting):
    """Do so for one job, which has waited so long [s]."""
    value = value_of(program, job, waiting)
    if shares is not None:
        value += shares.terms[half, shares.owner[job]]
    scores[half * (len(scores) // 2) + job].score = value


@jit
def express_coming(scores, expressed, shares, others, count):
    """Give so many of some jobs, which may come now, the scores that they have then."""
    for half, program in enumerate((expressed.first, expressed.second)):
        if len(program.codes) > 0:
            for i in range(count):
                express_one(scores, program, shares, np.int64(half), others[i], 0.0)


@jit_entry
def values_of(expressed, rows, waiting, values):
    """Write the primary scores of some jobs, (k,), that have waited so long, (k,) [s], (k,)."""
    for i in range(len(rows)):
        values[i] = value_of(expressed.first, rows[i], waiting[i])
