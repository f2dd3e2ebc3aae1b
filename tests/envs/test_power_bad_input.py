"""Mistakes with the environments under limits end in errors that name the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import BUSY, CHASSIS, LIMITED, LOADED, SINGLE, VECTOR, assert_same, label, play
from test_power_limits import POWER

from hpcgym import Cluster, HpcgymError
from hpcgym.cluster import NodeGroup
from hpcgym.envs.power_limits import PowerCapEnv
from hpcgym.envs.vector import VectorSnapshot
from hpcgym.scheduler.limits import EnergyBudget

ids = pytest.mark.parametrize("name", LIMITED)

UNLIKE = Cluster(groups=(NodeGroup("a", 32, {"core": 1}, POWER),
                         NodeGroup("b", 32, {"core": 2}, POWER)))  # fmt: skip
BAD: list[tuple[str, dict[str, Any]]] = [
    ("controls", {"controls": "power"}),
    ("controls", {"controls": ["power", "speed"]}),
    ("controls", {"controls": ["power", "power"]}),
    ("controls and policy_features", {"controls": []}),
    ("policy_features", {"policy_features": ["speed"]}),
    ("policy_features", {"policy_features": max}),
    ("share", {"share": -0.1}),
    ("share", {"share": "much"}),
    ("interval: controls hold", {"interval": "pass"}),
    ("interval must be", {"interval": "fortnight"}),
    ("limits must be", {"limits": [3]}),
    ("limits must be", {"limits": 0.6}),
    ("periods must not overlap", {"limits": [EnergyBudget(1, 0, 9), EnergyBudget(1, 8, 20)]}),
    ("power", {"power": "half"}),
    ("estimate='data-driven' and environments", {"estimate": "data-driven"}),
    ("machines with nodes", {"cluster": Cluster(64)}),
    ("all alike", {"cluster": UNLIKE}),
    ("need the power of nodes", {"cluster": Cluster(groups=(NodeGroup("a", 64, {"core": 1}),))}),
    ("allocation", {"allocation": "best-fit"}),
    ("per-event", {"passes": "per-event"}),
    ("backfill", {"backfill": "conservative"}),
]


@pytest.mark.parametrize(("words", "arguments"), BAD, ids=label)
@ids
def test_bad_arguments(name: str, words: str, arguments: dict[str, Any]) -> None:
    for classes in (SINGLE, VECTOR):
        with pytest.raises(HpcgymError, match=words):
            classes[name](workload=BUSY, **{"jobs": 20, **arguments})


@pytest.mark.parametrize("hours", [(20, 8), (8, 25), (8,), "day", (8.0, 20), None, 8], ids=label)
def test_bad_hours(hours: Any) -> None:
    for classes in (SINGLE, VECTOR):
        with pytest.raises(HpcgymError, match="hours must be two whole hours of a day"):
            classes["PowerCap"](workload=BUSY, jobs=20, hours=hours)


@pytest.mark.parametrize("period", [0, 1.5, "hour"], ids=label)
def test_bad_periods(period: Any) -> None:
    for classes in (SINGLE, VECTOR):
        with pytest.raises(HpcgymError, match="period"):
            classes["EnergyBudget"](workload=BUSY, jobs=20, period=period)


def test_limits_of_a_function_that_are_none() -> None:
    env = PowerCapEnv(BUSY, jobs=20, limits=lambda workload: [0.6])
    with pytest.raises(HpcgymError, match="limits must be PowerCap and EnergyBudget"):
        env.reset(seed=0)
    many = EnergyBudget(1e9, 0, 10, shutdown=True)
    made = [VECTOR["PowerCap"], PowerCapEnv]
    for cls in made:  # a list says beforehand that nodes will be switched off
        cls(workload=BUSY, jobs=20, controls=["power"], limits=[many]).reset(seed=0)


def test_how_nodes_are_reckoned_is_said_of_nodes_that_are_switched() -> None:
    blind = EnergyBudget(1e9, 0, 10, off_as_idle=True)
    for cls in [VECTOR["PowerCap"], PowerCapEnv]:
        with pytest.raises(HpcgymError, match="budget: off_as_idle is about nodes that are off"):
            cls(workload=BUSY, jobs=20, controls=["power"], limits=[blind]).reset(seed=0)
        cls(workload=BUSY, jobs=20, controls=["nodes"], limits=[blind]).reset(seed=0)


NOT_NUMBERS = [[1.0, 1.0], np.ones((1, 3)), [np.nan, 1.0, 1.0], [np.inf] * 3, "all", None]


def saved(env: Any) -> Any:
    """What snapshots have: arrays, and what simulations know beside them."""
    found = env.snapshot()
    return [
        (one.rows, one.kept and one.kept.in_place(env.simulations.steps, 0, lambda: None).saved())
        for one in (found.rows if isinstance(found, VectorSnapshot) else [found])
    ]


@pytest.mark.parametrize("action", NOT_NUMBERS, ids=label)
@ids
def test_bad_actions(name: str, action: Any) -> None:
    for env in (SINGLE[name](BUSY, jobs=20, window=9), VECTOR[name](2, BUSY, jobs=20, window=9)):
        env.reset(seed=0)
        before = saved(env)
        with pytest.raises(HpcgymError, match=r"^actions? must be"):
            env.step(action)
        assert_same(saved(env), before)  # nothing has happened


def test_numbers_beyond_the_space_count_as_its_ends() -> None:
    seen = []
    for factor in (1.0, 7.0):
        env = PowerCapEnv(LOADED, cluster=CHASSIS, jobs=30)
        ends = np.array([[1, -1, 1], [-1, 1, -1], [1, 1, -1]], np.float32)
        seen.append(play(env, lambda n, *_, f=factor, e=ends: f * e[n % 3], seed=0))
    assert_same(*seen)
