"""What jobs need of a machine: partitions, units, what each unit takes, which nodes have it.

A machine is here what its nodes have: ``resources``, the types in order, and ``capacity``, an array
with a row for each node, as :class:`hpcgym.machine.Cluster` has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.machine import Cluster, NodeGroup, Partition
from hpcgym.machine.pool import ANY_NUMBER
from hpcgym.naming import CORE, MEMORY, PARTITION, UNITS_PER_NODE, near_name, so_many
from hpcgym.workload.cleaning import most_busy
from hpcgym.workload.io.swf_header import names_of
from hpcgym.workload.model import MISSING, Workload

# --- Partitions that jobs name, and a machine that has them ---------------------------------------


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
        said = first_few(sorted({*named} - {""}))
        warn_caller(
            f"{workload.name}: its jobs are in none of the machine's partitions"
            f" ({first_few(partitions)}){said and f', but in {said}'}; each may have any nodes",
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


def first_few(names: Sequence[str]) -> str:
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
    >>> from hpcgym.workload.needs import machine_of_partitions
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


# --- What jobs need of a machine with nodes -------------------------------------------------------

#: The reasons by which :func:`fitting` counts the jobs that it drops.
FITS_NOWHERE = "dropped: fits no empty machine"
_ELSEWHERE = "dropped: its partition is none of the machine's"


def needs_of(workload: Workload, resources: Sequence[str]) -> NDArray[np.int64]:
    """Return what each job asks for.

    A workload without units asks for ``requested_processors`` units of one core each; each asks
    for its ``requested_memory`` too, kilobytes rounded up to megabytes, if that is known and the
    machine has ``mem``; a machine without it, such as one of Slurm with CR_Core, does not count
    memory. Where a partition is a resource, each unit of its jobs asks for one of it.

    Parameters
    ----------
    workload : jobs with processors.
    resources : the types of the machine, in order.

    Returns
    -------
    (n_jobs, 2 + resources) int64: units, the demand of a unit by resource, and how many units one
    node may have, :data:`hpcgym.machine.pool.ANY_NUMBER` where the job does not say.

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
            had = [name for name in resources if not name.startswith(PARTITION)]
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
        needs[:, 1 + place] = named == resources[place].removeprefix(PARTITION)
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
    """Return the units of each job, (n_jobs,), and what each of them asks for, by resource.

    Raises
    ------
    WorkloadError : a job that asks for no processors.
    """
    if workload.units is not None:
        return workload.units, workload.per_unit
    units = workload.requested_processors
    if (units < 1).any():
        job = int((units < 1).argmax())
        raise WorkloadError(f"{workload.name}: {workload.called(job)} asks for no processors")
    kilobytes = np.maximum(workload.requested_memory, 0)
    return units, {CORE: np.ones(len(units), np.int64), MEMORY: -(-kilobytes // 1000)}


def check_fits(
    workload: Workload,
    needs: NDArray[np.int64],
    capacity: NDArray[np.int64],
    resources: Sequence[str] = (),
) -> None:
    """Say so if a job fits not even on the empty machine.

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
    each = ", ".join(f"{d} {r}" for d, r in asked if not r.startswith(PARTITION))
    each += "".join(f", in {r}" for _, r in asked if r.startswith(PARTITION))
    each += f", at most {needs[job, -1]:,} on a node" if needs[job, -1] < needs[job, 0] else ""
    units = "1 unit" if needs[job, 0] == 1 else f"{needs[job, 0]:,} units"
    raise WorkloadError(
        f"{workload.name}: {workload.called(job)} asks for {units} of {each}; the empty machine"
        f" holds {held[job]:,}{so_many(int(np.count_nonzero(too_large)), len(workload))}:"
        " hpcgym.workload.fitting(workload, cluster.resources,"
        " cluster.capacity) drops them"
    )


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
    here = np.full(len(workload), True)
    if partitions:
        here = ~in_others(partitions_of(workload), partitions)
    fits = here & ~lacking(workload, resources)
    kept = workload.take(fits)
    needs = needs_of(kept, resources)
    fits[fits] = units_held(needs, capacity) >= needs[:, 0]
    if not fits.any():
        raise WorkloadError(f"{workload.name}: no job fits on the empty machine")
    reasons = {_ELSEWHERE: ~here, FITS_NOWHERE: here & ~fits}
    counts = {reason: int(np.count_nonzero(dropped)) for reason, dropped in reasons.items()}
    return workload.take(fits, cleaning=counts)


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
    """Return the different rows, and which of them each is, (n,).

    It sorts numbers, a column after the other: to sort rows as such takes ten times as long.
    """
    kind = np.zeros(len(rows), np.int64)
    for column in rows.T:
        if (column != column[:1]).any():
            values, place = np.unique(column, return_inverse=True)
            kind = np.unique(kind * len(values) + place, return_inverse=True)[1]
    one_of = np.empty(kind.max(initial=-1) + 1, np.int64)
    one_of[kind] = np.arange(len(rows))
    return rows[one_of], kind


def expected_waits(workload: Workload, queues: Mapping[str, float]) -> NDArray[np.float64]:
    """Return how long each job is expected to wait, by its queue.

    The numbers of queues get their names from the lines ``Queue`` of the workload's header, such
    as ``1 debug``: the name is the word after the number, or all words after it, and upper and
    lower case are the same.

    Parameters
    ----------
    workload : the jobs.
    queues : name -> expected wait [s], of the machine.

    Returns
    -------
    (n_jobs,) float64 [s]: the largest of ``queues`` for a job whose queue is none of them; 1 for
    all jobs if ``queues`` is empty.

    Warns
    -----
    WorkloadWarning : jobs are in queues that are none of ``queues``; it names both.
    """
    if not queues:
        return np.ones(len(workload))
    known = {name.casefold(): wait for name, wait in queues.items()}
    waits = np.full(len(workload), max(known.values()), dtype=np.float64)
    strange = workload.queue != MISSING
    names = names_of(workload, "queue")
    for number, name in names.items():
        wait = known.get(name.casefold(), known.get(name.casefold().split()[0]))
        if wait is not None:
            at = workload.queue == number
            waits[at] = wait
            strange &= ~at
    if strange.any():
        numbers = np.unique(workload.queue[strange]).tolist()
        warn_caller(_strange_queues(numbers, names, queues), WorkloadWarning)
    return waits


def _strange_queues(
    numbers: Sequence[int], names: Mapping[int, str], queues: Mapping[str, float]
) -> str:
    """Return the message that jobs are in queues which the machine does not have."""
    told = ", ".join(repr(names[number]) if number in names else str(number) for number in numbers)
    named = all(number in names for number in numbers)
    hint = "" if named else "; SWF tells the names of numbers; in tables, write names"
    return (
        f"jobs are in queues that the machine does not have, {told}: the longest wait of its own"
        f" ({', '.join(queues)}) is expected of them, {max(queues.values()):g} s{hint}"
    )
