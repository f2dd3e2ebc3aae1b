"""What a scheduler asks for, in the words of the table of what goes together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpcgym.scheduler.capabilities import FEATURES, at_passes, check
from hpcgym.scheduler.estimates.by_name import learns, predictor_of
from hpcgym.scheduler.estimates.learning import averaged_jobs
from hpcgym.scheduler.quotas import bound_submissions
from hpcgym.scheduler.rules import Scheduler


def check_scheduler(scheduler: Scheduler, *things: str) -> None:
    """Raise an HpcgymError if a scheduler asks for what does not go together, or with the things.

    As :func:`check` does.
    """
    check(*things, words=features_of(scheduler))


def features_of(scheduler: Scheduler) -> dict[str, str]:
    """Return what a scheduler asks for, in the words of its rules, as :func:`check` takes it."""
    rules: Mapping[str, Any] = scheduler.describe()
    found = at_passes(scheduler)
    if scheduler.correction == "kill":
        found["kill"] = FEATURES["kill"]
    for rule in ("policy_estimate", "estimate"):
        if learns(getattr(scheduler, rule)):
            kind = "averages" if averaged_jobs(scheduler) else "learned"
            found[kind] = f"{rule}={rules[rule]!r}"
        if predictor_of(getattr(scheduler, rule)) is not None:
            found["predictor"] = f"{rule}={rules[rule]!r}"
    for rule, looks in zip(("policy", "backfill_order"), scheduler.usage_orders, strict=True):
        if looks:  # the order of backfilling may only follow the policy
            found.setdefault("usage", f"{rule}={rules[rule]!r}")
    for rule, expression in zip(("policy", "backfill_order"), scheduler.anew, strict=True):
        if expression is not None:
            found["anew"] = f"{rule}={rules[rule]!r}"
    if scheduler.dispatcher is not None:
        found["dispatcher"] = f"dispatcher={rules['dispatcher']!r}"
    if scheduler.dispatch_time:
        found["dispatch time"] = f"dispatch_time={rules['dispatch_time']!r}"
    if scheduler.threshold is not None:
        found["threshold"] = "threshold"
    if scheduler.quotas:
        found["quota"] = f"quota={scheduler.quota!r}"
    if bound_submissions(scheduler.quotas):
        found["submitted"] = f"quota={scheduler.quota!r} (submitted)"
    if scheduler.maintenance is not None:
        found["maintenance"] = f"maintenance={scheduler.maintenance!r}"
    if scheduler.preemption is not None:
        found["preemption"] = f"preemption={scheduler.preemption!r}"
    if scheduler.dependencies != "none":
        found["dependencies"] = f"dependencies={scheduler.dependencies!r}"
    if scheduler.power != "none":
        found["limits"] = f"power={scheduler.power!r}"
    if scheduler.allocation == "contiguous":
        found["contiguous"] = FEATURES["contiguous"]
    return found
