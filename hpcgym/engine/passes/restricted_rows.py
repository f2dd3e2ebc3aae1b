"""What restricts many simulations, a row for each; what is shared stands once.

These are quotas, windows, dependencies and jobs that stop others. Where the schedule says when jobs
come, or how long they run, each simulation has jobs of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.passes.dependencies import Dependencies
from hpcgym.engine.passes.preempting_rows import PreemptingRows, begin_preempting
from hpcgym.engine.passes.quotas import Quotas, note
from hpcgym.engine.passes.restricted import Restricted
from hpcgym.engine.passes.windows import Windows
from hpcgym.engine.rows import Rows, Shared, keys_of
from hpcgym.engine.state import FOREVER, RUNNING


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
    # Dependencies, and quotas of submitted jobs; all of it has room for no job where the log says
    # when jobs are submitted
    first: Shared  # (n_rows + 1,) where those that follow a job begin in `followers`
    followers: Shared  # (n_pairs,) rows of jobs that follow others, by these
    told: Shared  # (n_rows,) [s] think times; -1: what is in the log between
    log_end: Shared  # (n_rows,) [s] when jobs ended in the log, -1 if it does not tell that
    earliest: Shared  # (n_rows,) [s]
    place_counts: Shared  # (n_rows, K) of quotas of submitted jobs
    begin_places: Shared  # (n_slices, C, 2)
    # (n_rows,) the last row before of the same user, -1: none; (0,) where passes look at any number
    # of jobs of a user
    user_before: Shared
    left: Rows  # (n, C, 2)
    settled: Rows  # (n, 1) SCALARS of quotas
    over: Rows  # (n, 1) SCALARS of windows
    jobs: Rows  # (n, longest) JOBS, submitted when they came, as long as they ran
    keys: Rows  # (n, 2 * longest)
    own_first: Rows  # (n, longest + 1) as `first`, of the jobs of this simulation
    own_followers: Rows  # (n, P)
    awaits: Rows  # (n, longest) how many that a job follows are still to end
    think: Rows  # (n, longest) [s]
    coming: Rows  # (n, longest) COMING
    outside: Rows  # (n, longest)
    came: Rows  # (n, longest)
    by_arrival: Rows  # (n, 2)
    moved: Rows  # (n, 1) SCALARS of dependencies
    places: Rows  # (n, C, 2)
    places_settled: Rows  # (n, 1) SCALARS of quotas
    stops: PreemptingRows | None  # who may stop whom, None: nobody


@jit_part
def moves(kept):
    """Return whether the schedule says when jobs come; ``kept`` may be None."""
    found = False
    if kept is not None:
        found = kept.coming.shape[1] > 0
    return found


@jit_part
def has_own_jobs(kept):
    """Return whether the schedule says when jobs come, or how long they run."""
    return kept.jobs.shape[1] > 0


@jit_part
def some_stop(kept):
    """Return whether some jobs may stop others; ``kept`` may be None."""
    found = False
    if kept is not None:
        found = is_there(kept.stops)
    return found


@jit_part
def in_log_order(kept):
    """Return whether jobs wait in the order of the log; ``kept`` may be None."""
    return not moves(kept) and not some_stop(kept)


@jit
def is_there(part):
    """Return whether something is not None."""
    found = False
    if part is not None:
        found = True
    return found


@jit
def begin_restricted(kept, e, s, table, sim, blocks, entries, line, start, n):
    """Let the jobs count that run at the beginning of simulation ``e``, and no window be over.

    It is of slice ``s``, with ``n`` jobs from row ``start`` of the table on. What was planned in a
    simulation before says nothing. Where the schedule says when jobs come, none has come yet.
    """
    refill(kept.left[e], kept.begin_left[s])
    kept.settled[e, 0].settled = sim.ended
    kept.over[e, 0].over = 0
    sim.changed = 1
    quotas = restricted_of(kept, (), e, s, start, n).quotas
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            note(quotas, entries[i].job, np.int64(-1))
    for job in range(n):
        line[job].reserved_at = line[job].reserved = 0
    for job in range(min(n, len(kept.user_before))):  # a user is told by the first of the jobs
        before = kept.user_before[start + job] - start
        line[job].user = line[before].user if before >= 0 else job
    if has_own_jobs(kept):
        own_jobs(kept, e, table, start, n)
    if moves(kept):
        refill(kept.places[e], kept.begin_places[s])
        kept.places_settled[e, 0].settled = 0
        sim.next = n  # for the loop of events: they come from the machine
        own_keys(kept, e, table, start, n)
        link(kept, e, start, n)
        begin_to_come(kept, e, n)
    begin_preempting(kept.stops, e)


@jit_part
def refill(left, begin):
    """Let as much be left as at first."""
    for c in range(left.shape[0]):
        left[c, 0], left[c, 1] = begin[c, 0], begin[c, 1]


@jit_part
def own_jobs(kept, e, table, start, n):
    """Let simulation ``e`` have the jobs of the table."""
    jobs = kept.jobs[e]
    for job in range(n):
        jobs[job] = table.jobs[start + job]


@jit_part
def own_keys(kept, e, table, start, n):
    """Let simulation ``e`` have the keys of the secondary order."""
    keys = kept.keys[e]
    if len(table.keys) > 0:
        others = keys_of(table, start, n)
        for job in range(n):
            keys[n + job] = others[n + job]


@jit_part
def link(kept, e, start, n):
    """Say which of the jobs of simulation ``e`` follow which, and when they come after these.

    Others, of which there is no end here, count as if nobody followed them.
    """
    first, followers, jobs = kept.own_first[e], kept.own_followers[e], kept.jobs[e]
    awaits, think, latest = kept.awaits[e], kept.think[e], kept.outside[e]
    for job in range(n):
        awaits[job], latest[job] = 0, -FOREVER
    count = 0
    for other in range(n):
        first[other] = count
        for place in range(kept.first[start + other], kept.first[start + other + 1]):
            job = kept.followers[place] - start
            if 0 <= job < n:
                followers[count] = job
                count += 1
                awaits[job] += 1
                end = kept.log_end[start + other]
                latest[job] = FOREVER if end < 0 else max(latest[job], end)
    first[n] = count
    for job in range(n):
        think[job] = kept.told[start + job]
        if think[job] < 0:
            known = latest[job] < FOREVER
            think[job] = max(jobs[job].submit - latest[job], 0) if known else 0


@jit_part
def begin_to_come(kept, e, n):
    """Let those jobs of simulation ``e`` come when the log says that follow none."""
    coming, count = kept.coming[e], 0
    for job in range(n):  # by time, which makes a heap
        kept.came[e, job] = -1
        if kept.awaits[e, job] == 0:
            coming[count].time, coming[count].job = kept.jobs[e, job].submit, job
            count += 1
    own = kept.moved[e, 0]
    own.coming, own.followed, own.outside, own.alone, own.came = count, 0, 0, 0, 0


@jit_part
def jobs_of(kept, e, table, start, n):
    """Return the jobs of simulation ``e``: those of the table, or its own."""
    jobs = table.jobs[start : start + n]
    if has_own_jobs(kept):
        jobs = kept.jobs[e][:n]
    return jobs


@jit_part
def own_keys_of(kept, e, table, start, n):
    """Return the keys of the jobs of simulation ``e``: those of the table, or its own."""
    keys = keys_of(table, start, n)
    if moves(kept):
        keys = kept.keys[e][: 2 * n]
    return keys


@jit_part
def restricted_of(kept, machine, e, s, start, n):
    """Return a machine of simulation ``e`` with what restricts ``n`` jobs from a row on."""
    stop = start + n
    moves = min(n, kept.outside.shape[1])  # no job where the log says when they come
    return Restricted(
        machine,
        Quotas(kept.counts[start:stop], kept.processors[start:stop], kept.left[e], kept.settled[e]),
        Windows(kept.window_begin[s], kept.window_end[s], kept.taken[s], kept.over[e]),
        Dependencies(
            kept.own_first[e], kept.own_followers[e], kept.awaits[e], kept.think[e],
            kept.earliest[start:stop], kept.coming[e], kept.outside[e][:moves], kept.came[e],
            kept.by_arrival[e], kept.moved[e],
        ),
        Quotas(
            kept.place_counts[start:stop], kept.processors[start:stop], kept.places[e],
            kept.places_settled[e],
        ),
    )  # fmt: skip
