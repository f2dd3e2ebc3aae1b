"""How long weights and controls hold, and the scores that weights give; compiled."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit_inline, jit_part
from hpcgym.engine.answers.histories import asked_by
from hpcgym.engine.answers.online import FOR_ORDERING, KNOWN, rank
from hpcgym.engine.many.search import set_weights
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.orders.mixing import mix
from hpcgym.engine.orders.scores import forget_bounds
from hpcgym.engine.rows import learner_of
from hpcgym.engine.state import FOREVER, QUEUE, SCORED
from hpcgym.envs.core.arrays import PASSES_INTERVAL, SECONDS_INTERVAL, SUBMISSIONS_INTERVAL


@jit_part
def next_stop(e, table, batch):
    """Return the last second that the next weights and controls hold for."""
    interval, length = table.settings[0].interval, table.settings[0].interval_length
    episode = batch.episode_state[e]
    if batch.sim[e].started == episode.jobs:
        return np.int64(FOREVER)
    if interval == SECONDS_INTERVAL:
        return episode.stop + length - 1
    if interval == SUBMISSIONS_INTERVAL:
        if episode.controls_hold == 0:  # else the step goes on, once logs have been made longer
            episode.stop = stop_by_submissions(e, table, batch, length)
        return episode.stop
    return np.int64(FOREVER)


@jit_part
def interval_is_over(e, table, batch, stop):
    """Return whether new weights are to be asked for; else go on with the same."""
    episode, sim = batch.episode_state[e], batch.sim[e]
    if table.settings[0].interval == SUBMISSIONS_INTERVAL:
        # once all have started, the weights hold to the end
        return sim.started < episode.jobs
    episode.stop = stop + 1
    if sim.started == episode.jobs:
        return False  # to the end of the last job
    # all events up to this second have been seen
    sim.time = max(sim.time, stop)
    if sim.started == sim.next:
        # nothing waits: an answer would be of no use, and when one is would tell what comes
        idle = table.jobs[episode.start + sim.next].submit - episode.stop
        length = table.settings[0].interval_length
        episode.stop += max(idle // length, 0) * length
        return False
    return True


@jit_part
def weigh(e, table, batch, weights, stop):
    """Give scores by these weights to the queued jobs and to those that come up to ``stop`` [s]."""
    total = 0.0
    for k in range(len(table.waiting)):
        total += abs(weights[k])
    if table.kinds[FOR_ORDERING] != KNOWN:
        set_weights(table, batch, e, weights, total)
    blocks, entries = batch.blocks[e], batch.entries[e]
    forget_bounds(blocks)
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            score_by(e, table, batch, weights, total, entries[i].job)
    if table.settings[0].interval == PASSES_INTERVAL:
        return  # jobs to come are weighed when they are in the queue
    # jobs that have come without a pass are not in the queue yet
    job, n = batch.sim[e].next - batch.sim[e].arrived, batch.episode_state[e].jobs
    while job < n and table.jobs[batch.episode_state[e].start + job].submit <= stop:
        score_by(e, table, batch, weights, total, job)
        job += 1


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
def score_by(e, table, batch, weights, total, job):
    """Give a job its score."""
    if table.kinds[FOR_ORDERING] != KNOWN:
        # that of a job to come will be known when it is submitted
        if job < batch.sim[e].next:
            start, n = batch.episode_state[e].start, batch.episode_state[e].jobs
            jobs = table.jobs[start : start + n]
            asked = asked_by(table.jobs, table.asked, start + job)
            rank(jobs, asked, batch.scores[e], SCORED, job, np.int64(0), learner_of(batch, e))
        return
    row = batch.episode_state[e].start + job
    serial = table.serial[row] if len(table.serial) > 0 else 1.0
    batch.scores[e, job].score, batch.scores[e, job].patience = mix(
        weights, table.places, total, table.weighed[row], table.waiting, serial,
        np.float64(table.ordered_by[row]),
    )  # fmt: skip
