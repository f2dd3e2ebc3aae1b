"""What can be proved of jobs on nodes, for :mod:`hpcgym.validation.validate`.

An allocation is cells: so many units of a job on a node. N nodes, R resources, m cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.validation.schedules import Mask, Timeline, Times, cases

if TYPE_CHECKING:
    from hpcgym.schedule.places import Allocation
    from hpcgym.schedule.result import Result

Ints = NDArray[np.int64]
Down = tuple[Ints, Ints, Ints]


def check_units(allocation: Allocation | None, needs: Ints, n_nodes: int) -> list[str]:
    """Find jobs that do not have exactly their units, on nodes that there are.

    Parameters
    ----------
    allocation : what the schedule says.
    needs : (n_jobs, 1 + R) units of each job, and the demand of each unit.
    n_nodes : of the machine.
    """
    if allocation is None:
        return ["the machine has nodes, but the schedule does not tell who has which"]
    first, node, units = allocation.first, allocation.node, allocation.units
    n, m = len(needs), len(node)
    if first.shape != (n + 1,) or node.shape != units.shape or (first[0], first[-1]) != (0, m):
        return [f"the allocation of {n} jobs and {m} cells has first of shape {first.shape}"]
    found = cases(np.diff(first) < 0, "the cells of job {} end before they begin")
    if found:
        return found
    job = owner_of(first)
    found += cases(
        (node < 0) | (node >= n_nodes), "job {1} is on node {2}, which is none", job, node
    )
    found += cases(units < 1, "job {1} has {2} units on node {3}", job, units, node)
    order = np.lexsort((node, job))
    twice = np.zeros(m, np.bool_)
    twice[1:] = (np.diff(job[order]) == 0) & (np.diff(node[order]) == 0)
    found += cases(twice, "job {1} has node {2} twice", job[order], node[order])
    placed = np.zeros(n, np.int64)
    np.add.at(placed, job, units)
    text = "job {} has {} units on nodes instead of {}"
    return found + cases(placed != needs[:, 0], text, placed, needs[:, 0])


def check_nodes(result: Result, needs: Ints, allocation: Allocation) -> list[str]:
    """Find nodes of which more is used than they have, of any resource, at any second.

    Time O(m R + m log m), memory O(m R).
    """
    cluster = result.cluster
    job, node, amounts = _cells(allocation, needs)
    job, node = np.concatenate((job, job)), np.concatenate((node, node))
    taken = np.arange(node.size) < allocation.node.size  # what ends follows what starts
    time = np.where(taken, result.start[job], result.end[job])
    order = np.lexsort((taken, time, node))  # of one second, ends come first
    node, time = node[order], time[order]
    # no node begins with anything in use: what is given back in the end leaves 0
    used = np.cumsum(np.concatenate((amounts, -amounts))[order], axis=0)
    last = np.ones(node.size, np.bool_)  # of all that happens to a node in a second
    last[:-1] = (np.diff(node) != 0) | (np.diff(time) != 0)
    found: list[str] = []
    capacity, names = cluster.capacity, np.array(cluster.node_names, object)
    for r, name in enumerate(cluster.resources):
        has = capacity[node, r]
        text = f"node {{1}} over-used: at {{2}} s running jobs hold {{3}} of {{4}} {name}"
        found += cases(last & (used[:, r] > has), text, names[node], time, used[:, r], has)
    return found


def fits_nodes(
    result: Result,
    needs: Ints,
    allocation: Allocation,
    line: Timeline,
    job: Times,
    asked: Mask,
    down: Down | None = None,
) -> Mask:
    """Return whether a job would find room on the free nodes, at each time that is asked.

    Parameters
    ----------
    line : the schedule's times.
    job : (n_times,) which job is meant at each of them.
    asked : (n_times,) where to look; elsewhere the answer is no. Each place costs O(N R).
    down : nodes, and from and up to which place in the line each is down.

    Returns
    -------
    fits : (n_times,)
    """
    owner, node, amounts = _cells(allocation, needs)
    begin, end = line.start[owner], line.end[owner]
    if down is not None:
        node, begin, end = (
            np.concatenate(pair) for pair in zip((node, begin, end), down, strict=True)
        )
        amounts = np.concatenate((amounts, result.cluster.capacity[down[0]]))
    place = np.concatenate((begin, end))
    order = np.argsort(place, kind="stable")
    node = np.concatenate((node, node))[order]
    change = np.concatenate((-amounts, amounts))[order]
    places = np.flatnonzero(asked)
    stops = np.searchsorted(place[order], places, "right").tolist()
    free = result.cluster.capacity.copy()
    fits = np.zeros(asked.shape, np.bool_)
    done = 0
    for at, stop in zip(places.tolist(), stops, strict=True):
        np.add.at(free, node[done:stop], change[done:stop])
        done = stop
        units, *demand = needs[job[at]].tolist()
        held = np.full(len(free), units)
        for r, need in enumerate(demand):
            if need:
                np.minimum(held, free[:, r] // need, out=held)
        fits[at] = held.sum() >= units
    return fits


def owner_of(first: Ints) -> Ints:
    """Return the job of each cell, (m,)."""
    return np.repeat(np.arange(len(first) - 1), np.diff(first))


def _cells(allocation: Allocation, needs: Ints) -> tuple[Ints, Ints, Ints]:
    """Return job (m,), node (m,) and amounts of the resources (m, R) of each cell."""
    job = owner_of(allocation.first)
    amounts = allocation.units.astype(np.int64)[:, np.newaxis] * needs[job, 1:]
    return job, allocation.node.astype(np.int64), amounts
