"""How an episode begins in one of many simulations, compiled; see ``steps`` for what is passed."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit_inline, jit_part
from hpcgym.engine.answers.share_rows import begin_shares
from hpcgym.engine.idle_power import rest
from hpcgym.engine.machines.corun.rows import begin_corun
from hpcgym.engine.machines.limited.rows import begin_machine
from hpcgym.engine.machines.nodes.rows import close_nodes, copy_nodes, empty_nodes
from hpcgym.engine.many.beginnings import (
    begin_learning,
    line_up_rows,
    recall,
    rewind,
    set_second_scores,
)
from hpcgym.engine.passes.restricted_rows import begin_restricted, moves
from hpcgym.envs.core.arrays import (
    BSLD,
    BUSY,
    ENERGY,
    MAX_WAIT,
    N_TERMS,
    ORDERING_KIND,
    WAIT,
)
from hpcgym.envs.kernels.corun import begin_norms
from hpcgym.envs.kernels.stopped import begin_paying


@jit_inline
def begin(e, table, batch, before, rooms, kept, limited, corun, fair):
    """Begin the next episode of environment ``e``."""
    episode = batch.episode_state[e]
    start, n = episode.next_start, episode.next_jobs
    episode.start, episode.jobs, episode.origin = start, n, start
    episode.counting, episode.open = episode.next_counting, episode.next_open
    episode.until, episode.of_slice = episode.next_until, episode.next_of_slice
    episode.beginning, episode.truncated = episode.next_beginning, 0
    episode.visible = episode.cursor = episode.counted = episode.new = episode.ended = 0
    episode.noted = episode.unpaid = episode.gone = 0
    for term in range(N_TERMS):
        batch.owed[e, term] = 0.0
    episode.begin = table.jobs[start].submit
    episode.controls_hold = episode.hides = 0
    if before is None:
        rewind(
            table.sim, table.blocks, table.jobs[start : start + n],
            table.predicted[start : start + n],
            batch.sim, e, batch.progress[e], batch.history[e], batch.blocks[e],
        )  # fmt: skip
        begin_learning(table, batch, e, start, n)
    if before is not None:
        recall(before, episode.beginning, table, start, n, batch, e)
        episode.begin = max(episode.begin, before.time[episode.beginning])
    episode.last_time = episode.stop = episode.begin
    episode.counts_first = episode.next_counts_first
    if rooms is not None:
        if before is None:
            empty_nodes(rooms, e, start, start + n)
        if before is not None:
            place = episode.beginning
            copy_nodes(rooms, len(batch.sim) + place, e, start, start + n, before.number[place])
    if kept is not None:
        begin_restricted(
            kept, e, np.int64(0), table, batch.sim[e], batch.blocks[e], batch.entries[e],
            batch.line[e], start, n,
        )  # fmt: skip
        begin_paying(e, batch, kept.stops)
        if moves(kept):
            episode.begin = batch.sim[e].time = kept.coming[e, 0].time
            episode.last_time = episode.stop = episode.begin
        if rooms is not None:
            close_nodes(rooms, kept, e, np.int64(0), start, n)
    if limited is not None:
        begin_machine(limited, e, start, start + n, table.jobs)
    begin_scores(e, table, batch, fair, start, n)
    if before is not None and before.time[episode.beginning] >= 0:
        line_up_rows(table, start, n, batch, e, before, fair, episode.beginning)
    batch.counted_j[e] = batch.begun_j[e] = 0.0
    for node in range(len(batch.busy_until[e])):
        batch.busy_until[e, node] = 0
    if table.sim[0].managed == 1:
        rest(batch.sim[e], batch.idle[e], table.settings[0].processors)
    span = max(table.jobs[start + n - 1].submit - episode.begin, 0) + 1
    full = table.watts[BUSY] * table.settings[0].processors
    decided = episode.of_slice if episode.of_slice > 0 else n - batch.sim[e].started
    batch.norms[e, BSLD] = -1.0 / decided
    batch.norms[e, WAIT] = -1.0 / (3600.0 * decided)
    batch.norms[e, MAX_WAIT] = -1.0 / 3600.0
    for k in range(batch.scales.shape[1]):
        batch.scales[e, k] = batch.next_scales[e, k]
    batch.norms[e, ENERGY] = -1.0 / max(full * span, 1.0)
    for term in range(N_TERMS):
        batch.totals[e, term] = 0.0
    if corun is not None:
        begin_corun(corun, e, start, n)
        begin_norms(e, table, batch, corun)


@jit_part
def begin_scores(e, table, batch, fair, start, n):
    """Set the scores that do not depend on actions, without what usage adds."""
    scores = batch.scores[e]
    if fair is not None:
        begin_shares(fair, len(batch.sim) + e, e, n)
        scores = fair.rows.base[e]
    if table.settings[0].kind == ORDERING_KIND:
        # jobs outside the window come after those within, by submission
        for job in range(n):
            scores[job].score = -np.inf
            scores[job].patience = np.inf
    set_second_scores(scores, table.second_scores, start, n)
