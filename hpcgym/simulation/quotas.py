"""Quotas, windows and preemption as the engine takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.partitions import nodes_of_text
from hpcgym.errors import HpcgymError, RuleWarning, WorkloadError, warn_caller
from hpcgym.naming import so_many
from hpcgym.schedule.runs import lost_runs, of_those, pieces_of
from hpcgym.workload.extracts import decided

if TYPE_CHECKING:
    from hpcgym.cluster.failures import Failures
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.restrictions import Preemption, Quota, Window
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


# --- Quotas ---------------------------------------------------------------------------------------
#
# A job that would exceed a quota is passed over, as if it did not wait.

#: The reason by which :func:`within_quotas` counts the jobs that it drops.
OVER_QUOTA = "dropped: asks for more processors than a quota lets run"
_NO_BOUND = 2**62
_IN_PYTHON = ": hpcgym.simulation.quotas.within_quotas"


class Quotas(NamedTuple):
    """What may run, or be there, at once. K quotas, C counts: a quota has one or several."""

    counts: NDArray[np.int64]  # (n_jobs, K) the counts that a job is in, -1: none of the quota
    processors: NDArray[np.int64]  # (n_jobs,)
    left: NDArray[np.int64]  # (C, 2) how many jobs, and processors, may still start


def check_within(workload: Workload, quotas: Iterable[Quota]) -> None:
    """Say so if a job exceeds a quota of processors by itself.

    Raises
    ------
    WorkloadError : it names the first such job of a quota, and says how many there are.
    """
    for quota in quotas:
        wide = _wide(workload, quota)
        if wide.any():
            job = int(wide.argmax())
            count = so_many(int(np.count_nonzero(wide)), len(workload))
            raise WorkloadError(
                f"{workload.name}: {workload.called(job)} asks for"
                f" {workload.requested_processors[job]} processors, more than the quota {quota}"
                f" lets run: it would wait for ever{count}{_IN_PYTHON}(workload, quotas) drops them"
            )


def within_quotas(workload: Workload, quotas: Iterable[Quota]) -> Workload:
    """Return the jobs that each quota lets run; the others are counted in ``cleaning``.

    Such a job asks for more processors than a quota lets run together. Jobs that run at the
    beginning of an extract stay.

    Parameters
    ----------
    quotas : such as ``Scheduler.quota``, of one scheduler or of all that are compared.

    Raises
    ------
    WorkloadError : no job is left.
    """
    over = np.zeros(len(workload), np.bool_)
    for quota in quotas:
        over |= _wide(workload, quota)
    if not over.any():
        return workload
    if over.all():
        raise WorkloadError(f"{workload.name}: no job is within the quotas")
    return workload.take(~over, cleaning={OVER_QUOTA: int(np.count_nonzero(over))})


def _wide(workload: Workload, quota: Quota) -> NDArray[np.bool_]:
    """Return which jobs exceed a quota by themselves, (n_jobs,), but for those that run already."""
    wide: NDArray[np.bool_] = workload.requested_processors > _bound(quota.processors)
    return wide & (quota.counted(workload) >= 0) & decided(workload)


def make_quotas(workload: Workload, quotas: tuple[Quota, ...]) -> Quotas:
    """Return quotas of what runs, of which nothing is used yet.

    Raises
    ------
    WorkloadError : a job that exceeds a quota by itself, and would wait for ever.
    """
    check_within(workload, quotas)
    width = np.array(workload.requested_processors)
    counted = [quota.counted(workload) for quota in quotas]
    most = [(_bound(quota.jobs), _bound(quota.processors)) for quota in quotas]
    return _counting(width, counted, most)


def use_up(quotas: Quotas, running: NDArray[np.bool_]) -> None:
    """Let the jobs count that run at the beginning; together they may exceed a quota."""
    for k in range(quotas.counts.shape[1]):
        counts = quotas.counts[:, k]
        rows = running & (counts >= 0)
        used = np.column_stack([np.ones_like(counts), quotas.processors])
        np.subtract.at(quotas.left, counts[rows], used[rows])


def make_places(workload: Workload, quotas: tuple[Quota, ...]) -> Quotas:
    """Return quotas of jobs that run or wait, of which none does yet."""
    bounds = [quota for quota in quotas if quota.submitted is not None]
    counted = [quota.counted(workload) for quota in bounds]
    most = [(_bound(quota.submitted), _NO_BOUND) for quota in bounds]
    return _counting(np.array(workload.requested_processors), counted, most)


def _bound(most: int | None) -> int:
    return _NO_BOUND if most is None else most


def _counting(
    width: NDArray[np.int64], counted: list[NDArray[np.int64]], most: list[tuple[int, int]]
) -> Quotas:
    """Return quotas by the count that each job is in, (n_jobs,) of each, and their bounds."""
    counts: list[NDArray[np.int64]] = [np.zeros((len(width), 0), np.int64)]
    left: list[NDArray[np.int64]] = [np.zeros((0, 2), np.int64)]
    n_counts = 0
    for count, bounds in zip(counted, most, strict=True):
        counts.append(np.where(count >= 0, n_counts + count, -1)[:, np.newaxis])
        left.append(np.tile(bounds, (int(count.max(initial=-1)) + 1, 1)))
        n_counts += len(left[-1])
    return Quotas(
        np.ascontiguousarray(np.concatenate(counts, axis=1), np.int64),
        width,
        np.concatenate(left).astype(np.int64),
    )


def warn_of_none(
    slices: Sequence[Workload], quotas: tuple[Quota, ...], made: Sequence[Quotas]
) -> None:
    """Warn of quotas that are of no job of any slice; ``made`` are those of each of them.

    Warns
    -----
    RuleWarning : there are such.
    """
    of_none = [
        str(quota)
        for k, quota in enumerate(quotas)
        if not any((one.counts[:, k] >= 0).any() for one in made)
    ]
    if of_none:
        name = called_together(slices)
        warn_caller(f"{name}: no job falls under these quotas: {'; '.join(of_none)}", RuleWarning)


def called_together(slices: Sequence[Workload]) -> str:
    """Return what slices are called in messages about all of them."""
    return slices[0].name if len(slices) == 1 else f"{slices[0].name} to {slices[-1].name}"


# --- Windows --------------------------------------------------------------------------------------
#
# On nodes somebody holds these then.


class Closing(NamedTuple):
    """Equal nodes, or processors, that a window takes; of nodes that differ there are several."""

    begin: int  # [s]
    end: int  # [s]
    processors: int
    nodes: NDArray[np.int64]  # none of a pool


class Windows(NamedTuple):
    """Windows by their ends, (W,)."""

    begin: NDArray[np.int64]  # [s]
    end: NDArray[np.int64]  # [s]
    # how many processors of a pool are closed; on nodes, who holds the nodes then: a negative
    # number, for they stand at the end of what is asked and held, behind all jobs
    taken: NDArray[np.int64]
    nodes: NDArray[np.int64]  # that are closed, one window after the other; none of a pool


def closings(workload: Workload, scheduler: Scheduler, cluster: Cluster) -> list[Closing]:
    """Return what the windows of a scheduler take of a machine, by their ends.

    Raises
    ------
    HpcgymError : dates that the log has no clock for, processors of a machine of nodes, nodes of a
        pool or that there are not, or windows that take more together than there is.
    """
    found = [
        (window, closing)
        for window in scheduler.maintenance
        for closing in _closings_of(window, workload, cluster)
    ]
    _check_room(found, cluster)
    return sorted((closing for _, closing in found), key=lambda closing: closing.end)


def _closings_of(window: Window, workload: Workload, cluster: Cluster) -> list[Closing]:
    """Return what one window takes of a machine."""
    begin, end = window.seconds(workload.header)
    nodes = nodes_in(window, cluster)
    if not cluster.groups:
        return [Closing(begin, end, window.processors or cluster.processors, nodes[:0])]
    rows, kind = np.unique(cluster.capacity[nodes], axis=0, return_inverse=True)
    equal = [nodes[kind.reshape(-1) == k] for k in range(len(rows))]
    sizes = zip(rows[:, 0].tolist(), equal, strict=True)
    return [Closing(begin, end, cores * len(some), some) for cores, some in sizes]


def nodes_in(window: Window, cluster: Cluster) -> NDArray[np.int64]:
    """Return the nodes that a window takes of a machine, ascending; a pool is one node.

    Raises
    ------
    HpcgymError : processors of a machine of nodes, nodes of a pool, or nodes that there are not.
    """
    if window.nodes and not cluster.groups:
        raise HpcgymError(f"window {window}: a pool of processors has no nodes; cluster= has some")
    if window.processors is not None and cluster.groups:
        raise HpcgymError(f"window {window}: of a machine of nodes say which, such as :nodes=0-3")
    if window.processors is not None and window.processors > cluster.processors:
        raise HpcgymError(f"window {window}: the machine has {cluster.processors:,} processors")
    if not window.nodes:
        return np.arange(cluster.nodes)
    sizes = [(group.name, group.nodes) for group in cluster.groups]
    return np.unique(nodes_of_text(window.nodes, sizes, f"window {window}")).astype(np.int64)


def _check_room(found: list[tuple[Window, Closing]], cluster: Cluster) -> None:
    """Raise an HpcgymError if windows take more at once than there is of a pool, or of a node."""
    changes: list[tuple[int, int, Closing]] = []
    for _, one in found:
        changes += [(one.begin, 1, one), (one.end, -1, one)]
    free = cluster.capacity[:, 0].copy()
    for time, sign, one in sorted(changes, key=lambda change: change[:2]):  # ends come first
        nodes = one.nodes if cluster.groups else np.zeros(1, np.int64)
        free[nodes] -= sign * one.processors // len(nodes)
        if free.min(initial=0) < 0:
            short = int(free.argmin())
            what = f"node {cluster.node_names[short]}" if cluster.groups else "the processors"
            at_once = [
                str(window)
                for window, other in found
                if other.begin <= time < other.end and (not cluster.groups or short in other.nodes)
            ]
            together = f"{' and '.join(at_once)} take more at once than there is"
            raise HpcgymError(f"windows overlap: {together} of {what}")


def make_windows(closings: list[Closing], on_nodes: bool) -> Windows:
    """Return windows that are to come."""
    begin, end, taken = np.array([one[:3] for one in closings], np.int64).reshape(-1, 3).T
    nodes = [np.zeros(0, np.int64)]
    if on_nodes:  # who holds the nodes stands behind the jobs
        taken = np.arange(-len(closings), 0, dtype=np.int64)
        nodes += [one.nodes for one in closings]
    return Windows(begin, end, taken, np.concatenate(nodes))


def warn_of_unmet(slices: Sequence[Workload], windows: Sequence[Windows]) -> None:
    """Warn of windows that no job of any slice meets; ``windows`` are those of each of them.

    Warns
    -----
    RuleWarning : all are before the first submission, or after the latest and its request.
    """
    pairs = [(one, other) for one, other in zip(slices, windows, strict=True) if len(one)]
    if not any(len(of.end) for _, of in pairs):
        return
    spans = [
        (int(jobs.submit_time[0]), int((jobs.submit_time + jobs.requested_time).max()))
        for jobs, _ in pairs
    ]
    for (first, last), (_, of) in zip(spans, pairs, strict=True):
        if ((of.end > first) & (of.begin <= last)).any():
            return
    first, last = min(one for one, _ in spans), max(one for _, one in spans)
    warn_caller(
        f"{called_together(slices)}: no window is between the first submission ({first} s) and"
        f" {last} s, when the last job may have ended: no job meets one",
        RuleWarning,
    )


def holders_of(closings: list[Closing], cluster: Cluster) -> NDArray[np.int64]:
    """Return what who holds the nodes asks for, (n_closings, 1 + R): all of each, a unit."""
    rows = [[len(one.nodes), *cluster.capacity[one.nodes[0]]] for one in closings]
    return np.array(rows, np.int64).reshape(-1, 1 + len(cluster.resources))


# --- Jobs that may stop others --------------------------------------------------------------------

_MODES = ("requeue", "cancel", "suspend")  # by their codes


def preemption_of(workload: Workload, rule: Preemption) -> dict[str, NDArray[Any]]:
    """Return who may stop whom, as arguments of a model.

    Warns
    -----
    RuleWarning : no job may stop another, or none is called so.
    """
    return {
        "group": warn_of_absent([workload], rule)[0],
        "level": np.array(list(rule.levels.values())),
        "may": rule.may.astype(np.int64),
        "exempt": rule.exempt_of_groups,
        "mode": np.array([_MODES.index(rule.mode)]),
    }


def warn_of_absent(slices: Sequence[Workload], rule: Preemption) -> list[NDArray[np.int64]]:
    """Return the group of each job of slices, by who may stop whom; -1: of none.

    Warns
    -----
    RuleWarning : no job of any slice may stop another, or names are of no job.
    """
    groups = [rule.groups(one) for one in slices]
    name, may = called_together(slices), rule.may
    rows = [np.bincount(group[group >= 0], minlength=len(may)) > 0 for group in groups]
    there: NDArray[np.bool_] = np.array(rows)
    if not (may & there[:, :, np.newaxis] & there[:, np.newaxis, :]).any():
        warn_caller(f"{name}: preemption {rule}: no job may stop another", RuleWarning)
        return groups
    present = np.flatnonzero(np.count_nonzero(there, axis=0)).tolist()
    absent = [called for place, called in enumerate(rule.levels) if place not in present]
    if absent:
        text = f"{name}: preemption {rule}: there is no job of {', '.join(absent)}"
        warn_caller(text, RuleWarning)
    return groups


def for_result(
    rule: Preemption | None, schedule: Mapping[str, NDArray[np.int64]], failures: Failures
) -> dict[str, Any]:
    """Return what a result tells of runs that others, or failures, ended, by its attributes.

    In the ``schedule`` of a simulation jobs have started later by the time for which they were
    suspended.
    """
    runs = lost_runs(failures, schedule)
    if rule is not None and rule.mode == "cancel":  # what ends for good is in the schedule
        runs = of_those(runs, runs.start != schedule["start"][runs.job])
    if rule is None or rule.mode != "suspend":
        return {"lost": runs}
    pieces, moved = pieces_of(runs), schedule["start"]
    start = moved.copy()
    start[pieces.job[::-1]] = pieces.start[::-1]  # of several pieces of a job the first
    return {"pieces": pieces, "start": start, "suspended": moved - start}
