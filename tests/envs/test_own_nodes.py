"""Environments whose jobs have nodes of their own: nodes are switched off, or stand in a row.

Against slow simulators, `simulate`, the books, many at once, and what refuses them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import (
    BUSY,
    KINDS,
    NAMES,
    SEEDS,
    SINGLE,
    SIX_WEIGHTS,
    SLOW,
    THRESHOLDS,
    VECTOR,
    Step,
    by_chance,
    for_slow,
    in_turn,
    play,
    rules,
    visible_acts,
    whole,
)
from limit_strategies import Case, limited, on_single_cores, simulate_pool
from slow_environments import OwnOrdering, OwnSelection, OwnWeights
from test_steered_schedules import assert_same_schedule

from hpcgym import Cluster, HpcgymError, simulate, validate_schedule
from hpcgym.cluster import NodeGroup, NodePower
from hpcgym.envs.core.layout import ON_AT
from hpcgym.envs.core.machines import LimitedMachines
from hpcgym.errors import HpcgymWarning
from hpcgym.evaluation.brought import limits_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning"),
    pytest.mark.slow,
]

RULE_NAMES = (
    "backfill", "backfill_order", "estimate", "policy_estimate", "correction", "allocation",
)  # fmt: skip
ids = pytest.mark.parametrize("name", NAMES)

WINDOWS = st.sampled_from([1, 2, 3, 40])
#: Switching takes time, and powers are whole watts.
POWER = NodePower(100.0, (150.0, 200.0), 10.0, (1.0, 2.0), 1.5, 7, 60)
ASLEEP = Cluster(groups=(NodeGroup("node", 16, {"core": 2}, POWER),), shutdown_after_s=120)


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


def assert_seen(steps: list[Step], slow: Any) -> None:
    """There are as many decisions, and at each as many nodes are free, and on."""
    seen = [step.observation["cluster"][[0, ON_AT]] for step in steps[:-1]]
    np.testing.assert_allclose(np.array(seen) * len(slow.nodes), np.array(slow.seen), atol=1e-5)


# --- Against the slow simulators ------------------------------------------------------------


@settings(SLOW, max_examples=600)
@given(KINDS, st.booleans().flatmap(cases), WINDOWS, SEEDS, SIX_WEIGHTS, THRESHOLDS)
def test_any_choices(
    kind: str, case: Case, window: int, seed: int, weights: list[Any], threshold: int | None
) -> None:
    if kind == "weights":
        given_weights, normalised = in_turn(weights)
        env = environment("MixedPolicy", case, interval="pass", threshold=threshold)
        steps = play(env, lambda number, _, __: given_weights(number))
        slow = played(case, OwnWeights, normalised, "pass", threshold=threshold)
    else:
        numbers, act = by_chance(seed, kind, window)
        if kind == "scores":
            env = environment("QueueOrdering", case, window=window, threshold=threshold)
            slow = played(case, OwnOrdering, numbers, window, threshold=threshold)
        else:
            env = environment("JobSelection", case, window=window, reservation=kind)
            slow = played(case, OwnSelection, numbers, kind == "kept", window)
        steps = play(env, act)
    assert_same_schedule(env.result(), slow.jobs, slow.intervals)
    assert_seen(steps, slow)
    validate_schedule(env.result())


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


# --- Many at once, snapshots, logs ----------------------------------------------------------


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
