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
from hpcgym.engine.orders.operations import Program
from hpcgym.engine.orders.programs import value_of
from hpcgym.engine.orders.scores import forget_bounds
from hpcgym.engine.state import QUEUE


class Expressed(NamedTuple):
    """The expressions of the two orders."""

    first: Program  # without steps, it is another order
    second: Program
    ticks: NDArray[np.int64]  # (1,) of the clock in a second


@jit_entry
def express_all(jobs, scores, sim, blocks, entries, expressed, shares):
    """Give all jobs that wait, or have just been submitted, the scores of now.

    ``shares``: those whose terms are added, None if nobody counts usage.
    """
    first, second, ticks = expressed
    if len(first.codes) > 0:
        express(jobs, scores, sim, blocks, entries, first, ticks, shares, np.int64(0))
    if len(second.codes) > 0:
        express(jobs, scores, sim, blocks, entries, second, ticks, shares, np.int64(1))
    forget_bounds(blocks)


@jit
def express(jobs, scores, sim, blocks, entries, program, ticks, shares, half):
    """Do so for one of the orders."""
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            express_one(jobs, scores, sim, program, ticks, shares, half, entries[i].job)
    for job in range(sim.next - sim.arrived, sim.next):
        express_one(jobs, scores, sim, program, ticks, shares, half, job)


@jit_inline
def express_one(jobs, scores, sim, program, ticks, shares, half, job):
    """Do so for one job."""
    value = value_of(program, job, (sim.time - jobs[job].submit) / ticks[0])
    if shares is not None:
        value += shares.terms[half, shares.owner[job]]
    scores[half * len(jobs) + job].score = value


@jit_entry
def values_of(expressed, rows, waiting, values):
    """Write the primary scores of some jobs, (k,), that have waited so long, (k,) [s], (k,)."""
    for i in range(len(rows)):
        values[i] = value_of(expressed.first, rows[i], waiting[i])
