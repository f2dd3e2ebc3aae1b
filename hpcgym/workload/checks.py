"""Whether jobs can be simulated on a machine, and what they ask of its nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.machine.pool import ANY_NUMBER, Cluster
from hpcgym.workload.columns import MAX_TIME
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import check_fits, needs_of, warn_of_shared
from hpcgym.workload.partitions import check_limits, check_partitions


def check_jobs(workload: Workload, processors: int) -> None:
    """Raise a WorkloadError that names the first job that cannot be simulated on the machine."""
    if len(workload) == 0:
        return
    checks = (
        ("run_time", 1, MAX_TIME),
        ("requested_time", 1, MAX_TIME),
        ("requested_processors", 1, processors),
        ("submit_time", 0, MAX_TIME),
    )
    for column, least, most in checks:
        values = workload.columns[column]
        if values.min() >= least and values.max() <= most:
            continue
        bad = (values < least) | (values > most)
        first = int(np.flatnonzero(bad)[0])
        raise WorkloadError(
            f"{workload.name}: {int(bad.sum()):,} of {len(workload):,} jobs cannot be simulated: "
            f"{column} must be from {least} to {most}, and that of "
            f"{workload.called(first)} is {values[first]}; "
            f"load_workload(..., clean='default', processors={processors}), or with the machine as"
            " cluster=..., drops such jobs, counted"
        )
    # no schedule is longer than its jobs one after the other
    total = float(workload.requested_time.sum(dtype=np.float64)) + float(workload.submit_time[-1])
    if total >= FOREVER / 2:
        raise WorkloadError(
            f"{workload.name}: the jobs request {total:.3g} s one after the other, more than the "
            f"simulator's clock holds ({FOREVER / 2:.3g} s)"
        )


def needs_on(workload: Workload, cluster: Cluster) -> NDArray[np.int64]:
    """Return what the jobs ask of the nodes of a machine, (n_jobs, 2 + R), as :func:`needs_of`.

    On a pool, which is one node, a job is one unit.

    Raises
    ------
    WorkloadError : a job that never fits, asks for what the machine does not have, or is one that
        its partition does not let run.
    """
    if not cluster.groups:
        ones = np.ones(len(workload), np.int64)
        return np.column_stack([ones, workload.requested_processors, ones])
    check_partitions(workload, [partition.name for partition in cluster.partitions])
    warn_of_shared(workload, cluster)
    needs = needs_of(workload, cluster.resources)
    check_fits(workload, needs, cluster.capacity, cluster.resources)
    check_limits(workload, cluster)
    return needs


def single_cores(needs: NDArray[np.int64]) -> bool:
    """Return whether each unit is one core and nothing else, and a node may have any number.

    Such units fit wherever a core is free. So cores are alike: the machine is a pool of them, and a
    job can have any when it starts.
    """
    anywhere = (needs[:, 1] == 1).all() and (needs[:, -1] >= ANY_NUMBER).all()
    return bool(anywhere and (needs[:, 2:-1] == 0).all())


def check_pool(cluster: Cluster, workload: Workload, what: str) -> None:
    """Raise an HpcgymError where jobs ask for more of nodes than single cores."""
    if cluster.groups and not single_cores(needs_on(workload, cluster)):
        raise HpcgymError(
            f"{what} knows pools of processors only, and jobs whose units are single cores; "
            "simulate, evaluate, environments and batches know nodes"
        )


def units_a_node(needs: NDArray[np.int64], cluster: Cluster) -> NDArray[np.int64]:
    """Return how many units of each job a node holds, (n_jobs,)."""
    held: NDArray[np.int64] = np.minimum(units_that_fit(needs, cluster), needs[:, 0])
    return held


def units_that_fit(needs: NDArray[np.int64], cluster: Cluster) -> NDArray[np.int64]:
    """Return how many units such as those of each job fit on a node, (n_jobs,)."""
    each = needs[:, 1:-1]
    has = np.broadcast_to(cluster.capacity[0], each.shape)
    held = np.where(each > 0, has // np.maximum(each, 1), ANY_NUMBER).min(axis=1)
    most: NDArray[np.int64] = np.minimum(held, needs[:, -1])
    return most
