"""Environments on nodes: schedules, many at once, snapshots and single cores."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import (
    NAMES,
    SINGLE,
    SLOW,
    THRESHOLDS,
    assert_same,
    follows_again,
    go_on,
    play,
    random_acts,
    visible_acts,
    whole,
)
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from node_driving import EURORA, FOUR, RULES, SERIAL, _interval, ids, make, places, units_on_nodes
from node_strategies import ALLOCATIONS
from strategies import WEIGHTS
from test_vector import MODES, N, assert_alike, drive
from test_vector import make as make_vector

import hpcgym
from hpcgym import Cluster, HpcgymError, simulate
from hpcgym.baselines.policies import Baseline, find_baseline
from hpcgym.envs.core.options import USUAL_FEATURES
from hpcgym.envs.job_selection import JobSelection
from hpcgym.workload import Workload

POLICIES = st.sampled_from(["fcfs", "sjf", "saf", "f1", "wfp3", "lexp", "unicef"])


def assert_schedule(found: Any, expected: Any) -> None:
    assert found.start.tolist() == expected.start.tolist()
    assert units_on_nodes(found) == units_on_nodes(expected)
    assert found.predicted_run_time.tolist() == expected.predicted_run_time.tolist()


# --- What Gymnasium expects -----------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"observation": "flat", "allocation": "best-fit"},
        {"backfill": "none", "allocation": "random:3"},
        {"estimate": "ave2", "correction": "incremental", "allocation": "worst-fit"},
        {"reward": "energy"},
    ],
    ids=str,
)
@ids
def test_gymnasiums_check(name: str, options: dict[str, Any]) -> None:
    more = {"interval": 4} if name == "MixedPolicy" else {}
    env = gymnasium.make(
        f"hpcgym/{name}-v0", workload=EURORA, jobs=25, window=9, cluster="eurora",
        disable_env_checker=False, **more, **options,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
        steps = play(env, random_acts(env.action_space, 0))
    assert all(env.observation_space.contains(step.observation) for step in steps)
    assert all(isinstance(step.reward, float) for step in steps)
    result = env.unwrapped.result()
    assert result.cluster.nodes == 64
    assert steps[-1].info["metrics"]["mean_bsld"] == pytest.approx(np.mean(result.bsld))
    units = [sum(held.values()) for held in units_on_nodes(result)]
    assert units == env.unwrapped.episode_workload.units.tolist()


# --- Schedules ------------------------------------------------------------------------------


@settings(SLOW, max_examples=250)
@given(places(), RULES, POLICIES, st.sampled_from(["JobSelection", "QueueOrdering"]))
def test_baselines_make_the_schedules_of_simulate(
    place: tuple[Cluster, Workload], rules: dict[str, Any], policy: str, name: str
) -> None:
    cluster, workload = place
    expected = simulate(workload, policy=policy, cluster=cluster, **rules)
    env = SINGLE[name](**whole(workload, window=64, cluster=cluster, **rules))
    assert_schedule(driven(env, Baseline(policy)), expected)
    hpcgym.validate_schedule(env.result())


@settings(SLOW, max_examples=150)
@given(
    places(),
    RULES,
    st.sampled_from(["pass", "1h", "episode", 1, 3]),
    st.tuples(*[WEIGHTS] * 6),
    THRESHOLDS,
)
def test_constant_weights_make_the_schedule_of_simulate(
    place: tuple[Cluster, Workload],
    rules: dict[str, Any],
    interval: Any,
    weights: Any,
    threshold: int | None,
) -> None:
    cluster, workload = place
    rules = {**rules, "threshold": threshold}
    env = SINGLE["MixedPolicy"](**whole(workload, interval=interval, cluster=cluster, **rules))
    play(env, lambda _, __, ___: np.array(weights))
    size = np.abs(np.array(weights)).sum()
    policy = tuple((np.array(weights) / size).tolist()) if size else "fcfs"
    assert_schedule(env.result(), simulate(workload, policy=policy, cluster=cluster, **rules))


def driven(env: Any, actor: Any) -> Any:
    """Return the schedule of a policy that acts."""
    observation, info = env.reset()
    actor.begin(env)
    ended = False
    while not ended:
        observation, _, ended, _, info = env.step(actor.act(observation, info))
    return env.result()


@pytest.mark.parametrize("allocation", ["first-fit", "best-fit"])
@pytest.mark.parametrize("policy", ["easy", "saf"])
@ids
def test_a_real_size(name: str, policy: str, allocation: str) -> None:
    """Of which the small machines above may be no picture: 64 nodes, four resources."""
    actor = find_baseline(policy)
    rules = {"allocation": allocation, "backfill_order": "spf", **actor.rules}
    env = make(name, window=256, episodes="whole", **rules, **_interval(name))
    result = driven(env, actor)
    order = {"policy": policy} if policy != "easy" else {}
    assert_schedule(result, simulate(EURORA, cluster="eurora", **order, **env.scheduler_rules))
    hpcgym.validate_schedule(result)
    pool = simulate(EURORA, processors=1024, **order, backfill_order=rules["backfill_order"])
    assert pool.start.tolist() != result.start.tolist()


@pytest.mark.parametrize("allocation", [*ALLOCATIONS, "random:3"])
def test_an_episode_begins_with_empty_nodes(allocation: str) -> None:
    """Also after one that was left early, and behind another: what was held is forgotten."""
    env = make("JobSelection", window=64, backfill_order="fcfs", allocation=allocation)
    for seed in range(4):
        env.reset(seed=seed)
        for _ in range(8):
            env.step(0)
        result = driven(env, Baseline("saf"))
        expected = simulate(result.workload, "saf", cluster="eurora", **env.scheduler_rules)
        assert_schedule(result, expected)
        hpcgym.validate_schedule(result)


# --- Many at once ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"allocation": "best-fit", "estimate": "ave2"}], ids=str)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@ids
def test_native_and_loop_are_alike(name: str, mode: AutoresetMode, options: dict[str, Any]) -> None:
    given = {"workload": EURORA, "cluster": "eurora", **options}
    native, loop = (make_vector(name, mode, way, **given) for way in ("vector_entry_point", "sync"))
    assert native.observation_space == loop.observation_space
    ended = assert_alike(drive(native, 7, 60), drive(loop, 7, 60))
    assert ended > 2 * N
    assert_alike(drive(native, [3, 1, 4], 10), drive(loop, [3, 1, 4], 10))


@ids
def test_neighbours_do_not_matter(name: str) -> None:
    """Nodes are a row for each environment: random ones too are those of one alone."""
    options = {"workload": EURORA, "cluster": "eurora", "allocation": "random:5", "jobs": 20}
    mode = AutoresetMode.NEXT_STEP
    many = make_vector(name, mode, "vector_entry_point", **options)
    seen = drive(many, [11, 12, 13], 30)
    again = drive(many, [11, 12, 14], 30)
    for one, other in zip(seen, again, strict=True):
        for key in one[0]:
            assert one[0][key][:2].tolist() == other[0][key][:2].tolist()


def test_the_wrapper_for_stable_baselines() -> None:
    sb3 = pytest.importorskip("hpcgym.envs.sb3", reason="needs stable-baselines3")
    options = {"workload": EURORA, "cluster": "eurora", "jobs": 20, "window": 9}
    env = sb3.HpcVecEnv("hpcgym/JobSelection-v0", 2, **options)
    env.seed(3)
    observation = env.reset()
    for _ in range(40):
        assert observation["jobs"].shape == (2, 9, len(USUAL_FEATURES))
        observation, rewards, done, _ = env.step(np.zeros(2, np.int64))
        assert rewards.shape == done.shape == (2,)


# --- Snapshots ------------------------------------------------------------------------------


@settings(SLOW, max_examples=100)
@given(places(), RULES, st.sampled_from(NAMES), st.integers(0, 20), st.integers(0, 2**16))
def test_what_follows_a_snapshot_follows_again(
    place: tuple[Cluster, Workload],
    rules: dict[str, Any],
    name: str,
    decisions: int,
    seed: int,
) -> None:
    cluster, workload = place
    env = make(name, **whole(workload, cluster=cluster, window=6), **rules)
    again, result = follows_again(env, seed, decisions)
    assert_schedule(again, result)


@ids
def test_the_future_cannot_be_hidden_on_nodes(name: str) -> None:
    env = make(name)
    env.reset(seed=0)
    with pytest.raises(HpcgymError, match="hidden on pools of processors only"):
        env.snapshot(hide=True)
    other = make(name, allocation="best-fit")
    other.reset(seed=0)
    with pytest.raises(HpcgymError, match="other jobs or arguments"):
        other.restore(env.snapshot())


# --- Single cores ---------------------------------------------------------------------------


@pytest.mark.parametrize("estimate", ["requested", "ave2", "e-loss"])
@ids
def test_jobs_of_single_cores_run_as_on_a_pool(name: str, estimate: str) -> None:
    options = {"jobs": 60, "window": 6, "estimate": estimate}
    pool, nodes = make(name, SERIAL, cluster=None, **options), make(
        name, SERIAL, cluster=FOUR, allocation="worst-fit", **options
    )  # fmt: skip
    acts = visible_acts(pool, 0)
    one, other = play(pool, acts, seed=4), play(nodes, acts, seed=4)
    assert_same(one, other)
    result = nodes.result()
    assert result.start.tolist() == pool.result().start.tolist()
    assert pool.result().allocation is None
    units = [sum(held.values()) for held in units_on_nodes(result)]
    assert units == result.workload.requested_processors.tolist()
    hpcgym.validate_schedule(result)


@ids
def test_of_single_cores_the_future_can_be_hidden(name: str) -> None:
    env = make(name, SERIAL, cluster=FOUR, jobs=60)
    acts = visible_acts(env, 0)
    begun = play(env, acts, most=12, seed=4)
    observation, info = env.restore(env.snapshot(hide=True))
    assert_same(observation, begun[-1].observation)
    steps = go_on(env, acts, observation, info)
    assert steps[-1].terminated
    assert all(units_on_nodes(env.result()))


def test_jobs_that_have_not_started_have_no_nodes() -> None:
    for workload, cluster in ((EURORA, "eurora"), (SERIAL, FOUR)):
        env = make("JobSelection", workload, cluster=cluster)
        env.reset(seed=1)
        for _ in range(15):
            env.step(0)
        result = env.result()
        assert (result.start < 0).any()
        assert [bool(held) for held in units_on_nodes(result)] == (result.start >= 0).tolist()


def test_weeks_have_the_units_of_their_jobs() -> None:
    trace = hpcgym.load_workload("eurora:days=20,seed=1")
    env = JobSelection(trace, episodes="weeks", cluster="eurora")
    env.reset(seed=0)
    week = env.episode_workload
    rows = np.searchsorted(trace.job_number, week.job_number)
    assert 0 < len(week) < len(trace)
    assert week.units is not None
    assert trace.units is not None
    assert week.units.tolist() == trace.units[rows].tolist()
    assert week.per_unit["mem"].tolist() == trace.per_unit["mem"][rows].tolist()
