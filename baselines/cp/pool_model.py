"""The scheduling model that all dispatchers share: when jobs start, on pools of resources.

Galleguillos 2020, section 2.2 (PCP'19, HCP'19 and PCP'20); Remediani 2017, section 4.2 (CPH),
equations 4.7 and 4.8. Every resource type is one pool over all nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from hpcgym.baselines.cp.problem import Problem

Ints = NDArray[np.int64]


@dataclass
class Model:
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


def schedule(problem: Problem) -> Model:
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
    model = Model(cp, starts, intervals)
    for resource in range(len(problem.view.resources)):
        _cumulative(model, problem, resource)
    return model


def _cumulative(model: Model, problem: Problem, resource: int) -> None:
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


def branch_on_starts(model: Model) -> None:
    """Search on the starts: the job that can start first, of these the first; its earliest start.

    The considered jobs stand in the order of their priority, so ties are its.
    """
    model.cp.add_decision_strategy(
        model.starts, cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE
    )
