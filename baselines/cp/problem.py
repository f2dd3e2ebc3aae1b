"""The dispatching problem of one scheduling pass: what every model of this folder is given.

Document 001, section 2.1. Times are whole seconds from the time of dispatching. The queued jobs
stand in the order of their priority; a model considers the first of them only (the window), since
its size grows with them and a decision has to be made in less than a second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp.objective import Objective, Weights
from hpcgym.dispatching.view import PassView, Plan

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Schedule:
    """A start and nodes for each considered job.

    Attributes
    ----------
    start : (k,) [s] from now.
    nodes : k arrays of one node a unit, ascending; None if the model places no units.
    """

    start: Ints
    nodes: list[Ints] | None


@dataclass(frozen=True)
class Problem:
    """The considered jobs, highest priority first, with what runs already.

    Attributes
    ----------
    view : the state it was made of.
    places : (k,) where the considered jobs stand in the view's queue.
    rest : (q - k,) the other places, highest priority first.
    duration : (k,) d_i [s], at least 1.
    units : (k,) rn_i.
    per_unit : (k, R) req_i,r / rn_i.
    left : (r,) [s] until the expected end of each running job, at least 1: max(1, s + d - t).
    pooled : whether the model is relaxed to pools: each resource type is one, over all nodes.
    earliest : (k,) [s] when each could start if it were the only one in the queue; on pools if
        the model is.
    weights : what a second of waiting costs.
    plan : the heuristic's schedule, on nodes; see :func:`pose`.
    """

    view: PassView
    places: Ints
    rest: Ints
    duration: Ints
    units: Ints
    per_unit: Ints
    left: Ints
    pooled: bool
    earliest: Ints
    weights: Weights
    plan: Schedule

    @cached_property
    def horizon(self) -> int:
        """Return eoh - t [s]: the sum of all durations, waiting and running (section 2.2)."""
        return int(self.duration.sum() + self.left.sum())

    @cached_property
    def planned(self) -> list[Ints]:
        """Return the nodes of the plan: of each job, one a unit, ascending."""
        assert self.plan.nodes is not None, "a list schedule places all units"
        return self.plan.nodes

    @cached_property
    def latest(self) -> Ints:
        """Return the last start of each job in a schedule no worse than the plan, (k,) [s].

        Were the job to start later, the cost would be above the plan's even if all others
        started at their earliest. One whose weight is rounded to 0 can start up to the horizon.
        """
        whole = self.weights.whole
        spare = self.weights.solver_cost(self.plan.start - self.earliest)
        last = self.earliest + spare // np.maximum(whole, 1)
        latest = np.where(whole > 0, np.minimum(last, self.horizon), self.horizon)
        return np.maximum(latest, self.plan.start)

    @cached_property
    def running(self) -> tuple[Ints, Ints, Ints]:
        """Return what runs, by node: (c,) the node, (c, R) what is taken there, (c,) [s] left."""
        owner = np.repeat(np.arange(len(self.left)), np.diff(self.view.running_first))
        taken = self.view.running_units[:, None] * self.view.running_per_unit[owner]
        return self.view.running_node, taken, self.left[owner]


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


def earliest_starts(
    view: PassView, left: Ints, units: Ints, per_unit: Ints, *, pooled: bool = False
) -> Ints:
    """Return when each job could start at the earliest, if it were alone in the queue.

    That bounds its start from below in every schedule: fewer units are free beside other jobs.
    ``pooled``: if the machine were one node that has all its resources.

    Returns
    -------
    (k,) [s] from now.
    """
    owner = np.repeat(np.arange(len(left)), np.diff(view.running_first))
    release = view.running_units[:, None] * view.running_per_unit[owner]
    node, free = view.running_node, view.free
    if pooled:
        node, free = np.zeros_like(node), free.sum(axis=0, keepdims=True)
    by_node = np.lexsort((left[owner], node))
    node, release = node[by_node], release[by_node]
    before, after = as_released(free, node, release)
    end = left[owner][by_node]
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


def as_released(free: Ints, node: Ints, release: Ints) -> tuple[Ints, Ints]:
    """Return what a node has free before and after each release; releases in order by node."""
    total = np.cumsum(release, axis=0)
    first = np.searchsorted(node, node)  # of the releases of the same node
    sooner = np.where((first > 0)[:, None], total[first - 1], 0)
    after = free[node] + total - sooner
    return after - release, after


def pose(
    view: PassView,
    order: Ints,
    objective: Objective,
    *,
    jobs: int,
    units: int,
    pooled: bool = False,
) -> Problem:
    """Return the problem of a pass.

    The heuristic is a list schedule (Algorithm 1 of document 000) in the order of priority at the
    time of dispatching. The published algorithm orders the queue anew at each time.

    Parameters
    ----------
    view : the state.
    order : (q,) the places in the queue, highest priority first.
    objective : of all jobs in the queue.
    jobs, units : the window: the first jobs in the order of priority, as long as there are no more
        than ``jobs`` and their units are no more than ``units``; the first in any case.
    pooled : whether the model is relaxed to pools of resources.
    """
    inside = np.cumsum(view.units[order]) <= units
    inside[:1] = True
    inside[jobs:] = False
    count = len(order) if inside.all() else int(np.argmin(inside))
    places = order[:count]
    window = _queue_of(view, places)
    duration = np.maximum(window.duration, 1)
    left = np.maximum(view.running_end - view.time, 1)
    return Problem(
        view=view,
        places=places,
        rest=order[count:],
        duration=duration,
        units=window.units,
        per_unit=window.per_unit,
        left=left,
        pooled=pooled,
        earliest=earliest_starts(view, left, window.units, window.per_unit, pooled=pooled),
        weights=objective.weigh(places, int(duration.sum() + left.sum())),
        plan=_schedule(window, window.plan(np.arange(count))),
    )


def _queue_of(view: PassView, places: Ints) -> PassView:
    """Return the view with these jobs only in its queue, in this order."""
    by_place = (
        *("job", "submit", "wait", "duration", "requested"),
        *("units", "per_unit", "user", "queue", "expected_wait"),
    )
    return replace(view, **{name: getattr(view, name)[places] for name in by_place})


def _schedule(view: PassView, plan: Plan) -> Schedule:
    """Return the starts and nodes of a plan of a view's queue."""
    spans = pairwise(plan.first.tolist())
    nodes = [np.sort(np.repeat(plan.node[a:b], plan.units[a:b])) for a, b in spans]
    return Schedule(plan.start - view.time, nodes)
