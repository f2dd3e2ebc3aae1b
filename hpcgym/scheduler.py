"""A scheduler: the seven rules that turn a queue of jobs into a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.policy.index import PolicyLike, parse_policy
from hpcgym.prediction.estimates import CORRECTIONS, ESTIMATES

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
    estimate : "requested", "clairvoyant", "ave2", or predicted run times, (n_jobs,) seconds.
    correction : "requested", "incremental" or "recursive-doubling": the new prediction for a job
        that outlives its prediction.
    threshold : seconds of waiting after which a job goes to the head of the queue; None: never.
    passes : "per-timestamp" or "per-event".

    Raises
    ------
    HpcgymError : a value that is not one of these.
    """

    policy: PolicyLike = "fcfs"
    backfill: str = "easy"
    backfill_order: PolicyLike = "fcfs"
    estimate: str | Sequence[float] | NDArray[Any] = "requested"
    correction: str = "requested"
    threshold: float | None = None
    passes: str = "per-timestamp"

    def __post_init__(self) -> None:
        parse_policy(self.policy)
        if self.backfill_order != "sjbf":
            parse_policy(self.backfill_order)
        _check("backfill", self.backfill, BACKFILL)
        _check("correction", self.correction, CORRECTIONS)
        _check("passes", self.passes, PASSES)
        if isinstance(self.estimate, str):
            _check("estimate", self.estimate, ESTIMATES)
        elif not isinstance(self.estimate, np.ndarray):
            object.__setattr__(self, "estimate", np.asarray(self.estimate))
        if self.threshold is not None and not self.threshold >= 0:
            raise HpcgymError(f"threshold must be at least 0 s, not {self.threshold!r}")

    def but(self, **changes: Any) -> Scheduler:
        """Return the scheduler with some rules changed.

        Raises
        ------
        HpcgymError : an unknown rule, or a value that it cannot have.
        """
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                raise HpcgymError(f"unknown rule {name!r}; a scheduler has {', '.join(known)}")
        return replace(self, **changes)

    def describe(self) -> dict[str, str | float | None]:
        """Return the rules as plain words and numbers, for tables and manifests."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


def _check(rule: str, value: object, known: Mapping[str, str]) -> None:
    """Raise unless ``value`` is one of the known names."""
    if value not in known:
        near = get_close_matches(str(value), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise HpcgymError(f"unknown {rule} {value!r}{hint} Known are {', '.join(known)}")


def _plain(value: object) -> str | float | None:
    """Return a rule's value as a word or number."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={weight:g}" for name, weight in value.items())
    if isinstance(value, np.ndarray):
        return "given"
    return ",".join(f"{weight:g}" for weight in value)  # type: ignore[attr-defined]
