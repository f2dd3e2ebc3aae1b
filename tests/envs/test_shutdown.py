"""Environments whose processors are switched off: by themselves, and by an action."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import SEEDS, SLOW, play, whole
from plain_envs import JobSelection
from strategies import clusters, workloads

from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.power import SwitchingSimulation
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload import Workload

# --- Against the slow machine ------------------------------------------------------------------


def choice(seed: int, now: int, rows: list[int], can_switch: bool) -> int:
    """Return a place in the window, or the place behind it: also where nothing can be done there.

    It depends on what is seen, and once nothing is idle, on that: so the question changes.
    """
    return int(np.random.default_rng((seed, now, can_switch, *rows)).integers(len(rows) + 1))


class Switched(SwitchingSimulation):
    """Asks which job is the next as long as one fits; or all idle processors are switched off."""

    seed = 0
    seen: list[tuple[int, bool]]  # how many are free and on, and whether any may be switched off

    def start_in_order(self, now: int, most: int | None = None) -> Any:
        while any(self.fits(job, now) for job in self.queue):
            on = sum(now <= idle.off_from for idle in self.stack)
            can_switch = any(now < idle.off_from for idle in self.stack)
            self.seen.append((on, can_switch))
            place = choice(self.seed, now, [job.number for job in self.queue], can_switch)
            if place == len(self.queue) and can_switch:
                self.switch_off(now)
                continue
            job = self.queue[place if place < len(self.queue) else 0]
            if not self.fits(job, now):
                return job
            self.start(job, now, backfilled=False)
        return None


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
        place = choice(seed, info["time_s"], rows, can_switch)
        return window if place == len(rows) else place

    steps = play(env, act)
    times = (cluster.shutdown_after_s, cluster.shutdown_time_s, cluster.boot_time_s)
    slow = Switched(
        jobs_of(workload), workload.processors, *times, backfill=backfill, backfill_order="fcfs"
    )
    slow.seed, slow.seen = seed, []
    starts = [job.start for job in slow.run()]
    result = env.result()
    assert result.start.tolist() == starts
    assert result.idle_seconds == slow.seconds()
    assert [can_switch for _, can_switch in seen] == [can_switch for _, can_switch in slow.seen]
    shares = np.array([on for on, _ in slow.seen]) / workload.processors
    np.testing.assert_allclose([share for share, _ in seen], shares, rtol=1e-6)
    assert not steps[-1].info["action_mask"].any()
    if cluster.busy_power_w > 0:
        span = int(np.ptp(workload.submit_time)) + 1
        full = cluster.busy_power_w * cluster.processors * span
        total = sum(step.reward for step in steps)
        assert total == pytest.approx(-result.metrics["energy_j"] / full, rel=1e-12)
    assert {"energy", "events", "progress"} <= set(validate_schedule(result))


# --- The action --------------------------------------------------------------------------------
