"""Which model and which search each dispatcher has: CPH, pure CP, HCP'19, PCP'19 and PCP'20.

Those of Remediani 2017 and Galleguillos 2020; each section says what differs from the document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from hpcgym.baselines.cp import models
from hpcgym.baselines.cp import models as lists
from hpcgym.baselines.cp.dispatcher import POOLED, CPDispatcher, SearchLimits
from hpcgym.baselines.cp.models import Boxes, CPModel, Ints, NodeStretch, branch_on_starts, schedule
from hpcgym.baselines.cp.problem import Objective, Problem, relative_wait, slowdown, weighted_wait
from hpcgym.baselines.dispatchers import prb, sdprb
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers.view import PassView

# --- The variants 0 to 3 of CPH and pure CP -------------------------------------------------------

# Remediani 2017, sections 4.2.1 and 4.3.1: 0, expected waits in both; 1, slowdown in the search; 2,
# slowdown in the objective; 3, slowdown in both. By these names equation 4.4 is read as 4.1,
# although the text below it calls ewt_j the expected duration of the job, and its maximum that of
# the queue.


class Variant(NamedTuple):
    """An order of the queue and an objective.

    Attributes
    ----------
    order : by equation 4.4 (as 4.1) or by 4.3; ties by 4.2.
    objective : equation 4.6 (CPH) or 4.14 (pure CP), or 4.12.
    """

    order: Callable[[PassView], NDArray[np.int64]]
    objective: Callable[[PassView], Objective]


def variant(number: int, waits: Callable[[PassView], Objective]) -> Variant:
    """Return a variant by number; ``waits`` is the objective of variants 0 and 1."""
    if number not in (0, 1, 2, 3):
        raise HpcgymError(f"variant must be 0, 1, 2 or 3, not {number!r}")
    return Variant(sdprb if number in (1, 3) else prb, slowdown if number in (2, 3) else waits)


# --- CPH ------------------------------------------------------------------------------------------

# Constraint programming decides when jobs start, a heuristic decides where.
#
# Remediani 2017, section 4.2. The relaxed model has one cumulative for each resource type, over the
# whole machine (equations 4.7 and 4.8), and minimises the waits weighted by the queues' expected
# waits (4.6) or the slowdowns (4.12); the search follows the priority of PRB (4.4) or the slowdown
# (4.3). The jobs that start now go to the first nodes that hold them, in the order of priority.
# Equations 4.9 to 4.11, for units on nodes, are in pure CP: the section says that CPH solves the
# relaxation.
#
# HCP'19 has the same variables, constraints and search. There the objective is slowdown, the order
# of the jobs that of the slowdown, and the nodes are chosen by best fit: ``cph-3`` with best fit.


def build_cph(problem: Problem) -> CPModel:
    """Return the model of a problem."""
    model = schedule(problem)
    branch_on_starts(model)
    return model


class CPH(CPDispatcher):
    """CPH as a dispatcher, variant 0 to 3."""

    pooled = True
    usual = POOLED

    def __init__(self, number: int, limits: SearchLimits | None = None) -> None:
        chosen = variant(number, weighted_wait)
        super().__init__(f"cph-{number}", build_cph, chosen.order, chosen.objective, limits)


# --- HCP'19 ---------------------------------------------------------------------------------------

# Constraint programming decides when jobs start, best fit decides where.
#
# Galleguillos 2020, section 1. The scheduling model of PCP'19 (section 2.2) treats resources of one
# type as a pool over all nodes; the jobs that start now then go to nodes by best fit, in the order
# of their priority, and one for which no nodes are found is postponed to the next pass: there is no
# iteration between the two stages.
#
# The model is that of CPH (Remediani 2017, section 4.2) with slowdown in the search and the
# objective; what differs is best fit. PCP'19 adds the allocation to it.


class HCP19(CPDispatcher):
    """HCP'19 as a dispatcher."""

    own_nodes = True
    pooled = True
    usual = POOLED

    def __init__(self, limits: SearchLimits | None = None) -> None:
        super().__init__("hcp19", build_cph, sdprb, slowdown, limits)


# --- PCP'19 ---------------------------------------------------------------------------------------

# Jobs and their units in one model, with a variable for each place a unit can have.
#
# Galleguillos 2020, section 2.2. The scheduling model (cumulatives over the whole machine), the
# allocation model (alternatives over the nodes), total slowdown, and a search on the jobs of
# highest priority: their slowdown if they started now. Conditional interval variables are CP-SAT's
# optional intervals, whose start is their job's own. The search strategy covers the starts; the
# allocation is left to the solver's default order.
#
# Pure CP (Remediani 2017, section 4.3) has the same variables and constraints, in variants 1 and 3
# the same search, and in 2 and 3 the same objective. What differs is that nodes of the plan are
# chosen by best fit here.


def build_pcp19(problem: Problem) -> CPModel:
    """Return the model of a problem."""
    model = schedule(problem)
    models.allocate(model, problem)
    branch_on_starts(model)
    return model


class PCP19(CPDispatcher):
    """PCP'19 as a dispatcher."""

    own_nodes = True

    def __init__(self, limits: SearchLimits | None = None) -> None:
        super().__init__("pcp19", build_pcp19, sdprb, slowdown, limits)


# --- Pure CP: constraint programming decides when jobs start and where ----------------------------

# Remediani 2017, section 4.3. The cumulatives of CPH, and for each unit an alternative over the
# nodes (equations 4.9, 4.10, 4.11 and 4.13); the units of a job may share a node. It minimises the
# waits over the queues' expected waits (4.14) or the slowdowns (4.12). Variants 0 and 2 use the
# solver's own search, 1 and 3 branch on the jobs of the highest slowdown (4.3).
#
# PCP'19 (Galleguillos 2020, section 2.2) is variant 3 with nodes of the plan chosen by best fit;
# the variables and constraints of both are in `models`.


def build_pure_cp(problem: Problem, *, branches: bool) -> CPModel:
    """Return the model of a problem; ``branches``: with a search on the starts."""
    model = schedule(problem)
    models.allocate(model, problem)
    if branches:
        branch_on_starts(model)
    return model


class PureCP(CPDispatcher):
    """Pure CP as a dispatcher, variant 0 to 3."""

    def __init__(self, number: int, limits: SearchLimits | None = None) -> None:
        chosen = variant(number, relative_wait)
        named = number in (1, 3)
        super().__init__(
            f"cp-{number}",
            partial(build_pure_cp, branches=named),
            chosen.order,
            chosen.objective,
            limits,
            fixed=named,
        )


# --- PCP'20 ---------------------------------------------------------------------------------------

# Galleguillos 2020, section 3. Each resource type r is a list of positions, node after node (Figure
# 2); the unit j of a job i is a box in it (Figure 3) from position y_i,r,j up by req_i,r / rn_i,
# and from s(tau_i) on by d(tau_i). Boxes do not overlap (diffn), and element constraints keep all
# of a unit in one node.
#
# What differs from the paper and why:
#
# Element constraints are linear here: node = map_r[y] is a straight line over nodes in a row of the
# same capacity, so y_i,r,j = first + capacity (node_i,j - start) + offset with 0 <= offset <=
# capacity - req, where node_i,j is one variable more for each unit, and a Boolean picks the stretch
# of nodes where there are several. As an array, the memory of KIT ForHLR II in MB has 9.5 x 10^7
# positions.
#
# All units of a job are alike, so they are numbered by their position, y_i,r,j + req <= y_i,r,j+1
# in the list of cores; that implies the paper's all-different, and breaks the symmetry it lists as
# future work.
#
# Left out, and cannot matter: nodes that no job could use in a schedule as good as the plan; of
# what runs, the detail that no unit can use (`models.running_boxes`); and the boxes of a unit in
# other lists where it takes all cores of its node.
#
# Left out, and relaxes: the list of a resource of which no unit takes a larger share of its node
# than of the node's cores. Counted, it is never short where cores are not; but its positions need
# not be contiguous then.
#
# Positions are contiguous, and a unit keeps its own while it runs. That is stricter than counting
# what a node has free: docs/dispatchers.md. What runs already has positions that the log
# does not know; see `models.running_boxes`.


@dataclass
class _Unit:
    """The variables of a unit.

    Attributes
    ----------
    node : node_i,j.
    in_part : Booleans, whether it is in each stretch; of two, in the first; of one, none.
    position : y_i,r,j by resource.
    variables : those positions that are variables of their own, by resource.
    """

    node: cp_model.IntVar
    in_part: list[cp_model.IntVar]
    position: dict[int, Any]
    variables: dict[int, cp_model.IntVar]


def build_pcp20(problem: Problem) -> CPModel:
    """Return the model of a problem."""
    model = schedule(problem)
    usable = lists.usable_nodes(problem)
    scarce = lists.scarce(problem, usable)
    boxes = lists.running_boxes(problem, usable, scarce)
    hints = lists.positions_of_plan(problem, boxes, scarce)
    units = []
    for job in range(len(problem.places)):
        nodes = np.flatnonzero(usable.of_job[job])
        resources = _lists_of(problem, job, nodes, scarce)
        parts = lists.stretches(problem.view.capacity, np.array(resources), nodes)
        units.append(_units(model.cp, problem, job, nodes, parts, resources))
        _hint(model.cp, units[-1], parts, problem.planned[job], hints[job])
    for resource in scarce:
        _no_overlap(model, problem, units, boxes[resource], resource)
    _search(model, units)
    model.nodes = lambda value: [
        np.sort(np.array([value(unit.node) for unit in of_job], dtype=np.int64)) for of_job in units
    ]
    return model


def _lists_of(problem: Problem, job: int, nodes: Ints, scarce: list[int]) -> list[int]:
    """Return the resources in whose lists a job's units have boxes."""
    demand = problem.per_unit[job]
    if (problem.view.capacity[nodes, 0] == demand[0]).all():
        return [0]  # a unit that has its node for itself meets nothing in other lists
    return [r for r in scarce if demand[r] > 0]


def _units(
    cp: cp_model.CpModel,
    problem: Problem,
    job: int,
    nodes: Ints,
    parts: list[NodeStretch],
    resources: list[int],
) -> list[_Unit]:
    """Return the variables of a job's units, in the order of their positions in the first list."""
    demand = problem.per_unit[job].tolist()
    domain = cp_model.Domain.from_values(nodes.tolist())
    count = int(problem.units[job])
    units = [_unit(cp, domain, parts, resources, demand) for _ in range(count)]
    for unit, other in pairwise(units):
        cp.add(unit.position[0] + demand[0] <= other.position[0])
    return units


def _unit(
    cp: cp_model.CpModel,
    nodes: cp_model.Domain,
    parts: list[NodeStretch],
    resources: list[int],
    demand: list[int],
) -> _Unit:
    """Return the variables of a unit: all of it in one node, which is in one of the stretches."""
    node = cp.new_int_var_from_domain(nodes, "")
    if len(parts) == 1 and resources == [0] and parts[0].capacity[0] == demand[0]:
        first = int(parts[0].first[0]) - demand[0] * parts[0].start
        return _Unit(node, [], {0: node * demand[0] + first}, {})
    unit = _Unit(node, [cp.new_bool_var("") for _ in parts] if len(parts) > 2 else [], {}, {})
    literals: list[Any] = unit.in_part
    if len(parts) == 2:
        unit.in_part = [cp.new_bool_var("")]
        literals = [unit.in_part[0], ~unit.in_part[0]]
    elif len(parts) > 2:
        cp.add_exactly_one(literals)
    for r in resources:
        unit.variables[r] = cp.new_int_var_from_domain(_positions(parts, r, demand[r]), "")
    unit.position = dict(unit.variables)
    for number, part in enumerate(parts):
        tied = [cp.add_linear_constraint(node, part.start, part.end - 1)] if literals else []
        for r, y in unit.variables.items():
            capacity = int(part.capacity[r])
            first = int(part.first[r]) - capacity * part.start
            offset = y - capacity * node
            tied.append(cp.add_linear_constraint(offset, first, first + capacity - demand[r]))
        for constraint in tied if literals else []:
            constraint.only_enforce_if(literals[number])
    return unit


def _positions(parts: list[NodeStretch], resource: int, size: int) -> cp_model.Domain:
    """Return where a unit can start in the list of a resource, over all stretches."""
    ranges = []
    for part in parts:
        first, capacity = int(part.first[resource]), int(part.capacity[resource])
        ranges.append([first, first + capacity * (part.end - part.start) - size])
    return cp_model.Domain.from_intervals(ranges)


def _hint(
    cp: cp_model.CpModel,
    units: list[_Unit],
    parts: list[NodeStretch],
    nodes: Ints,
    positions: list[dict[int, int]] | None,
) -> None:
    """Hint the heuristic's allocation of a job, units in the order of their positions."""
    for number, (unit, node) in enumerate(zip(units, nodes.tolist(), strict=True)):
        cp.add_hint(unit.node, node)
        for literal, part in zip(unit.in_part, parts, strict=False):
            cp.add_hint(literal, part.start <= node < part.end)
        if positions is not None:
            for resource, variable in unit.variables.items():
                cp.add_hint(variable, positions[number][resource])


def _no_overlap(
    model: CPModel, problem: Problem, units: list[list[_Unit]], runs: Boxes, resource: int
) -> None:
    """Add diffn([s], [d], [y_r], [req_r / rn]) and the cumulative over positions (section 3)."""
    cp = model.cp
    wide, high, long = [], [], []
    for job, of_job in enumerate(units):
        size = int(problem.per_unit[job, resource])
        for unit in of_job:
            if resource in unit.position:
                wide.append(model.intervals[job])
                high.append(cp.new_fixed_size_interval_var(unit.position[resource], size, ""))
                long.append(int(problem.duration[job]))
    if not wide:
        return
    last = int((problem.latest + problem.duration).max())  # nothing that waits runs after it
    for box, end in enumerate(np.minimum(runs.end, last).tolist()):
        position: Any = int(runs.position[box])
        if runs.low[box] < runs.high[box]:
            movable = cp.new_int_var(int(runs.low[box]), int(runs.high[box]), "")
            cp.add_hint(movable, position)
            position = movable
        wide.append(cp.new_fixed_size_interval_var(0, end, ""))
        high.append(cp.new_fixed_size_interval_var(position, int(runs.size[box]), ""))
        long.append(end)
    cp.add_no_overlap_2d(wide, high)
    cp.add_cumulative(high, long, last)


def _search(model: CPModel, units: list[list[_Unit]]) -> None:
    """Search job by job, in the order of priority: its earliest start, then its allocation.

    Of the allocation, the variable with the fewest values left gets the largest of them. The paper
    selects the job "whose priority is highest and that can start first" anew at each node of the
    search; strategies of CP-SAT follow each other, so the order of jobs is that of priority.
    """
    for start, of_job in zip(model.starts, units, strict=True):
        model.cp.add_decision_strategy([start], cp_model.CHOOSE_FIRST, cp_model.SELECT_MIN_VALUE)
        allocation = [v for unit in of_job for v in unit.variables.values()]
        model.cp.add_decision_strategy(
            allocation or [unit.node for unit in of_job],
            cp_model.CHOOSE_MIN_DOMAIN_SIZE,
            cp_model.SELECT_MAX_VALUE,
        )


class PCP20(CPDispatcher):
    """PCP'20 as a dispatcher."""

    own_nodes = True

    def __init__(self, limits: SearchLimits | None = None) -> None:
        super().__init__("pcp20", build_pcp20, sdprb, slowdown, limits)
