"""Jobs of partitions that give whole nodes alone, as Slurm's with ``OverSubscribe=EXCLUSIVE``.

Each unit of such a job is a node: all of its cores and generic resources, and as much memory as the
job asks for there. So nobody else has anything of it.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster import Cluster, Partition
from hpcgym.errors import WorkloadWarning, warn_caller
from hpcgym.naming import CORE, MEMORY
from hpcgym.workload.arrays import read_only
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import lacking, megabytes
from hpcgym.workload.partition_limits import fewest_nodes, most_nodes
from hpcgym.workload.partitions import partitions_of

_RAISED = "repaired: processors raised to those of whole nodes, since its partition is exclusive"
_UNITS = ""  # no resource has this name

# workload -> the machine for which it was last looked at; and machines of which it was told that
# nodes of a partition differ, by their ids: many simulations of the same jobs look and tell once
_LOOKED: WeakKeyDictionary[Workload, Cluster] = WeakKeyDictionary()
_TOLD: WeakValueDictionary[tuple[int, str], Cluster] = WeakValueDictionary()

Ints = NDArray[np.int64]


def with_whole_nodes(workload: Workload, cluster: Cluster) -> Workload:
    """Return the jobs with whole nodes where their partitions are exclusive.

    A job has the fewest nodes that hold it, and MinNodes at least. Jobs that their partition does
    not hold stay as they are, and so do all where one asks for an unknown number of processors.

    Warns
    -----
    WorkloadWarning : the nodes of such a partition are not all alike; its jobs stay as they are.
        It is told once of each.
    """
    exclusive = [one for one in cluster.partitions if one.exclusive]
    known = workload.units is not None or bool((workload.requested_processors > 0).all())
    if not exclusive or not known:
        return workload
    named = np.where(lacking(workload, cluster.resources), "", partitions_of(workload))
    asked = _asked(workload, cluster)
    given = {name: amount.copy() for name, amount in asked.items()}
    for one in exclusive:
        rows = np.flatnonzero(named == one.name)
        if len(rows) and _are_alike(cluster, one):
            _give(given, rows, workload.take(rows), cluster, one)
    if all(np.array_equal(amount, given[name]) for name, amount in asked.items()):
        return workload
    units = read_only(given.pop(_UNITS))
    requested = read_only(units * given[CORE])
    whole = replace(
        workload,
        columns={**workload.columns, "requested_processors": requested},
        units=units,
        per_unit={name: read_only(amount) for name, amount in given.items() if amount.any()},
    )
    raised = int(np.count_nonzero(requested != workload.requested_processors))
    return whole.counted({_RAISED: raised})


def warn_of_shared(workload: Workload, cluster: Cluster) -> None:
    """Warn if jobs of exclusive partitions do not ask for whole nodes, and so share them.

    It is worked out once for a workload and a machine, however often they are simulated.

    Warns
    -----
    WorkloadWarning : as told.
    """
    if _LOOKED.get(workload) is cluster:
        return
    _LOOKED[workload] = cluster
    if with_whole_nodes(workload, cluster) is not workload:
        warn_caller(
            f"{workload.name}: jobs share nodes of partitions with OverSubscribe=EXCLUSIVE: load"
            " the jobs with cluster=, or see hpcgym.workload.with_whole_nodes",
            WorkloadWarning,
        )


def _asked(workload: Workload, cluster: Cluster) -> dict[str, Ints]:
    """Return units of jobs, and of each resource what a unit asks for, (n_jobs,) each.

    The resources are those of the jobs and of the machine, cores first.
    """
    nothing = np.zeros(len(workload), np.int64)
    none = dict.fromkeys(cluster.node_resources, nothing)
    if workload.units is not None:
        return {_UNITS: workload.units, **none, **workload.per_unit}
    asked = {_UNITS: workload.requested_processors, **none, CORE: nothing + 1}
    if MEMORY in asked:
        asked[MEMORY] = megabytes(workload)
    return asked


def _are_alike(cluster: Cluster, one: Partition) -> bool:
    """Tell whether all nodes of a partition have as much of each resource; warn if they do not."""
    nodes = _nodes(cluster, one)
    alike = bool((nodes == nodes[0]).all())
    if not alike and (id(cluster), one.name) not in _TOLD:
        _TOLD[id(cluster), one.name] = cluster
        warn_caller(
            f"partition {one.name!r}: OverSubscribe=EXCLUSIVE is not followed, since its nodes are"
            " not all alike: its jobs share nodes",
            WorkloadWarning,
        )
    return alike


def _nodes(cluster: Cluster, one: Partition) -> Ints:
    """Return what the nodes of a partition have, (nodes, resources)."""
    had: Ints = cluster.capacity[list(one.nodes), : len(cluster.node_resources)]
    return had


def _give(
    given: dict[str, Ints], rows: Ints, jobs: Workload, cluster: Cluster, one: Partition
) -> None:
    """Let units of a partition's jobs, which stand at some rows, be nodes, so many each."""
    least = np.minimum(one.min_nodes, most_nodes(jobs, cluster, one))
    nodes = np.maximum(fewest_nodes(jobs, cluster, one), least)
    fits = nodes <= len(one.nodes)
    rows, nodes = rows[fits], nodes[fits]
    if MEMORY in given:
        given[MEMORY][rows] *= -(-given[_UNITS][rows] // nodes)  # the most units on one node
    for name, amount in zip(cluster.node_resources, _nodes(cluster, one)[0], strict=True):
        if name != MEMORY:
            given[name][rows] = amount
    given[_UNITS][rows] = nodes
