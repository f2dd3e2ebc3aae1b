"""Simulations in which jobs share nodes and speed each other up, or slow each other down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.nodes import NodeGroup
from hpcgym.cluster.pool import Cluster
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.naming import CORE
from hpcgym.schedule.places import Allocation, Coschedule
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.capabilities import check
from hpcgym.scheduler.policies.features import PASS_FEATURES
from hpcgym.scheduler.policies.index import parse_policy
from hpcgym.simulation.corun_learning import PairLearning
from hpcgym.simulation.corun_machine import (
    COMPACT,
    SharedNodes,
    check_files,
    cores_of_part,
    looks_at_pass,
    shared_nodes,
    slowest_in_congestion,
    ticks_a_second,
)
from hpcgym.simulation.dependencies import as_came, longest_outside
from hpcgym.simulation.driver import Simulation, answers_for, asks_for_answers
from hpcgym.simulation.nodes import assign_nodes
from hpcgym.simulation.prepare import COSCHEDULED, Units, prepare
from hpcgym.simulation.scoring import scored_by
from hpcgym.simulation.warm_start import check_extract
from hpcgym.speedups.heatmap import Heatmap

if TYPE_CHECKING:
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


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
    machine = shared_nodes(workload, scheduler, cluster, speedups, cores, sockets)
    congested = slowest_in_congestion(cluster, speedups, machine.files)
    rules = as_on_a_pool(scheduler)
    more = longest_outside(workload, scheduler)
    ticks = ticks_a_second(workload, speedups, scheduler.pair_estimate, congested, more)
    asks, counts = asks_for_answers(rules)
    told = prepare(
        workload, rules, cluster, "shared nodes", counts=counts, logs_ends=True,
        units=Units(cluster.nodes * machine.parts, machine.units, ticks),
        fills=scheduler.backfill == "fill",
    )  # fmt: skip
    learning = PairLearning.of(scheduler, speedups)
    answers = answers_for(workload, rules, cluster, told, asks, counts, ticks=ticks)
    if scheduler.backfill == "conservative":
        simulation = Simulation(told, **answers)
    else:
        sharing = machine.told
        if learning is not None:
            sharing |= learning.begin(machine.code, told.jobs["run"])
        pairs = learning if learning is not None and learning.learns else None
        simulation = Simulation(told, {"sharing": sharing}, pairs=pairs, **answers)
    simulation.dispatch = scored_by(scheduler.policy, workload, cluster, None, ticks=ticks)
    simulation.drive()
    schedule = simulation.schedule()
    if scheduler.backfill == "conservative":
        schedule |= _placed(schedule, machine, scheduler)
    found = shared_result(
        workload, scheduler, cluster, speedups, schedule, machine, ticks, learning
    )
    return as_came(found, schedule["submit"] // ticks)


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


def as_on_a_pool(scheduler: Scheduler) -> Scheduler:
    """Return the rules that a pool has too: the orders, estimates and reservations."""
    plain: dict[str, Any] = {"allocation": "first-fit", "partners": "fill", "pairs_above": None}
    if looks_at_pass(scheduler):
        plain["policy"] = "fcfs"
    if scheduler.backfill == "fill":  # the queue is swept in its own order
        order = plain.get("policy", scheduler.policy)
        plain |= {"backfill": "easy", "backfill_order": "fcfs" if callable(order) else order}
    plain["pair_estimate"] = "known"
    return scheduler.but(**plain)


def _placed(
    schedule: Mapping[str, NDArray[np.int64]], machine: SharedNodes, scheduler: Scheduler
) -> dict[str, NDArray[np.int64]]:
    """Return the ends and the nodes of compact jobs whose starts are known."""
    start, end = schedule["start"], schedule["start"] + schedule["run"]
    # by the places of times among all: in ticks they may be beyond the clock of the engine
    known = np.unique([start, end])
    begin, over = np.searchsorted(known, start), np.searchsorted(known, end)
    run = over - begin
    times = {"submit": np.zeros_like(begin), "run": run, "requested": run}
    placed = {**schedule, **times, "start": np.where(start >= 0, begin, -1)}
    whole = Cluster(groups=(NodeGroup("node", machine.n_nodes, {CORE: 1}),))  # each taken as one
    needs = np.column_stack([machine.nodes, np.ones_like(machine.nodes)])
    nodes = assign_nodes(placed, needs, whole, as_on_a_pool(scheduler)).node
    return {"end": end, "cell_node": nodes}


# --- The result -----------------------------------------------------------------------------------


def shared_result(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    speedups: Heatmap,
    schedule: Mapping[str, NDArray[np.int64]],
    machine: SharedNodes,
    ticks: int,
    learning: PairLearning | None = None,
) -> Result:
    """Return the schedule, with times in seconds, float64.

    ``schedule`` is the simulator's, in ticks.
    """
    run = Coschedule(
        ticks=ticks,
        start_ticks=schedule["start"],
        end_ticks=schedule["end"],
        promised_ticks=schedule["promised"],
        compact_s=schedule["run"] // ticks,
        shape=machine.placement.astype(np.int8),
        code=machine.code,
        parts=machine.parts,
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
        allocation=_allocation(workload, scheduler, cluster, machine, schedule["cell_node"]),
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
    machine: SharedNodes,
    cells: NDArray[np.int64],
) -> Allocation:
    """Return the nodes of jobs: on each as many processes as it takes, the rest on the last."""
    nodes = machine.nodes
    first = np.concatenate([[0], np.cumsum(nodes)]).astype(np.int64)
    cores, sockets = check_machine(cluster)
    part = cores_of_part(scheduler, cores, sockets) if scheduler.parts else cores
    each = np.where(machine.placement == COMPACT, cores, part)
    units = np.repeat(each, nodes)
    if len(nodes):
        units[first[1:] - 1] = workload.requested_processors - (nodes - 1) * each
    return Allocation(first, cells.astype(np.int32), units.astype(np.int32))
