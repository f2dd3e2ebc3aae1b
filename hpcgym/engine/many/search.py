"""Many weight vectors on many slices of a trace, in one compiled call that shares the jobs.

A simulation of one slice under one vector is a task. Each worker, a thread, has arrays of its own
and takes every n-th task, so that no result depends on how many there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.engine.answers.online import FOR_ORDERING, KNOWN
from hpcgym.engine.answers.share_rows import begin_shares, weigh_usage
from hpcgym.engine.machines.nodes.rows import (
    close_nodes,
    copy_nodes,
    empty_nodes,
    run_on_nodes,
    run_restricted_on_nodes,
)
from hpcgym.engine.machines.pool.rows import run_on_pool, run_restricted_on_pool
from hpcgym.engine.many.beginnings import (
    begin_learning,
    line_up_rows,
    recall,
    rewind,
    set_second_scores,
    set_weights,
)
from hpcgym.engine.orders.mixing import mix
from hpcgym.engine.passes.restricted_rows import begin_restricted
from hpcgym.engine.slowdown import bounded_slowdown
from hpcgym.engine.state import ALL_PASSES, FOREVER

# what can be measured of a schedule, as hpcgym.schedule.metrics defines it
(
    MEAN_BSLD,
    MAX_BSLD,
    RMS_BSLD,
    MEAN_SLOWDOWN,
    MEAN_WAIT,
    MAX_WAIT,
    MEAN_RESPONSE,
    MAX_RESPONSE,
    MAKESPAN,
    UTILIZATION,
) = range(10)


class Table(NamedTuple):
    """What all simulations of a search share; never changed."""

    jobs: NDArray[np.void]  # (n_rows,) hpcgym.engine.state.JOBS, slice after slice
    slices: NDArray[np.int64]  # (n_slices, 2) first row, and row behind the last
    users: NDArray[np.int64]  # (n_rows,) or (0,)
    keys: NDArray[np.int64]  # (longest + n_rows,) or (0,): of the secondary order, behind a gap
    second_scores: NDArray[np.void]  # (n_rows,) or (0,) SCORES of the secondary order
    static: NDArray[np.float64]  # (n_rows, n_features) what waiting does not change
    waiting: NDArray[np.int64]  # (n_features,) how features depend on waiting
    places: NDArray[np.int64]  # (n_features,) which weight is theirs
    formulas: NDArray[np.int64]  # (n_features,) their places in the table of features
    serial: NDArray[np.float64]  # (n_rows,) or (0,) patience of the feature unicef
    predicted: NDArray[np.int64]  # (n_rows,) [s], or 0 where it becomes known at submission
    ordered_by: NDArray[np.int64]  # (n_rows,) [s] what policies look at, as above
    sim: NDArray[np.void]  # (1,) SIM, the state of an empty machine before the first submission
    blocks: NDArray[np.void]
    # hpcgym.engine.answers.online.Estimators, one by one
    kinds: NDArray[np.int64]
    last: NDArray[np.int64]
    loss: NDArray[np.void]
    chosen: NDArray[np.int64]
    looks: NDArray[np.int64]
    classes: NDArray[np.int64]
    asked: NDArray[np.int64]
    hold: NDArray[np.float64]


class Workers(NamedTuple):
    """A simulation for each worker: rows of State and of hpcgym.engine.answers.online.Learner."""

    sim: NDArray[np.void]  # a SIM each
    progress: NDArray[np.void]
    history: NDArray[np.int64]
    blocks: NDArray[np.void]
    entries: NDArray[np.void]
    profile: NDArray[np.void]
    line: NDArray[np.void]
    narrow: NDArray[np.int64]
    freed: NDArray[np.void]
    idle: NDArray[np.void]
    ended: NDArray[np.int64]
    memory: NDArray[np.float64]
    ratios: NDArray[np.float64]
    seen: NDArray[np.float64]
    model: NDArray[np.float64]
    model_sums: NDArray[np.float64]
    ordered_by: NDArray[np.int64]
    weights: NDArray[np.float64]
    scratch: NDArray[np.float64]
    scores: NDArray[np.void]  # (n_workers, 2 * longest)


@jit
def begin_slice(worker, table, workers, before, fair, weights, total, s):
    """Begin a slice, whose jobs get scores by the weights divided by a total.

    With an empty machine where ``before`` is None, else with the state that it has of the slice.
    Where ``fair`` is not None, scores are without what usage adds.
    """
    start, stop = table.slices[s, 0], table.slices[s, 1]
    jobs, n = table.jobs[start:stop], stop - start
    if before is None:
        rewind(
            table.sim, table.blocks, jobs, table.predicted[start:stop],
            workers.sim, worker, workers.progress[worker], workers.history[worker],
            workers.blocks[worker],
        )  # fmt: skip
        begin_learning(table, workers, worker, start, n)
    else:
        recall(before, s, table, start, n, workers, worker)
    if table.kinds[FOR_ORDERING] != KNOWN:
        set_weights(table, workers, worker, weights, total)
    scores = workers.scores[worker]
    if fair is not None:
        begin_shares(fair, len(workers.sim) + s, worker, n)
        weigh_usage(fair, worker, weights, len(weights), total)
        scores = fair.rows.base[worker]
    for j in range(n):
        row = start + j
        serial = table.serial[row] if len(table.serial) > 0 else 1.0
        scores[j].score, scores[j].patience = mix(
            weights, table.places, total, table.static[row], table.waiting, serial,
            np.float64(table.ordered_by[row]),
        )  # fmt: skip
    set_second_scores(scores, table.second_scores, start, n)
    if before is not None and before.time[s] >= 0:
        line_up_rows(table, start, n, workers, worker, before, fair, s)


@jit_part
def run_slice(worker, table, workers, learns, fair, s, max_passes):
    """Simulate a slice to its end, a question or so many passes; return the passes done."""
    start = table.slices[s, 0]
    n = table.slices[s, 1] - start
    end = np.int64(FOREVER)
    return run_on_pool(table, start, n, workers, worker, learns, fair, end, max_passes)


@jit_part
def run_slice_on_nodes(worker, table, workers, before, rooms, learns, fair, s):
    """Simulate a slice to its end on nodes."""
    start, stop = table.slices[s, 0], table.slices[s, 1]
    if before is None:
        empty_nodes(rooms, worker, start, stop)
    else:
        copy_nodes(rooms, len(workers.sim) + s, worker, start, stop, before.number[s])
    n, end = stop - start, np.int64(FOREVER)
    run_on_nodes(table, start, n, workers, rooms, worker, learns, fair, end)


@jit_part
def run_restricted_slice(worker, table, workers, pool, rooms, kept, learns, fair, s):
    """Simulate a slice to its end under quotas and around windows."""
    start, stop = table.slices[s, 0], table.slices[s, 1]
    n = stop - start
    begin_restricted(
        kept, worker, s, workers.sim[worker], workers.blocks[worker], workers.entries[worker],
        workers.line[worker], start, n,
    )  # fmt: skip
    end = np.int64(FOREVER)
    if pool is not None:
        run_restricted_on_pool(table, start, n, workers, kept, s, worker, learns, fair, end)
    if rooms is not None:
        closings = kept.closed_first.shape[1] - 1
        first = start + s * closings
        empty_nodes(rooms, worker, first, first + n)
        close_nodes(rooms, kept, worker, s, first, n)
        last = first + n + closings
        run_restricted_on_nodes(
            table, start, n, workers, rooms, first, last, kept, s, worker, learns, fair, end
        )  # fmt: skip


@jit
def measure(metric, jobs, progress, begin, processors, tau):
    """Return a metric of a schedule that has ended, and begun at ``begin`` [s].

    Jobs that ran then count for the machine alone, and from then on.
    """
    n = 0
    total = most = 0.0
    last = np.int64(0)
    for j in range(len(jobs)):
        start, length = progress[j].start, jobs[j].run
        last = max(last, start + length)
        if start < begin:
            if metric == UTILIZATION:
                total += np.float64((start + length - begin) * jobs[j].processors)
            continue
        n += 1
        wait = start - jobs[j].submit
        value = 0.0
        if metric <= RMS_BSLD:
            value = bounded_slowdown(wait + length, length, tau)
            if metric == RMS_BSLD:
                value *= value
        elif metric == MEAN_SLOWDOWN:
            value = (wait + length) / length
        elif metric <= MAX_WAIT:
            value = np.float64(wait)
        elif metric <= MAX_RESPONSE:
            value = np.float64(wait + length)
        elif metric == UTILIZATION:
            value = np.float64(length * jobs[j].processors)
        total += value
        most = max(most, value)
    makespan = np.float64(last - begin)
    if metric < MAKESPAN and n == 0:
        return np.nan
    if metric in (MAX_BSLD, MAX_WAIT, MAX_RESPONSE):
        return most
    if metric == RMS_BSLD:
        return np.sqrt(total / n)
    if metric == MAKESPAN:
        return makespan
    if metric == UTILIZATION:
        return total / (processors * makespan)
    return total / n


@jit_entry
def search_share(
    worker, n_workers, first, stop, table, workers, before, pool, rooms, kept, learns, fair,
    weights, metrics, settings, out,
):  # fmt: skip
    """Simulate every ``n_workers``-th task from ``first`` to ``stop`` (exclusive).

    Parameters
    ----------
    worker, n_workers : who does this share of them, and how many share.
    first, stop : task ``s * n_vectors + v`` is slice s under vector v.
    before : how slices begin, None if all do with an empty machine.
    pool : not None on a pool of processors, where ``rooms`` is None.
    rooms : hpcgym.engine.machines.nodes.rows.Rooms of the workers, and behind them those with which
        slices begin, if ``before`` says how. Their jobs are those of the table; behind those of
        each slice stand the ones who hold nodes in windows.
    kept : RestrictedRows of the workers; None without quotas and windows.
    learns : None where no run times are learned.
    fair : ShareRows of the workers, and behind them those with which slices begin; None where no
        order looks at usage.
    weights : (n_vectors, 1 or n_slices, n_features) float64.
    metrics : (n_metrics,) codes of this module.
    settings : (2,) float64, processors of the machine, and what short run times count as [s].
    out : (n_vectors, n_slices, n_metrics) float64, written.
    """
    processors, tau = settings[0], settings[1]
    n_vectors = len(weights)
    for task in range(first + worker, stop, n_workers):
        s, v = task // n_vectors, task % n_vectors
        own = s if weights.shape[1] > 1 else 0
        begin_slice(worker, table, workers, before, fair, weights[v, own], 1.0, s)
        if kept is not None:
            run_restricted_slice(worker, table, workers, pool, rooms, kept, learns, fair, s)
        if kept is None:
            if pool is not None:
                run_slice(worker, table, workers, learns, fair, s, np.int64(ALL_PASSES))
            if rooms is not None:
                run_slice_on_nodes(worker, table, workers, before, rooms, learns, fair, s)
        jobs = table.jobs[table.slices[s, 0] : table.slices[s, 1]]
        progress, begin = workers.progress[worker], jobs[0].submit
        if before is not None:
            begin = max(begin, before.time[s])
        for k in range(len(metrics)):
            out[v, s, k] = measure(metrics[k], jobs, progress, begin, processors, tau)
