"""What partitions let run: limits of their jobs, and nodes that they give whole.

Each unit of such a job is a node: all of its cores and generic resources, and as much memory as the
job asks for there. So nobody else has anything of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.machine import Cluster, Partition
from hpcgym.machine.pool import ANY_NUMBER
from hpcgym.naming import CORE, MEMORY, NO_LIMIT_S, counted, so_many
from hpcgym.workload.extracts import decided
from hpcgym.workload.io.swf_header import HEADER_KEYS, name_lines, names_of
from hpcgym.workload.model import MISSING, Workload, read_only
from hpcgym.workload.needs import (
    called_in,
    demands_of,
    first_few,
    lacking,
    needs_of,
    partitions_of,
    units_on,
)

# --- Which jobs partitions let run, by time, nodes, account, QOS and state ------------------------
#
# Others would wait for ever, as in Slurm with ``EnforcePartLimits=NO``. Jobs of none of the
# machine's partitions have no such limits.

#: The reason by which :func:`within_limits` counts the jobs that it drops.
OVER_LIMITS = "dropped: its partition does not let it run"
_IN_DEFAULT = "repaired: partition taken to be the default of the machine"
_BY_QUEUE = "repaired: missing partition taken to be the one that is called as its queue"
_BY_DEFAULT = "repaired: requested_time taken from the DefaultTime or MaxTime of its partition"
_ENDLESS = "repaired: missing requested_time taken for 365 days: no MaxTime"

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


def in_partitions_of_queues(workload: Workload, partitions: Sequence[Partition]) -> Workload:
    """Return jobs with the partitions that are called as their queues, where none names another.

    PBS, LSF and Grid Engine have queues where Slurm has partitions. Jobs of other queues name no
    partition.

    Warns
    -----
    WorkloadWarning : jobs are in queues that are no partitions of the machine: how many, and where
        they are placed.
    """
    queues = names_of(workload, "queue")
    if not partitions or not queues or (workload.partition != MISSING).any():
        return workload
    known = [one.name for one in partitions]
    numbers = [number for number, name in queues.items() if name in known]
    here = np.isin(workload.queue, numbers)
    default = next((one.name for one in partitions if one.default), None)
    elsewhere = ~here & (workload.queue != MISSING)
    numbered = np.unique(workload.queue[elsewhere]).tolist()
    others = sorted(queues.get(number, str(number)) for number in numbered)
    if others and (default is not None or here.any()):
        place = "may have any nodes" if default is None else f"are in its default, {default!r}"
        warn_caller(
            f"{workload.name}: {np.count_nonzero(elsewhere):,} of {len(workload):,} jobs are in"
            f" queues that are no partitions of the machine ({first_few(others)}): they {place}",
            WorkloadWarning,
        )
    if not here.any():
        return workload
    names = name_lines({number: queues[number] for number in numbers})
    changed = workload.with_columns(partition=np.where(here, workload.queue, MISSING))
    named_so = replace(changed, header={**workload.header, HEADER_KEYS["partition"]: names})
    return named_so.counted({_BY_QUEUE: int(np.count_nonzero(here))})


def in_default_partition(workload: Workload, partitions: Sequence[Partition]) -> Workload:
    """Return jobs with the machine's default partition where they name none, as Slurm has it.

    Not where others name partitions, none of which is of the machine.
    """
    default = next((one.name for one in partitions if one.default), None)
    unnamed = workload.partition == MISSING
    if default is None or not unnamed.any():
        return workload
    named = partitions_of(workload)
    if not unnamed.all() and not np.isin(named, [one.name for one in partitions]).any():
        return workload
    names = names_of(workload, "partition")
    others = np.unique(workload.partition[~unnamed]).tolist()
    numbers = {names.get(number, str(number)): number for number in others}
    number = numbers.get(default, max([0, *names, *others]) + 1)
    header = {**workload.header, HEADER_KEYS["partition"]: name_lines({**names, number: default})}
    changed = workload.with_columns(partition=np.where(unnamed, number, workload.partition))
    named_so = replace(changed, header=header)
    return named_so.counted({_IN_DEFAULT: int(np.count_nonzero(unnamed))})


def with_default_times(workload: Workload, partitions: Sequence[Partition]) -> Workload:
    """Return jobs with the DefaultTime of their partition where no requested time is told.

    Where there is none, MaxTime counts, as in Slurm. A job that ran for longer must have asked for
    more, and its requested time stays unknown. But no job was allowed more than MaxTime: one that
    ran for longer was killed somewhat late, and MaxTime is what it asked for. In a slurm.conf no
    MaxTime is no limit.

    Warns
    -----
    WorkloadWarning : jobs have no limit for this reason, and how many.
    """
    requested = workload.requested_time
    if not partitions or (requested > 0).all():
        return workload
    named = partitions_of(workload)
    given, endless = np.array(requested), 0
    for one in partitions:
        usual = one.max_time_s if one.default_time_s is None else one.default_time_s
        if usual is None:
            continue
        unknown = (named == one.name) & (requested <= 0)
        within = unknown & (workload.run_time <= usual)
        given[within] = usual
        if one.max_time_s is None and usual == NO_LIMIT_S:
            endless += int(np.count_nonzero(within))
        if one.max_time_s is not None:
            given[unknown & (workload.run_time > one.max_time_s)] = one.max_time_s
    changed = int(np.count_nonzero(given != requested))
    if not changed:
        return workload
    if endless:
        warn_caller(
            f"{workload.name}: {counted(endless, 'job')} without a told time limit, in partitions"
            " without MaxTime: 365 days are taken, as Slurm does for its jobs without a limit",
            WorkloadWarning,
        )
    counts = {_BY_DEFAULT: changed - endless, _ENDLESS: endless}
    timed = workload.with_columns(requested_time=given)
    return timed.counted({reason: number for reason, number in counts.items() if number})


def _over(workload: Workload, cluster: Cluster) -> Iterator[tuple[Mask, str]]:
    """Return which jobs a limit does not let run, (n_jobs,), and why, for each limit."""
    named = partitions_of(workload) if cluster.partitions else np.empty(0)
    for one in cluster.partitions:
        rows = np.flatnonzero(named == one.name)
        if len(rows):
            for refused, why in _refused(workload.take(rows), cluster, one):
                over = np.zeros(len(workload), np.bool_)
                over[rows] = refused
                if over.any():
                    yield over, f"{why} of partition {one.name!r}"


def _refused(workload: Workload, cluster: Cluster, one: Partition) -> Iterator[tuple[Mask, str]]:
    """Return which jobs of a partition it refuses, and why, for each of its limits.

    Those of unknown accounts and QOS are let run. As in Slurm, DenyAccounts does not count beside
    AllowAccounts, nor DenyQos beside AllowQos. Jobs that run at the beginning of an extract run on;
    those that wait there start under "drain".
    """
    if one.max_time_s is not None:
        over = workload.requested_time > one.max_time_s
        yield over, f"asks for more than {one.max_time_s} s, the MaxTime"
    if one.max_nodes is not None:
        over = fewest_nodes(workload, cluster, one) > one.max_nodes
        yield over, f"needs more than {one.max_nodes} nodes, the MaxNodes"
    if one.min_nodes > 1:
        over = most_nodes(workload, cluster, one) < one.min_nodes
        yield over, f"cannot be on {one.min_nodes} nodes, the MinNodes"
    for column, has, plural, allowed, denied in (
        ("group_id", "an account", "Accounts", one.allow_accounts, one.deny_accounts),
        ("queue", "a QOS", "Qos", one.allow_qos, one.deny_qos),
    ):
        name = called_in(workload, column) if allowed or denied else np.empty(0, object)
        if column == "queue":  # of a log of another system than Slurm it may be the partition
            name = np.where(name == one.name, "", name)
        if allowed:
            over = (name != "") & ~np.isin(name, allowed)
            yield over, f"has {has} that is none of the Allow{plural}"
        elif denied:
            yield np.isin(name, denied), f"has {has} that is one of the Deny{plural}"
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
        mine = kind.reshape(-1) == place
        yield mine, needs[mine, 0], units_on(capacity, demand)


# --- Jobs of partitions that give whole nodes alone -----------------------------------------------

_RAISED = "repaired: processors raised to those of whole nodes, since its partition is exclusive"
_WHOLE = "OverSubscribe=EXCLUSIVE, or select/linear"
_UNITS = ""  # no resource has this name

# workload -> the machine for which it was last looked at: many simulations of it look once
_LOOKED: WeakKeyDictionary[Workload, Cluster] = WeakKeyDictionary()

Ints = NDArray[np.int64]


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
        one.name for one in cluster.partitions if one.exclusive and not _are_alike(cluster, one)
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
        one
        for one in cluster.partitions
        if one.exclusive and one.nodes and _are_alike(cluster, one)
    ]
    known = workload.units is not None or bool((workload.requested_processors > 0).all())
    if not exclusive or not known:
        return workload
    named = np.where(lacking(workload, cluster.resources), "", partitions_of(workload))
    asked = _asked(workload, cluster)
    given = {name: amount.copy() for name, amount in asked.items()}
    for one in exclusive:
        rows = np.flatnonzero(named == one.name)
        if len(rows):
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


def _are_alike(cluster: Cluster, one: Partition) -> bool:
    """Tell whether all nodes of a partition have as many cores.

    Then whoever has all of these has the node alone, whatever else it has.
    """
    cores = cluster.capacity[list(one.nodes), 0]
    return bool((cores == cores[:1]).all())


def _give(
    given: dict[str, Ints], rows: Ints, jobs: Workload, cluster: Cluster, one: Partition
) -> None:
    """Let units of a partition's jobs, which stand at some rows, be nodes, so many each.

    What all nodes have alike a unit has, and of memory and the rest as much as its job has on the
    node with most of it.
    """
    nodes = _whole_nodes(jobs, cluster, one)
    rows, nodes = rows[nodes > 0], nodes[nodes > 0]
    together = -(-given[_UNITS][rows] // nodes)  # the most units on one node
    had = cluster.capacity[list(one.nodes), : len(cluster.node_resources)]
    for name, amounts in zip(cluster.node_resources, had.T, strict=True):
        if name == MEMORY or (amounts != amounts[0]).any():
            given[name][rows] *= together
        elif amounts[0] != ANY_NUMBER:
            given[name][rows] = amounts[0]
    if MEMORY in given and MEMORY not in cluster.node_resources:
        given[MEMORY][rows] *= together
    given[_UNITS][rows] = nodes


def _whole_nodes(workload: Workload, cluster: Cluster, one: Partition) -> Ints:
    """Return the fewest nodes of a partition that hold equal parts of a job, (n_jobs,); 0: none do.

    They are ``min_nodes`` at least, where it has so many units.
    """
    least = np.minimum(one.min_nodes, most_nodes(workload, cluster, one))
    whole = np.zeros(len(workload), np.int64)
    number = np.arange(1, len(one.nodes) + 1)
    for rows, units, held in _kinds(workload, cluster, one):
        hold = number * np.sort(held)[::-1]  # so many of the largest nodes, each the same
        asked = list(zip(units.tolist(), least[rows].tolist(), strict=True))
        found = {}
        for so_many_units, at_least in set(asked):
            enough = (hold >= so_many_units) & (number >= at_least)
            found[so_many_units, at_least] = int(enough.argmax()) + 1 if enough.any() else 0
        whole[rows] = [found[one] for one in asked]
    return whole
