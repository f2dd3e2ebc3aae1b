"""Simulations on machines whose nodes fail."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.cluster.failures import Failures
from hpcgym.engine.machines.nodes.failures import make_failing
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.schedule.lost_runs import down, lost_runs
from hpcgym.schedule.places import Allocation
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.simulation.driver import Simulation, new_simulation
from hpcgym.simulation.native_nodes import lost_in
from hpcgym.simulation.nodes import allocation_code, demand_of, needs_on

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


def find_failures(failures: Any, cluster: Cluster) -> Failures:
    """Return the failures, of a file too, of a machine.

    Raises
    ------
    HpcgymError : none, a file that cannot be read, or a node that there is not.
    """
    if isinstance(failures, str | os.PathLike):
        failures = Failures.read(failures)
    if not isinstance(failures, Failures):
        raise HpcgymError(
            f"failures must be Failures or a CSV file of them, not a {type(failures).__name__}"
        )
    if len(failures) and failures.node.max() >= cluster.nodes:
        raise HpcgymError(
            f"failures: node {failures.node.max()} is none of the machine, which has"
            f" {cluster.nodes:,} nodes, counted from 0"
        )
    return failures


def check_failures(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, *others: str
) -> None:
    """Raise an HpcgymError for what does not go with failures; ``others`` are asked for too."""
    place = "nodes" if cluster.groups else "pool"
    extract = () if workload.initial is None else ("extract",)
    check_scheduler(scheduler, "failures", place, *extract, *others)


def failing(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, failures: Failures
) -> Simulation:
    """Return a simulation on nodes that fail, before its first event."""
    needs = needs_on(workload, cluster)
    table = (failures.node, failures.time, failures.repaired)
    asks = demand_of(needs, workload.requested_time, scheduler)
    machine = make_failing(needs, cluster.capacity, *allocation_code(scheduler), table, asks)
    simulation = new_simulation(workload, scheduler, cluster, machine.nodes)
    simulation.machine["outages"] = machine.events.view(np.int64).reshape(-1, 3)
    return simulation


def simulate_failing(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, failures: Failures
) -> Result:
    """Return the schedule on nodes that fail."""
    simulation = failing(workload, scheduler, cluster, failures)
    simulation.drive()
    schedule = simulation.schedule()
    result = Result.of(workload, cluster, scheduler, schedule)
    warn_of_others(failures, result)
    return replace(
        result,
        allocation=Allocation.of(schedule),
        node_states=down(failures),
        lost=lost_runs(failures, *lost_in(schedule)),
    )


def warn_of_others(failures: Failures, result: Result) -> None:
    """Warn where all failures are before the first submission or after the last end.

    Warns
    -----
    HpcgymWarning : as the log of a week, which keeps the clock of the whole.
    """
    if not len(failures) or not len(result.start):
        return
    first, last = int(result.workload.submit_time[0]), int(result.end.max())
    if not ((failures.repaired > first) & (failures.time < last)).any():
        warn_caller(
            f"failures: none of {len(failures):,} is between the first submission ({first} s) and"
            f" the last end ({last} s); times are on the workload's clock",
            HpcgymWarning,
        )
