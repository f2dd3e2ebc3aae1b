"""CoSchedule: what cannot be known, and many environments at once."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import SLOW, assert_same, go_on, play, random_acts, whole
from gymnasium.utils.env_checker import check_env
from pairs import GIVEN, NODES, OPTIONS, SIXTEEN, seen, with_files, workloads

from hpcgym.envs import CoSchedule, CoScheduleVector
from hpcgym.envs.core.infos import means_of
from hpcgym.errors import HpcgymError
from hpcgym.workload import Workload

# --- What cannot be known -------------------------------------------------------------------------


@settings(SLOW, max_examples=60)
@given(data=st.data(), workload=workloads(), options=OPTIONS, seed=st.integers(0, 1000))
def test_nothing_is_seen_before_it_has_been(
    data: Any, workload: Workload, options: Any, seed: int
) -> None:
    options = {**options, "estimate": data.draw(st.sampled_from(["requested", "double-requested"]))}
    env = CoSchedule(**whole(workload, **GIVEN, **options))
    acts = random_acts(env.action_space, seed)
    steps = play(env, acts)
    known = data.draw(st.integers(0, max(len(steps) - 2, 0)))
    now = steps[known].info["time"]
    other = altered(env, now, data.draw(st.integers(0, 1000)))
    again = CoSchedule(**whole(other, **GIVEN, **options))
    assert_same(seen(play(again, acts, known)), seen(steps[: known + 1]))


def altered(env: CoSchedule, now: float, seed: int) -> Workload:
    """Jobs that do the same up to ``now`` [s]: later ends and submissions are others."""
    rng, jobs, result = np.random.default_rng(seed), env.episode_workload, env.result()
    n = int((jobs.submit_time <= now).sum())
    run, columns = result.coschedule, {}
    assert run is not None
    for name in ("submit_time", "run_time", "requested_time", "requested_processors", "executable"):
        columns[name] = jobs.columns[name].tolist()[:n]
    for j in range(n):
        if run.end_ticks[j] > now * run.ticks:
            # no less than it has run, at its greatest rate
            least = int(max(now - result.start[j], 0) * env.speedups.filled.max()) + 2
            if result.start[j] >= now:
                least = 1
            if least < columns["requested_time"][j]:
                most = columns["requested_time"][j] + 50
                columns["run_time"][j] = int(rng.integers(least, most))
    for _ in range(int(rng.integers(0, 4))):
        columns["submit_time"].append(int(max(now, columns["submit_time"][-1])) + 1)
        columns["run_time"].append(int(rng.integers(1, 400)))
        columns["requested_time"].append(int(rng.integers(1, 400)))
        columns["requested_processors"].append(int(rng.integers(1, 33)))
        columns["executable"].append(int(rng.integers(1, 4)))
    return Workload.from_columns(columns, processors=32, name="drawn", header=dict(jobs.header))


# --- One and many ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("action", ["pair", "scores"])
@pytest.mark.parametrize("observation", ["dict", "flat"])
@pytest.mark.parametrize("machine", [{"cluster": NODES}, with_files()], ids=["plain", "files"])
def test_many_are_as_single_ones(observation: str, action: str, machine: Any) -> None:
    options = {"workload": SIXTEEN, **machine, "jobs": 15, "window": 6, "neighbours": 3}
    options |= {"observation": observation, "action": action}
    many = CoScheduleVector(3, autoreset_mode="SameStep", **options)
    singles = [CoSchedule(**options) for _ in range(3)]
    rows, infos = many.reset(seed=7)
    one = [env.reset(seed=7 + e) for e, env in enumerate(singles)]
    ends = 0
    for number in range(80):
        for e, (row, info) in enumerate(one):
            assert_same(at(rows, e), row)
            assert infos["time"][e] == info["time"]
            np.testing.assert_array_equal(infos["action_mask"][e], info["action_mask"])
        many.single_action_space.seed(number)
        actions = np.array([many.single_action_space.sample() for _ in singles])
        rows, rewards, ended, _, infos = many.step(actions)
        for e, env in enumerate(singles):
            observed, reward, terminated, _, info = env.step(actions[e])
            assert reward == rewards[e]
            assert terminated == ended[e]
            one[e] = observed, info
            if terminated:
                ends += 1
                told, sums = infos["final_info"]["metrics"], means_of_ends(many)[e]
                assert {name: told[name][e] for name in info["metrics"]} == info["metrics"]
                for name in ("mean_bsld", "mean_wait_s", "energy_j", "makespan_s"):
                    assert sums[name] == pytest.approx(info["metrics"][name], rel=1e-9)
                assert_same(infos["final_obs"][e], observed)
                one[e] = env.reset()
    assert ends > 3


def means_of_ends(many: CoScheduleVector) -> dict[int, dict[str, float]]:
    """What the sums of the kernel say of the episodes that have just ended."""
    assert many.ends is not None
    means = [means_of(many.simulations, told) for told in many.ends.states]
    return dict(zip(many.ends.those.tolist(), means, strict=True))


def at(rows: Any, e: int) -> Any:
    if isinstance(rows, dict):
        return {name: values[e] for name, values in rows.items()}
    return rows[e]


def test_next_step_and_disabled_modes() -> None:
    options = {"workload": SIXTEEN, "cluster": NODES, "jobs": 5}
    after, never = (
        CoScheduleVector(2, autoreset_mode=m, **options) for m in ("NextStep", "Disabled")
    )
    after.reset(seed=0)
    never.reset(seed=0)
    zeros, ended = np.zeros(2, np.int64), np.zeros(2, np.bool_)
    while not ended.any():
        rows, _, ended, _, _ = after.step(zeros)
        assert_same(rows, never.step(zeros)[0])
    with pytest.raises(gymnasium.error.ResetNeeded):
        never.step(zeros)
    rows, rewards, again, _, _ = after.step(zeros)
    other, _ = never.reset(options={"reset_mask": ended})
    assert not again[ended].any()
    assert (rewards[ended] == 0).all()
    for e in np.flatnonzero(ended):
        assert_same(at(rows, e), at(other, e))


@pytest.mark.slow
@pytest.mark.parametrize("machine", [{"cluster": NODES}, with_files()], ids=["plain", "files"])
def test_snapshots(machine: Any) -> None:
    env = CoSchedule(SIXTEEN, jobs=30, **machine)
    acts = random_acts(env.action_space, 4)
    steps = play(env, acts, 12, seed=1)
    saved = env.snapshot()
    rest = go_on(env, acts, None, {}, first=12)
    observation, info = env.restore(saved)
    assert_same(observation, steps[-1].observation)
    assert_same(go_on(env, acts, observation, info, first=12), rest)
    with pytest.raises(HpcgymError, match="pools of processors only"):
        env.snapshot(hide=True)


@pytest.mark.parametrize(
    "options",
    [{}, {"action": "scores"}, {"observation": "flat"}, {"allocation": "compact"},
     {"reward": {"bsld": 0.5, "throughput": 2}}, {"window": 1, "neighbours": 1},
     {"episodes": "whole", "part": "test"}],
    ids=str,
)  # fmt: skip
def test_what_gymnasium_and_stable_baselines_expect(options: dict[str, Any]) -> None:
    arguments = {"jobs": 20, "window": 5, "neighbours": 4, **options}
    env = gymnasium.make(
        "hpcgym/CoSchedule-v0", workload=SIXTEEN, cluster=NODES, disable_env_checker=False,
        **arguments,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
        steps = play(env, random_acts(env.action_space, 0))
        # it would have images or vectors, and suggests the flat form
        for text in ("Your observation", "It seems that your", "The minimal resolution"):
            warnings.filterwarnings("ignore", text)
        checker = pytest.importorskip("stable_baselines3.common.env_checker")
        checker.check_env(env.unwrapped, skip_render_check=True)
    assert all(env.observation_space.contains(step.observation) for step in steps)


def test_the_bridge_to_stable_baselines() -> None:
    pytest.importorskip("stable_baselines3")
    from hpcgym.envs.sb3 import HpcVecEnv

    envs = HpcVecEnv("hpcgym/CoSchedule-v0", 3, workload=SIXTEEN, cluster=NODES, jobs=5, window=4)
    assert envs.reset()["pairs"].shape == (3, 4, 16, 2)
    assert np.shape(envs.env_method("action_masks")) == (3, 69)
    done: Any = np.zeros(3)
    while not done.any():
        *_, done, infos = envs.step(np.zeros(3, np.int64))
    ended = infos[int(done.argmax())]
    assert ended["metrics"]["makespan_s"] > 0
    assert ended["terminal_observation"]["jobs"].shape == (4, 8)


def test_text_and_picture() -> None:
    env = CoSchedule(SIXTEEN, cluster=NODES, jobs=30, render_mode="ansi")
    env.reset(seed=0)
    for _ in range(12):
        env.step(env.action_space.n - 1)
    text = env.render()
    running, queued = len(env.running()), len(env.queued())
    assert f"{queued} queued, {running} running" in text
    assert f"{24 * running} of 192 busy" in text
    pytest.importorskip("matplotlib")
    drawn = CoSchedule(SIXTEEN, cluster=NODES, jobs=30, render_mode="rgb_array")
    drawn.reset(seed=0)
    assert drawn.render().std() > 0


def test_the_default_environment() -> None:
    env = gymnasium.make("hpcgym/CoSchedule-v0")
    steps = play(env, random_acts(env.action_space, 0), seed=0)
    assert steps[-1].info["metrics"]["jobs"] == 256
    assert steps[-1].info["metrics"]["mean_bsld"] > 1.2  # jobs wait
