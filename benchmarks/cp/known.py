"""The best known schedules of small states: what dispatchers' answers can be measured against.

The machines are of three kinds of nodes, of 16 and 32 cores, some with GPUs; running jobs fill
parts of nodes, and units of several jobs share one. Which node a unit gets matters, as it would
not where every job takes whole nodes of one kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.cp.problem import hold
from hpcgym.scheduler.dispatchers import PassView

Ints = NDArray[np.int64]

HOUR_S = 3600

#: Kinds of nodes: cores, memory [MB], GPUs. A machine has as many of each.
KINDS = ((16, 32_000, 0), (16, 64_000, 2), (32, 128_000, 0))

#: (nodes of each kind, queued, seed) of the states.
STATES = tuple((each, queued, seed) for each in (1, 2) for queued in (4, 6) for seed in range(2))

#: Deterministic seconds of CP-SAT at most, for each state and model.
WORK = 2.0


def known_tasks(made_by: str) -> list[dict[str, Any]]:
    """Return the tasks."""
    return [
        {"each": each, "queued": queued, "seed": seed, "work": WORK, "code": made_by}
        for each, queued, seed in STATES
    ]


def known_one(task: dict[str, Any]) -> dict[str, Any]:
    """Return the row of :func:`hpcgym.baselines.cp.exact.known_best` of one state.

    Parameters
    ----------
    task : "each", "queued" and "seed" of the state, see :func:`small_state`, and "work"; and
        "code", a hash of the sources.
    """
    from hpcgym.baselines.cp.exact import known_best

    each, queued, seed = task["each"], task["queued"], task["seed"]
    view = small_state(each, queued, seed)
    name = f"{each} of {len(KINDS)} kinds of nodes, {queued} jobs, seed {seed}"
    row = known_best({name: view}, task["work"]).iloc[0]
    return {str(column): value for column, value in row.items()}


def small_state(each: int, queued: int, seed: int) -> PassView:
    """Return a state of a small machine of several kinds of nodes.

    Parameters
    ----------
    each : nodes of each kind.
    queued : jobs in the queue; each fits the empty machine.
    seed : of what runs and waits.
    """
    rng = np.random.default_rng([each, queued, seed])
    now = 24 * HOUR_S
    capacity = np.repeat(np.array(KINDS, np.int64), each, axis=0)
    per_unit, units = _demands(rng, capacity, queued)
    queue: dict[str, Any] = {
        "submit": np.sort(now - rng.integers(0, 6 * HOUR_S, queued)),
        "duration": rng.integers(300, 6 * HOUR_S, queued),
        "units": units,
        "per_unit": per_unit,
    }
    running = _running(rng, capacity, now)
    return PassView.of(now, ("core", "mem", "gpu"), capacity, queue=queue, running=running)


def _demands(rng: np.random.Generator, capacity: Ints, number: int) -> tuple[Ints, Ints]:
    """Return demands of jobs, (number, R) per unit, and their units: at most what a machine holds.

    A third of the units take a GPU; few fill a node.
    """
    cores = rng.integers(2, 13, number)
    gpu = (rng.random(number) < 1 / 3).astype(np.int64)
    per_unit = np.stack([cores, cores * 2_000, gpu], axis=1)
    held = [hold(capacity, demand).sum() for demand in per_unit]
    return per_unit, np.minimum(rng.integers(1, 5, number), held)


def _running(rng: np.random.Generator, capacity: Ints, now: int) -> dict[str, Any]:
    """Return running jobs of one unit each, two for a node, on nodes drawn from those with room."""
    free = capacity.copy()
    per_unit, _ = _demands(rng, capacity, 2 * len(capacity))
    node, taken = [], []
    for demand in per_unit:
        room = np.flatnonzero(hold(free, demand) > 0)
        if room.size:
            node.append(int(rng.choice(room)))
            taken.append(demand)
            free[node[-1]] -= demand
    count = len(node)
    return {
        "start": np.full(count, now - HOUR_S),
        "end": now + rng.integers(300, 6 * HOUR_S, count),
        "per_unit": np.array(taken),
        "first": np.arange(count + 1),
        "node": np.array(node),
        "units": np.ones(count, np.int64),
    }
