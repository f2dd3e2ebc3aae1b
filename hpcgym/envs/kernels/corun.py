"""Environments in which jobs share nodes: actions, terms of rewards, what is to be seen; compiled.

The window shows W waiting jobs, the list of neighbours M running ones with a part free beside them.
An action names a pair by its number: that of the job i times M + 1, plus the place of the neighbour
from 1, or 0 where the rule `partners` is to say on which nodes. Times are in ticks.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.constants import TAU_S
from hpcgym.engine.machines.corun.rates import left_at
from hpcgym.engine.machines.corun.rows import (
    N_BESIDE,
    N_COUNTED,
    corun_of,
    finds_room,
    list_neighbours,
    room_beside,
    run_on_shared_nodes,
)
from hpcgym.engine.machines.corun.state import NOBODY_THERE, PART
from hpcgym.engine.slowdown import bounded_slowdown
from hpcgym.engine.state import AN_ORDER, RUNNING
from hpcgym.envs.core.arrays import BSLD, BUSY, ELAPSED, ENERGY, IDLING, PAIR_SCORES_KIND, WAIT

HOUR = 3600.0  # [s]
MACHINE_SIZE, JOB_SIZE, NEIGHBOUR_SIZE, PAIR_SIZE = 8, 8, 5, 2


# --- Acting ---------------------------------------------------------------------------------------


@jit
def serve(e, table, batch, corun, job, beside):
    """Start a job, or none, and go on to the next question or to the end."""
    episode = batch.episode_state[e]
    run_on_shared_nodes(
        table, episode.start, episode.jobs, batch, corun, e, table.watts, table.settings[0].ticks,
        job, beside,
    )  # fmt: skip


@jit
def act_on_pairs(e, table, batch, corun, chosen, numbers):
    """Do what the action says, and go to the next decision."""
    machine = corun_of(corun, e, batch.episode_state[e].jobs)
    if table.settings[0].kind == PAIR_SCORES_KIND:
        start_by_scores(e, table, batch, corun, machine, numbers)
        return
    width, window = corun.neighbours.shape[1] + 1, batch.window[e]
    waits = chosen == len(window) * width and batch.blocks[e, RUNNING].count > 0
    i, k = chosen // width, chosen % width
    job, beside = np.int64(-1), np.int64(NOBODY_THERE)
    if not waits:
        if not is_possible(e, batch, corun, machine, i, k):
            # the first action that can be done
            i, k = np.int64(0), np.int64(0)
            while i < len(window) and not is_possible(e, batch, corun, machine, i, k):
                i += 1
        if i < len(window):
            job = window[i]
            if k > 0:
                beside = corun.neighbours[e, k - 1]
    serve(e, table, batch, corun, job, beside)


@jit_part
def is_possible(e, batch, corun, machine, i, k):
    """Return whether waiting job ``i`` can start, beside neighbour ``k`` unless that is 0."""
    if i >= batch.episode_state[e].visible:
        return False
    job = batch.window[e, i]
    if batch.progress[e, job].start >= 0 or not finds_room(machine, job):
        return False
    if k == 0:
        return True
    if machine.tasks[job].placement != PART or k > corun.books[e, N_BESIDE]:
        return False
    return room_beside(machine, corun.neighbours[e, k - 1]) > 0


@jit
def start_by_scores(e, table, batch, corun, machine, scores):
    """Start the possible pair of highest score again and again, while that is above 0.

    Jobs and neighbours are those that were shown. On a machine without a running job one starts in
    any case.
    """
    sim, width = batch.sim[e], corun.neighbours.shape[1] + 1
    listed = min(corun.books[e, N_BESIDE], width - 1)
    time, goes_on = sim.time, True
    while goes_on and sim.asked == AN_ORDER and sim.time == time:
        job, beside, highest = np.int64(-1), np.int64(NOBODY_THERE), -np.inf
        for i in range(batch.episode_state[e].visible):
            for k in range(listed + 1):
                score = scores[i * width + k]
                if score > highest and is_possible(e, batch, corun, machine, i, k):
                    highest = score
                    job = batch.window[e, i]
                    beside = corun.neighbours[e, k - 1] if k > 0 else np.int64(NOBODY_THERE)
        if highest <= 0 and batch.blocks[e, RUNNING].count > 0:
            job = np.int64(-1)
        goes_on = job >= 0
        serve(e, table, batch, corun, job, beside if goes_on else np.int64(NOBODY_THERE))


# --- The terms of rewards -------------------------------------------------------------------------


@jit
def begin_norms(e, table, batch, corun):
    """Set what makes rewards of energy and time: what the jobs would take on full nodes, compact.

    That is the time that their processor seconds need on all processors, or that from the first
    submission to the last if it is longer.
    """
    start, n = batch.episode_state[e].start, batch.episode_state[e].jobs
    ticks, processors = table.settings[0].ticks, table.settings[0].processors
    work = 0.0
    for row in range(start, start + n):
        work += corun.wanted[row] * (table.jobs[row].run / ticks)
    span = (table.jobs[start + n - 1].submit - table.jobs[start].submit) / ticks
    bound = max(work / processors, span)
    batch.norms[e, ENERGY] = -1.0 / max(bound * processors * table.watts[BUSY], 1.0)
    batch.norms[e, ELAPSED] = -1.0 / bound


@jit
def add_terms_of_pairs(e, table, batch, corun):
    """Add waits of jobs that started, slowdowns of jobs that ended, energy and time."""
    episode, terms, sim, progress = (
        batch.episode_state[e],
        batch.terms[e],
        batch.sim[e],
        batch.progress[e],
    )
    machine, ticks = corun_of(corun, e, episode.jobs), table.settings[0].ticks
    for i in range(episode.new):
        job = batch.new[e, i]
        terms[WAIT] += (progress[job].start - table.jobs[episode.start + job].submit) / ticks
    while corun.books[e, N_COUNTED] < sim.ended:
        job = batch.ended[e, corun.books[e, N_COUNTED]]
        corun.books[e, N_COUNTED] += 1
        row = table.jobs[episode.start + job]
        response = (machine.tasks[job].end - row.submit) / ticks
        terms[BSLD] += bounded_slowdown(response, row.run / ticks, np.float64(TAU_S))
    elapsed = (sim.time - episode.last_time) / ticks
    episode.last_time = sim.time
    still = table.still_w[0]
    if len(table.node_watts) == 0:
        still = table.watts[IDLING] * table.settings[0].processors
    terms[ENERGY] += corun.joules[e, 0] + elapsed * still
    corun.joules[e, 0] = 0.0
    terms[ELAPSED] += elapsed


# --- What is to be seen ---------------------------------------------------------------------------


@jit_part
def soon(seconds):
    """Return a time as observations show it."""
    return seconds / (seconds + HOUR)


@jit_part
def unit(speedup):
    """Return a speedup as observations show it, 1 in the middle."""
    return speedup / (speedup + 1.0)


@jit
def show_pairs(e, table, batch, corun, out):
    """Write the observation of environment ``e`` and its mask, and list the neighbours."""
    episode = batch.episode_state[e]
    machine = corun_of(corun, e, episode.jobs)
    listed = corun.neighbours[e]
    total = list_neighbours(machine, batch.progress[e], batch.blocks[e], batch.entries[e], listed)
    corun.books[e, N_BESIDE] = total
    row, window = out.observations[e], batch.window[e]
    for k in range(len(row)):
        row[k] = 0.0
    jobs_at = MACHINE_SIZE
    neighbours_at = jobs_at + len(window) * JOB_SIZE
    pairs_at = neighbours_at + len(listed) * NEIGHBOUR_SIZE
    mask_at = pairs_at + len(window) * len(listed) * PAIR_SIZE
    show_machine(e, table, batch, machine, total, len(listed), row)
    for i in range(episode.visible):
        show_job(e, table, batch, corun, machine, window[i], row, jobs_at + i * JOB_SIZE)
    for k in range(min(total, len(listed))):
        at = neighbours_at + k * NEIGHBOUR_SIZE
        show_neighbour(e, table, batch, machine, listed[k], row, at)
        beside = machine.tasks[listed[k]].code
        for i in range(episode.visible):
            task = machine.tasks[window[i]]
            if task.placement == PART:
                at = pairs_at + (i * len(listed) + k) * PAIR_SIZE
                row[at] = unit(machine.believed[task.code, beside])
                row[at + 1] = unit(machine.believed[beside, task.code])
    show_mask(e, batch, corun, machine, out.masks[e])
    for k in range(out.masks.shape[1]):
        row[mask_at + k] = out.masks[e, k]


@jit
def show_machine(e, table, batch, machine, total, n_listed, row):
    """Write what is known of machine and queue as a whole."""
    episode, sim, n_nodes = batch.episode_state[e], batch.sim[e], len(machine.free)
    waiting, running = sim.next - sim.started, batch.blocks[e, RUNNING].count
    row[0] = machine.scalars[0].n_idle / n_nodes
    row[1] = machine.scalars[0].n_open / n_nodes
    row[2] = sim.free / (n_nodes * machine.who.shape[1])
    row[3] = waiting / (waiting + len(batch.window[e]))
    row[4] = (waiting - episode.visible) / max(waiting, 1)
    row[5] = running / (running + n_listed)
    row[6] = max(total - n_listed, 0) / max(total, 1)
    if episode.visible > 0:
        oldest = table.jobs[episode.start + batch.window[e, 0]].submit
        row[7] = soon((sim.time - oldest) / table.settings[0].ticks)


@jit
def show_job(e, table, batch, corun, machine, job, row, at):
    """Write what is known of a waiting job."""
    episode, sim, task = batch.episode_state[e], batch.sim[e], machine.tasks[job]
    ticks, n_nodes = table.settings[0].ticks, len(machine.free)
    others = sim.next - sim.started - 1
    predicted = batch.progress[e, job].predicted / ticks
    row[at] = task.nodes / n_nodes
    row[at + 1] = soon(predicted)
    row[at + 2] = soon((sim.time - table.jobs[episode.start + job].submit) / ticks)
    row[at + 3] = unit(corun.mean[task.code])
    row[at + 4] = unit(machine.believed_alone[task.code])
    if others > 0:
        friends = machine.friends[task.code] - machine.good[task.code, task.code]
        row[at + 5] = friends / others
    row[at + 6] = np.float64(task.placement == PART)
    row[at + 7] = np.float64(finds_room(machine, job))


@jit
def show_neighbour(e, table, batch, machine, job, row, at):
    """Write what is known of a running job that another can be started beside."""
    task, n_nodes, time = machine.tasks[job], len(machine.free), batch.sim[e].time
    # the work that the scheduler believes is left; what is left is as much less as the run time
    run = table.jobs[batch.episode_state[e].start + job].run
    left = left_at(machine, job, time) + (batch.progress[e, job].predicted - run)
    row[at] = room_beside(machine, job) / n_nodes
    row[at + 1] = task.nodes / n_nodes
    row[at + 2] = soon(max(left, 0.0) / table.settings[0].ticks)
    row[at + 3] = unit(task.rate)
    row[at + 4] = unit(machine.believed_alone[task.code])


@jit
def show_mask(e, batch, corun, machine, mask):
    """Write which actions can be done; waiting only while something runs."""
    width = corun.neighbours.shape[1] + 1
    listed = min(corun.books[e, N_BESIDE], width - 1)
    for i in range(len(batch.window[e])):
        room = i < batch.episode_state[e].visible and finds_room(machine, batch.window[e, i])
        shares = room and machine.tasks[batch.window[e, i]].placement == PART
        mask[i * width] = room
        for k in range(1, width):
            mask[i * width + k] = shares and k <= listed
    mask[len(mask) - 1] = batch.blocks[e, RUNNING].count > 0
