"""Simulations on machines whose nodes fail."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.failures import Failures
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.schedule.lost_runs import down, lost_runs
from hpcgym.schedule.places import Allocation
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.nodes import Nodes, allocation_code, demand_of, needs_on

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


def simulate_failing(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, failures: Failures
) -> Result:
    """Return the schedule on nodes that fail."""
    needs = needs_on(workload, cluster)
    asks = demand_of(needs, workload.requested_time, scheduler)
    nodes = Nodes(needs, cluster.capacity, *allocation_code(scheduler), asks)
    # behind the jobs stands who holds each node while it is down
    whole = np.column_stack([np.ones(cluster.nodes, np.int64), cluster.capacity])
    simulation = new_simulation(workload, scheduler, cluster, nodes.with_holders(whole))
    simulation.machine["outages"] = _outages_of(failures)
    simulation.drive()
    schedule = simulation.schedule()
    result = Result.of(workload, cluster, scheduler, schedule)
    warn_of_others(failures, result)
    return replace(
        result,
        allocation=Allocation.of(schedule),
        node_states=down(failures),
        lost=lost_runs(failures, schedule),
    )


def _outages_of(failures: Failures) -> NDArray[np.int64]:
    """Return when nodes fail and are repaired, by time, of one time repairs first.

    (2 * n, 3): time [s], node, and when a failure will be repaired [s], -1 of a repair.
    """
    repairs = np.full(len(failures), -1)
    time = np.concatenate([failures.repaired, failures.time])
    until = np.concatenate([repairs, failures.repaired])
    node = np.concatenate([failures.node, failures.node])
    order = np.lexsort((until >= 0, time))
    return np.column_stack([time, node, until])[order]


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
