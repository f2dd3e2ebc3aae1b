"""What results and schedulers are called in tables and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.policy.index import PolicyLike
    from hpcgym.result import Result
    from hpcgym.scheduler import Scheduler

#: One result, several, or several with names of one's own.
Results: TypeAlias = "Result | Sequence[Result] | Mapping[str, Result]"

_ESTIMATES = {
    "requested": "requested times",
    "double-requested": "twice the requested times",
    "clairvoyant": "actual run times",
    "user-ratio": "requested times x the user's mean ratio",
    "typical-ratio": "requested times x the user's typical ratio",
    "data-driven": "the user's last job that was most alike",
    "e-loss": "run times learned with the E-Loss",
    "regression": "run times learned by regression",
}
#: Estimates that are never too short.
_NEVER_CORRECTED = ("requested", "double-requested", "clairvoyant")


def named(results: Results) -> dict[str, Result]:
    """Return results by name: the names given, else those of their schedulers.

    Raises
    ------
    HpcgymError : there is no result.
    """
    if isinstance(results, Mapping):
        parts = dict(results)
    else:
        parts = {}
        for result in results if isinstance(results, Sequence) else [results]:
            name = scheduler_name(result.scheduler)
            same = sum(known == name or known.startswith(f"{name} (") for known in parts)
            parts[f"{name} ({same + 1})" if same else name] = result
    if not parts:
        raise HpcgymError("there is no result to report")
    return parts


def drawable(results: Results) -> dict[str, Result]:
    """Return results by name, as :func:`named`, if there is something to draw of each.

    Raises
    ------
    HpcgymError : there is no result, or one without jobs.
    """
    parts = named(results)
    for name, result in parts.items():
        if not len(result.workload):
            raise HpcgymError(f"there is nothing to draw: {name} has no jobs")
    return parts


def scheduler_name(scheduler: Scheduler) -> str:
    """Return the name of the bundle that a scheduler is, whatever its passes, else its rules."""
    from hpcgym.baselines import SCHEDULERS

    rules = scheduler.describe()
    for name, known in SCHEDULERS.items():
        if known.but(passes=scheduler.passes).describe() == rules:
            return str(name)
    return describe(scheduler)


def describe(scheduler: Scheduler) -> str:
    """Return the rules of a scheduler, in a line."""
    parts = [f"queue by {_policy(scheduler.policy)}"]
    if scheduler.backfill == "none":
        parts.append("no backfilling")
    elif scheduler.backfill == "conservative":
        parts.append("conservative backfilling")
    else:
        parts.append(f"EASY backfilling by {_policy(scheduler.backfill_order)}")
    parts.append(_times(scheduler, "estimate"))
    if not (isinstance(scheduler.estimate, str) and scheduler.estimate in _NEVER_CORRECTED):
        parts.append(f"{scheduler.correction} correction")
    if scheduler.threshold is not None:
        parts.append(f"threshold {scheduler.threshold:,} s")
    if scheduler.describe()["policy_estimate"] != "requested":
        parts.append(f"policies by {_times(scheduler, 'policy_estimate')}")
    return ", ".join(parts)


def _times(scheduler: Scheduler, rule: str) -> str:
    """Return which run times an estimate takes."""
    words = str(scheduler.describe()[rule])
    if words == "given":
        return "predicted run times given"
    average = re.fullmatch(r"ave(\d+)", words)
    if average:
        number = int(average[1])
        of = f"mean of the user's last {number} run times"
        return of if number > 1 else "the user's last run time"
    name, _, attributes = words.partition(":")
    meaning = _ESTIMATES.get(name, name)
    return f"{meaning} ({attributes.replace(',', ', ')})" if attributes else meaning


def subtitle(parts: Mapping[str, Result]) -> str:
    """Return workload, machine, scheduler if it is one, and rule of passes, for a picture."""
    results = list(parts.values())
    jobs = _each(f"{len(part.workload):,}" for part in results)
    machines = _each(f"{part.cluster.processors:,}" for part in results)
    words = [
        _each(part.workload.name for part in results),
        "1 job" if jobs == "1" else f"{jobs} jobs",
        "1 processor" if machines == "1" else f"{machines} processors",
        _each(f"{part.scheduler.passes} passes" for part in results),
    ]
    if len(results) == 1:
        words.insert(3, next(iter(parts)))
    return " · ".join(words)


def _each(texts: Iterable[str]) -> str:
    """Return different texts one after the other, each once."""
    return " and ".join(dict.fromkeys(texts))


def _policy(policy: PolicyLike) -> str:
    """Return a policy in a few words."""
    if isinstance(policy, Mapping):
        return "weights " + ", ".join(f"{name} {weight:g}" for name, weight in policy.items())
    if not isinstance(policy, str):
        return f"weights ({', '.join(f'{weight:g}' for weight in policy)})"
    return f"weights ({policy})" if "," in policy else policy.upper()
