"""What the records of a log tell beside its jobs: parts of jobs, how large the machine was.

The Standard Workload Format says that a job which was swapped out may have a record for each
partial execution, status 2 (to be continued), then 3 or 4 (the last one), beside one of the whole
job; and that studies of workloads should only look at that one. Source:
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.naming import MOST_AMOUNT
from hpcgym.workload.model import MISSING, Workload

Columns = Mapping[str, NDArray[Any]]


def are_parts(columns: Columns) -> NDArray[np.bool_]:
    """Return which records are partial executions, (n_jobs,): those with status 2, 3 or 4."""
    status = columns["status"]
    parts: NDArray[np.bool_] = (status >= 2) & (status <= 4)
    return parts


def parts_of(columns: Columns, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which records are partial executions of the jobs of some numbers, (n_jobs,).

    A job without a number has no parts.
    """
    return are_parts(columns) & np.isin(columns["job_number"], numbers[numbers != MISSING])


def most_busy(columns: Columns) -> int:
    """Return the most processors that a log shows busy at once; 0 if it tells of no time.

    A job is busy from its submit time + wait on, for its run time, on the processors it was
    allocated, or requested if that is unknown. Jobs end before others start in the same second. Of
    a job with an unknown wait nobody knows when it ran: it does not count, nor do parts of jobs
    that count as a whole, nor jobs larger than any machine.
    """
    submit, wait, run = (columns[name] for name in ("submit_time", "wait_time", "run_time"))
    allocated, requested = columns["allocated_processors"], columns["requested_processors"]
    width = np.where(allocated > 0, allocated, requested)
    known = (submit >= 0) & (wait >= 0) & (run > 0) & (width > 0) & (width <= MOST_AMOUNT)
    parts = are_parts(columns)
    if parts.any():
        known &= ~parts_of(columns, columns["job_number"][known & ~parts])
    if not known.any():
        return 0
    start, width = (submit + wait)[known], width[known]
    # an end is sorted before the starts of its second
    times = np.concatenate([2 * (start + run[known]), 2 * start + 1])
    change = np.concatenate([-width, width])
    return int(np.cumsum(change[np.argsort(times, kind="stable")]).max())


def size_by_jobs(columns: Columns, name: str, told: str = "") -> int:
    """Return how large a machine is taken to be that nothing but its jobs tells of.

    As its largest job, or as the most processors that its jobs were busy on at once, if these were
    more. Jobs larger than any machine do not count: cleaning drops them.

    Parameters
    ----------
    columns : those of a workload, (n_jobs,) each.
    name : what messages call it.
    told : why what the log tells of the size is none, if it tells anything.

    Raises
    ------
    WorkloadError : no job tells its processors.

    Warns
    -----
    WorkloadWarning : always; it says which of the two it is.
    """
    sizes = (columns[c] for c in ("requested_processors", "allocated_processors"))
    largest = max(int(size.max(initial=0, where=size <= MOST_AMOUNT)) for size in sizes)
    if largest < 1:
        why = f"{told}, and no job" if told else "no job"
        raise WorkloadError(
            f"{name}: {why} tells its processors, so the machine's size is unknown;"
            " give processors=..."
        )
    busy = min(most_busy(columns), MOST_AMOUNT)
    if busy > largest:
        taken = (
            f"{busy:,} processors, the most that it shows busy at once (largest job {largest:,})"
        )
    else:
        taken = f"its largest job, {largest:,} processors"
    unknown = f": {told}" if told else " does not say how large its machine was"
    warn_caller(
        f"{name}{unknown}: taken to be {taken}; processors=... or --processors says otherwise",
        WorkloadWarning,
    )
    return max(busy, largest)


def warn_of_ignored(workload: Workload, partitioned: bool = False, follows: bool = False) -> None:
    """Say what a log tells of its jobs that simulations do not heed, a line for each.

    ``partitioned``: the machine has partitions; ``follows``: schedules heed who follows whom.

    Warns
    -----
    WorkloadWarning : partial executions that are jobs of their own, jobs that follow others, more
        than one partition.
    """
    parts = int(np.count_nonzero(are_parts(workload.columns)))
    follow = int(np.count_nonzero((workload.preceding_job > 0) | (workload.think_time > 0)))
    partition = workload.partition
    partitions = len(np.unique(partition[partition != MISSING]))
    found = {
        f"{parts:,} records are partial executions (status 2 to 4): each is simulated as a job of"
        " its own": parts > 0,
        f"{follow:,} {'job follows' if follow == 1 else 'jobs follow'} others (preceding_job,"
        " think_time): submitted when the log says, unless dependencies is 'after' or"
        " 'closed-loop'": follow > 0 and not follows,
        f"its jobs ran in {partitions} partitions: unless the machine has them (--cluster), each"
        f" may have any of the {workload.processors:,} processors": partitions > 1
        and not partitioned,
    }
    for text, applies in found.items():
        if applies:
            warn_caller(f"{workload.name}: {text}", WorkloadWarning)
