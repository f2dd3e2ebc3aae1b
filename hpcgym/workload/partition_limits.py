"""Which jobs partitions let run, by time, nodes, account, QOS and state; usual requested times.

Others would wait for ever, as in Slurm with ``EnforcePartLimits=NO``. Jobs of none of the machine's
partitions have no such limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster import Cluster, Partition
from hpcgym.errors import WorkloadError
from hpcgym.naming import so_many
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import needs_of
from hpcgym.workload.partitions import called_in, partitions_of
from hpcgym.workload.warm_start import decided

#: The reason by which :func:`within_limits` counts the jobs that it drops.
OVER_LIMITS = "dropped: its partition does not let it run"
_BY_DEFAULT = "repaired: requested_time taken from the DefaultTime or MaxTime of its partition"

Mask = NDArray[np.bool_]


def check_limits(workload: Workload, cluster: Cluster) -> None:
    """Say so if a job's partition does not let it run.

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
    many = so_many(int(np.count_nonzero(over)), len(workload))
    raise WorkloadError(
        f"{workload.name}: {workload.called(job)} {why}: it would wait for ever{many}:"
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
    """Return which jobs a limit does not let run, (n_jobs,), and why, for each limit."""
    limited = [one for one in cluster.partitions if any(_limits(one))]
    if not limited:
        return
    named = partitions_of(workload)
    for one in limited:
        rows = np.flatnonzero(named == one.name)
        if not len(rows):
            continue
        mine = workload.take(rows)
        for refused, why in (
            *_by_size(mine, cluster, one),
            *_by_name(mine, one),
            *_by_state(mine, one),
        ):
            if refused.any():
                over = np.zeros(len(workload), np.bool_)
                over[rows] = refused
                yield over, f"{why} of partition {one.name!r}"


def _limits(one: Partition) -> tuple[object, ...]:
    """Return what a partition limits; all false: nothing."""
    names = one.allow_accounts, one.deny_accounts, one.allow_qos, one.deny_qos
    sizes = one.max_time_s is not None, one.max_nodes is not None, one.min_nodes > 1
    return *sizes, *names, one.state != "up"


def _by_size(workload: Workload, cluster: Cluster, one: Partition) -> Iterator[tuple[Mask, str]]:
    """Return which jobs of a partition ask for too much or too little, and why, for each limit."""
    if one.max_time_s is not None:
        over = workload.requested_time > one.max_time_s
        yield over, f"asks for more than {one.max_time_s} s, the MaxTime"
    if one.max_nodes is not None:
        over = fewest_nodes(workload, cluster, one) > one.max_nodes
        yield over, f"needs more than {one.max_nodes} nodes, the MaxNodes"
    if one.min_nodes > 1:
        over = most_nodes(workload, cluster, one) < one.min_nodes
        yield over, f"cannot be on {one.min_nodes} nodes, the MinNodes"


def _by_name(workload: Workload, one: Partition) -> Iterator[tuple[Mask, str]]:
    """Return which jobs of a partition are of accounts or QOS that it refuses, and why.

    Those of unknown ones are let run. As in Slurm, DenyAccounts does not count beside
    AllowAccounts, nor DenyQos beside AllowQos.
    """
    account, qos = called_in(workload, "group_id"), called_in(workload, "queue")
    if one.allow_accounts:
        over = (account != "") & ~np.isin(account, one.allow_accounts)
        yield over, "has an account that is none of the AllowAccounts"
    elif one.deny_accounts:
        yield np.isin(account, one.deny_accounts), "has an account that is one of the DenyAccounts"
    if one.allow_qos:
        over = (qos != "") & ~np.isin(qos, one.allow_qos)
        yield over, "has a QOS that is none of the AllowQos"
    elif one.deny_qos:
        yield np.isin(qos, one.deny_qos), "has a QOS that is one of the DenyQos"


def _by_state(workload: Workload, one: Partition) -> Iterator[tuple[Mask, str]]:
    """Return which jobs of a partition its state does not let start, and why.

    Those that run at the beginning of an extract run on; those that wait there start under "drain".
    """
    if one.state != "up":
        initial = workload.initial
        over = decided(workload)
        if one.state == "drain" and initial is not None:
            over = workload.submit_time >= initial.begin
        yield over, f"cannot start in the state {one.state.upper()}"


def fewest_nodes(workload: Workload, cluster: Cluster, one: Partition) -> NDArray[np.int64]:
    """Return on how many nodes of a partition jobs need at least, (n_jobs,) int64.

    Those that all of its nodes do not hold need one more than it has.
    """
    fewest = np.empty(len(workload), np.int64)
    for rows, units, held in _kinds(workload, cluster, one):
        together = np.cumsum(np.sort(held)[::-1])
        fewest[rows] = np.searchsorted(together, units) + 1
    return fewest


def most_nodes(workload: Workload, cluster: Cluster, one: Partition) -> NDArray[np.int64]:
    """Return on how many nodes of a partition jobs can be at most, a unit on each, (n_jobs,)."""
    most = np.empty(len(workload), np.int64)
    for rows, units, held in _kinds(workload, cluster, one):
        most[rows] = np.minimum(units, np.count_nonzero(held))
    return most


def _kinds(
    workload: Workload, cluster: Cluster, one: Partition
) -> Iterator[tuple[Mask, NDArray[np.int64], NDArray[np.int64]]]:
    """Return jobs whose units are alike, (n_jobs,) bool, by what these ask for.

    With them, how many units each of them has, and how many such each empty node of a partition
    holds.
    """
    needs = needs_of(workload, cluster.resources)
    capacity = cluster.capacity[list(one.nodes)]
    demands, kind = np.unique(needs[:, 1:], axis=0, return_inverse=True)
    for place, demand in enumerate(demands):
        asked = demand > 0
        mine = kind.reshape(-1) == place
        yield mine, needs[mine, 0], (capacity[:, asked] // demand[asked]).min(axis=1)
