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
    NAMES,
    RULES,
    SINGLE,
    SLOW,
    THRESHOLDS,
    VECTOR,
    Step,
    in_turn,
    play,
    random_acts,
    whole,
)
from slow_environments import Ordering, Selection, Weights
from strategies import POLICY, WEIGHTS, workloads

from hpcgym import Cluster, simulate, validate_schedule
from hpcgym.envs.job_selection import JobSelection
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.envs.queue_ordering import QueueOrdering
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.orders import score_of, weighted
from hpcgym.reference.pool import simulate_pool
from hpcgym.schedule.metrics import compute_metrics
from hpcgym.scheduler.policies import FEATURES
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.index import rank
from hpcgym.workload import Workload

TOLERANCE = 1e-12
WINDOWS = st.sampled_from([1, 2, 3, 5, 40])
SEEDS = st.integers(0, 2**16)
INTERVALS = st.sampled_from(["pass", "1h", "2h", "episode", 1, 2, 3, 7])


def starts(env: Any) -> list[int]:
    return env.unwrapped.result().start.tolist()


def total(steps: list[Step]) -> Any:
    return sum(step.reward for step in steps[1:])


# --- Schedules under actions that nobody would choose ---------------------------------------


# Actions depend on what is seen alone, so that one question too many would not change them all.


def place(seed: int, now: int, rows: Any) -> int:
    return int(np.random.default_rng((seed, now, *rows)).integers(len(rows)))


# few values, so that scores tie
SCORES = np.array([-1.0, -0.5, 0.0, 0.0, 0.25, 1.0], np.float32)


def scores(seed: int, now: int, rows: Any) -> Any:
    return np.random.default_rng((seed, now, *rows)).choice(SCORES, len(rows))


def padded(values: Any, window: int) -> Any:
    return np.concatenate([values, np.zeros(window - len(values), np.float32)])


def rows_of(info: dict[str, Any]) -> list[int]:
    return [row for row in info["window"].tolist() if row >= 0]


def play_selection(env: JobSelection, seed: int) -> list[Step]:
    return play(env, lambda _, __, info: place(seed, info["time"], rows_of(info)))


def play_scores(env: QueueOrdering, seed: int) -> list[Step]:
    window = env.options.window
    return play(env, lambda _, __, info: padded(scores(seed, info["time"], rows_of(info)), window))


@settings(SLOW, max_examples=200)
@given(workloads(), RULES, WINDOWS, SEEDS, st.sampled_from(["kept", "revised"]))
def test_any_selection(
    workload: Workload, rules: dict[str, Any], window: int, seed: int, reservation: str
) -> None:
    env = JobSelection(**whole(workload, window=window, reservation=reservation, **rules))
    steps = play_selection(env, seed)
    slow = Selection(
        workload,
        lambda now, rows: place(seed, now, rows),
        kept=reservation == "kept",
        window=window,
        **rules,
    )
    assert starts(env) == slow.play()
    assert env.result().predicted_run_time.tolist() == [job.predicted for job in slow.jobs]
    assert len(steps) - 1 == slow.decisions


@settings(SLOW, max_examples=200)
@given(workloads(), RULES, WINDOWS, SEEDS, THRESHOLDS)
def test_any_scores(
    workload: Workload, rules: dict[str, Any], window: int, seed: int, threshold: int | None
) -> None:
    rules = {**rules, "threshold": threshold}
    env = QueueOrdering(**whole(workload, window=window, **rules))
    steps = play_scores(env, seed)
    slow = Ordering(workload, lambda now, rows: scores(seed, now, rows), window=window, **rules)
    assert starts(env) == slow.play()
    assert len(steps) - 1 == slow.decisions


@settings(SLOW, max_examples=200)
@given(
    workloads(),
    RULES,
    INTERVALS,
    st.lists(st.tuples(*[WEIGHTS] * 6), min_size=1, max_size=5),
    THRESHOLDS,
)
def test_weights_that_change(
    workload: Workload,
    rules: dict[str, Any],
    interval: Any,
    given_weights: list[Any],
    threshold: int | None,
) -> None:
    rules = {**rules, "threshold": threshold}

    weights, normalised = in_turn(given_weights)
    env = MixedPolicy(**whole(workload, interval=interval, **rules))
    play(env, lambda k, _, __: weights(k))
    slow = Weights(workload, normalised, interval=interval, **rules)
    assert starts(env) == slow.play()


@settings(SLOW, max_examples=150)
@given(workloads(), RULES, INTERVALS, st.tuples(*[WEIGHTS] * 6).filter(any), THRESHOLDS)
def test_a_threshold_is_that_of_simulate(
    workload: Workload, rules: dict[str, Any], interval: Any, weights: Any, threshold: int | None
) -> None:
    """Weights that stay make the schedule of that policy and threshold, also the oracle's."""
    rules = {**rules, "threshold": threshold}
    env = MixedPolicy(**whole(workload, interval=interval, **rules))
    play(env, lambda *_: np.array(weights))
    policy = tuple((np.array(weights) / np.abs(weights).sum()).tolist())
    assert env.scheduler_rules["threshold"] == threshold
    same = simulate(workload, policy=policy, **env.scheduler_rules)
    assert starts(env) == same.start.tolist()
    starved = [one.metrics["starved_share"] for one in (env.result(), same)]
    assert starved[0] == pytest.approx(starved[1], rel=0, nan_ok=True)
    slow = simulate_pool(jobs_of(workload), workload.processors, policy=policy, **rules)
    assert starts(env) == [job.start for job in slow]
    validate_schedule(env.result())


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
    for rules in (
        {"backfill_order": "fcfs"},
        {"backfill_order": "sjbf", "estimate": "ave2", "correction": "incremental"},
        {"backfill_order": "saf", "passes": "per-event"},
    ):
        selection = JobSelection(**whole(workload, window=20, **rules))
        play_selection(selection, 0)
        slow: Any = Selection(
            workload, lambda now, rows: place(0, now, rows), kept=False, window=20, **rules
        )
        assert starts(selection) == slow.play()
        ordering = QueueOrdering(**whole(workload, window=100, **rules))
        play_scores(ordering, 0)
        slow = Ordering(workload, lambda now, rows: scores(0, now, rows), window=100, **rules)
        assert starts(ordering) == slow.play()


# --- Schedules under index policies ---------------------------------------------------------


def is_order(policy: Any) -> bool:
    return isinstance(policy, str) or any(policy)


@settings(SLOW, max_examples=150)
@given(workloads(), RULES, POLICY.filter(is_order))
def test_index_policies_make_the_schedules_of_simulate(
    workload: Workload, rules: dict[str, Any], policy: Any
) -> None:
    jobs, score = jobs_of(workload), score_of(policy)
    expected = simulate(workload, policy=policy, **rules)

    def now(info: dict[str, Any]) -> list[float]:
        return [score(jobs[row], info["time"]) for row in env.unwrapped.queued().tolist()]

    def first(_: int, __: Any, info: dict[str, Any]) -> int:
        return int(np.argmax(now(info)))

    def order(_: int, __: Any, info: dict[str, Any]) -> Any:
        action = np.zeros(64)
        places = np.argsort(-np.array(now(info)), kind="stable")
        action[places] = -np.arange(len(places)) / 64
        return action

    for env, act in (
        (JobSelection(**whole(workload, window=64, **rules)), first),
        (QueueOrdering(**whole(workload, window=64, **rules)), order),
    ):
        steps = play(env, act)
        assert starts(env) == expected.start.tolist()
        check_end(steps, expected)


@settings(SLOW, max_examples=100)
@given(workloads(), RULES, INTERVALS, st.tuples(*[WEIGHTS] * 6))
def test_constant_weights_make_the_schedule_of_simulate(
    workload: Workload, rules: dict[str, Any], interval: Any, weights: Any
) -> None:
    env = MixedPolicy(**whole(workload, interval=interval, **rules))
    steps = play(env, lambda _, __, ___: np.array(weights))
    size = np.abs(np.array(weights)).sum()
    policy = tuple((np.array(weights) / size).tolist()) if size else "fcfs"
    expected = simulate(workload, policy=policy, **rules)
    assert starts(env) == expected.start.tolist()
    check_end(steps, expected)


def check_end(steps: list[Step], expected: Any) -> None:
    """The metrics of the last info are those of a schedule, and its return is minus its BSLD."""
    metrics = dict(steps[-1].info["metrics"])
    others = {key: value for key, value in expected.metrics.items() if not np.isnan(value)}
    for known in (metrics, others):
        known.pop("backfilled_share")  # says who was first in the queue, as only a policy does
    assert metrics == others
    assert total(steps) == pytest.approx(-expected.metrics["mean_bsld"], rel=TOLERANCE)
    assert [step.terminated for step in steps] == [False] * (len(steps) - 1) + [True]
    assert not any("metrics" in step.info for step in steps[:-1])


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

ANY_WEIGHT = st.one_of(WEIGHTS, st.floats(-1, 1, allow_subnormal=False))


@settings(SLOW, max_examples=200)
@given(
    workloads(),
    st.lists(st.sampled_from(sorted(FEATURES)), min_size=1, unique=True),
    st.lists(ANY_WEIGHT, min_size=len(FEATURES), max_size=len(FEATURES)),
)
def test_scores_are_those_of_rank_to_the_last_bit(
    workload: Workload, names: list[str], weights: list[float]
) -> None:
    given_weights = np.array(weights[: len(names)])
    env = MixedPolicy(**whole(workload, policy_features=tuple(names), interval="episode"))
    env.reset()
    env.step(given_weights)
    numbers = env.simulations.simulation(0).scores().reshape(-1, 2)
    of_env = dict(zip(("score", "patience"), numbers.T, strict=True))
    size = 0.0
    for weight in given_weights.tolist():
        size += abs(weight)
    if size == 0:
        assert not of_env["score"].any()
        assert np.isinf(of_env["patience"]).all()
        return
    normalised = {name: w / size for name, w in zip(names, given_weights.tolist(), strict=True)}
    if not any(normalised.values()):
        return  # smaller than any number
    ranking = rank(normalised, JobColumns(workload))
    if {name for name, weight in normalised.items() if weight} == {"wait"}:
        waiting = 1.0 if normalised["wait"] > 0 else -1.0  # rank orders these by submission
        assert not of_env["score"].any()
        assert (of_env["patience"] == waiting).all()
        return
    zeros, never = np.zeros(len(workload)), np.full(len(workload), np.inf)
    score = zeros if ranking.score is None else ranking.score
    patience = never if ranking.patience is None else ranking.patience
    assert (of_env["score"] + 0.0).tolist() == (score + 0.0).tolist()
    assert same_patience(of_env["patience"], patience)


def same_patience(one: Any, other: Any) -> bool:
    """Whether equal; the sign of an infinite one makes no difference."""
    return bool(((one == other) | (np.isinf(one) & np.isinf(other))).all())


def test_weights_are_normalised() -> None:
    weights = np.array([0.1, -0.2, 0, 0, 0.3, 0.2])
    outcomes = []
    for factor in (1.0, 0.5, 4.0):
        env = MixedPolicy(BUSY, jobs=60, interval="episode")
        play(env, lambda _, __, ___, f=factor: f * weights, seed=0)
        outcomes.append(starts(env))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_weighted_scores_of_the_oracle_are_over_the_same_features() -> None:
    assert tuple(FEATURES)[:6] == MixedPolicy(BUSY).policy_features
    job = jobs_of(BUSY)[0]
    assert weighted([1.0, 0, 0, 0, 0, 0])(job, job.submit) == job.processors
