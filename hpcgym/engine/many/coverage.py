"""All weight vectors of a grid on a slice, by few simulations: exact, not sampled.

A schedule depends on weights only where they decide which jobs start. Whether one job comes before
another is a linear inequality of the weights, so that whatever a simulation has decided holds in a
convex cone around its weights: all vectors inside give the same schedule, and need no simulation.
Vectors so close to its surface that rounding could decide are simulated.

What a pass does is decided by less than the order of the whole queue. Say that it starts the jobs
A as heads, is blocked by the head h, and back-fills the jobs B; R is the rest of the queue. The
same jobs start as long as each of A comes before h, and h before each of R. (A job of B may come
before h as well: it then starts as a head, leaves h its shadow time, and takes of free and extra
processors what it takes anyway.) If h would be blocked, and all of A and B and none of R
back-filled, before anything starts, then A need not come before h; and a job of R of which the same
is true may come before h. If all jobs start, nothing matters. Jobs that have waited for longer than
the threshold come first whatever the weights.

The directions of three weights are the surface of a cube, cut into tiles. On a tile the largest
weight is +1 or -1, and a cone is a convex polygon of the other two. A constraint that all corners
of the polygon satisfy says nothing new; any other cuts a piece off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_entry, jit_part
from hpcgym.engine.many.search import begin_slice, measure, run_slice
from hpcgym.engine.ordered import BLOCK, block_at
from hpcgym.engine.orders.mixing import BY_WAIT
from hpcgym.engine.state import ALL_PASSES, AN_ORDER, BACKFILLED, FOREVER, NOBODY, QUEUE, RUNNING

MARGIN = 1e-9  # of what scores are made of: a lead below it is left to rounding
CORNERS = 64  # room for those of a polygon; one with as many is not cut any more


class Sphere(NamedTuple):
    """The vectors, tile after tile."""

    weights: NDArray[np.float64]  # (n_vectors, 3) divided by ||w||_1
    places: NDArray[np.float64]  # (n_vectors, 3) the same, on the surface of the cube
    first: NDArray[np.int64]  # (n_tiles + 1,) the first vector of each tile
    corners: NDArray[np.float64]  # (n_tiles, 4, 3) of the tile, on the surface of the cube


class Notes(NamedTuple):
    """What a worker notes, a row for each worker."""

    queued: NDArray[np.int64]  # (n_workers, longest) jobs, before a pass
    behind: NDArray[np.int64]  # (n_workers, longest) of these, h and R
    left: NDArray[np.int64]  # (n_workers, most of a tile) vectors that may have the same schedule
    corners: NDArray[np.float64]  # (n_workers, CORNERS, 3) of the polygon, on the cube
    cut: NDArray[np.float64]  # (n_workers, CORNERS, 3) of the polygon that it is becoming
    counts: NDArray[np.int64]  # (n_workers, 2) corners, vectors left


@jit
def cover_tile(worker, tile, s, table, workers, notes, sphere, metric, settings, values):
    """Write the metric under each vector of a tile; return the number of simulations."""
    jobs = table.jobs[table.slices[s, 0] : table.slices[s, 1]]
    simulations = 0
    for vector in range(sphere.first[tile], sphere.first[tile + 1]):
        if not np.isnan(values[vector]):
            continue
        begin_notes(worker, tile, vector, notes, sphere, values)
        begin_slice(worker, table, workers, None, None, sphere.weights[vector], 1.0, s)
        simulate_vector(worker, s, table, workers, notes, sphere)
        progress, begin = workers.progress[worker], jobs[0].submit
        value = measure(metric, jobs, progress, 0.0, begin, settings[0], settings[1])
        simulations += 1
        values[vector] = value
        for i in range(notes.counts[worker, 1]):
            values[notes.left[worker, i]] = value
    return simulations


@jit
def begin_notes(worker, tile, vector, notes, sphere, values):
    """Let the polygon be the whole tile, and all later vectors of it without a value be left."""
    for i in range(4):
        for k in range(3):
            notes.corners[worker, i, k] = sphere.corners[tile, i, k]
    left = 0
    for other in range(vector + 1, sphere.first[tile + 1]):
        if np.isnan(values[other]):
            notes.left[worker, left] = other
            left += 1
    notes.counts[worker, 0], notes.counts[worker, 1] = 4, left


@jit
def simulate_vector(worker, s, table, workers, notes, sphere):
    """Simulate a slice, and cut off the polygon and the vectors where the schedule is another."""
    sim = workers.sim[worker]
    queued, free, at_once = 0, np.int64(0), np.int64(1)
    while True:
        if notes.counts[worker, 1] == 0:
            # no vector is left: nothing more to find out
            sim.asks = NOBODY
            queued, at_once = 0, np.int64(ALL_PASSES)
        passes = run_slice(worker, table, workers, None, None, s, at_once)
        if sim.asked == AN_ORDER:
            queued, free = note_queue(worker, workers, notes), sim.free
        elif passes < at_once:
            return
        elif queued > 0:
            judge_pass(worker, s, table, workers, notes, sphere, queued, free)
            queued = 0


@jit
def note_queue(worker, workers, notes):
    """Note the queued jobs; return how many there are."""
    blocks, entries = workers.blocks[worker], workers.entries[worker]
    queued = 0
    for k in range(blocks[QUEUE].in_use):
        block = block_at(blocks, QUEUE, k)
        for e in range(block * BLOCK, block * BLOCK + blocks[block].count):
            notes.queued[worker, queued] = entries[e].job
            queued += 1
    return queued


@jit
def judge_pass(worker, s, table, workers, notes, sphere, queued, free):
    """Cut off where the pass that has just been, with the queue noted, would do something else.

    ``free`` processors there were before it.
    """
    sim, progress, names = workers.sim[worker], workers.progress[worker], notes.queued[worker]
    head, threshold, time = sim.head, sim.threshold, sim.time
    jobs = table.jobs[table.slices[s, 0] : table.slices[s, 1]]
    if head < 0 or 0 <= threshold < time - jobs[head].submit:
        return
    heads = 0  # how many are in A: they are put first
    behind = 0  # how many are h and R
    loose = True
    for i in range(queued):
        job = names[i]
        overdue = 0 <= threshold < time - jobs[job].submit
        if overdue:
            loose = False
        if progress[job].start < 0:
            notes.behind[worker, behind] = job
            behind += 1
        elif (progress[job].marks // BACKFILLED) % 2 == 0 and not overdue:
            names[i], names[heads] = names[heads], names[i]
            heads += 1
    loose = loose and fills_behind(worker, workers, notes, jobs, behind, free, head)
    for i in range(0 if loose else heads):
        if cuts(worker, s, table, notes, time, names[i], head):
            cut_off(worker, s, table, notes, sphere, time, names[i], head)
    for k in range(behind):
        job = notes.behind[worker, k]
        if job == head or not cuts(worker, s, table, notes, time, head, job):
            continue
        if not (loose and fills_behind(worker, workers, notes, jobs, behind, free, job)):
            cut_off(worker, s, table, notes, sphere, time, head, job)


@jit
def fills_behind(worker, workers, notes, jobs, behind, free, head):
    """Return whether all jobs that the pass started would have been back-filled behind this one.

    And no other. ``free`` processors there were before the pass.
    """
    sim, progress = workers.sim[worker], workers.progress[worker]
    blocks, entries = workers.blocks[worker], workers.entries[worker]
    if jobs[head].processors <= free:
        return False
    if sim.depth == 0:
        return sim.free == free
    missing, shadow = jobs[head].processors - free, np.int64(FOREVER)
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for e in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[e].key <= shadow and progress[entries[e].job].start < sim.time:
                missing -= entries[e].width
                if missing <= 0:
                    shadow = entries[e].key
    extra = -missing
    for k in range(behind):
        job = notes.behind[worker, k]
        width, late = jobs[job].processors, sim.time + progress[job].predicted > shadow
        if job != head and width <= free and (width <= extra or not late):
            return False
    for k in range(blocks[RUNNING].in_use):
        block = block_at(blocks, RUNNING, k)
        for e in range(block * BLOCK, block * BLOCK + blocks[block].count):
            if entries[e].key > shadow and progress[entries[e].job].start == sim.time:
                extra -= entries[e].width
    return extra >= 0


@jit
def lead(s, table, time, one, two):
    """Return what job ``one`` has more of each feature than ``two``, and how much is too little.

    The sum of the weights times the first three must be at least the fourth.
    """
    x, y, z, size = 0.0, 0.0, 0.0, 0.0
    row_one, row_two = table.slices[s, 0] + one, table.slices[s, 0] + two
    for f in range(3):
        a, b = table.static[row_one, f], table.static[row_two, f]
        if table.waiting[f] == BY_WAIT:
            a = np.float64(time - table.jobs[row_one].submit)
            b = np.float64(time - table.jobs[row_two].submit)
        size += abs(a) + abs(b)
        if table.places[f] == 0:
            x = a - b
        elif table.places[f] == 1:
            y = a - b
        else:
            z = a - b
    return x, y, z, MARGIN * size


@jit
def cuts(worker, s, table, notes, time, one, two):
    """Return whether there are weights in the polygon with which ``two`` may be before ``one``."""
    x, y, z, least = lead(s, table, time, one, two)
    if x == 0 and y == 0 and z == 0:
        return False  # no weights tell the two apart
    for i in range(notes.counts[worker, 0]):
        if value_at(notes.corners[worker, i], x, y, z) < least:
            return True
    return False


@jit_part
def value_at(place, x, y, z):
    """Return the sum of the weights times these."""
    return place[0] * x + place[1] * y + place[2] * z


@jit
def cut_off(worker, s, table, notes, sphere, time, one, two):
    """Cut off the piece of the polygon, and the vectors, with which ``two`` may come first."""
    x, y, z, least = lead(s, table, time, one, two)
    left, counts = notes.left[worker], notes.counts[worker]
    kept = 0
    for i in range(counts[1]):
        if value_at(sphere.places[left[i]], x, y, z) >= least:
            left[kept] = left[i]
            kept += 1
    counts[1] = kept
    if counts[0] >= CORNERS - 1:
        return
    corners, cut = notes.corners[worker], notes.cut[worker]
    n, last = 0, counts[0] - 1
    before = value_at(corners[last], x, y, z) - least
    for i in range(counts[0]):
        here = value_at(corners[i], x, y, z) - least
        if (here < 0) != (before < 0):
            share = before / (before - here)
            for k in range(3):
                cut[n, k] = corners[last, k] + share * (corners[i, k] - corners[last, k])
            n += 1
        if here >= 0:
            for k in range(3):
                cut[n, k] = corners[i, k]
            n += 1
        last, before = i, here
    for i in range(n):
        for k in range(3):
            corners[i, k] = cut[i, k]
    counts[0] = n
    if n < 3:
        counts[1] = 0  # a polygon that rounding has made nothing of


@jit_entry
def cover_share(
    worker, n_workers, first, stop, s, table, workers, notes, sphere, metric, settings, values,
    counts,
):  # fmt: skip
    """Cover every ``n_workers``-th tile from ``first`` to ``stop`` (exclusive).

    Parameters
    ----------
    worker, n_workers : who does this share of them, and how many share.
    s : the slice.
    table, workers, settings : see :func:`hpcgym.engine.many.search.search_share`; ``table.sim``
        has passes after all events of a second, and asks before each. The features are three,
        "wait" or such as do not change with waiting.
    metric : a code of hpcgym.engine.many.search.
    values : (n_vectors,) float64, written where it is NaN.
    counts : (n_tiles,) int64, written: simulations that were needed.
    """
    for tile in range(first + worker, stop, n_workers):
        counts[tile] = cover_tile(
            worker, tile, s, table, workers, notes, sphere, metric, settings, values
        )
