"""Environments on nodes: what is seen, what is hidden, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from driving import (
    NAMES,
    SLOW,
    label,
    visible_acts,
    whole,
)
from node_driving import EURORA, FOUR, RULES, SERIAL, _interval, ids, make, places, units_on_nodes

from hpcgym import Cluster, HpcgymError
from hpcgym.cluster import NodeGroup
from hpcgym.envs.core.options import USUAL_FEATURES
from hpcgym.workload import Workload

pytestmark = pytest.mark.slow


def waits_on_node(env: Any) -> bool:
    """Tell whether some job waits for which there are cores enough, but not on the right nodes."""
    rows = env.queued()
    cores = env.episode_workload.requested_processors[rows]
    return bool(((cores <= env.free) & ~env.pass_view().fits()).any())


# --- What is seen ---------------------------------------------------------------------------


def free_now(env: Any) -> Any:
    """Return what each node has free, (N, R), worked out from the running jobs' nodes."""
    jobs, cluster = env.episode_workload, env.options.cluster
    free, held = cluster.capacity.tolist(), units_on_nodes(env.result())
    for row in env.running().tolist():
        for node, units in held[row].items():
            for r, resource in enumerate(cluster.resources):
                free[node][r] -= units * int(jobs.per_unit[resource][row])
    return free


def fits_on(free: Any, env: Any, row: int) -> bool:
    """Return whether the nodes together hold the units of a job."""
    jobs, room = env.episode_workload, 0
    demand = [int(jobs.per_unit[name][row]) for name in env.options.cluster.resources]
    for node in free:
        room += min(have // need for have, need in zip(node, demand, strict=True) if need)
    return room >= int(jobs.units[row])


def check_seen(env: Any, observation: Any, info: Any) -> list[bool]:
    """Compare what is seen of the machine with what is worked out; return what fits."""
    free = free_now(env)
    rows = info["window"][info["window"] >= 0].tolist()
    fits = [fits_on(free, env, row) for row in rows]
    column = USUAL_FEATURES.index("fits")
    shown = observation["jobs"][:, column].tolist()
    assert shown == [*map(float, fits), *[0.0] * (len(shown) - len(fits))]
    share = np.float32(sum(fits) / max(len(fits), 1))
    assert observation["queue"][5] == share
    assert sum(node[0] for node in free) == env.free
    view = env.pass_view()
    assert view.free.tolist() == free
    assert view.job.tolist() == env.queued().tolist()
    assert view.fits().tolist() == [fits_on(free, env, row) for row in view.job.tolist()]
    return fits


@settings(SLOW, max_examples=100)
@given(places(), RULES, st.sampled_from(NAMES[:2]), st.integers(0, 2**16))
def test_what_fits_is_seen(
    place: tuple[Cluster, Workload], rules: dict[str, Any], name: str, seed: int
) -> None:
    cluster, workload = place
    assume(any(need.any() for key, need in workload.per_unit.items() if key != "core")
           or (workload.per_unit["core"] > 1).any())  # fmt: skip
    rules = {**rules, "hold": None}  # what is held back is no matter of nodes
    env = make(name, **whole(workload, cluster=cluster, window=6), **rules)
    acts, steps = visible_acts(env, seed), 0
    observation, info = env.reset()
    ended = False
    while not ended:
        check_seen(env, observation, info)
        observation, _, ended, _, info = env.step(acts(steps, observation, info))
        steps += 1


@ids
def test_cores_enough_do_not_mean_that_a_job_fits(name: str) -> None:
    """The column tells of nodes: it differs from that of a pool."""
    env = make(name, jobs=120, window=40, **_interval(name))
    observation, info = env.reset(seed=0)
    ended, scattered = False, 0
    while not ended:
        check_seen(env, observation, info)
        scattered += waits_on_node(env)
        action = 0 if name == "JobSelection" else np.zeros(env.action_space.shape)
        observation, _, ended, _, info = env.step(action)
    assert scattered > 3


# --- What is refused ------------------------------------------------------------------------


def of_one_kind(**resources: int) -> Cluster:
    return Cluster(groups=(NodeGroup("all", 100, resources),))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster": "eurrora"}, "unknown machine 'eurrora'; did you mean 'eurora'"),
        ({"passes": "per-event"}, "passes='per-event' and a machine of nodes"),
        ({"allocation": "best"}, "did you mean 'best-fit'"),
        ({"processors": 1024}, "either cluster or processors, not both"),
        ({"correction": "next-second"}, "'next-second' is for dispatchers only"),
        (
            {"cluster": of_one_kind(core=16)},
            r"asks for \d+ '(gpu|mic)' a unit, which the machine lacks",
        ),
        (
            {"cluster": of_one_kind(core=8, mem=16_000, gpu=2, mic=2)},
            r"asks for \d+ units? of 16 core, .*; the empty machine holds 0\. The same holds for",
        ),
    ],
    ids=label,
)
def test_mistakes_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        make("JobSelection", **options)


@pytest.mark.parametrize("cluster", ["eurora", FOUR], ids=label)
def test_processors_of_nodes_are_not_switched_off(cluster: Any) -> None:
    workload = EURORA if cluster == "eurora" else SERIAL
    with pytest.raises(HpcgymError, match="shutdown_action"):
        make("JobSelection", workload, cluster=cluster, shutdown_action=True)


# --- Pictures -------------------------------------------------------------------------------


def test_the_text_says_what_fits_on_nodes() -> None:
    env = make("QueueOrdering", jobs=120, window=40, render_mode="ansi")
    env.reset(seed=0)
    seen = 0
    for _ in range(60):
        rows, free = env.queued().tolist(), free_now(env)
        lines = [line.split() for line in env.render().partition("Queue,")[2].splitlines()]
        told = {line[0]: line[-1] for line in lines if line and line[-1] in ("yes", "no")}
        expected = {str(r): "yes" if fits_on(free, env, r) else "no" for r in rows[:10]}
        assert told == expected
        seen += waits_on_node(env)
        if env.step(np.zeros(40))[2]:
            break
    assert seen > 3
