"""List scheduling over nodes, for dispatchers: what starts if jobs are taken in a given order.

Algorithm 1 of Remediani 2017: at each time all jobs that fit start, in that order; those that do
not are passed over.
"""

from __future__ import annotations

from hpcgym.compilation import jit_entry, jit_part
from hpcgym.engine.machines.nodes.placement import find_nodes, fits, give_back, take
from hpcgym.engine.state import FOREVER


@jit_entry
def what_fits(nodes, alone):
    """Note for each of the jobs ``alone`` (n,) describes whether it fits now."""
    for job in range(len(alone)):
        alone[job] = fits(nodes, job)


@jit_part
def start_in_order(nodes, order, times, time):
    """Start at ``time`` all jobs of ``order`` that fit and have not started; return how many."""
    started = 0
    for i in range(len(order)):
        job = order[i]
        if times[job] < 0 and fits(nodes, job) and find_nodes(nodes, job, False):
            take(nodes, job)
            times[job] = time
            started += 1
    return started


@jit_entry
def start_now(nodes, order, times, time):
    """Start at ``time`` all jobs of ``order`` that fit: ``times`` (n,) [s], before them -1."""
    return start_in_order(nodes, order, times, time)


@jit_entry
def start_all(nodes, order, duration, times, until, time):
    """Start all jobs of ``order``, the first at ``time`` [s]; return whether all have started.

    ``duration`` (n,) [s] of the jobs, ``times`` (n,) [s] their starts, before them -1. ``until``
    (n + running,) [s] is when jobs give their nodes back, FOREVER for those that have not started.
    """
    missing = len(order)
    while True:
        missing -= start_in_order(nodes, order, times, time)
        if missing == 0:
            return True
        next_time = FOREVER
        for job in range(len(until)):
            if job < len(times) and times[job] == time:
                until[job] = time + duration[job]
            next_time = min(next_time, until[job])
        if next_time == FOREVER:
            return False
        time = next_time
        for job in range(len(until)):
            if until[job] == time:
                give_back(nodes, job)
                until[job] = FOREVER
