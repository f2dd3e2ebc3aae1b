"""Simulations in which jobs share nodes and speed each other up, or slow each other down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.engine.machines.corun import state as engine
from hpcgym.engine.machines.corun.files.shared import SharedFiles
from hpcgym.engine.machines.corun.state import CorunNodes
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.naming import CORE
from hpcgym.schedule.places import Allocation, Coschedule
from hpcgym.schedule.result import Result
from hpcgym.scheduler import codes
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.capabilities import check
from hpcgym.scheduler.policies.features import PASS_FEATURES
from hpcgym.scheduler.policies.index import parse_policy
from hpcgym.simulation.corun_files import check_files, files_of, slowest_in_congestion
from hpcgym.simulation.corun_learning import PairLearning
from hpcgym.simulation.driver import Simulation, answers_for, asks_for_answers
from hpcgym.simulation.native_corun import take_corun, told_of_corun
from hpcgym.simulation.prepare import COSCHEDULED, Told, prepare
from hpcgym.simulation.warm_start import check_extract
from hpcgym.speedups.heatmap import Heatmap
from hpcgym.workload.codes import codes_of

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload

_PARTNERS = {"best": engine.BEST, "fill": engine.FILL, "first": engine.FIRST}
_FINEST = 10**9  # ticks a second


def simulate_coscheduled(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, speedups: Heatmap
) -> Result:
    """Simulate jobs that share nodes, to the end; see :func:`hpcgym.simulate`.

    Raises
    ------
    HpcgymError : rules that do not go with shared nodes, or a machine whose nodes are not alike.
    WorkloadError : a job that cannot be simulated, or whose code has no speedups.
    """
    check_shared(scheduler)
    check_files(cluster, speedups, scheduler)
    check_extract(workload, "shared nodes")
    cores, sockets = check_machine(cluster)
    _check_resources(workload)
    code = codes_of(workload, speedups.codes)
    tasks, parts = tasks_of(workload, scheduler, cluster.nodes, cores, sockets, code)
    files = files_of(cluster, speedups, workload, code)
    congested = slowest_in_congestion(cluster, speedups, files)
    ticks = ticks_a_second(workload, speedups, scheduler.pair_estimate, congested)
    told = told_of_tasks(workload, scheduler, cluster, tasks, parts, ticks)
    machine = shared_nodes(scheduler, speedups, tasks, cluster.nodes, parts, files)
    learning = PairLearning.of(scheduler, speedups)
    rules = as_on_a_pool(scheduler)
    answers = answers_for(workload, rules, cluster, told, *asks_for_answers(rules), ticks=ticks)
    if scheduler.backfill == "conservative":
        simulation = Simulation(told, **answers)
        simulation.drive()
        schedule = simulation.schedule()
        _place(schedule, machine)
    else:
        if learning is not None:
            learning.begin(told.jobs, machine)
        pairs = learning if learning is not None and learning.learns else None
        simulation = Simulation(told, told_of_corun(machine), pairs=pairs, **answers)
        simulation.drive()
        schedule = simulation.schedule()
        take_corun(machine, schedule)
    return shared_result(workload, scheduler, cluster, speedups, schedule, machine, ticks, learning)


# --- Checks ---------------------------------------------------------------------------------------


def check_together(scheduler: Scheduler, cluster: Cluster) -> None:
    """Raise an HpcgymError for rules or a machine that cannot be simulated with speedups."""
    check_shared(scheduler)
    cores, sockets = check_machine(cluster)
    if scheduler.parts:
        cores_of_part(scheduler, cores, sockets)


def check_shared(scheduler: Scheduler) -> None:
    """Raise an HpcgymError for rules that do not go with shared nodes, or with each other."""
    if scheduler.allocation.partition(":")[0] not in ("first-fit", *COSCHEDULED):
        raise HpcgymError(
            f"allocation: with speedups it is compact, spread, half-socket or part:K, not "
            f"{scheduler.allocation!r}"
        )
    check_scheduler(scheduler, "shared nodes")
    if not _is(scheduler.policy_estimate, "requested"):
        raise HpcgymError("policy_estimate does not go with speedups of jobs that share nodes")
    if not _is(scheduler.estimate, "requested", "double-requested", "clairvoyant"):
        raise HpcgymError(
            "estimate: with speedups it is 'requested', 'double-requested' or 'clairvoyant': run"
            " times beside others are not learned"
        )
    if scheduler.backfill == "conservative" and scheduler.parts:
        raise HpcgymError(
            "backfill='conservative' is for compact jobs: ends that move with neighbours would"
            " move all reservations"
        )
    order = scheduler.backfill_order
    if not _is(order, "sjbf") and parse_policy(order).looks_at_pass:
        raise HpcgymError(
            f"backfill_order: {', '.join(PASS_FEATURES)} order the queue, as policy, not what is"
            " back-filled"
        )
    if looks_at_pass(scheduler) and scheduler.threshold is not None:
        raise HpcgymError("threshold: not with a policy that looks at the pass")


def _is(estimate: Any, *names: str) -> bool:
    """Return whether an estimate is one of these names."""
    return isinstance(estimate, str) and estimate in names


def looks_at_pass(scheduler: Scheduler) -> bool:
    """Return whether the order of the queue depends on what the machine is like at a pass."""
    return parse_policy(scheduler.policy).looks_at_pass


def _check_resources(workload: Workload) -> None:
    """Raise a WorkloadError if jobs need more than cores."""
    for name, demand in workload.per_unit.items():
        if name != CORE and demand.any():
            job = int(np.flatnonzero(demand)[0])
            raise WorkloadError(
                f"{workload.name}: {workload.called(job)} needs {name}: where jobs share nodes they"
                " have cores and nothing else"
            )


def check_machine(cluster: Cluster) -> tuple[int, int]:
    """Return the cores and the sockets of a node, which must all be alike.

    Raises
    ------
    HpcgymError : a pool, nodes that differ, or processors that are switched off.
    """
    if not cluster.groups:
        raise HpcgymError(
            "speedups are of jobs on nodes, of which a pool of processors has none: give a cluster,"
            " such as '100x2x24' (nodes x sockets x cores)"
        )
    if cluster.partitions:
        check("shared nodes", "partitions")
    shapes = {(group.resources[CORE], group.sockets) for group in cluster.groups}
    if len(shapes) > 1:
        raise HpcgymError("speedups: all nodes must have the same cores and sockets")
    if cluster.shutdown_after_s is not None:
        check("shared nodes", "shutdown")
    return shapes.pop()


# --- The arrays -----------------------------------------------------------------------------------


def tasks_of(
    workload: Workload,
    scheduler: Scheduler,
    n_nodes: int,
    cores: int,
    sockets: int,
    code: NDArray[np.int64],
) -> tuple[NDArray[np.void], int]:
    """Return how many nodes each job needs and how it is placed there, and the parts of a node.

    A job that has too many processes to be spread over the machine is compact.

    Raises
    ------
    HpcgymError : sockets with fewer cores than parts.
    """
    processors = workload.requested_processors
    nodes, shape = -(-processors // cores), np.full(len(workload), engine.COMPACT)
    parts = max(scheduler.parts, 1)
    if scheduler.parts:
        wide = -(-processors // cores_of_part(scheduler, cores, sockets))
        spread = wide <= n_nodes
        nodes = np.where(spread, wide, nodes)
        shape[spread] = engine.SPREAD if parts == 1 else engine.PART
    tasks = np.zeros(len(workload), engine.TASK)
    tasks["nodes"], tasks["placement"], tasks["code"] = nodes, shape, code
    return tasks, parts


def cores_of_part(scheduler: Scheduler, cores: int, sockets: int) -> int:
    """Return how many cores of a node a job has that is spread over nodes, or shares them.

    Raises
    ------
    HpcgymError : sockets with fewer cores than parts.
    """
    of = max(scheduler.parts, 2)
    part = cores // sockets // of * sockets
    if part == 0:
        raise HpcgymError(
            f"allocation {scheduler.allocation!r}: sockets of {cores // sockets} cores have no {of}"
            " parts"
        )
    return part


def ticks_a_second(
    workload: Workload, speedups: Heatmap, believed: Any = "known", congested: float = 1.0
) -> int:
    """Return how many ticks a second has: a thousand million, or fewer in powers of ten.

    So few that the simulator's clock holds all jobs one after the other, each as slow as can be, in
    truth or as the scheduler's ``pair_estimate`` has it, and by ``congested`` times its rate.

    Raises
    ------
    WorkloadError : the clock does not hold them in seconds.
    """
    slowest = min(1.0, *_slowest(speedups))
    if isinstance(believed, Heatmap):
        slowest = min(slowest, *_slowest(believed))
    elif not isinstance(believed, str):  # what it learns is never below what it has seen
        slowest = min(slowest, float(believed.matrix().min()))
    slowest *= congested
    total = 2.0 * float(workload.requested_time.sum(dtype=np.float64)) / slowest
    total += float(workload.submit_time.max(initial=0)) + 1
    ticks = _FINEST
    while ticks > 1 and total * ticks >= FOREVER / 2:
        ticks //= 10
    if total * ticks >= FOREVER / 2:
        raise WorkloadError(
            f"{workload.name}: at a speedup of {slowest:g} the jobs take {total:.3g} s one after"
            " the other, more than the simulator's clock holds"
        )
    return ticks


def _slowest(speedups: Heatmap) -> tuple[float, float]:
    """Return the least speedup of a pair, and of a code alone."""
    return float(speedups.filled.min()), float(speedups.alone.min())


def as_on_a_pool(scheduler: Scheduler) -> Scheduler:
    """Return the rules that a pool has too: the orders, estimates and reservations."""
    plain: dict[str, Any] = {"allocation": "first-fit", "partners": "fill", "pairs_above": None}
    if looks_at_pass(scheduler):
        plain["policy"] = "fcfs"
    if scheduler.backfill == "fill":  # the queue is swept in its own order
        plain |= {"backfill": "easy", "backfill_order": plain.get("policy", scheduler.policy)}
    plain["pair_estimate"] = "known"
    return scheduler.but(**plain)


def told_of_tasks(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    tasks: NDArray[np.void],
    parts: int,
    ticks: int,
) -> Told:
    """Return what every simulation is told, in ticks, with parts of nodes for processors."""
    counts = any(scheduler.usage_orders)
    told = prepare(workload, as_on_a_pool(scheduler), cluster, logs_ends=True, shares=counts)
    for name in ("submit", "run", "requested"):
        told.jobs[name] *= ticks
    if told.predicted is not None:
        told.predicted = told.predicted * ticks
    for half, order in enumerate((told.rules["primary"], told.rules["secondary"])):
        if order >= codes.SCORED and told.scores is not None:  # else nobody has written it
            told.scores[half, :, 1] *= ticks
    if told.rules["threshold"] != codes.NO_THRESHOLD:
        told.rules["threshold"] = min(told.rules["threshold"] * ticks, FOREVER)
    if scheduler.backfill == "fill":
        told.rules["depth"] = 0
    each = np.where(tasks["placement"] == engine.PART, 1, parts)
    told.jobs["processors"] = tasks["nodes"] * each
    told.capacity = cluster.nodes * parts
    return told


def shared_nodes(
    scheduler: Scheduler,
    speedups: Heatmap,
    tasks: NDArray[np.void],
    n_nodes: int,
    parts: int,
    files: SharedFiles | None = None,
) -> CorunNodes:
    """Return idle nodes, and how fast codes run beside each other there."""
    weights = np.zeros(len(PASS_FEATURES))
    if looks_at_pass(scheduler):
        given = parse_policy(scheduler.policy).weights
        weights[:] = [given.get(name, 0.0) for name in PASS_FEATURES]
    return engine.make_corun(
        speedups.filled,
        speedups.alone,
        tasks,
        n_nodes,
        parts,
        _PARTNERS[scheduler.partners],
        scheduler.pairs_above,
        weights,
        scheduler.backfill == "fill",
        # spells are for what learns, which congestion is refused with
        logs_spells=files is None and not _is(scheduler.pair_estimate, "known"),
        io=files,
    )


def _place(schedule: Mapping[str, NDArray[np.int64]], machine: CorunNodes) -> None:
    """Give nodes, the first that are free, to compact jobs whose starts are known."""
    tasks, start = machine.tasks, schedule["start"]
    tasks["end"] = start + schedule["run"]
    order = np.argsort(schedule["number"], kind="stable")
    free = np.full(len(machine.free), -1, np.int64)  # [ticks] since when
    for job in order.tolist():
        first, count = int(tasks["first"][job]), int(tasks["nodes"][job])
        nodes = np.flatnonzero(free <= start[job])[:count]
        machine.cells[first : first + count] = nodes
        free[nodes] = tasks["end"][job]


# --- The result -----------------------------------------------------------------------------------


def shared_result(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    speedups: Heatmap,
    schedule: Mapping[str, NDArray[np.int64]],
    machine: CorunNodes,
    ticks: int,
    learning: PairLearning | None = None,
) -> Result:
    """Return the schedule, with times in seconds, float64; ``schedule`` in ticks."""
    tasks = machine.tasks
    run = Coschedule(
        ticks=ticks,
        start_ticks=schedule["start"].copy(),
        end_ticks=tasks["end"].copy(),
        promised_ticks=schedule["promised"].copy(),
        compact_s=schedule["run"] // ticks,
        shape=tasks["placement"].astype(np.int8),
        code=tasks["code"].copy(),
        parts=machine.who.shape[1],
        speedups=speedups,
        pairs=None if learning is None else learning.pairs,
    )
    found = Result.of(workload, cluster, scheduler, schedule)
    reserved = schedule["promised"]
    return replace(
        found,
        start=_seconds(run.start_ticks, ticks),
        run_time=_seconds(run.end_ticks - run.start_ticks, ticks),
        predicted_run_time=schedule["predicted"] // ticks,
        reserved_start=np.where(reserved < 0, -1.0, _seconds(reserved, ticks)),
        allocation=_allocation(workload, scheduler, cluster, machine, run),
        coschedule=run,
    )


def _seconds(times: NDArray[np.int64], ticks: int) -> Any:
    """Return times in ticks as seconds, float64, read-only."""
    seconds = times / ticks
    seconds.flags.writeable = False
    return seconds


def _allocation(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    machine: CorunNodes,
    run: Coschedule,
) -> Allocation:
    """Return the nodes of jobs: on each as many processes as it takes, the rest on the last."""
    tasks = machine.tasks
    nodes = tasks["nodes"]
    first = np.concatenate([[0], np.cumsum(nodes)]).astype(np.int64)
    cores, sockets = check_machine(cluster)
    part = cores_of_part(scheduler, cores, sockets) if scheduler.parts else cores
    each = np.where(run.shape == engine.COMPACT, cores, part)
    units = np.repeat(each, nodes)
    if len(nodes):
        units[first[1:] - 1] = workload.requested_processors - (nodes - 1) * each
    return Allocation(first, machine.cells.copy(), units.astype(np.int32))
