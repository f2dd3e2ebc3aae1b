"""Agents that order the queue of Slurm's backfilling: schedules of the oracles, when it asks."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import BUSY, SINGLE, SLOW, VECTOR, Act, assert_same, play, whole
from node_driving import EURORA, places
from quota_strategies import shared_quotas, with_queues
from restrictions import DRAWN
from strategies import DEPTHS, SLURM, WEIGHTS, workloads

import hpcgym
from hpcgym.baselines import find_baseline
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of, node_jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload

pytestmark = [*DRAWN, pytest.mark.slow]
SEEDS = st.integers(0, 2**16)
WINDOWS = st.sampled_from([None, "40/300", "1000/1900:processors=1; 3000/3001"])
LIKE_SLURM = [backfill for backfill in DEPTHS if backfill.startswith("slurm")]


def score(seed: int, row: Any, asked: int) -> float:
    """Any order of jobs, another at each question; many are equal."""
    return crc32(f"{seed} {row} {asked}".encode()) % 7 / 7


def ordered(seed: int, asked: list[int], window: int) -> Act:
    """Return what orders the queue by :func:`score`, and notes when it was asked."""

    def act(_: int, __: Any, info: dict[str, Any]) -> Any:
        asked.append(info["time"])
        rows = [row for row in info["window"].tolist() if row >= 0]
        found = np.array([score(seed, row, info["time"]) for row in rows], np.float32)
        return np.pad(found, (0, window - len(rows)))

    return act


def as_asked(seed: int, asked: list[int]) -> Any:
    """Return a policy of the oracles by the answers to the last question."""

    def policy(job: Any, now: int) -> float:
        return score(seed, job.number, max(time for time in asked if time <= now))

    return policy


def events_with_a_queue(result: Any) -> list[int]:
    """Return when jobs wait, of all times at which jobs come or end."""
    submitted, start, end = result.workload.submit_time, result.start, result.end
    times = np.unique(np.concatenate([submitted, end]))
    return [int(t) for t in times if ((submitted <= t) & (start >= t)).any()]


@settings(SLOW, max_examples=150)
@given(st.data(), workloads(), SLURM, SEEDS, WINDOWS)
def test_any_order(
    data: st.DataObject, workload: Workload, backfill: str, seed: int, closed: str | None
) -> None:
    """On a pool; the agent is asked at each event at which jobs wait, and no other time."""
    workload = with_queues(workload, [1, 2])
    text, ((*quotas,),) = data.draw(shared_quotas([workload]))
    windows = []
    for one in closed.split("; ") if closed else []:
        times, _, width = one.partition(":processors=")
        begin, end = map(int, times.split("/"))
        windows.append((begin, end, int(width or workload.processors)))
    asked: list[int] = []
    rules = {"backfill": backfill, "estimate": "requested"}
    arguments = whole(workload, window=40, quota=text, maintenance=closed, **rules)
    env = SINGLE["QueueOrdering"](**arguments)
    play(env, ordered(seed, asked, 40))
    found = env.result()
    expected = simulate_pool(
        jobs_of(workload),
        workload.processors,
        policy=as_asked(seed, asked),
        quotas=quotas,
        windows=windows,
        **rules,
    )
    assert found.start.tolist() == [job.start for job in expected]
    assert found.backfilled.tolist() == [job.backfilled for job in expected]
    if not windows:  # whose end asks, too
        assert asked == events_with_a_queue(found)


@settings(SLOW, max_examples=150)
@given(places(), SLURM, SEEDS, st.sampled_from(["requested", "clairvoyant"]))
def test_any_order_on_nodes(place: Any, backfill: str, seed: int, estimate: str) -> None:
    """Where the order says, by the nodes that are reserved, when Slurm looks again."""
    cluster, workload = place
    asked: list[int] = []
    rules = {"backfill": backfill, "estimate": estimate}
    env = SINGLE["QueueOrdering"](**whole(workload, cluster=cluster, window=40, **rules))
    play(env, ordered(seed, asked, 40))
    expected = simulate_nodes(
        node_jobs_of(workload, cluster.resources),
        cluster.capacity.tolist(),
        policy=as_asked(seed, asked),
        **rules,
    )
    assert env.result().start.tolist() == [job.start for job in expected]
    hpcgym.validate_schedule(env.result())


@settings(SLOW, max_examples=100)
@given(
    workloads(), SLURM, st.tuples(*[WEIGHTS] * 6).filter(any),
    st.sampled_from(["pass", "1h", "episode", 2]),
)  # fmt: skip
def test_weights(workload: Workload, backfill: str, vector: Any, interval: Any) -> None:
    env = SINGLE["MixedPolicy"](**whole(workload, backfill=backfill, interval=interval))
    # divided by their sum there: by a power of two, which changes no order
    weights = np.array(vector)
    weights = weights / 2.0 ** np.ceil(np.log2(np.abs(weights).sum()))
    play(env, lambda *_: weights)
    normalised = tuple((weights / np.abs(weights).sum()).tolist())
    expected = simulate_pool(
        jobs_of(workload), workload.processors, policy=normalised, backfill=backfill
    )
    assert env.result().start.tolist() == [job.start for job in expected]


@pytest.mark.parametrize(
    ("workload", "kept"),
    [
        (BUSY, {}),
        (BUSY, {"quota": "user:jobs=2", "dependencies": "closed-loop"}),
        (BUSY, {"cluster": "8x2x4", "preemption": "queue:2>1"}),
        (EURORA, {"cluster": "eurora"}),
        (EURORA, {"cluster": "eurora", "quota": "user:jobs=3"}),
    ],
    ids=["pool", "closed loop", "stops", "nodes", "quota"],
)
@pytest.mark.parametrize("backfill", LIKE_SLURM[1:4])
@pytest.mark.parametrize("name", ["QueueOrdering", "MixedPolicy"])
def test_a_baseline_makes_the_schedule_of_simulate(
    name: str, backfill: str, workload: Workload, kept: dict[str, Any]
) -> None:
    """And promises the same."""
    env = SINGLE[name](
        **whole(workload, backfill=backfill, **kept),
        **({} if name == "MixedPolicy" else {"window": 300}),
    )
    for seed, policy in enumerate(("saf", "fcfs")):
        baseline = find_baseline(policy)
        env.reset(seed=seed)
        baseline.begin(env)
        play(env, lambda _, o, info, act=baseline.act: act(o, info))
        rules = {**env.scheduler_rules, "policy": policy}
        expected = hpcgym.simulate(env.episode_workload, cluster=env.options.cluster, **rules)
        assert env.result().start.tolist() == expected.start.tolist()
        hpcgym.validate_schedule(env.result())


@pytest.mark.parametrize("name", ["QueueOrdering", "MixedPolicy"])
def test_many_are_as_one(name: str) -> None:
    """Each of a vector environment steps as a single one."""
    arguments = {"workload": BUSY, "jobs": 60, "backfill": "slurm:bf_interval=600"}
    many = VECTOR[name](num_envs=3, **arguments)
    seen, infos = many.reset(seed=5)
    ones = [SINGLE[name](**arguments) for _ in range(3)]
    firsts = [one.reset(seed=5 + e) for e, one in enumerate(ones)]
    rng = np.random.default_rng(1)
    for _ in range(40):
        for e, (observation, info) in enumerate(firsts):
            assert info["time"] == infos["time"][e]
            assert_same(observation, {key: value[e] for key, value in seen.items()})
        actions = rng.uniform(-1, 1, many.action_space.shape).astype(np.float32)
        seen, rewards, ended, _, infos = many.step(actions)
        if ended.any():
            break
        steps = [one.step(action) for one, action in zip(ones, actions, strict=True)]
        assert [step[1] for step in steps] == rewards.tolist()
        firsts = [(step[0], step[4]) for step in steps]


def test_a_snapshot_goes_on_with_looks() -> None:
    env = SINGLE["QueueOrdering"](BUSY, jobs=100, backfill="slurm:bf_interval=700", window=64)
    env.reset(seed=1)
    order = ordered(3, [], 64)
    _, info = env.reset(seed=1)
    for _ in range(40):
        _, _, _, _, info = env.step(order(0, None, info))
    here, found = env.snapshot(), []
    for _ in range(2):
        _, info = env.restore(here)
        ended = False
        while not ended:
            _, _, ended, _, info = env.step(order(0, None, info))
        found.append(env.result().start.tolist())
    assert found[0] == found[1]


def test_one_job_after_the_other_is_refused() -> None:
    with pytest.raises(HpcgymError, match="backfill='slurm' and environments that ask for one job"):
        SINGLE["JobSelection"](BUSY, backfill="slurm")
