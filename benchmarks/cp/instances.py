"""Models of the same instances: figures 6 and 7 of document 001.

The states at which a dispatcher was called are saved during a simulation, and both PCP'19 and
PCP'20 are asked at each of them.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.benchmarks.cp.configurations import Run, rules_of
from hpcgym.benchmarks.cp.simulations import loaded
from hpcgym.simulation import simulate

Ints = NDArray[np.int64]

#: Machine -> the runs whose states are saved; published are those of PCP'19 on Eurora.
DRIVERS = {
    "eurora": (Run("pcp19", "D"), Run("pcp19", "R")),
    "kit-forhlr-ii": (Run("pcp20", "R"),),
}

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
    here, ``constraints``, ``as_published``, the variables as document 001 counts them, ``seconds``
    of CPU time, ``objective``.
    """
    seeds = tuple(task["seeds"])
    workloads, cluster = loaded(task["machine"], task["days"], seeds, task["jobs_sha256"])
    saving = Saving(find_dispatcher(task["dispatcher"]), task["number"])
    rules = rules_of(Run(task["dispatcher"], task["duration"]), saving)
    simulate(workloads[0], rules, cluster=cluster)
    keys = ("variables", "constraints", "seconds", "objective", "as_published")
    found: dict[str, list[list[Any]]] = {key: [] for key in keys}
    for packed in saving.saved:
        view = pickle.loads(packed)
        asked = [_asked(name, view) for name in ("pcp20", "pcp19")]
        sizes = published_sizes(*considered(view))
        for one, published in zip(asked, sizes, strict=True):
            one["as_published"] = published
        for key in keys:
            found[key].append([one[key] for one in asked])
    return found


def _asked(name: str, view: Any) -> dict[str, Any]:
    """Return what one dispatcher's model of a state is like, made and solved in any case.

    A dispatcher takes a shortcut where the heuristic's schedule is optimal; the papers' do not.
    """
    from hpcgym.baselines.cp.solve import solve

    dispatcher: Any = find_dispatcher(name)
    began = time.process_time()
    problem = dispatcher.pose(view)
    model = dispatcher.model(problem)
    answer = solve(problem, model, dispatcher.limits, fixed=dispatcher.fixed)
    return {
        "seconds": time.process_time() - began,
        "variables": len(model.cp.proto.variables),
        "constraints": len(model.cp.proto.constraints),
        "objective": problem.weights.cost(answer.schedule.start),
    }


def considered(view: Any) -> tuple[Ints, Ints, Ints]:
    """Return units and demands of the jobs that a model of the state has, and the capacity."""
    dispatcher: Any = find_dispatcher("pcp20")
    problem = dispatcher.pose(view)
    return problem.units, problem.per_unit, view.capacity


def published_sizes(units: Ints, per_unit: Ints, capacity: Ints) -> tuple[int, int]:
    """Return the numbers of decision variables of PCP'20 and PCP'19 by document 001.

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
        asked = demand > 0
        holds = (capacity[:, asked] // demand[asked]).min(axis=1)
        alternatives += int(np.minimum(holds, number).sum())
    return q + int(units.sum()) * r, alternatives
