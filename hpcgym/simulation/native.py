"""Simulations on the native engine, where it has their rules.

It is being ported rule by rule; elsewhere the compiled kernels of :mod:`hpcgym.engine` serve, and
tests compare both after each pass. ``HPCGYM_ENGINE=numba`` has the kernels serve everywhere.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym._engine import Features, Model, Simulation
from hpcgym.engine import state
from hpcgym.engine.machines.corun.state import CorunNodes
from hpcgym.engine.machines.limited.state import LimitedNodes
from hpcgym.engine.machines.nodes.failures import FailingNodes
from hpcgym.engine.passes.preempting import Preempting
from hpcgym.engine.passes.restricted import Restricted
from hpcgym.simulation.native_answers import take_learned, told_of
from hpcgym.simulation.native_corun import take_corun, told_of_corun
from hpcgym.simulation.native_limited import take_limited, told_of_limited
from hpcgym.simulation.native_nodes import is_on, nodes_in, take_nodes, told_of_nodes, window_nodes
from hpcgym.simulation.scoring import Scoring
from hpcgym.simulation.starting import Native, Proposed, Starting
from hpcgym.simulation.warm_start import cannot_run, check_running

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hpcgym.simulation.driver import Simulation as Driven
    from hpcgym.simulation.warm_start import Beginning

#: The rules of a :data:`hpcgym.engine.state.SIM` that it takes, by name.
TAKEN = (
    *("passes", "depth", "primary", "secondary", "estimate", "correction", "threshold", "strict"),
    *("tested", "tested_of_user", "window", "every", "at_events", "all_every", "resolution"),
    *("linear", "asks", "learns", "renews", "logs"),
    *("holds", "erode", "managed", "timeout", "off_time", "on_time"),
)


def serves(simulation: Driven) -> bool:
    """Return whether the native engine has the rules of a simulation on an empty machine."""
    sim = simulation.arrays.sim
    return is_on() and not sim.keeps and _serves_nodes(simulation) and not simulation.begun


def _moves(simulation: Driven) -> bool:
    """Return whether the schedule says when jobs are submitted, of which none has been."""
    machine = restricted_of(simulation.machine)
    return machine is not None and len(machine.dependencies.outside) > 0


def restricted_of(machine: Any) -> Restricted | None:
    """Return what restricts who may start when on a machine, or None."""
    own = machine.machine if isinstance(machine, Preempting) else machine
    return own if isinstance(own, Restricted) else None


def _serves_nodes(simulation: Driven) -> bool:
    """Return the same of its machine, if that has nodes.

    Where nodes fail nobody answers, and no few have reservations.
    """
    answers = (simulation.learning, simulation.shares, simulation.expressed, simulation.dispatch)
    fails = isinstance(simulation.machine, FailingNodes)
    return not (fails and (any(answers) or simulation.arrays.sim.tested > 0))


def model_of(simulation: Driven, features: Features | None = None) -> Model:
    """Return what the native engine is told of a simulation; it looks at the same memory."""
    arrays = simulation.arrays
    n, sim = len(arrays.jobs), arrays.sim
    rules = {name: int(sim[name]) for name in TAKEN}
    rules["asks"] = int(sim.asks == state.EACH_PASS)
    rules["starts"] = int(sim.asks == state.EACH_START)
    more: dict[str, Any] = {}
    if state.KEYED in (sim.primary, sim.secondary):
        more |= {"keys": arrays.keys[:n], "second_keys": arrays.keys[n:]}
    if features is not None:
        more["features"] = features
    if max(sim.primary if features is None else 0, sim.secondary) >= state.SCORED:
        scores = arrays.scores.view(np.float64).reshape(-1, 2)
        more |= {"scores": scores[:n], "second_scores": scores[n:]}
    if sim.estimate == state.AVERAGE:
        n_users, rules["last"] = arrays.history.shape
        more |= {"users": arrays.users, "n_users": n_users}
    elif simulation.learning is not None:
        n_users = len(simulation.learning.learner.memory)
        more |= {"users": arrays.users, "n_users": n_users}
    elif sim.tested_of_user:
        # numbers of users are those of their first jobs
        more |= {"users": np.ascontiguousarray(arrays.line["user"]), "n_users": n}
    if sim.estimate == state.GIVEN:
        more["predicted"] = np.ascontiguousarray(arrays.progress["predicted"])
    if sim.holds:
        more["held"] = np.ascontiguousarray(arrays.line["held"])
    restricted = restricted_of(simulation.machine)
    if restricted is not None:
        more["restrictions"] = _restrictions(restricted)
        if _moves(simulation):
            more["arrivals"] = _arrivals(restricted)
    if isinstance(simulation.machine, Preempting):
        more["preemption"] = _preemption(simulation.machine)
    more |= told_of(simulation.learning, simulation.shares, simulation.expressed)
    if not sim.managed:  # else a pool, also where it is one node to a dispatcher
        more |= told_of_nodes(simulation.machine)
    more |= told_of_corun(simulation.machine)
    if isinstance(simulation.machine, LimitedNodes):
        more["limited"] = told_of_limited(simulation.machine)
    # an empty machine: all is free, be it processors, or parts of nodes that jobs share
    jobs = arrays.jobs.view(np.int64).reshape(n, len(state.JOBS.names or ()))
    return Model(jobs, int(sim.free), rules, ticks=simulation.ticks, **more)


def _restrictions(machine: Restricted) -> dict[str, Any]:
    """Return the quotas and windows of a machine as a model takes them."""
    quotas, windows = machine.quotas, machine.windows
    return {
        "counts": quotas.counts,
        "processors": quotas.processors,
        "left": quotas.left,
        "windows": np.column_stack([windows.begin, windows.end, windows.taken]),
        "window_nodes": window_nodes(machine),
    }


def _preemption(machine: Preempting) -> dict[str, Any]:
    """Return who may stop whom as a model takes it."""
    own: Any = machine.scalars[0]
    return {
        "group": machine.group,
        "level": machine.level,
        "may": machine.may.astype(np.int64),
        "exempt": machine.exempt,
        "mode": np.array([own.mode]),
    }


def _arrivals(machine: Restricted) -> dict[str, Any]:
    """Return how the schedule makes submissions as a model takes it."""
    by, places = machine.dependencies, machine.places
    names = ("first", "followers", "think", "earliest", "by_arrival")
    return {
        **{name: getattr(by, name) for name in names},
        "awaits": by.left,
        "processors": places.processors,
        "place_counts": places.counts,
        "places": places.left,
    }


def simulation_of(simulation: Driven, features: Features | None = None) -> Simulation:
    """Return a native simulation before its first event, which begins as the other is to.

    ``features``: where weights say the order of the queue.

    Raises
    ------
    WorkloadError : jobs that cannot run when it begins.
    """
    if simulation.beginning is not None:
        check_running(simulation.beginning)
    native = Simulation(model_of(simulation, features))
    if simulation.beginning is not None:
        _begin(simulation, simulation.beginning, native)
    return native


def _begin(simulation: Driven, beginning: Beginning, native: Simulation) -> None:
    """Let it begin with jobs that run and wait."""
    arrays, running, ongoing = simulation.arrays, beginning.running, beginning.ongoing
    known = arrays.progress[: beginning.number]
    more: dict[str, Any] = {}
    if arrays.sim.estimate == state.AVERAGE:
        more["history"] = arrays.history.reshape(-1)
    if ongoing is not None and ongoing.reserved is not None:
        more["reserved"] = ongoing.reserved
    if ongoing is not None and ongoing.looks is not None and not beginning.due:
        more["looks"] = np.array(ongoing.looks)
    cells = beginning.cells
    if nodes_in(simulation.machine) is not None and cells is not None:
        having = running
        if "reserved" in more:  # those that wait have nodes in the plan
            rows = np.arange(beginning.number)
            having = np.concatenate([running, np.setdiff1d(rows, running)])
        more |= cells.take(having)._asdict()
    go_on = partial(
        native.begin,
        time=beginning.time,
        due=beginning.due,
        running=running,
        start=np.ascontiguousarray(arrays.progress["start"][running]),
        predicted=np.ascontiguousarray(known["predicted"]),
        promised=np.ascontiguousarray(known["promised"]),
        **more,
    )
    stuck = go_on()
    while native.asked:
        answer(simulation, native)
        stuck = go_on()
    if stuck >= 0:
        raise cannot_run(beginning, stuck, native.run_time(stuck))


def simulate_natively(simulation: Driven, until: int) -> None:
    """Simulate up to ``until``, and leave of jobs in the arrays what the kernels would."""
    native, late, pairs = simulation_of(simulation), simulation.late, simulation.pairs
    most = state.ALL_PASSES if pairs is None else 1
    while True:
        stop = until if late is None else min(until, late.due)
        passes = native.run(stop, most)
        if native.asked:
            answer(simulation, native)
        elif pairs is not None and passes:
            pairs.learn_natively(simulation.arrays, simulation.machine, native)
        elif late is not None and stop == late.due < state.FOREVER:
            late.arrive(Native(native, simulation.arrays.jobs, simulation.machine))
        else:
            break
    if simulation.learning is not None:
        take_learned(simulation.learning, native)
    schedule = write_back(native, simulation.arrays)
    simulation.machine = taken(simulation.machine, schedule)


def taken(machine: Any, schedule: dict[str, NDArray[np.int64]]) -> Any:
    """Return a machine on which what is on record is what a schedule of the native engine says."""
    if isinstance(machine, CorunNodes):
        take_corun(machine, schedule)
        return machine
    if isinstance(machine, LimitedNodes):
        return take_limited(machine, schedule)
    return take_nodes(machine, schedule)


def go_on(
    simulation: Driven,
    native: Simulation,
    until: int = state.FOREVER,
    passes: int = state.ALL_PASSES,
) -> int:
    """Simulate up to ``until``, or so many passes, and answer meanwhile; return the passes done."""
    done = native.run(until, passes)
    while native.asked:
        answer(simulation, native)
        done += native.run(until, passes - done)
    return done


def write_back(native: Simulation, arrays: state.Prepared) -> dict[str, NDArray[np.int64]]:
    """Leave of jobs in the arrays what the kernels would; return the schedule."""
    schedule = native.schedule()
    write_progress(schedule, arrays.progress)
    sim = arrays.sim
    sim.time = native.time
    sim.next = sim.started = len(arrays.jobs)
    if "submit" in schedule:
        arrays.jobs["submit"] = schedule["submit"]
    for name in {"run", "requested"} & set(schedule):  # of jobs cancelled, or slowed down
        arrays.jobs[name] = schedule[name]
    if sim.logs:
        ended = native.ended()
        sim.ended = len(ended)
        arrays.ended[: sim.ended] = ended
    if sim.correction == state.KILL:
        begun = arrays.progress["start"] >= 0
        shorter = np.minimum(arrays.jobs["run"], arrays.progress["predicted"])
        arrays.jobs["run"] = np.where(begun, shorter, arrays.jobs["run"])
    if sim.managed:
        for name, seconds in native.idle_seconds().items():
            sim[f"{name}_s"] = seconds[0]
        sim.groups = 0  # all is counted
    return schedule


def answer(simulation: Driven, native: Simulation) -> None:
    """Answer what is asked for in Python: by policies, dispatchers or predictors."""
    if native.asked in ("order", "job", "starts"):
        assert isinstance(simulation.dispatch, Scoring | Starting | Proposed)
        simulation.dispatch.answer(simulation.arrays.jobs, simulation.machine, native)
    else:
        assert simulation.learning is not None
        simulation.learning.answer_natively(native)


def write_progress(schedule: dict[str, NDArray[np.int64]], progress: NDArray[np.void]) -> None:
    """Write a schedule of the native engine as the kernels keep it."""
    for name in ("start", "predicted", "promised"):
        progress[name] = schedule[name]
    marks = schedule["number"] * state.STARTED_AS
    marks += schedule["backfilled"] * state.BACKFILLED
    marks += schedule["corrections"] * state.CORRECTED
    progress["marks"] = marks
