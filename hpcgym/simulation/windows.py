"""Windows: times at which processors, or nodes, are closed to jobs, known from the beginning.

On nodes somebody holds these then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.partitions import nodes_of_text
from hpcgym.errors import HpcgymError, RuleWarning, warn_caller
from hpcgym.simulation.quotas import called_together

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.scheduler.windows import Window
    from hpcgym.workload.model import Workload


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
        for window in scheduler.windows
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
