"""Queue orders that change as jobs wait: the job of highest score at this time.

A score is ``score + x`` or, for CUBED orders, ``score * x**3``, with x = waiting time / patience.
The queue is not kept in such an order: it is searched. Of each block of the queue the extremes of
what scores are made of give a bound, and only blocks whose bound reaches the best score so far are
looked into. The blocked head of the last pass is the first guess.
"""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.engine.holding import needed
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.state import CUBED, QUEUE


@jit_part
def score_now(order, score, patience, waiting):
    """Return the score of a job that has waited that long."""
    x = waiting / patience
    return score * (x * x * x) if order == CUBED else score + x


@jit_part
def best_scored(sim, jobs, scores, progress, blocks, entries):
    """Return the queued job of highest score, the first submitted of equals."""
    best = np.int64(-1)
    highest = -np.inf
    head = sim.head
    if head >= 0 and progress[head].start < 0:
        best = head
        waiting = sim.time - jobs[head].submit
        highest = score_now(sim.primary, scores[head].score, scores[head].patience, waiting)
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        # a bound that is no number says nothing
        if blocks[block].greatest_gain == np.inf or not bound(sim, blocks, block) < highest:
            best, highest = best_in_block(sim, jobs, scores, blocks, entries, block, best, highest)
    return best


@jit_part
def bound(sim, blocks, block):
    """Return a number that no primary score in a block exceeds; its extremes must be known."""
    gain = blocks[block].greatest_gain
    submit = blocks[block].first_submit if gain >= 0 else blocks[block].last_submit
    x = (sim.time - submit) * gain
    score = blocks[block].greatest_score
    limit = score * (x * x * x) if sim.primary == CUBED else score + x
    # gains are rounded, and scores divide where this multiplies
    return limit + abs(limit) * 1e-9 + abs(x) * 1e-9


@jit_part
def best_in_block(sim, jobs, scores, blocks, entries, block, best, highest):
    """Return the best job so far, with those of one block, and make its extremes anew."""
    first_submit, last_submit = np.int64(2**62), np.int64(0)
    greatest_score, greatest_gain = -np.inf, -np.inf
    for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
        job = entries[i].job
        submit, base, patience = jobs[job].submit, scores[job].score, scores[job].patience
        score = score_now(sim.primary, base, patience, sim.time - submit)
        if score > highest or (score == highest and job < best) or best < 0:
            highest = score
            best = job
        first_submit = min(first_submit, submit)
        last_submit = max(last_submit, submit)
        greatest_score = max(greatest_score, base)
        greatest_gain = max(greatest_gain, 1.0 / patience)
    blocks[block].first_submit = first_submit
    blocks[block].last_submit = last_submit
    blocks[block].greatest_score = greatest_score
    blocks[block].greatest_gain = greatest_gain
    return best, highest


@jit_part
def widen(jobs, scores, blocks, block, job):
    """Let the extremes of a block hold for a job that has been put there."""
    blocks[block].first_submit = min(blocks[block].first_submit, jobs[job].submit)
    blocks[block].last_submit = max(blocks[block].last_submit, jobs[job].submit)
    blocks[block].greatest_score = max(blocks[block].greatest_score, scores[job].score)
    blocks[block].greatest_gain = max(blocks[block].greatest_gain, 1.0 / scores[job].patience)


@jit
def best_to_backfill(sim, jobs, line, scores, blocks, entries, leaving):
    """Return the job of highest secondary score among those that may start, -1 if none."""
    free, extra, window = sim.free + leaving, sim.extra, sim.shadow - sim.strict - sim.time
    best = np.int64(-1)
    highest = -np.inf
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        width, span = blocks[block].least_width, blocks[block].least_span
        if width > free or (width > extra and span > window):
            continue
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job, width, span = entries[i].job, entries[i].width, entries[i].span
            if job == sim.head or width > free or (width > extra and span > window):
                continue
            if sim.holds > 0 and needed(sim, jobs, line, job) > free:
                continue
            waiting = sim.time - jobs[job].submit
            second = scores[len(jobs) + job]
            score = score_now(sim.secondary, second.score, second.patience, waiting)
            if score > highest or (score == highest and job < best) or best < 0:
                highest = score
                best = job
    return best


@jit_part
def forget_bounds(blocks):
    """Let no bound of the scores of queued jobs hold any longer."""
    for k in range(blocks[QUEUE].in_use):
        blocks[block_at(blocks, QUEUE, k)].greatest_gain = np.inf


@jit_entry
def take_scores(scores, blocks, queued, values):
    """Give queued jobs, (q,), the primary scores of this pass, which come from outside, (q,)."""
    for i in range(len(queued)):
        scores[queued[i]].score = values[i]
    forget_bounds(blocks)
