"""The dispatchers as their authors' programs run them: ``cph-0:as=published`` and the like.

Read off github.com/cgalleguillosm/accasim (``extra/dispatching_methods/cph_scheduler.py``, of
December 2017 for CPH, when Remediani 2017 was written) and github.com/cgalleguillosm/cp_dispatchers
(folder PCP20 at commit 6a60207 for HCP'19, PCP'19 and PCP'20). Models, weights and orders are those
of the other modules here; what differs is which jobs are in the model, by which priority, how long
it is solved, and what happens if nothing is found.

- CPH models the first 100 jobs in the order of submission, whether they fit or not. A job has the
  priority of when it came among these, and keeps it: the program's sorted list skips jobs that it
  has. So most have that of their submission: the queue, then the expected area.
- HCP'19, PCP'19 and PCP'20 model the first 100 jobs by priority of those that fit now.
- CPH's and HCP'19's search is SetTimes: the interval of the earliest start, of these the shortest,
  of these the first by priority, which starts then or is postponed. That is what
  ``misc/heuristic_search.cc`` comes to: its greedy choice by priority is overruled by its second
  loop, which takes a shorter interval.
- A solver has one second. CPH tries again with twice the time as long as nothing is found, up to
  128 s; PCP'20 half a second more, four times. HCP'19 and PCP'19 try up to 16 s until the best is
  proved, or two tries come to the same objective.
- Where that fails, the next model of HCP'19, PCP'19 and PCP'20 has half as many jobs, and so on
  until one succeeds. If PCP'20 finds nothing, nothing starts.
- A schedule of pools gets its nodes by best fit, in the order of priority. The programs take any
  allocator; best fit ("consolidation") is that of Galleguillos et al. 2020.

What is not the programs': the largest expected wait is the machine's, not of the jobs that are
there; a job that comes among the first 100 later than its submission has the priority of the next
pass at which something fits; and limits are counted in operations. OR-Tools still has the classes
of CPH and HCP'19 (``pywrapcp``), not those of PCP'19, PCP'20 and pure CP (``Alternative``, boxes of
variable size and their search): these are solved by CP-SAT, without a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.constraint_solver import pywrapcp

from hpcgym.baselines.cp.dispatcher import (
    CPDispatcher,
    SearchLimits,
    SolverResult,
    entry_of,
    search,
)
from hpcgym.baselines.cp.problem import CPSchedule, Problem, pose
from hpcgym.baselines.dispatchers import demand, published_urgency, slowdown
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers import BEST_FIT
from hpcgym.scheduler.dispatchers.view import PassView

Ints = NDArray[np.int64]
Priority = Callable[[PassView], NDArray[np.float64]]

#: Branches of the older solver that stand for a second: about what one core of 2024 does with 100
#: jobs queued and 158 running (4,200; with 30 queued 9,500).
BRANCHES_A_SECOND = 5_000

#: Seconds of a try after the other.
_DOUBLED = tuple(float(2**k) for k in range(8))
_PCP20 = (1.0, 1.5, 2.0, 2.5, 3.0)


@dataclass(frozen=True)
class AuthorsProgram:
    """What an authors' program does beside its model.

    Attributes
    ----------
    priority : of jobs, the largest first; ties by less demand (Remediani 2017, eq. 4.2).
    frozen : whether a job keeps the priority that it had when it came among the first; the jobs of
        a model are then the first submitted. Else it is of now, and they are those that fit.
    seconds : of each try.
    until_proved : whether it tries until the best is proved or found twice; else until any is.
    by_duration : whether shorter jobs come first among equals, before the demand.
    """

    priority: Priority
    frozen: bool = False
    seconds: tuple[float, ...] = _DOUBLED[:5]
    until_proved: bool = True
    by_duration: bool = False


#: Name -> program. That of CPH-1 to 3, which is not public, is CPH-0's with the priorities of
#: Remediani 2017, 4.2.1.
PROGRAMS: dict[str, AuthorsProgram] = {
    "cph-0": AuthorsProgram(published_urgency, True, _DOUBLED, False),
    "cph-1": AuthorsProgram(slowdown, True, _DOUBLED, False),
    "cph-2": AuthorsProgram(published_urgency, True, _DOUBLED, False),
    "cph-3": AuthorsProgram(slowdown, True, _DOUBLED, False),
    "hcp19": AuthorsProgram(slowdown),
    "pcp19": AuthorsProgram(slowdown),
    "pcp20": AuthorsProgram(slowdown, seconds=_PCP20, until_proved=False, by_duration=True),
}


class Published:
    """A dispatcher of this folder as its authors' program runs it.

    Attributes
    ----------
    of : the dispatcher as it is improved here, whose model and objective it has.
    limits : ``jobs`` of the model at most; ``work``, what stands for a second of theirs: seconds of
        CP-SAT's deterministic time, or multiples of :data:`BRANCHES_A_SECOND`; and ``seed``.
    name, log : as those of :class:`hpcgym.baselines.cp.dispatcher.CPDispatcher`; ``status`` is
        ``unknown`` where nothing was found, and nothing starts then.

    Raises
    ------
    HpcgymError : a dispatcher that no program is known of.
    """

    own_nodes = True

    def __init__(self, of: CPDispatcher, limits: SearchLimits | None = None) -> None:
        if of.name not in PROGRAMS:
            raise HpcgymError(f"{of.name}: no program of its authors is known")
        self.of, self.program = of, PROGRAMS[of.name]
        self.limits = limits or SearchLimits(jobs=100, units=1_000_000, work=1.0)
        self.name = f"{of.name}:as=published"
        self.begin()

    def __repr__(self) -> str:
        given = self.limits
        return f"{self.name}(jobs={given.jobs}, work={given.work:g}, seed={given.seed})"

    def begin(self) -> None:
        """Begin a new simulation: with a log of its own, the whole window, and no jobs known."""
        self.log: list[dict[str, Any]] = []
        self._jobs = self.limits.jobs
        self._keys: dict[int, tuple[float, float, int]] = {}
        self._beyond: set[int] = set()

    def __call__(self, view: PassView) -> list[tuple[int, Ints]]:
        """Return the places that start now, each with the node of each unit."""
        view = replace(view, allocation=BEST_FIT)
        fits = view.fits()
        if not fits.any():
            return []
        begin = perf_counter()
        window = self._first(view) if self.program.frozen else self._fitting(view, fits)
        problem = self._pose(view, window)
        result, solved, size = self._solve(problem)
        starts = [] if result.schedule is None else _placed(problem, result.schedule)
        if not self.program.frozen:
            at_most = self._jobs if self.program.until_proved else min(self._jobs, len(window))
            self._jobs = self.limits.jobs if solved else max(1, at_most // 2)
        seconds = perf_counter() - begin
        planned = 0 if result.schedule is None else int((result.schedule.start == 0).sum())
        entry = entry_of(problem, size, result)
        entry |= {"started": len(starts), "postponed": planned - len(starts)}
        self.log.append(entry | {"model_s": seconds - result.seconds})
        self._beyond -= {int(view.job[place]) for place, _ in starts}
        return starts

    @property
    def stopped(self) -> bool:
        """Whether nothing started at its last call."""
        return bool(self.log) and not self.log[-1]["started"]

    def _pose(self, view: PassView, window: Ints) -> Problem:
        """Return the problem of some jobs, in this order."""
        rest = np.setdiff1d(np.arange(len(view.job)), window)
        problem = pose(
            view,
            np.concatenate([window, rest]),
            self.of.objective(view),
            jobs=len(window),
            units=int(view.units.sum()),
            pooled=self.of.pooled,
        )
        # PCP'20's model leaves out nodes that only a schedule worse than the list's can use
        return replace(problem, bounded=self.of.name == "pcp20")

    # --- Which jobs, and in which order -----------------------------------------------------------

    def _fitting(self, view: PassView, fits: NDArray[np.bool_]) -> Ints:
        """Return the places of the first jobs by priority that fit now."""
        keys = [demand(view), -self.program.priority(view)]
        if self.program.by_duration:
            keys.insert(1, view.duration)
        order = np.lexsort(keys)
        return order[fits[order]][: self._jobs]

    def _first(self, view: PassView) -> Ints:
        """Return the places of the first submitted jobs, by their priority at submission.

        At equal priority the job that came last is first, as the program inserts from the left.
        """
        rows = view.job.tolist()
        now = self.program.priority(view)
        at_submission = self.program.priority(replace(view, wait=np.zeros_like(view.wait)))
        area = demand(view)
        window = rows[: self.limits.jobs]
        for place, row in enumerate(window):
            if row not in self._keys:
                first = now if row in self._beyond else at_submission
                self._keys[row] = (-float(first[place]), float(area[place]), -len(self._keys))
        self._beyond = set(rows[self.limits.jobs :])
        places = sorted(range(len(window)), key=lambda place: self._keys[window[place]])
        return np.array(places, np.int64)

    # --- Solving ----------------------------------------------------------------------------------

    def _solve(self, problem: Problem) -> tuple[SolverResult, bool, tuple[int, int]]:
        """Return what is found, whether the program takes it for solved, and the model's size."""
        answers: list[SolverResult] = []
        size = (0, 0)
        for result, size in self._tries(problem):
            answers.append(result)
            if result.status == "optimal":
                return result, True, size
            if self.program.until_proved:
                costs = [None if of.schedule is None else _cost(problem, of) for of in answers[-2:]]
                if len(costs) == 2 and costs[0] == costs[1] is not None:
                    return result, True, size
            elif result.schedule is not None:
                return result, True, size
        return answers[-1], False, size

    def _tries(self, problem: Problem) -> Iterator[tuple[SolverResult, tuple[int, int]]]:
        """Yield what one try after the other finds, and the size of its model."""
        if self.of.pooled:
            for seconds in self.program.seconds:
                # a branch a job for the first schedule: a second of theirs holds that
                work = seconds * self.limits.work * BRANCHES_A_SECOND
                yield set_times(problem, len(problem.places) + int(work))
            return
        model = self.of.model(problem)
        cp: Any = model.cp
        cp.clear_hints()
        size = len(model.cp.proto.variables), len(model.cp.proto.constraints)
        for seconds in self.program.seconds:
            limits = replace(self.limits, work=seconds * self.limits.work)
            yield search(model, limits, fixed=self.of.fixed), size


def _cost(problem: Problem, result: SolverResult) -> int:
    assert result.schedule is not None
    return problem.weights.solver_cost(result.schedule.start)


def _placed(problem: Problem, schedule: CPSchedule) -> list[tuple[int, Ints]]:
    """Return what starts now, with the nodes of the schedule, or of pools those of best fit."""
    now = np.flatnonzero(schedule.start == 0)
    if schedule.nodes is None:
        return problem.view.placed(problem.places[now])
    return [(int(problem.places[job]), schedule.nodes[job]) for job in now]


def set_times(problem: Problem, branches: int) -> tuple[SolverResult, tuple[int, int]]:
    """Return what OR-Tools' older solver finds on pools, by SetTimes, and how large its model is.

    The model is that of :func:`hpcgym.baselines.cp.models.schedule`.

    Parameters
    ----------
    problem : the jobs in the order of priority.
    branches : of the search, at most.
    """
    solver = pywrapcp.Solver("hpcgym")
    waiting = [
        solver.FixedDurationIntervalVar(0, problem.horizon, duration, False, "")
        for duration in problem.duration.tolist()
    ]
    _, taken, left = problem.running
    running = [solver.FixedDurationIntervalVar(0, 0, time, False, "") for time in left.tolist()]
    demands = problem.units[:, None] * problem.per_unit
    total = problem.view.total.tolist()
    asked = [r for r in range(len(total)) if demands[:, r].any()]
    for r in asked:
        of_each = np.concatenate([demands[:, r], taken[:, r]]).tolist()
        solver.Add(solver.Cumulative(waiting + running, of_each, total[r], ""))
    starts = [interval.StartExpr().Var() for interval in waiting]
    cost = solver.ScalProd(starts, problem.weights.whole.tolist()).Var()
    order = solver.Phase(waiting, solver.INTERVAL_SET_TIMES_FORWARD)
    limits = [solver.Minimize(cost, 1), solver.BranchesLimit(branches)]
    begin = perf_counter()
    solver.NewSearch(order, limits)
    best: CPSchedule | None = None
    while solver.NextSolution():
        best = CPSchedule(np.array([interval.Value() for interval in starts], np.int64), None)
    ended = solver.Branches() < branches
    solver.EndSearch()
    seconds = perf_counter() - begin
    size = (len(waiting), len(asked))
    if best is None:
        return SolverResult(None, "unknown", float("nan"), seconds), size
    bound = problem.weights.solver_cost(best.start) if ended else 0
    return SolverResult(best, "optimal" if ended else "feasible", float(bound), seconds), size
