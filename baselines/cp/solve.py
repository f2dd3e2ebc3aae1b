"""Solving a model within limits that are work, not time, so that a run repeats exactly."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from hpcgym.baselines.cp.pool_model import Model
from hpcgym.baselines.cp.problem import Problem, Schedule
from hpcgym.errors import HpcgymError

#: The largest seed that CP-SAT takes.
_MOST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Limits:
    """How much of a queue is considered, and how long.

    Attributes
    ----------
    jobs, units : the window, see :func:`problem.pose`.
    work : deterministic seconds of CP-SAT for each dispatch (``max_deterministic_time``): a count
        of its operations, the same on every machine; one takes 2 to 6 seconds of a slow core.
        With 0 the plan alone decides.
    seed : of the solver.
    presolve : whether CP-SAT simplifies the model first: not worth its time in small budgets.

    Raises
    ------
    HpcgymError : jobs or units that are no whole number of at least 1, work that is no number of at
        least 0, or a seed that is no whole number from 0 to 2^31 - 1.
    """

    jobs: int = 12
    units: int = 400
    work: float = 0.03
    seed: int = 0
    presolve: bool = False

    def __post_init__(self) -> None:
        settle = object.__setattr__
        for name, least, most in (("jobs", 1, None), ("units", 1, None), ("seed", 0, _MOST_SEED)):
            settle(self, name, _whole(name, getattr(self, name), least, most))
        try:
            work = float(self.work)
        except (TypeError, ValueError):
            work = -1.0
        if not work >= 0:  # nor is nan
            raise HpcgymError(f"work must be a number of at least 0, not {self.work!r}")
        settle(self, "work", work)


def _whole(name: str, value: Any, least: int, most: int | None) -> int:
    """Return a whole number as an int, or say that it cannot be one."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or (most is not None and number > most):
        upto = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise HpcgymError(f"{name} must be a whole number {upto}, not {value!r}")
    return number


#: For models without units and nodes: units cost nothing there, and more jobs can be considered.
POOLED = Limits(jobs=24, units=1_000_000, work=0.02)


@dataclass(frozen=True)
class Answer:
    """What came of a model.

    Attributes
    ----------
    schedule : the solver's if it is better than the plan, else the plan.
    solved : whether it is the solver's.
    status : ``optimal``, ``feasible`` (a schedule, not proved best), ``infeasible`` (the model
        admits nothing as good as the plan) or ``unknown`` (nothing within the limits).
    bound : no schedule of the model costs less, in the solver's whole numbers.
    seconds : of the solver.
    """

    schedule: Schedule
    solved: bool
    status: str
    bound: int
    seconds: float


def parameters(limits: Limits, *, fixed: bool) -> dict[str, Any]:
    """Return the parameters of CP-SAT by name; ``fixed`` as for :func:`solve`."""
    search = cp_model.FIXED_SEARCH if fixed else cp_model.AUTOMATIC_SEARCH
    return {
        "num_workers": 1,
        "random_seed": limits.seed,
        "max_deterministic_time": limits.work,
        "cp_model_presolve": limits.presolve,
        "cp_model_probing_level": 0,
        "symmetry_level": 0,
        "linearization_level": 0,
        "search_branching": search,
    }


def solve(problem: Problem, model: Model, limits: Limits, *, fixed: bool) -> Answer:
    """Return the best schedule found within the limits; never worse than the plan.

    Parameters
    ----------
    problem : what the model is of.
    model : with its hint and search.
    limits : of the solver.
    fixed : follow the model's search strategy (``FIXED_SEARCH``), after the hint; otherwise the
        solver's own search for one worker.
    """
    found = search(model, limits, fixed=fixed)
    best = problem.weights.solver_cost(problem.plan.start)
    trivial = problem.weights.solver_cost(problem.earliest)
    if found.status == "infeasible":
        return Answer(problem.plan, False, found.status, best, found.seconds)
    if found.schedule is None:
        return Answer(problem.plan, False, "unknown", trivial, found.seconds)
    bound = max(trivial, round(found.bound))
    cost = problem.weights.cost(found.schedule.start)
    if cost >= problem.weights.cost(problem.plan.start):
        return Answer(problem.plan, False, found.status, min(bound, best), found.seconds)
    return Answer(found.schedule, True, found.status, bound, found.seconds)


@dataclass(frozen=True)
class Found:
    """What the solver itself found of a model.

    Attributes
    ----------
    schedule : its best; None if it came to none.
    status : as of :class:`Answer`.
    bound : the solver's, on its whole numbers; nan without a schedule.
    seconds : of the solver.
    """

    schedule: Schedule | None
    status: str
    bound: float
    seconds: float


def search(model: Model, limits: Limits, *, fixed: bool) -> Found:
    """Return what the solver finds of a model within the limits; arguments as of :func:`solve`."""
    solver = cp_model.CpSolver()
    for name, value in parameters(limits, fixed=fixed).items():
        setattr(solver.parameters, name, value)
    begin = perf_counter()
    code = solver.solve(model.cp)
    seconds = perf_counter() - begin
    if code not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        status = "infeasible" if code == cp_model.INFEASIBLE else "unknown"
        return Found(None, status, float("nan"), seconds)
    status = "optimal" if code == cp_model.OPTIMAL else "feasible"
    start = np.array([solver.value(one) for one in model.starts], dtype=np.int64)
    nodes = model.nodes(solver.value) if model.nodes is not None else None
    return Found(Schedule(start, nodes), status, solver.best_objective_bound, seconds)
