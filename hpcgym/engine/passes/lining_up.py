"""The queue in primary order, written into one array."""

from __future__ import annotations

import numpy as np

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.orders.scores import score_now
from hpcgym.engine.state import KEYED, PREDICTION, PRIMARY_QUEUE, QUEUE, SCORED, SELECTION


@jit
def line_up(sim, jobs, scores, blocks, entries, line, most):
    """Write the queued jobs to ``line`` in primary order, or the first; return how many.

    ``most``: of how many the caller has need. There may be more. Where an agent selects jobs, it is
    the one that was selected.
    """
    if sim.primary == SELECTION:
        line[0].job = sim.selected
        return 1
    starved = 0
    if sim.threshold >= 0 or sim.primary >= SCORED:
        starved = line_up_starved(sim, jobs, blocks, entries, line)
    which = PRIMARY_QUEUE if sim.primary == KEYED else QUEUE
    sorts = sim.primary >= SCORED or (which == QUEUE and not listed_by_submission(sim))
    count = starved
    for k in range(blocks[which].in_use):
        block = block_at(blocks, which, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if count >= most and not sorts:
                return count
            job = entries[i].job
            if starved > 0 and sim.time - jobs[job].submit > sim.threshold:
                continue
            line[count].job, line[count].score = job, 0.0
            if sim.primary >= SCORED:
                waiting = sim.time - jobs[job].submit
                line[count].score = score_now(
                    sim.primary, scores[job].score, scores[job].patience, waiting
                )
            count += 1
    if sorts:
        sort_line(line, starved, count)
    return count


@jit_part
def listed_by_submission(sim):
    """Return whether the queue is listed by submission; where scores order it, it is."""
    return sim.secondary != PREDICTION and sim.secondary != KEYED


@jit
def line_up_starved(sim, jobs, blocks, entries, line):
    """Write the jobs that have waited longer than the threshold to ``line``, oldest first."""
    count, by_submission = 0, listed_by_submission(sim)
    if sim.threshold < 0:
        return count
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for i in range(block * BLOCK, block * BLOCK + blocks[block].count):
            job = entries[i].job
            if sim.time - jobs[job].submit > sim.threshold:
                line[count].job, line[count].score = job, 0.0
                count += 1
            elif by_submission:
                return count
    if not by_submission:
        sort_line(line, np.int64(0), count)
    return count


@jit
def sort_line(line, start, end):
    """Sort a part of ``line`` by score, highest first, equals by job (heap sort, in place)."""
    size = end - start
    for root in range(size // 2 - 1, -1, -1):
        sift_down(line, start, root, size)
    for last in range(size - 1, 0, -1):
        job, score = line[start].job, line[start].score
        line[start].job, line[start].score = line[start + last].job, line[start + last].score
        line[start + last].job, line[start + last].score = job, score
        sift_down(line, start, np.int64(0), last)


@jit
def sift_down(line, start, root, size):
    """Let the entry at ``root`` of a heap, last in order on top, sink to its place."""
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and comes_later(line, start + child + 1, start + child):
            child += 1
        if not comes_later(line, start + child, start + root):
            return
        a, b = start + root, start + child
        job, score = line[a].job, line[a].score
        line[a].job, line[a].score = line[b].job, line[b].score
        line[b].job, line[b].score = job, score
        root = child


@jit_part
def comes_later(line, a, b):
    """Return whether entry ``a`` comes after entry ``b`` in order."""
    if line[a].score != line[b].score:
        return line[a].score < line[b].score
    return line[a].job > line[b].job
