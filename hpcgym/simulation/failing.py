"""Simulations on machines whose nodes fail."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.failures import Failures
from hpcgym.engine.machines.kinds import FAILING
from hpcgym.engine.machines.nodes.failures import FailingNodes, make_failing
from hpcgym.engine.passes.requeueing import lengthened
from hpcgym.engine.state import make_queues
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.schedule.lost_runs import down, lost_runs
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.simulation.driver import Simulation, new_simulation
from hpcgym.simulation.nodes import allocation_code, allocation_of, demand_of, needs_on

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
    arrays = simulation.arrays
    running = min(len(workload) + cluster.nodes, 2 * cluster.processors)
    blocks, entries, narrow = make_queues(arrays.sim, len(workload), running)
    arrays = arrays._replace(blocks=blocks, entries=entries, narrow=narrow)
    simulation.kind, simulation.arrays, simulation.machine = FAILING, arrays, machine
    simulation.lengthen = lengthened
    return simulation


def simulate_failing(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, failures: Failures
) -> Result:
    """Return the schedule on nodes that fail."""
    simulation = failing(workload, scheduler, cluster, failures)
    simulation.drive()
    arrays = simulation.arrays
    ended: FailingNodes = simulation.machine
    result = Result.of(workload, cluster, scheduler, arrays.jobs, arrays.progress)
    warn_of_others(failures, result)
    return replace(
        result,
        allocation=allocation_of(ended.nodes, len(workload)),
        node_states=down(failures),
        lost=lost_runs(failures, *_log_of(ended)),
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


def _log_of(machine: FailingNodes) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Return the runs that were lost, and their cells."""
    own: Any = machine.scalars[0]
    return machine.lost[: own.lost], machine.cells[: own.cells]
