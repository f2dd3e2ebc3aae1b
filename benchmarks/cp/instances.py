"""Models alone: what PCP'19 and PCP'20 make of the same instances."""

from __future__ import annotations

import pickle
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp.problem import hold
from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.benchmarks.cp.runs import Run, load_jobs, rules_of
from hpcgym.benchmarks.studies.harness import check_same_jobs, hash_of
from hpcgym.simulation.run import simulate

Ints = NDArray[np.int64]

#: Machine -> the runs whose states are saved, of the first seed; published are those of PCP'19 on
#: Eurora.
DRIVERS = {
    "eurora-later": (Run("pcp19", "D"), Run("pcp19", "R")),
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

    def __call__(self, view: Any) -> list[Any]:
        """Return what the dispatcher returns."""
        if self._calls % self.stride == 0:
            self.saved.append(pickle.dumps(view))
            if len(self.saved) >= 2 * self.number:
                self.saved, self.stride = self.saved[::2], 2 * self.stride
        self._calls += 1
        return list(self.dispatcher(view))


def compare_one(task: dict[str, Any]) -> dict[str, Any]:
    """Ask PCP'20 and PCP'19 at the states of one run.

    Parameters
    ----------
    task : as :func:`hpcgym.benchmarks.cp.runs.simulate_one` takes it, and "number" of states.

    Returns
    -------
    For each state a pair, PCP'20's and PCP'19's: ``variables`` of the models as they are built
    here, ``as_published``, the variables as Galleguillos 2020 counts them, ``seconds`` of CPU time,
    and ``objective``.
    """
    workload, cluster = load_jobs(task["machine"], task["days"], task["seed"])
    check_same_jobs(task["machine"], hash_of([workload]), task["jobs_sha256"])
    saving = Saving(find_dispatcher(task["dispatcher"]), task["number"])
    simulate(workload, rules_of(Run(task["dispatcher"], task["duration"]), saving), cluster=cluster)
    found: dict[str, list[Any]] = {}
    for packed in saving.saved:
        view = pickle.loads(packed)
        asked = [_asked(name, view) for name in ASKED]
        for one, published in zip(asked, published_sizes(*considered(view)), strict=True):
            one["as_published"] = published
        for key in asked[0]:
            found.setdefault(key, []).append([one[key] for one in asked])
    return found


def _asked(name: str, view: Any) -> dict[str, Any]:
    """Return the size, time and objective of a dispatcher's model of a state, solved in any case.

    A dispatcher takes a shortcut where the heuristic's schedule is optimal; the papers' do not.
    """
    from hpcgym.baselines.cp.dispatcher import solve

    dispatcher: Any = find_dispatcher(name)
    began = time.process_time()
    problem = dispatcher.pose(view)
    model = dispatcher.model(problem)
    answer = solve(problem, model, dispatcher.limits, fixed=dispatcher.fixed)
    return {
        "seconds": time.process_time() - began,
        "variables": len(model.cp.proto.variables),
        "objective": problem.weights.cost(answer.schedule.start),
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
