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
from hpcgym.engine.answers.share_rows import begin_shares, shares_of, weigh_usage
from hpcgym.engine.answers.shares import charge_before_forgetting
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
from hpcgym.engine.orders.mixing import BY_WAIT, STATIC_ONLY, mix
from hpcgym.engine.passes.lining_up import sort_line
from hpcgym.engine.passes.preempting import charged_runs
from hpcgym.engine.passes.preempting_rows import forget_lost, preempting_of
from hpcgym.engine.passes.restricted_rows import begin_restricted, jobs_of, moves
from hpcgym.engine.slowdown import bounded_slowdown
from hpcgym.engine.state import ALL_PASSES, FOREVER, KEYED, SCORED

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


@jit
def order_as_they_come(worker, table, workers, kept, weights, n):
    """Let weights order jobs of which the schedule says when they come as a policy does.

    Where waiting changes no order, jobs that are equal are served as they come, and not by their
    rows: so the order is one of keys then. So it is where waiting alone is the order.
    """
    sim, scores, line = workers.sim[worker], workers.scores[worker], workers.line[worker]
    changes = by_arrival = False
    others = False
    for k in range(len(table.waiting)):
        weight = weights[table.places[k]]
        if table.waiting[k] == BY_WAIT and weight > 0:
            by_arrival = True
        elif weight != 0 and table.waiting[k] != STATIC_ONLY:
            changes = True
        elif weight != 0:
            others = True
    changes = changes or (by_arrival and others)
    kept.by_arrival[worker, 0] = np.int64(not changes and not others)
    sim.primary = SCORED if changes else KEYED
    if changes or not others:
        return
    for job in range(n):
        line[job].job, line[job].score = job, scores[job].score
    sort_line(line, np.int64(0), n)
    place = np.int64(0)
    for i in range(n):
        if i > 0 and line[i].score != line[i - 1].score:
            place = np.int64(i)
        kept.keys[worker, line[i].job] = place


@jit_part
def run_restricted_slice(
    worker, table, workers, before, pool, rooms, kept, learns, fair, weights, s
):
    """Simulate a slice to its end where quotas, windows or other jobs say who may start when."""
    start, stop = table.slices[s, 0], table.slices[s, 1]
    n = stop - start
    begin_restricted(
        kept, worker, s, table, workers.sim[worker], workers.blocks[worker],
        workers.entries[worker], workers.line[worker], start, n,
    )  # fmt: skip
    if moves(kept):
        order_as_they_come(worker, table, workers, kept, weights, n)
    if rooms is not None:
        closings = kept.closed_first.shape[1] - 1
        first = start + s * closings
        if before is None:
            empty_nodes(rooms, worker, first, first + n)
        if before is not None:
            source = len(workers.sim) + s
            copy_nodes(rooms, source, worker, first, first + n, before.number[s])
        close_nodes(rooms, kept, worker, s, first, n)
    goes_on = True
    while goes_on:
        run_restricted(worker, table, workers, pool, rooms, kept, kept.stops, learns, fair, s)
        jobs = jobs_of(kept, worker, table, start, n)
        goes_on = log_was_full(worker, workers, kept.stops, fair, start, jobs)


@jit
def run_restricted(worker, table, workers, pool, rooms, kept, stops, learns, fair, s):
    """Simulate a slice that has begun, to its end or until the log of stopped runs is full."""
    start, end = table.slices[s, 0], np.int64(FOREVER)
    n = table.slices[s, 1] - start
    if pool is not None:
        run_restricted_on_pool(table, start, n, workers, kept, stops, s, worker, learns, fair, end)
    if rooms is not None:
        closings = kept.closed_first.shape[1] - 1
        first = start + s * closings
        run_restricted_on_nodes(
            table, start, n, workers, rooms, first, first + n + closings, kept, stops, s, worker,
            learns, fair, end,
        )  # fmt: skip


@jit
def log_was_full(worker, workers, stops, fair, start, jobs):
    """Let the log of stopped runs have room again; return whether it was full."""
    full = False
    if stops is not None:
        n = len(jobs)
        if fair is not None:
            own = preempting_of(stops, (), worker, start, n)
            charge_before_forgetting(
                workers.ended[worker], shares_of(fair, worker, n), *charged_runs(own)
            )  # fmt: skip
        full = forget_lost(stops, worker, jobs)
    return full


@jit
def wasted_by(stops, worker):
    """Return for how long processors were busy with lost runs [processor seconds]."""
    wasted = 0.0
    if stops is not None:
        wasted = np.float64(stops.wasted[worker, 0])
    return wasted


@jit_part
def first_submission(jobs):
    """Return when the first job came [s]."""
    first = jobs[0].submit
    for j in range(1, len(jobs)):
        first = min(first, jobs[j].submit)
    return first


@jit
def measure(metric, jobs, progress, lost, begin, processors, tau):
    """Return a metric of a schedule that has ended, and begun at ``begin`` [s].

    Processors were busy for so many seconds as ``lost`` with runs that others ended.

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
        return (total + lost) / (processors * makespan)
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
    kept : RestrictedRows of the workers; None where nothing restricts who may start when.
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
        begin, n = table.slices[s, 0], table.slices[s, 1] - table.slices[s, 0]
        jobs, lost = table.jobs[begin : begin + n], 0.0
        if kept is not None:
            run_restricted_slice(
                worker, table, workers, before, pool, rooms, kept, learns, fair, weights[v, own], s
            )  # fmt: skip
            jobs = jobs_of(kept, worker, table, begin, n)
            lost = wasted_by(kept.stops, worker)
        if kept is None:
            if pool is not None:
                run_slice(worker, table, workers, learns, fair, s, np.int64(ALL_PASSES))
            if rooms is not None:
                run_slice_on_nodes(worker, table, workers, before, rooms, learns, fair, s)
        progress, begin = workers.progress[worker], jobs[0].submit
        if moves(kept):  # they came in another order
            begin = first_submission(jobs)
        if before is not None:
            begin = max(begin, before.time[s])
        for k in range(len(metrics)):
            out[v, s, k] = measure(metrics[k], jobs, progress, lost, begin, processors, tau)
