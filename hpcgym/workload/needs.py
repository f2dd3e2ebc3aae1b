"""Demands of jobs on a machine: units, the demand of a unit, nodes that hold it, and whole nodes.

Here a machine is given by its ``resources``, the types in order, and its ``capacity``, an array
with a row for each node, as in :class:`hpcgym.machine.Cluster`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.machine import Cluster, Partition
from hpcgym.machine.pool import ANY_NUMBER
from hpcgym.names import CORE, FEATURES, MEMORY, NODES, PARTITION, UNITS_PER_NODE, near_name
from hpcgym.words import counted, first_few, so_many
from hpcgym.workload.amounts import units_and_demands
from hpcgym.workload.columns import read_only
from hpcgym.workload.constraints import constraints_of
from hpcgym.workload.io.swf_header import partitions_of
from hpcgym.workload.model import Workload

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

# --- Demands of jobs, and nodes that hold them ----------------------------------------------------

#: The reasons by which :func:`fitting` counts the jobs that it drops.
FITS_NOWHERE = "dropped: fits no empty machine"
_ELSEWHERE = "dropped: its partition is not of the machine"


def needs_of(workload: Workload, resources: Sequence[str]) -> NDArray[np.int64]:
    """Return the demands of jobs.

    A workload without units asks for ``requested_processors`` units of one core each; each asks
    for its ``requested_memory`` too, kilobytes rounded up to megabytes, if that is known and the
    machine has ``mem``; a machine without it, such as one of Slurm with CR_Core, does not count
    memory. Where a partition is a resource, each unit of its jobs asks for as many as it has cores;
    units of jobs with a constraint that is one ask for one of it.

    Parameters
    ----------
    workload : jobs with processors.
    resources : the types of the machine, in order.

    Returns
    -------
    (n_jobs, 2 + resources) int64: units, the demand of a unit by resource, and the most units that
    one node may have, :data:`hpcgym.machine.pool.ANY_NUMBER` if the job has no bound.

    Raises
    ------
    WorkloadError : a job that asks for a resource which the machine lacks, or for no processors.
    """
    units, demands = demands_of(workload)
    needs = np.zeros((len(workload), 2 + len(resources)), dtype=np.int64)
    needs[:, 0] = units
    most = workload.columns[UNITS_PER_NODE]
    needs[:, -1] = np.where(most > 0, most, ANY_NUMBER)
    for resource, demand in demands.items():
        if resource in resources:
            needs[:, 1 + resources.index(resource)] = demand
        elif resource != MEMORY and (demand > 0).any():
            job = int((demand > 0).argmax())
            had = [name for name in resources if not name.startswith((PARTITION, FEATURES))]
            near = near_name(resource, had)
            raise WorkloadError(
                f"{workload.name}: {workload.called(job)} asks for {demand[job]} {resource!r} a"
                f" unit, which the machine lacks; it has {', '.join(had)}"
                f"{f', of which {near!r} may be meant' if near else ''}"
                f"{so_many(int(np.count_nonzero(demand > 0)), len(workload))}"
            )
    parts = [place for place, name in enumerate(resources) if name.startswith(PARTITION)]
    named = partitions_of(workload) if parts else None
    for place in parts:
        here = named == resources[place].removeprefix(PARTITION)
        needs[:, 1 + place] = here * np.maximum(needs[:, 1 + resources.index(CORE)], 1)
    met = [place for place, name in enumerate(resources) if name.startswith(FEATURES)]
    asked = constraints_of(workload)[0] if met else None
    for place in met:
        needs[:, 1 + place] = asked == resources[place].removeprefix(FEATURES)
    return needs


def lacking(workload: Workload, resources: Sequence[str]) -> NDArray[np.bool_]:
    """Return which jobs ask for a resource that a machine lacks, memory aside, (n_jobs,)."""
    lacks = np.zeros(len(workload), dtype=np.bool_)
    for resource, demand in workload.per_unit.items():
        if resource not in (*resources, MEMORY):
            lacks |= demand > 0
    return lacks


def demands_of(
    workload: Workload,
) -> tuple[NDArray[np.int64], Mapping[str, NDArray[np.int64]]]:
    """Return the units of each job, (n_jobs,), and the demand of a unit, by resource.

    Raises
    ------
    WorkloadError : a job that asks for no processors.
    """
    units, demands = units_and_demands(workload)
    if workload.units is None and (units < 1).any():
        job = int((units < 1).argmax())
        raise WorkloadError(f"{workload.name}: {workload.called(job)} asks for no processors")
    return units, demands


def check_fits(
    workload: Workload,
    needs: NDArray[np.int64],
    capacity: NDArray[np.int64],
    resources: Sequence[str] = (),
) -> None:
    """Raise an error if a job does not even fit on the empty machine.

    Parameters
    ----------
    workload : the jobs.
    needs : (n_jobs, 2 + resources) int64, of :func:`needs_of`.
    capacity : (nodes, resources) int64.
    resources : names of the types, for the message.

    Raises
    ------
    WorkloadError : it names the first such job, says how many there are, and how to drop them.
    """
    held = units_held(needs, capacity)
    too_large = held < needs[:, 0]
    if not too_large.any():
        return
    job = int(too_large.argmax())
    names = resources or [f"resource {r}" for r in range(capacity.shape[1])]
    asked = [
        (f"{d} MB" if r == MEMORY else d, r)
        for d, r in zip(needs[job, 1:-1], names, strict=True)
        if d
    ]
    each = ", ".join(f"{d} {r}" for d, r in asked if not r.startswith((PARTITION, FEATURES)))
    each += "".join(f", in {r}" for _, r in asked if r.startswith(PARTITION))
    each += "".join(f", on nodes with {r}" for _, r in asked if r.startswith(FEATURES))
    each += f", at most {needs[job, -1]:,} on a node" if needs[job, -1] < needs[job, 0] else ""
    units = "1 unit" if needs[job, 0] == 1 else f"{needs[job, 0]:,} units"
    raise WorkloadError(
        f"{workload.name}: {workload.called(job)} asks for {units} of {each}; the empty machine"
        f" holds {held[job]:,}{so_many(int(np.count_nonzero(too_large)), len(workload))}:"
        " hpcgym.workload.fitting(workload, cluster.resources,"
        " cluster.capacity) drops them"
    )


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


def fitting(
    workload: Workload,
    resources: Sequence[str],
    capacity: NDArray[np.int64],
    partitions: Sequence[str] = (),
) -> Workload:
    """Return the jobs that fit on the empty machine; the others are counted in ``cleaning``.

    Parameters
    ----------
    workload : jobs with processors.
    resources, capacity : of the machine, as in :func:`needs_of` and :func:`check_fits`.
    partitions : names of the machine's: jobs in others do not fit, unless all are in others.

    Raises
    ------
    WorkloadError : no job is left, or one asks for no processors.
    """
    here, fits = that_fit(workload, resources, capacity, partitions)
    if not fits.any():
        raise WorkloadError(f"{workload.name}: no job fits on the empty machine")
    reasons = {_ELSEWHERE: ~here, FITS_NOWHERE: here & ~fits}
    counts = {reason: int(np.count_nonzero(dropped)) for reason, dropped in reasons.items()}
    return workload.take(fits, cleaning=counts)


def that_fit(
    workload: Workload,
    resources: Sequence[str],
    capacity: NDArray[np.int64],
    partitions: Sequence[str] = (),
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which jobs are in no other machine's partition, and which fit, each (n_jobs,).

    Parameters and errors are those of :func:`fitting`, but no job need be left.
    """
    here = np.full(len(workload), True)
    if partitions:
        here = ~in_others(partitions_of(workload), partitions)
    fits = here & ~lacking(workload, resources)
    needs = needs_of(workload.take(fits), resources)
    fits[fits] = units_held(needs, capacity) >= needs[:, 0]
    return here, fits


def units_held(needs: NDArray[np.int64], capacity: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many units of each job the empty machine holds, (n_jobs,) int64."""
    kinds, kind = _kinds_of(needs[:, 1:])
    nodes, number = np.unique(capacity, axis=0, return_counts=True)
    held = np.empty(len(kinds), dtype=np.int64)
    for place, demand in enumerate(kinds):
        held[place] = number @ units_on(nodes, demand)
    return held[kind]


def units_on(room: NDArray[np.int64], demand: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many units of a job each node has room for, (N,) int64.

    Parameters
    ----------
    room : (N, R) what is free there; of jobs that were suspended less than nothing may be.
    demand : (R + 1,) of a unit, and how many of them one node may have: a row of :func:`needs_of`
        without the first number.
    """
    asked = np.flatnonzero(demand[:-1])
    held = (room[:, asked] // demand[asked]).min(axis=1)
    most: NDArray[np.int64] = np.clip(held, 0, demand[-1])
    return most


def _kinds_of(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different rows, and the place of each row among them, (n,).

    It sorts numbers, one column after the other: sorting whole rows takes ten times as long.
    """
    kind = np.zeros(len(rows), np.int64)
    for column in rows.T:
        if (column != column[:1]).any():
            values, place = np.unique(column, return_inverse=True)
            kind = np.unique(kind * len(values) + place, return_inverse=True)[1]
    one_of = np.empty(kind.max(initial=-1) + 1, np.int64)
    one_of[kind] = np.arange(len(rows))
    return rows[one_of], kind


def fewest_nodes(workload: Workload, cluster: Cluster, partition: Partition) -> NDArray[np.int64]:
    """Return the fewest nodes of a partition that hold each job, (n_jobs,) int64.

    Jobs that all of its nodes do not hold need one more than it has.
    """
    fewest = np.empty(len(workload), np.int64)
    for rows, units, held in _kinds(workload, cluster, partition):
        together = np.cumsum(np.sort(held)[::-1])
        fewest[rows] = np.searchsorted(together, units) + 1
    return fewest


def most_nodes(workload: Workload, cluster: Cluster, partition: Partition) -> NDArray[np.int64]:
    """Return the most nodes of a partition that each job can have, one unit on each, (n_jobs,)."""
    most = np.empty(len(workload), np.int64)
    for rows, units, held in _kinds(workload, cluster, partition):
        most[rows] = np.minimum(units, np.count_nonzero(held))
    return most


def _kinds(
    workload: Workload, cluster: Cluster, partition: Partition
) -> Iterator[tuple[Mask, NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the jobs with each demand of units, (n_jobs,) bool.

    With them come their numbers of units, and how many such units each empty node of a partition
    holds.
    """
    needs = needs_of(workload, cluster.resources)
    capacity = cluster.capacity[list(partition.nodes)]
    demands, kind = np.unique(needs[:, 1:], axis=0, return_inverse=True)
    for place, demand in enumerate(demands):
        mine = kind.reshape(-1) == place
        yield mine, needs[mine, 0], units_on(capacity, demand)


# --- Whole nodes, which exclusive partitions give -------------------------------------------------
#
# Each unit of such a job is a node: all of its cores and generic resources, and as much memory as
# the job asks for there. So no other job runs on it.

_RAISED = "repaired: processors raised to those of whole nodes, since its partition is exclusive"
_WHOLE = "OverSubscribe=EXCLUSIVE, or select/linear"
_UNITS = ""  # no resource has this name

# workload -> the machine for which it was last looked at: many simulations of it look once
_LOOKED: WeakKeyDictionary[Workload, Cluster] = WeakKeyDictionary()


def with_whole_nodes(workload: Workload, cluster: Cluster) -> Workload:
    """Return the jobs with whole nodes where their partitions are exclusive.

    A job has the fewest nodes that hold it, and MinNodes at least. Jobs that their partition does
    not hold stay as they are, and so do all where one asks for an unknown number of processors.

    Warns
    -----
    WorkloadWarning : the nodes of such partitions have not all as many cores; their jobs stay as
        they are.
    """
    unlike = [
        partition.name
        for partition in cluster.partitions
        if partition.exclusive and not _are_alike(cluster, partition)
    ]
    sharing = int(np.isin(partitions_of(workload), unlike).sum()) if unlike else 0
    if sharing:
        plural = "s" if len(unlike) > 1 else ""
        warn_caller(
            f"{workload.name}: {counted(sharing, 'job')} of partition{plural} {first_few(unlike)}"
            f" may share nodes: whole nodes ({_WHOLE}) are given where all nodes of a"
            " partition have as many cores",
            WorkloadWarning,
        )
    return _with_whole_nodes(workload, cluster)


def _with_whole_nodes(workload: Workload, cluster: Cluster) -> Workload:
    exclusive = [
        partition
        for partition in cluster.partitions
        if partition.exclusive and partition.nodes and _are_alike(cluster, partition)
    ]
    known = workload.units is not None or bool((workload.requested_processors > 0).all())
    if not exclusive or not known:
        return workload
    named = np.where(lacking(workload, cluster.resources), "", partitions_of(workload))
    asked = _asked(workload, cluster)
    given = {name: amount.copy() for name, amount in asked.items()}
    nodes = workload.columns[NODES].copy()
    for partition in exclusive:
        rows = np.flatnonzero(named == partition.name)
        if len(rows):
            _give(given, rows, workload.take(rows), cluster, partition)
            nodes[rows] = given[_UNITS][rows]
    if all(np.array_equal(amount, given[name]) for name, amount in asked.items()):
        return workload
    units = read_only(given.pop(_UNITS))
    requested = read_only(units * given[CORE])
    whole = replace(
        workload,
        columns={**workload.columns, "requested_processors": requested, NODES: read_only(nodes)},
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
    if _with_whole_nodes(workload, cluster) is not workload:
        warn_caller(
            f"{workload.name}: jobs share nodes of partitions that give whole ones ({_WHOLE}): load"
            " the jobs with cluster=, or see hpcgym.workload.with_whole_nodes",
            WorkloadWarning,
        )


def _asked(workload: Workload, cluster: Cluster) -> dict[str, Ints]:
    """Return units of jobs, and of each resource what a unit asks for, (n_jobs,) each.

    The resources are those of the jobs and of the machine, cores first.
    """
    units, demands = demands_of(workload)
    none = dict.fromkeys((CORE, *cluster.node_resources), np.zeros(len(workload), np.int64))
    of_processors = workload.units is None  # whose memory counts on machines that have it alone
    kept = {name: a for name, a in demands.items() if name in none or not of_processors}
    return {_UNITS: units, **none, **kept}


def _are_alike(cluster: Cluster, partition: Partition) -> bool:
    """Tell whether all nodes of a partition have as many cores.

    Then a job with all cores of a node has the node alone, whatever else it has.
    """
    cores = cluster.capacity[list(partition.nodes), 0]
    return bool((cores == cores[:1]).all())


def _give(
    given: dict[str, Ints], rows: Ints, jobs: Workload, cluster: Cluster, partition: Partition
) -> None:
    """Make the units of a partition's jobs, at these rows, whole nodes, so many for each job.

    A unit has all resources of which all nodes have the same amount; of memory and the rest it has
    as much as its job has on the node with most of it.
    """
    nodes = _whole_nodes(jobs, cluster, partition)
    rows, nodes = rows[nodes > 0], nodes[nodes > 0]
    together = -(-given[_UNITS][rows] // nodes)  # the most units on one node
    had = cluster.capacity[list(partition.nodes), : len(cluster.node_resources)]
    for name, amounts in zip(cluster.node_resources, had.T, strict=True):
        if name == MEMORY or (amounts != amounts[0]).any():
            given[name][rows] *= together
        elif amounts[0] != ANY_NUMBER:
            given[name][rows] = amounts[0]
    if MEMORY in given and MEMORY not in cluster.node_resources:
        given[MEMORY][rows] *= together
    given[_UNITS][rows] = nodes


def _whole_nodes(workload: Workload, cluster: Cluster, partition: Partition) -> Ints:
    """Return the fewest nodes of a partition that hold equal parts of a job, (n_jobs,); 0: none do.

    They are ``min_nodes`` at least, where it has so many units.
    """
    least = np.minimum(partition.min_nodes, most_nodes(workload, cluster, partition))
    whole = np.zeros(len(workload), np.int64)
    number = np.arange(1, len(partition.nodes) + 1)
    for rows, units, held in _kinds(workload, cluster, partition):
        hold = number * np.sort(held)[::-1]  # so many of the largest nodes, each the same
        asked = list(zip(units.tolist(), least[rows].tolist(), strict=True))
        fewest = {}
        for so_many_units, at_least in set(asked):
            enough = (hold >= so_many_units) & (number >= at_least)
            fewest[so_many_units, at_least] = int(enough.argmax()) + 1 if enough.any() else 0
        whole[rows] = [fewest[pair] for pair in asked]
    return whole
