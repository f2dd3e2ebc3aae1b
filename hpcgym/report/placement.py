"""Which processors each job is drawn on: a pool has no numbers, and a node none for its cores."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.machine.pool import Cluster
    from hpcgym.schedule.result import Result


# --- Step functions of time -----------------------------------------------------------------------

Floats = NDArray[np.float64]


class Envelope(NamedTuple):
    """A step function over equal bins of time.

    ``edges``, shape (n_bins + 1,), seconds; ``mean``, ``low`` and ``high``, shape (n_bins,): mean
    over time, least and greatest value in each bin.
    """

    edges: Floats
    mean: Floats
    low: Floats
    high: Floats


def envelope(times: NDArray[Any], values: NDArray[Any], edges: Floats) -> Envelope:
    """Sum up a step function in bins, so that no peak is lost however short it was.

    Parameters
    ----------
    times : (n_times,) seconds, increasing, the first and the last being those of the picture.
    values : (n_times,); the function has ``values[i]`` from ``times[i]`` on. A value that holds
        for no time at all is counted by none of the three.
    edges : (n_bins + 1,) seconds, increasing, from the first of the times to the last.
    """
    length = np.diff(times)
    held = length > 0
    starts: Floats = np.append(times[:-1][held], times[-1]).astype(np.float64)
    levels: Floats = values[:-1][held].astype(np.float64)
    if not levels.size:  # nothing lasts
        nothing = np.zeros(len(edges) - 1)
        return Envelope(edges, nothing, nothing, nothing)
    integral = np.concatenate(([0.0], np.cumsum(levels * np.diff(starts))))
    mean = np.diff(np.interp(edges, starts, integral)) / np.diff(edges)
    # A bin's values are those that begin in it and the one that it begins with.
    entering = np.clip(np.searchsorted(starts, edges[:-1], side="right") - 1, 0, levels.size - 1)
    leaving = np.clip(np.searchsorted(starts, edges[1:], side="left"), 1, levels.size)
    spans = np.stack((entering, leaving), axis=1).ravel()
    levels = np.append(levels, levels[-1])  # reduceat wants every index below the size
    low: Floats = np.minimum.reduceat(levels, spans)[::2]
    high: Floats = np.maximum.reduceat(levels, spans)[::2]
    return Envelope(edges, np.clip(mean, low, high), low, high)


# --- Which processors each job is drawn on --------------------------------------------------------


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


Ints = NDArray[np.int64]
Piece = tuple[int, int]  # adjacent processors, from the lowest to the one after the highest


def place_jobs(result: Result) -> Rectangles:
    """Give every job processors that no other holds at the same time.

    A job gets the lowest adjacent processors that are free over its whole width, because a
    rectangle is easiest to read. If there is no such row, it gets the lowest free ones. On nodes it
    gets so those of each
    node that it has, and where jobs share nodes, parts of these: one lane of each if it shares
    them, else all. Each job costs time in proportion to its nodes and to the number of gaps between
    the running jobs, some microseconds in all.

    Raises
    ------
    ValueError : more processors are in use than there are, which no valid schedule does.
    """
    rows = rows_of(result).tolist() if has_nodes(result) else [0, result.cluster.processors]
    free = [_FreeProcessors(high, low) for low, high in pairwise(rows)]
    first, nodes, amounts = (column.tolist() for column in _cells(result))
    start, end = result.start.tolist(), result.end.tolist()
    running: list[tuple[float, int]] = []  # (end, job), a heap
    pieces: list[list[Piece]] = [[] for _ in start]
    for job in np.argsort(result.start, kind="stable").tolist():
        while running and running[0][0] <= start[job]:
            for low, high in pieces[heappop(running)[1]]:
                free[bisect_right(rows, low) - 1].release(low, high)
        for cell in range(first[job], first[job + 1]):
            pieces[job] += free[nodes[cell]].allocate(amounts[cell])
        heappush(running, (end[job], job))
    shared = result.coschedule
    if shared is None:
        pieces = [_joined(held) for held in pieces]
    else:  # lanes of nodes stay apart
        lone = shared.shares.tolist()
        pieces = [held if lone[job] else _joined(held) for job, held in enumerate(pieces)]
    ranges = np.array([piece for held in pieces for piece in held], np.int64).reshape(-1, 2)
    owner = np.repeat(np.arange(len(start)), [len(held) for held in pieces])
    return Rectangles(owner, result.start[owner], result.end[owner], ranges[:, 0], ranges[:, 1])


def _cells(result: Result) -> tuple[Ints, Ints, Ints]:
    """Return the first cell of each job; and of each cell its node, and how many rows it has."""
    sizes, held = result.workload.requested_processors, result.allocation
    if held is None or not has_nodes(result):
        return np.arange(len(sizes) + 1), np.zeros(len(sizes), np.int64), sizes
    job = np.repeat(np.arange(len(sizes)), np.diff(held.first))
    node = held.node.astype(np.int64)
    if (shared := result.coschedule) is not None:
        return held.first, node, np.where(shared.shares[job], 1, shared.parts)
    units = np.zeros(len(sizes), np.int64)
    np.add.at(units, job, held.units)
    return held.first, node, held.units * (sizes // np.maximum(units, 1))[job]


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
