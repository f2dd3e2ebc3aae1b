"""A scheduler: the eight rules that turn a queue of jobs into a schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from hpcgym.errors import HpcgymError, unknown
from hpcgym.policy.index import PolicyLike, parse_policy, weight_text
from hpcgym.prediction.estimates import CORRECTIONS, Estimate, check_estimate, learns

BACKFILL = {
    "none": "no job starts before one that comes earlier in the queue",
    "easy": "jobs may start earlier if they do not delay the first that waits",
    "conservative": "jobs may start earlier if they delay none that waits",
}
PASSES = {
    "per-timestamp": "one scheduling pass after all events of a second",
    "per-event": "a pass after each submission and each end, as the original simulators do",
}


@dataclass(frozen=True)
class Scheduler:
    """The rules of a scheduler; see :data:`hpcgym.baselines.SCHEDULERS` for named ones.

    Attributes
    ----------
    policy : order of the queue: a name of :data:`hpcgym.policy.POLICIES`, six weights over the
        features of document 002, or a mapping of feature names to weights.
    backfill : "none", "easy" (one reservation) or "conservative" (one for each waiting job).
    backfill_order : order in which EASY looks for jobs to start early: "fcfs", "sjbf" (shortest
        predicted run time) or any policy.
    estimate : the run times that backfilling reckons with: a name of
        :data:`hpcgym.prediction.ESTIMATES`, a :class:`hpcgym.prediction.Regression`, predicted run
        times, (n_jobs,) seconds, or a regressor of river or anything else with ``predict_one`` and
        ``learn_one`` (see :class:`hpcgym.prediction.Predictor`). A copy is kept.
    correction : "requested", "incremental", "recursive-doubling" or "predicted-again": the new
        prediction for a job that outlives its prediction.
    threshold : seconds of waiting after which a job goes to the head of the queue; None: never.
    passes : "per-timestamp" or "per-event".
    policy_estimate : the run times that ``policy`` and ``backfill_order`` look at in place of
        requested ones; as ``estimate``. Predictions that learn are cut at the requested time.

    Raises
    ------
    HpcgymError : a value that is not one of these.
    """

    policy: PolicyLike = "fcfs"
    backfill: str = "easy"
    backfill_order: PolicyLike = "fcfs"
    estimate: Estimate = "requested"
    correction: str = "requested"
    threshold: float | None = None
    passes: str = "per-timestamp"
    policy_estimate: Estimate = "requested"

    def __post_init__(self) -> None:
        settle = object.__setattr__  # what was given, so that no caller can change it afterwards
        settle(self, "policy", _policy("policy", self.policy))
        if not (isinstance(self.backfill_order, str) and self.backfill_order == "sjbf"):
            order = _policy("backfill_order", self.backfill_order, others=["sjbf"])
            settle(self, "backfill_order", order)
        _check("backfill", self.backfill, BACKFILL)
        _check("correction", self.correction, CORRECTIONS)
        _check("passes", self.passes, PASSES)
        settle(self, "estimate", check_estimate(self.estimate))
        settle(self, "policy_estimate", check_estimate(self.policy_estimate, "policy_estimate"))
        if self.correction == "predicted-again" and not learns(self.estimate):
            raise HpcgymError("correction 'predicted-again' needs an estimate that learns")
        settle(self, "threshold", _threshold(self.threshold))

    def but(self, **changes: Any) -> Scheduler:
        """Return the scheduler with some rules changed.

        Raises
        ------
        HpcgymError : an unknown rule, or a value that it cannot have.
        """
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                raise HpcgymError(unknown("rule", name, known))
        return replace(self, **changes)

    def describe(self) -> dict[str, str | float | None]:
        """Return the rules as plain words and numbers, for tables and manifests."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


def _check(rule: str, value: object, known: Iterable[str]) -> None:
    """Raise unless ``value`` is one of the known names."""
    if not isinstance(value, str) or value not in known:
        raise HpcgymError(unknown(rule, value, known))


def _policy(rule: str, policy: PolicyLike, others: Iterable[str] = ()) -> PolicyLike:
    """Return a policy, checked, as a text, a tuple or a mapping of its own."""
    parse_policy(policy, rule, others)
    if isinstance(policy, str):
        return policy
    if isinstance(policy, Mapping):
        return {name: float(weight) for name, weight in policy.items()}
    return tuple(float(weight) for weight in policy)


def _threshold(threshold: Any) -> float | None:
    """Return a starvation threshold [s], checked."""
    if threshold is None:
        return None
    number = threshold.item() if isinstance(threshold, np.generic) else threshold
    if not isinstance(number, (int, float)) or math.isnan(number) or number < 0:
        raise HpcgymError(f"threshold must be a number of at least 0 s, not {threshold!r}")
    return number


def _plain(value: object) -> str | float | None:
    """Return a rule's value as a word or number."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={weight_text(weight)}" for name, weight in value.items())
    if isinstance(value, tuple):
        return ",".join(map(weight_text, value))
    return "given" if isinstance(value, np.ndarray) else f"{type(value).__name__} in Python"
