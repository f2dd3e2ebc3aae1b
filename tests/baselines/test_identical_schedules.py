"""A baseline that drives an environment makes the schedule of ``simulate``, to the second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from strategies import POLICY, workloads

from hpcgym.baselines import BASELINES, Baseline, find_baseline
from hpcgym.envs.job_selection import JobSelection
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.envs.queue_ordering import QueueOrdering
from hpcgym.schedule.result import Result
from hpcgym.scheduler.policies import FEATURES, POLICIES
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

BUSY = load_workload("lublin:jobs=600,processors=64,seed=0,load=2")
WHERE = {"start": 100, "jobs": 400}  # up to 60 jobs wait

RULES = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["easy", "easy", "none"]),
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "lexp"]),
        "estimate": st.sampled_from(["requested", "clairvoyant", "ave2"]),
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
@pytest.mark.parametrize("make", [JobSelection, QueueOrdering])
@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline(make: Any, name: str) -> None:
    baseline = find_baseline(name)
    env = make(BUSY, jobs=400, **baseline.rules)
    check(env, baseline, baseline.policy)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*BASELINES} - {"wfp3"}))
@pytest.mark.parametrize("interval", ["pass", "hour", 7, "episode"])
def test_every_baseline_that_is_weights(name: str, interval: Any) -> None:
    baseline = find_baseline(name)
    features = tuple(FEATURES)
    env = MixedPolicy(BUSY, policy_features=features, interval=interval, jobs=400, **baseline.rules)
    check(env, baseline, baseline.policy)


@pytest.mark.parametrize("make", [JobSelection, QueueOrdering])
@pytest.mark.parametrize("name", ["fcfs", "saf", "lexp", "f1"])
def test_without_backfilling(make: Any, name: str) -> None:
    env = make(BUSY, jobs=400, window=400, backfill="none")  # up to 361 jobs wait
    check(env, find_baseline(name), name)


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


def test_a_baseline_goes_on_after_a_snapshot() -> None:
    env = JobSelection(BUSY, jobs=400)
    baseline = find_baseline("lexp")
    observation, info = env.reset(seed=0, options=WHERE)
    baseline.begin(env)
    for _ in range(50):
        observation, _, _, _, info = env.step(baseline.act(observation, info))
    saved = env.snapshot()
    starts = []
    for _ in range(2):
        observation, info = env.restore(saved)
        ended = False
        while not ended:
            observation, _, ended, _, info = env.step(baseline.act(observation, info))
        starts.append(env.result().start.tolist())
    expected = simulate(env.episode_workload, policy="lexp", **env.scheduler_rules)
    assert starts == [expected.start.tolist()] * 2


def test_all_names_are_tried() -> None:
    assert {name for name in POLICIES if not POLICIES[name].looks_at_usage} <= set(BASELINES)
