"""Models alone: the same instances, machines and queues that grow, small states solved."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp.problem import hold
from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.benchmarks.cp.configurations import Run, rules_of
from hpcgym.benchmarks.cp.simulations import loaded
from hpcgym.naming import HOUR_S
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.simulation.run import simulate

# --- How the time of a dispatch grows with the number of nodes ------------------------------------

CORES, MEMORY_MB = 20, 64_000
LARGEST = 32  # units of a job
FREE = 8  # nodes; of a machine of fewer than 16 a half

#: (nodes, queued) of the states: one of the two stays as it is.
NODES = (64, 256, 1024, 4096)
QUEUED = (5, 10, 20, 40, 80)
USUAL_NODES, USUAL_QUEUED = 1024, 20

#: Dispatchers that are measured.
MEASURED = ("prb", "cph-3", "cp-3", "hcp19", "pcp19", "pcp20")

#: States of each size.
REPEATS = 3


def grow_tasks(full: bool) -> list[dict[str, Any]]:
    """Return the tasks; PCP'19, whose model grows with both, has the largest with ``full`` only."""
    sizes = [(nodes, USUAL_QUEUED) for nodes in NODES]
    sizes += [(USUAL_NODES, queued) for queued in QUEUED if queued != USUAL_QUEUED]
    return [
        {"dispatcher": name, "nodes": nodes, "queued": queued}
        for name in MEASURED
        for nodes, queued in sizes
        if full or name != "pcp19" or nodes * queued <= USUAL_NODES * USUAL_QUEUED
    ]


def grow_one(task: dict[str, Any]) -> dict[str, Any]:
    """Measure a dispatcher on states of one size.

    Parameters
    ----------
    task : "dispatcher", its name; "nodes" and "queued".

    Returns
    -------
    ``ms`` : CPU time of a dispatch [ms], the mean; ``longest`` of them; ``started``, how many jobs
    were started in all.
    """
    spent, started = [], 0
    list(
        find_dispatcher(task["dispatcher"])(state_of(16, 4, 0))
    )  # compiles, and imports the solver
    for seed in range(REPEATS):
        view = state_of(task["nodes"], task["queued"], seed)
        dispatcher = find_dispatcher(task["dispatcher"])
        began = time.process_time()
        started += len(list(dispatcher(view)))
        spent.append(1000 * (time.process_time() - began))
    return {"ms": float(np.mean(spent)), "longest": max(spent), "started": started}


def state_of(nodes: int, queued: int, seed: int) -> PassView:
    """Return a state of a machine with that many nodes and queued jobs.

    A job has 1 to 32 units, powers of two, but no more than there are nodes.
    """
    powers = min(LARGEST, nodes).bit_length()
    rng = np.random.default_rng([nodes, queued, seed])
    now = 24 * HOUR_S
    sizes: list[int] = []
    busy = nodes - min(FREE, nodes // 2)
    while sum(sizes) < busy:
        sizes.append(min(int(2 ** rng.integers(0, powers)), busy - sum(sizes)))
    first = np.concatenate([[0], np.cumsum(sizes)])
    cores = rng.integers(1, CORES + 1, queued)
    running: dict[str, Any] = {
        "start": np.full(len(sizes), now - HOUR_S),
        "end": now + rng.integers(1, 24 * HOUR_S, len(sizes)),
        "per_unit": np.tile([CORES, MEMORY_MB // 2], (len(sizes), 1)),
        "first": first,
        "node": np.arange(first[-1]),
        "units": np.ones(first[-1], np.int64),
    }
    queue: dict[str, Any] = {
        "submit": np.sort(now - rng.integers(0, 6 * HOUR_S, queued)),
        "duration": rng.integers(60, 12 * HOUR_S, queued),
        "units": 2 ** rng.integers(0, powers, queued),
        "per_unit": np.stack([cores, cores * 2_000], axis=1),
    }
    capacity = np.tile([CORES, MEMORY_MB], (nodes, 1))
    return PassView.of(now, ("core", "mem"), capacity, queue=queue, running=running)


def by_nodes(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows whose queue is the usual one."""
    return [row for row in rows if row["queued"] == USUAL_QUEUED]


def by_queued(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows whose machine is the usual one."""
    return [row for row in rows if row["nodes"] == USUAL_NODES]


# --- The best known schedules of small states -----------------------------------------------------

Ints = NDArray[np.int64]


#: Kinds of nodes: cores, memory [MB], GPUs. A machine has as many of each.
KINDS = ((16, 32_000, 0), (16, 64_000, 2), (32, 128_000, 0))

#: (nodes of each kind, queued, seed) of the states.
STATES = tuple((each, queued, seed) for each in (1, 2) for queued in (4, 6) for seed in range(2))

#: Deterministic seconds of CP-SAT at most, for each state and model.
WORK = 2.0


def known_tasks() -> list[dict[str, Any]]:
    """Return the tasks."""
    return [
        {"each": each, "queued": queued, "seed": seed, "work": WORK}
        for each, queued, seed in STATES
    ]


def known_one(task: dict[str, Any]) -> dict[str, Any]:
    """Return the row of :func:`hpcgym.baselines.cp.exact.known_best` of one state.

    Parameters
    ----------
    task : "each", "queued" and "seed" of the state, see :func:`small_state`, and "work".
    """
    from hpcgym.baselines.cp.exact import known_best

    each, queued, seed = task["each"], task["queued"], task["seed"]
    view = small_state(each, queued, seed)
    name = f"{each} of {len(KINDS)} kinds of nodes, {queued} jobs, seed {seed}"
    row = known_best({name: view}, task["work"]).iloc[0]
    return {str(column): value for column, value in row.items()}


def small_state(each: int, queued: int, seed: int) -> PassView:
    """Return a state of a small machine of several kinds of nodes.

    Parameters
    ----------
    each : nodes of each kind.
    queued : jobs in the queue; each fits the empty machine.
    seed : of what runs and waits.
    """
    rng = np.random.default_rng([each, queued, seed])
    now = 24 * HOUR_S
    capacity = np.repeat(np.array(KINDS, np.int64), each, axis=0)
    per_unit, units = _demands(rng, capacity, queued)
    queue: dict[str, Any] = {
        "submit": np.sort(now - rng.integers(0, 6 * HOUR_S, queued)),
        "duration": rng.integers(300, 6 * HOUR_S, queued),
        "units": units,
        "per_unit": per_unit,
    }
    running = _running(rng, capacity, now)
    return PassView.of(now, ("core", "mem", "gpu"), capacity, queue=queue, running=running)


def _demands(rng: np.random.Generator, capacity: Ints, number: int) -> tuple[Ints, Ints]:
    """Return demands of jobs, (number, R) per unit, and their units: at most what a machine holds.

    A third of the units take a GPU; few fill a node.
    """
    cores = rng.integers(2, 13, number)
    gpu = (rng.random(number) < 1 / 3).astype(np.int64)
    per_unit = np.stack([cores, cores * 2_000, gpu], axis=1)
    held = [hold(capacity, demand).sum() for demand in per_unit]
    return per_unit, np.minimum(rng.integers(1, 5, number), held)


def _running(rng: np.random.Generator, capacity: Ints, now: int) -> dict[str, Any]:
    """Return running jobs of one unit each, two for a node, on nodes drawn from those with room."""
    free = capacity.copy()
    per_unit, _ = _demands(rng, capacity, 2 * len(capacity))
    node, taken = [], []
    for demand in per_unit:
        room = np.flatnonzero(hold(free, demand) > 0)
        if room.size:
            node.append(int(rng.choice(room)))
            taken.append(demand)
            free[node[-1]] -= demand
    count = len(node)
    return {
        "start": np.full(count, now - HOUR_S),
        "end": now + rng.integers(300, 6 * HOUR_S, count),
        "per_unit": np.array(taken),
        "first": np.arange(count + 1),
        "node": np.array(node),
        "units": np.ones(count, np.int64),
    }


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
