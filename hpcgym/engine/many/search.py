"""Many weight vectors on many slices of a trace, in one compiled call that shares the jobs.

A simulation of one slice under one vector is a task. Each worker, a thread, has arrays of its own
and takes every n-th task, so that no result depends on how many there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_inline, jit_part
from hpcgym.engine.answers.online import FOR_ORDERING, KNOWN, forget, rank_both
from hpcgym.engine.answers.share_rows import begin_shares, shares_of, weigh_usage
from hpcgym.engine.answers.shares import usage_by_clock, write_all
from hpcgym.engine.machines.nodes.rows import copy_nodes, empty_nodes, run_on_nodes
from hpcgym.engine.machines.pool import easy
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.orders.mixing import mix
from hpcgym.engine.rows import estimators_of, keys_of, learner_of, loop_on_rows, users_of
from hpcgym.engine.state import FOREVER, RUNNING
from hpcgym.engine.warm_start import line_up

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


class Shared(NamedTuple):
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


class Before(NamedTuple):
    """The states with which slices begin, a row for each, where some are extracts.

    In an environment there is one, that of its extract. From ``sim`` on they are what
    :class:`Workers` has. The jobs that wait are in no list yet, since weights say in which order.
    """

    time: NDArray[np.int64]  # (n_slices,) [s] when the slice begins, -1 where it is no extract
    number: NDArray[np.int64]  # (n_slices,) jobs that run or wait then
    due: NDArray[np.int64]  # (n_slices,) 1 if a pass is due then
    sim: NDArray[np.void]
    progress: NDArray[np.void]
    history: NDArray[np.int64]
    blocks: NDArray[np.void]
    entries: NDArray[np.void]
    memory: NDArray[np.float64]
    ratios: NDArray[np.float64]
    seen: NDArray[np.float64]
    model: NDArray[np.float64]
    model_sums: NDArray[np.float64]
    ordered_by: NDArray[np.int64]


@jit
def rewind(empty_sim, empty_blocks, jobs, predicted, sims, row, progress, history, blocks):
    """Empty the machine of row ``row``, and let none of the jobs have been submitted."""
    sims[row] = empty_sim[0]
    sims[row].time = jobs[0].submit
    for k in range(len(empty_blocks)):
        blocks[k] = empty_blocks[k]
    for job in range(len(jobs)):
        progress[job].start = -1
        progress[job].promised = -1
        progress[job].marks = 0
        progress[job].predicted = predicted[job]
    for user in range(len(history)):
        for k in range(history.shape[1]):
            history[user, k] = -1


@jit
def begin_slice(worker, shared, workers, before, fair, weights, total, s):
    """Begin a slice, whose jobs get scores by the weights divided by a total.

    With an empty machine where ``before`` is None, else with the state that it has of the slice.
    Where ``fair`` is not None, scores are without what usage adds.
    """
    start, stop = shared.slices[s, 0], shared.slices[s, 1]
    jobs, n = shared.jobs[start:stop], stop - start
    if before is None:
        rewind(
            shared.sim, shared.blocks, jobs, shared.predicted[start:stop],
            workers.sim, worker, workers.progress[worker], workers.history[worker],
            workers.blocks[worker],
        )  # fmt: skip
        begin_learning(shared, workers, worker)
    else:
        recall(before, s, n, workers, worker)
    if shared.kinds[FOR_ORDERING] != KNOWN:
        set_weights(shared, workers, worker, weights, total)
    scores = workers.scores[worker]
    if fair is not None:
        begin_shares(fair, len(workers.sim) + s, worker, n)
        weigh_usage(fair, worker, weights, len(weights), total)
        scores = fair.rows.base[worker]
    for j in range(n):
        row = start + j
        serial = shared.serial[row] if len(shared.serial) > 0 else 1.0
        scores[j].score, scores[j].patience = mix(
            weights, shared.places, total, shared.static[row], shared.waiting, serial,
            np.float64(shared.ordered_by[row]),
        )  # fmt: skip
    set_second_scores(scores, shared.second_scores, start, n)
    if before is not None and before.time[s] >= 0:
        line_up_rows(shared, start, n, workers, worker, before, fair, s)


@jit
def recall(before, s, n, rows, e):
    """Put simulation ``e`` into the state with which slice ``s``, of ``n`` jobs, begins."""
    blocks, entries = rows.blocks[e], rows.entries[e]
    rows.sim[e] = before.sim[s]
    for k in range(len(blocks)):
        blocks[k] = before.blocks[s, k]
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            entries[i] = before.entries[s, i]
    for job in range(n):
        rows.progress[e, job] = before.progress[s, job]
    copy_table(rows.history[e], before.history[s])
    if rows.sim[e].learns == 0:
        return
    copy_table(rows.memory[e], before.memory[s])
    copy_table(rows.ratios[e], before.ratios[s])
    copy_table(rows.model_sums[e], before.model_sums[s])
    for which in range(2):
        copy_table(rows.model[e, which], before.model[s, which])
    for job in range(min(before.number[s], before.seen.shape[1])):
        for k in range(before.seen.shape[2]):
            rows.seen[e, job, k] = before.seen[s, job, k]
    for job in range(min(before.number[s], before.ordered_by.shape[1])):
        rows.ordered_by[e, job] = before.ordered_by[s, job]


@jit_part
def copy_table(target, source):
    """Copy a table of two dimensions."""
    for i in range(source.shape[0]):
        for k in range(source.shape[1]):
            target[i, k] = source[i, k]


@jit
def line_up_rows(table, start, n, rows, e, before, fair, s):
    """Put the jobs of an extract that wait into the queue, by the scores that they have now.

    Slice ``s`` has ``n`` jobs of the table from row ``start`` on; ``e`` simulates them. Where
    ``fair`` is not None, usage adds to the scores that it has.
    """
    jobs, sim, scores = table.jobs[start : start + n], rows.sim[e], rows.scores[e]
    ranked = scores
    if fair is not None:
        ranked = fair.rows.base[e]
    if table.kinds[FOR_ORDERING] != KNOWN:
        estimators, learner = estimators_of(table, start, start + n), learner_of(rows, e)
        for job in range(before.number[s]):
            rank_both(jobs, ranked, sim, job, estimators, learner)
    if fair is not None:
        for place in range(2 * n):
            scores[place].score = ranked[place].score
            scores[place].patience = ranked[place].patience
    line_up(
        jobs, keys_of(table, start, n), scores, users_of(table, start, n),
        sim, rows.progress[e], rows.history[e], rows.blocks[e], rows.entries[e], rows.narrow[e],
        rows.freed[e], rows.idle[e], rows.ended[e], before.number[s], before.time[s],
        before.due[s],
    )  # fmt: skip
    if fair is not None:
        write_all(scores, sim, rows.blocks[e], rows.entries[e], shares_of(fair, e, n))


@jit_part
def set_second_scores(scores, second_scores, start, n):
    """Set the scores of the secondary order of ``n`` jobs of a table, if it has any."""
    for j in range(min(n, len(second_scores))):
        scores[n + j].score = second_scores[start + j].score
        scores[n + j].patience = second_scores[start + j].patience


@jit_part
def begin_learning(table, rows, e):
    """Let simulation ``e`` have learned nothing."""
    if table.sim[0].learns == 1:
        forget(learner_of(rows, e))


@jit
def set_weights(table, rows, e, weights, total):
    """Let jobs that are submitted be ranked by weights over predictions, divided by a total."""
    for k in range(len(table.formulas)):
        weight = weights[table.places[k]] / total if total > 0 else 0.0
        rows.weights[e, 0, table.formulas[k]] = weight


_run_row = loop_on_rows(easy.run, usage_by_clock)


@jit_inline
def run_rows(table, start, n, rows, e, learns, fair, stop_time, max_passes):
    """Simulate ``n`` jobs of a table on a pool in row ``e`` of the arrays of many simulations.

    To the end, ``stop_time`` [s], a question or so many passes; return the passes done. ``table``
    has the jobs, users and keys of all, ``rows`` the arrays of State and the scores; ``learns`` is
    None where no run times are learned, ``fair`` where no order looks at usage.
    """
    jobs = table.jobs[start : start + n]
    return _run_row(jobs, table, start, rows, e, (), learns, fair, stop_time, max_passes)


@jit_part
def run_slice(worker, shared, workers, learns, fair, s, max_passes):
    """Simulate a slice to its end, a question or so many passes; return the passes done."""
    start = shared.slices[s, 0]
    n = shared.slices[s, 1] - start
    end = np.int64(FOREVER)
    return run_rows(shared, start, n, workers, worker, learns, fair, end, max_passes)


@jit_part
def run_slice_on_nodes(worker, shared, workers, before, rooms, learns, fair, s):
    """Simulate a slice to its end on nodes."""
    start, stop = shared.slices[s, 0], shared.slices[s, 1]
    if before is None:
        empty_nodes(rooms, worker, start, stop)
    else:
        copy_nodes(rooms, len(workers.sim) + s, worker, start, stop, before.number[s])
    n, end = stop - start, np.int64(FOREVER)
    run_on_nodes(shared, start, n, workers, rooms, worker, learns, fair, end)


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
            value = max((wait + length) / max(np.float64(length), tau), 1.0)
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
    worker, n_workers, first, stop, shared, workers, before, pool, rooms, learns, fair, weights,
    metrics, settings, out,
):  # fmt: skip
    """Simulate every ``n_workers``-th task from ``first`` to ``stop`` (exclusive).

    Parameters
    ----------
    worker, n_workers : who does this share of them, and how many share.
    first, stop : task ``s * n_vectors + v`` is slice s under vector v.
    before : how slices begin, None if all do with an empty machine.
    pool : not None on a pool of processors, where ``rooms`` is None.
    rooms : hpcgym.engine.machines.nodes.rows.Rooms of the workers, and behind them those with which
        slices begin, if ``before`` says how.
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
        begin_slice(worker, shared, workers, before, fair, weights[v, own], 1.0, s)
        if pool is not None:
            run_slice(worker, shared, workers, learns, fair, s, np.int64(FOREVER))
        if rooms is not None:
            run_slice_on_nodes(worker, shared, workers, before, rooms, learns, fair, s)
        jobs = shared.jobs[shared.slices[s, 0] : shared.slices[s, 1]]
        progress, begin = workers.progress[worker], jobs[0].submit
        if before is not None:
            begin = max(begin, before.time[s])
        for k in range(len(metrics)):
            out[v, s, k] = measure(metrics[k], jobs, progress, begin, processors, tau)
