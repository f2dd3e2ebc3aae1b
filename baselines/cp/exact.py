"""The best there is, for small instances: what dispatchers and agents can be measured against.

The model is PCP'19's (Galleguillos 2020, section 2.2), since it counts what nodes have free, as the
engine does; PCP'20's contiguous positions are stricter. With enough work the solver proves its
schedule best, for up to about ten jobs on a few nodes; beyond that it gives a bound. The search is
the solver's own, which proves more with the same work than the paper's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hpcgym.baselines.cp import dispatchers
from hpcgym.baselines.cp.dispatcher import ModelOutcome, SearchLimits, solve
from hpcgym.baselines.cp.problem import Objective, Problem, pose, slowdown
from hpcgym.baselines.dispatchers import sdprb
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers.view import PassView


@dataclass(frozen=True)
class Exact:
    """The best known schedule of a whole queue.

    Attributes
    ----------
    start : (q,) [s] from now.
    nodes : of each queued job, the node of each unit.
    objective : of that schedule.
    bound : no schedule is below it.
    heuristic : the objective of the list schedule in the order of slowdown.
    optimal : whether no schedule is better.
    """

    start: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    nodes: list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]
    objective: float
    bound: float
    heuristic: float
    optimal: bool


def exact(
    view: PassView,
    objective: Callable[[PassView], Objective] = slowdown,
    work: float = 10.0,
) -> Exact:
    """Return the best schedule of all that waits, given what runs.

    Parameters
    ----------
    view : the state; the whole queue is considered.
    objective : what is minimised: one of :mod:`hpcgym.baselines.cp.problem`.
    work : deterministic seconds of CP-SAT at most.

    Raises
    ------
    HpcgymError : no view, work that is no number of at least 0, or a job that never fits.
    """
    if not isinstance(view, PassView):
        raise HpcgymError(f"exact takes a PassView, not {type(view).__name__}")
    problem, answer = _best(view, objective, work)
    best = answer.schedule
    nodes = best.nodes if best.nodes is not None else problem.planned
    start = np.empty(len(problem.places), dtype=np.int64)
    start[problem.places] = best.start
    by_place = dict(zip(problem.places.tolist(), nodes, strict=True))
    cost = problem.weights.cost(best.start)
    return Exact(
        start=start,
        nodes=[by_place[place] for place in range(len(start))],
        objective=cost,
        bound=min(problem.weights.as_cost(answer.bound), cost),
        heuristic=problem.weights.cost(problem.plan.start),
        optimal=answer.status in _PROVED,
    )


#: Statuses of an answer that leave nothing better.
_PROVED = ("optimal", "infeasible", "plan is optimal")


def _best(
    view: PassView, objective: Callable[[PassView], Objective], work: float
) -> tuple[Problem, ModelOutcome]:
    """Return the problem of the whole queue and what PCP'19 finds."""
    # all that waits is considered, if only nothing
    jobs, units = max(len(view.units), 1), max(int(view.units.sum()), 1)
    limits = SearchLimits(jobs=jobs, units=units, work=work, presolve=True)
    problem = pose(view, sdprb(view), objective(view), jobs=jobs, units=units)
    at_least = problem.weights.solver_cost(problem.earliest)
    if problem.weights.solver_cost(problem.plan.start) == at_least:
        return problem, ModelOutcome(problem.plan, False, "plan is optimal", at_least, 0.0)
    return problem, solve(problem, dispatchers.build_pcp19(problem), limits, fixed=False)
