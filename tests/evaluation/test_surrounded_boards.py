"""Leaderboards over slices that begin with jobs, go on with later ones, and end by time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym.evaluation import evaluate
from hpcgym.workload import load_workload

TRACE = load_workload("lublin:jobs=900,processors=64,seed=4,load=0.9")
AROUND: dict[str, Any] = {
    "start": "warm", "warmup": "2h", "arrivals": "continue", "horizon": "12h",
}  # fmt: skip


class FirstCome:
    """Select the job that was submitted first: in an environment with EASY that is EASY."""

    def act(self, observation: Any, info: dict[str, Any]) -> int:
        return 0


def test_who_acts_and_who_is_simulated_are_charged_alike() -> None:
    board = evaluate(
        {"mine": FirstCome()}, TRACE, env="hpcgym/JobSelection-v0", jobs=60, budget=0, **AROUND,
        env_options={"window": 256},
    )  # fmt: skip
    rows = board.by_slice
    assert len(rows) == 7
    assert list(rows.index) == [f"window {k:04}" for k in range(7)]
    np.testing.assert_allclose(rows["mine"], rows["easy"], rtol=1e-12)
    one, other = board.table.loc["mine"], board.table.loc["easy"]
    for metric in ("mean_wait_s", "utilization"):
        assert one[metric] == pytest.approx(other[metric])
    assert (rows["mine"] != rows["saf (backfill fcfs)"]).any()


def test_slices_of_easy_are_those_of_its_whole_schedule() -> None:
    board = evaluate(
        "easy", TRACE, jobs=60, budget=0, start="easy", arrivals="continue", horizon="60d"
    )
    whole = hpcgym.simulate(TRACE, "easy")
    first = len(TRACE) // 2
    for k, (name, value) in enumerate(board.by_slice["easy"].items()):
        rows = np.arange(first + 60 * k, first + 60 * (k + 1))
        assert value == pytest.approx(whole.bsld[rows].mean()), name


def test_learned_run_times_know_the_past() -> None:
    board = evaluate("easy++", TRACE, jobs=100, n=3, budget=0, **AROUND)
    assert np.isfinite(board.by_slice["easy++"]).all()
    assert not board.failures


def test_newer_environments_have_slices_of_their_own() -> None:
    few: dict[str, Any] = {"jobs": 60, "budget": 0, "n": 3}
    board = evaluate(FirstCome(), TRACE, env="hpcgym/JobSelection-v1", **few)
    rules = {"start": "warm", "arrivals": "continue", "horizon": "7d", "backfill": "none"}
    same = evaluate("fcfs", TRACE, **few, **rules)
    np.testing.assert_allclose(board.by_slice["fcfs"], same.by_slice["fcfs"])
