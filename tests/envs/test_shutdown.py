"""Environments whose processors are switched off: by themselves, and by an action."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import AWAKE, BUSY, SEEDS, SLEEPY, SLOW, jobs_of, play, whole
from slow_power import SWITCH_OFF, schedule_slowly
from strategies import clusters, workloads

from hpcgym import Cluster
from hpcgym.envs.job_selection import JobSelection, JobSelectionVector
from hpcgym.errors import HpcgymError
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload import Workload

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
        span = int(np.ptp(workload.submit_time)) + 1
        full = cluster.busy_power_w * cluster.processors * span
        total = sum(step.reward for step in steps)
        assert total == pytest.approx(-result.metrics["energy_j"] / full, rel=1e-12)
    assert {"energy", "events", "progress"} <= set(validate_schedule(result))


# --- The action --------------------------------------------------------------------------------


def test_the_action_by_hand() -> None:
    """Two processors, 10 s to switch off and 20 s to switch on.

    At 0 s the processors are switched off, of which job 0 takes one back in the same second. The
    other is off at 10 s. Job 1, at 50 s, has it switched on until 70 s.
    """
    workload = jobs_of([(0, 1, 100), (50, 1, 100)], 2)
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


def test_rules_under_which_processors_stay_on() -> None:
    for made, more in (
        (JobSelection, {"cluster": SLEEPY}),
        (JobSelectionVector, {"cluster": AWAKE}),
    ):
        with pytest.raises(HpcgymError, match="passes='per-event'"):
            made(workload=BUSY, passes="per-event", shutdown_action=True, **more)
