"""How much of an episode is over, as observations tell it: by hand, and nothing of jobs to come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import BUSY, CROWD, EVERY, SINGLE, jobs_of, play, visible_acts, whole

import hpcgym
from hpcgym.units import WEEK_S

HOUR = np.float32(3600)
pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")


def arguments_of(name: str) -> dict[str, Any]:
    """Windows of 20 jobs, with a horizon and later jobs where an environment has them."""
    if name in ("PowerCap", "EnergyBudget"):
        return {"jobs": 20, "workload": BUSY, "interval": 2}
    if name == "CoSchedule":
        return {"jobs": 20, "window": 6}
    around = {"start": "warm", "arrivals": "continue", "horizon": "9h"}
    return {"jobs": 20, "workload": CROWD, "window": 6, **around}


@pytest.mark.parametrize("name", EVERY)
def test_windows_count_the_jobs_that_have_started(name: str) -> None:
    env = SINGLE[name](**arguments_of(name))
    counted, shares = [], []

    def look(number: int, observation: Any, info: dict[str, Any]) -> Any:
        now, jobs = env.simulations.batch.episode_state[0], env.simulations.jobs(0)
        first, last = int(now["counts_first"]), int(now["counting"])
        start = env.simulations.simulation(0).schedule()["start"][first:last]
        share, left = observation["progress"]
        assert share == np.float32((start >= 0).sum() / 20)
        if "horizon" in arguments_of(name):
            then = np.float32(int(jobs["submit"][first]) + 9 * 3600 - info["time_s"])
            assert left == pytest.approx(then / (then + HOUR))
        else:
            assert left == 1
        counted.append(last - first)
        shares.append(share)
        return acts(number, observation, info)

    acts = visible_acts(env, 3)
    steps = play(env, look, seed=2)
    assert set(counted) == {20}
    assert len(set(shares)) > 2 or name in ("PowerCap", "EnergyBudget")
    assert not steps[-1].terminated or steps[-1].observation["progress"][0] == 1


@pytest.mark.parametrize("start", ["empty", "warm"])
def test_weeks_tell_of_their_time(start: str) -> None:
    """From the boundary of the trace's weeks on; after its end all of the week is over."""
    log = hpcgym.load_workload("lublin:jobs=4000,processors=64,load=0.6,seed=3")
    env = SINGLE["JobSelection"](log, episodes="weeks", start=start, jobs=1)
    steps = play(env, lambda *_: 0, options={"slice": "week 2"})
    begin = log.first_submit_s + 2 * WEEK_S
    for step in steps:
        passed = np.clip(step.info["time_s"] - begin, 0, WEEK_S)
        assert step.observation["progress"].tolist() == [np.float32(passed / WEEK_S), 1.0]


@pytest.mark.parametrize("episodes", ["whole", "stream"])
def test_ends_that_nobody_knows_are_not_shown(episodes: str) -> None:
    env = SINGLE["JobSelection"](BUSY.take(slice(0, 50)), episodes=episodes)
    steps = play(env, lambda *_: 0)
    assert {tuple(step.observation["progress"].tolist()) for step in steps} == {(0.0, 1.0)}
    rows = play(env, lambda *_: 0, options={"start": 10, "jobs": 5})  # as evaluations name halves
    assert {tuple(step.observation["progress"].tolist()) for step in rows} == {(0.0, 1.0)}


@pytest.mark.parametrize("kind", ["whole", "stream", "weeks"])
def test_later_jobs_do_not_show(kind: str) -> None:
    """Two logs that differ in how many jobs come after a time, and in when the last one comes."""
    early = [(0, 1, 10), *[(WEEK_S + 60 * k, 3, 600) for k in range(20)]]
    logs = [
        jobs_of([*early, *[(2 * WEEK_S - gap - k, 1, 10) for k in reversed(range(more))]], 4)
        for gap, more in ((50_000, 1), (3000, 9))
    ]
    seen = []
    for log in logs:
        env = SINGLE["QueueOrdering"](log, episodes=kind, window=4, horizon=None)
        steps = play(env, lambda *_: np.zeros(4))
        known = [step for step in steps if step.info["time_s"] < WEEK_S + 10_000]
        seen.append([step.observation["progress"].tolist() for step in known])
    assert seen[0] == seen[1]
    assert len(seen[0]) > 10


def test_a_hidden_future_shows_the_same_progress() -> None:
    env = SINGLE["Backfill"](**arguments_of("Backfill"))
    for most in (3, 8):
        last = play(env, visible_acts(env, 1), most=most, seed=1)[-1]
        hidden = env.restore(env.snapshot(hide=True))[0]
        assert hidden["progress"].tolist() == last.observation["progress"].tolist()


def test_with_preemption_it_is_jobs_that_have_ended() -> None:
    """By hand: job 0 is stopped at 10 s, and begins again at 13 s."""
    jobs = jobs_of([(0, 2, 11), (5, 1, 30), (10, 1, 5), (12, 1, 1)], 2, queue=[1, 1, 2, 2])
    given = {**whole(jobs), "episodes": "windows", "jobs": 4}
    env = SINGLE["QueueOrdering"](**given, preemption="queue:2>1,requeue", window=3)
    steps = play(env, lambda *_: np.array([3, 2, 1], np.float32))
    for step in steps:
        assert step.observation["progress"][0] in (0.0, 0.25, 0.5, 0.75, 1.0)
    assert steps[0].observation["progress"][0] == 0
    assert steps[-1].observation["progress"][0] == 1
