"""Simulations under limits of power and energy, in which each job has nodes of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.schedule.node_states import NodeStates
from hpcgym.schedule.places import Allocation
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import features_of
from hpcgym.scheduler.capabilities import PLACES, check
from hpcgym.scheduler.dispatchers.own_nodes import propose, view_of
from hpcgym.scheduler.limits import EnergyBudget, Limit, check_limits
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.dependencies import as_came
from hpcgym.simulation.driver import Simulation, answers_for, asks_for_answers, with_room
from hpcgym.simulation.limited_machine import (
    LimitedMachine,
    limit_records,
    machine_without_limits,
    may_switch,
    node_power,
)
from hpcgym.simulation.nodes import asked, needs_on
from hpcgym.simulation.prepare import Units, prepare
from hpcgym.simulation.scoring import scored_by
from hpcgym.simulation.warm_start import check_extract, taken_over
from hpcgym.workload.warm_start import decided

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.cluster.power import NodePower
    from hpcgym.scheduler.estimates.learning import Learned
    from hpcgym.workload.model import Workload

_ON = 3  # the state of a node; those before it are places in STATE_NAMES of schedule.node_states


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
    workload = _with_room(workload, scheduler, cluster, found)
    needs = needs_on(workload, cluster)
    if given is None:
        warn_of_own_nodes(needs, cluster, scheduler, "; limits=[] says that this is meant")
    machine, simulation = limited_simulation(workload, scheduler, cluster, found, learned)
    dispatcher = scheduler.dispatcher
    held_back = np.zeros(len(workload), np.int64)
    view = partial(view_of, capacity=cluster.capacity, held_back=held_back)
    simulation.dispatch = scored_by(scheduler.policy, workload, cluster, None, view)
    if dispatcher is not None:
        ask = partial(propose, capacity=cluster.capacity, held_back=held_back)
        dispatcher, simulation.dispatch = asked(dispatcher, workload, cluster, ask)
    simulation.drive()
    schedule = simulation.schedule()
    if (schedule["start"] < 0).any():
        raise HpcgymError("limits: the simulator found no start for a job: an error of its own")
    # run times as they were predicted at full frequency
    asked_for = schedule | {"predicted": schedule["predicted_at_highest"]}
    outside = dispatcher is not None
    result = Result.of(workload, cluster, scheduler, asked_for, outside=outside)
    result = replace(result, dispatcher=dispatcher, **simulation.for_result(schedule))
    return with_machine(result, machine, schedule, needs[:, 0], units_a_node(needs, cluster), found)


def _with_room(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, limits: tuple[Limit, ...]
) -> Workload:
    """Return an extract in which each of its running jobs has nodes of its own; others wait.

    Raises
    ------
    HpcgymError : budgets that begin before it, or nodes that are switched off.
    """
    if workload.initial is None:
        return workload
    begin = workload.initial.begin
    if cluster.shutdown_after_s is not None:
        check_extract(workload, "shutdown")
    for limit in limits:
        if isinstance(limit, EnergyBudget) and limit.start < begin < limit.end:
            raise HpcgymError(
                f"limits: a budget has begun at {limit.start} s when {workload.name} begins, at"
                f" {begin} s, and what has been drawn of it is not known"
            )
    places = Scheduler(allocation=scheduler.allocation)
    return with_room(
        taken_over(workload), lambda jobs: limited_simulation(jobs, places, cluster, ())[1]
    )


def limited_simulation(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    limits: tuple[Limit, ...],
    learned: Learned | None = None,
) -> tuple[LimitedMachine, Simulation]:
    """Return a machine, and a simulation there under limits before its first event.

    See :func:`simulate_powered`.
    """
    power = node_power(cluster, needed=bool(limits) or cluster.shutdown_after_s is not None)
    asks, counts = asks_for_answers(scheduler, learned)
    awake = replace(cluster, shutdown_after_s=None)
    needs = needs_on(workload, cluster)
    widths = -(-needs[:, 0] // units_a_node(needs, cluster))
    told = prepare(
        workload, scheduler, awake, "whole nodes", units=Units(cluster.nodes, widths),
        predicts=asks, counts=counts, logs_ends=True,
    )  # fmt: skip
    machine = machine_for(workload, scheduler, cluster, power, widths, limits)
    answers = answers_for(workload, scheduler, cluster, told, asks, counts, learned)
    return machine, Simulation(told, {"limited": machine.told}, **answers)


def machine_for(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    power: NodePower,
    widths: NDArray[np.int64],
    given: tuple[Limit, ...],
) -> LimitedMachine:
    """Return a machine under limits before the first event."""
    switches = may_switch(scheduler, cluster, given)
    machine = machine_without_limits(workload, scheduler, cluster, power, widths, switches)
    caps, budgets = limit_records(scheduler, cluster, power, machine, given)
    machine = machine._replace(caps=caps, budgets=budgets)
    check_possible(workload, machine)
    return machine


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


def check_possible(workload: Workload, machine: LimitedMachine) -> None:
    """Raise an HpcgymError if a job can never start under the caps that have no end."""
    own, widths, caps = machine.constants, machine.widths, machine.caps
    lasting = caps[caps["end"] == FOREVER]
    if not len(lasting) or not len(workload):
        return
    level = own["lowest"]
    power = widths * machine.busy_mw[level]
    if len(machine.measured_mw):
        power = np.maximum(power, machine.measured_mw[:, level])
    if machine.switches:  # its nodes may have to be switched on
        power = np.maximum(power, widths * own["rise_mw"])
    for cap in lasting:
        floor = machine.idle_mw(int(cap["off"]))
        idle = widths * own["rest_mw"]
        drawn = floor + power - idle
        left = machine.n_nodes - int(lasting["off"].max())
        never = ((drawn > cap["mw"]) | (widths > left)) & decided(workload)
        if never.any():
            job = int(never.argmax())
            width = int(widths[job])
            why, switching = f"the caps leave only {left} nodes on", ""
            if width <= left:
                switching = "" if cap["off"] else ', or power="shut" (--power shut)'
                others = machine.n_nodes - int(cap["off"]) - width
                why = f"with {others} idle nodes beside it the machine draws"
                why += f" {drawn[job] / 1000:g} W"
            raise HpcgymError(
                f"{workload.name}: {workload.called(job)}, of {width} nodes, can never start"
                f" under the cap of {cap['mw'] / 1000:g} W from {cap['start']} s on, which has no"
                f" end: {why}; give a higher cap or an end{switching}"
            )


# --- The result -----------------------------------------------------------------------------------


def with_machine(
    result: Result,
    machine: LimitedMachine,
    schedule: Mapping[str, NDArray[np.int64]],
    units: NDArray[np.int64],
    a_node: NDArray[np.int64],
    limits: tuple[Limit, ...],
) -> Result:
    """Return a schedule with the nodes of jobs, their frequencies and the states of nodes.

    Its jobs stand in the order in which they came. ``schedule`` is the engine's; ``units`` and
    ``a_node``: of each job, in all and on each node.
    """
    highest = machine.constants["highest"]
    level = np.where(schedule["start"] >= 0, schedule["level"], highest)
    # as many units on each node as it holds, the rest on the last
    on_each = np.repeat(a_node, machine.widths)
    first = np.concatenate([[0], np.cumsum(machine.widths)])
    on_each[first[1:] - 1] = units - (machine.widths - 1) * a_node
    node = schedule["cell_node"].astype(np.int32)
    found = replace(
        result,
        frequency=level if (level < highest).any() else None,
        node_states=_node_states(schedule, int(result.end.max(initial=0))),
        allocation=Allocation(first, node, on_each.astype(np.int32)),
        limits=limits,
    )
    return as_came(found, schedule["submit"])


def _node_states(schedule: Mapping[str, NDArray[np.int64]], end: int) -> NodeStates | None:
    """Return when nodes were off or switched, up to the last end [s]; None where all were on."""
    state, since = schedule["node_state"], schedule["node_since"]
    still = np.flatnonzero((state != _ON) & (since < end))
    columns = {
        "node": np.concatenate([schedule["log_node"], still]),
        "state": np.concatenate([schedule["log_state"], state[still]]),
        "begin": np.concatenate([schedule["log_begin"], since[still]]),
        "end": np.concatenate([schedule["log_end"], np.full(len(still), end)]),
    }
    return NodeStates(**columns) if len(columns["node"]) else None
