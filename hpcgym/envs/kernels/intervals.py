"""How long weights and controls hold, and the scores that weights give; compiled."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit_inline, jit_part
from hpcgym.engine.answers.histories import asked_by
from hpcgym.engine.answers.online import FOR_ORDERING, KNOWN, rank
from hpcgym.engine.answers.share_rows import shares_of, weigh_usage
from hpcgym.engine.answers.shares import write_all, write_list
from hpcgym.engine.many.beginnings import set_weights
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.orders.mixing import mix
from hpcgym.engine.orders.scores import forget_bounds
from hpcgym.engine.passes.restricted_rows import in_log_order, moves, some_stop
from hpcgym.engine.rows import learner_of
from hpcgym.engine.state import FOREVER, QUEUE, RUNNING, SCORED
from hpcgym.envs.core.arrays import PASSES_INTERVAL, SECONDS_INTERVAL, SUBMISSIONS_INTERVAL
from hpcgym.envs.kernels.moving import all_started, next_event, queued


@jit_part
def next_stop(e, table, batch, kept):
    """Return the last second that the next weights and controls hold for."""
    interval, length = table.settings[0].interval, table.settings[0].interval_length
    episode = batch.episode_state[e]
    if all_started(e, batch, kept):
        return np.int64(FOREVER)
    if interval == SECONDS_INTERVAL:
        return episode.stop + length - 1
    if interval == SUBMISSIONS_INTERVAL:
        if episode.controls_hold == 0:  # else the step goes on, once logs have been made longer
            episode.stop = stop_by_submissions(e, table, batch, length)
        return episode.stop
    return np.int64(FOREVER)


@jit_part
def interval_is_over(e, table, batch, kept, stop):
    """Return whether new weights are to be asked for; else go on with the same."""
    episode, sim = batch.episode_state[e], batch.sim[e]
    if table.settings[0].interval == SUBMISSIONS_INTERVAL:
        # once all have started, the weights hold to the end
        return not all_started(e, batch, kept)
    episode.stop = stop + 1
    if all_started(e, batch, kept):
        return False  # to the end of the last job
    # all events up to this second have been seen
    sim.time = max(sim.time, stop)
    if queued(e, batch, kept) == 0:
        # nothing waits: an answer would be of no use, and when one is would tell what comes
        idle = np.int64(0)
        if not moves(kept):
            idle = table.jobs[episode.start + sim.next].submit - episode.stop
        if kept is not None and moves(kept):
            idle = next_event(e, batch, kept) - episode.stop
        length = table.settings[0].interval_length
        episode.stop += max(idle // length, 0) * length
        return False
    return True


@jit_part
def weigh(e, table, batch, kept, fair, weights, stop):
    """Give scores by these weights to the queued jobs and to those that come up to ``stop`` [s].

    Where ``fair`` is not None usage is added: to the scores of jobs to come when they come.
    """
    scores, n_weights = batch.scores[e], len(table.waiting)
    if fair is not None:
        scores = fair.rows.base[e]
        for what in range(2):
            n_weights += 1 if fair.by_usage[what] >= 0 else 0
    total = 0.0
    for k in range(n_weights):
        total += abs(weights[k])
    if table.kinds[FOR_ORDERING] != KNOWN:
        set_weights(table, batch, e, weights, total)
    blocks, entries = batch.blocks[e], batch.entries[e]
    forget_bounds(blocks)
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            score_by(e, table, batch, scores, weights, total, entries[i].job)
    if some_stop(kept):  # who runs may wait again in this pass
        for k in range(blocks[RUNNING].in_use):
            block = block_at(blocks, RUNNING, k)
            for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
                score_by(e, table, batch, scores, weights, total, entries[i].job)
    n = batch.episode_state[e].jobs
    # where asked at each pass, jobs to come are weighed when they are in the queue
    if table.settings[0].interval != PASSES_INTERVAL:
        # jobs that have come without a pass are not in the queue yet
        job = batch.sim[e].next - batch.sim[e].arrived
        if not in_log_order(kept):
            job = 0  # each may come, or come again, whenever that is
        while job < n and (
            moves(kept) or table.jobs[batch.episode_state[e].start + job].submit <= stop
        ):
            score_by(e, table, batch, scores, weights, total, job)
            job += 1
    if fair is not None:
        weigh_usage(fair, e, weights, n_weights, total)
        shares = shares_of(fair, e, n)
        write_all(batch.scores[e], batch.sim[e], blocks, entries, shares)
        if some_stop(kept):
            write_list(batch.scores[e], batch.sim[e], blocks, entries, shares, np.int64(RUNNING))


@jit_part
def stop_by_submissions(e, table, batch, length):
    """Return the last second before so many more jobs have been submitted."""
    episode, following = batch.episode_state[e], batch.sim[e].next
    if following + length >= episode.jobs:
        return np.int64(FOREVER)
    first = table.jobs[episode.start + following].submit
    last = table.jobs[episode.start + following + length].submit - 1
    return max(first, last)


@jit_inline
def score_by(e, table, batch, scores, weights, total, job):
    """Give a job its score, without what usage adds."""
    if table.kinds[FOR_ORDERING] != KNOWN:
        # that of a job to come will be known when it is submitted
        if job < batch.sim[e].next:
            start, n = batch.episode_state[e].start, batch.episode_state[e].jobs
            jobs = table.jobs[start : start + n]
            asked = asked_by(table.jobs, table.asked, start + job)
            rank(jobs, asked, scores, SCORED, job, np.int64(0), learner_of(batch, e))
        return
    row = batch.episode_state[e].start + job
    serial = table.serial[row] if len(table.serial) > 0 else 1.0
    scores[job].score, scores[job].patience = mix(
        weights, table.places, total, table.weighed[row], table.waiting, serial,
        np.float64(table.ordered_by[row]),
    )  # fmt: skip
