"""What the dispatchers of this folder share: from a view to what starts, and a log of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp.beside import beside
from hpcgym.baselines.cp.objective import Objective
from hpcgym.baselines.cp.pool_model import Model
from hpcgym.baselines.cp.problem import Problem, pose
from hpcgym.baselines.cp.solve import Answer, Limits, solve
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers import BEST_FIT
from hpcgym.scheduler.dispatchers.view import PassView

Ints = NDArray[np.int64]


class CPDispatcher:
    """Solves a model of the first jobs of the queue at each pass; starts those whose start is now.

    A shortcut is taken where it cannot change what the model could decide: nothing that waits fits
    now, so nothing starts; or the heuristic's schedule has every job at the earliest it could start
    if alone, so it is optimal. Jobs beyond the window start where that leaves the planned starts
    possible, see :func:`beside`. On a machine where nothing runs something always starts.

    Attributes
    ----------
    name : of the dispatcher.
    model : returns the model of a problem.
    limits : of the window and the solver.
    fixed : whether the solver follows the model's search strategy; else it searches its own way.
    log : one entry for each pass at which something fitted; see :meth:`_entry`.
    """

    name: str
    #: Whether it chooses the nodes, and its lists the fullest first, whatever the scheduler says.
    own_nodes: ClassVar[bool] = False
    #: Whether the model is relaxed to pools.
    pooled: ClassVar[bool] = False
    #: The window and the work where none are given.
    usual = Limits()

    def __init__(
        self,
        name: str,
        build: Callable[[Problem], Model],
        order: Callable[[PassView], Ints],
        objective: Callable[[PassView], Objective],
        limits: Limits | None = None,
        *,
        fixed: bool = True,
    ) -> None:
        if not isinstance(limits, Limits | None):
            raise HpcgymError(f"limits must be Limits(...), not {limits!r}")
        self.name = name
        self.model = build
        self.limits = limits or self.usual
        self.fixed = fixed
        self.log: list[dict[str, Any]] = []
        self._order = order
        self._objective = objective

    def __repr__(self) -> str:
        of = self.limits
        return f"{self.name}(jobs={of.jobs}, units={of.units}, work={of.work:g}, seed={of.seed})"

    def begin(self) -> None:
        """Begin a new simulation: with a log of its own."""
        self.log = []

    def pose(self, view: PassView) -> Problem:
        """Return the problem of a pass: the window of the queue, as this dispatcher weighs it."""
        if self.own_nodes:
            view = replace(view, allocation=BEST_FIT)
        return pose(
            view,
            self._order(view),
            self._objective(view),
            jobs=self.limits.jobs,
            units=self.limits.units,
            pooled=self.pooled,
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
        view, planned = problem.view, answer.schedule.nodes
        now = np.flatnonzero(answer.schedule.start == 0)
        if planned is None:
            starts = view.placed(problem.places[now])
        else:
            starts = [(int(problem.places[job]), planned[job]) for job in now]
        postponed = len(now) - len(starts)
        starts += beside(problem, answer.schedule, starts)
        if not starts and not len(view.running_end):
            starts = view.placed(problem.places)
        return starts, postponed

    def _entry(self, problem: Problem, model: Model | None, answer: Answer) -> dict[str, Any]:
        """Return what the log says of a dispatch.

        ``time`` [s]; ``queued`` and ``considered`` jobs; ``units`` considered; ``variables`` and
        ``constraints`` of the model (0: not needed); ``status``, see :class:`Answer`, or ``plan is
        optimal`` without a model; the document's ``objective`` of the considered jobs, of what was
        decided, and of the plan (``heuristic``, the list in the order of priority); ``bound`` below
        it; ``gap`` = (objective - bound) / objective; ``started`` and ``postponed`` jobs (no nodes
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
            "heuristic": problem.weights.cost(problem.plan.start),
            "bound": bound,
            "gap": (objective - bound) / objective if objective > 0 else 0.0,
            "solve_s": answer.seconds,
        }
