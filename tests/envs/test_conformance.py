"""What holds of every environment: of each id, on each kind of machine, under each kind of rule.

A row of ``PLACES`` is a machine and rules; each property is tried with each environment there.
"""

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
    MODES,
    NAMES,
    SINGLE,
    VECTOR,
    Step,
    assert_alike,
    assert_same,
    drive,
    go_on,
    label,
    limits_that_grow,
    play,
    random_acts,
    visible_acts,
)
from extract_driving import busy_log, from_the_middle
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, TimeLimit
from node_driving import EURORA
from pairs import NODES, SIXTEEN, with_files
from test_by_usage import FAIR, busy_users
from test_moved_environments import chained
from test_node_energy import MIXED, SMALL
from test_own_nodes import ASLEEP
from test_preempting_environments import stopping
from test_restricted_environments import KEPT, NODES_OF_CORES, OF_NODES, ON_NODES
from test_shutdown import AWAKE, CALM, SLEEPY

import hpcgym
from hpcgym import Cluster, HpcgymError
from hpcgym.baselines import find_baseline
from hpcgym.envs import IDS, register
from hpcgym.errors import HpcgymWarning
from hpcgym.processors import threads_here
from hpcgym.scheduler.policies import FEATURES
from hpcgym.workload import load_workload

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")
ids = pytest.mark.parametrize("name", NAMES)
all_ids = pytest.mark.parametrize("name", [*NAMES, *LIMITED])

LEARNED: dict[str, Any] = {
    "estimate": "e-loss",
    "policy_estimate": "regression:over=absolute,under=squared,eta=1,l2=0",
    "correction": "predicted-again",
    "backfill_order": "lexp",
    "features": ["wait", "predicted", "policy_time"],
}
PLACES: dict[str, dict[str, Any]] = {
    "pool": {},
    "per event": {"passes": "per-event", "backfill_order": "sjbf", "observation": "flat"},
    "learned": LEARNED,
    "surrounded": {"start": "warm", "arrivals": "continue", "horizon": "6h", "paid": "waiting",
                   "window": "split:5"},
    "to a horizon": {"horizon": 900, "paid": "end"},
    "users": {"workload": busy_users(), "backfill_order": "fairshare", "fair_share": FAIR[0]},
    "switched off": {"workload": CALM, "cluster": SLEEPY},
    "switched off by action": {"workload": CALM, "cluster": AWAKE, "shutdown_action": True},
    "nodes": {"workload": EURORA, "cluster": "eurora", "allocation": "best-fit"},
    "random nodes": {"workload": EURORA, "cluster": "eurora", "allocation": "random:5"},
    "learned on nodes": {"workload": EURORA, "cluster": "eurora", **LEARNED},
    "powers": {"workload": SMALL, "cluster": MIXED},
    "own nodes": {"cluster": ASLEEP},
    "in a row": {"cluster": ASLEEP, "allocation": "contiguous", "estimate": "ave2"},
    "quotas": KEPT,
    "cores by name": KEPT | OF_NODES | {"maintenance": NODES_OF_CORES},
    "closed nodes": {"workload": EURORA, **ON_NODES},
    "after others": {"workload": chained(), "dependencies": "closed-loop", "quota": "user:jobs=9"},
    "submitted": {"workload": chained(), "cluster": "8x2x4", "quota": "all:submitted=30"},
    "requeued": {"workload": stopping(), "preemption": "queue:2>3>4"},
    "cancelled": {"workload": stopping(), "preemption": "queue:2>3>4,cancel"},
    "suspended": {"workload": stopping(), "cluster": "4x2x2",
                  "preemption": "queue:2>3>4,suspend"},
    "slurm": {"backfill": "slurm:bf_interval=600"},
    "extract": {"workload": from_the_middle(busy_log()).take(slice(0, 30), name="part"),
                "episodes": "whole", "estimate": "ave2"},
    "slurm after others": {"workload": chained(), "backfill": "slurm", "quota": "user:jobs=2",
                           "dependencies": "closed-loop"},
    "slurm and stops": {"workload": stopping(), "cluster": "4x2x2", "backfill": "slurm",
                        "preemption": "queue:2>3>4"},
    "slurm on nodes": {"workload": EURORA, "cluster": "eurora", "backfill": "slurm"},
    "extract on nodes": {
        "workload": from_the_middle(busy_log(MIXED)).take(slice(0, 30), name="part"),
        "episodes": "whole", "cluster": MIXED, "allocation": "best-fit"},
}  # fmt: skip
#: Places where no agent names each job.
_OF_QUEUES = (
    *("requeued", "cancelled", "suspended"),
    *("slurm", "slurm after others", "slurm and stops", "slurm on nodes"),
)
#: Those whose episodes have other jobs than those that count.
_AROUND = ("surrounded", "to a horizon")
_MOVED = ("after others", "submitted", "slurm after others")
#: Those where a snapshot may hide the future.
_HIDE = (
    *(
        "pool",
        "per event",
        "learned",
        "users",
        "switched off",
        "switched off by action",
        "surrounded",
        "to a horizon",
    ),
    *("slurm", "extract"),
)
STEERED: dict[str, dict[str, Any]] = {
    "limits": {"limits": limits_that_grow, "controls": ("power", "nodes")},
    "limits and weights": {"limits": limits_that_grow, "interval": 3, "power": "energy-bud",
                           "policy_features": ("area", "wait"), "observation": "flat"},
    "usual limits": {"cluster": None, "interval": "2h"},
}  # fmt: skip
SHARED: dict[str, dict[str, Any]] = {
    "pairs": {"cluster": NODES},
    "pairs and files": {**with_files(), "observation": "flat"},
    "pairs by scores": {"cluster": NODES, "action": "scores"},
    "compact pairs": {"cluster": NODES, "allocation": "compact"},
}
CASES = [
    *[
        (name, place)
        for place in PLACES
        for name in NAMES
        if not (name == "JobSelection" and place in _OF_QUEUES)
        and (name == "JobSelection" or place != "switched off by action")
    ],
    *[(name, place) for place in STEERED for name in LIMITED],
    *[("CoSchedule", place) for place in SHARED],
]
THREADS = min(2, threads_here())
every = pytest.mark.parametrize(("name", "place"), CASES)


def mode_of(name: str, place: str, turn: int = 0) -> AutoresetMode:
    """Return a mode of resetting: quick tests see one at each place, as many of each."""
    return MODES[(CASES.index((name, place)) + turn) % len(MODES)]


def given(name: str, place: str, **more: Any) -> dict[str, Any]:
    """Return the arguments of an environment at a place: short episodes, in which it asks often."""
    if name == "CoSchedule":
        return (
            {"workload": SIXTEEN, "jobs": 12, "window": 6, "neighbours": 3} | SHARED[place] | more
        )
    arguments: dict[str, Any] = {"workload": BUSY, "jobs": 12, "window": 6}
    if name in LIMITED:
        return arguments | {"workload": LOADED, "cluster": CHASSIS} | STEERED[place] | more
    if name == "MixedPolicy":
        arguments["interval"] = "pass" if place in _MOVED else 4
    return arguments | PLACES[place] | more


def single(name: str, place: str, **more: Any) -> Any:
    return SINGLE[name](**given(name, place, **more))


def many(name: str, place: str, mode: Any = AutoresetMode.NEXT_STEP, **more: Any) -> Any:
    return VECTOR[name](3, autoreset_mode=mode, **given(name, place, **more))


@pytest.mark.parametrize("turn", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
@every
def test_many_are_as_gymnasiums_loop_over_single_ones(name: str, place: str, turn: int) -> None:
    """Spaces, and all that is seen, rewarded and told, episode after episode; on threads."""
    mode = mode_of(name, place, turn)
    native = many(name, place, mode, threads=THREADS)
    loop = gymnasium.make_vec(
        f"hpcgym/{name}-v0", 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode},
        **given(name, place),
    )  # fmt: skip
    assert native.single_observation_space == loop.single_observation_space
    assert native.observation_space == loop.observation_space
    assert native.action_space == loop.action_space
    assert native.metadata["autoreset_mode"] == native.autoreset_mode == mode
    assert assert_alike(drive(native, 7, 60), drive(loop, 7, 60)) > 0
    assert_alike(drive(native, [3, 1, 4], 10), drive(loop, [3, 1, 4], 10))


@every
def test_what_follows_a_snapshot_follows_again(name: str, place: str) -> None:
    """Also in another environment, or a copy, after other episodes, and from a pickle."""
    env, other = single(name, place), single(name, place)
    acts = visible_acts(env, 5)
    begun = play(env, acts, most=2, seed=2)
    saved, copied = env.snapshot(), pickle.loads(pickle.dumps(env))
    first = go_on(env, acts, begun[-1].observation, begun[-1].info)
    result = env.result()
    if place in _HIDE:
        env.restore(saved)
        observation, info = env.restore(env.snapshot(hide=True))
        assert_same(observation, begun[-1].observation)
        hidden = go_on(env, acts, observation, info)[-1]
        assert hidden.terminated or hidden.truncated
    else:
        with pytest.raises(HpcgymError, match="hidden on pools of processors only"):
            env.snapshot(hide=True)
    for each in (env, other, copied):
        play(each, acts)
        observation, info = each.restore(pickle.loads(pickle.dumps(saved)))
        assert_same(observation, begun[-1].observation)
        assert_same(go_on(each, acts, observation, info), first)
        assert each.result().start.tolist() == result.start.tolist()
        assert each.result().metrics == pytest.approx(result.metrics, nan_ok=True)
    assert_same(play(env, acts), play(copied, acts))  # the next episode is drawn alike, too


@every
def test_so_it_does_in_vectors(name: str, place: str) -> None:
    env = many(name, place, mode_of(name, place))
    drive(env, 7, 5)
    saved = pickle.dumps(env.snapshot())
    first = told(drive(env, None, 40, 5))
    assert_same(first, told([env.restore(pickle.loads(saved)), *drive(env, None, 40, 5)][1:]))


def told(steps: list[Any]) -> list[Any]:
    """Return steps; where an environment tells nothing, anything may stand."""
    for infos in (step[4] for step in steps if len(step) == 5):
        for values in infos.get("metrics", {}).values():
            values[~infos["_metrics"]] = 0
    return steps


@pytest.mark.parametrize(("name", "place"), [case for case in CASES if case[1] not in _AROUND])
def test_returns_are_metrics(name: str, place: str) -> None:
    """With something around them, they are worked out by hand in ``test_honest_episodes.py``."""
    env = single(name, place, reward=["bsld", "wait", "energy"])
    steps = play(env, visible_acts(env, 1), seed=3)
    metrics = env.result().metrics
    bsld, wait, energy = sum(step.reward for step in steps[1:])
    assert -bsld == pytest.approx(metrics["mean_bsld"], rel=1e-9)
    assert -wait == pytest.approx(metrics["mean_wait_s"] / 3600, rel=1e-9)
    joules = sum(step.info["reward_terms"]["energy_j"] for step in steps[1:])
    # usual machines draw no whole milliwatts while nodes are switched
    assert joules == pytest.approx(metrics["energy_j"], rel=1e-6)
    assert energy <= 0
    known = {key: value for key, value in metrics.items() if value == value}
    assert steps[-1].info["metrics"] == pytest.approx(known)
    hpcgym.validate_schedule(env.result())


@pytest.mark.parametrize("policy", ["saf", "fcfs"])
@pytest.mark.parametrize(
    ("name", "place"),
    [
        (name, place)
        for name, place in CASES
        if name in NAMES and place not in (*_AROUND, "learned", "learned on nodes")
    ],
)
def test_a_baseline_makes_the_schedule_of_simulate(name: str, place: str, policy: str) -> None:
    """Where that is what its order makes; learned times and surroundings have their own tests."""
    more = {"interval": "pass"} if name == "MixedPolicy" else {}
    env, baseline = single(name, place, **{"window": 300, "jobs": 60} | more), find_baseline(policy)
    for seed in range(2):  # the second begins anew
        env.reset(seed=seed)
        baseline.begin(env)
        play(env, lambda _, o, info: baseline.act(o, info), seed=seed)
    found, rules = env.result(), {**env.scheduler_rules, "policy": policy}
    expected = hpcgym.simulate(env.episode_workload, cluster=env.options.cluster, **rules)
    assert found.workload.job_number.tolist() == expected.workload.job_number.tolist()
    for column in ("start", "end", "predicted_run_time"):
        assert getattr(found, column).tolist() == getattr(expected, column).tolist()
    if expected.allocation is not None and place != "random nodes":  # where no orders, no draws
        assert_same(tuple(found.allocation), tuple(expected.allocation))
    assert found.metrics["energy_j"] == pytest.approx(expected.metrics["energy_j"], rel=1e-12)
    hpcgym.validate_schedule(found)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case[1] not in ("pool", "nodes", "limits")))
        for case in CASES
    ],
)
def test_it_shows_itself(name: str, place: str) -> None:
    pytest.importorskip("matplotlib", reason="frames need matplotlib")
    text, picture = (single(name, place, render_mode=mode) for mode in ("ansi", "rgb_array"))
    acts = visible_acts(text, 0)

    def look(number: int, observation: Any, info: dict[str, Any]) -> Any:
        shown = text.render()
        queued, running = len(text.queued()), len(text.running())
        # with passes for each event, jobs that end in this very second may still run there
        if place != "per event":
            assert f"{queued} queued, {running} running, " in shown
        return acts(number, observation, info)

    last = play(text, look, seed=1)[-1]
    assert not last.terminated or place in _AROUND or "0 queued, " in text.render()
    frames = []
    for steps in (0, 2):
        play(picture, acts, seed=1, most=steps)
        frames.append(picture.render())
    assert frames[0].shape == frames[1].shape == (800, 1280, 3)
    assert (frames[0] != frames[1]).any()


# --- What Gymnasium and Stable-Baselines3 expect ------------------------------------------------


def waits_halved(view: Any) -> float:
    return -0.5 * float(view.wait_s.sum())


def share_of_cube(jobs: Any) -> Any:
    return jobs.processors / 64


COMMON: list[dict[str, Any]] = [
    {"backfill": "none"},
    {"backfill_order": "saf"},
    {"backfill_order": (0, 0, 1, 0, 0.5, -0.1)},
    {"estimate": "ave2", "correction": "recursive-doubling"},
    {"estimate": "ave2", "correction": "incremental"},
    {"estimate": "clairvoyant"},
    {"reward": "wait"},
    {"reward": "energy", "cluster": Cluster(64, 10.0, 100.0)},
    {"reward": {"bsld": 0.7, "energy": 0.3}},
    {"reward": waits_halved},
    {"features": ["wait"]},
    {"features": ("fits", "area", "expansion")},
    {"features": {"wait": None, "cube": share_of_cube}},
    {"window": 1},
    {"processors": 100},
    {"part": "train", "train_share": 0.3},
    {"start": "saf", "warmup": "1h", "arrivals": "continue", "horizon": "6h", "paid": "end"},
    {"paid": "waiting", "horizon": "2h", "reward": "bsld/easy"},
    {"episodes": "stream", "part": "train", "train_share": 0.1},
    {"window": "split:5", "reward": "log_bsld"},
    {"reward": {"bsld": 0.5, "max_wait": 0.5}},
    {"episodes": "whole", "part": "test", "train_share": 0.9},
    {"workload": load_workload("lublin:jobs=5000,processors=32,seed=2"), "episodes": "weeks"},
]
OPTIONS: list[tuple[str, str, dict[str, Any]]] = [
    *[(name, "pool", options) for options in COMMON for name in NAMES],
    ("JobSelection", "pool", {"reservation": "kept"}),
    ("JobSelection", "pool", {"skip_forced": True, "reservation": "kept", "backfill": "none"}),
    ("MixedPolicy", "pool", {"scale": "spread"}),
    *[
        ("MixedPolicy", "pool", {"interval": interval})
        for interval in ("pass", "hour", "6h", "day", "week", "episode", 1)
    ],
    ("MixedPolicy", "pool", {"policy_features": tuple(FEATURES)}),
    *[
        (name, "usual limits", options)
        for name in LIMITED
        for options in (
            {"observation": "flat", "window": 1},
            {"cluster": CHASSIS, "interval": 3, "reward": {"energy": 1}},
            {"policy_features": tuple(FEATURES), "controls": ["nodes"]},
            {"controls": (), "policy_features": ["area"], "power": "energy-bud"},
            {"estimate": "ave2", "allocation": "contiguous", "reward": "wait"},
        )
    ],
    ("CoSchedule", "pairs", {"reward": {"bsld": 0.5, "throughput": 2}}),
    ("CoSchedule", "pairs", {"window": 1, "neighbours": 1}),
    ("CoSchedule", "pairs", {"episodes": "whole", "part": "test"}),
]


@pytest.mark.parametrize(
    ("name", "place", "options"), [*[(*case, {}) for case in CASES], *OPTIONS], ids=label
)
def test_gymnasiums_check(name: str, place: str, options: dict[str, Any]) -> None:
    arguments = given(name, place, **options)
    env = gymnasium.make(f"hpcgym/{name}-v0", disable_env_checker=False, **arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", HpcgymWarning)
        check_env(env.unwrapped, skip_render_check=True)
        steps = play(env, random_acts(env.action_space, 0))  # with the checks of gymnasium.make
    assert all(env.observation_space.contains(step.observation) for step in steps)
    assert all(isinstance(step.reward, float) for step in steps)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *[(name, place) for name in NAMES for place in ("pool", "per event")],
        *[(name, place) for name in LIMITED for place in ("limits", "limits and weights")],
        *[("CoSchedule", place) for place in SHARED],
    ],
)
def test_the_check_of_stable_baselines(name: str, place: str) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    env = single(name, place)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # it would have images or vectors, and suggests the flat form
        for text in ("Your observation", "It seems that your", "The minimal resolution"):
            warnings.filterwarnings("ignore", text)
        checker.check_env(env, skip_render_check=True)


def make(name: str, **options: Any) -> Any:
    arguments = {"workload": BUSY, "jobs": 25, "window": 9, **options}
    if name not in ("JobSelection", "QueueOrdering"):
        arguments.setdefault("interval", 4)
    return gymnasium.make(f"hpcgym/{name}-v0", **arguments)


@all_ids
def test_a_vector_reward_is_in_its_space(name: str) -> None:
    env = SINGLE[name](BUSY, jobs=25, window=9, reward=["bsld", "energy"])
    assert env.reward_space.shape == (2,)
    steps = play(env, random_acts(env.action_space, 0))
    assert all(env.reward_space.contains(step.reward) for step in steps[1:])
    made = make(name, reward=["bsld", "energy"], disable_env_checker=True)
    assert made.unwrapped.reward_space == env.reward_space
    play(made, random_acts(made.action_space, 0))


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
