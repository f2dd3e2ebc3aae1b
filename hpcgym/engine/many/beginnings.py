"""How one of many simulations begins: with an empty machine, or with the jobs of an extract.

Environments have the arrays of many simulations with a row for each, ``rows``; ``table`` stands for
the jobs that they share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.answers.online import forget, note_held, rank_both
from hpcgym.engine.answers.share_rows import shares_of
from hpcgym.engine.answers.shares import write_all
from hpcgym.engine.holding import hold_back
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.rows import estimators_of, keys_of, learner_of, users_of
from hpcgym.engine.state import RUNNING
from hpcgym.engine.warm_start import line_up
from hpcgym.scheduler.estimates.learned import FOR_ORDERING, KNOWN


class Before(NamedTuple):
    """The states with which slices begin, a row for each, where some are extracts.

    In an environment there is one, that of its extract. The jobs that wait are in no list yet:
    weights say in which order they come.
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
def recall(before, s, table, start, n, rows, e):
    """Put simulation ``e`` into the state with which slice ``s`` begins.

    It has ``n`` jobs of a table from row ``start`` on.
    """
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
    begin_holding(table, rows, e, start, n)
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
            note_held(jobs, rows.line[e], job, estimators, learner)
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
def begin_learning(table, rows, e, start, n):
    """Let simulation ``e``, of ``n`` jobs from row ``start`` on, have learned nothing."""
    if table.sim[0].learns == 1:
        forget(learner_of(rows, e))
    begin_holding(table, rows, e, start, n)


@jit_part
def begin_holding(table, rows, e, start, n):
    """Note how many processors jobs hold back before they have waited, where they do so."""
    if table.sim[0].holds == 1:
        jobs, ordered_by = table.jobs[start : start + n], table.ordered_by[start : start + n]
        hold_back(jobs, ordered_by, table.hold, rows.line[e])


@jit
def set_weights(table, rows, e, weights, total):
    """Let jobs that are submitted be ranked by weights over predictions, divided by a total."""
    for k in range(len(table.formulas)):
        weight = weights[table.places[k]] / total if total > 0 else 0.0
        rows.weights[e, 0, table.formulas[k]] = weight
