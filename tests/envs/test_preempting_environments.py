"""Environments in which jobs stop others: schedules of the oracles, rewards, what is told."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import SINGLE, SLOW, play, whole
from node_driving import anywhere, by_reference
from preemption_strategies import CLOSE, crowded, preemptions
from quota_strategies import quotas, with_queues
from restrictions import DRAWN
from strategies import WEIGHTS, workloads
from test_restricted_environments import RULES, SEEDS, chosen_by, scores, windows_of

import hpcgym
from hpcgym.baselines import find_baseline
from hpcgym.cluster import Cluster, NodeGroup, NodePower
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.envs.queue_ordering import QueueOrdering
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload

pytestmark = [*DRAWN, pytest.mark.slow]
QUEUES = st.lists(st.integers(1, 4), min_size=2, max_size=6)
INTERVALS = st.sampled_from(["pass", "hour", 3, "episode"])
MODES = ("requeue", "cancel", "suspend")


def order_of(seed: int, lost: list[Any]) -> Any:
    """Return the order of the agent's, which has not seen who is stopped in the same pass."""

    def score(job: Any, now: int) -> float:
        if any(run[0] == job.number and run[2] == now for run in lost):
            return -1.0 - 1e-9 * job.number
        return scores(seed, [job.number], now)[0] - 1e-9 * job.number

    return score


def assert_same(env: Any, steps: list[Any], expected: list[Any], lost: list[Any]) -> None:
    """Compare the schedule, prove it, and let the rewards add up to what it says."""
    result = env.result()
    assert result.start.tolist() == [job.start for job in expected]
    assert result.end.tolist() == [job.end for job in expected]
    mine = result.interrupted
    runs = list(zip(mine.job.tolist(), mine.start.tolist(), mine.end.tolist(), strict=True))
    assert runs == sorted(run[:3] for run in lost)
    if result.suspended is not None:
        assert result.suspended.tolist() == [job.paused for job in expected]
    hpcgym.validate_schedule(result)
    assert sum(step.reward for step in steps[1:]) == pytest.approx(-result.metrics["mean_bsld"])
    assert steps[-1].info["metrics"] == pytest.approx(
        {name: value for name, value in result.metrics.items() if value == value}
    )
    for term, metric in (("wait_s", "mean_wait_s"), ("energy_j", "energy_j")):
        total = sum(step.info["reward_terms"][term] for step in steps[1:])
        share = total / len(expected) if term == "wait_s" else total
        assert share == pytest.approx(result.metrics[metric], rel=1e-9)


@settings(SLOW, max_examples=300)
@given(st.data(), anywhere(), RULES, SEEDS, QUEUES, st.sampled_from(["start", "end", "waiting"]))
def test_any_order_of_the_queue(
    data: st.DataObject, place: Any, rules: dict[str, Any], seed: int, queues: Any, paid: str
) -> None:
    cluster, workload = place[0], crowded(with_queues(place[1], queues), data.draw(CLOSE))
    text, slow = data.draw(preemptions(workload))
    quota, quotas_slow, windows, closed = None, [], [], None
    if cluster is None:
        quota, quotas_slow = data.draw(st.one_of(st.just((None, [])), quotas(workload)))
        if slow[2] != "suspend":
            windows, closed = windows_of(data, workload.processors)
            rules |= {"estimate": "requested"} if closed else {}
    kept = {"preemption": text, "quota": quota, "maintenance": closed, "cluster": cluster}
    env = QueueOrdering(**whole(workload, window=40, paid=paid, **kept, **rules))
    steps = play(env, chosen_by("QueueOrdering", seed, 40))
    lost: list[Any] = []
    more = {"preemption": slow, "lost": lost, "quotas": quotas_slow, "windows": windows}
    expected = by_reference(cluster, workload, policy=order_of(seed, lost), **more, **rules)
    assert_same(env, steps, expected, lost)


@settings(SLOW, max_examples=150)
@given(
    st.data(), workloads(), RULES, st.tuples(*[WEIGHTS] * 6).filter(any), QUEUES, INTERVALS
)  # fmt: skip
def test_weights(
    data: st.DataObject, workload: Workload, rules: dict[str, Any], vector: Any, queues: Any,
    interval: Any,
) -> None:  # fmt: skip
    """All jobs have the scores of the weights that hold."""
    workload = crowded(with_queues(workload, queues), data.draw(CLOSE))
    text, slow = data.draw(preemptions(workload))
    env = MixedPolicy(**whole(workload, interval=interval, preemption=text, **rules))
    weights = np.array(vector)
    weights = weights / 2.0 ** np.ceil(np.log2(np.abs(weights).sum()))
    steps = play(env, lambda *_: weights)
    lost: list[Any] = []
    expected = simulate_pool(
        jobs_of(workload), workload.processors,
        policy=tuple((weights / np.abs(weights).sum()).tolist()), preemption=slow, lost=lost,
        **rules,
    )  # fmt: skip
    assert_same(env, steps, expected, lost)


@settings(SLOW, max_examples=100)
@given(st.data(), workloads(), RULES, SEEDS, QUEUES)
def test_other_weights_at_each_pass(
    data: st.DataObject, workload: Workload, rules: dict[str, Any], seed: int, queues: Any
) -> None:
    """A job that is stopped has the scores of the weights of that pass, and waits in it again."""
    workload = crowded(with_queues(workload, queues), data.draw(CLOSE))
    text, slow = data.draw(preemptions(workload))
    env = MixedPolicy(**whole(workload, interval="pass", preemption=text, **rules))
    kinds = (-1.0, 1.0, -0.5, 0.5)

    def weight(now: int) -> float:
        return kinds[crc32(f"{seed} {now}".encode()) % len(kinds)]

    def weights(_: int, __: Any, info: dict[str, Any]) -> Any:
        return np.array([weight(info["time"]), 0, 0, 0, 0, 0])

    def order(job: Any, now: int) -> float:
        return np.sign(weight(now)) * job.processors

    steps = play(env, weights)
    lost: list[Any] = []
    expected = simulate_pool(
        jobs_of(workload), workload.processors, policy=order, preemption=slow, lost=lost, **rules
    )
    assert_same(env, steps, expected, lost)


def stopping(jobs: int = 300, load: float = 1.2) -> Workload:
    """Return jobs of three queues on 16 processors."""
    trace = hpcgym.load_workload(f"lublin:jobs={jobs},processors=16,seed=1,load={load}")
    return trace.with_columns(queue=np.random.default_rng(0).integers(2, 5, len(trace)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cluster", [None, "4x2x2"])
def test_a_baseline_makes_the_schedule_of_simulate(cluster: str | None, mode: str) -> None:
    """In windows of a log too: of many stopped runs, so that their log is made longer."""
    rules = {"preemption": f"queue:2>3>4,{mode}", "backfill_order": "fcfs"}
    env = MixedPolicy(stopping(900, 1.6), jobs=500, cluster=cluster, interval="pass", **rules)
    longest = 0
    for seed, policy in enumerate(("saf", "fcfs")):
        baseline = find_baseline(policy)
        env.reset(seed=seed)
        baseline.begin(env)
        play(env, lambda _, o, info, act=baseline.act: act(o, info), seed=seed)
        own = {**env.scheduler_rules, "policy": policy}
        expected = hpcgym.simulate(env.episode_workload, cluster=env.options.cluster, **own)
        found = env.result()
        assert found.start.tolist() == expected.start.tolist()
        assert found.metrics == pytest.approx(expected.metrics, nan_ok=True)
        longest = max(longest, len(found.interrupted.job))
        assert mode != "cancel" or found.cancelled.any()
        hpcgym.validate_schedule(found)
    assert mode == "cancel" or longest > 2 * 16  # the room at first


def two() -> Workload:
    """Return a long job of queue 2, and 10 s later a short one of queue 1, both of 2 processors."""
    return Workload.from_columns(
        {
            "submit_time": [0, 10],
            "run_time": [100, 20],
            "requested_time": [100, 20],
            "requested_processors": [2, 2],
            "queue": [2, 1],
        },
        processors=2,
    )


@pytest.mark.parametrize(
    ("mode", "rewards"),
    [
        # the slowdowns of the first job: 1; 1.3, as it starts at 30 s anew, or ends at 120 s
        ("requeue", [-0.5, 0.0, -0.65]),
        # cancelled after 10 s: it has run for 10 s, slowdown 1
        ("cancel", [-0.5, -0.5]),
        ("suspend", [-0.5, -0.6]),
    ],
)
def test_a_stop_takes_a_reward_back(mode: str, rewards: list[float]) -> None:
    """By hand: the first step starts job 0, the second stops it for job 1, which starts at once."""
    env = QueueOrdering(**whole(two(), window=2, preemption=f"queue:1>2,{mode}"))
    _, info = env.reset()
    assert info["window"].tolist() == [0, -1]
    found = []
    terminated = False
    while not terminated:
        _, reward, terminated, _, info = env.step(np.zeros(2, np.float32))
        found.append(reward)
    assert found == pytest.approx(rewards)
    start, end = env.result().start.tolist(), env.result().end.tolist()
    assert (start, end) == {
        "requeue": ([30, 10], [130, 30]),
        "cancel": ([0, 10], [10, 30]),
        "suspend": ([0, 10], [120, 30]),
    }[mode]


@pytest.mark.parametrize("mode", MODES)
def test_the_reference_of_a_reward_keeps_the_rule_too(mode: str) -> None:
    """The agent serves jobs as they come, which is what EASY does here."""
    rules = {"preemption": f"queue:1>2,{mode}", "reward": "bsld/easy"}
    env = QueueOrdering(**whole(two(), window=2, **rules))
    steps = play(env, lambda *_: np.zeros(2, np.float32))
    assert sum(step.reward for step in steps[1:]) == pytest.approx(-1)


def test_who_was_stopped_is_seen_again() -> None:
    env = QueueOrdering(**whole(two(), window=2, preemption="queue:1>2"))
    env.reset()
    *_, info = env.step(np.zeros(2, np.float32))
    assert (env.time, info["window"].tolist(), env.running().tolist()) == (10, [1, -1], [0])
    *_, info = env.step(np.zeros(2, np.float32))
    assert (env.time, info["window"].tolist(), env.queued().tolist()) == (30, [0, -1], [0])
    assert env.result().start.tolist() == [-1, 10]


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("JobSelection", {}, "one job after the other"),
        ("QueueOrdering", {"warmup": "1d"}, "starts that are final"),
        ("MixedPolicy", {"start": "easy"}, "starts that are final"),
        ("QueueOrdering", {"dependencies": "after"}, "do not go together in environments"),
        ("MixedPolicy", {"quota": "user:submitted=9"}, "do not go together"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*no job follows another")
def test_what_is_refused(name: str, more: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        SINGLE[name](stopping(60), jobs=30, preemption="queue:2>3", **more)


def test_who_is_suspended_does_not_run() -> None:
    """Job 0 is suspended at 10 s by job 1, which runs for 20 s; job 2 comes at 15 s."""
    columns = {
        "submit_time": [0, 10, 15],
        "run_time": [100, 20, 5],
        "requested_time": [100, 20, 5],
        "requested_processors": [2, 2, 2],
        "queue": [2, 1, 1],
    }
    jobs = Workload.from_columns(columns, processors=2)
    env = QueueOrdering(**whole(jobs, window=2, preemption="queue:1>2,suspend"))
    env.reset()
    seen = []
    terminated = False
    while not terminated:
        seen.append((env.time, env.running().tolist(), env.queued().tolist()))
        *_, terminated, _, _ = env.step(np.zeros(2, np.float32))
    assert seen[:3] == [(0, [], [0]), (10, [0], [1]), (15, [1], [2])]
    assert env.result().end.tolist() == [125, 30, 35]


def test_a_reward_of_ones_own_is_refused() -> None:
    with pytest.raises(HpcgymError, match="no start is final"):
        QueueOrdering(stopping(), preemption="queue:2>3", reward=lambda view: 0.0)


def test_energy_of_nodes_is_no_reward() -> None:
    power = NodePower(idle_w=100, busy_w=200)
    nodes = Cluster(groups=(NodeGroup("thin", 8, {"core": 8}, power),))
    with pytest.raises(HpcgymError, match=r"reward .energy.: .* no start is final"):
        QueueOrdering(stopping(), cluster=nodes, preemption="queue:2>3", reward="energy")
