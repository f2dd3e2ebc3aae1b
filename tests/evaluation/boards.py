"""What tests of evaluations share: workloads, settings, and boards of given values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.agents import search
from hpcgym.evaluation import Leaderboard
from hpcgym.scheduler.policies.features import spread
from hpcgym.workload import Workload, load_workload

TRACE = load_workload("lublin:jobs=2000,processors=64,seed=0,load=3")
SMALL: dict[str, Any] = {"jobs": 100, "n": 6, "budget": 14, "resamples": 200}


def board_of(by_slice: dict[str, list[float]], **changes: Any) -> Leaderboard:
    table = pd.DataFrame(by_slice, index=pd.Index(range(len(next(iter(by_slice.values()))))))
    return Leaderboard(table, dict.fromkeys(by_slice), {}, {}, **changes)


def candidates(
    training: Sequence[Workload], features: Sequence[str], number: int, seed: int
) -> list[dict[str, float]]:
    """The weights that are tried, without 0."""
    rng = np.random.default_rng(seed)
    vectors = search.candidates(rng, len(features), number) / spread(training, features)
    rows = search.normalised(vectors).tolist()
    return [{name: w for name, w in zip(features, row, strict=True) if w} for row in rows]
