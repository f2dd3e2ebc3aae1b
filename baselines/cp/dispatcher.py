"""What the dispatchers share: from a view to a solved model, what starts, and a log of it.

A model is solved within limits that are work, not time; jobs beyond the window are placed after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from hpcgym.baselines.cp.models import CPModel
from hpcgym.baselines.cp.problem import CPSchedule, Objective, Problem, hold, pose
from hpcgym.errors import HpcgymError, check_whole, is_number
from hpcgym.scheduler.dispatchers import BEST_FIT
from hpcgym.scheduler.dispatchers.view import PassView

# --- Jobs beyond the window -----------------------------------------------------------------------

Ints = NDArray[np.int64]


def beside(
    problem: Problem, schedule: CPSchedule, started: list[tuple[int, Ints]]
) -> list[tuple[int, Ints]]:
    """Return the jobs beyond the window that start now, each with the node of each unit.

    They are taken in the order of priority. One starts on what is free throughout its expected
    duration, given the expected ends of what runs and the planned starts of the considered jobs.
    Those are taken never to end, which leaves a little less. On pools, the totals have to leave
    room throughout, and the nodes now.

    Parameters
    ----------
    problem : of the pass.
    schedule : of the considered jobs.
    started : those of them that start now, with the node of each unit.
    """
    view = problem.view
    free = view.free.copy()
    for place, nodes in started:
        np.subtract.at(free, nodes, view.per_unit[place])
    times, room = _room(problem, schedule)
    fits = view.fits()
    extra: list[tuple[int, Ints]] = []
    for place in problem.rest[fits[problem.rest]].tolist():
        demand, units = view.per_unit[place], int(view.units[place])
        until = int(np.searchsorted(times, max(int(view.duration[place]), 1)))
        least = np.maximum(room[:until].min(axis=0), 0)
        if hold(least, demand).sum() < units:
            continue
        before = [earlier for earlier, _ in started + extra]
        for _, nodes in view.placed([place], free if problem.pooled else least, before):
            np.subtract.at(free, nodes, demand)
            spots = np.zeros_like(nodes) if problem.pooled else nodes
            room[:until] -= np.bincount(spots, minlength=room.shape[1])[:, None] * demand
            extra.append((place, nodes))
    return extra


def _room(problem: Problem, schedule: CPSchedule) -> tuple[Ints, Ints]:
    """Return now and the planned starts, (t,) [s] from now, and what is free then, (t, n, R).

    Between them more can only become free. On pools n is 1.
    """
    view = problem.view
    node, taken, left = problem.running
    if problem.pooled:
        free, node = view.free.sum(axis=0, keepdims=True), np.zeros_like(node)
        spots = np.zeros(int(problem.units.sum()), np.int64)
    else:
        assert schedule.nodes is not None, "only pools leave nodes open"
        free, spots = view.free, np.concatenate(schedule.nodes)
    times = np.unique(np.append(0, schedule.start))
    change = np.zeros((len(times), *free.shape), np.int64)
    ended = np.searchsorted(times, left)
    seen = ended < len(times)
    np.add.at(change, (ended[seen], node[seen]), taken[seen])
    begun = np.repeat(np.searchsorted(times, schedule.start), problem.units)
    demand = np.repeat(problem.per_unit, problem.units, axis=0)
    np.subtract.at(change, (begun, spots), demand)
    return times, free + np.cumsum(change, axis=0)


# --- Solving a model within limits that are work --------------------------------------------------

#: The largest seed that CP-SAT takes.
_MOST_SEED = 2**31 - 1


@dataclass(frozen=True)
class SearchLimits:
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
        for name, least in (("jobs", 1), ("units", 1), ("seed", 0)):
            object.__setattr__(self, name, check_whole(name, getattr(self, name), least))
        if self.seed > _MOST_SEED:
            raise HpcgymError(f"seed must be at most {_MOST_SEED}, not {self.seed}")
        if not is_number(self.work) or not self.work >= 0:  # nor is nan
            raise HpcgymError(f"work must be a number of at least 0, not {self.work!r}")


#: For models without units and nodes: units cost nothing there, and more jobs can be considered.
POOLED = SearchLimits(jobs=24, units=1_000_000, work=0.02)


@dataclass(frozen=True)
class ModelOutcome:
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

    schedule: CPSchedule
    solved: bool
    status: str
    bound: int
    seconds: float


def parameters(limits: SearchLimits, *, fixed: bool) -> dict[str, Any]:
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


def solve(problem: Problem, model: CPModel, limits: SearchLimits, *, fixed: bool) -> ModelOutcome:
    """Return the best schedule found within the limits; never worse than the plan.

    Parameters
    ----------
    problem : what the model is of.
    model : with its hint and search.
    limits : of the solver.
    fixed : follow the model's search strategy (``FIXED_SEARCH``), after the hint; otherwise the
        solver's own search for one worker.
    """
    result = search(model, limits, fixed=fixed)
    best = problem.weights.solver_cost(problem.plan.start)
    trivial = problem.weights.solver_cost(problem.earliest)
    if result.status == "infeasible":
        return ModelOutcome(problem.plan, False, result.status, best, result.seconds)
    if result.schedule is None:
        return ModelOutcome(problem.plan, False, "unknown", trivial, result.seconds)
    bound = max(trivial, round(result.bound))
    cost = problem.weights.cost(result.schedule.start)
    if cost >= problem.weights.cost(problem.plan.start):
        return ModelOutcome(problem.plan, False, result.status, min(bound, best), result.seconds)
    return ModelOutcome(result.schedule, True, result.status, bound, result.seconds)


@dataclass(frozen=True)
class SolverResult:
    """What the solver itself found of a model.

    Attributes
    ----------
    schedule : its best; None if it came to none.
    status : as of :class:`ModelOutcome`.
    bound : the solver's, on its whole numbers; nan without a schedule.
    seconds : of the solver.
    """

    schedule: CPSchedule | None
    status: str
    bound: float
    seconds: float


def search(model: CPModel, limits: SearchLimits, *, fixed: bool) -> SolverResult:
    """Return what the solver finds of a model within the limits; arguments as of :func:`solve`."""
    solver = cp_model.CpSolver()
    for name, value in parameters(limits, fixed=fixed).items():
        setattr(solver.parameters, name, value)
    begin = perf_counter()
    code = solver.solve(model.cp)
    seconds = perf_counter() - begin
    if code not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        status = "infeasible" if code == cp_model.INFEASIBLE else "unknown"
        return SolverResult(None, status, float("nan"), seconds)
    status = "optimal" if code == cp_model.OPTIMAL else "feasible"
    start = np.array([solver.value(variable) for variable in model.starts], dtype=np.int64)
    nodes = model.nodes(solver.value) if model.nodes is not None else None
    return SolverResult(CPSchedule(start, nodes), status, solver.best_objective_bound, seconds)


# --- What the dispatchers of this folder share ----------------------------------------------------


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
    objective : of a view.
    log : one entry for each pass at which something fitted; see :func:`entry_of`.
    """

    name: str
    #: Whether it chooses the nodes, and its lists the fullest first, whatever the scheduler says.
    own_nodes: ClassVar[bool] = False
    #: Whether the model is relaxed to pools.
    pooled: ClassVar[bool] = False
    #: The window and the work where none are given.
    usual = SearchLimits()

    def __init__(
        self,
        name: str,
        build: Callable[[Problem], CPModel],
        order: Callable[[PassView], Ints],
        objective: Callable[[PassView], Objective],
        limits: SearchLimits | None = None,
        *,
        fixed: bool = True,
    ) -> None:
        if not isinstance(limits, SearchLimits | None):
            raise HpcgymError(f"limits must be SearchLimits(...), not {limits!r}")
        self.name = name
        self.model = build
        self.limits = limits or self.usual
        self.fixed = fixed
        self.log: list[dict[str, Any]] = []
        self._order = order
        self.objective = objective

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
            self.objective(view),
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
            answer = ModelOutcome(problem.plan, False, "plan is optimal", plan_cost, 0.0)
        else:
            model = self.model(problem)
            answer = solve(problem, model, self.limits, fixed=self.fixed)
        starts, postponed = self._allocate(problem, answer)
        seconds = perf_counter() - begin
        size = (len(model.cp.proto.variables), len(model.cp.proto.constraints)) if model else (0, 0)
        decided = SolverResult(answer.schedule, answer.status, float(answer.bound), answer.seconds)
        entry = entry_of(problem, size, decided)
        entry |= {"started": len(starts), "postponed": postponed}
        entry["model_s"] = seconds - answer.seconds
        self.log.append(entry)
        return starts

    def _allocate(
        self, problem: Problem, answer: ModelOutcome
    ) -> tuple[list[tuple[int, Ints]], int]:
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


def entry_of(problem: Problem, size: tuple[int, int], decided: SolverResult) -> dict[str, Any]:
    """Return what the log says of a dispatch.

    ``time`` [s]; ``queued`` and ``considered`` jobs; ``units`` considered; ``variables`` and
    ``constraints`` of the model, ``size`` (0: not needed); ``status``, see :class:`ModelOutcome`,
    or ``plan is optimal`` without a model; the document's ``objective`` of the considered jobs, of
    what was decided, and of the plan (``heuristic``, the list in the order of priority); ``bound``
    below it; ``gap`` = (objective - bound) / objective; and ``solve_s``, seconds of the solver. The
    dispatcher adds ``started`` and ``postponed`` jobs (no nodes found for the latter), and the
    seconds of everything but the solver, ``model_s``.

    Where nothing was decided, the objective is nan, and the gap 1.
    """
    objective, bound, gap = float("nan"), 0.0, 1.0
    if decided.schedule is not None:
        objective = problem.weights.cost(decided.schedule.start)
        bound = min(problem.weights.as_cost(decided.bound), objective)
        gap = (objective - bound) / objective if objective > 0 else 0.0
    return {
        "time": int(problem.view.time),
        "queued": len(problem.view.job),
        "considered": len(problem.places),
        "units": int(problem.units.sum()),
        "variables": size[0],
        "constraints": size[1],
        "status": decided.status,
        "objective": objective,
        "heuristic": problem.weights.cost(problem.plan.start),
        "bound": bound,
        "gap": gap,
        "solve_s": decided.seconds,
    }
