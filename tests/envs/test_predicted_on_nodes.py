"""Run times that are learned in environments on machines of nodes.

Against slow simulators, `simulate`, many at once, and the energies of results.
"""

from __future__ import annotations

from typing import Any

import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import (
    NAMES,
    SINGLE,
    SLOW,
    THRESHOLDS,
    by_chance,
    follows_again,
    in_turn,
    play,
    whole,
)
from gymnasium.vector import AutoresetMode
from node_driving import EURORA, ids, places, units_on_nodes
from node_strategies import ALLOCATIONS
from slow_agents_on_nodes import NodeOrdering, NodeSelection, NodeWeights
from strategies import WEIGHTS
from test_predicted import (
    EACH_FEATURE,
    INTERVALS,
    LEARNING,
    POLICIES,
    SEEDS,
    constant_weights_agree,
    for_slow,
    index_policies_agree,
    rules,
)
from test_vector import MODES, assert_alike, drive
from test_vector import make as make_vector

from hpcgym import Cluster, validate_schedule
from hpcgym.reference.jobs import node_jobs_of
from hpcgym.workload import Workload

pytestmark = pytest.mark.slow

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


@settings(SLOW, max_examples=150)
@given(places(), learned(), SEEDS, st.sampled_from(["kept", "revised", "scores"]))
def test_any_selection_and_any_scores(
    place: Place, given_rules: dict[str, Any], seed: int, kind: str
) -> None:
    cluster, workload = place

    numbers, act = by_chance(seed, kind)
    arguments = whole(workload, cluster=cluster, window=5, **given_rules)
    if kind == "scores":
        env = SINGLE["QueueOrdering"](**arguments)
        slow = played(NodeOrdering, place, given_rules, numbers, 5)
    else:
        env = SINGLE["JobSelection"](**arguments, reservation=kind)
        slow = played(NodeSelection, place, given_rules, numbers, kind == "kept", 5)
    steps = play(env, act)
    assert_same_schedule(env, slow)
    assert len(steps) - 1 == len(slow.seen)


@settings(SLOW, max_examples=150)
@given(places(), learned(), st.lists(st.tuples(*[WEIGHTS] * 6), min_size=1, max_size=4), THRESHOLDS)
def test_weights_that_change_at_each_pass(
    place: Place, given_rules: dict[str, Any], given_weights: list[Any], threshold: int | None
) -> None:
    weights, normalised = in_turn(given_weights)
    cluster, workload = place
    given_rules = {**given_rules, "threshold": threshold}
    env = SINGLE["MixedPolicy"](**whole(workload, cluster=cluster, interval="pass", **given_rules))
    steps = play(env, lambda number, _, __: weights(number))
    slow = played(NodeWeights, place, given_rules, normalised)
    assert_same_schedule(env, slow)
    assert len(steps) - 1 == len(slow.seen)


# --- Against `simulate` ---------------------------------------------------------------------


@settings(SLOW, max_examples=150)
@given(places(), learned(), POLICIES)
def test_index_policies_make_the_schedules_of_simulate(
    place: Place, given_rules: dict[str, Any], policy: Any
) -> None:
    cluster, workload = place
    index_policies_agree(workload, {**given_rules, "cluster": cluster}, policy)


@settings(SLOW, max_examples=150)
@given(places(), learned(), INTERVALS, EACH_FEATURE)
def test_constant_weights_make_the_schedule_of_simulate(
    place: Place, given_rules: dict[str, Any], interval: Any, weights: list[float]
) -> None:
    cluster, workload = place
    constant_weights_agree(workload, {**given_rules, "cluster": cluster}, interval, weights)


# --- Many at once, and snapshots ------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@ids
def test_native_and_loop_are_alike(name: str, mode: AutoresetMode) -> None:
    given = {"workload": EURORA, "cluster": "eurora", "correction": "predicted-again", **LEARNING}
    native, loop = (make_vector(name, mode, way, **given) for way in ("vector_entry_point", "sync"))
    assert assert_alike(drive(native, 7, 60), drive(loop, 7, 60)) > 0


@settings(SLOW, max_examples=60)
@given(places(), learned(), st.sampled_from(NAMES), st.integers(0, 20), SEEDS)
def test_what_follows_a_snapshot_follows_again(
    place: Place, given_rules: dict[str, Any], name: str, decisions: int, seed: int
) -> None:
    cluster, workload = place
    env = SINGLE[name](**whole(workload, cluster=cluster, window=6, **given_rules))
    again, result = follows_again(env, seed, decisions)
    assert again.start.tolist() == result.start.tolist()
    assert again.predicted_run_time.tolist() == result.predicted_run_time.tolist()
