"""Baselines act as the scheduler of their name would."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from mistakes import mistakes_of
from strategies import POLICY, workloads

from hpcgym.baselines import BASELINES, SCHEDULERS, Baseline, find_baseline
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.orders import score_of
from hpcgym.scheduler.policies import FEATURES, POLICIES, WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload import Workload, load_workload

RULES = {
    "backfill": "easy",
    "backfill_order": "fcfs",
    "estimate": "requested",
    "correction": "requested",
    "passes": "per-timestamp",
}
JOBS = load_workload("lublin:jobs=60,processors=32,seed=4")


def environment(kind: str, workload: Workload = JOBS, window: int = 128, **changes: Any) -> Any:
    """What a baseline sees of an environment."""
    features = changes.pop("policy_features", WEIGHTED_FEATURES)
    env = SimpleNamespace(
        action_kind=kind,
        episode_workload=workload,
        scheduler_rules={**RULES, **changes},
        policy_features=features,
        units=None,
        action_space=SimpleNamespace(shape=(window,)),
        simulations=SimpleNamespace(names=["whole"]),
    )
    env.unwrapped = env
    return env


def act(baseline: Baseline, env: Any, rows: Any = (), time: int = 0) -> Any:
    baseline.begin(env)
    return baseline.act(None, {"window": np.asarray(rows, np.int64), "time_s": time})


# --- The order of the queue -----------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_the_order_is_that_of_the_specification(data: st.DataObject) -> None:
    workload = data.draw(workloads(), "workload")
    policy = data.draw(POLICY.filter(lambda p: isinstance(p, str) or any(p)), "policy")
    rows = sorted(data.draw(st.sets(st.integers(0, len(workload) - 1), min_size=1), "rows"))
    time = int(workload.submit_time[rows].max()) + data.draw(st.integers(0, 5000), "waiting")
    jobs, score = jobs_of(workload), score_of(policy)
    expected = sorted(range(len(rows)), key=lambda k: (-score(jobs[rows[k]], time), rows[k]))
    baseline = find_baseline(policy)
    assert act(baseline, environment("select", workload), rows, time) == expected[0]
    action = act(baseline, environment("order", workload, window=50), rows, time)
    assert np.argsort(-action[: len(rows)], kind="stable").tolist() == expected


@pytest.mark.parametrize("window", [1, 5, 128, 4096])
def test_ranks_are_distinct_numbers_from_1_to_minus_1(window: int) -> None:
    rows = np.arange(min(window, len(JOBS)))
    action = act(find_baseline("saf"), environment("order", window=window), rows, 10**6)
    assert action.shape == (window,)
    assert action.dtype == np.float32
    assert np.abs(action).max() == 1
    assert np.unique(action[: len(rows)]).size == len(rows)
    assert (action[len(rows) :] == -1).all()


def test_an_answer_is_for_the_jobs_of_this_episode() -> None:
    first, second = JOBS.take(slice(0, 30)), JOBS.take(slice(30, 60))
    baseline = find_baseline("saf")
    for part in (first, second, first):
        area = part.requested_time * part.requested_processors
        assert act(baseline, environment("select", part), range(30)) == np.argmin(area)


def test_an_action_does_not_hang_on_earlier_ones() -> None:
    baseline = find_baseline("lexp")
    baseline.begin(environment("select"))
    ask = {"window": np.arange(20), "time_s": int(JOBS.submit_time[20])}
    before = baseline.act(None, ask)
    baseline.act(None, {"window": np.arange(3), "time_s": 10**7})
    assert baseline.act(None, ask) == before


# --- Weights --------------------------------------------------------------------------------


def test_weights_are_exact_and_in_the_action_space() -> None:
    env = environment("weights")
    assert act(find_baseline("0.1,-0.2,0,0,0,0.7"), env).tolist() == [0.1, -0.2, 0, 0, 0, 0.7]
    assert act(find_baseline("1,-2,0,0,0,5"), env).tolist() == [1 / 8, -2 / 8, 0, 0, 0, 5 / 8]
    assert act(find_baseline("0,0,0,0,0.3,-1e9"), env).tolist()[4] == 0.3 / 2**30
    assert act(find_baseline({"wait": 3.0, "area": -1}), env).tolist() == [0, 0, 0.75, 0, 0, -0.25]
    env = environment("weights", policy_features=("area", "f1"))
    assert act(find_baseline("f1"), env).tolist() == [0, -1]
    assert act(find_baseline("saf"), env).tolist() == [-1, 0]


def test_nobody_changes_the_weights_of_a_baseline() -> None:
    baseline = find_baseline("saf")
    act(baseline, environment("weights"))[:] = 7
    assert baseline.act(None, {}).tolist() == [0, 0, 0, 0, 0, -1]


def test_the_order_of_submission_needs_no_feature() -> None:
    env = environment("weights", policy_features=("area", "requested"))
    assert act(find_baseline("fcfs"), env).tolist() == [0, 0]


@pytest.mark.parametrize("name", sorted({*BASELINES} & {*POLICIES} - {"wfp3"}))
def test_every_weighted_policy_can_be_given_as_weights(name: str) -> None:
    weights = act(find_baseline(name), environment("weights", policy_features=tuple(FEATURES)))
    by_name = dict(zip(FEATURES, weights.tolist(), strict=True))
    assert {feature: w for feature, w in by_name.items() if w} == POLICIES[name].weights


# --- Names and rules ------------------------------------------------------------------------


def test_there_are_all_policies_and_easy_variants() -> None:
    usual = {name for name, policy in POLICIES.items() if not policy.looks_at_usage}
    assert set(BASELINES) == usual | (SCHEDULERS.keys() - POLICIES.keys() - {"conservative"})
    for name in BASELINES:
        baseline = find_baseline(name)
        assert baseline.name == name
        if name in POLICIES:
            assert (baseline.policy, baseline.rules) == (name, {})
        else:
            assert Scheduler(policy=baseline.policy, **baseline.rules) == SCHEDULERS[name]


def test_the_rules_of_a_name_are_demanded_of_the_environment() -> None:
    variant = find_baseline("easy++")
    variant.begin(environment("select", **variant.rules))
    variant.begin(environment("select", **variant.rules, passes="per-event"))


@pytest.mark.parametrize("kind", ["select", "order", "weights"])
def test_a_policy_takes_the_rules_of_the_environment(kind: str) -> None:
    """It demands none, and acts in the same way under all."""
    area = JOBS.requested_time[:9] * JOBS.requested_processors[:9]
    first = {"select": area.argmin(), "order": area.argmin(), "weights": 5}[kind]
    for rules in ({"backfill": "none"}, {"backfill_order": "sjbf"}, {"estimate": "ave2"}):
        saf = find_baseline("saf")
        assert saf.rules == {}
        action = act(saf, environment(kind, **rules), range(9))
        assert (action if kind == "select" else np.abs(action).argmax()) == first


def test_the_order_of_calls_is_said() -> None:
    saf, env = find_baseline("saf"), environment("select")
    begin = pytest.raises(HpcgymError, match=r"'saf': call begin\(env\) after each reset")
    with begin:
        saf.act(None, {})
    assert act(saf, env, [0]) == 0
    env.simulations.names[0] = "rows 10:60"  # as a reset does
    with begin:
        saf.act(None, {"window": np.zeros(1, np.int64), "time_s": 0})
    assert act(saf, env, [0]) == 0


def test_names_of_weights() -> None:
    assert find_baseline((0.25, 0, 0, 0, 0, -1)).name == "0.25,0,0,0,0,-1"
    assert find_baseline({"wait": 1, "f1": -0.5}).name == "1*wait -0.5*f1"
    assert Baseline("saf", "mine").name == "mine"


@pytest.mark.parametrize("kind", ["select", "order", "weights"])
def test_baselines_can_be_sent_to_other_processes(kind: str) -> None:
    baseline = find_baseline("saf")
    before = act(baseline, environment(kind), [4, 9, 30], 10**6)
    again = pickle.loads(pickle.dumps(baseline))
    after = again.act(None, {"window": np.array([4, 9, 30]), "time_s": 10**6})
    assert np.array_equal(before, after)


test_mistakes = mistakes_of(globals())
