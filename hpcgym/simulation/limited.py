"""Simulations under limits of power and energy, in which each job has nodes of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.limited import state as limited_state
from hpcgym.engine.machines.limited.state import LimitedNodes
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.schedule.node_states import NodeStates
from hpcgym.schedule.places import Allocation
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import features_of
from hpcgym.scheduler.capabilities import PLACES, check
from hpcgym.scheduler.dispatchers.own_nodes import propose
from hpcgym.scheduler.limits import Limit, check_limits
from hpcgym.simulation.driver import Simulation, answers_for, asks_for_answers
from hpcgym.simulation.limited_machine import machine_for, node_power
from hpcgym.simulation.native_limited import take_limited, told_of_limited
from hpcgym.simulation.nodes import asked, needs_on
from hpcgym.simulation.prepare import prepare
from hpcgym.simulation.warm_start import check_extract

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.estimates.learning import Learned
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


def check_power_rule(scheduler: Scheduler, given: Any) -> None:
    """Raise an HpcgymError for a rule of how limits are kept where there are none."""
    if given is None and scheduler.power != "none":
        raise HpcgymError(f"power={scheduler.power!r} needs limits: caps or budgets")


def takes_whole_nodes(cluster: Cluster, scheduler: Scheduler, given: Any) -> bool:
    """Return whether each job has nodes of its own: under limits, switched off or in a row."""
    return (
        given is not None
        or scheduler.allocation == "contiguous"
        or bool(cluster.groups and cluster.shutdown_after_s is not None)
    )


def simulate_powered(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    given: Limit | Iterable[Limit] | None,
    learned: Learned | None = None,
) -> Result:
    """Simulate under limits, to the end; see :func:`hpcgym.simulate`.

    Raises
    ------
    HpcgymError : rules that do not go with limits, a machine whose nodes are not alike, a cap
        under which a job can never start, or what a dispatcher answers wrongly.
    WorkloadError : a job that cannot be simulated.
    """
    found = check_limits(() if given is None else given)
    check_for_limits(scheduler, given is not None)
    check_extract(workload, "whole nodes")
    needs = needs_on(workload, cluster)
    if given is None:
        warn_of_own_nodes(needs, cluster, scheduler, "; limits=[] says that this is meant")
    simulation = limited_simulation(workload, scheduler, cluster, found, learned)
    dispatcher = scheduler.dispatcher
    if dispatcher is not None:
        held_back = np.zeros(len(workload), np.int64)
        ask = partial(propose, capacity=cluster.capacity, held_back=held_back)
        dispatcher, simulation.dispatch = asked(dispatcher, workload, cluster, ask)
    simulation.drive()
    schedule = simulation.schedule()
    if (schedule["start"] < 0).any():
        raise HpcgymError("limits: the simulator found no start for a job: an error of its own")
    outside = dispatcher is not None
    # the run times as they were predicted at full frequency
    columns = schedule | {"predicted": schedule["predicted_at_highest"]}
    result = Result.of(workload, cluster, scheduler, columns, outside=outside)
    result = replace(result, **simulation.for_result(schedule), dispatcher=dispatcher)
    machine = take_limited(simulation.nodes, schedule)
    return with_machine(result, machine, needs[:, 0], units_a_node(needs, cluster), found)


def limited_simulation(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    limits: tuple[Limit, ...],
    learned: Learned | None = None,
) -> Simulation:
    """Return a simulation under limits before its first event; see :func:`simulate_powered`."""
    power = node_power(cluster, needed=bool(limits) or cluster.shutdown_after_s is not None)
    asks, counts = asks_for_answers(scheduler, learned)
    awake = replace(cluster, shutdown_after_s=None)
    told = prepare(workload, scheduler, awake, asks, logs_ends=True, shares=counts)
    needs = needs_on(workload, cluster)
    widths = -(-needs[:, 0] // units_a_node(needs, cluster))
    told.jobs["processors"] = widths
    told.capacity = cluster.nodes
    machine = machine_for(workload, scheduler, cluster, power, widths, limits)
    answers = answers_for(workload, scheduler, cluster, told, asks, counts, learned)
    return Simulation(told, {"limited": told_of_limited(machine)}, machine, **answers)


# --- Checks ---------------------------------------------------------------------------------------


def check_for_limits(scheduler: Scheduler, limited: bool = True) -> None:
    """Raise an HpcgymError for rules that do not go with nodes of their own, or each other.

    ``limited``: there are limits too.
    """
    asked = {"whole nodes": PLACES["limits" if limited else "whole nodes"]}
    check(*(["limits"] if limited else []), words=asked | features_of(scheduler))
    if scheduler.allocation not in ("first-fit", "contiguous"):
        raise HpcgymError(
            "allocation: with nodes of their own jobs are placed first-fit or contiguous, not"
            f" {scheduler.allocation!r}"
        )


def warn_of_own_nodes(
    needs: NDArray[np.int64],
    cluster: Cluster,
    scheduler: Scheduler,
    hint: str = "",
) -> None:
    """Warn where jobs do not fill the nodes that they have only because nodes are switched off.

    ``hint``: what to do about it.
    """
    partly = int((needs[:, 0] % units_that_fit(needs, cluster) > 0).sum())
    if scheduler.allocation != "contiguous" and partly:
        warn_caller(
            "shutdown_after_s: nodes are switched off whole, so each job has nodes of its own, also"
            f" the {partly:,} of {len(needs):,} jobs that do not fill theirs{hint}",
            HpcgymWarning,
        )


def units_a_node(needs: NDArray[np.int64], cluster: Cluster) -> NDArray[np.int64]:
    """Return how many units of each job a node holds, (n_jobs,)."""
    held: NDArray[np.int64] = np.minimum(units_that_fit(needs, cluster), needs[:, 0])
    return held


def units_that_fit(needs: NDArray[np.int64], cluster: Cluster) -> NDArray[np.int64]:
    """Return how many units such as those of each job fit on a node, (n_jobs,)."""
    each = needs[:, 1:]
    has = np.broadcast_to(cluster.capacity[0], each.shape)
    most: NDArray[np.int64] = np.where(
        each > 0, has // np.maximum(each, 1), np.iinfo(np.int64).max
    ).min(axis=1)
    return most


# --- The result -----------------------------------------------------------------------------------


def with_machine(
    result: Result,
    machine: LimitedNodes,
    units: NDArray[np.int64],
    a_node: NDArray[np.int64],
    limits: tuple[Limit, ...],
) -> Result:
    """Return a schedule with the nodes of jobs, their frequencies and the states of nodes."""
    level = machine.tasks["level"]
    slowed_down = bool((level < machine.scalars[0].highest).any())
    return replace(
        result,
        frequency=level.copy() if slowed_down else None,
        node_states=_node_states(machine, int(result.end.max(initial=0))),
        allocation=_allocation(machine, units, a_node),
        limits=limits,
    )


def _allocation(
    machine: LimitedNodes, units: NDArray[np.int64], a_node: NDArray[np.int64]
) -> Allocation:
    """Return the nodes of jobs: as many units on each as it holds, the rest on the last."""
    widths = np.diff(machine.first)
    on_each = np.repeat(a_node, widths)
    last = machine.first[1:] - 1
    on_each[last] = units - (widths - 1) * a_node
    return Allocation(machine.first, machine.cells, on_each.astype(np.int32))


def _node_states(machine: LimitedNodes, end: int) -> NodeStates | None:
    """Return when nodes were off or switched, up to the last end [s]; None where all were on."""
    log = machine.log[: machine.scalars[0].logged]
    last = machine.nodes
    still = np.flatnonzero((last["state"] != limited_state.ON) & (last["since"] < end))
    columns = {
        "node": np.concatenate([log["node"], still]),
        "state": np.concatenate([log["state"], last["state"][still]]),
        "begin": np.concatenate([log["begin"], last["since"][still]]),
        "end": np.concatenate([log["end"], np.full(len(still), end)]),
    }
    return NodeStates(**columns) if len(columns["node"]) else None
