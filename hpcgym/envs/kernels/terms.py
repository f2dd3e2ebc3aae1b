"""What a step adds to the terms of the reward: slowdowns, waits, joules; compiled."""

from __future__ import annotations

import math

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.idle_power import settle
from hpcgym.engine.machines.limited.rows import machine_of
from hpcgym.engine.machines.nodes.rows import nodes_of
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import QUEUE, STARTED_AS
from hpcgym.envs.core.arrays import (
    BSLD,
    BUSY,
    ENERGY,
    IDLING,
    MAX_WAIT,
    N_TERMS,
    OFF,
    PAID_AT_END,
    PAID_WHILE_WAITING,
    SWITCHING_OFF,
    SWITCHING_ON,
    WAIT,
)
from hpcgym.envs.kernels.limited import bsld_of, sum_bsld, take_joules


@jit_part
def add_waits(e, table, batch, jobs):
    """Add slowdowns and waits of the jobs that started; return their processor seconds.

    Those that are paid when they end are noted for that.
    """
    episode = batch.episode_state[e]
    late = table.settings[0].paid == PAID_AT_END
    processor_seconds = 0.0
    for i in range(episode.noted, episode.new):
        job = batch.new[e, i]
        row = jobs[job]
        begun, seconds = batch.progress[e, job].start, row.run
        if begun < episode.begin:  # it ran then, and counts for the machine alone, and from then on
            seconds -= episode.begin - begun
        elif episode.counts_first <= job < episode.counting:
            add_max_wait(e, batch, begun - row.submit)
            if late:
                batch.unpaid[e, episode.unpaid] = job
                episode.unpaid += 1
            else:
                add_wait(e, batch, jobs[job], begun)
        processor_seconds += np.float64(row.processors) * np.float64(seconds)
    return processor_seconds


@jit_part
def add_wait(e, batch, row, begun):
    """Add the slowdown and the wait of a job, its JOBS, that starts at some time [s]."""
    terms = batch.terms[e]
    terms[BSLD] += bsld_of(row.submit, row.run, begun, row.run)
    terms[WAIT] += begun - row.submit


@jit_part
def add_max_wait(e, batch, wait):
    """Add by how much a wait [s] is longer than the longest so far."""
    longest = batch.totals[e, MAX_WAIT] + batch.terms[e, MAX_WAIT]
    batch.terms[e, MAX_WAIT] += max(wait - longest, 0.0)


@jit_part
def pay_later(e, table, batch, jobs):
    """Add what is not paid when a job starts: at its end, while it waits, where the episode ends.

    A job that still waits when time is up is paid as if it started then.
    """
    episode, paid = batch.episode_state[e], table.settings[0].paid
    if paid == PAID_AT_END:
        pay_ended(e, batch, jobs)
    if episode.truncated == 1:
        for job in range(episode.counts_first, min(episode.counting, batch.sim[e].next)):
            if batch.progress[e, job].start < 0:
                add_wait(e, batch, jobs[job], batch.sim[e].time)
                add_max_wait(e, batch, batch.sim[e].time - jobs[job].submit)
    if paid == PAID_WHILE_WAITING and episode.resets == 0:  # a reset has no reward
        pay_waiting(e, batch, jobs)


@jit_part
def pay_ended(e, batch, jobs):
    """Add slowdowns and waits of the jobs that have ended; of all once the episode has."""
    episode, unpaid, now = batch.episode_state[e], batch.unpaid[e], batch.sim[e].time
    if episode.noted == 0:
        episode.gone = 0
    kept = 0
    for i in range(episode.unpaid):
        job = unpaid[i]
        begun = batch.progress[e, job].start
        row = jobs[job]
        if episode.ended == 1 or begun + row.run <= now:
            add_wait(e, batch, row, begun)
            batch.gone[e, episode.gone] = job
            batch.gone_bsld[e, episode.gone] = bsld_of(row.submit, row.run, begun, row.run)
            episode.gone += 1
        else:
            unpaid[kept] = job
            kept += 1
    episode.unpaid = kept


@jit_part
def pay_waiting(e, batch, jobs):
    """Add by how much the slowdowns and waits so far have grown, of jobs that wait.

    A job that waits has those that it would have if it started now.
    """
    episode, sim, terms = batch.episode_state[e], batch.sim[e], batch.terms[e]
    blocks, entries = batch.blocks[e], batch.entries[e]
    bsld = wait = 0.0
    if episode.ended == 0:
        for k in range(blocks[QUEUE].in_use):
            block = block_at(blocks, QUEUE, k)
            for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
                job = entries[i].job
                if episode.counts_first <= job < episode.counting:
                    row = jobs[job]
                    bsld += bsld_of(row.submit, row.run, sim.time, row.run)
                    wait += sim.time - row.submit
    terms[BSLD] += bsld - batch.owed[e, BSLD]
    terms[WAIT] += wait - batch.owed[e, WAIT]
    batch.owed[e, BSLD], batch.owed[e, WAIT] = bsld, wait


@jit_part
def joules_of_processors(e, table, batch, processor_seconds):
    """Return the energy of the jobs that started, and of processors without a job meanwhile."""
    episode = batch.episode_state[e]
    elapsed = np.float64(batch.sim[e].time - episode.last_time)
    episode.last_time = batch.sim[e].time
    watts = table.watts
    if table.sim[0].managed == 0:
        idle_seconds = elapsed * table.settings[0].processors - processor_seconds
        return idle_seconds * watts[IDLING] + processor_seconds * watts[BUSY]
    settle(batch.sim[e], batch.idle[e])
    sim = batch.sim[e]
    joules = sim.idle_s * watts[IDLING] + sim.off_s * watts[OFF]
    joules += sim.switching_off_s * watts[SWITCHING_OFF]
    joules += sim.switching_on_s * watts[SWITCHING_ON]
    more = joules - batch.counted_j[e] + processor_seconds * watts[BUSY]
    batch.counted_j[e] = joules
    return more


@jit
def joules_on_nodes(e, table, batch, rooms):
    """Return the same where nodes have powers: a node is busy as a whole while it has any job.

    That is until the last end of its jobs so far: so they are counted in the order of their starts.
    """
    episode, progress, new, until = (
        batch.episode_state[e],
        batch.progress[e],
        batch.new[e],
        batch.busy_until[e],
    )
    start, n = episode.start, episode.jobs
    nodes = nodes_of(rooms, e, start, start + n)
    sort_by_start(new, progress, episode.new, episode.counted - episode.new)
    joules = np.float64(batch.sim[e].time - episode.last_time) * table.still_w[0]
    episode.last_time = batch.sim[e].time
    for i in range(episode.noted, episode.new):
        job = new[i]
        end = progress[job].start + table.jobs[start + job].run
        begun = max(progress[job].start, episode.begin)
        first = nodes.held[job].first
        for c in range(first, first + nodes.held[job].count):
            node = nodes.cells[c].node
            if table.node_watts[node, 1] > 0:
                seconds = max(end - max(until[node], begun), 0)
                until[node] = max(until[node], end)
                joules += seconds * table.node_watts[node, 0]
            else:
                cores = nodes.cells[c].units * nodes.needs[job, 1]
                joules += np.float64(cores * (end - begun)) * table.node_watts[node, 0]
    return joules


@jit_part
def sort_by_start(new, progress, n, before):
    """Sort the jobs that started in a step by their starts, of which there were some ``before``."""
    for i in range(n):
        place = progress[new[i]].marks // STARTED_AS - before
        while place != i:
            new[i], new[place] = new[place], new[i]
            place = progress[new[i]].marks // STARTED_AS - before


@jit_part
def add_terms_under_limits(e, table, batch, limited):
    """Add slowdowns, waits and energy: jobs take as long as they take at their level."""
    episode, terms, progress = batch.episode_state[e], batch.terms[e], batch.progress[e]
    start, n = episode.start, episode.jobs
    machine = machine_of(limited, e, start, start + n)
    for i in range(episode.noted, episode.new):
        job = batch.new[e, i]
        row, begun = table.jobs[start + job], progress[job].start
        terms[BSLD] += bsld_of(row.submit, row.run, begun, limited.jobs[e, job].run)
        terms[WAIT] += begun - row.submit
    if episode.ended == 1 and machine.scalars[0].kills > 0:  # they have been cut since they started
        known = batch.totals[e, BSLD] + terms[BSLD]
        terms[BSLD] += sum_bsld(machine, limited.jobs[e, :n], progress) - known
    episode.last_time = batch.sim[e].time
    terms[ENERGY] += take_joules(machine, batch.sim[e].time)


@jit_part
def step_of_log(e, weights, batch, value):
    """Return by what minus the logarithm of 1 + the sum of an episode has changed in a step.

    ``value`` is minus what the sum has grown by.
    """
    total = 0.0
    for term in range(N_TERMS):
        total -= weights[term] * batch.totals[e, term] * batch.norms[e, term]
    return math.log1p(total) - math.log1p(total - value)
