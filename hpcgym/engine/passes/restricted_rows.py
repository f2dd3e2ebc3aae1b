"""Quotas and windows of many simulations, a row for each; what they share stands once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.passes.dependencies import Dependencies
from hpcgym.engine.passes.quotas import Quotas, note
from hpcgym.engine.passes.restricted import Restricted
from hpcgym.engine.passes.windows import Windows
from hpcgym.engine.rows import Rows, Shared
from hpcgym.engine.state import RUNNING


class RestrictedRows(NamedTuple):
    """Rows of the :class:`~hpcgym.engine.passes.restricted.Restricted` of simulations.

    Jobs are those of a table. C counts of K quotas, W windows; slices may differ in how many of
    them there are jobs of.
    """

    counts: Shared  # (n_rows, K)
    processors: Shared  # (n_rows,)
    begin_left: Shared  # (n_slices, C, 2) how many jobs, and processors, may start at first
    window_begin: Shared  # (n_slices, W) [s]
    window_end: Shared  # (n_slices, W) [s]
    # (n_slices, W) processors; on nodes who holds those that are closed, counted from the end
    taken: Shared
    # (n_slices, W + 1) and (n_slices, M): the nodes of each window are from one place to the next;
    # (n_slices, 1) and (n_slices, 0) on a pool
    closed_first: Shared
    closed: Shared
    # Dependencies of jobs that follow none
    none: Shared  # (0,) int64
    # these simulations have no quotas of submitted jobs
    no_counts: Shared  # (n, 0)
    no_places: Shared  # (0, 2)
    coming: Shared  # (0,) COMING
    no_scalars: Shared  # (1,) never changed
    left: Rows  # (n, C, 2)
    settled: Rows  # (n, 1) SCALARS of quotas
    over: Rows  # (n, 1) SCALARS of windows


@jit
def begin_restricted(kept, e, s, sim, blocks, entries, line, start, n):
    """Let the jobs count that run at the beginning of simulation ``e``, and no window be over.

    It is of slice ``s``, with ``n`` jobs from row ``start`` on. What was planned in a simulation
    before says nothing.
    """
    for c in range(kept.left.shape[1]):
        kept.left[e, c, 0], kept.left[e, c, 1] = kept.begin_left[s, c, 0], kept.begin_left[s, c, 1]
    kept.settled[e, 0].settled = sim.ended
    kept.over[e, 0].over = 0
    sim.changed = 1
    quotas = restricted_of(kept, (), e, s, start, start + n).quotas
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            note(quotas, entries[i].job, np.int64(-1))
    for job in range(n):
        line[job].reserved_at = line[job].reserved = 0


@jit_part
def restricted_of(kept, machine, e, s, start, stop):
    """Return a machine of simulation ``e`` with its quotas and windows, for these rows of jobs."""
    return Restricted(
        machine,
        Quotas(kept.counts[start:stop], kept.processors[start:stop], kept.left[e], kept.settled[e]),
        Windows(kept.window_begin[s], kept.window_end[s], kept.taken[s], kept.over[e]),
        Dependencies(
            kept.none, kept.none, kept.none, kept.none, kept.none, kept.coming, kept.none,
            kept.none, kept.no_scalars,
        ),
        # never looked at: where jobs come when the log says, nobody waits outside the queue
        Quotas(kept.no_counts[start:stop], kept.none, kept.no_places, kept.settled[e]),
    )  # fmt: skip
