"""Jobs that wait again: their runs end before they are over, are put on record, and begin anew.

A log of such runs belongs to a machine: a tuple with ``lost``, ``cells`` and ``scalars``, of which
the last has the fields of :data:`LOG`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.events import enqueue, listing_key
from hpcgym.engine.ordered import BLOCK, block_at, find, remove, summarise
from hpcgym.engine.state import KEYED, PREDICTION, PRIMARY_QUEUE, QUEUE, RUNNING
from hpcgym.schedule.records import records

LOST = records(  # a run that ended before it was over
    ("job", np.int64),
    ("start", np.int64),  # [s]
    ("end", np.int64),  # [s]
    ("first", np.int64),  # its first cell; the last is before that of the next
)
LOG = (
    "lost",  # runs in `lost`
    "cells",  # cells in `cells`
    "most",  # runs, and cells, that can be lost at one time
    "full",  # 1 if `lost` and `cells` have to be made longer first
)


def lengthened(machine: Any) -> Any:
    """Return the machine with room for twice as many lost runs."""
    machine.scalars[0].full = 0
    logs = (machine.lost, machine.cells)
    lost, cells = (np.concatenate([log, np.empty_like(log)]) for log in logs)
    return machine._replace(lost=lost, cells=cells)


@jit_part
def log_is_full(machine):
    """Return whether the log must be made longer before the next pass, and note it."""
    own = machine.scalars[0]
    if min(len(machine.lost) - own.lost, len(machine.cells) - own.cells) < own.most:
        own.full = 1
    return own.full == 1


@jit_part
def note_lost(sim, progress, machine, job):
    """Put the run of a job that ends now on record, but for its cells."""
    own = machine.scalars[0]
    note = machine.lost[own.lost]
    note.job = job
    note.start = progress[job].start
    note.end = sim.time
    note.first = own.cells
    own.lost += 1


@jit_part
def note_cells(machine, nodes, job):
    """Put the cells of the run that was noted last on record."""
    own = machine.scalars[0]
    first = nodes.held[job].first
    for c in range(first, first + nodes.held[job].count):
        machine.cells[own.cells] = nodes.cells[c]
        own.cells += 1


@jit
def where_running(blocks, entries, job):
    """Return where a job stands in the list of what runs."""
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[i].job == job:
                return k, block, i
    return -1, -1, -1


@jit_part
def take_off(blocks, entries, position, block, i):
    """Take an entry off the list of what runs."""
    remove(blocks, entries, RUNNING, position, block, i)
    summarise(blocks, entries, block)  # the least end of running jobs must be exact


@jit_part
def wait_again(sim, jobs, keys, scores, progress, blocks, entries, narrow, job):
    """Put a job that no longer runs into the queue, as if it had never started."""
    progress[job].start = -1
    progress[job].marks = 0
    sim.oldest = min(sim.oldest, job)
    enqueue_again(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)


@jit_part
def enqueue_again(sim, jobs, progress, keys, scores, blocks, entries, narrow, job):
    """Put a job into the queue before those of the same key that were submitted later."""
    enqueue(sim, jobs, progress, keys, scores, blocks, entries, narrow, job)
    if sim.secondary == KEYED or sim.secondary == PREDICTION:
        key = listing_key(sim, jobs, progress, keys, job)
        bring_forward(jobs, blocks, entries, QUEUE, key, job)
    if sim.primary == KEYED:
        bring_forward(jobs, blocks, entries, PRIMARY_QUEUE, keys[job], job)


@jit_part
def came_before(jobs, a, b):
    """Return whether one job was submitted before another; of one time, the first in the log."""
    if jobs[a].submit != jobs[b].submit:
        return jobs[a].submit < jobs[b].submit
    return a < b


@jit
def bring_forward(jobs, blocks, entries, which, key, job):
    """Move a listed job before those of the same key that were submitted later."""
    position, block, i = find(blocks, entries, which, key, job)
    while True:
        before, other, j = position, block, i - 1
        if i == block * BLOCK:
            if position == 0:
                return
            before = position - 1
            other = block_at(blocks, which, before)
            j = other * BLOCK + blocks[other].count - 1
        if entries[j].key < key or came_before(jobs, entries[j].job, job):
            return
        span, width = entries[i].span, entries[i].width
        entries[i].job, entries[i].span = entries[j].job, entries[j].span
        entries[i].width = entries[j].width
        entries[j].job, entries[j].span, entries[j].width = job, span, width
        if other != block:
            summarise(blocks, entries, block)
            summarise(blocks, entries, other)
        position, block, i = before, other, j
