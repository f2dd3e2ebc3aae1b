"""A baseline that drives an environment makes the schedule of ``simulate``, to the second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from plain_envs import JobSelection, MixedPolicy, QueueOrdering
from strategies import POLICY, workloads

from hpcgym.baselines import Baseline, find_baseline
from hpcgym.schedule.result import Result
from hpcgym.scheduler.policies import FEATURES
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

BUSY = load_workload("lublin:jobs=600,processors=64,seed=0,load=2")
WHERE = {"start": 100, "jobs": 400}  # up to 60 jobs wait

RULES = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["easy", "easy", "none"]),
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "lexp"]),
        "estimate": st.sampled_from(["requested", "clairvoyant", "ave2", "e-loss"]),
        "correction": st.sampled_from(["requested", "incremental", "recursive-doubling"]),
        "passes": st.sampled_from(["per-timestamp", "per-event"]),
    }
)


def drive(env: Any, baseline: Baseline, options: dict[str, int]) -> tuple[Result, float]:
    """The schedule and the return of an episode."""
    observation, info = env.reset(seed=0, options=options)
    baseline.begin(env)
    ended, total = False, 0.0
    while not ended:
        action = baseline.act(observation, info)
        assert env.action_space.contains(np.asarray(action, env.action_space.dtype))
        observation, reward, ended, _, info = env.step(action)
        total += reward
    return env.result(), total


def check(env: Any, baseline: Baseline, policy: Any, options: dict[str, int] = WHERE) -> None:
    result, total = drive(env, baseline, options)
    expected = simulate(env.episode_workload, policy=policy, **env.scheduler_rules)
    assert result.start.tolist() == expected.start.tolist()
    assert result.predicted_run_time.tolist() == expected.predicted_run_time.tolist()
    assert result.metrics["mean_bsld"] == expected.metrics["mean_bsld"]
    assert total == pytest.approx(-expected.metrics["mean_bsld"], rel=1e-9)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_jobs_any_policy_any_rules(data: st.DataObject) -> None:
    workload = data.draw(workloads(), "workload")
    policy = data.draw(POLICY.filter(lambda p: isinstance(p, str) or any(p)), "policy")
    rules = data.draw(RULES, "rules")
    whole = {"start": 0, "jobs": len(workload)}
    baseline = find_baseline(policy)
    for make in (JobSelection, QueueOrdering):
        env = make(workload, jobs=len(workload), window=len(workload), **rules)
        check(env, baseline, policy, whole)
    if policy == "wfp3":
        return
    interval = data.draw(st.sampled_from(["pass", "hour", 3, "episode"]), "interval")
    env = MixedPolicy(
        workload,
        jobs=len(workload),
        policy_features=tuple(FEATURES),
        interval=interval,
        window=5,
        **rules,
    )
    baseline.begin(env_of(env, whole))
    weights = baseline.act(None, {}).tolist()
    total = sum(map(abs, weights))  # by which the environment divides them
    same = {name: w / total for name, w in zip(FEATURES, weights, strict=True)}
    check(env, baseline, same, whole)


def env_of(env: Any, options: dict[str, int]) -> Any:
    env.reset(seed=0, options=options)
    return env


def test_jobs_beyond_the_window_are_not_seen() -> None:
    env = JobSelection(BUSY, jobs=400, window=4)
    result, _ = drive(env, find_baseline("saf"), WHERE)
    assert (result.start >= 0).all()
    assert result.start.tolist() != simulate(env.episode_workload, policy="saf").start.tolist()
    check(env, find_baseline("fcfs"), "fcfs")  # the first jobs are in the window
