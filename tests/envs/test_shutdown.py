"""Environments whose processors are switched off: by themselves, and by an action."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import BUSY, NAMES, SINGLE, SLOW, Step, assert_same, play, random_acts, whole
from gymnasium.vector import AutoresetMode
from slow_power import SWITCH_OFF, schedule_slowly
from strategies import clusters, workloads

from hpcgym import Cluster, simulate
from hpcgym.envs.job_selection import JobSelection, JobSelectionVector
from hpcgym.errors import HpcgymError
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload import Workload

TOLERANCE = 1e-12
SEEDS = st.integers(0, 2**16)
#: Jobs wait in it at times, and processors are idle at others.
CALM = BUSY.with_columns(submit_time=BUSY.submit_time * 4)
SLEEPY = Cluster(
    64,
    shutdown_after_s=600,
    off_power_w=9,
    shutdown_time_s=60,
    boot_time_s=300,
    shutdown_power_w=200,
    boot_power_w=300,
)
AWAKE = Cluster(64, off_power_w=9, shutdown_time_s=60, boot_time_s=300)  # but for actions


def total(steps: list[Step]) -> float:
    return float(sum(step.reward for step in steps[1:]))


def energy_return(env: Any) -> float:
    """What the return is to be, from the schedule alone."""
    jobs, cluster = env.episode_workload, env.options.cluster
    span = int(jobs.submit_time[-1] - jobs.submit_time[0] + 1)
    full = cluster.busy_power_w * cluster.processors * span
    return float(-env.result().metrics["energy_j"] / full)


# --- Against the slow machine ------------------------------------------------------------------


def choice(seed: int, now: int, rows: list[int], can_switch: bool) -> int:
    """Return a place in the window, or the place behind it: also where nothing can be done there.

    It depends on what is seen, and once nothing is idle, on that: so the question changes.
    """
    return int(np.random.default_rng((seed, now, can_switch, *rows)).integers(len(rows) + 1))


@settings(SLOW, max_examples=300)
@given(st.data(), workloads(), SEEDS, st.sampled_from(["none", "easy"]), st.booleans())
def test_any_action(
    data: st.DataObject, workload: Workload, seed: int, backfill: str, by_itself: bool
) -> None:
    cluster = data.draw(clusters(workload.processors))
    if not by_itself:
        object.__setattr__(cluster, "shutdown_after_s", None)
    window = len(workload)
    arguments = whole(workload, cluster=cluster, backfill=backfill, window=window)
    env = JobSelection(shutdown_action=True, reward="energy", **arguments)
    seen: list[tuple[float, bool]] = []

    def act(_: int, observation: Any, info: dict[str, Any]) -> int:
        rows = [row for row in info["window"].tolist() if row >= 0]
        can_switch = bool(info["action_mask"][window])
        assert info["action_mask"][:window].tolist() == [1] * len(rows) + [0] * (window - len(rows))
        assert env.action_masks().tolist() == info["action_mask"].astype(bool).tolist()
        seen.append((float(observation["cluster"][9]), can_switch))
        place = choice(seed, info["time"], rows, can_switch)
        return window if place == len(rows) else place

    def ask(now: int, queue: list[int], can_switch: bool) -> int:
        place = choice(seed, now, queue, can_switch)
        if place < len(queue):
            return queue[place]
        return SWITCH_OFF if can_switch else queue[0]

    steps = play(env, act)
    slow = schedule_slowly(workload, cluster, backfill, ask=ask)
    result = env.result()
    assert result.start.tolist() == slow.starts
    assert result.idle_seconds == slow.power.seconds()
    assert [can_switch for _, can_switch in seen] == slow.can_switch
    shares = np.array(slow.on) / workload.processors
    np.testing.assert_allclose([share for share, _ in seen], shares, rtol=1e-6)
    assert not steps[-1].info["action_mask"].any()
    if cluster.busy_power_w > 0:
        assert total(steps) == pytest.approx(energy_return(env), rel=TOLERANCE)
    assert {"energy", "events", "progress"} <= set(validate_schedule(result))


@settings(SLOW, max_examples=60)
@given(st.data(), workloads(), SEEDS, st.sampled_from(NAMES))
def test_returns_are_metrics(data: st.DataObject, workload: Workload, seed: int, name: str) -> None:
    cluster = data.draw(clusters(workload.processors).filter(lambda one: one.busy_power_w > 0))
    env = SINGLE[name](reward="energy", window=6, **whole(workload, cluster=cluster))
    steps = play(env, random_acts(env.action_space, seed))
    assert total(steps) == pytest.approx(energy_return(env), rel=TOLERANCE)
    metrics = env.result().metrics
    for name, value in steps[-1].info["metrics"].items():
        np.testing.assert_equal(value, metrics[name])
    joules = sum(step.info["reward_terms"]["energy_j"] for step in steps[1:])
    assert joules == pytest.approx(env.result().metrics["energy_j"], rel=TOLERANCE)
    validate_schedule(env.result())


@pytest.mark.parametrize("cluster", [SLEEPY, Cluster(64)], ids=["switched off", "always on"])
@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_the_first_job_each_time_is_fcfs(cluster: Cluster, backfill: str) -> None:
    env = JobSelection(
        reward="energy", **whole(CALM, cluster=cluster, backfill=backfill, window=300)
    )
    steps = play(env, lambda *_: 0)
    expected = simulate(CALM, cluster=cluster, policy="fcfs", backfill=backfill)
    assert env.result().start.tolist() == expected.start.tolist()
    assert env.result().idle_seconds == expected.idle_seconds
    np.testing.assert_equal(
        {name: env.result().metrics[name] for name in ENERGIES},
        {name: expected.metrics[name] for name in ENERGIES},
    )
    assert (expected.idle_seconds is None) == (cluster.shutdown_after_s is None)
    assert total(steps) == pytest.approx(energy_return(env), rel=TOLERANCE)


ENERGIES = [f"energy_{part}j" for part in ("busy_", "idle_", "off_", "switching_", "")]


# --- The action --------------------------------------------------------------------------------


def test_the_action_by_hand() -> None:
    """Two processors, 10 s to switch off and 20 s to switch on.

    At 0 s the processors are switched off, of which job 0 takes one back in the same second. The
    other is off at 10 s. Job 1, at 50 s, has it switched on until 70 s.
    """
    columns = {
        "submit_time": [0, 50],
        "run_time": [100, 100],
        "requested_time": [100, 100],
        "requested_processors": [1, 1],
    }
    workload = Workload.from_columns(columns, processors=2)
    cluster = Cluster(2, 10, 100, off_power_w=1, shutdown_time_s=10, boot_time_s=20)
    env = JobSelection(
        **whole(workload, cluster=cluster, window=3), shutdown_action=True, reward="energy"
    )
    assert env.action_space == gymnasium.spaces.Discrete(4)
    observation, info = env.reset()
    assert info["action_mask"].tolist() == [1, 0, 0, 1]
    assert observation in env.observation_space
    assert observation["mask"].tolist() == [1, 0, 0]

    observation, reward, ended, _, info = env.step(3)
    assert (reward, ended, info["time"]) == (0.0, False, 0)
    assert info["window"].tolist() == [0, -1, -1]
    assert info["action_mask"].tolist() == [1, 0, 0, 0]
    assert observation["cluster"][9] == 1.0  # in this second both could still be had at once

    observation, reward, ended, _, info = env.step(3)  # nothing is idle: the first job is served
    assert (ended, info["time"], info["window"].tolist()) == (False, 50, [1, -1, -1])
    assert observation["cluster"][[0, 9]].tolist() == [0.5, 0.0]
    assert info["action_mask"].tolist() == [1, 0, 0, 0]
    without_job = 10 * 10 + 40 * 1
    assert info["reward_terms"]["energy_j"] == 100 * 100 + without_job

    observation, reward, ended, _, info = env.step(0)
    assert ended
    result = env.result()
    assert result.start.tolist() == [0, 70]
    # job 0's processor is idle from 100 s to 170 s: nobody has switched it off
    assert result.idle_seconds == {"idle": 70, "off": 40, "switching_off": 10, "switching_on": 20}
    assert info["metrics"]["energy_j"] == 200 * 100 + 700 + 40 + 100 + 20 * 100
    assert info["reward_terms"]["energy_j"] == 100 * 100 + 700 + 20 * 100
    assert not info["action_mask"].any()
    env.reset()
    with pytest.raises(HpcgymError, match="index from 0 to 3"):
        env.step(4)


def test_without_the_action_there_is_no_such_index() -> None:
    env = JobSelection(BUSY, cluster=SLEEPY, jobs=20, window=4)
    _, info = env.reset(seed=0)
    assert info["action_mask"].shape == (4,)
    with pytest.raises(HpcgymError, match="index from 0 to 3"):
        env.step(4)


def test_nothing_is_switched_off_unless_asked() -> None:
    """The same schedule and energy as without the action, if it is never taken."""
    env = JobSelection(
        **whole(CALM, cluster=AWAKE, window=300), shutdown_action=True, reward="energy"
    )
    steps = play(env, lambda *_: 0)
    expected = simulate(CALM, "easy", cluster=AWAKE)
    assert env.result().start.tolist() == expected.start.tolist()
    assert {name: env.result().metrics[name] for name in ENERGIES} == {
        name: expected.metrics[name] for name in ENERGIES
    }
    assert total(steps) == pytest.approx(energy_return(env), rel=TOLERANCE)


def test_switching_off_saves_energy_and_costs_waiting() -> None:
    quiet = CALM.with_columns(submit_time=CALM.submit_time * 10)
    arguments = {**whole(quiet, cluster=AWAKE, window=300), "shutdown_action": True}
    metrics = {}
    for switch in (False, True):
        env = JobSelection(**arguments)
        play(env, lambda _, __, info, on=switch: 300 if on and info["action_mask"][300] else 0)
        metrics[switch] = env.result().metrics
    assert metrics[True]["energy_j"] < metrics[False]["energy_j"]
    assert metrics[True]["energy_off_j"] > 0
    assert metrics[True]["mean_wait_s"] > metrics[False]["mean_wait_s"]


@pytest.mark.parametrize("rule", [{"passes": "per-event"}])
def test_rules_under_which_processors_stay_on(rule: dict[str, Any]) -> None:
    with pytest.raises(HpcgymError, match="passes='per-event'"):
        JobSelection(BUSY, cluster=SLEEPY, **rule)
    with pytest.raises(HpcgymError, match="passes='per-event'"):
        JobSelectionVector(2, BUSY, shutdown_action=True, **rule)


def test_a_snapshot_keeps_what_processors_do() -> None:
    env = JobSelection(
        CALM, cluster=SLEEPY, jobs=60, window=8, shutdown_action=True, reward="energy"
    )
    acts = random_acts(env.action_space, 1)
    observation, info = env.reset(seed=2)
    for number in range(20):
        observation, _, _, _, info = env.step(acts(number, observation, info))
    saved = env.snapshot()
    one = [env.step(acts(number, None, {})) for number in range(20, 50)]
    first = env.restore(saved)
    assert_same(first[0], observation)
    other = [env.step(acts(number, None, {})) for number in range(20, 50)]
    assert_same(one, other)


# --- Single and vector -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("observation", ["dict", "flat"])
@pytest.mark.parametrize("cluster", [SLEEPY, AWAKE], ids=["by itself too", "by action only"])
def test_single_and_vector_are_alike(
    mode: AutoresetMode, observation: str, cluster: Cluster
) -> None:
    arguments = {"workload": CALM, "jobs": 15, "window": 5, "cluster": cluster}
    arguments |= {"shutdown_action": True, "reward": "energy", "observation": observation}
    native = gymnasium.make_vec(
        "hpcgym/JobSelection-v0", 3, vectorization_mode="vector_entry_point",
        autoreset_mode=mode, **arguments,
    )  # fmt: skip
    loop = gymnasium.make_vec(
        "hpcgym/JobSelection-v0", 3, vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode}, **arguments,
    )  # fmt: skip
    assert native.action_space == loop.action_space
    seen = [env.reset(seed=4) for env in (native, loop)]
    ended = switched = 0
    for k in range(80):
        assert_same(seen[0][0], seen[1][0])
        said = seen[1][-1]["_action_mask"]  # the loop says nothing of those it has not reset
        assert_same(seen[0][-1]["action_mask"][said], seen[1][-1]["action_mask"][said])
        assert native.unwrapped.action_masks().dtype == np.bool_
        assert_same(native.unwrapped.action_masks(), np.array(loop.unwrapped.call("action_masks")))
        native.action_space.seed(k)
        actions = native.action_space.sample()
        switched += int((seen[0][-1]["action_mask"][:, 5] & (actions == 5)).sum())
        seen = [env.step(actions) for env in (native, loop)]
        assert_same(seen[0][1:4], seen[1][1:4])
        done = seen[0][2]
        ended += int(done.sum())
        if done.any():
            metrics = [
                info["metrics"] if "metrics" in info else info["final_info"]["metrics"]
                for info in (seen[0][4], seen[1][4])
            ]
            joules = [one["energy_j"][done] for one in metrics]
            np.testing.assert_allclose(joules[0], joules[1], rtol=TOLERANCE)
            if mode == AutoresetMode.DISABLED:
                reset = {"reset_mask": done.copy()}
                seen = [env.reset(options=reset) for env in (native, loop)]
    assert ended > 3
    assert switched > 3
