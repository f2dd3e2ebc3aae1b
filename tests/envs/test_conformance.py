"""What Gymnasium and Stable-Baselines3 expect of an environment, for each id and option."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from driving import (
    BUSY,
    CHASSIS,
    LIMITED,
    LOADED,
    NAMES,
    SINGLE,
    Step,
    assert_same,
    go_on,
    label,
    play,
    random_acts,
)
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, TimeLimit

import hpcgym
from hpcgym import Cluster
from hpcgym.envs import IDS, register
from hpcgym.scheduler.policies import FEATURES
from hpcgym.workload import load_workload

ids = pytest.mark.parametrize("name", NAMES)
all_ids = pytest.mark.parametrize("name", [*NAMES, *LIMITED])


def waits_halved(view: Any) -> float:
    return -0.5 * float(view.wait_s.sum())


def share_of_cube(jobs: Any) -> Any:
    return jobs.processors / 64


COMMON: dict[str, dict[str, Any]] = {
    "flat": {"observation": "flat"},
    "no backfilling": {"backfill": "none"},
    "backfill order by name": {"backfill_order": "saf"},
    "backfill order by weights": {"backfill_order": (0, 0, 1, 0, 0.5, -0.1)},
    "backfill order sjbf": {"backfill_order": "sjbf"},
    "ave2": {"estimate": "ave2", "correction": "recursive-doubling"},
    "ave2 in steps": {"estimate": "ave2", "correction": "incremental"},
    "clairvoyant": {"estimate": "clairvoyant"},
    "predicted": {
        "estimate": "e-loss",
        "policy_estimate": "user-ratio",
        "correction": "predicted-again",
        "features": ["predicted", "policy_time"],
    },
    "per-event": {"passes": "per-event"},
    "wait": {"reward": "wait"},
    "energy": {"reward": "energy", "cluster": Cluster(64, 10.0, 100.0)},
    "mix": {"reward": {"bsld": 0.7, "energy": 0.3}},
    "function": {"reward": waits_halved},
    "one feature": {"features": ["wait"]},
    "features in another order": {"features": ("fits", "area", "expansion")},
    "own feature": {"features": {"wait": None, "cube": share_of_cube}},
    "a window of one": {"window": 1},
    "larger machine": {"processors": 100},
    "train": {"part": "train", "train_share": 0.3},
    "test": {"part": "test"},
    "a machine that is not empty": {"start": "warm"},
    "jobs that go on to come": {"start": "saf", "warmup": "1h", "arrivals": "continue",
                                "horizon": "6h", "paid": "end"},
    "waiting costs at once": {"paid": "waiting", "horizon": "2h", "reward": "bsld/easy"},
    "stream": {"episodes": "stream", "part": "train", "train_share": 0.1},
    "both ends": {"window": "split:5", "reward": "log_bsld"},
    "the longest wait": {"reward": {"bsld": 0.5, "max_wait": 0.5}},
    "whole": {"episodes": "whole", "part": "train", "train_share": 0.1},
}  # fmt: skip
OPTIONS: list[Any] = [
    *[(name, {}) for name in NAMES],
    *[
        # what predicts by formulas compiles much
        pytest.param(name, options, marks=[pytest.mark.slow] * ("policy_estimate" in options))
        for options in COMMON.values()
        for name in NAMES
    ],
    ("JobSelection", {"reservation": "kept"}),
    ("JobSelection", {"skip_forced": True, "reservation": "kept", "backfill": "none"}),
    ("MixedPolicy", {"scale": "spread"}),
    ("JobSelection", {"reservation": "kept", "backfill": "none", "observation": "flat"}),
    *[
        ("MixedPolicy", {"interval": interval})
        for interval in ("pass", "hour", "6h", "day", "week", "episode", 1, 10)
    ],
    ("MixedPolicy", {"policy_features": tuple(FEATURES)}),
    ("MixedPolicy", {"policy_features": ("area", "wait", "unicef")}),
    *[
        (name, options)
        for name in LIMITED
        for options in (
            {},
            {"observation": "flat"},
            {"observation": "flat", "window": 1, "workload": LOADED},
            {"workload": LOADED, "cluster": CHASSIS, "interval": 3, "reward": {"energy": 1}},
            {"workload": LOADED, "policy_features": tuple(FEATURES), "controls": ["nodes"]},
            {"controls": (), "policy_features": ["area"], "power": "energy-bud"},
            {"workload": LOADED, "estimate": "ave2", "allocation": "contiguous", "reward": "wait"},
        )
    ],
]


def make(name: str, **options: Any) -> Any:
    arguments = {"workload": BUSY, "jobs": 25, "window": 9, **options}
    if name not in ("JobSelection", "QueueOrdering"):
        arguments.setdefault("interval", 4)
    return gymnasium.make(f"hpcgym/{name}-v0", **arguments)


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=label)
def test_gymnasiums_check(name: str, options: dict[str, Any]) -> None:
    env = make(name, disable_env_checker=False, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
        steps = play(env, random_acts(env.action_space, 0))  # with the checks of gymnasium.make
    assert all(env.observation_space.contains(step.observation) for step in steps)
    assert all(isinstance(step.reward, float) for step in steps)


@pytest.mark.parametrize("episodes", ["weeks", "months"])
@ids
def test_gymnasiums_check_of_long_episodes(name: str, episodes: str) -> None:
    workload = load_workload("lublin:jobs=5000,processors=32,seed=2")
    if episodes == "months":
        submit = workload.submit_time
        workload = workload.with_columns(submit_time=submit * 8)
    env = make(name, workload=workload, episodes=episodes)
    check_env(env.unwrapped, skip_render_check=True)


@all_ids
def test_a_vector_reward_is_in_its_space(name: str) -> None:
    env = SINGLE[name](BUSY, jobs=25, window=9, reward=["bsld", "energy"])
    assert env.reward_space.shape == (2,)
    steps = play(env, random_acts(env.action_space, 0))
    assert all(env.reward_space.contains(step.reward) for step in steps[1:])
    made = make(name, reward=["bsld", "energy"], disable_env_checker=True)
    assert made.unwrapped.reward_space == env.reward_space
    play(made, random_acts(made.action_space, 0))


@pytest.mark.parametrize("observation", ["dict", "flat"])
@all_ids
def test_the_check_of_stable_baselines(name: str, observation: str) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    env = make(name, observation=observation)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # it would have images or vectors, and suggests the flat form
        warnings.filterwarnings("ignore", "Your observation jobs has an unconventional shape")
        checker.check_env(env.unwrapped, skip_render_check=True)


@all_ids
def test_the_flat_form_has_the_same_numbers(name: str) -> None:
    fields, flat = make(name), make(name, observation="flat")
    acts = random_acts(fields.action_space, 1)
    for one, other in zip(play(fields, acts, seed=5), play(flat, acts, seed=5), strict=True):
        keys = ["cluster", "queue", "time", "jobs", "mask"]
        keys += ["power"] if name in LIMITED else []
        assert set(keys) == set(one.observation)
        parts = [one.observation[key].ravel() for key in keys]
        assert np.concatenate(parts).astype(np.float32).tolist() == other.observation.tolist()


@all_ids
def test_arrays_are_new_at_each_step(name: str) -> None:
    for observation in ("dict", "flat"):
        env = make(name, observation=observation)
        steps = play(env, random_acts(env.action_space, 0), seed=1)
        again = play(env, random_acts(env.action_space, 0), seed=1)
        assert_same(steps, again)  # and so nothing has been overwritten


@all_ids
def test_seeds(name: str) -> None:
    env = make(name)
    first = [env.reset(seed=3)[1]["time"], *(env.reset()[1]["time"] for _ in range(5))]
    second = [env.reset(seed=3)[1]["time"], *(env.reset()[1]["time"] for _ in range(5))]
    assert first == second
    assert len(set(first)) > 1


@all_ids
def test_wrappers(name: str) -> None:
    env = RecordEpisodeStatistics(FlattenObservation(make(name)))
    steps = play(env, random_acts(env.action_space, 0), seed=0)
    assert env.observation_space.contains(steps[0].observation)
    episode = steps[-1].info["episode"]
    assert episode["l"] == len(steps) - 1
    assert episode["r"] == pytest.approx(-steps[-1].info["metrics"]["mean_bsld"], rel=1e-12)
    cut = make(name, max_episode_steps=2)
    cut.reset(seed=0)
    assert isinstance(cut, TimeLimit)
    assert [cut.step(cut.action_space.sample())[3] for _ in range(2)] == [False, True]


@all_ids
def test_a_copy_by_pickle_goes_on_alike(name: str) -> None:
    env = make(name, jobs=60, estimate="ave2", reward=waits_halved).unwrapped
    acts = random_acts(env.action_space, 0)
    begun = play(env, acts, most=3, seed=0)
    copied = pickle.loads(pickle.dumps(env))
    rest = [go_on(e, acts, begun[-1].observation, begun[-1].info) for e in (env, copied)]
    assert_same(*rest)
    assert_same(play(env, acts), play(copied, acts))  # the next episode is drawn alike too


def test_the_workload_is_shared_by_all() -> None:
    one, other = SINGLE["JobSelection"](BUSY), SINGLE["JobSelection"](BUSY)
    assert one.options.workload is other.options.workload is BUSY


def test_registration_is_idempotent() -> None:
    before = {name: gymnasium.spec(name) for name in IDS}
    register()
    assert {name: gymnasium.spec(name) for name in IDS} == before
    assert set(before) == {f"hpcgym/{name}-v0" for name in (*NAMES, *LIMITED, "CoSchedule")}


FRESH = """
import gymnasium, warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", ".*out of date")  # there is v1
for name in ("JobSelection", "QueueOrdering", "MixedPolicy", "PowerCap", "EnergyBudget"):
    env = gymnasium.make(f"hpcgym:hpcgym/{name}-v0", workload="lublin:jobs=300,seed=0")
    print(env.spec.id)
env = gymnasium.make_vec("hpcgym/JobSelection-v0", 2, jobs=20, workload="lublin:jobs=30,seed=0")
print(type(env).__name__)
"""


def test_a_fresh_process_finds_the_environments() -> None:
    found = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    names = [f"hpcgym/{name}-v0" for name in (*NAMES, *LIMITED)]
    assert found.stdout.split() == [*names, "JobSelectionVector"]
    assert found.stderr == ""


@pytest.mark.parametrize("interval", ["pass", "hour", "episode", 5])
def test_the_machine_that_mixed_policy_shows(interval: Any) -> None:
    """What is free is what no job runs on, at the time that is shown."""
    env = SINGLE["MixedPolicy"](BUSY, jobs=80, window=7, interval=interval)
    observation, info = env.reset(seed=2)
    terminated, times = False, []
    while not terminated:
        running = env.running()
        assert env.free == 64 - env.episode_workload.requested_processors[running].sum()
        assert observation["cluster"][0] == np.float32(env.free * np.float32(1 / 64))
        assert info["time"] == env.time
        times.append(env.time)
        observation, _, terminated, _, info = env.step(np.ones(6, np.float32))
    assert times == sorted(times)


def test_the_state_in_plain_terms() -> None:
    env = SINGLE["JobSelection"](BUSY, jobs=80, window=7)
    steps: list[Step] = []
    observation, info = env.reset(seed=2)
    jobs, result = env.episode_workload, None
    while not (steps and steps[-1].terminated):
        result = env.result()
        submitted, running = jobs.submit_time <= env.time, env.running()
        waiting = np.flatnonzero(submitted & (result.start < 0))
        assert env.queued().tolist() == waiting.tolist()
        going = (result.start >= 0) & (result.start + result.run_time > env.time)
        assert running.tolist() == np.flatnonzero(going).tolist()
        assert env.free == 64 - jobs.requested_processors[running].sum()
        assert [row for row in info["window"].tolist() if row >= 0] == waiting[:7].tolist()
        assert info["time"] == env.time
        assert observation["cluster"][0] == np.float32(env.free * np.float32(1 / 64))
        assert observation["mask"].tolist() == [1] * min(7, len(waiting)) + [0] * (7 - len(waiting))
        assert info["action_mask"].tolist() == env.action_masks().tolist()
        assert info["action_mask"].tolist() == observation["mask"].tolist()
        steps.append(Step(*env.step(0)))
        observation, info = steps[-1].observation, steps[-1].info
    assert env.free == 64
    assert env.scheduler_rules == {
        "backfill": "easy",
        "backfill_order": "fcfs",
        "estimate": "requested",
        "policy_estimate": "requested",
        "correction": "requested",
        "passes": "per-timestamp",
        "allocation": "first-fit",
        "threshold": None,
        "hold": None,
        "fair_share": None,
        "quota": None,
        "maintenance": None,
        "preemption": None,
        "dependencies": "none",
    }
    assert (
        hpcgym.simulate(jobs, **env.scheduler_rules).start.tolist() == env.result().start.tolist()
    )
