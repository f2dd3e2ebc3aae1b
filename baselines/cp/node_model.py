"""The allocation model of PCP'19 and pure CP: an optional interval for each unit on each node.

Galleguillos 2020, section 2.2 (u_i,n,j); Remediani 2017, equations 4.9 to 4.11 and 4.13. Its size
grows with the machine: p_i,n variables for each job and node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from hpcgym.baselines.cp.bounds import hold
from hpcgym.baselines.cp.pool_model import Model
from hpcgym.baselines.cp.problem import Problem

Ints = NDArray[np.int64]


def allocate(model: Model, problem: Problem) -> None:
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


def _optional(model: Model, problem: Problem, job: int, x: cp_model.IntVar) -> cp_model.IntervalVar:
    """Return u_i,n,j: the job's interval, if it is present."""
    return model.cp.new_optional_fixed_size_interval_var(
        model.starts[job], int(problem.duration[job]), x, ""
    )


def _chosen(mine: list[tuple[int, Any]], value: Callable[[Any], int]) -> Ints:
    """Return the nodes of a job's units."""
    return np.array([node for node, x in mine if value(x)], dtype=np.int64)


def _capacities(
    model: Model, problem: Problem, on_node: list[list[tuple[int, cp_model.IntervalVar]]]
) -> None:
    """Add cumulative([s], [d], [req_r / rn], cap_n,r) for each node n and resource r."""
    capacity = problem.view.capacity
    node, taken, left = problem.running
    by_node = np.argsort(node, kind="stable")
    edges = np.searchsorted(node[by_node], np.arange(len(capacity) + 1))
    for number, intervals in enumerate(on_node):
        runs = by_node[edges[number] : edges[number + 1]]
        fixed = [model.cp.new_fixed_size_interval_var(0, int(left[one]), "") for one in runs]
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
