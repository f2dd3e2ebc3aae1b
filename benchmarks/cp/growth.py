"""How the time of a dispatch grows with the number of nodes, and with the number of queued jobs.

States are made up: a machine of equal nodes of 20 cores and 64 GB, as KIT ForHLR II's thin ones, of
which all but eight are taken by running jobs, whatever their number, so that the queue is equally
hard to serve; and a queue of jobs of 1 to 32 units of 1 to 20 cores.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.scheduler.dispatchers import PassView

HOUR_S = 3600
CORES, MEMORY_MB = 20, 64_000
LARGEST = 32  # units of a job
FREE = 8  # nodes; of a machine of fewer than 16 a half

#: (nodes, queued) of the states: one of the two stays as it is.
NODES = (64, 256, 1024, 4096)
QUEUED = (5, 10, 20, 40, 80)
USUAL_NODES, USUAL_QUEUED = 1024, 20

#: Dispatchers that are measured.
MEASURED = ("prb", "cph-3", "cp-3", "hcp19", "pcp19", "pcp20")

#: States of each size.
REPEATS = 3


def grow_tasks(made_by: str, full: bool) -> list[dict[str, Any]]:
    """Return the tasks; PCP'19, whose model grows with both, has the largest with ``full`` only."""
    sizes = [(nodes, USUAL_QUEUED) for nodes in NODES]
    sizes += [(USUAL_NODES, queued) for queued in QUEUED if queued != USUAL_QUEUED]
    return [
        {"dispatcher": name, "nodes": nodes, "queued": queued, "code": made_by}
        for name in MEASURED
        for nodes, queued in sizes
        if full or name != "pcp19" or nodes * queued <= USUAL_NODES * USUAL_QUEUED
    ]


def grow_one(task: dict[str, Any]) -> dict[str, Any]:
    """Measure a dispatcher on states of one size.

    Parameters
    ----------
    task : "dispatcher", its name; "nodes" and "queued"; and "code", a hash of the sources.

    Returns
    -------
    ``ms`` : CPU time of a dispatch [ms], the mean; ``longest`` of them; ``started``, how many jobs
    were started in all.
    """
    spent, started = [], 0
    list(
        find_dispatcher(task["dispatcher"])(state_of(16, 4, 0))
    )  # compiles, and imports the solver
    for seed in range(REPEATS):
        view = state_of(task["nodes"], task["queued"], seed)
        dispatcher = find_dispatcher(task["dispatcher"])
        began = time.process_time()
        started += len(list(dispatcher(view)))
        spent.append(1000 * (time.process_time() - began))
    return {"ms": float(np.mean(spent)), "longest": max(spent), "started": started}


def state_of(nodes: int, queued: int, seed: int) -> PassView:
    """Return a state of a machine with that many nodes and queued jobs.

    A job has 1 to 32 units, powers of two, but no more than there are nodes.
    """
    powers = min(LARGEST, nodes).bit_length()
    rng = np.random.default_rng([nodes, queued, seed])
    now = 24 * HOUR_S
    sizes: list[int] = []
    busy = nodes - min(FREE, nodes // 2)
    while sum(sizes) < busy:
        sizes.append(min(int(2 ** rng.integers(0, powers)), busy - sum(sizes)))
    first = np.concatenate([[0], np.cumsum(sizes)])
    cores = rng.integers(1, CORES + 1, queued)
    running: dict[str, Any] = {
        "start": np.full(len(sizes), now - HOUR_S),
        "end": now + rng.integers(1, 24 * HOUR_S, len(sizes)),
        "per_unit": np.tile([CORES, MEMORY_MB // 2], (len(sizes), 1)),
        "first": first,
        "node": np.arange(first[-1]),
        "units": np.ones(first[-1], np.int64),
    }
    queue: dict[str, Any] = {
        "submit": np.sort(now - rng.integers(0, 6 * HOUR_S, queued)),
        "duration": rng.integers(60, 12 * HOUR_S, queued),
        "units": 2 ** rng.integers(0, powers, queued),
        "per_unit": np.stack([cores, cores * 2_000], axis=1),
    }
    capacity = np.tile([CORES, MEMORY_MB], (nodes, 1))
    return PassView.of(now, ("core", "mem"), capacity, queue=queue, running=running)


def by_nodes(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows whose queue is the usual one."""
    return [row for row in rows if row["queued"] == USUAL_QUEUED]


def by_queued(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows whose machine is the usual one."""
    return [row for row in rows if row["nodes"] == USUAL_NODES]
