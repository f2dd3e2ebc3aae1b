"""Jobs beyond the window: those that start beside a schedule without making it impossible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp.bounds import hold
from hpcgym.baselines.cp.problem import Problem, Schedule

Ints = NDArray[np.int64]


def beside(
    problem: Problem, schedule: Schedule, started: list[tuple[int, Ints]]
) -> list[tuple[int, Ints]]:
    """Return the jobs beyond the window that start now, each with the node of each unit.

    They are taken in the order of priority. One starts on what is free throughout its expected
    duration, given the expected ends of what runs and the planned starts of the considered jobs.
    Those are taken never to end, which leaves a little less. On pools, the totals have to leave
    room throughout, and the nodes now.

    Parameters
    ----------
    problem : of the pass.
    schedule : of the considered jobs.
    started : those of them that start now, with the node of each unit.
    """
    view = problem.view
    free = view.free.copy()
    for place, nodes in started:
        np.subtract.at(free, nodes, view.per_unit[place])
    times, room = _room(problem, schedule)
    fits = view.fits()
    found: list[tuple[int, Ints]] = []
    for place in problem.rest[fits[problem.rest]].tolist():
        demand, units = view.per_unit[place], int(view.units[place])
        until = int(np.searchsorted(times, max(int(view.duration[place]), 1)))
        least = np.maximum(room[:until].min(axis=0), 0)
        if hold(least, demand).sum() < units:
            continue
        before = [earlier for earlier, _ in started + found]
        for _, nodes in view.placed([place], free if problem.pooled else least, before):
            np.subtract.at(free, nodes, demand)
            spots = np.zeros_like(nodes) if problem.pooled else nodes
            room[:until] -= np.bincount(spots, minlength=room.shape[1])[:, None] * demand
            found.append((place, nodes))
    return found


def _room(problem: Problem, schedule: Schedule) -> tuple[Ints, Ints]:
    """Return now and the planned starts, (t,) [s] from now, and what is free then, (t, n, R).

    Between them more can only become free. On pools n is 1.
    """
    view = problem.view
    node, taken, left = problem.running
    if problem.pooled:
        free, node = view.free.sum(axis=0, keepdims=True), np.zeros_like(node)
        spots = np.zeros(int(problem.units.sum()), np.int64)
    else:
        assert schedule.nodes is not None, "only pools leave nodes open"
        free, spots = view.free, np.concatenate(schedule.nodes)
    times = np.unique(np.append(0, schedule.start))
    change = np.zeros((len(times), *free.shape), np.int64)
    ended = np.searchsorted(times, left)
    seen = ended < len(times)
    np.add.at(change, (ended[seen], node[seen]), taken[seen])
    begun = np.repeat(np.searchsorted(times, schedule.start), problem.units)
    demand = np.repeat(problem.per_unit, problem.units, axis=0)
    np.subtract.at(change, (begun, spots), demand)
    return times, free + np.cumsum(change, axis=0)
