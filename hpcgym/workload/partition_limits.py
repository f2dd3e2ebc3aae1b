"""What partitions let a job ask for: MaxTime, MaxNodes and DefaultTime of Slurm.

Jobs that ask for more would wait for ever, as in Slurm with ``EnforcePartLimits=NO``. Jobs of none
of the machine's partitions have no such limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster import Cluster, Partition
from hpcgym.errors import WorkloadError
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import needs_of
from hpcgym.workload.partitions import partitions_of

#: The reason by which :func:`within_limits` counts the jobs that it drops.
OVER_LIMITS = "dropped: asks for more than its partition lets a job have"
_BY_DEFAULT = "repaired: requested_time taken from the DefaultTime or MaxTime of its partition"

Mask = NDArray[np.bool_]


def check_limits(workload: Workload, cluster: Cluster) -> None:
    """Say so if a job asks for more than its partition lets a job have.

    Raises
    ------
    WorkloadError : it names the first such job, says how many there are, and how to drop them.
    """
    found = list(_over(workload, cluster))
    if not found:
        return
    over = np.logical_or.reduce([mask for mask, _ in found])
    job = int(over.argmax())
    why = next(text for mask, text in found if mask[job])
    raise WorkloadError(
        f"{workload.name}: {workload.called(job)} {why}: it would wait for ever. So it is with"
        f" {np.count_nonzero(over):,} of {len(workload):,} jobs:"
        " hpcgym.workload.within_limits(workload, cluster) drops them"
    )


def within_limits(workload: Workload, cluster: Cluster) -> Workload:
    """Return the jobs that their partitions let run; the others are counted in ``cleaning``.

    Raises
    ------
    WorkloadError : no job is left, or one asks for no processors.
    """
    over = np.zeros(len(workload), np.bool_)
    for mask, _ in _over(workload, cluster):
        over |= mask
    if not over.any():
        return workload
    if over.all():
        raise WorkloadError(f"{workload.name}: no job is within the limits of its partition")
    return workload.take(~over, cleaning={OVER_LIMITS: int(np.count_nonzero(over))})


def with_default_times(workload: Workload, partitions: Sequence[Partition]) -> Workload:
    """Return jobs with the DefaultTime of their partition where no requested time is told.

    Where there is none, MaxTime counts, as in Slurm. A job that ran for longer must have asked for
    more, and its requested time stays unknown. But no job was allowed more than MaxTime: one that
    ran for longer was killed somewhat late, and MaxTime is what it asked for.
    """
    requested = workload.requested_time
    if not partitions or (requested > 0).all():
        return workload
    named = partitions_of(workload)
    given = np.array(requested)
    for one in partitions:
        usual = one.max_time_s if one.default_time_s is None else one.default_time_s
        if usual is None:
            continue
        unknown = (named == one.name) & (requested <= 0)
        given[unknown & (workload.run_time <= usual)] = usual
        if one.max_time_s is not None:
            given[unknown & (workload.run_time > one.max_time_s)] = one.max_time_s
    changed = int(np.count_nonzero(given != requested))
    if not changed:
        return workload
    return workload.with_columns(requested_time=given).counted({_BY_DEFAULT: changed})


def _over(workload: Workload, cluster: Cluster) -> Iterator[tuple[Mask, str]]:
    """Return which jobs ask for more than a limit, (n_jobs,), and what they do, for each limit."""
    limited = [one for one in cluster.partitions if (one.max_time_s, one.max_nodes) != (None, None)]
    if not limited:
        return
    named = partitions_of(workload)
    for one in limited:
        mine: Mask = np.equal(named, one.name).astype(np.bool_)
        if one.max_time_s is not None:
            over = mine & (workload.requested_time > one.max_time_s)
            if over.any():
                yield over, f"asks for more than {one.max_time_s} s, MaxTime of {one.name!r}"
        if one.max_nodes is not None and mine.any():
            over = np.zeros(len(workload), np.bool_)
            over[mine] = fewest_nodes(workload.take(mine), cluster, one) > one.max_nodes
            if over.any():
                yield over, f"needs more than {one.max_nodes} nodes, MaxNodes of {one.name!r}"


def fewest_nodes(workload: Workload, cluster: Cluster, one: Partition) -> NDArray[np.int64]:
    """Return on how many nodes of a partition jobs need at least, (n_jobs,) int64.

    Those that all of its nodes do not hold need one more than it has.
    """
    needs = needs_of(workload, cluster.resources)
    capacity = cluster.capacity[list(one.nodes)]
    kinds, kind = np.unique(needs[:, 1:], axis=0, return_inverse=True)
    fewest = np.empty(len(workload), np.int64)
    for place, demand in enumerate(kinds):
        asked = demand > 0
        held = (capacity[:, asked] // demand[asked]).min(axis=1)
        together = np.cumsum(np.sort(held)[::-1])
        mine = kind.reshape(-1) == place
        fewest[mine] = np.searchsorted(together, needs[mine, 0]) + 1
    return fewest
