"""Models that the dispatchers share: when jobs start on pools, and where units go on nodes.

A job starts on pools of resources over all nodes; a unit goes to a node by optional intervals
(PCP'19, pure CP) or to positions in lists of resources (PCP'20).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from hpcgym.baselines.cp.problem import Problem, as_released, hold

# --- The scheduling model that all dispatchers share ----------------------------------------------

# Galleguillos 2020, section 2.2 (PCP'19, HCP'19 and PCP'20); Remediani 2017, section 4.2 (CPH),
# equations 4.7 and 4.8. Every resource type is one pool over all nodes.

Ints = NDArray[np.int64]


@dataclass
class CPModel:
    """A model of a problem, for the solver.

    Attributes
    ----------
    cp : variables, constraints, objective, search and hint.
    starts, intervals : of each considered job, s(tau_i) and tau_i.
    nodes : from what gives the value of an expression, the nodes of each job's units, ascending;
        None if the model places no units.
    """

    cp: cp_model.CpModel
    starts: list[cp_model.IntVar]
    intervals: list[cp_model.IntervalVar]
    nodes: Callable[[Callable[[Any], int]], list[Ints]] | None = field(default=None)


def schedule(problem: Problem) -> CPModel:
    """Return the model of the starts alone.

    Variables: s(tau_i) in [t, eoh], if the problem is bounded reduced to [earliest, latest]:
    outside it no schedule is as good as the plan, so no better one is lost. Constraints: a
    cumulative for each resource, with what runs. Objective: the weighted sum of the starts. Hint:
    the plan.
    """
    cp = cp_model.CpModel()
    # its old spellings of methods are attributes that refer to it: without them a model is freed as
    # soon as it is dropped, and megabytes of it do not wait for the collector
    vars(cp).clear()
    starts = [cp.new_int_var(first, last, "") for first, last in problem.domains]
    intervals = [
        cp.new_fixed_size_interval_var(start, duration, "")
        for start, duration in zip(starts, problem.duration.tolist(), strict=True)
    ]
    cp.minimize(cp_model.LinearExpr.weighted_sum(starts, problem.weights.whole.tolist()))
    for start, value in zip(starts, problem.plan.start.tolist(), strict=True):
        cp.add_hint(start, value)
    model = CPModel(cp, starts, intervals)
    for resource in range(len(problem.view.resources)):
        _cumulative(model, problem, resource)
    return model


def _cumulative(model: CPModel, problem: Problem, resource: int) -> None:
    """Add cumulative([s], [d], [req_r], Tcap_r): no more of a resource than the machine has."""
    demands = problem.units * problem.per_unit[:, resource]
    asked = np.flatnonzero(demands)
    if not len(asked):
        return
    _, taken, left = problem.running
    ends, end = np.unique(left, return_inverse=True)
    runs = np.bincount(end, weights=taken[:, resource], minlength=len(ends)).astype(np.int64)
    model.cp.add_cumulative(
        [model.intervals[job] for job in asked]
        + [model.cp.new_fixed_size_interval_var(0, value, "") for value in ends.tolist()],
        demands[asked].tolist() + runs.tolist(),
        int(problem.view.total[resource]),
    )


def branch_on_starts(model: CPModel) -> None:
    """Search on the starts: the job that can start first, of these the first; its earliest start.

    The considered jobs stand in the order of their priority, so ties are its.
    """
    model.cp.add_decision_strategy(
        model.starts, cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE
    )


# --- The allocation model of PCP'19 and pure CP ---------------------------------------------------

# Galleguillos 2020, section 2.2 (u_i,n,j); Remediani 2017, equations 4.9 to 4.11 and 4.13. Its size
# grows with the machine: p_i,n variables for each job and node.


def allocate(model: CPModel, problem: Problem) -> None:
    """Add the allocation of units to nodes to a model of the starts.

    Variables: x(u_i,n,j) in [0, 1] for j up to p_i,n, the units of job i that node n holds when
    empty (at most rn_i). Constraints: alternative, that is the sum of x over nodes and j is rn_i
    and a present interval has its job's start and duration; and a cumulative for each node and
    resource, with what runs there.
    """
    capacity = problem.view.capacity
    present: list[list[tuple[int, Any]]] = []
    on_node: list[list[tuple[int, cp_model.IntervalVar]]] = [[] for _ in capacity]
    for job, units in enumerate(problem.units.tolist()):
        most = np.minimum(hold(capacity, problem.per_unit[job]), units)
        planned = np.bincount(problem.planned[job], minlength=len(capacity)).tolist()
        mine = []
        for node in np.flatnonzero(most).tolist():
            for number in range(int(most[node])):
                x = model.cp.new_bool_var("")
                on_node[node].append((job, _optional(model, problem, job, x)))
                model.cp.add_hint(x, number < planned[node])
                mine.append((node, x))
        model.cp.add(cp_model.LinearExpr.sum([x for _, x in mine]) == units)
        present.append(mine)
    _capacities(model, problem, on_node)
    model.nodes = lambda value: [_chosen(mine, value) for mine in present]


def _optional(
    model: CPModel, problem: Problem, job: int, x: cp_model.IntVar
) -> cp_model.IntervalVar:
    """Return u_i,n,j: the job's interval, if it is present."""
    return model.cp.new_optional_fixed_size_interval_var(
        model.starts[job], int(problem.duration[job]), x, ""
    )


def _chosen(mine: list[tuple[int, Any]], value: Callable[[Any], int]) -> Ints:
    """Return the nodes of a job's units."""
    return np.array([node for node, x in mine if value(x)], dtype=np.int64)


def _capacities(
    model: CPModel, problem: Problem, on_node: list[list[tuple[int, cp_model.IntervalVar]]]
) -> None:
    """Add cumulative([s], [d], [req_r / rn], cap_n,r) for each node n and resource r."""
    capacity = problem.view.capacity
    node, taken, left = problem.running
    by_node = np.argsort(node, kind="stable")
    edges = np.searchsorted(node[by_node], np.arange(len(capacity) + 1))
    for number, intervals in enumerate(on_node):
        runs = by_node[edges[number] : edges[number + 1]]
        fixed = [model.cp.new_fixed_size_interval_var(0, int(left[run]), "") for run in runs]
        for resource in range(capacity.shape[1]):
            asked = [(i, int(problem.per_unit[job, resource])) for job, i in intervals]
            asked = [(i, demand) for i, demand in asked if demand]
            if not asked:
                continue
            model.cp.add_cumulative(
                [i for i, _ in asked] + fixed,
                [demand for _, demand in asked] + taken[runs, resource].tolist(),
                int(capacity[number, resource]),
            )


# --- Where things stand in PCP'20's lists of resources --------------------------------------------

# All of one resource in the machine is a list of positions, node after node: positions first[n, r]
# up to first[n + 1, r] are node n's. What runs already is fixed boxes there.


@dataclass(frozen=True)
class Usable:
    """The nodes that jobs can use in a schedule no worse than the heuristic's.

    Attributes
    ----------
    opened : (n,) [s] when a node first holds a unit of a job; above the horizon: never.
    of_job : (k, n) whether it holds a unit of the job by the job's latest start.
    """

    opened: Ints
    of_job: NDArray[np.bool_]


def usable_nodes(problem: Problem) -> Usable:
    """Return which nodes matter. What a node has free only grows while nothing more starts."""
    view = problem.view
    node, taken, left = problem.running
    order = np.lexsort((left, node))
    node, left = node[order], left[order]
    _, after = as_released(view.free, node, taken[order])
    never = problem.horizon + 1
    kinds, kind = np.unique(problem.per_unit, axis=0, return_inverse=True)
    when = np.full((len(kinds), len(view.capacity)), never, dtype=np.int64)
    for number, demand in enumerate(kinds):
        fits = hold(after, demand) > 0
        np.minimum.at(when[number], node[fits], left[fits])
        when[number, hold(view.free, demand) > 0] = 0
    opens = when[kind.ravel()]
    of_job = opens <= problem.latest[:, None]
    return Usable(np.where(of_job, opens, never).min(axis=0), of_job)


def scarce(problem: Problem, usable: Usable) -> list[int]:
    """Return the resources that need a list: the first, cores, and those that can run short first.

    Where no unit, running or waiting, takes a larger share of its node of a resource than of the
    node's cores, that resource is never short where cores are not.
    """
    capacity = problem.view.capacity
    node, taken, _ = problem.running
    nodes = np.flatnonzero(usable.of_job.any(axis=0))
    inside = np.isin(node, nodes)
    node, taken = node[inside], taken[inside]
    kinds = np.unique(problem.per_unit, axis=0)
    resources = [0]
    for resource in range(1, capacity.shape[1]):
        cores, others = capacity[:, 0], capacity[:, resource]
        waits = kinds[:, [resource]] * cores[nodes] > kinds[:, [0]] * others[nodes]
        holds = hold_any(capacity[nodes], kinds)
        runs = taken[:, resource] * cores[node] > taken[:, 0] * others[node]
        if (kinds[:, resource] > 0).any() and ((waits & holds).any() or runs.any()):
            resources.append(resource)
    return resources


def hold_any(capacity: Ints, kinds: Ints) -> NDArray[np.bool_]:
    """Return which nodes hold a unit of each demand when empty, (kinds, n)."""
    return np.array([hold(capacity, demand) > 0 for demand in kinds])


@dataclass(frozen=True)
class NodeStretch:
    """Nodes in a row that have the same capacity of some resources.

    There the element constraint of the paper, node = map_r[y], is linear: the position of the
    first thing of node n is ``first + capacity (n - start)``.

    Attributes
    ----------
    start, end : the nodes from start to before end.
    first : (R,) the first position of the first node.
    capacity : (R,) of each node.
    """

    start: int
    end: int
    first: Ints
    capacity: Ints


def first_positions(capacity: Ints) -> Ints:
    """Return where the nodes' resources start in the lists, (n + 1, R); counted from 0."""
    return np.concatenate([np.zeros_like(capacity[:1]), np.cumsum(capacity, axis=0)])


def stretches(capacity: Ints, resources: Ints, nodes: Ints) -> list[NodeStretch]:
    """Return the stretches of equal capacity of the resources that some of the nodes are in."""
    change = (np.diff(capacity[:, resources], axis=0) != 0).any(axis=1)
    edges = np.concatenate([[0], np.flatnonzero(change) + 1, [len(capacity)]])
    first = first_positions(capacity)
    used = np.unique(np.searchsorted(edges, nodes, side="right") - 1).tolist()
    return [
        NodeStretch(int(edges[i]), int(edges[i + 1]), first[edges[i]], capacity[edges[i]])
        for i in used
    ]


@dataclass(frozen=True)
class Boxes:
    """What runs, as boxes of one resource: from now to ``end``, ``size`` positions up.

    Attributes
    ----------
    position, size, end : (b,) first position; how many; [s] from now.
    low, high : (b,) the lowest and the highest position the box could have on its node.
    """

    position: Ints
    size: Ints
    end: Ints
    low: Ints
    high: Ints


#: Up to so many boxes of what runs have variable positions. Each is a variable more: were there no
#: limit, they would grow with the machine, which the model is made not to. On a full ForHLR II two
#: thousand units run beside a model of some 130 variables.
MOVABLE = 40


def running_boxes(problem: Problem, usable: Usable, resources: list[int]) -> dict[int, Boxes]:
    """Return what runs as boxes, for the lists of some resources.

    A unit that runs has no position in a log, only a node; a box is what a job has of a resource on
    one node. While there are few boxes in all lists together (up to :data:`MOVABLE`) each can be
    anywhere on its node, since a fixed place may exclude a schedule that others admit. Beyond that
    they are stacked, and do not move: those of a node lie from its first position up, the last to
    end lowest, so that what is free at any time is contiguous.

    What no job could use needs no detail. A node that no job can use has no boxes; and where boxes
    have fixed positions, those that end together are one, and before a node opens all its free
    cores are one: every unit asks for a core.
    """
    node, taken, left = problem.running
    inside = usable.opened[node] <= problem.horizon
    node, taken, left = node[inside], taken[inside], left[inside]
    first = first_positions(problem.view.capacity)
    if (taken[:, resources] > 0).sum() <= MOVABLE:
        return {r: _stack(node, taken[:, r], left, first[:, r]) for r in resources}
    late = left > usable.opened[node]
    node, taken, left = node[late], taken[late], left[late]
    boxes = {r: _merged(_stack(node, taken[:, r], left, first[:, r])) for r in resources}
    shut = np.flatnonzero((usable.opened > 0) & (usable.opened <= problem.horizon))
    later = np.bincount(node, weights=taken[:, 0], minlength=len(usable.opened)).astype(np.int64)
    cores = problem.view.capacity[:, 0] - later
    boxes[0] = _merged(
        _stack(
            np.concatenate([node, shut]),
            np.concatenate([taken[:, 0], cores[shut]]),
            np.concatenate([left, usable.opened[shut]]),
            first[:, 0],
        )
    )
    return boxes


def _stack(node: Ints, size: Ints, end: Ints, first: Ints) -> Boxes:
    """Return boxes on top of each other on their nodes, the last to end lowest."""
    held = np.flatnonzero(size > 0)
    order = held[np.lexsort((-end[held], node[held]))]
    node, size, end = node[order], size[order], end[order]
    below = np.cumsum(size) - size
    position = first[node] + below - below[np.searchsorted(node, node)]
    return Boxes(position, size, end, first[node], first[node + 1] - size)


def _merged(boxes: Boxes) -> Boxes:
    """Return boxes at fixed positions; those side by side that end together are one."""
    position, size, end = boxes.position, boxes.size, boxes.end
    if len(position):
        joins = (position[1:] == position[:-1] + size[:-1]) & (end[1:] == end[:-1])
        head = np.flatnonzero(np.concatenate([[True], ~joins]))
        position, size, end = position[head], np.add.reduceat(size, head), end[head]
    return Boxes(position, size, end, position, position)


def positions_of_plan(
    problem: Problem, boxes: dict[int, Boxes], resources: list[int]
) -> list[list[dict[int, int]] | None]:
    """Return positions for the heuristic's schedule: for each job, unit and resource.

    Each unit gets the lowest positions of its node that are free while it runs, in the order of
    starts. A job is None if that finds none: counts fit, but nothing contiguous was free.
    """
    first = first_positions(problem.view.capacity)
    taken = _Taken(first, boxes)
    placed: list[list[dict[int, int]] | None] = [None] * len(problem.places)
    for job in np.argsort(problem.plan.start, kind="stable").tolist():
        start = int(problem.plan.start[job])
        end = start + int(problem.duration[job])
        demand = problem.per_unit[job].tolist()
        units: list[dict[int, int]] = []
        for node in problem.planned[job].tolist():
            spot = {r: taken.find(node, r, demand[r], start, end) for r in resources if demand[r]}
            for r, y in spot.items():
                taken.add(node, r, y, demand[r], start, end)
            units.append(spot)
        if all(y >= 0 for spot in units for y in spot.values()):
            placed[job] = sorted(units, key=lambda spot: spot[0])
    return placed


class _Taken:
    """The boxes on each node, by resource: what runs and what was put there since."""

    def __init__(self, first: Ints, boxes: dict[int, Boxes]) -> None:
        self._first = first
        self._boxes = boxes
        self._known: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}

    def _on(self, node: int, resource: int) -> list[tuple[int, int, int, int]]:
        """Return (position, position after, start, end) of each box on a node."""
        if (node, resource) not in self._known:
            low, high = self._first[node, resource], self._first[node + 1, resource]
            of = self._boxes[resource]
            touch = np.flatnonzero((of.position < high) & (of.position + of.size > low))
            self._known[node, resource] = [
                (int(of.position[b]), int(of.position[b] + of.size[b]), 0, int(of.end[b]))
                for b in touch
            ]
        return self._known[node, resource]

    def find(self, node: int, resource: int, size: int, start: int, end: int) -> int:
        """Return the lowest position with room for that long; -1: none."""
        position = int(self._first[node, resource])
        for low, high, begins, ends in sorted(self._on(node, resource)):
            if begins < end and start < ends:
                if position + size <= low:
                    break
                position = max(position, high)
        return position if position + size <= self._first[node + 1, resource] else -1

    def add(self, node: int, resource: int, position: int, size: int, start: int, end: int) -> None:
        """Put a box there, if a position was found."""
        if position >= 0:
            self._on(node, resource).append((position, position + size, start, end))
