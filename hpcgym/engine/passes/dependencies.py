"""Submissions that the schedule itself makes: of jobs that come when others have ended.

Some follow others, and are due once these have ended. Some would be one too many under a quota of
submitted jobs, and wait outside the queue until others of theirs have ended.

All jobs come from here then, others at the times of the log; for the loop of events they have all
been submitted before it begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit, jit_part
from hpcgym.engine.state import FOREVER
from hpcgym.schedule.records import records, whole_numbers

COMING = records(("time", np.int64), ("job", np.int64))  # [s] when a job is due
SCALARS = whole_numbers(
    "coming",  # jobs in `coming`
    "followed",  # how many of the jobs that have ended have let those come that follow them
    "outside",  # jobs in `outside`
    "came",  # jobs that have come
    "lined_up",  # how many of the last of them were not there in the last pass
    "alone",  # 1 if this time has no other reason than jobs that are due
)


class Dependencies(NamedTuple):
    """Which jobs follow which; all are empty where the log says when jobs are submitted."""

    first: NDArray[np.int64]  # (n_jobs + 1,) where those that follow a job begin in `followers`
    followers: NDArray[np.int64]  # (n_pairs,) jobs that follow others, by these
    left: NDArray[np.int64]  # (n_jobs,) how many that a job follows are still to end; it changes
    think: NDArray[np.int64]  # (n_jobs,) [s] from the end of the last other to the submission
    earliest: NDArray[np.int64]  # (n_jobs,) [s] no submission is before
    coming: NDArray[np.void]  # (n_jobs,) COMING, a heap with the first on top
    outside: NDArray[np.int64]  # (n_jobs,) jobs that are due, the first to be so first; or empty
    came: NDArray[np.int64]  # (n_jobs,) how many had come before a job did, -1: it is to come
    by_arrival: NDArray[np.int64]  # (2,) 1 where the primary, or secondary, order is that of coming
    scalars: NDArray[np.void]  # (1,) SCALARS


@jit_part
def next_coming(dependencies):
    """Return when the next job comes, FOREVER if none is to come yet."""
    if dependencies.scalars[0].coming == 0:
        return np.int64(FOREVER)
    return dependencies.coming[0].time


@jit
def follow(dependencies, sim, ended):
    """Let those jobs come, now or later, that wait for none but jobs that have ended now."""
    own = dependencies.scalars[0]
    while len(dependencies.first) > 0 and own.followed < sim.ended:
        other = ended[own.followed]
        own.followed += 1
        for place in range(dependencies.first[other], dependencies.first[other + 1]):
            job = dependencies.followers[place]
            dependencies.left[job] -= 1
            if dependencies.left[job] == 0:
                time = max(dependencies.earliest[job], sim.time + dependencies.think[job])
                push(dependencies.coming, own.coming, time, job)
                own.coming += 1


@jit_part
def may_come(dependencies, sim):
    """Return whether jobs may come now, as far as can be told before the pass."""
    own = dependencies.scalars[0]
    if len(dependencies.outside) == 0:
        return False
    if own.outside > 0 or next_coming(dependencies) <= sim.time:
        return True
    return len(dependencies.first) > 0 and own.followed < sim.ended


@jit_part
def line_up_due(dependencies, sim, ended):
    """Put the jobs that are due by now behind those that wait outside."""
    follow(dependencies, sim, ended)
    own = dependencies.scalars[0]
    while next_coming(dependencies) <= sim.time:
        dependencies.outside[own.outside] = pop(dependencies)
        own.outside += 1
        own.lined_up += 1


@jit_part
def comes_before(heap, a, b):
    """Return whether entry ``a`` comes before entry ``b``; of one time, the first in the log."""
    if heap[a].time != heap[b].time:
        return heap[a].time < heap[b].time
    return heap[a].job < heap[b].job


@jit_part
def swap(heap, a, b):
    """Let two entries change places."""
    time, job = heap[a].time, heap[a].job
    heap[a].time, heap[a].job = heap[b].time, heap[b].job
    heap[b].time, heap[b].job = time, job


@jit_part
def push(heap, size, time, job):
    """Put a job into a heap of so many."""
    heap[size].time, heap[size].job = time, job
    i = size
    while i > 0 and comes_before(heap, i, (i - 1) // 2):
        swap(heap, i, (i - 1) // 2)
        i = (i - 1) // 2


@jit
def pop(dependencies):
    """Take the job off that comes next, and return it."""
    own, heap = dependencies.scalars[0], dependencies.coming
    job = heap[0].job
    own.coming -= 1
    swap(heap, 0, own.coming)
    i = 0
    while 2 * i + 1 < own.coming:
        child = 2 * i + 1
        if child + 1 < own.coming and comes_before(heap, child + 1, child):
            child += 1
        if comes_before(heap, i, child):
            break
        swap(heap, i, child)
        i = child
    return job
