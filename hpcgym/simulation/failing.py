"""Failures of nodes that a simulation is given: which they are, and what does not go with them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.machine.failures import Failures
from hpcgym.scheduler.asked_for import check_scheduler

if TYPE_CHECKING:
    from hpcgym.machine.pool import Cluster
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
    if scheduler.preemption is not None and scheduler.preemption.mode == "suspend":
        raise HpcgymError(
            f"{scheduler.said('preemption')} and failures of nodes do not go together: who is"
            " suspended has its memory on nodes that may fail; take requeue or cancel"
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
