"""What steps add to rewards where jobs may be stopped: a start says nothing for good; compiled.

Sums are taken over all jobs of the episode, as the schedule stands now, as if nobody who runs was
to be stopped. A step adds by how much they have changed, so that all steps add up to what the
schedule says in the end. ``batch.owed`` has the sums so far.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.passes.preempting_rows import add_up_lost
from hpcgym.engine.state import QUEUE
from hpcgym.envs.core.arrays import (
    BSLD,
    ENERGY,
    MAX_WAIT,
    PAID_AT_END,
    PAID_WHILE_WAITING,
    WAIT,
)
from hpcgym.envs.kernels.limited import bsld_of


@jit
def begin_paying(e, batch, stops):
    """Let no job of an episode have been paid; ``stops`` may be None."""
    if stops is not None and batch.unpaid.shape[1] > 0:
        batch.episode_state[e].unpaid = batch.episode_state[e].jobs
        for job in range(batch.episode_state[e].jobs):
            batch.unpaid[e, job] = job


@jit
def count_open(e, batch, stops, jobs):
    """Count the jobs that have not ended, none once nothing can be stopped any more."""
    if stops is not None:
        episode, sim = batch.episode_state[e], batch.sim[e]
        n = np.int64(len(jobs))
        episode.open = 0
        if sim.next < n or batch.blocks[e, QUEUE].count > 0 or stops.scalars[e, 0].count > 0:
            for job in range(n):
                if not has_ended(e, batch, stops, jobs, job):
                    episode.open += 1


@jit_part
def has_ended(e, batch, stops, jobs, job):
    """Return whether a job has ended for good."""
    begun = batch.progress[e, job].start
    return begun >= 0 and begun + jobs[job].run <= batch.sim[e].time and not waits(stops, e, job)


@jit_part
def waits(stops, e, job):
    """Return whether a job is suspended."""
    found = False
    for k in range(stops.scalars[e, 0].count):
        found = found or stops.suspended[e, k].job == job
    return found


@jit
def add_terms_of_stopped(e, table, batch, stops, jobs):
    """Add by how much slowdowns and waits have changed, and return the same of processor seconds.

    Nothing at a reset, which has no reward, nor where ``stops`` is None.
    """
    seconds = 0.0
    if stops is not None and batch.episode_state[e].resets == 0:
        if table.settings[0].paid == PAID_AT_END:
            note_gone(e, batch, stops, jobs)
        bsld, wait, longest = sums_now(e, table, batch, stops, jobs)
        seconds = processor_seconds(e, batch, stops, jobs)
        terms, owed = batch.terms[e], batch.owed[e]
        terms[BSLD] += bsld - owed[BSLD]
        terms[WAIT] += wait - owed[WAIT]
        terms[MAX_WAIT] += longest - owed[MAX_WAIT]
        owed[BSLD], owed[WAIT], owed[MAX_WAIT] = bsld, wait, longest
        owed[ENERGY], seconds = seconds, seconds - owed[ENERGY]
    return seconds


@jit_part
def sums_now(e, table, batch, stops, jobs):
    """Return the slowdowns and waits [s] of the jobs that are paid so far, and the longest wait.

    A job that waits has those that it would have if it started now.
    """
    episode, now, paid = batch.episode_state[e], batch.sim[e].time, table.settings[0].paid
    bsld = wait = longest = 0.0
    for job in range(batch.sim[e].next):
        row, begun = jobs[job], batch.progress[e, job].start
        if begun < 0:
            if paid != PAID_WHILE_WAITING:
                continue
            begun = now
        else:
            longest = max(longest, np.float64(begun - row.submit))
            to_ask = paid == PAID_AT_END and episode.ended == 0
            if to_ask and not has_ended(e, batch, stops, jobs, job):
                continue
        bsld += bsld_of(row.submit, row.run, begun, row.run)
        wait += begun - row.submit
    return bsld, wait, longest


@jit_part
def processor_seconds(e, batch, stops, jobs):
    """Return how long processors are busy, as the schedule stands [processor seconds]."""
    add_up_lost(stops, e, jobs)
    seconds = np.float64(stops.wasted[e, 0])
    for job in range(batch.sim[e].next):
        if batch.progress[e, job].start >= 0:
            seconds += np.float64(jobs[job].processors) * np.float64(jobs[job].run)
    return seconds


@jit_part
def note_gone(e, batch, stops, jobs):
    """Note the jobs that have ended since the last step; of all once the episode has."""
    episode, unpaid = batch.episode_state[e], batch.unpaid[e]
    episode.gone = kept = 0
    for i in range(episode.unpaid):
        job = unpaid[i]
        row, begun = jobs[job], batch.progress[e, job].start
        if begun >= 0 and (episode.ended == 1 or has_ended(e, batch, stops, jobs, job)):
            batch.gone[e, episode.gone] = job
            batch.gone_bsld[e, episode.gone] = bsld_of(row.submit, row.run, begun, row.run)
            episode.gone += 1
        else:
            unpaid[kept] = job
            kept += 1
    episode.unpaid = kept
