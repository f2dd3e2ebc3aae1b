"""The file system that all jobs of a machine share, where they slow each other down.

What running jobs ask of it is added up, in whole bytes a second, so that the sum is exact in
whatever order they come and go. Where it is more than the bandwidth, all that waits for files takes
so many times as long: the congestion.

Without a file system ``machine.io`` is None, and nothing here is compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit_inline, jit_part
from hpcgym.schedule.records import records

COUNTS = records(
    ("asked", np.int64),  # by running jobs [bytes/s]
    ("congestion", np.float64),  # 1 if all of that is had
    ("told", np.float64),  # the congestion that the rates of running jobs are of
    ("running", np.int64),  # how many there are in `running`
)


class SharedFiles(NamedTuple):
    """What a machine has beside its nodes where jobs share a file system. C codes, n jobs."""

    bandwidth: NDArray[np.float64]  # (1,) [bytes/s]
    share: NDArray[np.float64]  # (C,) of its time that a code alone waits for files
    demand: NDArray[np.int64]  # (n,) of each job meanwhile [bytes/s]
    beside: NDArray[np.float64]  # (n,) rate of a running job if there was no congestion
    running: NDArray[np.int64]  # (n,) the running jobs that ever wait for files, in any order
    place: NDArray[np.int64]  # (n,) of a running job there
    counts: NDArray[np.void]  # (1,) COUNTS


def make_files(
    bandwidth: float, share: NDArray[np.float64], demand: NDArray[np.int64]
) -> SharedFiles:
    """Return a file system that nobody uses; what is given is as in :class:`SharedFiles`."""
    n, counts = len(demand), np.zeros(1, COUNTS)
    counts["congestion"] = counts["told"] = 1
    return SharedFiles(
        np.array([bandwidth], np.float64),
        np.array(share, np.float64),
        np.array(demand, np.int64),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        counts,
    )


@jit_inline
def in_congestion(io, code, rate):
    """Return how fast a job is that would have this rate if there was no congestion.

    What it waits for files is added to its time, which the rate is the inverse of.
    """
    if io is None:
        return rate
    return rate / (1.0 + rate * (io.share[code] * (io.counts[0].congestion - 1.0)))


@jit_inline
def rate_beside_others(io, job, rate):
    """Return the rate of a running job if there was no congestion; it has ``rate``."""
    if io is None:
        return rate
    return io.beside[job]


@jit_inline
def keep_beside(io, job, rate):
    """Keep the rate of a running job if there was no congestion."""
    if io is not None:
        io.beside[job] = rate


@jit_inline
def congestion_differs(io):
    """Return whether there is another congestion than the rates of running jobs are of."""
    if io is None:
        return False
    return io.counts[0].congestion != io.counts[0].told


@jit_inline
def open_files(io, job, code):
    """Let a job that starts ask for its bandwidth."""
    if io is None:
        return
    counts = io.counts[0]
    if io.share[code] > 0:
        io.running[counts.running] = job
        io.place[job] = counts.running
        counts.running += 1
    ask(io, io.demand[job])


@jit_inline
def close_files(io, job, code):
    """Let a job that has ended ask for nothing."""
    if io is None:
        return
    counts = io.counts[0]
    if io.share[code] > 0:
        counts.running -= 1
        last = io.running[counts.running]
        io.running[io.place[job]] = last
        io.place[last] = io.place[job]
    ask(io, -io.demand[job])


@jit_part
def ask(io, more):
    """Let running jobs ask for so much more bandwidth."""
    counts = io.counts[0]
    counts.asked += more
    counts.congestion = max(1.0, counts.asked / io.bandwidth[0])
