"""What tests of evaluations share: workloads, settings, policies, and boards of given values."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.agents import search
from hpcgym.envs.core.surroundings import NOTHING_AROUND
from hpcgym.machine import Cluster, NodeGroup, find_cluster
from hpcgym.scheduler.policies.features import spread
from hpcgym.study import Leaderboard
from hpcgym.workload import Workload, load_workload

TRACE = load_workload("lublin:jobs=2000,processors=64,seed=0,load=3")
FEW: dict[str, Any] = {
    "jobs": 100, "n": 2, "budget": 0, "resamples": 200, "train_share": 0.45, **NOTHING_AROUND,
}  # fmt: skip
SMALL: dict[str, Any] = {**FEW, "n": 6, "budget": 14}

#: Where codes are known, so that jobs may share nodes; and a machine for them.
CODES, SHARED_MACHINE = "codes:jobs=300,processes=24,processors=192,seed=2", "8x2x12"

#: Sixteen processors, each a node of Taurus.
TAURUS = Cluster(groups=(NodeGroup("n", 16, {"core": 1}, find_cluster("taurus").groups[0].power),))
BUDGET = "hpcgym/EnergyBudget-v1"


def board_of(by_slice: dict[str, list[float]], **changes: Any) -> Leaderboard:
    """A board of values of the metric, of which those of ``changes`` may be trainings."""
    metric = changes.get("metric", "mean_bsld")
    rows = changes.pop("rows", by_slice)
    return Leaderboard({metric: pd.DataFrame(by_slice)}, dict.fromkeys(rows), **changes)


def rows_in(name: str) -> slice:
    """The rows of a slice such as "rows 450:510"."""
    return slice(*map(int, name.removeprefix("rows ").split(":")))


def candidates(
    training: Sequence[Workload], features: Sequence[str], number: int, seed: int
) -> list[dict[str, float]]:
    """The weights that are tried, without 0."""
    rng = np.random.default_rng(seed)
    vectors = search.candidates(rng, len(features), number) / spread(training, features)
    rows = search.normalised(vectors).tolist()
    return [{name: w for name, w in zip(features, row, strict=True) if w} for row in rows]


class First:
    """Selects the job that came first: where EASY backfills that is EASY."""

    def act(self, observation: Any, info: Any) -> int:
        return 0


class Saved(First):
    """The same with what a file says of its training."""

    def __init__(self, env: str = "JobSelection-v2", **env_options: Any) -> None:
        self.env_id, self.env_options = f"hpcgym/{env}", env_options


class FirstPair:
    """The first that can be done, where jobs share nodes; called as the rule that is the same."""

    name = "first-pairs"

    def act(self, observation: Any, info: Any) -> int:
        return int(np.argmax(info["action_mask"]))


def failing(at: Sequence[int], act: Any = lambda observation, info: 0) -> Any:
    """A policy that fails at some of its calls, counted from 1."""
    calls: list[int] = []

    def tries(observation: Any, info: Any) -> Any:
        calls.append(1)
        if len(calls) in at:
            raise ZeroDivisionError("no way")
        return act(observation, info)

    return SimpleNamespace(act=tries, calls=calls)


def as_it_is(share: float = 0.7) -> Any:
    """A policy that leaves the machine as it is, made for a budget of this share."""
    return SimpleNamespace(
        name="as it is",
        env_id=BUDGET,
        env_options={"share": share, "controls": ["power", "nodes"]},
        act=lambda observation, info: np.ones(2, np.float32),
    )
