"""Environments whose schedule says when jobs come: schedules of the oracles, what is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import SINGLE, SLOW, play, whole
from node_driving import anywhere, by_reference
from restrictions import DRAWN
from strategies import WEIGHTS, workloads
from submission_strategies import chains
from test_restricted_environments import SEEDS, chosen_by, scores, windows_of

import hpcgym
from hpcgym.envs.job_selection import JobSelection
from hpcgym.envs.mixed_policy import MixedPolicy
from hpcgym.envs.queue_ordering import QueueOrdering
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.rules import Scheduler
from hpcgym.sweep import BatchSimulator
from hpcgym.workload.model import Workload

pytestmark = [*DRAWN, pytest.mark.slow]
RULES = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["easy", "none"]),
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "lexp"]),
        "estimate": st.sampled_from(["requested", "clairvoyant"]),
    }
)
CHOOSING = st.sampled_from(["JobSelection", "QueueOrdering"])


def bound(data: st.DataObject, workload: Workload) -> tuple[str | None, list[Any]]:
    """Draw a bound on the submitted jobs of a user, or none, as a text and as the oracle has it."""
    most = data.draw(st.sampled_from([None, 1, 2]))
    if most is None:
        return None, []
    return f"user:submitted={most}", [(workload.user_id.tolist(), most)]


def order_of(seed: int) -> Any:
    """Return the order of the agent's: equal jobs as they came."""
    return lambda job, now: scores(seed, [job.number], now)[0]


def assert_schedule(result: hpcgym.Result, expected: list[Any]) -> None:
    """Compare schedules, whose jobs stand in the order in which they came, and prove one."""
    order = sorted(expected, key=lambda job: (job.submit, job.number))
    assert result.workload.job_number.tolist() == [job.number + 1 for job in order]
    assert result.workload.submit_time.tolist() == [job.submit for job in order]
    assert result.start.tolist() == [job.start for job in order]
    assert result.backfilled.tolist() == [job.backfilled for job in order]
    hpcgym.validate_schedule(result)


@settings(SLOW, max_examples=200)
@given(st.data(), anywhere(), RULES, SEEDS, CHOOSING)
def test_any_order_of_the_queue(
    data: st.DataObject, place: Any, rules: dict[str, Any], seed: int, name: str
) -> None:
    cluster = place[0]
    workload, dependencies, follows = data.draw(chains(place[1]))
    quota, bounds = bound(data, workload)
    windows, closed = ([], None) if cluster else windows_of(data, workload.processors)
    kept = {"quota": quota, "maintenance": closed, "dependencies": dependencies}
    env = SINGLE[name](**whole(workload, cluster=cluster, window=40, **kept, **rules))
    steps = play(env, chosen_by(name, seed, 40))
    more = {"follows": follows, "places": bounds, "windows": windows}
    expected = by_reference(cluster, workload, policy=order_of(seed), **more, **rules)
    assert_schedule(env.result(), expected)
    mean = sum(max((j.end - j.submit) / max(j.end - j.start, 10), 1) for j in expected)
    assert sum(step.reward for step in steps[1:]) == pytest.approx(-mean / len(expected))


@settings(SLOW, max_examples=100)
@given(
    st.data(), workloads(), RULES, st.tuples(*[WEIGHTS] * 6).filter(any),
    st.sampled_from(["pass", "1h", "episode"]),
)  # fmt: skip
def test_weights(
    data: st.DataObject, workload: Workload, rules: dict[str, Any], vector: Any, interval: Any
) -> None:
    """Ties are in the order of the log, as where waiting changes orders."""
    workload, dependencies, follows = data.draw(chains(workload))
    env = MixedPolicy(**whole(workload, interval=interval, dependencies=dependencies, **rules))
    weights = np.array(vector)
    weights = weights / 2.0 ** np.ceil(np.log2(np.abs(weights).sum()))
    play(env, lambda *_: weights)
    normalised = (weights / np.abs(weights).sum()).tolist()
    changing = normalised[4] != 0 or (
        normalised[2] != 0 and any((*normalised[:2], *normalised[3:]))
    )
    if not changing:  # else the slow simulator has such ties as they came
        return
    expected = simulate_pool(
        jobs_of(workload), workload.processors, policy=tuple(normalised), follows=follows, **rules
    )
    assert_schedule(env.result(), expected)


def chained(jobs: int = 300) -> Workload:
    """Return jobs of which half follow others."""
    trace = hpcgym.load_workload(f"lublin:jobs={jobs},processors=64,seed=5,load=1.3")
    n, rng = len(trace), np.random.default_rng(0)
    before = np.arange(n) - rng.integers(1, 6, n)
    follows = (before >= 0) & (rng.random(n) < 0.5)
    return trace.with_columns(
        job_number=np.arange(n) + 1,
        preceding_job=np.where(follows, before + 1, -1),
        think_time=rng.integers(-1, 500, n),
        wait_time=rng.integers(0, 900, n),
    )


FOLLOWING: tuple[dict[str, Any], ...] = (
    {"dependencies": "after"},
    {"dependencies": "closed-loop", "quota": "user:jobs=9"},
    {"quota": "all:submitted=30"},
)


@pytest.mark.parametrize("rules", FOLLOWING)
@pytest.mark.parametrize("paid", ["end", "waiting"])
def test_pay_adds_up_however_it_is_paid(rules: dict[str, Any], paid: str) -> None:
    env = JobSelection(**whole(chained(120), paid=paid, window=8, **rules))
    steps = play(env, lambda _, __, info: int(np.argmax(info["action_mask"])))
    total = sum(step.reward for step in steps[1:])
    assert total == pytest.approx(-env.result().metrics["mean_bsld"])


def three() -> Workload:
    """Return jobs of 10 s, of 2 of 2 processors each: 7 follows 5, and 9 comes at 2 s."""
    return Workload.from_columns(
        {
            "job_number": [5, 7, 9],
            "submit_time": [0, 1, 2],
            "run_time": [10] * 3,
            "requested_time": [10] * 3,
            "requested_processors": [2] * 3,
            "preceding_job": [-1, 5, -1],
            "think_time": [-1, 0, -1],
        },
        processors=2,
    )


def test_what_has_not_come_is_not_seen() -> None:
    """By hand: job 7 comes at 10 s, behind job 9, and both can be chosen then."""
    env = JobSelection(**whole(three(), window=3, dependencies="after"))
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


def in_one_second() -> Workload:
    """Return four jobs: 2 follows 1 and is due at 10 s, when 4 is let in, for whom 3 has ended."""
    return Workload.from_columns(
        {
            "job_number": [1, 2, 3, 4],
            "submit_time": [0, 1, 2, 3],
            "run_time": [10, 10, 8, 10],
            "requested_time": [10, 10, 8, 10],
            "requested_processors": [1, 2, 1, 2],
            "user_id": [1, 2, 3, 3],
            "preceding_job": [-1, 1, -1, -1],
            "think_time": [-1, 0, -1, -1],
        },
        processors=2,
    )


@pytest.mark.parametrize("cluster", [None, "1x1x2"])
def test_who_waited_outside_comes_before_who_is_due_in_that_second(cluster: str | None) -> None:
    """By hand: job 4 was due at 3 s, before job 2, so it starts first; in the log 2 is first."""
    rules = {"quota": "user:submitted=1", "dependencies": "closed-loop", "backfill_order": "fcfs"}
    expected = hpcgym.simulate(in_one_second(), cluster=cluster, **rules)
    assert expected.given is not None
    assert expected.start.tolist() == [0, 2, 20, 10]  # of jobs 1, 3, 2 and 4
    slow = simulate_pool(
        jobs_of(in_one_second()), 2, backfill="easy", follows={1: ({0}, 0, 0)},
        places=[([1, 2, 3, 3], 1)],
    )  # fmt: skip
    assert [job.start for job in slow] == [0, 20, 2, 10]
    for name, equal in (("QueueOrdering", np.zeros(3, np.float32)), ("JobSelection", 0)):
        env = SINGLE[name](**whole(in_one_second(), cluster=cluster, window=3, **rules))
        seen = [step.info["window"].tolist() for step in play(env, lambda *_, it=equal: it)]
        assert [3, 1, -1] in seen
        assert env.result().start.tolist() == [0, 2, 20, 10]
    batch = BatchSimulator(
        [in_one_second()], ["wait"], Scheduler(**rules),
        cluster=expected.cluster,
    )  # fmt: skip
    found = batch.run([[1.0]])
    assert found.ravel().tolist() == pytest.approx([expected.metrics["mean_bsld"]])


def test_the_window_shows_who_came_first_and_last() -> None:
    jobs = chained(60).with_columns(requested_processors=[64] * 60)
    env = JobSelection(**whole(jobs, window="split:4", dependencies="after"))
    seen = 0

    def act(_: int, __: Any, info: dict[str, Any]) -> int:
        nonlocal seen
        queue = env.queued().tolist()
        shown = [row for row in info["window"].tolist() if row >= 0]
        assert shown == (queue if len(queue) <= 4 else [*queue[:2], *queue[-2:]])
        seen += len(queue) > 4
        return 0

    play(env, act)
    assert seen > 0


def test_jobs_behind_the_window_come_in_order() -> None:
    """One job is seen, whatever its score: as by submission."""
    env = QueueOrdering(**whole(chained(100), window=1, dependencies="after"))
    play(env, lambda *_: np.zeros(1, np.float32))
    rules = {**env.scheduler_rules, "policy": "fcfs"}
    assert env.result().start.tolist() == hpcgym.simulate(chained(100), **rules).start.tolist()


def test_an_order_by_usage_beside_moved_jobs() -> None:
    given = {"dependencies": "after", "backfill_order": "fairshare"}
    env = QueueOrdering(**whole(chained(100), window=1, **given))
    play(env, lambda *_: np.zeros(1, np.float32))
    rules = {**env.scheduler_rules, "policy": "fcfs"}
    assert env.result().start.tolist() == hpcgym.simulate(chained(100), **rules).start.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": "warm"}, "start='warm' does not go with dependencies='after'"),
        ({"warmup": "1h"}, "not go with dependencies='after': they go by submissions"),
        ({"episodes": "stream"}, "not go with dependencies='after': they go by submissions"),
        ({"reservation": "kept"}, "reservation='kept' does not go with quota, maintenance or dep"),
    ],
)
def test_what_does_not_go_with_it(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        JobSelection(chained(80), dependencies="after", **{"jobs": 40, **arguments})


def test_weights_by_submissions_are_refused() -> None:
    with pytest.raises(HpcgymError, match="interval=5 does not go with dependencies='after'"):
        MixedPolicy(chained(80), dependencies="after", interval=5)
    with pytest.raises(HpcgymError, match="feature 'f3' looks at when the log says"):
        MixedPolicy(chained(80), dependencies="after", policy_features=("area", "f3"))
