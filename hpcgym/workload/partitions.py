"""Partitions that jobs name, and a machine that has them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster import Cluster, NodeGroup, Partition
from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.naming import CORE
from hpcgym.workload.io.records import most_busy
from hpcgym.workload.model import Workload
from hpcgym.workload.names import names_of


def partitions_of(workload: Workload) -> NDArray[np.object_]:
    """Return the partition that each job names, (n_jobs,): a name, or the number; "" of none."""
    return called_in(workload, "partition")


def called_in(workload: Workload, column: str) -> NDArray[np.object_]:
    """Return what the number of each job in a column is called, (n_jobs,): as partitions are."""
    numbers, place = np.unique(workload.columns[column], return_inverse=True)
    names = names_of(workload, column)
    texts = [names.get(n, str(n)) if n >= 0 else "" for n in numbers.tolist()]
    return np.array(texts, dtype=object)[place.reshape(-1)]


def in_others(named: NDArray[np.object_], partitions: Sequence[str]) -> NDArray[np.bool_]:
    """Return which jobs are in partitions that the machine does not have, (n_jobs,).

    None are where all are: then the log's partitions are not the machine's, and do not count.

    Parameters
    ----------
    named : of :func:`partitions_of`.
    partitions : names of the machine's.
    """
    known = np.isin(named, list(partitions))
    others: NDArray[np.bool_] = ~known & (named != "")
    return others if known.any() else np.zeros_like(others)


def check_partitions(workload: Workload, partitions: Sequence[str]) -> None:
    """Say so if a job names a partition that the machine does not have.

    Parameters
    ----------
    workload : the jobs.
    partitions : names of the machine's; none: it has all jobs in one.

    Raises
    ------
    WorkloadError : it names the first such job, and says how many there are.

    Warns
    -----
    WorkloadWarning : no job is in a partition of the machine, so that each may have any nodes.
    """
    if not partitions or not len(workload):
        return
    named = partitions_of(workload)
    if not np.isin(named, list(partitions)).any():
        said = _first_few(sorted({*named} - {""}))
        warn_caller(
            f"{workload.name}: its jobs are in none of the machine's partitions"
            f" ({_first_few(partitions)}){said and f', but in {said}'}; each may have any nodes",
            WorkloadWarning,
        )
        return
    strange = in_others(named, partitions)
    if strange.any():
        job = int(strange.argmax())
        raise WorkloadError(
            f"{workload.name}: {workload.called(job)} is in partition {named[job]!r}, which the"
            f" machine lacks; it has {', '.join(partitions)}. The same holds for"
            f" {np.count_nonzero(strange):,} of {len(workload):,} jobs"
        )


def _first_few(names: Sequence[str]) -> str:
    """Return the first five names, and how many more there are."""
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")


def machine_of_partitions(workload: Workload) -> Cluster:
    """Return a machine with the partitions that a log names, each one node of its own.

    A partition is as large as the log shows it busy at once, or as its largest job. So sites of a
    grid, or machines of a centre, are simulated side by side.

    Parameters
    ----------
    workload : jobs with partitions; those without may have any node.

    Raises
    ------
    WorkloadError : no job names a partition.

    Examples
    --------
    >>> import hpcgym
    >>> from hpcgym.workload.partitions import machine_of_partitions
    >>> jobs = hpcgym.load_workload("lublin:jobs=4,processors=8,seed=0")
    >>> machine_of_partitions(jobs.with_columns(partition=[1, 1, 2, 2])).nodes
    2
    """
    named = partitions_of(workload)
    names = [name for name in dict.fromkeys(named.tolist()) if name]
    if not names:
        raise WorkloadError(f"{workload.name}: no job names a partition")
    groups = []
    for name in names:
        jobs = workload.take(named == name)
        size = max(most_busy(jobs.columns), int(jobs.requested_processors.max()))
        groups.append(NodeGroup(name, 1, {CORE: size}))
    partitions = [Partition(name, (node,)) for node, name in enumerate(names)]
    return Cluster(groups=tuple(groups), partitions=tuple(partitions), name=workload.name)
