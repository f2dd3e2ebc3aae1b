"""Jobs that wait in another order than that of the log: who of them is seen and served; compiled.

They come when the schedule says, or again when others have stopped them. Where the log says who
waits, `kept` is None or changes nothing of it.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import next_end
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.passes.dependencies import next_coming
from hpcgym.engine.passes.lining_up import sort_line
from hpcgym.engine.passes.restricted_rows import (
    in_log_order,
    jobs_of,
    moves,
    restricted_of,
    some_stop,
)
from hpcgym.engine.state import QUEUE, RUNNING


@jit_part
def jobs_here(e, table, batch, kept):
    """Return the jobs of environment ``e``, submitted when they came or are to come."""
    episode = batch.episode_state[e]
    jobs = table.jobs[episode.start : episode.start + episode.jobs]
    if kept is not None:
        jobs = jobs_of(kept, e, table, episode.start, episode.jobs)
    return jobs


@jit_part
def queued(e, batch, kept):
    """Return how many jobs wait."""
    number = batch.sim[e].next - batch.sim[e].started
    if not in_log_order(kept):
        number = batch.blocks[e, QUEUE].count
    return number


@jit
def line_up_arrived(e, batch, kept):
    """Write the queued jobs to ``line`` in the order in which they came; return how many."""
    blocks, entries, line = batch.blocks[e], batch.entries[e], batch.line[e]
    moved, count = moves(kept), np.int64(0)
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            line[count].job = job
            line[count].score = -np.float64(kept.came[e, job] if moved else job)
            count += 1
    sort_line(line, np.int64(0), count)
    return count


@jit
def see_queue(e, batch, kept, head):
    """Fill the window with jobs of the queue, up to ``head`` the first ones, and then the last.

    Return how many there are.
    """
    window, line = batch.window[e], batch.line[e]
    count = line_up_arrived(e, batch, kept)
    if count <= len(window):
        head = count
    seen = min(count, len(window))
    for i in range(seen):
        window[i] = line[i if i < head else count - seen + i].job
    return seen


@jit
def find_started(e, jobs, batch, started_as):
    """Note the jobs behind those noted that have started since the last decision.

    Return how many are noted.
    """
    episode, progress, new = batch.episode_state[e], batch.progress[e], batch.new[e]
    found, missing = episode.noted, batch.sim[e].started - episode.counted + episode.noted
    job = 0
    while found < missing:
        if progress[job].start >= 0 and progress[job].marks // started_as >= episode.counted:
            new[found] = job
            found += 1
        job += 1
    return found


@jit
def put_behind(blocks, entries, scores):
    """Put running jobs behind all that wait: they have the lowest of all scores."""
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            scores[entries[i].job].score = -np.inf


@jit
def order_as_seen(e, batch, kept, numbers):
    """Let scores order the jobs of the window, ties as they came; others come after them so.

    Those that run come last, should others stop them in this pass.
    """
    put_behind(batch.blocks[e], batch.entries[e], batch.scores[e])
    line, window, scores = batch.line[e], batch.window[e], batch.scores[e]
    visible = batch.episode_state[e].visible
    count = line_up_arrived(e, batch, kept)
    for i in range(count):
        scores[line[i].job].score = -np.float64(len(window) + i)
    for i in range(visible):
        line[i].job, line[i].score = i, numbers[i]
    sort_line(line, np.int64(0), visible)
    for i in range(visible):
        scores[window[line[i].job]].score = -np.float64(i)


@jit_part
def all_started(e, batch, kept):
    """Return whether no job is to start any more."""
    n, sim = batch.episode_state[e].jobs, batch.sim[e]
    found = sim.started == n
    if some_stop(kept):  # a job may start several times
        found = sim.next == n and batch.blocks[e, QUEUE].count == 0
    return found


@jit_part
def next_event(e, batch, kept):
    """Return when the next job comes or ends, as far as is known now, at least the present [s]."""
    episode = batch.episode_state[e]
    own = restricted_of(kept, (), e, 0, episode.start, episode.jobs).dependencies
    return max(min(next_coming(own), next_end(batch.blocks[e])), batch.sim[e].time)
