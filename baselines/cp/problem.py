"""The dispatching problem of one scheduling pass: what every model of this folder is given.

Galleguillos 2020, section 2.1. Times are whole seconds from the time of dispatching. The queued
jobs stand in the order of their priority; a model considers the first of them only (the window),
since its size grows with them and a decision has to be made in less than a second.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp import bounds
from hpcgym.baselines.cp.objective import Objective, Weights
from hpcgym.scheduler.dispatchers.view import PassView, Plan

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
    plan: Schedule
    bounded: bool = True

    @cached_property
    def planned(self) -> list[Ints]:
        """Return the nodes of the plan: of each job, one a unit, ascending."""
        assert self.plan.nodes is not None, "a list schedule places all units"
        return self.plan.nodes

    @cached_property
    def running(self) -> bounds.Running:
        """Return what runs, by node."""
        return bounds.running_of(self.view)

    @cached_property
    def earliest(self) -> Ints:
        """Return when each job could start if it were alone, (k,) [s]; on pools if the model is."""
        starts: Ints = bounds.earliest_starts(
            self.view.free, self.running, self.units, self.per_unit, pooled=self.pooled
        )
        return starts

    @cached_property
    def latest(self) -> Ints:
        """Return the last start of each job in a schedule no worse than the plan, (k,) [s]."""
        planned = self.plan.start
        starts: Ints = bounds.latest_starts(self.weights, self.earliest, planned, self.horizon)
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
    HpcgymError : a considered job that the empty machine does not hold.
    """
    inside = np.cumsum(view.units[order]) <= units
    inside[:1] = True
    inside[jobs:] = False
    count = len(order) if inside.all() else int(np.argmin(inside))
    places = order[:count]
    window = _queue_of(view, places)
    duration = np.maximum(window.duration, 1)
    horizon = int(duration.sum() + bounds.left_of(view).sum())
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
        *("job", "submit", "wait", "duration", "requested"),
        *("units", "per_unit", "user", "queue", "expected_wait"),
    )
    return replace(view, **{name: getattr(view, name)[places] for name in by_place})


def _schedule(view: PassView, plan: Plan) -> Schedule:
    """Return the starts and nodes of a plan of a view's queue."""
    spans = pairwise(plan.first.tolist())
    nodes = [np.sort(np.repeat(plan.node[a:b], plan.units[a:b])) for a, b in spans]
    return Schedule(plan.start - view.time, nodes)
