"""Environments whose processors are switched off: by themselves, and by an action."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import SEEDS, SLOW, play, whole
from slow_power import SWITCH_OFF, schedule_slowly
from strategies import clusters, workloads

from hpcgym.envs.job_selection import JobSelection
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
