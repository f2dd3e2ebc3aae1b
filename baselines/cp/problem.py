"""The dispatching problem of one scheduling pass: what every model of this folder is given.

Galleguillos 2020, section 2.1. Times are whole seconds from the time of dispatching. The queued
jobs stand in the order of their priority; a model considers the first of them only (the window),
since its size grows with them and a decision has to be made in less than a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers.view import NodePlan, PassView

# --- What the models minimise, in whole numbers ---------------------------------------------------
#
# All objectives of the documents are a sum of waiting times, each divided by something of the job:
# its expected duration (slowdown: Galleguillos 2020, section 2.2; Remediani 2017, equation 4.12)
# or the expected wait of its queue (Remediani 2017, equations 4.6 and 4.14, which differ by a
# common factor). CP-SAT counts in whole numbers, so the quotients 1/x are scaled.
#
# **The scale** is the least common multiple of the divisors where that is small enough: all weights
# are then exact. Otherwise it is the largest power of two for which the dearest schedule costs less
# than 2**52, so that every objective is an exact double too. A weight is then off by at most half a
# unit: with a horizon of 50 days and 50 jobs, one of them of one second, the scale is about 10**9
# and the weight of a job of a day is off by less than 0.005 %.

#: No schedule may cost more: 2**53 is where doubles stop holding every whole number.
LARGEST = 2**52


@dataclass(frozen=True)
class Objective:
    """Cost = sum over jobs of factor x (wait + start) / divisor + own.

    Attributes
    ----------
    divisor : (q,) [s].
    wait : (q,) [s] up to now.
    factor, own : of the objective.
    """

    divisor: NDArray[np.float64]
    wait: NDArray[np.int64]
    factor: float
    own: float

    def weigh(self, places: NDArray[np.int64], horizon: int) -> Weights:
        """Return the weights of some jobs, scaled for starts up to the horizon [s]."""
        divisor = self.divisor[places]
        scale = _scale(divisor, horizon)
        whole = np.rint(scale / divisor).astype(np.int64)
        return Weights(divisor, self.wait[places], self.factor, self.own, scale, whole)


@dataclass(frozen=True)
class Weights(Objective):
    """The objective of the considered jobs, as the solver counts it.

    Attributes
    ----------
    scale : whole numbers per 1 / second.
    whole : (k,) int64, the weights for the solver: scale / divisor.
    """

    scale: int
    whole: NDArray[np.int64]

    def solver_cost(self, start: NDArray[np.int64]) -> int:
        """Return what the solver minimises: whole weights x starts [s from now]."""
        return int(self.whole @ start)

    def cost(self, start: NDArray[np.int64]) -> float:
        """Return the objective of the document at these starts [s from now]."""
        return float((self.factor * (self.wait + start) / self.divisor + self.own).sum())

    def as_cost(self, solver_cost: float) -> float:
        """Return the objective that a value of the solver stands for."""
        return (
            self.cost(np.zeros(len(self.wait), np.int64)) + self.factor * solver_cost / self.scale
        )


def slowdown(view: PassView) -> Objective:
    """Return those of sum (s - q + d) / d: Galleguillos 2020, 2.2; Remediani 2017, 4.12."""
    return Objective(np.maximum(view.duration, 1).astype(np.float64), view.wait, 1.0, 1.0)


def weighted_wait(view: PassView) -> Objective:
    """Return those of sum (max ewt / ewt) (s - q): Remediani 2017, equation 4.6 (CPH)."""
    return Objective(view.expected_wait, view.wait, view.max_expected_wait, 0.0)


def relative_wait(view: PassView) -> Objective:
    """Return those of sum (s - q) / ewt: Remediani 2017, equation 4.14 (pure CP)."""
    return Objective(view.expected_wait, view.wait, 1.0, 0.0)


def _scale(divisor: NDArray[np.float64], horizon: int) -> int:
    """Return the scale for these divisors and starts up to the horizon [s]."""
    whole = divisor == np.rint(divisor)
    at_most = int(LARGEST / max(horizon * float((1.0 / divisor).sum()), 1e-9))
    if whole.all():
        exact = 1
        for value in np.unique(divisor).astype(np.int64).tolist():
            exact = math.lcm(exact, value)
            if exact > at_most:
                break
        else:
            return exact
    return 1 << max(at_most.bit_length() - 1, 0)


# --- Bounds that follow from what runs and from the plan ------------------------------------------
#
# Times are seconds from the time of dispatching.

Ints = NDArray[np.int64]


class RunningJobs(NamedTuple):
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


def running_of(view: PassView) -> RunningJobs:
    """Return what runs in a state."""
    owner = np.repeat(np.arange(len(view.running_end)), np.diff(view.running_first))
    taken = view.running_units[:, None] * view.running_per_unit[owner]
    return RunningJobs(view.running_node, taken, left_of(view)[owner])


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
    free: Ints, running: RunningJobs, units: Ints, per_unit: Ints, *, pooled: bool = False
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
    node, release, end = (array[by_node] for array in (node, running.taken, running.left))
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


# --- The dispatching problem of one scheduling pass -----------------------------------------------


@dataclass(frozen=True)
class CPSchedule:
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
    """The considered jobs, highest priority first, and their plan; the bounds follow from these.

    Attributes
    ----------
    view : the state it was made of.
    places : (k,) where the considered jobs stand in the view's queue.
    rest : (q - k,) the other places, highest priority first.
    duration : (k,) d_i [s], at least 1.
    units : (k,) rn_i.
    per_unit : (k, R) req_i,r / rn_i.
    pooled : whether the model is relaxed to pools: each resource type is one, over all nodes.
    horizon : eoh - t [s]: the sum of all durations, waiting and running (section 2.2).
    weights : what a second of waiting costs.
    plan : the heuristic's schedule, on nodes; see :func:`pose`.
    bounded : whether starts outside of :attr:`earliest` and :attr:`latest` are left out; else they
        are in [t, eoh], as published.
    """

    view: PassView
    places: Ints
    rest: Ints
    duration: Ints
    units: Ints
    per_unit: Ints
    pooled: bool
    horizon: int
    weights: Weights
    plan: CPSchedule
    bounded: bool = True

    @cached_property
    def planned(self) -> list[Ints]:
        """Return the nodes of the plan: of each job, one a unit, ascending."""
        assert self.plan.nodes is not None, "a list schedule places all units"
        return self.plan.nodes

    @cached_property
    def running(self) -> RunningJobs:
        """Return what runs, by node."""
        return running_of(self.view)

    @cached_property
    def earliest(self) -> Ints:
        """Return when each job could start if it were alone, (k,) [s]; on pools if the model is."""
        starts: Ints = earliest_starts(
            self.view.free, self.running, self.units, self.per_unit, pooled=self.pooled
        )
        return starts

    @cached_property
    def latest(self) -> Ints:
        """Return the last start of each job in a schedule no worse than the plan, (k,) [s]."""
        planned = self.plan.start
        starts: Ints = latest_starts(self.weights, self.earliest, planned, self.horizon)
        return starts

    @property
    def domains(self) -> list[tuple[int, int]]:
        """Return the first and the last start of each job in a model, k pairs [s]."""
        if not self.bounded:
            return [(0, self.horizon)] * len(self.places)
        return list(zip(self.earliest.tolist(), self.latest.tolist(), strict=True))


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

    The heuristic is a list schedule (Algorithm 1 of Remediani 2017) in the order of priority at the
    time of dispatching. The published algorithm orders the queue anew at each time.

    Parameters
    ----------
    view : the state.
    order : (q,) the places in the queue, highest priority first.
    objective : of all jobs in the queue.
    jobs, units : the window: the first jobs in the order of priority, as long as there are no more
        than ``jobs`` and their units are no more than ``units``; the first in any case.
    pooled : whether the model is relaxed to pools of resources.

    Raises
    ------
    HpcgymError : a considered job that the empty machine does not hold; a job that asks for its
        units on several nodes, which the models do not know.
    """
    if (apart := view.units_per_node < view.units).any():
        job = int(view.job[apart.argmax()])
        raise HpcgymError(
            f"the job of row {job} asks for units on several nodes (units_per_node), which no model"
            " of constraint programming knows; workload.with_columns(units_per_node=[-1] *"
            " len(workload)) lets them lie on any"
        )
    inside = np.cumsum(view.units[order]) <= units
    inside[:1] = True
    inside[jobs:] = False
    count = len(order) if inside.all() else int(np.argmin(inside))
    places = order[:count]
    window = _queue_of(view, places)
    duration = np.maximum(window.duration, 1)
    horizon = int(duration.sum() + left_of(view).sum())
    return Problem(
        view=view,
        places=places,
        rest=order[count:],
        duration=duration,
        units=window.units,
        per_unit=window.per_unit,
        pooled=pooled,
        horizon=horizon,
        weights=objective.weigh(places, horizon),
        plan=_schedule(window, window.plan(np.arange(count))),
    )


def _queue_of(view: PassView, places: Ints) -> PassView:
    """Return the view with these jobs only in its queue, in this order."""
    by_place = (
        *("job", "submit", "wait", "duration", "requested", "policy_time"),
        *("units", "per_unit", "units_per_node", "user", "queue", "expected_wait"),
    )
    return replace(view, **{name: getattr(view, name)[places] for name in by_place})


def _schedule(view: PassView, plan: NodePlan) -> CPSchedule:
    """Return the starts and nodes of a plan of a view's queue."""
    spans = pairwise(plan.first.tolist())
    nodes = [np.sort(np.repeat(plan.node[a:b], plan.units[a:b])) for a, b in spans]
    return CPSchedule(plan.start - view.time, nodes)
