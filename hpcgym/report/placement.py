"""Which processors each job is drawn on: the machine is a pool, a picture needs numbers."""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.result import Result


class Rectangles(NamedTuple):
    """What is drawn of the jobs; a job on processors that are not adjacent has several.

    Shapes (n_rectangles,), int64: ``job``, its number; ``begin`` and ``end``, seconds; ``low`` and
    ``high``, its processors low, low + 1, ... high - 1.
    """

    job: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


def place_jobs(result: Result) -> Rectangles:
    """Give every job processors that no other holds at the same time.

    A job gets the lowest adjacent processors that are free over its whole width, as a rectangle is
    easiest to read; where there are none, the lowest free ones. Each job costs time in proportion
    to the number of gaps between the running jobs, some microseconds in all.

    Raises
    ------
    ValueError : more processors are in use than there are, which no valid schedule does.
    """
    start, end = result.start.tolist(), result.end.tolist()
    sizes = result.workload.requested_processors.tolist()
    free = _FreeProcessors(result.cluster.processors)
    running: list[tuple[int, int]] = []  # (end, job), a heap
    pieces: list[list[tuple[int, int]]] = [[] for _ in start]
    for job in np.argsort(result.start, kind="stable").tolist():
        while running and running[0][0] <= start[job]:
            for low, high in pieces[heappop(running)[1]]:
                free.release(low, high)
        pieces[job] = free.allocate(sizes[job])
        heappush(running, (end[job], job))
    counts = [len(held) for held in pieces]
    ranges: NDArray[Any] = np.array([piece for held in pieces for piece in held], dtype=np.int64)
    ranges = ranges.reshape(-1, 2)
    owner = np.repeat(np.arange(len(start)), counts)
    return Rectangles(owner, result.start[owner], result.end[owner], ranges[:, 0], ranges[:, 1])


class _FreeProcessors:
    """Free processors as ranges: sorted, apart from each other, their ends in a second list."""

    def __init__(self, processors: int) -> None:
        self.lows, self.highs = [0], [processors]

    def allocate(self, size: int) -> list[tuple[int, int]]:
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
