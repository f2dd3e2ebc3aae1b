"""Environments on nodes: schedules, many at once, snapshots and single cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import (
    KINDS,
    SEEDS,
    SINGLE,
    SIX_WEIGHTS,
    SLOW,
    THRESHOLDS,
    assert_same,
    by_chance,
    for_slow,
    go_on,
    in_turn,
    play,
    rules,
    visible_acts,
    whole,
)
from node_driving import EURORA, FOUR, SERIAL, ids, make, places, units_on_nodes
from node_strategies import ALLOCATIONS
from slow_environments import NodeOrdering, NodeSelection, NodeWeights

import hpcgym
from hpcgym import Cluster, simulate, validate_schedule
from hpcgym.baselines.policies import Baseline
from hpcgym.envs.job_selection import JobSelection
from hpcgym.reference.jobs import node_jobs_of
from hpcgym.workload import Workload


def assert_schedule(found: Any, expected: Any) -> None:
    assert found.start.tolist() == expected.start.tolist()
    assert units_on_nodes(found) == units_on_nodes(expected)
    assert found.predicted_run_time.tolist() == expected.predicted_run_time.tolist()


# --- Schedules ------------------------------------------------------------------------------


def driven(env: Any, actor: Any) -> Any:
    """Return the schedule of a policy that acts."""
    observation, info = env.reset()
    actor.begin(env)
    ended = False
    while not ended:
        observation, _, ended, _, info = env.step(actor.act(observation, info))
    return env.result()


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


# --- Agents on nodes, against the slow simulators ------------------------------------------------

Place = tuple[Cluster, Workload]


@st.composite
def learned(draw: st.DrawFn) -> dict[str, Any]:
    """Rules of environments that learn, but for passes, which are one at a time on nodes."""
    given_rules = draw(rules())
    del given_rules["passes"]
    return {**given_rules, "allocation": draw(st.sampled_from(ALLOCATIONS))}


def played(simulator: Any, place: Place, given_rules: dict[str, Any], *first: Any) -> Any:
    """Return what a slow simulator has done, made with these arguments before all others."""
    cluster, workload = place
    jobs = node_jobs_of(workload, cluster.resources)
    every = {"policy": "fcfs", "passes": "per-timestamp", "threshold": None}
    every |= for_slow(given_rules)
    slow = simulator(*first, jobs, cluster.capacity.tolist(), **every)
    slow.run()
    return slow


def assert_same_schedule(env: Any, slow: Any) -> None:
    result = env.result()
    assert result.start.tolist() == [job.start for job in slow.jobs]
    assert units_on_nodes(result) == [dict(job.nodes) for job in slow.jobs]
    assert result.predicted_run_time.tolist() == [job.predicted for job in slow.jobs]
    if result.policy_run_time is not None:
        assert result.policy_run_time.tolist() == [job.policy_time for job in slow.jobs]
    validate_schedule(result)


# --- Against the slow simulators ------------------------------------------------------------


@settings(SLOW, max_examples=400)
@given(KINDS, places(), learned(), SEEDS, SIX_WEIGHTS, THRESHOLDS)
def test_any_choices(
    kind: str,
    place: Place,
    given_rules: dict[str, Any],
    seed: int,
    weights: list[Any],
    threshold: int | None,
) -> None:
    cluster, workload = place
    arguments = whole(workload, cluster=cluster, **given_rules)
    if kind == "weights":
        given_weights, normalised = in_turn(weights)
        env = SINGLE["MixedPolicy"](**arguments, interval="pass", threshold=threshold)
        steps = play(env, lambda number, _, __: given_weights(number))
        rules = {**given_rules, "threshold": threshold}
        slow = played(NodeWeights, place, rules, normalised, "pass")
    else:
        numbers, act = by_chance(seed, kind)
        if kind == "scores":
            env = SINGLE["QueueOrdering"](**arguments, window=5)
            slow = played(NodeOrdering, place, given_rules, numbers, 5)
        else:
            env = SINGLE["JobSelection"](**arguments, window=5, reservation=kind)
            slow = played(NodeSelection, place, given_rules, numbers, kind == "kept", 5)
        steps = play(env, act)
    assert_same_schedule(env, slow)
    assert len(steps) - 1 == len(slow.seen)
