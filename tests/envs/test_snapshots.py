"""Snapshots: going back, going on, and environments side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import (
    BUSY,
    NAMES,
    SINGLE,
    VECTOR,
    assert_same,
    go_on,
    play,
    random_acts,
    visible_acts,
)

from hpcgym import simulate
from hpcgym._engine import Simulation
from hpcgym.envs.job_selection import JobSelection

ids = pytest.mark.parametrize("name", NAMES)


def make(name: str, workload: Any = BUSY, **options: Any) -> Any:
    arguments = {"jobs": 60, "window": 6, **options}
    if name == "MixedPolicy":
        arguments.setdefault("interval", 3)
    return SINGLE[name](workload, **arguments)


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


@ids
def test_a_simulation_goes_on_with_its_environment(name: str) -> None:
    """It is one as others are, and is there as long as somebody looks at it."""
    env = VECTOR[name](2, BUSY, jobs=40, window=8)
    with pytest.raises(ValueError, match="no episode has begun"):
        env.simulations.simulation(0)
    env.reset(seed=1)
    live = env.simulations.simulation(1)
    assert isinstance(live, Simulation)
    before = live.time
    env.step(env.action_space.sample())
    assert live is env.simulations.simulation(1)
    assert live.time > before
    del env
    assert len(live.schedule()["start"]) == 40
