"""Simulations on machines whose nodes fail."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.failures import Failures
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.scheduler.asked_for import check_scheduler

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.schedule.result import Result
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
    if scheduler.preempts is not None and scheduler.preempts.mode == "suspend":
        raise HpcgymError(
            f"preemption={scheduler.preemption!r} and failures of nodes do not go together: who is"
            " suspended has its memory on nodes that may fail; take requeue or cancel"
        )


def outages_of(failures: Failures) -> NDArray[np.int64]:
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
