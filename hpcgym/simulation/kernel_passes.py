"""Passes of the compiled kernels, for dispatchers: what they see, and what their answers do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.nodes import easy as node_easy
from hpcgym.engine.machines.nodes.placement import Nodes
from hpcgym.engine.ordered import BLOCK
from hpcgym.engine.state import QUEUE, RUNNING, Prepared
from hpcgym.scheduler.dispatchers.asking import Facts, Present, Start, view_at
from hpcgym.scheduler.dispatchers.view import PassView

Ints = NDArray[np.int64]


def present_of(arrays: Prepared, queued: Ints | None = None) -> Present:
    """Return what a simulation tells of its jobs; ``queued`` (q,) are those that wait, if not all.

    These are in the order of submission.
    """
    progress = arrays.progress
    job = np.sort(listed(arrays.blocks, arrays.entries, QUEUE)[0] if queued is None else queued)
    running, end = listed(arrays.blocks, arrays.entries, RUNNING)
    start, duration = progress["start"][running], progress["predicted"][job]
    return Present(int(arrays.sim.time), arrays.jobs, job, duration, running, start, end)


def view_of(arrays: Prepared, nodes: Nodes, facts: Facts, queued: Ints | None = None) -> PassView:
    """Return what a dispatcher may know of a simulation.

    ``queued`` (q,) are the queued jobs that it sees, by default all.
    """
    return view_at(present_of(arrays, queued), nodes, facts)


def listed(blocks: NDArray[np.void], entries: NDArray[np.void], which: int) -> tuple[Ints, Ints]:
    """Return the jobs of an ordered list of a simulation and their keys, (n,) each."""
    begin = int(blocks["first"][which])
    numbers = blocks["order"][begin : begin + int(blocks["in_use"][which])].tolist()
    parts = [entries[b * BLOCK : b * BLOCK + int(blocks["count"][b])] for b in numbers]
    found = np.concatenate(parts)
    return found["job"].astype(np.int64), found["key"].astype(np.int64)


class Kernels(NamedTuple):
    """One of the compiled kernels, as :class:`hpcgym.scheduler.dispatchers.asking.Asking` says."""

    arrays: Prepared
    nodes: Nodes

    @property
    def time(self) -> int:  # noqa: D102
        return int(self.arrays.sim.time)

    @property
    def coming(self) -> int:  # noqa: D102
        return len(self.arrays.jobs) - int(self.arrays.sim.next)

    def pass_time(self, time: int) -> None:  # noqa: D102
        self.arrays.sim.time = time

    def view(self, facts: Facts) -> PassView:  # noqa: D102
        return view_of(self.arrays, self.nodes, facts)

    def start(self, starts: list[tuple[int, Start]]) -> int:  # noqa: D102
        a = self.arrays
        for number, (job, start) in enumerate(starts):
            placed = start.nodes is not None
            if start.nodes is not None:
                _write_cells(self.nodes, job, start.nodes)
            if not node_easy.start_chosen(
                a.jobs, a.keys, a.sim, a.progress, a.blocks, a.entries, a.idle, self.nodes, job,
                placed,
            ):  # fmt: skip
                return number
        return len(starts)


def _write_cells(nodes: Nodes, job: int, chosen: Ints) -> None:
    """Write the nodes of the units of a job."""
    distinct, units = np.unique(chosen, return_counts=True)
    first = int(nodes.held["first"][job])
    nodes.cells["node"][first : first + len(distinct)] = distinct
    nodes.cells["units"][first : first + len(distinct)] = units
    nodes.held["count"][job] = len(distinct)
