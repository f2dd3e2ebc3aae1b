"""A state of a crowded machine, made up for the dispatchers of the study."""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcgym.scheduler.dispatchers import PassView


def crowded(queued: int) -> PassView:
    """Return a state of 64 nodes, 56 of which run a job each, with jobs of 1 to 32 units queued."""
    rng, now = np.random.default_rng(1), 86_400
    cores = rng.integers(1, 21, queued)
    queue: dict[str, Any] = {
        "submit": np.sort(now - rng.integers(0, 20_000, queued)),
        "duration": rng.integers(60, 40_000, queued),
        "units": 2 ** rng.integers(0, 6, queued),
        "per_unit": np.stack([cores, cores * 2_000], axis=1),
    }
    running: dict[str, Any] = {
        "start": np.full(56, now - 3_600),
        "end": now + rng.integers(1, 80_000, 56),
        "per_unit": np.tile([20, 32_000], (56, 1)),
        "first": np.arange(57),
        "node": np.arange(56),
        "units": np.ones(56, np.int64),
    }
    capacity = np.tile([20, 64_000], (64, 1))
    return PassView.of(now, ("core", "mem"), capacity, queue=queue, running=running)
