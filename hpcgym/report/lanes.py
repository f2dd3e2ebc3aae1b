"""Jobs that share nodes as lanes: each part of a node is a row of the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

Ints = NDArray[np.int64]


def place_on_lanes(result: Result) -> tuple[Ints, Ints, Ints]:
    """Give every job rows of its nodes that no other holds at the same time, from start to end.

    A node with K parts has K rows. A job that shares it has one of them, on all of its nodes the
    same lane if that is free there, else the lowest free one; another job has all K. Of each second
    node the lanes are counted from above, so that what a job has of two nodes is often one piece.

    Returns
    -------
    job, low, high : (n_pieces,) int64; the job has rows low, low + 1, ... high - 1. Lanes are
        pieces, and so are adjacent nodes of a job that does not share them.

    Raises
    ------
    ValueError : more parts are in use than a node has, which no valid schedule does.
    """
    run, allocation = result.coschedule, result.allocation
    assert run is not None
    assert allocation is not None
    free = np.ones((result.cluster.nodes, run.parts), np.bool_)
    shares = run.shares.tolist()
    lanes: list[NDArray[np.int64] | None] = [None] * len(shares)
    rows: list[Ints] = [np.zeros(0, np.int64)] * len(shares)
    for job, begins in _events(run.start_ticks, run.end_ticks):
        nodes = allocation.node[allocation.first[job] : allocation.first[job + 1]].astype(np.int64)
        lane = lanes[job]
        if not begins:
            if lane is None:
                free[nodes] = True
            else:
                free[nodes, lane] = True
            continue
        here = free[nodes]
        if not (here.any(axis=1) if shares[job] else here.all(axis=1)).all():
            raise ValueError("the schedule uses more parts of a node than it has")
        if shares[job]:
            most = int(here.sum(axis=0).argmax())
            lane = lanes[job] = np.where(here[:, most], most, here.argmax(axis=1))
            free[nodes, lane] = False
            rows[job] = np.sort(nodes * run.parts + lane)
        else:
            free[nodes] = False
            rows[job] = np.sort((nodes[:, np.newaxis] * run.parts + np.arange(run.parts)).ravel())
    return _pieces(rows, run.shares)


def _events(start: Ints, end: Ints) -> list[tuple[int, bool]]:
    """Return jobs, and whether they begin, in the order of time; who ends makes room first."""
    n = len(start)
    order = np.lexsort((np.repeat([1, 0], n), np.concatenate((start, end))))
    return list(zip((order % max(n, 1)).tolist(), (order < n).tolist(), strict=True))


def _pieces(rows: list[Ints], shares: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Return the rows of jobs, rising: each lane for itself, adjacent nodes as one piece."""
    job = np.repeat(np.arange(len(rows)), [len(held) for held in rows])
    row = np.concatenate([np.zeros(0, np.int64), *rows])
    breaks = np.append(True, (np.diff(row) != 1) | (np.diff(job) != 0))[: len(row)] | shares[job]
    first = np.flatnonzero(breaks)
    last = np.append(first[1:], len(row))[: len(first)] - 1
    return job[first], row[first], row[last] + 1
