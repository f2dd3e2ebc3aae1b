"""Models alone: what PCP'19 and PCP'20 make of the same instances."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp.problem import hold
from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.benchmarks.cp.configurations import Run, rules_of
from hpcgym.benchmarks.cp.simulations import loaded
from hpcgym.simulation.run import simulate

Ints = NDArray[np.int64]

# --- Models of the same instances -----------------------------------------------------------------

#: Machine -> the runs whose states are saved; published are those of PCP'19 on Eurora.
DRIVERS = {
    "eurora": (Run("pcp19", "D"), Run("pcp19", "R")),
    "eurora-figure-6": (Run("pcp19", "D"),),
    "kit-forhlr-ii": (Run("pcp20", "R"),),
}

#: What is asked at each state.
ASKED = ("pcp20", "pcp19")

#: How many states are compared, spread evenly over the run.
NUMBER = 60


class Saving:
    """Calls a dispatcher, and saves some of the states that it was called at.

    Attributes
    ----------
    saved : pickled views, evenly spread over all calls: each ``stride``-th.
    """

    def __init__(self, dispatcher: Any, number: int) -> None:
        self.dispatcher, self.number = dispatcher, number
        self.saved: list[bytes] = []
        self.stride, self._calls = 1, 0

    def __call__(self, view: Any) -> Iterable[Any]:
        """Return what the dispatcher returns."""
        if self._calls % self.stride == 0:
            self.saved.append(pickle.dumps(view))
            if len(self.saved) >= 2 * self.number:
                self.saved, self.stride = self.saved[::2], 2 * self.stride
        self._calls += 1
        chosen: Iterable[Any] = self.dispatcher(view)
        return chosen


def compare_one(task: dict[str, Any]) -> dict[str, Any]:
    """Ask PCP'20 and PCP'19 at the states of one run, of the first seed.

    Parameters
    ----------
    task : as :func:`simulations.simulate_one` takes it, and "number" of states.

    Returns
    -------
    For each state a pair, PCP'20's and PCP'19's: ``variables`` of the models as they are built
    here, ``constraints``, ``as_published``, the variables as Galleguillos 2020 counts them,
    ``seconds`` of CPU time, ``objective``. And ``hints``, for the states at which the list's
    schedule is above the trivial bound: a dictionary each for either dispatcher with and without
    ``hint``, see :func:`_asked`.
    """
    seeds = tuple(task["seeds"])
    workloads, cluster = loaded(task["machine"], task["days"], seeds, task["jobs_sha256"])
    saving = Saving(find_dispatcher(task["dispatcher"]), task["number"])
    rules = rules_of(Run(task["dispatcher"], task["duration"]), saving)
    simulate(workloads[0], rules, cluster=cluster)
    keys = ("variables", "constraints", "seconds", "objective", "as_published")
    found: dict[str, list[Any]] = {key: [] for key in (*keys, "hints")}
    for packed in saving.saved:
        view = pickle.loads(packed)
        asked = [_asked(name, view) for name in ASKED]
        sizes = published_sizes(*considered(view))
        for one, published in zip(asked, sizes, strict=True):
            one["as_published"] = published
        for key in keys:
            found[key].append([one[key] for one in asked])
        if asked[0]["open"]:
            bare = [_asked(name, view, hint=False) for name in ASKED]
            found["hints"] += [{key: one[key] for key in _OF_HINTS} for one in (*asked, *bare)]
    return found


_OF_HINTS = ("dispatcher", "hint", "considered", "found", "better", "gap")


def _asked(name: str, view: Any, *, hint: bool = True) -> dict[str, Any]:
    """Return what one dispatcher's model of a state is like, made and solved in any case.

    A dispatcher takes a shortcut where the heuristic's schedule is optimal; the papers' do not.

    Parameters
    ----------
    name : of the dispatcher.
    view : the state.
    hint : whether the solver is given the list's schedule.

    Returns
    -------
    Sizes, time and objective, see :func:`compare_one`; ``dispatcher`` and ``hint`` as given;
    ``considered`` jobs; ``open``, whether the list's schedule is above the trivial bound;
    ``found``, whether the solver came to any schedule or proved that there is none as good as the
    list's; ``better``, whether its schedule is better than the list's; ``gap``, the share of the
    objective that is above the bound.
    """
    from hpcgym.baselines.cp.dispatcher import solve

    dispatcher: Any = find_dispatcher(name)
    began = time.process_time()
    problem = dispatcher.pose(view)
    model = dispatcher.model(problem)
    if not hint:
        model.cp.clear_hints()
    answer = solve(problem, model, dispatcher.limits, fixed=dispatcher.fixed)
    seconds = time.process_time() - began
    weights = problem.weights
    objective = weights.cost(answer.schedule.start)
    bound = min(weights.as_cost(answer.bound), objective)
    lists, least = (weights.solver_cost(of) for of in (problem.plan.start, problem.earliest))
    return {
        "dispatcher": name,
        "hint": hint,
        "considered": len(problem.places),
        "open": lists > least,
        "found": answer.status != "unknown",
        "better": answer.solved,
        "gap": (objective - bound) / objective,
        "seconds": seconds,
        "variables": len(model.cp.proto.variables),
        "constraints": len(model.cp.proto.constraints),
        "objective": objective,
    }


def considered(view: Any) -> tuple[Ints, Ints, Ints]:
    """Return units and demands of the jobs that a model of the state has, and the capacity."""
    dispatcher: Any = find_dispatcher("pcp20")
    problem = dispatcher.pose(view)
    return problem.units, problem.per_unit, view.capacity


def published_sizes(units: Ints, per_unit: Ints, capacity: Ints) -> tuple[int, int]:
    """Return the numbers of decision variables of PCP'20 and PCP'19 by Galleguillos et al. 2020.

    PCP'20 has |Q| + sum rn_i |R| (section 3). PCP'19 has |Q| + sum over jobs and nodes of p_i,n,
    the least of rn_i and how often a unit fits into the empty node (section 2.2).

    Parameters
    ----------
    units : (q,) rn_i.
    per_unit : (q, R) req_i,r / rn_i.
    capacity : (N, R) cap_n,r.
    """
    q, r = per_unit.shape
    alternatives = q
    for number, demand in zip(units.tolist(), per_unit, strict=True):
        alternatives += int(np.minimum(hold(capacity, demand), number).sum())
    return q + int(units.sum()) * r, alternatives
