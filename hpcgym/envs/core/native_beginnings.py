"""With what episodes of extracts begin, as the native engine takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Layout, Model, Simulation
from hpcgym.engine import state
from hpcgym.engine.answers.online import Estimators, Learner
from hpcgym.envs.core.native_model import estimators_of
from hpcgym.scheduler.allocations import RANDOM
from hpcgym.scheduler.estimates.learning import asks_for_predictions
from hpcgym.simulation.native_answers import n_terms, told_of_learning
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


def beginnings_of(simulations: Simulations, first: state.State) -> list[Arrays]:
    """Return with what episodes begin; nothing where that is an empty machine.

    ``first`` is the state of a simulation before the first submission.

    Raises
    ------
    HpcgymError, WorkloadError : as :func:`hpcgym.simulate` does of such an extract.
    """
    found, start = [], 0
    for part in simulations.episodes.beginnings:
        # all episodes of an extract have the jobs that were submitted before it, and then some
        own = part.take(slice(0, simulations.episodes.longest), name=part.name)
        found.append(_beginning(simulations, own, start, first))
        start += len(part)
    return found


def _beginning(simulations: Simulations, part: Workload, start: int, first: state.State) -> Arrays:
    """Return the same of a part whose jobs stand in the table from a row on."""
    table, rules = simulations.table, simulations.options.scheduler
    rows = slice(start, start + len(part))
    own = state.State._make([array.copy() for array in first])
    own.progress["predicted"][: len(part)] = table.predicted[rows]
    scores = np.zeros(2 * len(part), state.SCORES)
    arrays = state.Prepared(table.jobs[rows], _NONE, scores, table.users[rows], *own)
    known, by = None, estimators_of(table)
    if asks_for_predictions(rules):
        known = Learner._make([array.copy() for array in simulations.learner])
        named = {name: getattr(by, name) for name in ("classes", "asked")}
        by = by._replace(**{name: one[rows] for name, one in named.items() if len(one)})
        if part.initial is not None:
            Learning(part, rules, arrays, learned_before(part, rules), (by, known))
    begins = beginning_of(taken_over(part), rules, simulations.options.cluster, arrays)
    number = 0 if begins is None else begins.number
    running = _NONE if begins is None or number == 0 else begins.running
    told: Arrays = {
        "running": running,
        "start": np.ascontiguousarray(own.progress["start"][running]),
        "predicted": np.ascontiguousarray(own.progress["predicted"][:number]),
        "promised": np.ascontiguousarray(own.progress["promised"][:number]),
    }
    # where nothing runs or waits, a submission is what happens first
    when, nodes = (-1, 0, 0), {"first": np.zeros(1, np.int64), "node": _NONE, "units": _NONE}
    nodes["drawn"] = _NONE
    if begins is not None and number > 0:
        when = begins.time, number, int(begins.due)
        check_running(begins)
        nodes = _places(simulations, begins, told, start, (by, known)) or nodes
    if simulations.machines.parts.rooms is not None:
        told |= nodes
    told |= {"when": np.array(when), "history": own.history.reshape(-1)}
    return told if known is None else told | _learned(by, known)


def _places(
    simulations: Simulations,
    begins: Beginning,
    told: Arrays,
    start: int,
    parts: tuple[Estimators, Learner | None],
) -> Arrays:
    """Return the nodes of those that run, and what allocations go by then; nothing on a pool.

    Raises
    ------
    WorkloadError : one of them cannot run.
    """
    table, rooms, by, known = simulations.table, simulations.machines.parts.rooms, *parts
    number, rows = begins.number, slice(start, start + begins.number)
    kills = int(table.sim[0]["correction"]) == state.KILL
    more: dict[str, Any] = {}
    if known is not None:
        some = {name: getattr(by, name)[:number] for name in ("classes", "asked")}
        some["looks"] = np.zeros_like(by.looks)  # there is no order here
        learning = told_of_learning(by._replace(**some), known)
        more = {"users": table.users[rows], "n_users": len(known.memory), "learning": learning}
    at_first: Arrays = {}
    if rooms is not None:
        own: Any = rooms.begin[0]
        more["nodes"] = Layout(
            rooms.needs[rows],
            rooms.capacity,
            int(own.allocation),
            random_state=int(own.random_state),
            asks=rooms.asks[rows] if len(rooms.asks) else None,
        )
        if begins.cells is not None:
            at_first = begins.cells.take(begins.running)._asdict()
    model = Model(
        table.jobs[rows].view(np.int64).reshape(number, -1),
        begins.cluster.processors,
        {"correction": state.KILL if kills else 0, "learns": int(known is not None)},
        predicted=told["predicted"],
        **more,
    )
    native = Simulation(model)
    stuck = native.begin(time=begins.time, due=False, **told, **at_first)
    if stuck >= 0:
        raise cannot_run(begins, stuck, native.run_time(stuck))
    if rooms is None:
        return {}
    seen = native.view()
    cells = Cells(*(seen[f"cell_{name}"] for name in Cells._fields))
    there = np.argsort(seen["running"])[np.searchsorted(np.sort(seen["running"]), begins.running)]
    drawn = seen["drawn"] if own.allocation == RANDOM else _NONE
    return cells.take(there)._asdict() | {"drawn": drawn}


def _learned(by: Estimators, known: Learner) -> Arrays:
    """Return what has been learned before, as the engine takes it."""
    told = {"memory": known.memory.reshape(-1), "ratios": known.ratios.reshape(-1)}
    for k, name in enumerate(("terms", "second_terms")):
        told[name] = known.model[k, :, : n_terms(by, k)].ravel()
    return told | {"sums": known.model_sums.reshape(-1)}
