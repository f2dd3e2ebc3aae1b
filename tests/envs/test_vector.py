"""Many environments in one: the same trajectories as Gymnasium's own loop over single ones."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import plain_envs
import pytest
from driving import (
    BUSY,
    CHASSIS,
    LIMITED,
    LOADED,
    MODES,
    NAMES,
    assert_alike,
    assert_same,
    drive,
)
from gymnasium.vector import AutoresetMode, VectorEnv

from hpcgym.envs.co_schedule import DEFAULT_CODES
from hpcgym.envs.ids import id_of
from hpcgym.processors import threads_here

N = 3


def make(name: str, mode: AutoresetMode, way: str, **options: Any) -> VectorEnv:
    arguments = {"workload": BUSY, "jobs": 12, "window": 6, **options}
    if name == "MixedPolicy":
        arguments = {"interval": 4, **arguments}
    if name in LIMITED:
        arguments = {"cluster": CHASSIS, **arguments, "workload": LOADED}
    if way == "sync":
        arguments["vector_kwargs"] = {"autoreset_mode": mode}
    else:
        # all that is compared is stepped on threads
        arguments = {"autoreset_mode": mode, "threads": min(2, threads_here()), **arguments}
    return plain_envs.make_vec(id_of(name), N, vectorization_mode=way, **arguments)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_a_second_reset_draws_the_next_episode(mode: AutoresetMode) -> None:
    native, loop = (make("JobSelection", mode, way) for way in ("vector_entry_point", "sync"))
    given = {"start": 40, "jobs": 12}
    for seed, options in ((5, None), (None, None), (None, given), (None, None)):
        ours, other = (env.reset(seed=seed, options=options) for env in (native, loop))
        assert_same(ours, other)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize(
    "around", [{}, {"start": "warm", "arrivals": "continue", "horizon": "9h"}], ids=str
)
def test_they_tell_the_schedules_of_single_ones(mode: AutoresetMode, around: Any) -> None:
    """Of each episode when it has ended, though another may have begun there."""
    envs = make("JobSelection", mode, "vector_entry_point", **around).unwrapped
    envs.reset(seed=3)
    of_episodes: list[list[Any]] = [[] for _ in range(N)]
    while min(map(len, of_episodes)) < 3:
        _, _, terminated, truncated, info = envs.step(np.zeros(N, np.int64))
        final = info.get("final_info", info)
        for e in np.flatnonzero(terminated | truncated).tolist():
            mean = final["episode_mean_bsld"][e]
            of_episodes[e].append((envs.episode_name(e), envs.result(e), envs.weekly(e), mean))
            assert envs.metrics(e)["mean_bsld"] == pytest.approx(mean)
        if mode == AutoresetMode.DISABLED and (terminated | truncated).any():
            envs.reset(options={"reset_mask": terminated | truncated})
    for e, episodes in enumerate(of_episodes):
        env = plain_envs.make(
            "hpcgym/JobSelection-v2", workload=BUSY, jobs=12, window=6, **around
        ).unwrapped
        for k, (name, result, weekly, mean) in enumerate(episodes):
            env.reset(seed=3 + e if k == 0 else None)
            over = False
            while not over:
                _, _, terminated, truncated, info = env.step(0)
                over = terminated or truncated
            assert name == env.episode_name
            assert mean == info["episode_mean_bsld"]
            assert result.start.tolist() == env.result().start.tolist()
            assert np.array_equal(weekly, env.weekly())
            number, bsld, wait_h = weekly.sum(axis=0)
            metrics = env.metrics()
            assert number == metrics["jobs"]
            assert bsld / number == pytest.approx(metrics["mean_bsld"])
            assert wait_h * 3600 / number == pytest.approx(metrics["mean_wait_s"])


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", NAMES)
def test_a_limit_of_steps_cuts_alike(name: str, mode: AutoresetMode) -> None:
    native, loop = (
        make(name, mode, way, max_episode_steps=2, **({"interval": 2} if name == NAMES[2] else {}))
        for way in ("vector_entry_point", "sync")
    )
    steps = drive(native, 0, 12)
    assert_alike(steps, drive(loop, 0, 12))
    assert sum(int(step[3].sum()) for step in steps if len(step) == 5) > 3


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_the_last_step_may_also_be_one_too_many(mode: AutoresetMode) -> None:
    """Where an episode ends by itself in the last step that it may have, it is both.

    One that is cut in the same step has no metrics.
    """
    native, loop = (
        make("QueueOrdering", mode, way, max_episode_steps=10)
        for way in ("vector_entry_point", "sync")
    )
    own_steps = drive(native, 0, 40)
    assert_alike(own_steps, drive(loop, 0, 40))
    steps = [step for step in own_steps if len(step) == 5]
    assert any((step[2] & step[3]).any() for step in steps)
    assert any(step[2].any() and (step[3] & ~step[2]).any() for step in steps)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_infos_are_in_the_order_of_the_loop(mode: AutoresetMode) -> None:
    native, loop = (
        drive(make("JobSelection", mode, way), 7, 40) for way in ("vector_entry_point", "sync")
    )
    # the loop begins with the infos of its first environment, be it one that has ended or not
    orders = [
        [tuple(step[4]) for step in steps if len(step) == 5 and (step[2][0] or not step[2].any())]
        for steps in (native, loop)
    ]
    assert orders[0] == orders[1]
    assert len({*orders[0]}) == 2  # with and without ends


def test_infos_are_a_dict_as_any_other() -> None:
    """Whatever is done with infos that nobody has read, as it is with a copy of them as a dict."""

    def infos() -> dict[str, Any]:
        env = make("JobSelection", AutoresetMode.NEXT_STEP, "vector_entry_point")
        steps = drive(env, 7, 30)
        return next(step[4] for step in steps if len(step) == 5 and step[2].any())

    terms = {"reward_bsld", "reward_wait_s", "reward_energy_j"}
    keys = {"window", "time_s", *terms, "action_mask"}
    keys |= {"episode_mean_bsld", "episode_mean_wait_s", "episode_energy_j"}
    keys |= {f"_{key}" for key in keys}
    plain = dict(infos())
    assert type(plain) is dict
    assert set(plain) == keys
    assert plain["episode_mean_bsld"].any()
    uses: list[Callable[[Any], Any]] = [
        lambda d: {**d},
        lambda d: {"window": 0} | d,
        lambda d: {} | d | {},
        lambda d: dict(d.items()),
        lambda d: dict(zip(d.keys(), d.values(), strict=True)),
        lambda d: {key: d[key] for key in d},
        lambda d: {key: d.get(key) for key in keys},
        lambda d: copy.copy(d).copy(),
        lambda d: copy.deepcopy(d),
        lambda d: pickle.loads(pickle.dumps(d)),
        lambda d: {key: d.pop(key) for key in list(d)},
        lambda d: {key: d.setdefault(key, 0) for key in keys},
        lambda d: {*reversed(d)} == keys and d,  # this is what is tested
    ]
    for use in uses:
        assert_same(use(infos()), plain)
    told_json, plain_json = (json.dumps(d, default=np.ndarray.tolist) for d in (infos(), plain))
    assert json.loads(told_json) == json.loads(plain_json)
    assert repr(infos()) == repr(plain)
    read = infos()
    assert {"episode_energy_j", "_episode_energy_j"} <= read.keys()
    assert read.get("episode", 5) == 5
    read["window"] = 3
    del read["episode_energy_j"]
    assert "episode_energy_j" not in read
    assert read["window"] == 3
    assert set(read) == keys - {"episode_energy_j"}
    read.clear()
    assert not read


@pytest.mark.parametrize("name", NAMES)
def test_observations_may_be_views(name: str) -> None:
    for form in ("dict", "flat"):
        options = {"observation": form}
        views = make(name, AutoresetMode.NEXT_STEP, "vector_entry_point", copy=False, **options)
        copies = make(name, AutoresetMode.NEXT_STEP, "vector_entry_point", **options)
        assert_same(views.reset(seed=1)[0], copies.reset(seed=1)[0])
        for k in range(15):
            copies.action_space.seed(k)
            action = copies.action_space.sample()
            assert_same(views.step(action)[0], copies.step(action)[0])
        assert_same(drive(copies, 1, 15), drive(copies, 1, 15))


@pytest.mark.parametrize("made", [None, copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("form", ["dict", "flat"])
def test_what_is_kept_is_not_written_over(form: str, made: Callable[..., Any] | None) -> None:
    env = make("JobSelection", AutoresetMode.NEXT_STEP, "vector_entry_point", observation=form)
    env.reset(seed=1)
    env = made(env) if made else env
    actions = np.zeros(N, np.int64)
    for part in range(6):  # each kind of array by itself, and a view of a view
        kept, known = [], []
        for _ in range(8):
            step = env.step(actions)
            arrays = list(step[0].values()) if form == "dict" else [step[0]]
            parts = (arrays[-1], arrays[0], step[1], step[2], step[4], arrays[-2:][0][1:][:1])
            kept.append(parts[part])
            infos = {"time_s": step[4]["time_s"]} if part == 4 else parts[part]
            known.append(copy.deepcopy(infos))
            del step, arrays, parts, infos
        if part == 4:  # infos are made when they are read
            kept = [{"time_s": infos["time_s"]} for infos in kept]
        assert_same(kept, known)


def test_arrays_that_nobody_keeps_are_used_again() -> None:
    env = make("JobSelection", AutoresetMode.NEXT_STEP, "vector_entry_point")
    env.reset(seed=1)
    actions = np.zeros(N, np.int64)
    places = {env.step(actions)[0]["jobs"].ctypes.data for _ in range(20)}
    assert len(places) <= 2


def written_over(values: Any) -> None:
    """Write into all arrays of what a step has returned."""
    if isinstance(values, np.ndarray):
        values[...] = 1
    elif isinstance(values, (dict, tuple, list)):
        for each in dict(values).values() if isinstance(values, dict) else values:
            written_over(each)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", [*NAMES, "PowerCap", "CoSchedule"])
def test_who_has_what_is_told_may_write_into_it(name: str, mode: AutoresetMode) -> None:
    options = {"workload": DEFAULT_CODES, "neighbours": 4} if name == "CoSchedule" else {}
    plain, written = (make(name, mode, "vector_entry_point", **options) for _ in range(2))
    other, expected = written.reset(seed=3), plain.reset(seed=3)
    assert_same(other, expected)
    for k in range(40):
        written_over(other)
        if hasattr(plain, "action_masks"):
            assert np.array_equal(plain.action_masks(), written.action_masks())
        plain.action_space.seed(k)
        action = plain.action_space.sample()
        expected, other = plain.step(action), written.step(action)
        assert_same(other, expected)
        if mode == AutoresetMode.DISABLED and expected[2].any():
            mask = expected[2].copy()
            written_over(other)
            expected, other = (
                env.reset(options={"reset_mask": mask.copy()}) for env in (plain, written)
            )
            assert_same(other, expected)
    saved = written.snapshot()
    written_over(other)
    assert_same(written.restore(saved)[0], expected[0])
