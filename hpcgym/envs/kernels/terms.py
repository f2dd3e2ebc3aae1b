"""What a step adds to the terms of the reward: slowdowns, waits, joules; compiled."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.idle_power import settle
from hpcgym.engine.machines.limited.rows import machine_of
from hpcgym.engine.machines.nodes.rows import nodes_of
from hpcgym.engine.state import STARTED_AS
from hpcgym.envs.core.arrays import (
    BSLD,
    BUSY,
    ENERGY,
    IDLING,
    OFF,
    SWITCHING_OFF,
    SWITCHING_ON,
    WAIT,
)
from hpcgym.envs.kernels.limited import bsld_of, sum_bsld, take_joules


@jit_part
def add_waits(e, table, batch):
    """Add slowdowns and waits of the jobs that started; return their processor seconds."""
    episode, terms = batch.episode_state[e], batch.terms[e]
    processor_seconds = 0.0
    for i in range(episode.new):
        job = batch.new[e, i]
        row = table.jobs[episode.start + job]
        begun, seconds = batch.progress[e, job].start, row.run
        if begun < episode.begin:  # it ran then, and counts for the machine alone, and from then on
            seconds -= episode.begin - begun
        else:
            terms[BSLD] += bsld_of(row.submit, row.run, begun, row.run)
            terms[WAIT] += begun - row.submit
        processor_seconds += np.float64(row.processors) * np.float64(seconds)
    return processor_seconds


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
    for i in range(episode.new):
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
    for i in range(episode.new):
        job = batch.new[e, i]
        row, begun = table.jobs[start + job], progress[job].start
        terms[BSLD] += bsld_of(row.submit, row.run, begun, limited.jobs[e, job].run)
        terms[WAIT] += begun - row.submit
    if episode.ended == 1 and machine.scalars[0].kills > 0:  # they have been cut since they started
        known = batch.totals[e, BSLD] + terms[BSLD]
        terms[BSLD] += sum_bsld(machine, limited.jobs[e, :n], progress) - known
    episode.last_time = batch.sim[e].time
    terms[ENERGY] += take_joules(machine, batch.sim[e].time)
