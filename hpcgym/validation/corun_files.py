"""How a file system that jobs share slows them down, worked out from starts and ends.

What running jobs ask for is added up; where it is more than the bandwidth, all that waits for files
takes so many times as long. n jobs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Files(NamedTuple):
    """The file system, and what jobs read and write.

    Attributes
    ----------
    bandwidth : whole bytes a second.
    share : (n,) of the run time of each job, alone on nodes of its own, that it waits for files.
    demand : (n,) whole bytes a second that it asks for meanwhile.
    """

    bandwidth: float
    share: Floats
    demand: Ints


class Congestion(NamedTuple):
    """How many times as long files take: k values, each from a time up to that of the next."""

    time: Ints
    times_as_long: Floats


def congestion_of(files: Files, start: Ints, end: Ints) -> Congestion:
    """Return the congestion by what all jobs ask for that run; ``start`` and ``end``, (n,)."""
    time, place = np.unique(np.concatenate((start, end)), return_inverse=True)
    change = np.zeros(time.size, np.int64)
    np.add.at(change, place, np.concatenate((files.demand, -files.demand)))
    found = np.maximum(np.cumsum(change) / files.bandwidth, 1.0)
    differs = np.ones(time.size, np.bool_)
    differs[1:] = np.diff(found) != 0
    return Congestion(time[differs], found[differs])


def changes_within(
    congestion: Congestion, files: Files, start: Ints, end: Ints
) -> tuple[Ints, Ints]:
    """Return jobs, and times at which another congestion changes their rates as they run; (c,)."""
    first = np.searchsorted(congestion.time, start, "right")
    count = np.searchsorted(congestion.time, end, "left") - first
    count = np.where(files.share > 0, np.maximum(count, 0), 0)
    owner = np.repeat(np.arange(start.size), count)
    before = np.repeat(np.cumsum(count) - count, count)
    return owner, congestion.time[first[owner] + np.arange(owner.size) - before]


def slowed(congestion: Congestion, files: Files, owner: Ints, time: Ints, rate: Floats) -> Floats:
    """Return rates of jobs from some times on, by those without congestion; (c,) each.

    Work of a second takes 1 / rate, and what is waited for files beyond the share of them.
    """
    place = np.searchsorted(congestion.time, time, "right") - 1
    waits = files.share[owner] * (congestion.times_as_long[place] - 1.0)
    found: Floats = 1.0 / (1.0 / rate + waits)
    return found
