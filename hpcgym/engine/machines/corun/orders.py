"""Orders of the queue that depend on what the machine and the queue are like at a pass.

A score is the sum of three features, weighed; the highest is first, of equals the one submitted
first. ELiSE names the co-schedulers that serve by them, not the formulas:

- *fit*: nodes that a job needs, over those that have room for it; -1 if these are too few;
- *popularity*: other waiting jobs with which it would gain, over all others;
- *shortness*: the shortest requested time of all that wait, over its own.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.machines.corun.nodes import nodes_with_room, was_refused
from hpcgym.engine.machines.corun.state import FIT, FREELY, POPULARITY, SHORTNESS
from hpcgym.engine.ordered import BLOCK, NOTHING, block_at
from hpcgym.engine.state import QUEUE


@jit
def count_waiting(machine, code, change):
    """Note that a job of this code waits, or no longer where ``change`` is -1."""
    for other in range(len(machine.friends)):
        machine.friends[other] += change * machine.good[other, code]


@jit
def best_waiting(machine, jobs, blocks, entries, n_waiting, free, left_out):
    """Return the waiting job of highest score but ``left_out``; -1 if there is none.

    With ``free`` parts, only of those that may find room there; below 0, of all.
    """
    shortest = NOTHING
    if machine.weights[SHORTNESS] != 0:
        shortest = shortest_requested(jobs, blocks, entries)
    best, highest = -1, -np.inf
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        if 0 <= free < blocks[block].least_width:
            continue
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            if job == left_out or 0 <= free < entries[i].width:
                continue
            if free >= 0 and was_refused(machine, job, FREELY):
                continue
            score = score_of(machine, jobs, n_waiting, shortest, job)
            if score > highest or (score == highest and job < best):
                best, highest = job, score
    return best


@jit_part
def score_of(machine, jobs, n_waiting, shortest, job):
    """Return the score of a waiting job."""
    weights, task = machine.weights, machine.tasks[job]
    score = 0.0
    if weights[FIT] != 0:
        room = nodes_with_room(machine, job)
        score += weights[FIT] * (task.nodes / room if task.nodes <= room else -1.0)
    if weights[POPULARITY] != 0 and n_waiting > 1:
        friends = machine.friends[task.code] - machine.good[task.code, task.code]
        score += weights[POPULARITY] * (friends / (n_waiting - 1))
    if weights[SHORTNESS] != 0:
        score += weights[SHORTNESS] * (shortest / jobs[job].requested)
    return score


@jit
def shortest_requested(jobs, blocks, entries):
    """Return the shortest requested time of all waiting jobs [ticks]."""
    shortest = NOTHING
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            shortest = min(shortest, jobs[entries[i].job].requested)
    return shortest
