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
    earliest : (k,) [s] when each could start if it were the only one in the queue.
    weights : what a second of waiting costs.
    plan : the best of the heuristic's schedules, see :func:`pose`.
    heuristic : (k,) [s] the starts of the first of them, in the order of priority.
    """

    view: PassView
    places: Ints
    rest: Ints
    duration: Ints
    units: Ints
    per_unit: Ints
    left: Ints
    earliest: Ints
    weights: Weights
    plan: Schedule
    heuristic: Ints

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
        started at their earliest.
        """
        whole = self.weights.whole
        spare = self.weights.solver_cost(self.plan.start - self.earliest)
        latest: Ints = self.earliest + spare // np.maximum(whole, 1)
        return latest

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


def earliest_starts(view: PassView, left: Ints, units: Ints, per_unit: Ints) -> Ints:
    """Return when each job could start at the earliest, if it were alone in the queue.

    That bounds its start from below in every schedule: fewer units are free beside other jobs.

    Returns
    -------
    (k,) [s] from now.
    """
    owner = np.repeat(np.arange(len(left)), np.diff(view.running_first))
    release = view.running_units[:, None] * view.running_per_unit[owner]
    by_node = np.lexsort((left[owner], view.running_node))
    node, release = view.running_node[by_node], release[by_node]
    before, after = as_released(view.free, node, release)
    end = left[owner][by_node]
    by_end = np.argsort(end, kind="stable")
    earliest = np.zeros(len(units), dtype=np.int64)
    kinds, kind = np.unique(per_unit, axis=0, return_inverse=True)
    for number, demand in enumerate(kinds):
        now = int(hold(view.free, demand).sum())
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
) -> Problem:
    """Return the problem of a pass.

    The heuristic is Algorithm 1 of document 000: a list schedule in the order of priority. Two more
    lists are cheap and often better by the objective: the shortest expected duration first, and the
    least of duration x share of the machine x divisor of the objective first (Smith's rule for the
    weighted sum of completion times). The best of the three is where the solver starts.

    Parameters
    ----------
    view : the state.
    order : (q,) the places in the queue, highest priority first.
    objective : of all jobs in the queue.
    jobs, units : the window. Jobs are considered in the order of priority while there are no more
        than ``jobs`` and their units are no more than ``units``; one that asks for more than is
        left is passed over, unless it is the first.
    """
    places, rest = _window(view.units[order], order, jobs, units)
    window = _queue_of(view, places)
    duration = np.maximum(window.duration, 1)
    left = np.maximum(view.running_end - view.time, 1)
    weights = objective.weigh(places, int(duration.sum() + left.sum()))
    share = window.units * (window.per_unit / np.maximum(view.total, 1)).max(axis=1)
    orders = (
        np.arange(len(places)),
        np.argsort(duration, kind="stable"),
        np.argsort(duration * share * weights.divisor, kind="stable"),
    )
    plans = [_schedule(window, window.plan(one)) for one in orders]
    return Problem(
        view=view,
        places=places,
        rest=rest,
        duration=duration,
        units=window.units,
        per_unit=window.per_unit,
        left=left,
        earliest=earliest_starts(view, left, window.units, window.per_unit),
        weights=weights,
        plan=min(plans, key=lambda plan: weights.cost(plan.start)),
        heuristic=plans[0].start,
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


def _window(size: Ints, order: Ints, jobs: int, units: int) -> tuple[Ints, Ints]:
    """Return the considered places and the others; ``size`` are the units in the same order."""
    taken = np.zeros(len(order), dtype=bool)
    left = units
    for number, asked in enumerate(size.tolist()):
        if number == 0 or asked <= left:
            taken[number] = True
            left -= asked
            if taken.sum() == jobs:
                break
    return order[taken], order[~taken]
