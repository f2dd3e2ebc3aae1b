"""Chance: random orders and random actions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from mistakes import mistakes_of

from hpcgym.baselines.chance import RandomActions, random_order
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload import load_workload

JOBS = load_workload("lublin:jobs=40,processors=16")


def world(kind: str, space: Any) -> Any:
    return SimpleNamespace(action_kind=kind, action_space=space, episode_workload=JOBS)


def test_a_random_order_keeps_the_other_rules() -> None:
    given = Scheduler("wfp3", backfill_order="saf", threshold=60, estimate="ave2", hold=0.1)
    scheduler = random_order(given, 40, 3)
    assert (scheduler.policy, scheduler.backfill_order, scheduler.threshold) == ("spf", "spf", 60)
    assert (scheduler.estimate, scheduler.hold) == ("ave2", given.hold)
    assert sorted(scheduler.policy_estimate) == list(range(1, 41))
    words = {"policy": "random", "backfill_order": "random", "policy_estimate": None}
    assert scheduler.in_words() == {**given.describe(), **words}
    held = random_order(given.but(hold="share=0.1,by=both"), 40, 3)
    assert held.hold == given.hold  # its numbers are no run times
    same, other = (random_order(given, 40, seed).policy_estimate for seed in (3, 4))
    assert np.array_equal(same, scheduler.policy_estimate)
    assert not np.array_equal(other, scheduler.policy_estimate)


def test_every_visible_job_is_selected_alike_and_no_other() -> None:
    policy = RandomActions(5)
    policy.begin(world("select", spaces.Discrete(8)))
    mask = np.array([1, 1, 0, 1, 0, 0, 0, 0], np.int8)
    taken = [policy.act(None, {"action_mask": mask}) for _ in range(3000)]
    counts = np.bincount(taken, minlength=8)
    assert counts[mask == 0].sum() == 0
    assert np.abs(counts[mask == 1] - 1000).max() < 110  # 4 standard deviations
    assert all(type(action) is int for action in taken)


@pytest.mark.parametrize("kind", ["order", "weights"])
def test_numbers_are_in_their_space(kind: str) -> None:
    space = spaces.Box(-1, 1, (6,), np.float32)
    policy = RandomActions(5)
    policy.begin(world(kind, space))
    actions = [policy.act(None, {}) for _ in range(500)]
    assert all(space.contains(action) for action in actions)
    assert np.abs(np.mean(actions, axis=0)).max() < 0.15
    policy.begin(world(kind, space))  # the same episode: the same actions
    assert np.array_equal(policy.act(None, {}), actions[0])
    other = RandomActions(6)
    other.begin(world(kind, space))
    assert not np.array_equal(other.act(None, {}), actions[0])


test_mistakes = mistakes_of(globals())
