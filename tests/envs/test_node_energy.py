"""Energy as reward where nodes have powers: that of the books, whatever shares nodes with what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import NAMES, SINGLE, VECTOR, play, random_acts

from hpcgym import HpcgymError, load_workload
from hpcgym.cluster import Cluster, Level, NodeGroup, NodePower

JOBS = load_workload("lublin:jobs=300,processors=48,seed=1,load=2")
SMALL = JOBS.with_columns(requested_processors=np.minimum(JOBS.requested_processors, 24))
#: Nodes of two kinds that are busy as a whole, some that are core by core, and racks above.
MIXED = Cluster(
    groups=(
        NodeGroup("fast", 3, {"core": 8}, NodePower(95.0, (150.0, 190.738), frequency_ghz=(1, 2))),
        NodeGroup("slow", 4, {"core": 4}, NodePower(40.5, 61.25)),
        NodeGroup("old", 2, {"core": 4}),
    ),
    levels=(Level("rack", 4, 12.5),),
)


def greatest_w(cluster: Cluster) -> float:
    """With all nodes busy, by hand."""
    return 3 * 190.738 + 4 * 61.25 + 8 * cluster.busy_power_w + 3 * 12.5


def make(kinds: dict[str, Any], name: str, *number: int, **options: Any) -> Any:
    more = {"interval": 4} if name == "MixedPolicy" else {}
    return kinds[name](*number, SMALL, cluster=MIXED, jobs=40, window=9, **more, **options)


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["requested", "e-loss"])
@pytest.mark.parametrize("allocation", ["first-fit", "worst-fit", "best-fit"])
@pytest.mark.parametrize("name", NAMES)
def test_the_return_is_the_energy_of_the_books(name: str, allocation: str, estimate: str) -> None:
    rules = {"allocation": allocation, "estimate": estimate}
    env = make(SINGLE, name, reward=["energy", "bsld"], **rules)
    for seed in range(3):
        steps = play(env, random_acts(env.action_space, seed), seed=seed)
        result = env.result()
        assert result.keeps_books
        span = int(np.ptp(env.episode_workload.submit_time)) + 1
        joules = sum(step.info["reward_terms"]["energy_j"] for step in steps[1:])
        assert joules == pytest.approx(result.metrics["energy_j"], rel=1e-12)
        assert joules == pytest.approx(result.energy.by_state["energy_j"].sum(), rel=1e-12)
        energy, slowdown = sum(step.reward for step in steps[1:])
        assert energy == pytest.approx(-joules / (greatest_w(MIXED) * span), rel=1e-12)
        assert slowdown == pytest.approx(-result.metrics["mean_bsld"], rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_many_environments_count_the_same(name: str) -> None:
    env, many = make(SINGLE, name, reward="energy"), make(VECTOR, name, 2, reward="energy")
    action = np.ones((2, *env.action_space.shape), env.action_space.dtype) * (name != NAMES[0])
    steps = play(env, lambda *_: action[0], seed=5)
    many.reset(seed=5)
    for step in steps[1:]:
        _, rewards, ended, _, info = many.step(action)
        assert rewards[0] == step.reward
        assert ended[0] == step.terminated
    found = info["metrics"]["energy_j"][0]
    assert found == pytest.approx(env.result().metrics["energy_j"], rel=1e-12)


def test_packing_jobs_saves_energy() -> None:
    """Two jobs of half a node: on one node, or on two."""
    two = SMALL.take(np.array([0, 1]), name="two").with_columns(
        submit_time=np.array([0, 0]), requested_processors=np.array([2, 2]),
        run_time=np.array([100, 60]), requested_time=np.array([100, 60]),
    )  # fmt: skip
    cluster = Cluster(groups=(NodeGroup("n", 2, {"core": 4}, NodePower(10.0, 110.0)),))
    joules = {}
    for allocation in ("first-fit", "worst-fit"):
        env = SINGLE["QueueOrdering"](
            two, cluster=cluster, jobs=2, window=2, reward="energy", allocation=allocation
        )
        steps = play(env, lambda *_: np.zeros(2), seed=0)
        joules[allocation] = sum(step.info["reward_terms"]["energy_j"] for step in steps[1:])
    assert joules == {"first-fit": 100 * 120.0, "worst-fit": 100 * 120.0 + 60 * 100.0}


def test_what_cannot_be_counted_is_refused() -> None:
    measured = SMALL.with_columns(power_w=np.full(len(SMALL), 5.0))
    for cluster in (MIXED, None):
        with pytest.raises(HpcgymError, match="power_w, count only where jobs have nodes"):
            SINGLE["MixedPolicy"](measured, cluster=cluster, reward={"bsld": 1, "energy": 0.1})
