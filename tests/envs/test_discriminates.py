"""The newer environments tell policies apart, and rank them as the long run does."""

from __future__ import annotations

import importlib.util
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from hpcgym.baselines.chance import RandomActions
from hpcgym.baselines.policies import find_baseline
from hpcgym.envs import JobSelection, QueueOrdering
from hpcgym.study.intervals import bootstrap

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "long_run.py"


@pytest.fixture(scope="module")
def long_run() -> Any:
    """The benchmark, which is a script."""
    spec = importlib.util.spec_from_file_location("long_run", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_default_tells_policies_apart(long_run: Any) -> None:
    """Paired intervals of log(BSLD of one / that of the next) over all windows of the train part.

    Around any order jobs are backfilled by shortest request, so a random one is not the worst.
    """
    env = gymnasium.make("hpcgym/JobSelection-v2").unwrapped
    assert isinstance(env, JobSelection)
    names = [episode.name for episode in env.episodes.listing]
    order, seen = ["fcfs", "sjf", "random", "saf"], {}
    for name in order:
        policy = RandomActions() if name == "random" else find_baseline(name)
        metrics = long_run.played(env, policy, names)
        seen[name] = np.log([each["mean_bsld"] for each in metrics])
    for better, other in pairwise(order):
        low, _ = bootstrap((seen[better] - seen[other])[:, np.newaxis])
        assert low[0] > 0, (better, other)


def test_random_orders_let_narrow_jobs_pass() -> None:
    """The pages say that this is why they beat EASY, and that the longest wait grows."""
    env = QueueOrdering("lublin:jobs=4000,processors=64,load=0.7,seed=3")
    seen = {}
    for is_random in (False, True):
        rng, rows = np.random.default_rng(0), []
        for episode in env.episodes.listing:
            env.reset(options={"slice": episode.name})
            over, nothing = False, np.zeros(env.options.window)
            while not over:
                scores = rng.uniform(-1, 1, env.options.window) if is_random else nothing
                *_, terminated, truncated, info = env.step(scores)
                over = terminated or truncated
            counted, jobs = env.counted(), env.episode_workload
            start = env.result().start[counted]
            waits = np.where(start < 0, info["time_s"], start) - jobs.submit_time[counted]
            narrow = jobs.requested_processors[counted] <= 16
            rows.append((waits[narrow].mean(), env.metrics()["longest_wait_s"]))
        seen[is_random] = np.mean(rows, axis=0)
    assert seen[True][0] < seen[False][0] / 3
    assert seen[True][1] > 1.5 * seen[False][1]


def test_what_gains_in_an_episode_gains_in_the_long_run(long_run: Any) -> None:
    policies = {name: find_baseline(name) for name in long_run.NAMED} | long_run.players()
    board = long_run.compare(JobSelection.usual["workload"], 24, policies)
    assert long_run.correlations(board)["long"] >= 0.9
    # a gate on the longest wait, beside that of FCFS, sees who starves jobs in the long run
    waits = board[["longest wait, long", "longest wait, whole"]]
    starves = waits > 1.25 * waits.loc["fcfs"]
    assert starves["longest wait, whole"].sum() >= 10
    agree = starves["longest wait, long"] == starves["longest wait, whole"]
    assert agree.mean() >= 0.8
