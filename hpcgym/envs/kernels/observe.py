"""What is to be seen of a simulation, written into one flat row of float32; compiled.

A row is what `hpcgym.envs.observation` describes field by field. A time t becomes t / (t + 1 h).
Nothing here reads an actual run time, an actual end or a job that has not been submitted.
"""

from __future__ import annotations

import math

import numpy as np

from hpcgym.compilation import jit_inline, jit_part
from hpcgym.engine.events import free_processors
from hpcgym.engine.holding import needed
from hpcgym.engine.machines.nodes.rows import fits_now
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import RUNNING

HOUR = 3600.0  # [s]
#: [s] from now: when the share of free processors is looked at
HORIZONS = np.array([60, 600, 3600, 14_400, 43_200, 86_400, 259_200, 604_800], np.int64)
N_HORIZONS = len(HORIZONS)
CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE = 1 + N_HORIZONS + 1, 6, 4
ON_AT = CLUSTER_SIZE - 1  # where the share of what is free and on stands
QUEUE_AT = CLUSTER_SIZE
TIME_AT = QUEUE_AT + QUEUE_SIZE
JOBS_AT = TIME_AT + TIME_SIZE

# -- the features of a visible job: codes of columns; users' own follow ----------------------------
WAIT, REQUESTED, PREDICTED, PROCESSORS, AREA, EXPANSION, FITS, LEAVES = range(8)
POLICY_TIME, WITHIN_QUOTA, OWN = range(8, 11)

DAY, WEEK = 86_400, 604_800  # [s]


@jit_inline
def observe(nodes, sim, progress, blocks, entries, line, idle, window, visible, queued,
            ordered_by, jobs, columns, codes, clock, processors, out):  # fmt: skip
    """Write a row, but what stands behind the mask.

    Parameters
    ----------
    nodes : the nodes of the simulation, None on a pool of processors.
    sim, progress, blocks, entries, line, idle : the state of the simulation.
    window, visible : the visible jobs, and how many they are.
    queued : how many jobs wait.
    ordered_by : (n_jobs,) [s] run times that policies look at.
    jobs, columns : of the episode: the jobs, and users' own columns.
    codes : (n_columns,) what each column of the window shows.
    clock : [s] time of the week at the trace's time 0.
    processors : of the machine.
    out : the row.
    """
    free = observe_cluster(sim, blocks, entries, idle, processors, out)
    observe_queue(nodes, sim, line, window, visible, queued, jobs, processors, free, out)
    seconds = sim.time + clock
    day, week = (seconds % DAY) / DAY, (seconds % WEEK) / WEEK
    out[TIME_AT] = math.sin(2 * math.pi * day)
    out[TIME_AT + 1] = math.cos(2 * math.pi * day)
    out[TIME_AT + 2] = math.sin(2 * math.pi * week)
    out[TIME_AT + 3] = math.cos(2 * math.pi * week)
    observe_jobs(
        nodes, sim, progress, line, window, visible, ordered_by, jobs, columns, codes, processors,
        free, out,
    )  # fmt: skip
    mask_at = JOBS_AT + len(window) * len(codes)
    # slices: LLVM makes slow scatters of loops whose index could be negative for all it knows
    out[JOBS_AT + visible * len(codes) : mask_at] = 0.0
    out[mask_at : mask_at + visible] = 1.0
    out[mask_at + visible : mask_at + len(window)] = 0.0


@jit_part
def observe_cluster(sim, blocks, entries, idle, processors, out):
    """Write the free share now and at each horizon, by predicted ends, and the share that is on.

    Return the processors that are free now, with those of jobs that are predicted to end now, as a
    pass at a single event counts them.
    """
    free = free_processors(sim, blocks, entries)
    now_free = free
    share = np.float32(1.0 / processors)
    out[0] = free * share
    h = 0
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            ahead = entries[i].key - sim.time
            if ahead <= 0:
                continue
            while h < N_HORIZONS and ahead > HORIZONS[h]:
                out[1 + h] = free * share
                h += 1
            free += entries[i].width
    while h < N_HORIZONS:
        out[1 + h] = free * share
        h += 1
    ready = now_free
    for group in range(sim.groups):
        if idle[group].off_at < sim.time:
            ready -= idle[group].width
    out[ON_AT] = ready * share
    return now_free


@jit_part
def observe_queue(nodes, sim, line, window, visible, queued, jobs, processors, free, out):
    """Write what is known of the queue as a whole."""
    width, area, oldest, fitting = 0, 0.0, 0, 0
    for i in range(visible):
        row = jobs[window[i]]
        width += row.processors
        area += np.float64(row.processors) * np.float64(row.requested)
        oldest = max(oldest, sim.time - row.submit)
        fitting += fits_now(nodes, window[i], needed(sim, jobs, line, window[i]), free)
    out[QUEUE_AT] = queued / (queued + len(window))
    out[QUEUE_AT + 1] = (queued - visible) / max(queued, 1)
    out[QUEUE_AT + 2] = width / (width + processors)
    out[QUEUE_AT + 3] = area / (area + HOUR * processors)
    out[QUEUE_AT + 4] = oldest / (oldest + HOUR)
    out[QUEUE_AT + 5] = fitting / max(visible, 1)


@jit_part
def observe_jobs(
    nodes, sim, progress, line, window, visible, ordered_by, jobs, columns, codes, processors, free,
    out,
):  # fmt: skip
    """Write the features of the visible jobs."""
    width = len(codes)
    for i in range(visible):
        job = window[i]
        row = jobs[job]
        wait = np.float32(sim.time - row.submit)
        requested = np.float32(row.requested)
        base = JOBS_AT + i * width
        for k in range(width):
            code = codes[k]
            if code == WAIT:
                value = wait / (wait + np.float32(HOUR))
            elif code == REQUESTED:
                value = requested / (requested + np.float32(HOUR))
            elif code == PREDICTED:
                predicted = np.float32(progress[job].predicted)
                value = predicted / (predicted + np.float32(HOUR))
            elif code == POLICY_TIME:
                predicted = np.float32(ordered_by[job])
                value = predicted / (predicted + np.float32(HOUR))
            elif code == PROCESSORS:
                value = np.float32(row.processors / processors)
            elif code == AREA:
                area = requested * np.float32(row.processors)
                value = area / (area + np.float32(HOUR) * np.float32(processors))
            elif code == EXPANSION:
                value = wait / (wait + requested)
            elif code == FITS:
                value = np.float32(fits_now(nodes, job, needed(sim, jobs, line, job), free))
            elif code == LEAVES:
                value = np.float32(max(free - row.processors, 0) / processors)
            elif code == WITHIN_QUOTA:
                value = np.float32(1.0)  # where there are quotas, `show_quotas` mends it
            else:
                value = columns[job, code - OWN]
            out[base + k] = value
