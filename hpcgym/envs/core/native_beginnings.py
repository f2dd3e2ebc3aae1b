"""With what episodes of extracts begin, as the native engine takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Layout, Model, Simulation
from hpcgym.engine import state
from hpcgym.envs.core.native_model import estimators_of
from hpcgym.scheduler.allocations import RANDOM
from hpcgym.scheduler.estimates.learned import Estimators, Learner, knowledge, told_of_learning
from hpcgym.scheduler.estimates.learning import asks_for_predictions
from hpcgym.simulation.predictions import Learning
from hpcgym.simulation.prepare import Told
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
    sim = first.sim
    n_users, last = simulations.history
    jobs = table.jobs[rows]
    own = Told(jobs, int(sim.capacity), int(sim.free), {"last": last, "managed": int(sim.managed)})
    own.users, own.n_users = table.users[rows], n_users
    if sim.estimate != state.AVERAGE:
        own.predicted = table.predicted[rows]
    known, by = None, estimators_of(table)
    if asks_for_predictions(rules):
        known = Learner._make([array.copy() for array in simulations.learner])
        named = {name: getattr(by, name) for name in ("classes", "asked")}
        by = by._replace(**{name: one[rows] for name, one in named.items() if len(one)})
        if part.initial is not None:
            Learning(part, rules, own, learned_before(part, rules), (by, known))
    begins = beginning_of(taken_over(part), rules, simulations.options.cluster, own)
    number = 0 if begins is None else begins.number
    told: Arrays = dict.fromkeys(("running", "start", "predicted", "promised"), _NONE)
    if begins is not None and number > 0:
        told = {name: np.ascontiguousarray(getattr(begins, name)) for name in told}
    # where nothing runs or waits, a submission is what happens first
    when, nodes = (-1, 0, 0), {"first": np.zeros(1, np.int64), "node": _NONE, "units": _NONE}
    nodes["drawn"] = _NONE
    if begins is not None and number > 0:
        when = begins.time, number, int(begins.due)
        check_running(begins)
        nodes = _places(simulations, begins, told, start, (by, known)) or nodes
    if simulations.machines.parts.rooms is not None:
        told |= nodes
    history = np.full(simulations.history, -1, np.int64)
    if begins is not None and begins.history.size:
        history = begins.history
    told |= {"when": np.array(when), "history": history.reshape(-1)}
    if known is not None:
        told |= {name: array.ravel() for name, array in knowledge(by, known).items()}
    return told


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
