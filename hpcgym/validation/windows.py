"""Proofs that no job runs within a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.partitions import nodes_of_text
from hpcgym.validation.nodes import owner_of
from hpcgym.validation.schedules import Mask, Times, cases

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.windows import Window


def check_windows(result: Result) -> list[str]:
    """Find jobs that run within a window on what it closes, in O(n log n) for each.

    Jobs that ran at the beginning of an extract may: nobody could plan them.
    """
    found = []
    initial = result.workload.initial
    planned = np.ones(len(result.start), np.bool_) if initial is None else ~initial.running
    held: list[tuple[int, int, int]] = []  # from when to when a window has how many processors
    for window in result.scheduler.windows:
        begin, end = window.seconds(result.workload.header)
        inside = planned & (result.start < end) & (result.end > begin)
        if window.processors is None:
            on = _on(result, window)
            text = f"job {{}} runs from {{}} s to {{}} s, within the window {window}"
            found += cases(inside & on, text, result.start, result.end)
        else:
            held.append((begin, end, window.processors))
    if held:
        found += _check_room(result, np.array(held, np.int64), planned)
    return found


def window_ends(result: Result) -> Times:
    """Return when windows end, (n_ends,) [s], from the beginning to the last end."""
    windows = result.scheduler.windows
    if not len(result.start):
        return np.zeros(0, np.int64)
    ends = np.array([one.seconds(result.workload.header)[1] for one in windows], np.int64)
    inside: Times = ends[(ends >= result.begin) & (ends <= result.end.max())]
    return inside


def _on(result: Result, window: Window) -> Mask:
    """Return which jobs have a node that a window closes, (n_jobs,)."""
    on = np.ones(len(result.start), np.bool_)
    if not window.nodes:
        return on
    cluster, held = result.cluster, result.allocation
    assert held is not None  # as units are proved
    sizes = [(group.name, group.nodes) for group in cluster.groups]
    closed = np.zeros(cluster.nodes, np.bool_)
    closed[nodes_of_text(window.nodes, sizes, str(window))] = True
    on[:] = False
    on[owner_of(held.first)[closed[held.node]]] = True
    return on


def _check_room(result: Result, held: NDArray[np.int64], planned: Mask) -> list[str]:
    """Find times at which jobs and windows hold more processors than there are.

    And a job that was planned is among them, (n_jobs,) bool.
    """
    width = result.workload.requested_processors
    begin, end = np.append(result.start, held[:, 0]), np.append(result.end, held[:, 1])
    taken = np.append(width, held[:, 2])
    time = np.concatenate([end, begin])
    change = np.concatenate([-taken, taken])
    order = np.lexsort((change > 0, time))  # of one second, ends come first
    used = np.cumsum(change[order])
    own = np.append(width * planned, np.zeros_like(held[:, 2]))
    running = np.cumsum(np.concatenate([-own, own])[order])
    text = f"at {{1}} s jobs and windows hold {{2}} of {result.cluster.processors} processors"
    wrong = (used > result.cluster.processors) & (running > 0)
    return cases(wrong, text, time[order], used)
