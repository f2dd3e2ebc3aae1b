"""Snapshots: going back, going on, and environments side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import assume, given, settings
from drawing import strategies as st
from driving import (
    BUSY,
    NAMES,
    RULES,
    SINGLE,
    SLOW,
    VECTOR,
    assert_same,
    go_on,
    play,
    random_acts,
    visible_acts,
    whole,
)
from gymnasium.vector import AutoresetMode
from strategies import workloads

from hpcgym import simulate
from hpcgym.envs.job_selection import JobSelection
from hpcgym.workload import Workload

ids = pytest.mark.parametrize("name", NAMES)


def make(name: str, workload: Any = BUSY, **options: Any) -> Any:
    arguments = {"jobs": 60, "window": 6, **options}
    if name == "MixedPolicy":
        arguments.setdefault("interval", 3)
    return SINGLE[name](workload, **arguments)


@settings(SLOW, max_examples=120)
@given(workloads(), RULES, st.sampled_from(NAMES), st.integers(0, 25), st.integers(0, 2**16))
def test_what_follows_a_snapshot_follows_again(
    workload: Workload, rules: dict[str, Any], name: str, decisions: int, seed: int
) -> None:
    env = make(name, **whole(workload), **rules)
    acts = visible_acts(env, seed)
    begun = play(env, acts, most=decisions)
    assume(not begun[-1].terminated)
    saved = env.snapshot()
    first = go_on(env, acts, begun[-1].observation, begun[-1].info)
    starts = env.result().start.tolist()
    for others in (seed + 1, seed):
        observation, info = env.restore(saved)
        assert_same(observation, begun[-1].observation)
        assert info["time"] == begun[-1].info["time"]
        again = go_on(env, visible_acts(env, others), observation, info)
    assert_same(again, first)
    assert env.result().start.tolist() == starts


@ids
def test_a_snapshot_outlives_its_episode(name: str) -> None:
    env = make(name)
    acts = random_acts(env.action_space, 0)
    begun = play(env, acts, most=4, seed=1)
    saved, jobs = env.snapshot(), env.episode_workload
    first = go_on(env, acts, begun[-1].observation, begun[-1].info)
    for hide in (False, True):
        play(env, acts)  # another episode
        env.restore(env.snapshot(hide=hide))
        play(env, acts, most=2)
        if hide:
            env.restore(env.snapshot(hide=True))
        observation, info = env.restore(saved)
        assert_same(go_on(env, acts, observation, info), first)
        assert env.episode_workload.submit_time.tolist() == jobs.submit_time.tolist()
        assert first[-1].info["episode_name"] == env.snapshot().name


@ids
def test_a_reset_brings_back_what_was_hidden(name: str) -> None:
    env, plain = make(name), make(name)
    acts = random_acts(env.action_space, 0)
    play(env, acts, most=4, seed=1)
    env.restore(env.snapshot(hide=True))
    assert_same(play(env, acts, seed=2), play(plain, acts, seed=2))


def test_hidden_jobs_run_for_their_predictions() -> None:
    env = JobSelection(BUSY, jobs=80, window=80, estimate="ave2")
    acts = visible_acts(env, 0)
    play(env, acts, most=50, seed=3)
    before, submitted = env.result(), len(env.queued()) + int((env.result().start >= 0).sum())
    queued = env.queued()
    observation, info = env.restore(env.snapshot(hide=True))
    steps = go_on(env, acts, observation, info)
    after = env.result()
    assert len(after.start) == submitted < 80
    assert (after.start[:submitted] >= 0).all()
    assert after.run_time[queued].tolist() == before.predicted_run_time[queued].tolist()
    ended = (before.start >= 0) & (before.start + before.run_time <= before.start.max())
    rows = np.flatnonzero(ended[:submitted])
    assert after.run_time[rows].tolist() == before.run_time[rows].tolist()
    assert steps[-1].terminated


def test_what_had_easy_done_from_here() -> None:
    """The first job, always, is EASY: from any state one of its own leads to its schedule."""
    env = JobSelection(BUSY, jobs=80, window=6)
    env.reset(seed=3)
    for _ in range(30):
        env.step(0)
    saved = env.snapshot()
    for action in (3, 0):
        env.restore(saved)
        ended = False
        while not ended:
            ended = env.step(action)[2]
    expected = simulate(env.episode_workload, **env.scheduler_rules)
    assert env.result().start.tolist() == expected.start.tolist()


@ids
def test_interleaved_environments_are_two_separate_ones(name: str) -> None:
    alone = []
    for seed in (0, 1):
        env = make(name, estimate="ave2", correction="incremental")
        alone.append(play(env, random_acts(env.action_space, seed), seed=seed))
    envs = [make(name, estimate="ave2", correction="incremental") for _ in range(2)]
    both: list[list[Any]] = [[], []]
    acts = [random_acts(env.action_space, seed) for seed, env in enumerate(envs)]
    for seed, env in enumerate(envs):
        both[seed] += play(env, acts[seed], most=0, seed=seed)
    while not all(steps[-1].terminated for steps in both):
        for steps, env, act in zip(both, envs, acts, strict=True):
            if not steps[-1].terminated:
                last, number = steps[-1], len(steps) - 1
                steps += go_on(env, act, last.observation, last.info, most=1, first=number)
    assert_same(both, alone)


def test_what_is_hidden_before_the_first_submission_is_hidden_in_one_episode() -> None:
    env = VECTOR["MixedPolicy"](2, BUSY, jobs=12, window=6, interval="hour")
    env.reset(seed=0)
    env.restore(env.snapshot(hide=True))
    assert env.simulations.hides(0)
    for _ in range(2):
        env.step(np.zeros(env.action_space.shape))
    assert not env.simulations.hides(0)
    assert env.simulations.rows(0)[1] == 12


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
@ids
def test_a_vector_goes_on_alike(name: str, mode: AutoresetMode) -> None:
    options = {"interval": 3} if name == "MixedPolicy" else {}
    env = VECTOR[name](3, BUSY, jobs=12, window=6, autoreset_mode=mode, **options)

    def drive(first: int) -> list[Any]:
        seen: list[Any] = []
        for k in range(first, first + 40):
            env.action_space.seed(k)
            seen.append(env.step(env.action_space.sample()))
            for values in seen[-1][4].get("metrics", {}).values():
                values[~seen[-1][4]["_metrics"]] = 0  # anything may stand there
            if mode == AutoresetMode.DISABLED and seen[-1][2].any():
                seen.append(env.reset(options={"reset_mask": seen[-1][2].copy()}))
        return seen

    before = env.reset(seed=0)
    shown = before[0]
    for first in (5, 40):
        saved = env.snapshot()
        one = drive(first)
        assert_same(env.restore(saved)[0], shown)
        assert_same(drive(first), one)
        shown = one[-1][0]
    env.restore(saved)
    observation, info = env.restore(saved)
    assert set(info) >= set(before[1])
    assert observation["mask"].shape == (3, 6)
