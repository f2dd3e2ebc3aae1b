"""Agents that order the queue under the rules of a site: schedules, rewards, what is seen."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import (
    BUSY,
    EURORA,
    KEPT,
    NAMES,
    ON_NODES,
    SEEDS,
    SINGLE,
    SLOW,
    Act,
    chained,
    cost_so_far,
    four_jobs,
    jobs_of,
    noting_first,
    on_a_pool,
    on_nodes,
    play,
    rows_of,
    whole,
)
from plain_envs import JobSelection, MixedPolicy, QueueOrdering
from preemption_strategies import CLOSE, crowded
from restrictions import DRAWN, around_windows, restrict, with_numbers
from same_results import assert_same
from strategies import SLURM, WEIGHTS

import hpcgym
from hpcgym.baselines import find_baseline
from hpcgym.errors import WorkloadWarning
from hpcgym.machine import Cluster
from hpcgym.reference import jobs as reference_jobs
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.model import Workload

pytestmark = [*DRAWN, pytest.mark.slow]
QUEUES = st.lists(st.integers(1, 4), min_size=2, max_size=6)
RULES = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["easy", "none"]),
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "lexp"]),
        "estimate": st.sampled_from(["requested", "clairvoyant", "ave2"]),
        "correction": st.sampled_from(["requested", "incremental", "recursive-doubling"]),
    }
)
DEPTHS = st.sampled_from(["depth:1", "depth:2", "depth:5"])
#: What is in force, by words of ``restrict``, beside "depth", "conservative" and "slurm".
IN_FORCE = {
    "pool": ("depth", "conservative", "quota", "quota windows", "depth quota windows", "follow",
             "places windows", "follow places windows", "stop", "stop quota windows", "slurm",
             "slurm quota windows", "minutes", "slurm minutes"),
    "nodes": ("conservative", "quota", "quota windows", "follow", "follow places", "stop", "slurm",
              "minutes"),
}  # fmt: skip
CASES = [(place, words) for place, each in IN_FORCE.items() for words in each]
everywhere = pytest.mark.parametrize(("place", "words"), CASES)


def drawn(data: Any, place: str, words: str) -> tuple[Cluster, Workload, Any, Any]:
    """Draw a machine, jobs, and the rules of a site as environments and as the reference have them.

    "correction" has no meaning for Slurm's backfilling here.
    """
    which = {*words.split()}
    cluster, jobs = data.draw(on_a_pool() if place == "pool" else on_nodes())
    jobs = with_numbers(jobs, data.draw(QUEUES))
    if "stop" in which:
        jobs = crowded(jobs, data.draw(CLOSE))
    rules = data.draw(RULES)
    if which & {"depth", "slurm"}:
        rules["backfill"] = data.draw(DEPTHS if "depth" in which else SLURM)
    if "conservative" in which:
        rules |= {"backfill": "conservative", "hold": None}
    if which & {"follow", "places", "slurm"} and rules["estimate"] == "ave2":
        rules["estimate"] = "requested"
    ours, theirs = dict[str, Any](), dict[str, Any]()
    jobs = restrict(data, which, jobs, ours, theirs, cluster)
    if "maintenance" in ours:
        rules = {
            name: value for name, value in around_windows(rules, jobs).items() if name != "hold"
        }
    return cluster, jobs, rules | ours, rules | theirs


def reference(cluster: Cluster, jobs: Workload, rules: Any, lost: Any, policy: Any) -> list[Any]:
    """Return the jobs as the slow simulator of a pool or of nodes schedules them."""
    more = {**rules, "policy": policy, "lost": lost}
    if not cluster.groups:
        return simulate_pool(reference_jobs.jobs_of(jobs), jobs.processors, **more)
    slow = reference_jobs.node_jobs_of(jobs, cluster.resources)
    return simulate_nodes(slow, cluster.capacity.tolist(), **more)


def check(
    env: Any, steps: list[Any], before: list[Any], expected: list[Any], lost: list[Any]
) -> None:
    """Compare the schedule, prove it, and let the rewards add up to what it says.

    ``before``: what jobs had cost at the first decision, of :func:`driving.noting_first`.
    """
    result = env.result()
    # what is promised holds for a pass, and the agent says another order in the next
    for job, promised in zip(
        sorted(expected, key=lambda job: (job.submit, job.number)),
        result.reserved_start.tolist(),
        strict=True,
    ):
        job.reserved_start = promised
    assert_same(result, expected, lost)
    hpcgym.validate_schedule(result)
    metrics = result.metrics
    # an agent that is never asked is paid nothing
    paid = metrics["mean_bsld"] - before[0][0] / metrics["jobs"] if before else 0
    assert sum(step.reward for step in steps[1:]) == pytest.approx(-paid)
    assert env.metrics() == pytest.approx(metrics, nan_ok=True)


def score(seed: int, row: Any, now: int) -> float:
    """Any order of jobs, another at each time; many are equal."""
    return crc32(f"{seed} {row} {now}".encode()) % 7 / 7


def chosen_by(name: str, seed: int, window: int, asked: list[int]) -> Act:
    """Return what chooses by such an order, of jobs that no quota keeps back; notes when."""

    def act(_: int, __: Any, info: dict[str, Any]) -> Any:
        rows, now = rows_of(info), info["time_s"]
        asked.append(now)
        scores = np.array([score(seed, row, now) for row in rows], np.float32)
        if name == "QueueOrdering":
            return np.pad(scores, (0, window - len(rows)))
        return int(np.argmax(np.where(info["action_mask"][: len(rows)] > 0, scores, -1)))

    return act


@everywhere
@settings(SLOW, max_examples=100)
@given(st.data(), SEEDS, st.sampled_from(["JobSelection", "QueueOrdering"]),
       st.sampled_from(["start", "end", "waiting"]))  # fmt: skip
def test_any_order_of_the_queue(
    place: str, words: str, data: Any, seed: int, name: str, paid: str
) -> None:
    """Slurm's plans ask at each event at which jobs wait, and go by the last answer until then."""
    cluster, jobs, ours, theirs = drawn(data, place, words)
    several = bool({*words.split()} & {"depth", "conservative", "slurm", "stop"})
    name = "QueueOrdering" if several else name
    env = SINGLE[name](**whole(jobs, cluster=cluster, window=40, paid=paid, **ours))
    asked: list[int] = []
    acts, before = noting_first(chosen_by(name, seed, 40, asked), lambda: cost_so_far(env))
    steps = play(env, acts)
    lost: list[Any] = []

    def policy(job: Any, now: int) -> float:
        if "slurm" in words:
            now = max(time for time in asked if time <= now)
        own_score = score(seed, job.number, now)
        if "stop" in words:  # the agent has not seen who is stopped in the same pass
            groups, *_, grace = theirs["preemption"]
            at_once = not grace.get(groups[job.number])
            stopped = at_once and any(run[0] == job.number and run[2] == now for run in lost)
            own_score = (-1 if stopped else own_score) - 1e-9 * job.number
        return own_score

    check(env, steps, before, reference(cluster, jobs, theirs, lost, policy), lost)
    if words == "slurm" and place == "pool":
        result = env.result()
        times = np.unique([*jobs.submit_time, *result.end])
        waits = (jobs.submit_time <= times[:, None]) & (result.start >= times[:, None])
        assert asked == times[waits.any(axis=1)].tolist()


@pytest.mark.parametrize("words", IN_FORCE["pool"])
@settings(SLOW, max_examples=100)
@given(
    st.data(), st.tuples(*[WEIGHTS] * 6).filter(any),
    st.sampled_from(["pass", "1h", "episode", 2, "changing"]), SEEDS,
)  # fmt: skip
def test_weights(words: str, data: Any, vector: Any, interval: Any, seed: int) -> None:
    """A job that is stopped has the scores of the weights of that pass, and waits in it again."""
    cluster, jobs, ours, theirs = drawn(data, "pool", words)
    moves, changing = bool({*words.split()} & {"follow", "places"}), interval == "changing"
    # divided by their sum there: by a power of two, which changes no order
    weights = np.array(vector) / 2.0 ** np.ceil(np.log2(np.abs(vector).sum()))
    normalised = (weights / np.abs(weights).sum()).tolist()
    policy: Any = tuple(normalised)
    if moves and interval == 2:
        interval = "1h"
    if changing and not ("stop" in words and theirs["backfill"] in ("easy", "none")):
        changing, interval = False, "pass"
    if moves and not normalised[4] and not (normalised[2] and any((*policy[:2], *policy[3:]))):
        return  # the slow simulator has ties as they came

    def at(now: int) -> float:
        return (-1.0, 1.0, -0.5, 0.5)[crc32(f"{seed} {now}".encode()) % 4]

    def act(_: int, __: Any, info: dict[str, Any]) -> Any:
        return np.eye(6)[0] * at(info["time_s"]) if changing else weights

    if changing:
        interval, policy = "pass", lambda job, now: np.sign(at(now)) * job.processors
    env = MixedPolicy(**whole(jobs, interval=interval, **ours))
    acts, before = noting_first(act, lambda: cost_so_far(env))
    steps = play(env, acts)
    lost: list[Any] = []
    check(env, steps, before, reference(cluster, jobs, theirs, lost, policy), lost)


# --- Episodes that begin where others have been ---------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "kept"),
    [
        (BUSY, {}),
        (BUSY, KEPT),
        (BUSY, {"quota": "user:jobs=1; all:jobs=9"}),
        (EURORA, {"cluster": "eurora", "quota": "user:jobs=3; queue:processors=300"}),
        (EURORA, ON_NODES),
    ],
    ids=["plain", "windows", "quotas", "nodes", "closed nodes"],
)
@pytest.mark.parametrize("name", NAMES)
def test_episodes_go_on_with_the_schedule_that_they_begin_in(
    name: str, workload: Workload, kept: dict[str, Any]
) -> None:
    """By EASY, from wherever it begins, all starts are those of EASY on the whole log."""
    expected = hpcgym.simulate(workload, "easy", **kept)
    starts = dict(zip(workload.job_number.tolist(), expected.start.tolist(), strict=True))
    around = {"start": "warm", "arrivals": "continue", "horizon": "300d"}
    rules = {"backfill": "easy", "backfill_order": "fcfs"}
    more = {"interval": "pass"} if name == "MixedPolicy" else {"window": 300}
    env = SINGLE[name](workload, jobs=40, **around, **rules, **more, **kept)
    ran, baseline = 0, find_baseline("fcfs")
    for seed in range(3):
        env.reset(seed=seed)
        baseline.begin(env)
        play(env, lambda _, o, info: baseline.act(o, info), seed=seed)
        start_times, jobs = env.result().start, env.episode_workload
        ran += int((start_times < env.episode_workload.submit_time.max()).sum())
        for number, start in zip(jobs.job_number.tolist(), start_times.tolist(), strict=True):
            assert start in (-1, starts[number])
        assert (start_times >= 0).sum() >= 40
        assert env.metrics()["jobs"] == 40
    assert ran > 0


# --- Quotas ---------------------------------------------------------------------------------------


def test_masks_by_hand() -> None:
    """Of user 1 one job may run. What is masked stands for the first that may start."""
    env = JobSelection(**whole(four_jobs(), window=5, quota="user:jobs=1"))
    observation, info = env.reset()
    assert info["action_mask"].tolist() == [1, 1, 1, 1, 0]
    observation, _, _, _, info = env.step(1)
    assert info["window"].tolist() == [0, 2, 3, -1, -1]
    assert info["action_mask"].tolist() == [0, 0, 1, 0, 0]
    assert observation["mask"].tolist() == [0, 0, 1, 0, 0]
    observation, _, _, _, info = env.step(0)  # masked: job 3
    assert (env.time, env.result().start.tolist()) == (10, [-1, 0, -1, 0])
    assert info["action_mask"].tolist() == [1, 1, 0, 0, 0]
    env.step(1)
    _, _, terminated, _, info = env.step(0)
    assert (terminated, info["action_mask"].tolist()) == (True, [0] * 5)
    assert env.result().start.tolist() == [20, 0, 10, 0]


def test_who_stands_behind_the_window_is_served() -> None:
    """The one visible job may not start: the first place stands for the one that may."""
    env = JobSelection(**whole(four_jobs(), window=1, quota="user:jobs=1"))
    starts = []
    for step in play(env, lambda *_: 0):
        assert step.info["action_mask"].tolist() == [int(not step.terminated)]
        starts.append(env.result().start.tolist())
    assert starts[-1] == [0, 10, 20, 0]


def test_the_only_choice_is_forced() -> None:
    """After the first step user 1 may start none, then each time one: three steps of four."""
    for forced, steps in ((False, 4), (True, 2)):
        env = JobSelection(**whole(four_jobs(), window=5, quota="user:jobs=1", skip_forced=forced))
        played = play(env, lambda _, __, info: int(np.argmax(info["action_mask"])))
        assert len(played) - 1 == steps
        assert env.result().start.tolist() == [0, 10, 20, 0]


@pytest.mark.parametrize("quota", ["user:jobs=1; group:processors=32", None])
@pytest.mark.parametrize("name", ["JobSelection", "QueueOrdering"])
def test_what_quotas_let_start_is_seen(name: str, quota: str | None) -> None:
    """Counted anew from the jobs that run; a mask is never empty where there is a question."""
    features = ("within_quota", "processors", "queue=2", "qos=2")
    jobs = hpcgym.load_workload("lublin:jobs=80,processors=32,seed=5,load=1.3")
    jobs = jobs.with_columns(queue=1 + np.arange(80) % 3, group_id=np.arange(80) // 4 % 3)
    env = SINGLE[name](**whole(jobs, window=20, features=features, quota=quota))
    users, groups, wide = jobs.user_id, jobs.group_id, jobs.requested_processors
    seen = set()

    def act(number: int, observation: Any, info: dict[str, Any]) -> Any:
        rows, runs = rows_of(info), env.running()
        allowed = [
            quota is None
            or bool(
                users[row] not in users[runs]
                and wide[runs][groups[runs] == groups[row]].sum() + wide[row] <= 32
            )
            for row in rows
        ]
        shown = observation["jobs"][: len(rows)]
        assert shown[:, 0].tolist() == allowed
        assert shown[:, 2].tolist() == shown[:, 3].tolist() == (jobs.queue[rows] == 2).tolist()
        assert not observation["jobs"][len(rows) :].any()
        seen.update(allowed)
        if name == "QueueOrdering":
            return np.random.default_rng(number).random(20, np.float32)
        mask = info["action_mask"]
        assert mask[: len(rows)].tolist() == (allowed if any(allowed) else [1, *allowed[1:]])
        assert not mask[len(rows) :].any()
        return int(np.random.default_rng(number).choice(np.flatnonzero(mask)))

    play(env, act)
    hpcgym.validate_schedule(env.result())
    assert seen == ({False, True} if quota else {True})


def test_features_that_compare_with_a_name() -> None:
    jobs = replace(four_jobs(queue=[1, 2, 2, 1]), header={"Queue": ["1 day", "2 night"]})
    env = JobSelection(**whole(jobs, window=5, features={"queue=night": None, "wait": None}))
    assert env.reset()[0]["jobs"][:, 0].tolist() == [0, 1, 1, 0, 0]
    assert pickle.loads(pickle.dumps(env.options)).names == ("queue=night", "wait")
    for name, message in (
        ("queue=nigth", "did you mean 'night'"),
        ("queue=noon", "features: no job has 'noon' in queue"),
    ):
        with pytest.warns(WorkloadWarning, match=message):
            JobSelection(**whole(jobs, features=[name]))


# --- Jobs that stop others ------------------------------------------------------------------------


def in_queues(rows: list[tuple[int, int, int]], queues: list[int]) -> Workload:
    return jobs_of(rows, 2, queue=queues)


#: A long job of queue 2, and 10 s later a short one of queue 1, both of 2 processors.
TWO = in_queues([(0, 2, 100), (10, 2, 20)], [2, 1])


@pytest.mark.parametrize(
    ("mode", "rewards", "start", "end"),
    [
        # the slowdowns of the first job: 1; 1.3, as it starts at 30 s anew, or ends at 120 s
        ("requeue", [-0.5, 0.0, -0.65], [30, 10], [130, 30]),
        # cancelled after 10 s: it has run for 10 s, slowdown 1
        ("cancel", [-0.5, -0.5], [0, 10], [10, 30]),
        ("suspend", [-0.5, -0.6], [0, 10], [120, 30]),
    ],
)
def test_a_stop_takes_a_reward_back(mode: str, rewards: Any, start: Any, end: Any) -> None:
    """By hand: the first step starts job 0, the second stops it for job 1, which starts at once.

    The agent serves jobs as they come, which is what EASY does here.
    """
    rules = {"window": 2, "preemption": f"queue:1>2,{mode}"}
    env = QueueOrdering(**whole(TWO, **rules))
    steps = play(env, lambda *_: np.zeros(2, np.float32))
    assert [step.reward for step in steps[1:]] == pytest.approx(rewards)
    assert (env.result().start.tolist(), env.result().end.tolist()) == (start, end)
    windows = [[0, -1], [1, -1], [0, -1] if mode == "requeue" else [-1, -1], [-1, -1]]
    assert [step.info["window"].tolist() for step in steps] == windows[: len(steps)]
    by_easy = QueueOrdering(**whole(TWO, **rules, reward="bsld/easy"))
    steps = play(by_easy, lambda *_: np.zeros(2, np.float32))
    assert sum(step.reward for step in steps[1:]) == pytest.approx(-1)


def test_who_is_suspended_does_not_run() -> None:
    """Job 0 is suspended at 10 s by job 1, which runs for 20 s; job 2 comes at 15 s."""
    jobs = in_queues([(0, 2, 100), (10, 2, 20), (15, 2, 5)], [2, 1, 1])
    env = QueueOrdering(**whole(jobs, window=2, preemption="queue:1>2,suspend"))
    seen = []

    def act(*_: Any) -> Any:
        seen.append((env.time, env.running().tolist(), env.queued().tolist()))
        return np.zeros(2, np.float32)

    play(env, act)
    assert seen[:3] == [(0, [], [0]), (10, [0], [1]), (15, [1], [2])]
    assert env.result().end.tolist() == [125, 30, 35]


# --- Jobs whose coming the schedule says ----------------------------------------------------------


def test_what_has_not_come_is_not_seen() -> None:
    """By hand: job 7 comes at 10 s, behind job 9, and both can be chosen then."""
    jobs = jobs_of(
        [(0, 2, 10), (1, 2, 10), (2, 2, 10)], 2,
        job_number=[5, 7, 9], preceding_job=[-1, 5, -1], think_time=[-1, 0, -1],
    )  # fmt: skip
    env = JobSelection(**whole(jobs, window=3, dependencies="after"))
    _, info = env.reset()
    assert info["window"].tolist() == [0, -1, -1]
    observation, _, _, _, info = env.step(0)
    assert (env.time, info["window"].tolist()) == (10, [2, 1, -1])
    assert info["action_mask"].tolist() == [1, 1, 0]
    assert env.queued().tolist() == [2, 1]
    assert env.submit_times().tolist() == [0, 10, 2]
    wait = observation["jobs"][:2, 0].tolist()
    assert wait == pytest.approx([8 / 3608, 0.0])
    _, reward, _, _, _ = env.step(1)
    assert reward == pytest.approx(-1 / 3)
    *_, terminated, _, info = env.step(0)
    assert terminated
    assert env.result().workload.job_number.tolist() == [5, 9, 7]
    assert env.result().start.tolist() == [0, 20, 10]


@pytest.mark.parametrize("cluster", [None, "1x1x2"])
def test_who_waited_outside_comes_before_who_is_due_in_that_second(cluster: str | None) -> None:
    """By hand: job 2 follows 1 and is due at 10 s, when 4 is let in, for whom 3 has ended.

    Job 4 was due at 3 s, before job 2, so it starts first; in the log 2 is first.
    """
    jobs = jobs_of(
        [(0, 1, 10), (1, 2, 10), (2, 1, 8), (3, 2, 10)], 2, job_number=[1, 2, 3, 4],
        user_id=[1, 2, 3, 3], preceding_job=[-1, 1, -1, -1], think_time=[-1, 0, -1, -1],
    )  # fmt: skip
    rules = {"quota": "user:submitted=1", "dependencies": "closed-loop", "backfill_order": "fcfs"}
    for name, equal in (("QueueOrdering", np.zeros(3, np.float32)), ("JobSelection", 0)):
        env = SINGLE[name](**whole(jobs, cluster=cluster, window=3, **rules))
        seen = [step.info["window"].tolist() for step in play(env, lambda *_, it=equal: it)]
        assert [3, 1, -1] in seen
        assert env.result().start.tolist() == [0, 2, 20, 10]


@pytest.mark.parametrize("order", ["fcfs", "fairshare"])
def test_jobs_behind_the_window_come_in_order(order: str) -> None:
    """One job is seen, whatever its score: as by submission."""
    rules = {"dependencies": "after", "backfill_order": order}
    env = QueueOrdering(**whole(chained(100), window=1, **rules))
    play(env, lambda *_: np.zeros(1, np.float32))
    rules = {**env.scheduler_rules, "policy": "fcfs"}
    assert env.result().start.tolist() == hpcgym.simulate(chained(100), **rules).start.tolist()


# --- What is refused ------------------------------------------------------------------------------

QUOTA, AFTER, STOPS = "user:jobs=1", {"dependencies": "after"}, {"preemption": "queue:2>3"}
