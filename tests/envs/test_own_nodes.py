"""Environments whose jobs have nodes of their own: nodes are switched off, or stand in a row.

Against slow simulators, `simulate`, the books, many at once, and what refuses them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from driving import (
    BUSY,
    NAMES,
    SINGLE,
    SLOW,
    THRESHOLDS,
    VECTOR,
    Step,
    follows_again,
    in_turn,
    play,
    visible_acts,
    whole,
)
from gymnasium.vector import AutoresetMode
from limit_strategies import Case, limited, on_single_cores, simulate_pool
from slow_agents_on_nodes import OwnOrdering, OwnSelection, OwnWeights
from strategies import WEIGHTS
from test_node_environments import POLICIES, driven
from test_predicted import for_slow, rules
from test_steered_schedules import assert_same_schedule
from test_vector import MODES, assert_alike, drive
from test_vector import make as make_vector

from hpcgym import Cluster, HpcgymError, simulate, validate_schedule
from hpcgym.baselines.policies import Baseline
from hpcgym.cluster import NodeGroup, NodePower
from hpcgym.envs.core.layout import ON_AT
from hpcgym.envs.core.machines import LimitedMachines
from hpcgym.errors import HpcgymWarning
from hpcgym.evaluation.brought import limits_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning"),
    pytest.mark.slow,
]

SEEDS = st.integers(0, 2**16)
WINDOWS = st.sampled_from([1, 2, 3, 40])
RULE_NAMES = (
    "backfill", "backfill_order", "estimate", "policy_estimate", "correction", "allocation",
)  # fmt: skip
ids = pytest.mark.parametrize("name", NAMES)

#: Switching takes time, and powers are whole watts.
POWER = NodePower(100.0, (150.0, 200.0), 10.0, (1.0, 2.0), 1.5, 7, 60)
ASLEEP = Cluster(groups=(NodeGroup("node", 16, {"core": 2}, POWER),), shutdown_after_s=120)
#: few values, so that scores tie
SCORES = np.array([-1.0, -0.5, 0.0, 0.0, 0.25, 1.0], np.float32)


@st.composite
def cases(draw: st.DrawFn, learns: bool = False, any_cores: bool = False) -> Case:
    """A case without limits whose nodes are switched off, or stand in a row, or both.

    ``learns``: with rules of those who predict; unless they have ``any_cores``, on nodes of one
    core: what is learned of a job looks at its nodes, and the reference at its processors.
    """
    case = draw(limited("none"))
    case.rules |= {"policy": "fcfs", "threshold": None, "policy_estimate": "requested"}
    if learns:
        case.rules |= {rule: value for rule, value in draw(rules()).items() if rule != "passes"}
        if not any_cores:
            case = on_single_cores(case)
    if case.cluster.shutdown_after_s is None and case.rules["allocation"] != "contiguous":
        after = draw(st.sampled_from([0, 1, 30, 600]))
        case.cluster = replace(case.cluster, shutdown_after_s=after)
    return case


def environment(name: str, case: Case, **more: Any) -> Any:
    rules = {rule: case.rules[rule] for rule in RULE_NAMES}
    return SINGLE[name](**whole(case.workload, cluster=case.cluster, **rules, **more))


def played(case: Case, simulator: Any, *given_first: Any, **more: Any) -> Any:
    """Return what a slow simulator has done, made with these arguments before all others."""
    case = Case(case.workload, case.cluster, [], {**case.rules, **more})
    names = ("estimate", "policy_estimate")
    return simulate_pool(
        case,
        lambda *given, **rules: simulator(*given_first, *given, **rules),
        **for_slow({name: case.rules[name] for name in names}),
    )


def rows_of(info: dict[str, Any]) -> list[int]:
    return [row for row in info["window"].tolist() if row >= 0]


def padded(values: Any, window: int) -> Any:
    return np.concatenate([values, np.zeros(window - len(values), np.float32)])


def assert_seen(steps: list[Step], slow: Any) -> None:
    """There are as many decisions, and at each as many nodes are free, and on."""
    seen = [step.observation["cluster"][[0, ON_AT]] for step in steps[:-1]]
    np.testing.assert_allclose(np.array(seen) * len(slow.nodes), np.array(slow.seen), atol=1e-5)


# --- Against the slow simulators ------------------------------------------------------------


@settings(SLOW, max_examples=200)
@given(st.booleans().flatmap(cases), WINDOWS, SEEDS, st.sampled_from(["kept", "revised"]))
def test_any_selection(case: Case, window: int, seed: int, reservation: str) -> None:
    def place(now: int, rows: list[int]) -> int:
        return int(np.random.default_rng((seed, now, *rows)).integers(len(rows)))

    env = environment("JobSelection", case, window=window, reservation=reservation)
    steps = play(env, lambda _, __, info: place(info["time"], rows_of(info)))
    slow = played(case, OwnSelection, place, reservation == "kept", window)
    assert_same_schedule(env.result(), slow.jobs, slow.intervals)
    assert_seen(steps, slow)
    validate_schedule(env.result())


@settings(SLOW, max_examples=200)
@given(st.booleans().flatmap(cases), WINDOWS, SEEDS, THRESHOLDS)
def test_any_scores(case: Case, window: int, seed: int, threshold: int | None) -> None:
    def scores(now: int, rows: list[int]) -> Any:
        return np.random.default_rng((seed, now, *rows)).choice(SCORES, len(rows))

    env = environment("QueueOrdering", case, window=window, threshold=threshold)
    steps = play(env, lambda _, __, info: padded(scores(info["time"], rows_of(info)), window))
    slow = played(case, OwnOrdering, scores, window, threshold=threshold)
    assert_same_schedule(env.result(), slow.jobs, slow.intervals)
    assert_seen(steps, slow)


@settings(SLOW, max_examples=200)
@given(
    st.booleans().flatmap(cases),
    st.lists(st.tuples(*[WEIGHTS] * 6), min_size=1, max_size=5),
    THRESHOLDS,
)
def test_weights_that_change_at_each_pass(
    case: Case, given_weights: list[Any], threshold: int | None
) -> None:
    weights, normalised = in_turn(given_weights)
    env = environment("MixedPolicy", case, interval="pass", threshold=threshold)
    steps = play(env, lambda number, _, __: weights(number))
    slow = played(case, OwnWeights, normalised, threshold=threshold)
    assert_same_schedule(env.result(), slow.jobs, slow.intervals)
    assert_seen(steps, slow)


# --- Against `simulate` ---------------------------------------------------------------------


def states_of(result: Any) -> list[list[int]]:
    """What nodes did, as lists."""
    states = result.node_states
    return [] if states is None else [column.tolist() for column in vars(states).values()]


def assert_simulated(result: Any, same: Any) -> None:
    """The schedule, the nodes and what they did, and so all metrics, are those of `simulate`."""
    for name in ("start", "end", "predicted_run_time", "backfilled"):
        assert getattr(result, name).tolist() == getattr(same, name).tolist(), name
    assert [part.tolist() for part in result.allocation] == [
        part.tolist() for part in same.allocation
    ]
    assert states_of(result) == states_of(same)
    assert result.limits == same.limits == ()
    assert result.metrics == pytest.approx(same.metrics, rel=1e-12, nan_ok=True)


@settings(SLOW, max_examples=200)
@given(cases(), POLICIES, st.sampled_from(["JobSelection", "QueueOrdering"]))
def test_baselines_make_the_schedules_of_simulate(case: Case, policy: str, name: str) -> None:
    env = environment(name, case, window=64)
    same = simulate(case.workload, policy=policy, cluster=case.cluster, **env.scheduler_rules)
    assert_simulated(driven(env, Baseline(policy)), same)


@settings(SLOW, max_examples=150)
@given(
    st.booleans().flatmap(lambda learns: cases(learns, any_cores=True)),
    st.sampled_from(["pass", "1h", "episode", 1, 3]),
    st.tuples(*[WEIGHTS] * 6),
    THRESHOLDS,
)
def test_constant_weights_make_the_schedule_of_simulate(
    case: Case, interval: Any, weights: Any, threshold: int | None
) -> None:
    env = environment("MixedPolicy", case, interval=interval, threshold=threshold)
    play(env, lambda _, __, ___: np.array(weights))
    size = np.abs(np.array(weights)).sum()
    policy: Any = tuple((np.array(weights) / size).tolist()) if size else "fcfs"
    same = simulate(case.workload, policy=policy, cluster=case.cluster, **env.scheduler_rules)
    assert_simulated(env.result(), same)


# --- Rewards --------------------------------------------------------------------------------


@settings(SLOW, max_examples=100)
@given(cases(), st.sampled_from(NAMES), SEEDS)
def test_returns_are_metrics(case: Case, name: str, seed: int) -> None:
    assume((case.workload.power_w < 0).all())  # else a power may be no whole milliwatt
    more = {"skip_forced": True} if name == "JobSelection" and seed % 2 else {}
    env = environment(name, case, window=4, reward=["bsld", "wait", "energy"], **more)
    steps = play(env, visible_acts(env, seed))
    metrics = env.result().metrics
    bsld, wait, _ = sum(step.reward for step in steps[1:])
    assert -bsld == pytest.approx(metrics["mean_bsld"], rel=1e-12)
    assert -wait == pytest.approx(metrics["mean_wait_s"] / 3600, rel=1e-12)
    joules = sum(step.info["reward_terms"]["energy_j"] for step in steps[1:])
    assert joules == pytest.approx(metrics["energy_j"], rel=1e-12)


# --- Many at once, snapshots, logs ----------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"allocation": "contiguous", "estimate": "ave2"}], ids=str)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@ids
def test_native_and_loop_are_alike(name: str, mode: AutoresetMode, options: dict[str, Any]) -> None:
    given = {"workload": BUSY, "cluster": ASLEEP, **options}
    native, loop = (make_vector(name, mode, way, **given) for way in ("vector_entry_point", "sync"))
    assert native.observation_space == loop.observation_space
    assert assert_alike(drive(native, 7, 60), drive(loop, 7, 60)) > 0


@settings(SLOW, max_examples=60)
@given(st.booleans().flatmap(cases), st.sampled_from(NAMES), st.integers(0, 20), SEEDS)
def test_what_follows_a_snapshot_follows_again(
    case: Case, name: str, decisions: int, seed: int
) -> None:
    env = environment(name, case, window=6)
    again, result = follows_again(env, seed, decisions)
    assert_simulated(again, result)


@ids
def test_nodes_are_switched_often(name: str) -> None:
    """A job of one node or two every hour, on two: those sleep in between."""
    n = 60
    submit = np.arange(n) * 3600
    rows = {"submit_time": submit, "run_time": [10] * n, "requested_time": [10] * n}
    rows["requested_processors"] = [1, 2] * (n // 2)
    workload = BUSY.take(slice(0, n)).with_columns(**rows)
    group = NodeGroup("node", 2, {"core": 1}, POWER)
    cluster = Cluster(groups=(group,), shutdown_after_s=0)
    more = {"interval": "pass"} if name == "MixedPolicy" else {}
    env = SINGLE[name](**whole(workload, cluster=cluster, **more))
    assert isinstance(env.simulations.machines, LimitedMachines)
    play(env, visible_acts(env, 0))
    assert len(env.result().node_states.node) > 4 * n
    assert_simulated(env.result(), simulate(workload, cluster=cluster, **env.scheduler_rules))


# --- What is said, and refused --------------------------------------------------------------


@ids
@pytest.mark.filterwarnings("default::hpcgym.errors.HpcgymWarning")
def test_nodes_of_their_own_are_not_given_in_silence(name: str) -> None:
    with pytest.warns(
        HpcgymWarning, match=r"^shutdown_after_s: .* jobs that do not fill theirs$"
    ) as one:
        SINGLE[name](BUSY, cluster=ASLEEP)
    with pytest.warns(HpcgymWarning, match=r"^shutdown_after_s: ") as many:
        VECTOR[name](2, BUSY, cluster=ASLEEP)
    # they name the line of whoever makes the environment
    assert [warning.filename for warning in (*one, *many)] == [__file__, __file__]


@ids
def test_what_is_refused(name: str) -> None:
    other = NodeGroup("other", 4, {"core": 4}, POWER)
    plain = NodeGroup("plain", 16, {"core": 2})
    mixed = Cluster(groups=(*ASLEEP.groups, other), shutdown_after_s=1)
    for arguments, message in (
        (
            {"cluster": ASLEEP, "allocation": "best-fit"},
            "^allocation: with nodes of their own jobs",
        ),
        (
            {"cluster": ASLEEP, "passes": "per-event"},
            "^passes='per-event' and .* do not go together",
        ),
        ({"cluster": mixed}, "nodes that are all alike, but groups 'node' and 'other' differ"),
        (
            {"cluster": Cluster(groups=(plain,)), "allocation": "contiguous"},
            "^with nodes of their own for jobs .* and group 'plain' has no power; give it one:"
            " power=NodePower",
        ),
    ):
        with pytest.raises(HpcgymError, match=message):
            SINGLE[name](BUSY, **arguments)
    env = SINGLE[name](BUSY, cluster=ASLEEP)
    env.reset(seed=0)
    with pytest.raises(HpcgymError, match="hidden on pools of processors only"):
        env.snapshot(hide=True)
    with pytest.raises(HpcgymError, match=r"^pass_view: where jobs have nodes of their"):
        env.pass_view()


@ids
def test_evaluations_find_no_limits(name: str) -> None:
    """So schedulers beside it are simulated without any, on nodes of jobs' own all the same."""
    env = SINGLE[name](BUSY, cluster=ASLEEP)
    assert limits_of(env) is None
    assert env.scheduler_rules["power"] == "none"
