"""Submit: the shapes of a user's jobs, their schedule, their rewards, and what stays hidden."""

from __future__ import annotations

import pickle
from math import ceil
from typing import Any

import numpy as np
import pytest
from driving import BUSY, assert_same
from gymnasium.utils.env_checker import check_env
from mistakes import mistakes_of

from hpcgym import HpcgymError, simulate
from hpcgym.envs import Submit, SubmitVector
from hpcgym.envs.submitters import SUBMITTERS, Submitter
from hpcgym.machine.speedups.moldable import amdahl, downey
from hpcgym.workload import Workload, load_workload

#: Jobs of few users, who often request just what their jobs take.
LOG = load_workload("lublin:jobs=400,processors=64,seed=3,load=1.5")
LOG = LOG.with_columns(
    user_id=np.arange(400) % 5,
    requested_time=np.maximum(LOG.run_time + np.arange(400) % 3 * 600, 1),
)
#: Many narrow jobs at once: what they may use is more than any of them asks for.
NARROW = LOG.with_columns(
    requested_processors=np.minimum(LOG.requested_processors, 4), submit_time=LOG.submit_time // 60
)
ALONE: dict[str, Any] = {"part": "all", "start": "empty", "arrivals": "stop", "horizon": None}
WIDTHS, REQUESTS = (0.25, 0.5, 1.0, 2.0, 4.0), (0.25, 0.5, 1.0)


def downey_by_hand(n: int, a: float) -> float:
    """Downey 1997 with a variance of 1."""
    return 2 * n * a / (n + 2 * a - 1) if n <= 2 * a - 1 else a


def shaped(log: Workload, row: int, action: int) -> tuple[int, int, int]:
    """Return processors, full run time and request [s] of a job by an action, one by one."""
    logged, asked = int(log.requested_processors[row]), int(log.requested_time[row])
    run = min(int(log.run_time[row]), asked)
    n = min(max(int(WIDTHS[action // 3] * logged + 0.5), 1), log.processors)
    if n != logged:
        times = downey_by_hand(logged, 2.0 * logged) / downey_by_hand(n, 2.0 * logged)
        run, asked = max(ceil(run * times), 1), max(ceil(asked * times), 1)
    return n, run, max(ceil(asked * REQUESTS[action % 3]), 1)


def played(env: Any, seed: int, **reset: Any) -> tuple[list[int], list[float]]:
    """Play an episode with random actions; return these and the rewards."""
    rng, actions, rewards, over = np.random.default_rng(seed), [], [], False
    env.reset(seed=seed, **reset)
    while not over:
        actions.append(int(rng.integers(15)))
        _, reward, terminated, truncated, _ = env.step(actions[-1])
        rewards.append(reward)
        over = terminated or truncated
    return actions, rewards


#: Rules that look at what jobs ask for: beforehand, as they come, at each pass, and beside others.
RULES: tuple[dict[str, Any], ...] = (
    {},
    {"policy": "saf"},
    {"backfill_order": "sjbf", "policy": "f1"},
    {"estimate": "ave2", "policy": "f3"},
    {"estimate": "e-loss", "policy": "saf"},
    {"estimate": "typical-ratio", "policy_estimate": "user-ratio", "policy": "saf"},
    {"policy_estimate": "typical-ratio", "policy": "log(1 + wait) - area"},
    {"policy": "wait / requested - sqrt(processors)", "backfill_order": "-log(1 + area)"},
    {"policy": "wait * free - requested * user_running", "backfill_order": "saf"},
    {"policy": "-last_run - processors", "estimate": "typical-ratio"},
    {"quota": "user:processors=70+jobs=3", "policy": "saf"},
    {"quota": "all:processor-minutes=16000", "estimate": "user-ratio"},
    {"quota": "user:jobs=4+processor-minutes=16000", "policy": "area - log(1 + wait)"},
)


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_the_schedule_is_that_of_the_whole_log_with_these_shapes(
    seed: int, rules: dict[str, str]
) -> None:
    """The slow way: write what each job asks for into the log, and simulate all of it."""
    log = NARROW if "minutes" in rules.get("quota", "") else LOG
    env = Submit(log, episodes="whole", user=seed, **ALONE, **rules)
    actions, rewards = played(env, seed)
    own = np.flatnonzero(log.user_id == seed)
    assert len(actions) == len(own) == 80
    columns = {
        name: log.columns[name].copy()
        for name in ("requested_processors", "run_time", "requested_time")
    }
    for row, action in zip(own.tolist(), actions, strict=True):
        for column, value in zip(columns.values(), shaped(log, row, action), strict=True):
            column[row] = value
    jobs = log.with_columns(**columns)
    expected = simulate(jobs, **env.scheduler_rules)
    np.testing.assert_array_equal(env.result().start, expected.start)
    np.testing.assert_array_equal(env.counted(), own)
    if "quota" in rules:
        free = simulate(jobs, **env.scheduler_rules | {"quota": None})
        assert (free.start != expected.start).any()
    total, again = 0, 0
    for row in own.tolist():
        wait, work = int(expected.wait[row]), int(columns["run_time"][row])
        asked = int(columns["requested_time"][row])
        total += wait + min(work, asked) + (wait + work if work > asked else 0)
        again += work > asked
    assert again > 10
    assert sum(rewards) == pytest.approx(-total / 3600 / len(own), rel=1e-12)


def test_jobs_as_logged_make_the_schedule_of_the_log() -> None:
    env = Submit(BUSY, episodes="whole", **ALONE)
    env.reset(seed=0)
    over, as_logged = False, env.shapes.place(1, 1)
    assert env.shapes.factors(as_logged) == (1.0, 1.0)
    while not over:
        *_, over, _, _ = env.step(as_logged)
    np.testing.assert_array_equal(env.result().start, simulate(BUSY, "easy").start)


@pytest.mark.parametrize("given", [ALONE, {"part": "all"}])
def test_many_are_as_single_ones(given: dict[str, Any]) -> None:
    many = SubmitVector(3, LOG, jobs=60, **given)
    single = [Submit(LOG, jobs=60, **given) for _ in range(3)]
    seen, _ = many.reset(seed=5)
    for e, env in enumerate(single):
        assert_same({key: part[e] for key, part in seen.items()}, env.reset(seed=5 + e)[0])
    rng, done = np.random.default_rng(0), np.zeros(3, np.bool_)
    for _ in range(40):
        actions = rng.integers(0, 15, 3)
        seen, rewards, terminated, truncated, _ = many.step(actions)
        for e, env in enumerate(single):
            if done[e]:
                assert_same({key: part[e] for key, part in seen.items()}, env.reset()[0])
                continue
            one, reward, *ends, _ = env.step(int(actions[e]))
            assert_same({key: part[e] for key, part in seen.items()}, one)
            assert (reward, *ends) == (rewards[e], terminated[e], truncated[e])
        done = terminated | truncated


@pytest.mark.parametrize("rules", [{}, *RULES[5:7], RULES[8], RULES[10]], ids=str)
@pytest.mark.parametrize("pickled", [False, True])
def test_what_is_tried_after_a_snapshot_does_not_change_it(
    pickled: bool, rules: dict[str, Any]
) -> None:
    env, rng = Submit(LOG, jobs=150, **ALONE, **rules), np.random.default_rng(1)
    env.reset(seed=1)
    for _ in range(8):
        env.step(int(rng.integers(15)))
    saved, branches = env.snapshot(), []
    for branch in range(3):
        actions = np.random.default_rng(branch % 2).integers(0, 15, 12)
        rewards = [env.step(int(action))[1] for action in actions]
        branches.append((rewards, env.result().start, env.episode_workload.run_time))
        env.restore(pickle.loads(pickle.dumps(saved)) if pickled else saved)
    for first, third, second in zip(branches[0], branches[2], branches[1], strict=True):
        np.testing.assert_array_equal(first, third)
        assert not np.array_equal(first, second)


def test_the_future_is_hidden() -> None:
    """Other run times of jobs that have not ended, and other jobs to come, are not seen."""
    env, half = Submit(LOG, episodes="whole", user=0, **ALONE), 40
    seen = [env.reset(seed=0)[0], *(env.step(8)[0] for _ in range(half))]
    start, now, row = env.result().start, env.time, env.next_job
    run = LOG.run_time.copy()
    unknown = (start < 0) | (start + run > now)
    run[unknown] = np.maximum(LOG.requested_time[unknown] // 2, 1)
    width = LOG.requested_processors.copy()
    width[row + 1 :] = 1
    other = LOG.with_columns(run_time=run, requested_processors=width)
    assert unknown[: row + 1].sum() > 3
    env = Submit(other, episodes="whole", user=0, **ALONE)
    again = [env.reset(seed=0)[0], *(env.step(8)[0] for _ in range(half))]
    for one, two in zip(seen, again, strict=True):
        assert_same(one, two)


def test_it_is_as_gymnasium_has_environments() -> None:
    check_env(Submit(LOG, jobs=60), skip_render_check=True)
    env = Submit(LOG, jobs=60, observation="flat", window=4)
    assert env.observation_space.shape == (72 + 9 * 4,)
    assert env.observation_space.contains(env.reset(seed=0)[0])


def test_shapes_that_are_shown_are_those_that_can_be_chosen() -> None:
    env = Submit(LOG, episodes="whole", user=1, **ALONE)
    seen, _ = env.reset(seed=0)
    for action in (0, 7, 14):
        row, free = env.next_job, env.free
        assert LOG.user_id[row] == 1
        assert env.time == LOG.submit_time[row] - 1
        for k in range(15):
            n, _, asked = shaped(LOG, row, k)
            shown = [n / 64, asked / (asked + 3600), n <= free]
            np.testing.assert_allclose(seen["shapes"][k], shown, rtol=1e-6)
        seen = env.step(action)[0]
        assert env.episode_workload.requested_processors[row] == shaped(LOG, row, action)[0]


def test_models_of_speedups() -> None:
    # Downey 1997: 4 processors of a job of average parallelism 8
    assert downey(4, 8.0, 1.0) == pytest.approx(2 * 4 * 8 / 19)
    assert downey(4, 8.0, 0.0) == 4
    assert downey(100, 8.0, 1.0) == downey(15, 8.0, 1.0) == 8
    assert downey(1, 8.0, 0.5) == downey(1, 8.0, 2.0) == 1
    assert downey(8, 8.0, 0.5) == pytest.approx(64 / (8 + 0.25 * 7))  # both equations meet there
    assert downey(15, 8.0, 0.5) == pytest.approx(8)
    assert amdahl(10, 0.1) == pytest.approx(10 / 1.9)  # 1 / (0.1 + 0.9 / 10)


def test_jobs_of_nobody_known_are_nobodys() -> None:
    """The user of an episode is the one with most jobs in it, of those that the log tells."""
    users = np.where(np.arange(len(LOG)) % 4, -1, 2)
    env = Submit(LOG.with_columns(user_id=users), jobs=40, **ALONE)
    env.reset(seed=0)
    assert env.episode_workload.user_id[env.next_job] == 2
    env = Submit(LOG.with_columns(user_id=np.where(np.arange(len(LOG)), -1, 2)), jobs=40, **ALONE)
    with pytest.raises(HpcgymError, match="an episode does not tell whose its jobs are"):
        env.reset(seed=0, options={"slice": "window 0001"})


@pytest.mark.parametrize("name", SUBMITTERS)
def test_submitters_act(name: str) -> None:
    env = Submit(LOG, jobs=40, user=2, **ALONE)
    submitter, shapes, over = Submitter(name, futures=4), [], False
    observation, info = env.reset(seed=0)
    submitter.begin(env)
    while not over:
        shapes.append(submitter.act(observation, info))
        observation, _, over, _, info = env.step(shapes[-1])
    known = {"as-logged": {8}, "smallest": {2}, "forecast": {*range(15)}}
    assert set(shapes) <= known[name]


test_mistakes = mistakes_of(globals())
