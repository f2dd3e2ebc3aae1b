"""With what episodes of extracts begin, as the engine takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Model, Simulation
from hpcgym.scheduler.allocations import RANDOM
from hpcgym.scheduler.codes import KILL
from hpcgym.scheduler.estimates.learned import Estimators, Learner, knowledge, told_of_learning
from hpcgym.simulation.predictions import Learning
from hpcgym.simulation.warm_start import (
    Beginning,
    beginning_of,
    cannot_run,
    check_running,
    learned_before,
    taken_over,
)
from hpcgym.workload.warm_start import Cells

if TYPE_CHECKING:
    from hpcgym.envs.core.simulations import Simulations
    from hpcgym.workload.model import Workload

Arrays = dict[str, NDArray[Any]]
_NONE = np.zeros(0, np.int64)


def beginnings_of(simulations: Simulations) -> list[Arrays]:
    """Return with what episodes begin; nothing where that is an empty machine.

    Raises
    ------
    HpcgymError, WorkloadError : as :func:`hpcgym.simulate` does of such an extract.
    """
    found, start = [], 0
    for part in simulations.episodes.beginnings:
        # all episodes of an extract have the jobs that were submitted before it, and then some
        own = part.take(slice(0, simulations.episodes.longest), name=part.name)
        found.append(_beginning(simulations, own, start))
        start += len(part)
    return found


def _beginning(simulations: Simulations, part: Workload, start: int) -> Arrays:
    """Return the same of a part whose jobs stand in the table from a row on."""
    rules, all_of = simulations.options.scheduler, simulations.told
    rows = slice(start, start + len(part))
    predicted = None if all_of.predicted is None else all_of.predicted[rows]
    own = replace(all_of, jobs=all_of.jobs[rows], users=all_of.users[rows], predicted=predicted)
    learning = None
    if simulations.learning is not None:
        by, learner = simulations.learning
        learner = Learner._make([array.copy() for array in learner])
        learning = _part_of(by, rows), learner
        if part.initial is not None:
            Learning(part, rules, own, learned_before(part, rules), learning)
    begins = beginning_of(taken_over(part), rules, simulations.options.cluster, own)
    # where nothing runs or waits, a submission is what happens first
    told: Arrays = dict.fromkeys(("running", "start", "predicted", "promised"), _NONE)
    told |= {"when": np.array([-1, 0, 0])}
    told["history"] = np.full(own.n_users * own.rules["last"], -1)
    if begins is not None and begins.history.size:
        told["history"] = begins.history.reshape(-1)
    nodes: Arrays = {"first": np.zeros(1, np.int64), "node": _NONE, "units": _NONE, "drawn": _NONE}
    if begins is not None and begins.number > 0:
        check_running(begins)
        told |= begins.arguments(on_nodes=False)
        told["when"] = np.array([told.pop("time"), begins.number, told.pop("due")])
        nodes = _places(simulations, begins, start, learning) or nodes
    if "nodes" in simulations.machines.told:
        told |= nodes
    if learning is not None:
        told |= {name: one.reshape(-1) for name, one in knowledge(*learning).items()}
    return told


def _places(
    simulations: Simulations,
    begins: Beginning,
    start: int,
    learning: tuple[Estimators, Learner] | None,
) -> Arrays:
    """Return the nodes of those that run, and what allocations go by then; nothing on a pool.

    Raises
    ------
    WorkloadError : one of them cannot run.
    """
    told, nodes = simulations.told, simulations.machines.told.get("nodes")
    number, rows = begins.number, slice(start, start + begins.number)
    kills = told.rules["correction"] == KILL
    more: dict[str, Any] = {}
    if learning is not None:
        by = _part_of(learning[0], slice(number))
        by = by._replace(looks=np.zeros_like(by.looks))  # there is no order here
        more = {"users": told.users[rows], "n_users": told.n_users}
        more["learning"] = told_of_learning(by, learning[1])
    at_first: Arrays = {}
    if nodes is not None:
        asks = None if nodes.asks is None else nodes.asks[rows]
        more["nodes"] = nodes._replace(needs=nodes.needs[rows], asks=asks).layout
        if begins.cells is not None:
            at_first = begins.cells.take(begins.running)._asdict()
    names = ("running", "start", "predicted", "promised")
    native = Simulation(
        Model(
            told.jobs[rows].view(np.int64).reshape(number, -1),
            begins.cluster.processors,
            {"correction": KILL if kills else 0, "learns": int(learning is not None)},
            predicted=begins.predicted,
            **more,
        )
    )
    known = {name: getattr(begins, name) for name in names}
    stuck = native.begin(time=begins.time, due=False, **known, **at_first)
    if stuck >= 0:
        raise cannot_run(begins, stuck, native.run_time(stuck))
    if nodes is None:
        return {}
    seen = native.view()
    cells = Cells(*(seen[f"cell_{name}"] for name in Cells._fields))
    there = np.argsort(seen["running"])[np.searchsorted(np.sort(seen["running"]), begins.running)]
    drawn = seen["drawn"] if nodes.allocation == RANDOM else _NONE
    return cells.take(there)._asdict() | {"drawn": drawn}


def _part_of(by: Estimators, rows: slice) -> Estimators:
    """Return how the run times of some jobs are predicted."""
    named = {name: getattr(by, name) for name in ("classes", "asked")}
    return by._replace(**{name: one[rows] for name, one in named.items() if len(one)})
