"""Chance: schedulers and agents that prefer no job to another, by random orders and actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import spaces

from hpcgym.errors import HpcgymError
from hpcgym.scheduler.rules import RULES, Scheduler

#: The name of such an order.
RANDOM = "random"

#: Kinds of actions that :class:`RandomActions` knows: of JobSelection, Backfill, QueueOrdering and
#: MixedPolicy.
KINDS = ("select", "backfill", "order", "weights")


class RandomOrder(Scheduler):
    """A scheduler whose queue is in a random order, made by :func:`random_order`."""

    def in_words(self) -> dict[str, str | float | None]:
        """Return the rules as plain words, without the numbers that make the order."""
        by_chance = {"policy": RANDOM, "backfill_order": RANDOM, "policy_estimate": None}
        return {**self.describe(), **by_chance}


def random_order(scheduler: Scheduler, jobs: int, seed: int) -> RandomOrder:
    """Return a scheduler with a random order of the queue; its other rules stay.

    Each job draws a number when it is submitted, and keeps it while it waits; the least number is
    first. Jobs are backfilled in the same order, whatever ``backfill_order``. A hold goes by
    requested times.

    Parameters
    ----------
    scheduler : the other rules.
    jobs : of the workload that it is for, row by row.
    seed : of the numbers.
    """
    # the shortest first, by run times that are a permutation of 1..n
    numbers = np.random.default_rng(seed).permutation(jobs) + 1
    hold = scheduler.hold
    hold = None if hold is None else replace(hold, by="requested")
    order = {"policy": "spf", "backfill_order": "spf", "policy_estimate": numbers, "hold": hold}
    return RandomOrder(**{name: getattr(scheduler, name) for name in RULES} | order)


class RandomActions:
    """Take random actions: a visible job, an order of them, or weights, uniformly at each decision.

    Parameters
    ----------
    seed : the same seed does the same in the same episode, whatever was played before.
    """

    name = RANDOM

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._space: Any = None
        self._rng = np.random.default_rng(seed)

    def begin(self, env: Any) -> None:
        """Begin an episode.

        Raises
        ------
        HpcgymError : an environment with actions of other kinds.
        """
        env = getattr(env, "unwrapped", env)
        if env.action_kind not in KINDS:
            raise HpcgymError(f"random actions are not known of the kind {env.action_kind!r}")
        jobs = env.episode_workload
        self._space = env.action_space
        self._rng = np.random.default_rng([self.seed, len(jobs), int(jobs.submit_time[0])])

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return an int among those that ``info["action_mask"]`` has, or numbers from -1 to 1."""
        if self._space is None:
            raise HpcgymError("random: call begin(env) after the reset, then act")
        if isinstance(self._space, spaces.Discrete):
            places = np.flatnonzero(info["action_mask"])
            return int(self._rng.choice(places)) if places.size else 0  # nothing is asked
        return self._rng.uniform(-1.0, 1.0, self._space.shape).astype(self._space.dtype)
