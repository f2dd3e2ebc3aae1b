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
import plain_envs
import pytest
from driving import (
    AROUND,
    BUSY,
    CASES,
    CHASSIS,
    EVERY,
    EXTRACTS,
    FOLLOWING,
    HIDE,
    LIMITED,
    MOVED,
    NAMES,
    SHARED,
    SINGLE,
    STEERED,
    STOPS,
    assert_alike,
    assert_same,
    cost_so_far,
    drive,
    given,
    go_on,
    jobs_of,
    label,
    many,
    mode_of,
    noting_first,
    play,
    prove,
    random_acts,
    rows_of,
    single,
    visible_acts,
    whole,
)
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, TimeLimit

import hpcgym
from hpcgym import Cluster
from hpcgym.baselines import find_baseline
from hpcgym.envs import IDS, register
from hpcgym.envs import render as drawn
from hpcgym.envs.ids import id_of
from hpcgym.errors import HpcgymWarning
from hpcgym.processors import threads_here
from hpcgym.scheduler.policies import FEATURES
from hpcgym.workload import load_workload

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")
ids = pytest.mark.parametrize("name", NAMES)
all_ids = pytest.mark.parametrize("name", [*NAMES, *LIMITED])

THREADS = min(2, threads_here())
every = pytest.mark.parametrize(("name", "place"), CASES)


@pytest.mark.parametrize("turn", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
@every
def test_many_are_as_gymnasiums_loop_over_single_ones(name: str, place: str, turn: int) -> None:
    """Spaces, and all that is seen, rewarded and told, episode after episode; on threads."""
    mode = mode_of(name, place, turn)
    native = many(name, place, mode, threads=THREADS)
    loop = plain_envs.make_vec(
        id_of(name), 3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode},
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
    if place in HIDE:
        env.restore(saved)
        observation, info = env.restore(env.snapshot(hide=True))
        assert_same(observation, begun[-1].observation)
        hidden = go_on(env, acts, observation, info)[-1]
        assert hidden.terminated or hidden.truncated
    drawn = play(other, acts, seed=9)
    for each in (env, other, copied):
        assert_same(play(each, acts, seed=9), drawn)  # a reset brings back what was hidden
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
    first = what_is_told(drive(env, None, 40, 5))
    assert_same(
        first, what_is_told([env.restore(pickle.loads(saved)), *drive(env, None, 40, 5)][1:])
    )


def what_is_told(steps: list[Any]) -> list[Any]:
    """Return steps; where an environment tells nothing, anything may stand."""
    for infos in (step[4] for step in steps if len(step) == 5):
        for name in [key for key in infos if key.startswith("episode_")]:
            infos[name][~infos[f"_{name}"]] = 0
    return steps


@pytest.mark.parametrize(("name", "place"), [case for case in CASES if case[1] not in AROUND])
def test_returns_are_metrics(name: str, place: str) -> None:
    """But for what jobs had cost at the first decision.

    With something around them, they are worked out by hand in ``test_honest_episodes.py``.
    """
    env = single(name, place, reward=["bsld", "wait", "energy"])
    acts, seen = noting_first(visible_acts(env, 1), lambda: cost_so_far(env))
    steps = play(env, acts, seed=3)
    metrics = env.result().metrics
    bsld, wait, energy = sum(step.reward for step in steps[1:])
    bsld_before, wait_before = seen[0] / metrics["jobs"]
    assert -bsld == pytest.approx(metrics["mean_bsld"] - bsld_before, rel=1e-9, abs=1e-9)
    assert -wait == pytest.approx((metrics["mean_wait_s"] - wait_before) / 3600, rel=1e-9, abs=1e-9)
    before, *rest = (step.info["reward_energy_j"] for step in steps)
    joules = before + sum(rest)
    # usual machines draw no whole milliwatts while nodes are switched
    assert joules == pytest.approx(metrics["energy_j"], rel=1e-6)
    assert energy <= 0
    assert env.metrics() == pytest.approx(metrics, nan_ok=True)
    for key, value in steps[-1].info.items():
        if key.startswith("episode_"):
            assert value == pytest.approx(metrics[key.removeprefix("episode_")], rel=1e-6)
    prove(name, env.result())
    if not ({"cluster", "limits"} & {*given(name, place)} or place in (*STEERED, *EXTRACTS)):
        jobs, cluster = env.episode_workload, env.options.cluster
        most = cluster.busy_power_w * cluster.processors * (np.ptp(jobs.submit_time) + 1)
        assert -energy == pytest.approx((metrics["energy_j"] - before) / most, rel=1e-9)
    mixed = single(name, place, reward={"bsld": 0.7, "energy": 0.3})
    total = sum(step.reward for step in play(mixed, visible_acts(mixed, 1), seed=3))
    assert total == pytest.approx(0.7 * bsld + 0.3 * energy, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "place"),
    [case for case in CASES if case[1] not in (*AROUND, *MOVED, *STOPS, "limits and users")],
)
def test_a_function_as_reward_sees_each_job_once(name: str, place: str) -> None:
    """But for those that have started before the first decision.

    Times are those at the frequencies of jobs, and compact ones where they share nodes.

    Of jobs that a cap kills later they are longer, as under the limits of users.
    """
    views: list[Any] = []

    def reward(view: Any) -> float:
        views.append(view)
        return float(view.wait_s.sum())

    env = single(name, place, reward=reward)
    acts, seen = noting_first(
        visible_acts(env, 2), lambda: (env.result().start >= 0, cost_so_far(env)[0])
    )
    steps = play(env, acts, seed=3)
    result, jobs = env.result(), env.episode_workload
    assert len(views) == len(steps) - 1
    ran, bsld_before = seen[0]
    here = result.decided & ~ran
    assert sum(step.reward for step in steps) == pytest.approx(result.wait[here].sum())
    started = np.concatenate([view.started for view in views])
    assert sorted(started.tolist()) == np.flatnonzero(here).tolist()
    assert all(view.counts.all() and view.jobs == result.decided.sum() for view in views)
    waits, runs, processors = (
        np.concatenate([getattr(view, field) for view in views])
        for field in ("wait_s", "run_time_s", "processors")
    )
    assert waits == pytest.approx(result.wait[started])
    whole_nodes = "limited" in env.simulations.world(0).machines.told
    cores = env.options.cluster.processors // env.options.cluster.nodes if whole_nodes else 1
    assert processors.tolist() == (-(-jobs.requested_processors // cores))[started].tolist()
    compact = result.coschedule.compact_s if name == "CoSchedule" else result.run_time
    assert runs.tolist() == compact[started].tolist()
    bslds, joules = sum(view.bsld for view in views), sum(view.energy_j for view in views)
    assert bslds + bsld_before == pytest.approx(result.bsld[result.decided].sum(), rel=1e-9)
    energy_before = steps[0].info["reward_energy_j"]
    assert joules + energy_before == pytest.approx(result.metrics["energy_j"], rel=1e-6)
    times = [step.info["time_s"] for step in steps[1:]]
    assert [view.time_s for view in views] == times
    assert [view.elapsed_s for view in views[1:]] == pytest.approx(np.diff(times))
    assert views[-1].queued == 0


@pytest.mark.parametrize(
    ("name", "place"),
    [case for case in CASES if case[1] not in (*MOVED, "per event", "suspended")],
)
def test_the_state_in_plain_terms(name: str, place: str) -> None:
    """Who waits, who runs, what is free, and what of it is seen, at each decision."""
    env = single(name, place, **{"interval": "pass"} if name == "MixedPolicy" else {})
    acts, whole_nodes = visible_acts(env, 3), "limited" in env.simulations.world(0).machines.told
    cluster = env.options.cluster
    cores = cluster.processors // cluster.nodes if whole_nodes else 1

    def look(number: int, observation: Any, info: dict[str, Any]) -> Any:
        if name in LIMITED and number == 0:  # which comes before the first submission
            return acts(number, observation, info)
        result, jobs, now = env.result(), env.episode_workload, env.time
        started = result.start >= 0
        waits = np.flatnonzero((jobs.submit_time <= now) & ~started)
        runs = np.flatnonzero(started & (result.end > now))
        assert env.queued().tolist() == waits.tolist()
        assert env.running().tolist() == runs.tolist()
        assert info["time_s"] == now
        if name in FOLLOWING and rows_of(info):  # the first is in question, or the head
            first = rows_of(info)[0]
            others = [row for row in waits.tolist() if row != first]
            assert first in waits
            assert set(rows_of(info)[1:]) <= {*others}
            assert rows_of(info)[1:] == sorted(rows_of(info)[1:])
            assert name == "Backfill" or rows_of(info)[1:] == others[:5]
        elif name not in FOLLOWING and place != "surrounded":  # it shows the last ones, too
            assert rows_of(info) == waits[:6].tolist()
        if name != "CoSchedule":
            total = cluster.nodes if whole_nodes else cluster.processors
            assert env.free == total - (-(-jobs.requested_processors[runs] // cores)).sum()
            if number % 7 == 0:  # what is drawn are processors
                assert drawn.look(env.simulations, name).free == cores * env.free
            if isinstance(observation, dict):
                assert observation["cluster"][0] == np.float32(env.free * np.float32(1 / total))
        if name in ("JobSelection", "Backfill"):
            assert info["action_mask"].tolist() == env.action_masks().tolist()
        if result.allocation is not None and name != "CoSchedule" and not whole_nodes:
            held = np.diff(result.allocation.first) > 0
            assert held.tolist() == started.tolist()
        return acts(number, observation, info)

    play(env, look, seed=2)


@pytest.mark.parametrize(
    ("name", "place"), [case for case in CASES if case[1] not in (*AROUND, *STOPS, "per event")]
)
def test_amid_an_episode_metrics_are_of_jobs_that_have_ended(name: str, place: str) -> None:
    """They are those of the same jobs in the whole schedule, which is known afterwards."""
    env = single(name, place, **{"interval": "pass"} if name == "MixedPolicy" else {})
    acts, seen = visible_acts(env, 3), []

    def look(number: int, observation: Any, info: dict[str, Any]) -> Any:
        seen.append((env.time, env.result(), env.weekly()))
        return acts(number, observation, info)

    play(env, look, seed=2)
    last = env.result()
    assert last.ended is None
    rows = dict(zip(last.workload.job_number.tolist(), range(len(last.start)), strict=True))
    for now, result, weekly in seen:
        if place in MOVED:  # jobs stand in the order in which they have come so far
            order = [rows[job] for job in result.workload.job_number.tolist()]
        else:
            order = list(range(len(last.start)))
        ended = last.end[order] <= now
        assert result.ended.tolist() == ended.tolist()
        counted = ended & last.decided[order]
        assert result.metrics["jobs"] == counted.sum() == weekly[:, 0].sum()
        bslds, waits = (x[order][counted] for x in (last.bsld, last.wait))
        mean = bslds.mean() if len(bslds) else np.nan
        assert result.metrics["mean_bsld"] == pytest.approx(mean, nan_ok=True)
        assert weekly[:, 1:].sum(axis=0) == pytest.approx([bslds.sum(), waits.sum() / 3600])
        assert np.isnan(result.metrics["utilization"])
        assert np.isnan(result.metrics["energy_j"])


@pytest.mark.parametrize("mode", ["requeue", "suspend"])
def test_who_is_stopped_has_not_ended(mode: str) -> None:
    """By hand: job 0, of 11 s, gives way at 10 s, when it has not ended."""
    jobs = jobs_of([(0, 2, 11), (5, 1, 30), (10, 1, 5), (12, 1, 1)], 2, queue=[1, 1, 2, 2])
    env = SINGLE["QueueOrdering"](**whole(jobs), preemption=f"queue:2>1,{mode}", window=3)
    _, info = env.reset(seed=0)
    results = {}
    while len(results) < 4:
        results[info["time_s"]] = env.result()
        info = env.step(np.array([3, 2, 1], np.float32))[4]
    ended = {time: np.flatnonzero(result.ended).tolist() for time, result in results.items()}
    assert ended[12] == []
    assert results[12].metrics["jobs"] == 0
    later = {"requeue": (13, [3]), "suspend": (16, [0, 2, 3])}
    time, expected = later[mode]
    assert ended[time] == expected
    assert results[time].metrics["max_wait_s"] == {"requeue": 0, "suspend": 5}[mode]


@pytest.mark.parametrize("policy", ["saf", "fcfs"])
@pytest.mark.parametrize(
    ("name", "place"),
    [
        (name, place)
        for name, place in CASES
        if name in NAMES and place not in (*AROUND, "learned", "learned on nodes")
    ],
)
def test_a_baseline_makes_the_schedule_of_simulate(name: str, place: str, policy: str) -> None:
    """Where that is what its order makes; learned times and surroundings have their own tests."""
    more = {"interval": "pass"} if name == "MixedPolicy" else {}
    env, baseline = single(name, place, **{"window": 300, "jobs": 60} | more), find_baseline(policy)
    for seed in range(2):  # the second begins anew, after one that was left early
        play(env, visible_acts(env, 0), most=8, seed=5)
        env.reset(seed=seed)
        baseline.begin(env)
        play(env, lambda _, o, info: baseline.act(o, info), seed=seed)
    result, rules = env.result(), {**env.scheduler_rules, "policy": policy}
    expected = hpcgym.simulate(env.episode_workload, cluster=env.options.cluster, **rules)
    assert result.workload.job_number.tolist() == expected.workload.job_number.tolist()
    for column in ("start", "end", "predicted_run_time"):
        assert getattr(result, column).tolist() == getattr(expected, column).tolist()
    if expected.allocation is not None and place != "random nodes":  # where no orders, no draws
        assert_same(tuple(result.allocation), tuple(expected.allocation))
    assert result.metrics["energy_j"] == pytest.approx(expected.metrics["energy_j"], rel=1e-12)
    hpcgym.validate_schedule(result)


@pytest.mark.parametrize(("name", "place"), [case for case in CASES if case[0] in LIMITED])
def test_controls_that_limit_nothing(name: str, place: str) -> None:
    """The schedule is that of the same limits alone, also where weights order the queue."""
    env = single(name, place, jobs=60)
    weights = np.array([0.5, -0.25][: len(env.policy_features)])
    action = np.append(np.ones(len(env.controls)), weights)
    play(env, lambda *_: action, seed=3)
    result, policy = env.result(), "fcfs"
    if weights.size:
        shares = (weights / np.abs(weights).sum()).tolist()
        policy = dict(zip(env.policy_features, shares, strict=True))
    machine = {"cluster": env.options.cluster, "limits": result.limits, "policy": policy}
    same = hpcgym.simulate(env.episode_workload, **machine, **env.scheduler_rules)
    for column in ("start", "end", "predicted_run_time", "backfilled", "frequency"):
        assert_same(getattr(result, column), getattr(same, column))
    assert result.workload.submit_time.tolist() == same.workload.submit_time.tolist()
    assert_same(result.allocation.node, same.allocation.node)
    # environments under limits may change the order at each pass: they promise nothing
    untold = dict.fromkeys(("promises_broken", "max_promise_delay_s"), float("nan"))
    assert result.metrics == pytest.approx(same.metrics | untold, rel=1e-12, nan_ok=True)


def mostly_slow(cases: list[tuple[str, str]]) -> list[Any]:
    """Return cases, of which those at three places are quick."""
    slow = [[pytest.mark.slow] * (place not in ("pool", "nodes", "limits")) for _, place in cases]
    return [pytest.param(*case, marks=marks) for case, marks in zip(cases, slow, strict=True)]


@pytest.mark.parametrize(("name", "place"), mostly_slow(CASES))
def test_it_tells_of_itself(name: str, place: str) -> None:
    text = single(name, place, render_mode="ansi")
    acts = visible_acts(text, 0)

    def look(number: int, observation: Any, info: dict[str, Any]) -> Any:
        shown = text.render()
        queued, running = len(text.queued()), len(text.running())
        # with passes for each event, jobs that end in this very second may still run there
        if place != "per event":
            assert f"{queued} queued, {running} running, " in shown
        return acts(number, observation, info)

    last = play(text, look, seed=1)[-1]
    assert not last.terminated or place in AROUND or "0 queued, " in text.render()


#: A picture takes long: one environment at each place draws.
DRAWN = {place: name for name, place in reversed(CASES)}


@pytest.mark.parametrize(
    ("name", "place"), mostly_slow([case for case in CASES if DRAWN[case[1]] == case[0]])
)
def test_it_draws_itself(name: str, place: str) -> None:
    pytest.importorskip("matplotlib", reason="frames need matplotlib")
    picture = single(name, place, render_mode="rgb_array")
    acts, frames = visible_acts(picture, 0), []
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
    ("QueueOrdering", "pool", {"skip_forced": True, "paid": "end"}),
    ("MixedPolicy", "pool", {"skip_forced": True, "interval": "pass"}),
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
    env = plain_envs.make(id_of(name), disable_env_checker=False, **arguments)
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
    return plain_envs.make(id_of(name), **arguments)


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
    for by_field, other in zip(play(fields, acts, seed=5), play(flat, acts, seed=5), strict=True):
        keys = ["cluster", "queue", "time", "jobs", "mask"]
        keys += [*["power"] * (name in LIMITED), "progress"]
        assert set(keys) == set(by_field.observation)
        parts = [by_field.observation[key].ravel() for key in keys]
        assert np.concatenate(parts).astype(np.float32).tolist() == other.observation.tolist()


@all_ids
def test_seeds(name: str) -> None:
    env = make(name)
    first = [env.reset(seed=3)[1]["time_s"], *(env.reset()[1]["time_s"] for _ in range(5))]
    second = [env.reset(seed=3)[1]["time_s"], *(env.reset()[1]["time_s"] for _ in range(5))]
    assert first == second
    assert len(set(first)) > 1


@all_ids
def test_wrappers(name: str) -> None:
    env = RecordEpisodeStatistics(FlattenObservation(make(name)))
    steps = play(env, random_acts(env.action_space, 0), seed=0)
    assert env.observation_space.contains(steps[0].observation)
    episode = steps[-1].info["episode"]
    assert episode["l"] == len(steps) - 1
    assert episode["r"] == pytest.approx(-env.unwrapped.metrics()["mean_bsld"], rel=1e-12)
    cut = make(name, max_episode_steps=2)
    cut.reset(seed=0)
    assert isinstance(cut, TimeLimit)
    assert [cut.step(cut.action_space.sample())[3] for _ in range(2)] == [False, True]


def test_the_workload_is_shared_by_all() -> None:
    first, other = SINGLE["JobSelection"](BUSY), SINGLE["JobSelection"](BUSY)
    assert first.options.workload is other.options.workload is BUSY


def test_registration_is_idempotent() -> None:
    before = {name: gymnasium.spec(name) for name in IDS}
    register()
    assert {name: gymnasium.spec(name) for name in IDS} == before
    assert set(before) == {id_of(name) for name in EVERY}


FRESH = """
import gymnasium, warnings
warnings.simplefilter("error")
names = ("JobSelection-v2", "QueueOrdering-v2", "MixedPolicy-v2", "PowerCap-v1", "EnergyBudget-v1")
for name in names:
    env = gymnasium.make(f"hpcgym:hpcgym/{name}", workload="lublin:jobs=600,seed=0")
    print(env.spec.id)
env = gymnasium.make_vec("hpcgym/JobSelection-v2", 2, jobs=20, workload="lublin:jobs=60,seed=0")
print(type(env).__name__)
"""


def test_a_fresh_process_finds_the_environments() -> None:
    process = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    names = [id_of(name) for name in (*NAMES, *LIMITED)]
    assert process.stdout.split() == [*names, "JobSelectionVector"]
    assert process.stderr == ""
