"""The best there is, for small instances: what dispatchers and agents can be measured against.

The model is PCP'19's (Galleguillos 2020, section 2.2), since it counts what nodes have free, as the
engine does; PCP'20's contiguous positions are stricter. With enough work the solver proves its
schedule best, for up to about ten jobs on a few nodes; beyond that it gives a bound. The search is
the solver's own, which proves more with the same work than the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.baselines.cp import dispatchers
from hpcgym.baselines.cp.dispatcher import ModelOutcome, SearchLimits, solve
from hpcgym.baselines.cp.problem import CPSchedule, Objective, Problem, pose, slowdown
from hpcgym.baselines.dispatchers import sdprb
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers.view import PassView

if TYPE_CHECKING:
    import pandas as pd


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
    found = answer.schedule
    nodes = found.nodes if found.nodes is not None else problem.planned
    start = np.empty(len(problem.places), dtype=np.int64)
    start[problem.places] = found.start
    by_place = dict(zip(problem.places.tolist(), nodes, strict=True))
    cost = problem.weights.cost(found.start)
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
    limits = _whole_queue(view, work, presolve=True)
    problem = pose(view, sdprb(view), objective(view), jobs=limits.jobs, units=limits.units)
    at_least = problem.weights.solver_cost(problem.earliest)
    if problem.weights.solver_cost(problem.plan.start) == at_least:
        return problem, ModelOutcome(problem.plan, False, "plan is optimal", at_least, 0.0)
    return problem, solve(problem, dispatchers.build_pcp19(problem), limits, fixed=False)


def _whole_queue(view: PassView, work: float, presolve: bool = False) -> SearchLimits:
    """Return limits by which all that waits is considered, if only nothing."""
    jobs, units = max(len(view.units), 1), max(int(view.units.sum()), 1)
    return SearchLimits(jobs=jobs, units=units, work=work, presolve=presolve)


def known_best(views: Mapping[str, PassView], work: float = 10.0) -> pd.DataFrame:
    """Return the best known total slowdown of small instances.

    Parameters
    ----------
    views : name -> state, each with a queue of at most about ten jobs.
    work : deterministic seconds of CP-SAT at most, for each instance and model.

    Returns
    -------
    One row an instance: ``instance``; queued ``jobs`` and their ``units``; ``nodes`` of the
    machine; total slowdown of the list schedule by slowdown (``heuristic``), of ``pcp20`` with the
    same work and the ``best`` known; the ``bound``; whether the best is proved ``optimal``.

    Raises
    ------
    HpcgymError : views that are not a mapping of names to views, or what :func:`exact` raises.
    """
    import pandas as pd

    if not isinstance(views, Mapping):
        raise HpcgymError(
            f"views must be a mapping such as {{'one': view}}, not {type(views).__name__}"
        )

    rows = []
    for name, view in views.items():
        best = exact(view, slowdown, work)
        contiguous = _pcp20(view, work)
        rows.append(
            {
                "instance": name,
                "jobs": len(view.units),
                "units": int(view.units.sum()),
                "nodes": len(view.capacity),
                "heuristic": best.heuristic,
                "pcp20": contiguous,
                "best": min(best.objective, contiguous),
                "bound": best.bound,
                "optimal": best.optimal,
            }
        )
    return pd.DataFrame(rows)


def _pcp20(view: PassView, work: float) -> float:
    """Return the total slowdown that PCP'20 finds for the whole queue."""
    limits = _whole_queue(view, work)
    dispatcher = dispatchers.PCP20(limits)
    problem = dispatcher.pose(view)
    answer = solve(problem, dispatcher.model(problem), limits, fixed=dispatcher.fixed)
    schedule: CPSchedule = answer.schedule
    return problem.weights.cost(schedule.start)
