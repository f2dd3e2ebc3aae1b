"""What the dispatchers of this folder share: from a view to what starts, and a log of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp.objective import Objective
from hpcgym.baselines.cp.pool_model import Model
from hpcgym.baselines.cp.problem import Problem, hold, pose
from hpcgym.baselines.cp.solve import Answer, Limits, solve
from hpcgym.dispatching import BEST_FIT
from hpcgym.dispatching.view import PassView

Ints = NDArray[np.int64]


class CPDispatcher:
    """Solves a model of the first jobs of the queue at each pass; starts those whose start is now.

    A shortcut is taken where it cannot change what the model could decide: nothing that waits fits
    now, so nothing starts; or the heuristic's schedule has every job at the earliest it could start
    if alone, so it is optimal. Jobs beyond the window start if they fit beside those, in the order
    of priority. On a machine where nothing runs something always starts.

    Attributes
    ----------
    name : of the dispatcher.
    limits : of the window and the solver.
    fixed : whether the solver follows the model's search strategy only.
    log : one entry for each pass at which something fitted; see :meth:`_entry`.
    """

    name: str
    #: Whether the lists fill the fullest nodes first (best fit), whatever the scheduler says.
    best_fit: ClassVar[bool] = False
    #: The window and the work where none are given.
    usual = Limits()

    def __init__(
        self,
        name: str,
        order: Callable[[PassView], Ints],
        objective: Callable[[PassView], Objective],
        limits: Limits | None = None,
        *,
        fixed: bool = False,
    ) -> None:
        self.name = name
        self.limits = limits or self.usual
        self.fixed = fixed
        self.log: list[dict[str, Any]] = []
        self._order = order
        self._objective = objective

    def model(self, problem: Problem) -> Model:
        """Return the model of a problem."""
        raise NotImplementedError

    def pose(self, view: PassView) -> Problem:
        """Return the problem of a pass: the window of the queue, as this dispatcher weighs it."""
        if self.best_fit:
            view = replace(view, allocation=BEST_FIT)
        return pose(
            view,
            self._order(view),
            self._objective(view),
            jobs=self.limits.jobs,
            units=self.limits.units,
        )

    def __call__(self, view: PassView) -> list[tuple[int, Ints]]:
        """Return the places that start now, each with the node of each unit."""
        fits = view.fits()
        if not fits.any():
            return []
        begin = perf_counter()
        problem = self.pose(view)
        plan_cost = problem.weights.solver_cost(problem.plan.start)
        model = None
        if plan_cost <= problem.weights.solver_cost(problem.earliest):
            answer = Answer(problem.plan, False, "plan is optimal", plan_cost, 0.0)
        else:
            model = self.model(problem)
            answer = solve(problem, model, self.limits, fixed=self.fixed)
        starts, postponed = self._allocate(problem, answer)
        seconds = perf_counter() - begin
        entry = self._entry(problem, model, answer)
        entry |= {"started": len(starts), "postponed": postponed}
        entry["model_s"] = seconds - answer.seconds
        self.log.append(entry)
        return starts

    def _allocate(self, problem: Problem, answer: Answer) -> tuple[list[tuple[int, Ints]], int]:
        """Return what starts now with its nodes, and how many considered jobs found no nodes."""
        view, free = problem.view, problem.view.free.copy()
        now = np.flatnonzero(answer.schedule.start == 0)
        planned = answer.schedule.nodes
        if planned is None:
            starts = _place(view, free, problem.places[now].tolist())
        else:
            starts = [(int(problem.places[job]), planned[job]) for job in now]
            for job in now.tolist():
                np.subtract.at(free, planned[job], problem.per_unit[job])
        postponed = len(now) - len(starts)
        fits = view.fits()
        starts += _place(view, free, problem.rest[fits[problem.rest]].tolist())
        if not starts and not len(view.running_end):
            starts = _place(view, free, problem.places.tolist())
        return starts, postponed

    def _entry(self, problem: Problem, model: Model | None, answer: Answer) -> dict[str, Any]:
        """Return what the log says of a dispatch.

        ``time`` [s]; ``queued`` and ``considered`` jobs; ``units`` considered; ``variables`` and
        ``constraints`` of the model (0: not needed); ``status``, see :class:`Answer`, or ``plan is
        optimal`` without a model; the document's ``objective`` of the considered jobs, of what was
        decided, and of the ``heuristic`` (the list in the order of priority); ``bound`` below it
        and ``gap`` = (objective - bound) / objective; ``started`` and ``postponed`` jobs (no nodes
        found for the latter); seconds of everything but the solver, ``model_s``, and of it,
        ``solve_s``.
        """
        objective = problem.weights.cost(answer.schedule.start)
        bound = min(problem.weights.as_cost(answer.bound), objective)
        return {
            "time": int(problem.view.time),
            "queued": len(problem.view.job),
            "considered": len(problem.places),
            "units": int(problem.units.sum()),
            "variables": len(model.cp.proto.variables) if model else 0,
            "constraints": len(model.cp.proto.constraints) if model else 0,
            "status": answer.status,
            "objective": objective,
            "heuristic": problem.weights.cost(problem.heuristic),
            "bound": bound,
            "gap": (objective - bound) / objective if objective > 0 else 0.0,
            "solve_s": answer.seconds,
        }


def _place(view: PassView, free: Ints, places: list[int]) -> list[tuple[int, Ints]]:
    """Return those that find nodes, taking them in this order, and take what they ask for."""
    found = []
    for place in places:
        demand, units = view.per_unit[place], int(view.units[place])
        nodes = place_job(free, view.total, demand, units, view.allocation == BEST_FIT)
        if nodes is not None:
            np.subtract.at(free, nodes, demand)
            found.append((place, nodes))
    return found


def place_job(free: Ints, total: Ints, demand: Ints, units: int, best_fit: bool) -> Ints | None:
    """Return the node of each unit of a job, or None if it does not fit.

    Parameters
    ----------
    free : (n, R).
    total : (R,) of the machine.
    demand : (R,) of a unit.
    units : how many.
    best_fit : nodes with the least free first, by the sum of its shares of the machine; else by
        number (first fit). Each takes as many units as it holds.
    """
    holds = hold(free, demand)
    if int(holds.sum()) < units:
        return None
    order = np.arange(len(free))
    if best_fit:
        order = np.argsort((free / np.maximum(total, 1)).sum(axis=1), kind="stable")
    before = np.cumsum(holds[order]) - holds[order]
    taken = np.clip(units - before, 0, holds[order])
    return np.repeat(order, taken).astype(np.int64)
