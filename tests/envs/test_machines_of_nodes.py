"""Environments on nodes, shared or of jobs' own: what is seen, counted, said and refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from driving import (
    ASLEEP,
    BUSY,
    CLASSES,
    FOUR,
    NAMES,
    POWER,
    RULES,
    SEEDS,
    SINGLE,
    SLOW,
    assert_same,
    jobs_of,
    on_nodes,
    play,
    units_on_nodes,
    visible_acts,
    whole,
)
from node_strategies import ALLOCATIONS
from plain_envs import USUAL

from hpcgym import Cluster, Workload, envs, load_workload, simulate, validate_schedule
from hpcgym.envs.core.observation import USUAL_FEATURES
from hpcgym.errors import HpcgymWarning
from hpcgym.machine import NodeGroup, NodePower
from hpcgym.study.evaluation.platform import platform_of

ids = pytest.mark.parametrize("name", NAMES)


def more(name: str) -> dict[str, Any]:
    return {"interval": "pass"} if name == "MixedPolicy" else {}


# --- What is seen ---------------------------------------------------------------------------------


def fits_on(free: Any, env: Any, row: int) -> bool:
    """Return whether the nodes together hold the units of a job."""
    jobs, room = env.episode_workload, 0
    demand = [int(jobs.per_unit[name][row]) for name in env.options.cluster.resources]
    most = int(jobs.columns["units_per_node"][row])  # on one node; -1: as many as it has
    for node in free:
        here = min(have // need for have, need in zip(node, demand, strict=True) if need)
        room += here if most < 0 else min(here, most)
    return room >= int(jobs.units[row])


@pytest.mark.slow
@settings(SLOW, max_examples=150)
@given(on_nodes(), RULES, st.sampled_from(ALLOCATIONS), st.sampled_from(NAMES), SEEDS)
def test_what_fits_is_seen(
    place: tuple[Cluster, Workload], rules: dict[str, Any], allocation: str, name: str, seed: int
) -> None:
    """What each node has free is worked out from the running jobs' nodes."""
    cluster, workload = place
    assume(any(need.any() for key, need in workload.per_unit.items() if key != "core")
           or (workload.per_unit["core"] > 1).any())  # fmt: skip
    # what is held back is no matter of nodes
    rules = {**rules, "hold": None, "passes": "per-timestamp", "allocation": allocation}
    if rules["correction"] == "kill":
        rules["correction"] = "requested"
    env = SINGLE[name](**whole(workload, cluster=cluster, window=6, **more(name), **rules))
    acts, column = visible_acts(env, seed), USUAL_FEATURES.index("fits")

    def look(number: int, observation: Any, info: dict[str, Any]) -> Any:
        free, held = cluster.capacity.tolist(), units_on_nodes(env.result())
        assert [bool(nodes) for nodes in held] == (env.result().start >= 0).tolist()
        for row in env.running().tolist():
            for node, units in held[row].items():
                for r, resource in enumerate(cluster.resources):
                    free[node][r] -= units * int(workload.per_unit[resource][row])
        rows = info["window"][info["window"] >= 0].tolist()
        fits = [fits_on(free, env, row) for row in rows]
        shown = observation["jobs"][:, column].tolist()
        assert shown == [*map(float, fits), *[0.0] * (len(shown) - len(fits))]
        assert observation["queue"][5] == np.float32(sum(fits) / max(len(fits), 1))
        assert sum(node[0] for node in free) == env.free
        view = env.pass_view()
        assert view.free.tolist() == free
        assert view.job.tolist() == env.queued().tolist()
        assert view.fits().tolist() == [fits_on(free, env, row) for row in view.job.tolist()]
        return acts(number, observation, info)

    play(env, look)


@ids
def test_jobs_of_single_cores_run_as_on_a_pool(name: str) -> None:
    options = {"jobs": 60, "window": 6, "estimate": "e-loss", **more(name)}
    pool, nodes = (SINGLE[name](BUSY, **options, **place) for place in (
        {}, {"cluster": FOUR, "allocation": "worst-fit"}))  # fmt: skip
    acts = visible_acts(pool, 0)
    assert_same(play(pool, acts, seed=4), play(nodes, acts, seed=4))
    result = nodes.result()
    units = [sum(held.values()) for held in units_on_nodes(result)]
    assert units == result.workload.requested_processors.tolist()


def test_weeks_have_the_units_of_their_jobs() -> None:
    trace = load_workload("eurora:days=20,seed=1")
    env = SINGLE["JobSelection"](trace, episodes="weeks", cluster="eurora")
    env.reset(seed=0)
    week = env.episode_workload
    rows = np.searchsorted(trace.job_number, week.job_number)
    assert 0 < len(week) < len(trace)
    assert_same(week.units, trace.units[rows])
    assert_same(week.per_unit["mem"], trace.per_unit["mem"][rows])


# --- Energy ---------------------------------------------------------------------------------------


def test_packing_jobs_saves_energy() -> None:
    """Two jobs of half a node: on one node, or on two."""
    two = jobs_of([(0, 2, 100), (0, 2, 60)], 8)
    cluster = Cluster(groups=(NodeGroup("n", 2, {"core": 4}, NodePower(10.0, 110.0)),))
    for allocation, joules in (("first-fit", 100 * 120.0), ("worst-fit", 100 * 120 + 60 * 100.0)):
        rules = {"cluster": cluster, "allocation": allocation, "reward": "energy"}
        env = SINGLE["QueueOrdering"](**whole(two, window=2, **rules))
        steps = play(env, lambda *_: np.zeros(2))
        assert sum(step.info["reward_energy_j"] for step in steps[1:]) == joules
        assert sum(step.reward for step in steps) == pytest.approx(-joules / 220)  # in one second


@pytest.mark.slow
@ids
def test_nodes_of_their_own_are_switched_often(name: str) -> None:
    """A job of one node or two every hour, on two: those sleep in between."""
    workload = jobs_of([(3600 * k, 1 + k % 2, 10) for k in range(60)], 2)
    cluster = Cluster(groups=(NodeGroup("node", 2, {"core": 1}, POWER),), shutdown_after_s=0)
    env = SINGLE[name](**whole(workload, cluster=cluster, **more(name)))
    play(env, visible_acts(env, 0))
    result, same = env.result(), simulate(workload, cluster=cluster, **env.scheduler_rules)
    assert len(result.node_states.node) > 4 * 60
    assert_same(vars(result.node_states), vars(same.node_states))
    assert result.metrics == pytest.approx(same.metrics, rel=1e-12, nan_ok=True)
    validate_schedule(result)


# --- What is said, and refused --------------------------------------------------------------------


@ids
@pytest.mark.filterwarnings("default::hpcgym.errors.HpcgymWarning")
def test_nodes_of_their_own_are_not_given_in_silence(name: str) -> None:
    with pytest.warns(
        HpcgymWarning, match=r"^shutdown_after_s: .* jobs that do not fill theirs$"
    ) as single:
        env = CLASSES[name](BUSY, cluster=ASLEEP, **USUAL[name])
    with pytest.warns(HpcgymWarning, match=r"^shutdown_after_s: ") as many:
        getattr(envs, f"{name}Vector")(2, BUSY, cluster=ASLEEP, **USUAL[name])
    # they name the line of whoever makes the environment
    assert [warning.filename for warning in (*single, *many)] == [__file__, __file__]
    # schedulers beside it are simulated without limits, on nodes of jobs' own all the same
    assert platform_of(env).limits is None
    assert env.scheduler_rules["power"] == "none"
