"""Which processors each job is drawn on: a pool has no numbers, and a node none for its cores."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.report.lanes import place_on_lanes

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.schedule.result import Result


class Rectangles(NamedTuple):
    """What is drawn of the jobs; a job on processors that are not adjacent has several.

    Shapes (n_rectangles,), int64: ``job``, its number; ``begin`` and ``end``, seconds, as in the
    schedule; ``low`` and ``high``, its rows low, low + 1, ... high - 1. Rows are processors, those
    of nodes counted node after node; where jobs share nodes, parts of nodes.
    """

    job: NDArray[np.int64]
    begin: NDArray[Any]
    end: NDArray[Any]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


Piece = tuple[int, int]  # adjacent processors, from the lowest to the one after the highest


def place_jobs(result: Result) -> Rectangles:
    """Give every job processors that no other holds at the same time.

    A job gets the lowest adjacent processors that are free over its whole width, as a rectangle is
    easiest to read; where there are none, the lowest free ones. On nodes it gets so those of each
    node that it has. Each job costs time in proportion to its nodes and to the number of gaps
    between the running jobs, some microseconds in all. Where jobs share nodes, they get rows of
    parts of nodes: see :func:`hpcgym.report.lanes.place_on_lanes`.

    Raises
    ------
    ValueError : more processors are in use than there are, which no valid schedule does.
    """
    if result.coschedule is not None:
        job, low, high = place_on_lanes(result)
        return Rectangles(job, result.start[job], result.end[job], low, high)
    if has_nodes(result):
        return _in_time(result, *_on_nodes(result))
    free = _FreeProcessors(result.cluster.processors)
    sizes = result.workload.requested_processors.tolist()
    return _in_time(
        result, lambda job: free.allocate(sizes[job]), lambda piece: free.release(*piece)
    )


def has_nodes(result: Result) -> bool:
    """Return whether the schedule tells which nodes each job has."""
    return bool(result.cluster.groups) and result.allocation is not None


def first_rows(cluster: Cluster) -> NDArray[np.int64]:
    """Return the first processor of each node, and the number of all, (nodes + 1,)."""
    return np.concatenate(([0], np.cumsum(cluster.capacity[:, 0])))


def rows_of(result: Result) -> NDArray[np.int64]:
    """Return the first row of each node in a picture, and the number of all, (nodes + 1,)."""
    if result.coschedule is not None:
        return np.arange(result.cluster.nodes + 1) * result.coschedule.parts
    return first_rows(result.cluster)


def _in_time(
    result: Result, allocate: Callable[[int], list[Piece]], release: Callable[[Piece], None]
) -> Rectangles:
    """Go through starts and ends in their order, and note what each job is given."""
    start, end = result.start.tolist(), result.end.tolist()
    running: list[tuple[int, int]] = []  # (end, job), a heap
    pieces: list[list[Piece]] = [[] for _ in start]
    for job in np.argsort(result.start, kind="stable").tolist():
        while running and running[0][0] <= start[job]:
            for piece in pieces[heappop(running)[1]]:
                release(piece)
        pieces[job] = allocate(job)
        heappush(running, (end[job], job))
    pieces = [_joined(held) for held in pieces]
    counts = [len(held) for held in pieces]
    ranges: NDArray[Any] = np.array([piece for held in pieces for piece in held], dtype=np.int64)
    ranges = ranges.reshape(-1, 2)
    owner = np.repeat(np.arange(len(start)), counts)
    return Rectangles(owner, result.start[owner], result.end[owner], ranges[:, 0], ranges[:, 1])


def _on_nodes(
    result: Result,
) -> tuple[Callable[[int], list[Piece]], Callable[[Piece], None]]:
    """Return how a job is given processors of its nodes, and how they are given back."""
    allocation = result.allocation
    assert allocation is not None
    rows = first_rows(result.cluster).tolist()
    free = [_FreeProcessors(high, low) for low, high in pairwise(rows)]
    cells, nodes, units = (
        array.tolist() for array in (allocation.first, allocation.node, allocation.units)
    )
    sizes = result.workload.requested_processors.tolist()

    def allocate(job: int) -> list[Piece]:
        mine = range(cells[job], cells[job + 1])
        cores = sizes[job] // sum(units[cell] for cell in mine)
        return [piece for cell in mine for piece in free[nodes[cell]].allocate(units[cell] * cores)]

    def release(piece: Piece) -> None:
        free[bisect_right(rows, piece[0]) - 1].release(*piece)

    return allocate, release


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Return pieces from the lowest up, adjacent ones as one."""
    joined: list[Piece] = []
    for low, high in sorted(pieces):
        if joined and joined[-1][1] == low:
            low = joined.pop()[0]
        joined.append((low, high))
    return joined


class _FreeProcessors:
    """Free processors as ranges: sorted, apart from each other, their ends in a second list."""

    def __init__(self, high: int, low: int = 0) -> None:
        self.lows, self.highs = [low], [high]

    def allocate(self, size: int) -> list[Piece]:
        """Take ``size`` processors: one range if any is long enough, else the lowest ones."""
        for place, (low, high) in enumerate(zip(self.lows, self.highs, strict=True)):
            if high - low >= size:
                self._cut(place, low + size)
                return [(low, low + size)]
        taken = []
        while size:
            if not self.lows:
                raise ValueError("the schedule uses more processors than the machine has")
            low = self.lows[0]
            high = min(self.highs[0], low + size)
            self._cut(0, high)
            taken.append((low, high))
            size -= high - low
        return taken

    def _cut(self, place: int, low: int) -> None:
        """Take the processors below ``low`` from the range at ``place``."""
        if low == self.highs[place]:
            del self.lows[place], self.highs[place]
        else:
            self.lows[place] = low

    def release(self, low: int, high: int) -> None:
        """Give a range back, joined with its free neighbours."""
        place = bisect_left(self.lows, low)
        if place < len(self.lows) and self.lows[place] == high:
            high = self.highs[place]
            del self.lows[place], self.highs[place]
        if place and self.highs[place - 1] == low:
            self.highs[place - 1] = high
        else:
            self.lows.insert(place, low)
            self.highs.insert(place, high)
