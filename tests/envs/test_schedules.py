"""Schedules and returns of the environments against ``simulate`` and a slow simulator.

The sums of rewards and the metrics add the same numbers in another order: they are equal to a
relative error of 1e-12. Schedules are equal to the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import (
    BUSY,
    INTERVALS,
    KINDS,
    NAMES,
    RULES,
    SEEDS,
    SINGLE,
    SIX_WEIGHTS,
    SLOW,
    THRESHOLDS,
    VECTOR,
    Step,
    assert_as_slowly,
    for_slow,
    padded,
    play,
    random_acts,
    rows_of,
    rules,
    whole,
)
from strategies import workloads

from hpcgym import Cluster
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.envs.queue_ordering import QueueOrdering
from hpcgym.errors import HpcgymError
from hpcgym.schedule.metrics import compute_metrics
from hpcgym.workload import Workload

TOLERANCE = 1e-12


def starts(env: Any) -> list[int]:
    return env.unwrapped.result().start.tolist()


def total(steps: list[Step]) -> Any:
    return sum(step.reward for step in steps[1:])


# --- Schedules under actions that nobody would choose ---------------------------------------


WINDOWS = st.sampled_from([1, 2, 3, 5, 40])


@settings(SLOW, max_examples=600)
@given(
    KINDS, workloads(), st.one_of(RULES, rules()), WINDOWS, SEEDS, SIX_WEIGHTS, INTERVALS,
    THRESHOLDS,
)  # fmt: skip
def test_any_choices(
    kind: str,
    workload: Workload,
    given_rules: dict[str, Any],
    window: int,
    seed: int,
    weights: list[Any],
    interval: Any,
    threshold: int | None,
) -> None:
    more = {"seed": seed, "weights": weights, "interval": interval, "threshold": threshold}
    arguments, slow_rules = whole(workload, **given_rules), for_slow(given_rules)
    assert_as_slowly(kind, workload, arguments, slow_rules, window=window, **more)


def late_jobs() -> Workload:
    """Four processors: a job on all up to 10 s, then one on all; at 5 s one on 1, at 6 s on 4."""
    columns = {
        "submit_time": [0, 1, 5, 6],
        "run_time": [10, 100, 10, 10],
        "requested_time": [10, 100, 10, 10],
        "requested_processors": [4, 4, 1, 4],
        "user_id": [1, 1, 1, 1],
    }
    return Workload.from_columns(columns, processors=4)


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (None, [0, 30, 10, 20]),
        (8, [0, 10, 110, 120]),
        (9, [0, 20, 10, 120]),  # at 20 s it has waited 19 s, and comes before the last
    ],
)
def test_a_job_comes_first_once_it_has_waited_longer(
    threshold: int | None, expected: list[int]
) -> None:
    """At 10 s the long job has waited 9 s; the agent wants short ones first."""
    weights = {"policy_features": ["requested"], "interval": "episode"}
    env = MixedPolicy(**whole(late_jobs(), threshold=threshold, **weights))
    play(env, lambda *_: np.array([-1.0]))
    assert starts(env) == expected
    vector: Any = VECTOR["MixedPolicy"](2, **whole(late_jobs(), threshold=threshold, **weights))
    vector.reset(seed=0)
    vector.step(np.full((2, 1), -1.0))
    for e in range(2):
        assert vector.simulations.simulation(e).schedule()["start"].tolist() == expected
    ordering = QueueOrdering(**whole(late_jobs(), threshold=threshold))
    requested = late_jobs().requested_time
    play(
        ordering,
        lambda _, __, info: padded(-requested[rows_of(info)] / 100, ordering.options.window),
    )
    assert starts(ordering) == expected


def test_where_an_agent_names_each_job_there_is_no_threshold() -> None:
    for made in (SINGLE["JobSelection"], VECTOR["JobSelection"]):
        with pytest.raises(HpcgymError, match=r"^threshold and environments that ask for one job"):
            made(workload=BUSY, threshold=60)


def test_long_queues() -> None:
    """Hundreds of queued jobs lie in several blocks, and most are not in the window."""
    random = np.random.default_rng(0)
    columns = {
        "submit_time": np.sort(random.integers(0, 4000, 300)),
        "run_time": random.integers(1, 2000, 300),
        "requested_time": random.integers(1, 4000, 300),
        "requested_processors": random.integers(1, 40, 300),
        "user_id": random.integers(1, 4, 300),
    }
    workload = Workload.from_columns(columns, processors=40)
    for order in (
        {"backfill_order": "fcfs"},
        {"backfill_order": "sjbf", "estimate": "ave2", "correction": "incremental"},
        {"backfill_order": "saf", "passes": "per-event"},
    ):
        for kind, window in (("revised", 20), ("scores", 100)):
            more: dict[str, Any] = {"window": window, "seed": 0, "weights": [], "interval": "pass"}
            assert_as_slowly(kind, workload, whole(workload, **order), order, **more)


# --- Returns ----------------------------------------------------------------------------------


@settings(SLOW, max_examples=120)
@given(workloads(), RULES, SEEDS, st.sampled_from(NAMES), st.sampled_from([(117.0, 358.0), (0, 1)]))
def test_returns_are_metrics(
    workload: Workload, rules: dict[str, Any], seed: int, name: str, watts: tuple[float, float]
) -> None:
    cluster = Cluster(workload.processors, *watts)
    arguments = whole(workload, cluster=cluster, window=6, **rules)
    returns = {}
    for reward in ("bsld", "wait", "energy"):
        env = SINGLE[name](reward=reward, **arguments)
        returns[reward] = total(play(env, random_acts(env.action_space, seed)))
    metrics = compute_metrics(env.result())
    submit = workload.submit_time
    full = cluster.busy_power_w * cluster.processors * int(submit[-1] - submit[0] + 1)
    assert returns["bsld"] == pytest.approx(-metrics["mean_bsld"], rel=TOLERANCE)
    assert returns["wait"] == pytest.approx(-metrics["mean_wait_s"] / 3600, rel=TOLERANCE)
    assert returns["energy"] == pytest.approx(-metrics["energy_j"] / full, rel=TOLERANCE)

    mixed = SINGLE[name](reward={"bsld": 0.7, "energy": 0.3}, **arguments)
    expected = 0.7 * returns["bsld"] + 0.3 * returns["energy"]
    mix = total(play(mixed, random_acts(mixed.action_space, seed)))
    assert mix == pytest.approx(expected, rel=TOLERANCE)

    several = SINGLE[name](reward=["energy", "bsld", "wait"], **arguments)
    vector = total(play(several, random_acts(several.action_space, seed)))
    assert vector.tolist() == [returns[reward] for reward in ("energy", "bsld", "wait")]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_as_reward_sees_each_job_once(name: str) -> None:
    views: list[Any] = []

    def reward(view: Any) -> float:
        views.append(view)
        return float(view.wait_s.sum())

    env = SINGLE[name](BUSY, jobs=100, reward=reward, window=10)
    steps = play(env, random_acts(env.action_space, 0), seed=3)
    result, jobs = env.result(), env.episode_workload
    assert len(views) == len(steps) - 1
    assert total(steps) == result.wait.sum()
    started = np.concatenate([view.started for view in views])
    assert sorted(started.tolist()) == list(range(100))
    for field, column in (
        ("wait_s", result.wait),
        ("run_time_s", result.run_time),
        ("requested_time_s", jobs.requested_time),
        ("processors", jobs.requested_processors),
    ):
        seen = np.concatenate([getattr(view, field) for view in views])
        assert seen.tolist() == column[started].tolist()
    assert sum(view.bsld for view in views) == pytest.approx(result.bsld.sum(), rel=TOLERANCE)
    energy = sum(view.energy_j for view in views)
    assert energy == pytest.approx(result.metrics["energy_j"], rel=TOLERANCE)
    assert sum(view.elapsed_s for view in views) == result.metrics["makespan_s"]
    assert [view.time_s for view in views] == [step.info["time"] for step in steps[1:]]
    assert views[-1].queued == 0
    assert views[-1].free == 64
    assert {view.jobs for view in views} == {100}


@pytest.mark.parametrize("name", NAMES)
def test_a_slice_is_simulated_as_if_alone(name: str) -> None:
    env = SINGLE[name](BUSY, jobs=50, window=10)
    steps = play(env, random_acts(env.action_space, 0), options={"start": 120, "jobs": 40})
    alone = SINGLE[name](**whole(env.episode_workload, window=10))
    again = play(alone, random_acts(alone.action_space, 0))
    assert starts(env) == starts(alone)
    assert [step.reward for step in steps] == [step.reward for step in again]
    assert steps[-1].info["episode_name"] == "rows 120:160"


# --- Weights ----------------------------------------------------------------------------------


def test_weights_are_normalised() -> None:
    weights = np.array([0.1, -0.2, 0, 0, 0.3, 0.2])
    outcomes = []
    for factor in (1.0, 0.5, 4.0):
        env = MixedPolicy(BUSY, jobs=60, interval="episode")
        play(env, lambda _, __, ___, f=factor: f * weights, seed=0)
        outcomes.append(starts(env))
    assert outcomes[0] == outcomes[1] == outcomes[2]
