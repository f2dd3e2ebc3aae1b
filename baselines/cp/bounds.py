"""Bounds that follow from what runs and from the plan, before anything is solved.

Times are seconds from the time of dispatching.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp.objective import Weights
from hpcgym.scheduler.dispatchers.view import PassView

Ints = NDArray[np.int64]


class Running(NamedTuple):
    """What runs, by node: a row for each node of each running job.

    Attributes
    ----------
    node : (c,) the node.
    taken : (c, R) what the job takes of it.
    left : (c,) [s] until the expected end of the job, at least 1: max(1, s + d - t).
    """

    node: Ints
    taken: Ints
    left: Ints


def running_of(view: PassView) -> Running:
    """Return what runs in a state."""
    owner = np.repeat(np.arange(len(view.running_end)), np.diff(view.running_first))
    taken = view.running_units[:, None] * view.running_per_unit[owner]
    return Running(view.running_node, taken, left_of(view)[owner])


def left_of(view: PassView) -> Ints:
    """Return how long each running job is expected to run, (r,) [s], at least 1."""
    left: Ints = np.maximum(view.running_end - view.time, 1)
    return left


def hold(free: Ints, demand: Ints) -> Ints:
    """Return how many units each node holds.

    Parameters
    ----------
    free : (n, R) what the nodes have free.
    demand : (R,) of one unit.

    Returns
    -------
    (n,) numbers of units, none negative.
    """
    asked = demand > 0
    units: Ints = np.maximum((free[:, asked] // demand[asked]).min(axis=1), 0)
    return units


def as_released(free: Ints, node: Ints, release: Ints) -> tuple[Ints, Ints]:
    """Return what a node has free before and after each release; releases in order by node."""
    total = np.cumsum(release, axis=0)
    first = np.searchsorted(node, node)  # of the releases of the same node
    sooner = np.where((first > 0)[:, None], total[first - 1], 0)
    after = free[node] + total - sooner
    return after - release, after


def earliest_starts(
    free: Ints, running: Running, units: Ints, per_unit: Ints, *, pooled: bool = False
) -> Ints:
    """Return when each job could start at the earliest, if it were alone in the queue.

    That bounds its start from below in every schedule: fewer units are free beside other jobs.

    Parameters
    ----------
    free : (n, R) what the nodes have free now.
    running : what will be free later.
    units, per_unit : (k,) and (k, R), of the jobs; each fits the empty machine.
    pooled : whether the machine is taken for one node that has all its resources.

    Returns
    -------
    (k,) [s] from now.
    """
    node = running.node
    if pooled:
        node, free = np.zeros_like(node), free.sum(axis=0, keepdims=True)
    by_node = np.lexsort((running.left, node))
    node, release, end = (one[by_node] for one in (node, running.taken, running.left))
    before, after = as_released(free, node, release)
    by_end = np.argsort(end, kind="stable")
    earliest = np.zeros(len(units), dtype=np.int64)
    kinds, kind = np.unique(per_unit, axis=0, return_inverse=True)
    for number, demand in enumerate(kinds):
        now = int(hold(free, demand).sum())
        gain = (hold(after, demand) - hold(before, demand))[by_end]
        total = now + np.cumsum(gain)
        for job in np.flatnonzero((kind.ravel() == number) & (units > now)):
            earliest[job] = end[by_end][np.searchsorted(total, units[job])]
    return earliest


def latest_starts(weights: Weights, earliest: Ints, planned: Ints, horizon: int) -> Ints:
    """Return the last start of each job in a schedule no worse than the plan.

    Were a job to start later, the cost would be above the plan's even if all others started at
    their earliest. One whose weight is rounded to 0 can start up to the horizon.

    Parameters
    ----------
    weights : what a second of waiting costs.
    earliest, planned : (k,) [s], :func:`earliest_starts` and the starts of the plan.
    horizon : [s] the last start there is.

    Returns
    -------
    (k,) [s] from now.
    """
    spare = weights.solver_cost(planned - earliest)
    last = earliest + spare // np.maximum(weights.whole, 1)
    latest = np.where(weights.whole > 0, np.minimum(last, horizon), horizon)
    return np.maximum(latest, planned)
