"""Partitions and queues of jobs on a machine: which they are in, and what these let run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning, warn_caller
from hpcgym.machine import Cluster, NodeGroup, Partition
from hpcgym.names import BILLING, CORE, MEMORY
from hpcgym.units import NO_LIMIT_S
from hpcgym.words import counted, first_few, so_many
from hpcgym.workload.amounts import (
    asked_of,
    billed,
    nodes_told,
    of_units,
    units_and_demands,
    weighed,
)
from hpcgym.workload.cleaning import most_busy
from hpcgym.workload.columns import MISSING, read_only
from hpcgym.workload.extracts import decided
from hpcgym.workload.io.swf_header import (
    HEADER_KEYS,
    called_in,
    name_lines,
    names_of,
    partitions_of,
)
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import Mask, fewest_nodes, in_others, most_nodes

# --- Which partitions and queues jobs are in ------------------------------------------------------

_IN_DEFAULT = "repaired: partition taken to be the default of the machine"
_BY_QUEUE = "repaired: missing partition taken to be the one that is called as its queue"
_BY_DEFAULT = "repaired: requested_time taken from the DefaultTime or MaxTime of its partition"
_BY_MEMORY = "repaired: memory taken from the DefMemPerCPU, -Node or -GPU of its partition"
_ENDLESS = "repaired: missing requested_time taken for 365 days: no MaxTime"


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
        others = first_few(sorted({*named} - {""}))
        warn_caller(
            f"{workload.name}: its jobs are in none of the machine's partitions"
            f" ({first_few(partitions)}){others and f', but in {others}'}; each may have any nodes",
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


def machine_of_partitions(workload: Workload) -> Cluster:
    """Return a machine with the partitions that a log names, each one node of its own.

    A partition is as large as the log shows it busy at once, or as its largest job, with as much of
    each resource that jobs ask for, such as GPUs. So sites of a grid, or machines of a centre, are
    simulated side by side.

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
        sizes = {CORE: max(most_busy(jobs.columns), int(jobs.requested_processors.max()))}
        for resource in filter(CORE.__ne__, jobs.per_unit):
            asked = of_units(jobs, resource)
            sizes[resource] = max(most_busy(jobs.columns, asked), int(asked.max()))
        groups.append(NodeGroup(name, 1, sizes))
    partitions = [Partition(name, (node,)) for node, name in enumerate(names)]
    return Cluster(groups=tuple(groups), partitions=tuple(partitions), name=workload.name)


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
    if not queues or (workload.partition != MISSING).any():
        return workload
    known = [partition.name for partition in partitions]
    numbers = [number for number, name in queues.items() if name in known]
    here = np.isin(workload.queue, numbers)
    default = next((partition.name for partition in partitions if partition.default), None)
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
    default = next((partition.name for partition in partitions if partition.default), None)
    unnamed = workload.partition == MISSING
    if default is None or not unnamed.any():
        return workload
    named = partitions_of(workload)
    if not unnamed.all() and not np.isin(named, [partition.name for partition in partitions]).any():
        return workload
    names = names_of(workload, "partition")
    others = np.unique(workload.partition[~unnamed]).tolist()
    numbers = {names.get(number, str(number)): number for number in others}
    number = numbers.get(default, max([0, *names, *others]) + 1)
    header = {**workload.header, HEADER_KEYS["partition"]: name_lines({**names, number: default})}
    changed = workload.with_columns(partition=np.where(unnamed, number, workload.partition))
    named_so = replace(changed, header=header)
    return named_so.counted({_IN_DEFAULT: int(np.count_nonzero(unnamed))})


def with_billing(workload: Workload, partitions: Sequence[Partition]) -> Workload:
    """Return jobs with what the weights of their partition bill, where the log tells it of none.

    Weights of what is no amount, or of one that the log does not tell, bill nothing.

    Warns
    -----
    WorkloadWarning : there are such weights, and why.
    """
    billing, named = workload.columns[BILLING], partitions_of(workload)
    if (billing != MISSING).any():
        return workload
    for partition in partitions:
        rows = named == partition.name
        if partition.billing and rows.any():
            try:
                weighed = billed(workload, partition.billing, partition.bills_greatest)
                billing = np.where(rows, weighed, billing)
            except HpcgymError as error:
                text = f"partition {partition.name!r}: its TRESBillingWeights bill nothing: {error}"
                warn_caller(text, WorkloadWarning)
    return workload.with_columns(**{BILLING: billing}) if (billing != MISSING).any() else workload


def charged(
    workload: Workload, amount: str, partitions: Sequence[Partition]
) -> NDArray[np.float64]:
    """Return what jobs are charged of an amount for a second, (n_jobs,).

    Of what is billed that is the sum by the weights of their partition with its fraction, where it
    is what the log tells but for this: Slurm charges 37.5 where it accounts, and limits, 37
    (``_apply_new_usage`` in ``priority_multifactor.c`` and ``job_set_alloc_tres`` in ``job_mgr.c``
    of 22.05 to 25.05).
    """
    of_jobs = asked_of(workload, [amount])[:, 0].astype(np.float64)
    if amount == BILLING and (weighing := [part for part in partitions if part.billing]):
        named = partitions_of(workload)
        for part in weighing:
            with suppress(HpcgymError):  # as jobs were loaded it was told that it bills nothing
                exact = weighed(workload, part.billing, part.bills_greatest)
                rows = (named == part.name) & (np.floor(exact) == of_jobs)
                of_jobs[rows] = exact[rows]
    return of_jobs


def with_default_memory(workload: Workload, cluster: Cluster) -> Workload:
    """Return jobs with the default memory of their partition where they tell none, as in Slurm.

    Where it is for each node, those stay as they are of which nothing tells the nodes.
    """
    named = partitions_of(workload)
    if MEMORY not in cluster.resources or not any(
        part.default_memory for part in cluster.partitions
    ):
        return workload
    units = units_and_demands(workload)[0]
    memory = of_units(workload, MEMORY) // np.maximum(units, 1)
    untold = memory <= 0
    for partition in cluster.partitions:
        rows = np.flatnonzero(untold & (named == partition.name))
        if partition.default_memory and len(rows):
            amount, _, each = partition.default_memory.partition("=")
            jobs = workload.take(rows)
            asked = nodes_told(jobs) if amount == "nodes" else asked_of(jobs, [amount])[:, 0]
            memory[rows] = -(-np.maximum(asked, 0) * int(each) // np.maximum(units[rows], 1))
    given = int(np.count_nonzero(untold & (memory > 0)))
    if not given:
        return workload
    if workload.units is None:
        per_core = np.where(untold & (memory > 0), 1000 * memory, workload.requested_memory)
        return workload.with_columns(requested_memory=per_core).counted({_BY_MEMORY: given})
    per_unit = {**workload.per_unit, MEMORY: read_only(memory)}
    return replace(workload, per_unit=per_unit).counted({_BY_MEMORY: given})


def with_default_times(workload: Workload, partitions: Sequence[Partition]) -> Workload:
    """Return jobs with the DefaultTime of their partition where no requested time is told.

    Without one, MaxTime counts, as in Slurm. A job that ran for longer must have asked for
    more, and its requested time stays unknown. But no job was allowed more than MaxTime: one that
    ran for longer was killed somewhat late, and MaxTime is what it asked for. In a slurm.conf no
    MaxTime is no limit.

    Warns
    -----
    WorkloadWarning : jobs have no limit for this reason, and how many.
    """
    requested = workload.requested_time
    if (requested > 0).all():
        return workload
    named = partitions_of(workload)
    given, endless = np.array(requested), 0
    for partition in partitions:
        usual = (
            partition.max_time_s if partition.default_time_s is None else partition.default_time_s
        )
        if usual is None:
            continue
        unknown = (named == partition.name) & (requested <= 0)
        within = unknown & (workload.run_time <= usual)
        given[within] = usual
        if partition.max_time_s is None and usual == NO_LIMIT_S:
            endless += int(np.count_nonzero(within))
        if partition.max_time_s is not None:
            given[unknown & (workload.run_time > partition.max_time_s)] = partition.max_time_s
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
    (n_jobs,) float64 [s]: the largest of ``queues`` for a job whose queue is not one of them; 1 for
    all jobs if ``queues`` is empty.

    Warns
    -----
    WorkloadWarning : jobs are in queues that are not among ``queues``; it names both.
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
    text = ", ".join(repr(names[number]) if number in names else str(number) for number in numbers)
    named = all(number in names for number in numbers)
    hint = "" if named else "; SWF tells the names of numbers; in tables, write names"
    return (
        f"jobs are in queues that the machine does not have, {text}: the longest wait of its own"
        f" ({', '.join(queues)}) is expected of them, {max(queues.values()):g} s{hint}"
    )


# --- Which jobs partitions let run, by time, nodes, account, QOS and state ------------------------
#
# Others would wait for ever, as in Slurm with ``EnforcePartLimits=NO``. Jobs of none of the
# machine's partitions have no such limits.

#: The reason by which :func:`within_limits` counts the jobs that it drops.
OVER_LIMITS = "dropped: its partition does not let it run"


def check_limits(workload: Workload, cluster: Cluster) -> None:
    """Say so if a job's partition does not let it run.

    Raises
    ------
    WorkloadError : it names the first such job, says how many there are, and how to drop them.
    """
    refusals = list(_over(workload, cluster))
    if not refusals:
        return
    over = np.logical_or.reduce([mask for mask, _ in refusals])
    job = int(over.argmax())
    why = next(text for mask, text in refusals if mask[job])
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


def _over(workload: Workload, cluster: Cluster) -> Iterator[tuple[Mask, str]]:
    """Return which jobs a limit does not let run, (n_jobs,), and why, for each limit."""
    named = partitions_of(workload) if cluster.partitions else np.empty(0)
    for partition in cluster.partitions:
        rows = np.flatnonzero(named == partition.name)
        if len(rows):
            for refused, why in _refused(workload.take(rows), cluster, partition):
                over = np.zeros(len(workload), np.bool_)
                over[rows] = refused
                if over.any():
                    yield over, f"{why} of partition {partition.name!r}"


def _refused(
    workload: Workload, cluster: Cluster, partition: Partition
) -> Iterator[tuple[Mask, str]]:
    """Return which jobs of a partition it refuses, and why, for each of its limits.

    Those of unknown accounts and QOS are let run. As in Slurm, DenyAccounts does not count beside
    AllowAccounts, nor DenyQos beside AllowQos. Jobs that run at the beginning of an extract run on;
    those that wait there start under "drain".
    """
    if partition.max_time_s is not None:
        over = workload.requested_time > partition.max_time_s
        yield over, f"asks for more than {partition.max_time_s} s, the MaxTime"
    if partition.max_nodes is not None:
        over = fewest_nodes(workload, cluster, partition) > partition.max_nodes
        yield over, f"needs more than {partition.max_nodes} nodes, the MaxNodes"
    if partition.max_memory_per_node_mb is not None:
        nodes, memory = nodes_told(workload), of_units(workload, MEMORY)
        over = (nodes > 0) & (memory // np.maximum(nodes, 1) > partition.max_memory_per_node_mb)
        yield (
            over,
            f"has more than {partition.max_memory_per_node_mb} MB on a node, the MaxMemPerNode",
        )
    if partition.min_nodes > 1:
        over = most_nodes(workload, cluster, partition) < partition.min_nodes
        yield over, f"cannot be on {partition.min_nodes} nodes, the MinNodes"
    for column, has, plural, allowed, denied in (
        ("group_id", "an account", "Accounts", partition.allow_accounts, partition.deny_accounts),
        ("queue", "a QOS", "Qos", partition.allow_qos, partition.deny_qos),
    ):
        name = called_in(workload, column) if allowed or denied else np.empty(0, object)
        if column == "queue":  # of a log of another system than Slurm it may be the partition
            name = np.where(name == partition.name, "", name)
        if allowed:
            over = (name != "") & ~np.isin(name, allowed)
            yield over, f"has {has} that is not one of the Allow{plural}"
        elif denied:
            yield np.isin(name, denied), f"has {has} that is one of the Deny{plural}"
    if partition.state != "up":
        initial = workload.initial
        over = decided(workload)
        if partition.state == "drain" and initial is not None:
            over = workload.submit_time >= initial.begin
        yield over, f"cannot start in the state {partition.state.upper()}"
