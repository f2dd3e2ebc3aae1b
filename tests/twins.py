"""One simulation on both engines: they are in the same state after each pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from drawing import assume
from limit_strategies import Case

from hpcgym._engine import Simulation
from hpcgym.cluster.pool import Cluster
from hpcgym.engine import state
from hpcgym.engine.answers import online
from hpcgym.engine.machines.corun.state import CorunNodes
from hpcgym.engine.machines.limited.state import LimitedNodes
from hpcgym.engine.machines.nodes.placement import Nodes
from hpcgym.engine.ordered import BLOCK
from hpcgym.engine.passes.preempting import CANCEL, Preempting
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers.view import cells_of
from hpcgym.scheduler.limits import check_limits
from hpcgym.simulation import driver
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.limited import limited_simulation
from hpcgym.simulation.native import answer, restricted_of, serves, simulation_of, write_progress
from hpcgym.simulation.native_answers import learned_by
from hpcgym.simulation.native_nodes import nodes_in
from hpcgym.simulation.nodes import asked, needs_on, nodes_for
from hpcgym.simulation.run import idle_processor_seconds, scheduler_of
from hpcgym.simulation.scoring import scored_by
from hpcgym.workload.model import Workload


def entries_of(arrays: state.Prepared, which: Any) -> list[int]:
    """Return the entries of an ordered list, one behind the other."""
    first, found = arrays.blocks[which], []
    for position in range(first.in_use):
        block = arrays.blocks[first.first + position].order
        for entry in arrays.entries[block * BLOCK :][: arrays.blocks[block].count]:
            found += [entry.key, entry.span, entry.width, entry.job]
    return [int(value) for value in found]


def going_on(native: Simulation) -> Simulation:
    """Return one that goes on where it is: a copy, or one that has read what it knows."""
    if native.time % 2:
        return native.copy()
    read = native.anew(native.run_times())
    read.load(native.saved())
    return read


def assert_twins(arrays: state.Prepared, native: Simulation, machine: Any = ()) -> None:
    """Compare all that both know between two passes."""
    facts, sim, progress = native.facts(), arrays.sim, arrays.progress.copy()
    names: tuple[str, ...] = ("time", "next", "started", "free", "arrived", "changed", "head")
    if sim.depth == state.UNLIMITED:  # it has no head
        names, facts["now"] = names[:5], facts["now"][:5]
        waits = (progress["start"] < 0) & (np.arange(len(progress)) < sim.next)
        assert (facts["reserved"] == arrays.line["reserved"])[waits].all()
    if isinstance(machine, LimitedNodes):  # each pass is a full one
        names, facts["now"] = (*names[:5], "head"), np.delete(facts["now"], 5)
    assert facts["now"].tolist() == [int(sim[name]) for name in names]
    if sim.tested:
        assert facts["plan"].tolist() == [
            int(sim[x]) for x in ("reserved", "last_reserved", "beyond")
        ]
        assert facts["looks"].tolist() == [
            int(sim[x]) for x in ("due", "all_due", "look", "waited", "had_planned")
        ]
    elif sim.head >= 0 and sim.depth == 1:
        # units that are free at the shadow time, but that none may have who ends after it
        extra = 0 if sim.strict else sim.extra
        # where jobs share nodes it is known of each node; under limits power counts too
        known = 1 if "who" in facts or isinstance(machine, LimitedNodes) else 2
        assert facts["shadow"].tolist()[:known] == [sim.shadow, extra][:known]
    if isinstance(machine, LimitedNodes):
        assert_same_limits(arrays, machine, facts)
    restricted = restricted_of(machine)
    if restricted is not None and len(restricted.quotas.left):
        assert facts["left"].tolist() == restricted.quotas.left.ravel().tolist()
    for name in {"submit", "run", "requested"} & set(facts):
        of_all = facts[name]
        if name == "run" and sim.correction == state.KILL:
            known = np.arange(len(of_all)) < sim.next
            of_all = np.where(known, np.minimum(of_all, arrays.progress["predicted"]), of_all)
        assert of_all.tolist() == arrays.jobs[name].tolist()
    if isinstance(machine, Preempting):
        assert_same_stops(machine, facts)
    write_progress(facts, progress)
    assert (progress == arrays.progress).all()
    assert facts["running"].tolist() == entries_of(arrays, state.RUNNING)
    assert facts["queue"].tolist() == entries_of(arrays, state.QUEUE)


#: What both know of caps and budgets, beside what they are told.
CAP = (
    *(
        "start",
        "end",
        "mw",
        "off",
        "known",
        "idle_mw",
        "floor_mw",
        "work_mw",
        "outside",
        "inside",
        "plan_work_mw",
    ),
    *("plan_held", "plan_inside", "inside_now"),
)
BUDGET = (
    *("spent", "saved", "looked", "reserved", "n_reserving", "in_use", "ahead", "at_start_mw"),
    *("head_mj", "left_mj", "rest_mw", "base_mw", "plan_start_mw", "plan_mj", "plan_spent"),
)
POWERS = (
    *("charged", "drawn", "saved_mw", "counted_to", "free_on", "free_off", "free_rising"),
    *("next_switched", "next_ready", "used", "to_wake", "ceiling", "was_off"),
)
LEFT = ("spare_nodes", "spare_mw", "spare_limit_mw", "left_mw", "block_from", "block_to")


def assert_same_limits(arrays: state.Prepared, machine: LimitedNodes, facts: Any) -> None:
    """Compare what both know of nodes that are switched, and of limits."""
    own: Any = machine.scalars[0]
    for name in ("state", "since", "until", "job", "boots"):
        assert facts[f"node_{name}"].tolist() == machine.nodes[name].tolist(), name
    for name, count in (("switching", own.n_switching), ("waiting", own.n_waiting)):
        assert facts[name].tolist() == getattr(machine, name)[:count].tolist(), name
    for name in ("node", "state", "begin", "end"):
        assert facts[f"log_{name}"].tolist() == machine.log[name][: own.logged].tolist(), name
    for name, records, fields in (
        ("caps", machine.caps, CAP),
        ("budgets", machine.budgets, BUDGET),
    ):
        rows = facts[name].reshape(-1, len(fields))
        for column, field in zip(rows.T, fields, strict=True):
            assert column.tolist() == records[field].tolist(), (name, field)
    assert dict(zip(POWERS, facts["powers"], strict=True)) == {name: own[name] for name in POWERS}
    assert dict(zip(LEFT, facts["left"], strict=True)) == {name: own[name] for name in LEFT}
    assert facts["kills"].tolist() == [own.kills]
    begun = np.flatnonzero(arrays.progress["start"] >= 0)
    assert facts["level"].tolist() == machine.tasks["level"].tolist()
    assert facts["predicted_at_highest"].tolist() == machine.tasks["predicted"].tolist()
    for job in begun:
        cells = slice(*machine.first[job : job + 2])
        assert facts["cell_node"][cells].tolist() == machine.cells[cells].tolist()


def assert_same_nodes(arrays: state.Prepared, nodes: Nodes, native: Simulation) -> None:
    """Compare what both know of nodes between two passes."""
    facts, sim, own = native.facts(), arrays.sim, nodes.scalars[0]
    assert facts["free"].tolist() == nodes.free.ravel().tolist()
    n_jobs = len(arrays.jobs)
    assert facts["spare"][1] == own.random_state
    if sim.head >= 0 and sim.depth == 1 and not sim.tested and not sim.changed:
        assert facts["later"].tolist() == nodes.later.ravel().tolist()
        assert facts["spare"][0] == own.slack
    begun = np.flatnonzero(arrays.progress["start"] >= 0)
    first, node, units = cells_of(nodes, begun)
    mine = np.diff(facts["cell_first"])
    assert mine[begun].tolist() == np.diff(first).tolist()
    assert mine.sum() == len(node)
    assert len(mine) == n_jobs
    assert facts["cell_node"].tolist() == node.tolist()
    assert facts["cell_units"].tolist() == units.tolist()


def assert_same_stops(machine: Preempting, facts: Any) -> None:
    """Compare who has been stopped."""
    own: Any = machine.scalars[0]
    assert facts["exempt_until"].tolist() == [own.exempt_until]
    lost = machine.lost[: own.lost]
    for name in ("job", "start", "end"):
        assert facts[f"lost_{name}"].tolist() == lost[name].tolist(), name
    names = ["job", "width", "ran", "left", "predicted"]
    if nodes_in(machine) is not None and own.mode != CANCEL:
        assert facts["lost_first"][:-1].tolist() == lost["first"].tolist()
        for name in ("node", "units"):
            cells = machine.cells[name][: own.cells]
            assert facts[f"lost_{name}"].tolist() == cells.tolist()
    suspended = machine.suspended[names][: own.count].tolist()
    assert facts["suspended"].tolist() == [number for one in suspended for number in one]


#: What both know of a job that has started where jobs share nodes.
TASKS = ("since", "end", "predicted_end", "neighbours", "limit", "begun")
REAL = ("left", "rate", "least")


def assert_same_sharing(simulation: driver.Simulation, native: Simulation) -> None:
    """Compare what both know of jobs that share nodes between two passes."""
    machine: CorunNodes = simulation.machine
    facts, numbers, own = native.facts(), native.numbers(), machine.scalars[0]
    begun = simulation.arrays.progress["start"] >= 0
    tasks = facts["tasks"].reshape(-1, len(TASKS))
    for name, mine in zip(TASKS, tasks.T, strict=True):
        assert mine[begun].tolist() == machine.tasks[name][begun].tolist(), name
    real = numbers["tasks"].reshape(-1, len(REAL) + 1)
    for name, values in zip(REAL, real.T, strict=False):
        assert same(np.ascontiguousarray(values[begun]), machine.tasks[name][begun]), name
    for name in ("who", "free", "friends"):
        assert facts[name].tolist() == getattr(machine, name).ravel().tolist(), name
    held = np.repeat(begun, machine.tasks["nodes"])
    assert facts["cell_node"][held].tolist() == machine.cells[held].tolist()
    if simulation.arrays.sim.head >= 0 and not own.fills and simulation.arrays.sim.depth > 0:
        for name in ("later", "counts"):
            assert facts[name].tolist() == getattr(machine, name).tolist(), name
        assert facts["slack"].tolist() == [own.slack]
        assert facts["delays"].tolist() == [own.delays]
    spells = machine.spells[: own.n_spells]
    told = native.spells()
    for name in ("job", "beside", "begin", "end"):
        assert told[name].tolist() == spells[name].tolist(), name
    assert same(numbers["spells"], spells["rate"])
    if machine.io is not None:
        counts = machine.io.counts[0]
        assert facts["asked"].tolist() == [counts.asked]
        assert same(numbers["congestion"], np.array([counts.congestion]))


def assert_same_answers(simulation: driver.Simulation, native: Simulation) -> None:
    """Compare what those know who answer both, and the scores that they have given."""
    a, sim = simulation.arrays, simulation.arrays.sim
    facts, numbers = native.facts(), native.numbers()
    waits = (a.progress["start"] < 0) & (np.arange(len(a.progress)) < sim.next)
    scores = a.scores.view(np.float64).reshape(2, -1, 2) if len(a.scores) else ()
    for name, order, expected in zip(
        ("scores", "second_scores"), (sim.primary, sim.secondary), scores, strict=False
    ):
        if order >= state.SCORED:
            assert same(numbers[name].reshape(-1, 2)[waits], expected[waits])
    if sim.holds:
        assert same(numbers["held"][waits], a.line["held"][waits])
    if simulation.learning is not None:
        by, learner = simulation.learning.estimators, simulation.learning.learner
        online.learn_from_ended(a.jobs, a.users, sim, a.progress, a.ended, by, learner)
        found = learned_by(simulation.learning, native.copy())
        for name in ("memory", "ratios", "model", "model_sums"):
            assert same(found[name], getattr(learner, name)), name
        known = np.arange(len(a.progress)) < sim.next
        if len(learner.ordered_by):
            assert (found["ordered_by"] == learner.ordered_by)[known].all()
    if simulation.shares is not None:
        for name in ("used", "recent", "terms"):
            assert same(numbers[name], getattr(simulation.shares, name).ravel()), name
        assert facts["book"].tolist() == simulation.shares.book.view(np.int64).tolist()


def same(one: Any, other: Any) -> bool:
    """Whether two arrays are equal to the last bit."""
    return bool(one.tobytes() == np.ascontiguousarray(other).tobytes())


def made(workload: Workload, scheduler: Any, cluster: Cluster) -> driver.Simulation:
    """Return a simulation before its first event, and who says the order if a function does."""
    nodes = None
    if cluster.groups or scheduler.dispatcher is not None:
        nodes = nodes_for(workload, needs_on(workload, cluster), cluster, scheduler)
    simulation = new_simulation(workload, scheduler, cluster, nodes)
    simulation.dispatch = scored_by(scheduler.policy, workload, cluster, nodes)
    if scheduler.dispatcher is not None:
        _, simulation.dispatch = asked(scheduler.dispatcher, workload, cluster)
    return simulation


def assert_same_after_each_pass(
    workload: Workload,
    scheduler: Any,
    cluster: Cluster,
    pieces: int = 1,
    make: Any = made,
    meanwhile: Callable[[driver.Simulation, Simulation], None] | None = None,
) -> bool:
    """Simulate with both; return whether the native engine has the rules.

    They are compared after so many passes each. It goes on as a copy then, and after each question.
    ``meanwhile`` may change both alike, before the first pass and after each comparison.
    """
    simulation, other = (make(workload, scheduler, cluster) for _ in range(2))
    if not serves(other):
        return False
    native, passes = simulation_of(other), 0

    def run(most: int) -> int:
        nonlocal native
        done = native.run(passes=most)
        while native.asked:
            assert native.run() == 0  # it waits for the answer
            native = going_on(native)
            answer(other, native)
            done += native.run(passes=most - done)
        native = going_on(native)
        return done

    def compare() -> None:
        nonlocal passes
        passes += 1
        if passes % pieces == 0:
            assert run(pieces) == pieces
            assert_twins(simulation.arrays, native, simulation.machine)
            nodes = nodes_in(simulation.machine)
            if nodes is not None and not simulation.arrays.sim.managed:  # else a pool
                assert_same_nodes(simulation.arrays, nodes, native)
            assert_same_answers(simulation, native)
            if meanwhile is not None:
                meanwhile(simulation, native)

    if meanwhile is not None:
        meanwhile(simulation, native)
    simulation.after_pass = compare
    simulation.drive()
    assert run(state.ALL_PASSES) == passes % pieces
    assert_twins(simulation.arrays, native, simulation.machine)
    if simulation.arrays.sim.managed:
        state_of = {name: int(value[0]) for name, value in native.idle_seconds().items()}
        assert state_of == idle_processor_seconds(simulation.arrays.sim, simulation.arrays.idle)
    return True


def assert_same_under_limits(
    case: Case, pieces: int = 1, made: Any = None, meanwhile: Any = None
) -> bool:
    """The same of a case under limits that can be simulated.

    ``made`` returns a simulation as it is to be of one that has been made.
    """
    scheduler = scheduler_of("easy", case.rules)

    def make(workload: Workload, scheduler: Any, cluster: Cluster) -> driver.Simulation:
        simulation = limited_simulation(workload, scheduler, cluster, check_limits(case.limits))
        return simulation if made is None else made(simulation)

    try:
        make(case.workload, scheduler, case.cluster)
    except HpcgymError as error:
        assume("can never start" not in str(error) and "all nodes off" not in str(error))
        raise
    return assert_same_after_each_pass(
        case.workload, scheduler, case.cluster, pieces, make, meanwhile
    )
