"""What happened since the last decision: who started, what it cost, who is seen; compiled."""

from __future__ import annotations

from hpcgym.compilation import jit_inline, jit_part
from hpcgym.engine.passes.restricted_rows import in_log_order, moves, some_stop
from hpcgym.engine.state import STARTED_AS
from hpcgym.envs.core.arrays import ENERGY
from hpcgym.envs.kernels.corun import add_terms_of_pairs
from hpcgym.envs.kernels.moving import find_started, jobs_here, see_queue
from hpcgym.envs.kernels.stopped import add_terms_of_stopped, count_open
from hpcgym.envs.kernels.terms import (
    add_terms_under_limits,
    add_waits,
    joules_of_processors,
    joules_on_nodes,
    pay_later,
)


@jit_inline
def account(e, table, batch, pool, rooms, kept, limited, corun):
    """Note the jobs that have started since the last decision, sum their terms, fill the window."""
    episode, window, sim, new = batch.episode_state[e], batch.window[e], batch.sim[e], batch.new[e]
    progress, jobs = batch.progress[e], jobs_here(e, table, batch, kept)
    head = len(window)
    if table.settings[0].split == 1:
        head = (head + 1) // 2
    if in_log_order(kept):
        episode.new, episode.visible = look_at_log(episode, sim, progress, window, new, head)
    if kept is not None and not in_log_order(kept):
        if moves(kept):
            episode.new = find_started(e, jobs, batch, STARTED_AS)
        episode.visible = see_queue(e, batch, kept, head)
    episode.counted = sim.started
    for i in range(episode.noted, episode.new):
        if episode.counts_first <= new[i] < episode.counting:
            episode.open -= 1
    if kept is not None:
        count_open(e, batch, kept.stops, jobs)
    episode.ended = 1 if episode.open == 0 or episode.truncated == 1 else 0
    if corun is not None:
        add_terms_of_pairs(e, table, batch, corun)
    if limited is not None:
        add_terms_under_limits(e, table, batch, limited)
    if pool is not None:
        seconds = add_waits(e, table, batch, jobs)
        if not some_stop(kept):
            pay_later(e, table, batch, jobs)
        if kept is not None:
            seconds += add_terms_of_stopped(e, table, batch, kept.stops, jobs)
        batch.terms[e, ENERGY] += joules_of_processors(e, table, batch, seconds)
    if rooms is not None:
        seconds = add_waits(e, table, batch, jobs)
        if not some_stop(kept):
            pay_later(e, table, batch, jobs)
        if kept is not None:
            seconds += add_terms_of_stopped(e, table, batch, kept.stops, jobs)
        if len(batch.busy_until[e]) > 0:
            batch.terms[e, ENERGY] += joules_on_nodes(e, table, batch, rooms)
        else:
            batch.terms[e, ENERGY] += joules_of_processors(e, table, batch, seconds)
    episode.noted = episode.new


@jit_part
def look_at_log(episode, sim, progress, window, new, head):
    """Note who has started, and fill the window, where jobs come in the order of the log.

    Return how many are noted, and how many are visible.
    """
    found, seen = episode.noted, 0
    missing = sim.started - episode.counted + found
    for i in range(episode.visible):
        job = window[i]
        if job < episode.cursor:  # others are the tail, which is looked up anew
            if progress[job].start < 0:
                window[seen] = job
                seen += 1
            else:
                new[found] = job
                found += 1
    job = episode.cursor
    while found < missing:
        if progress[job].start >= 0 and progress[job].marks // STARTED_AS >= episode.counted:
            new[found] = job
            found += 1
        job += 1
    while seen < head and episode.cursor < sim.next:
        if progress[episode.cursor].start < 0:
            window[seen] = episode.cursor
            seen += 1
        episode.cursor += 1
    if head < len(window):
        seen = see_tail(episode, sim, progress, window, seen)
    return found, seen


@jit_part
def see_tail(episode, sim, progress, window, kept):
    """Put the jobs that came last behind the visible ones, in order; return how many there are."""
    room, found = len(window) - kept, 0
    job = sim.next - 1
    while job >= episode.cursor and found < room:
        if progress[job].start < 0:
            found += 1
            window[len(window) - found] = job
        job -= 1
    for i in range(found):
        window[kept + i] = window[len(window) - found + i]
    return kept + found
