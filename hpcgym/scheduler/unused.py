"""Warnings about rules that concern no job of a workload, and so may be mistaken."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import RuleWarning, warn_caller
from hpcgym.names import BILLING, near_name
from hpcgym.scheduler.policies.fair_share import BY_GROUP, FairShare
from hpcgym.scheduler.policies.features import USER_FEATURES, names_of_jobs
from hpcgym.words import counted
from hpcgym.workload.amounts import asked_of
from hpcgym.workload.columns import MISSING
from hpcgym.workload.followers import followed

if TYPE_CHECKING:
    from hpcgym.machine.failures import Failures
    from hpcgym.scheduler.restrictions import Quota
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


@contextmanager
def told_already() -> Iterator[None]:
    """Silence these warnings while parts of a workload are simulated: they were given for all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuleWarning)
        yield


def warn_of_unused(
    slices: Sequence[Workload],
    schedulers: Iterable[Scheduler],
    features: Iterable[str] = (),
    failures: Failures | None = None,
) -> None:
    """Warn of rules that concern no job of any slice.

    Parameters
    ----------
    features : features whose weights order the queue, if the order comes from outside.
    failures : of nodes.

    Raises
    ------
    HpcgymError : a window with a date, for which the log has no clock.

    Warns
    -----
    RuleWarning : one for each kind of such rules.
    """
    rules, parts = list(schedulers), [part for part in slices if len(part)]
    weighs_usage = not USER_FEATURES.keys().isdisjoint(features)
    unused: dict[str, list[str]] | None = None
    for part in parts:
        of_part: dict[str, list[str]] = {}
        for scheduler in rules:
            for what, things in _unused(part, scheduler, weighs_usage, failures):
                of_part.setdefault(what, []).extend(things)
        unused = of_part if unused is None else _in_both(unused, of_part)
    for what, things in (unused or {}).items():
        if things:
            name = parts[0].name + (f" to {parts[-1].name}" if len(parts) > 1 else "")
            warn_caller(f"{name}: {what}: {', '.join(dict.fromkeys(things))}", RuleWarning)


def _in_both(rules: dict[str, list[str]], other: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the rules that concern no job of either slice."""
    return {
        what: [thing for thing in things if thing in other.get(what, ())]
        for what, things in rules.items()
    }


def _unused(
    workload: Workload, scheduler: Scheduler, weighs_usage: bool, failures: Failures | None
) -> Iterator[tuple[str, list[str]]]:
    """Yield what is wrong with a kind of rule, and the rules of that kind that are wrong."""
    yield "no job falls under these quotas", _that_bound_nobody(workload, scheduler.quota)
    typed = [quota for quota in scheduler.quota if quota.spares and not quota.of_table]
    spare = [str(quota) for quota in typed if not quota.spared(workload).any()]
    yield "these quotas spare no job", spare
    if scheduler.maintenance or failures is not None:
        yield from _outside_of_log(workload, scheduler, failures)
    if scheduler.preemption is not None:
        rule = scheduler.preemption
        there = set(rule.groups(workload).tolist())
        absent = [name for place, name in enumerate(rule.levels) if place not in there]
        yield f"preemption {rule}: there is no job of", absent
    if scheduler.dependencies != "none":
        following, words = followed(workload), [scheduler.said("dependencies")]
        missing, none = bool(following.missing.any()), not len(following.job)
        yield "jobs that follow only missing jobs come when the log says", words * missing
        yield "no job follows another by its preceding_job", words * (none and not missing)
    shares = weighs_usage or any(scheduler.usage_orders)
    charged = (scheduler.fair_share or FairShare()).charged if shares else ""
    named = {charged, *(name for quota in scheduler.quota for name, _ in quota.bounds)}
    billed = "billing" in named
    unbilled = int(np.count_nonzero(workload.columns[BILLING] == MISSING)) if billed else 0
    if unbilled:
        what = "nothing tells what is billed, and processors count; load the jobs with cluster="
        yield what, [counted(unbilled, "job")]
    if charged and not asked_of(workload, [charged]).any():
        yield "fair share: no job asks for what is charged", [charged + _hint(workload, [charged])]
    if shares:
        yield from _unused_shares(workload, scheduler.fair_share or FairShare())


def _outside_of_log(
    workload: Workload, scheduler: Scheduler, failures: Failures | None
) -> Iterator[tuple[str, list[str]]]:
    """Yield the same of windows and failures."""
    first, last = workload.submit_time[0], (workload.submit_time + workload.requested_time).max()
    span = "is between the first submission and when the last job may end"
    windows = {str(window): window.seconds(workload.header) for window in scheduler.maintenance}
    met = any(end > first and begin <= last for begin, end in windows.values())
    yield f"no window {span}", [] if met else [*windows]
    opened = [window for window in scheduler.maintenance if window.open_to]
    closed = [str(window) for window in opened if not window.may_use(workload).any()]
    yield "no job is of those that these windows are open to", closed
    if failures is not None and len(failures):
        met = bool(((failures.repaired > first) & (failures.time <= last)).any())
        yield f"no failure {span}", [] if met else [f"they begin at {failures.time[0]} s"]


def _that_bound_nobody(workload: Workload, quotas: Sequence[Quota]) -> list[str]:
    """Return quotas of no job of a workload, and those of an amount that no job asks for.

    Of tables of a site, of which a log need not have all, only where none of them bounds a job.
    """
    idle = {quota: words for quota in quotas if (words := _bounds_nobody(workload, quota))}
    used = any(quota.of_table and quota not in idle for quota in quotas)
    return [words for quota, words in idle.items() if not (quota.of_table and used)]


def _bounds_nobody(workload: Workload, quota: Quota) -> str:
    """Return a quota in words that is of no job of a workload, or of what no job asks for."""
    within = quota.counted(workload) >= 0
    if quota.of_a_job or not within.any():
        return "" if within.any() else str(quota)
    unasked = {
        name: most for name, most in quota.bounds if not quota.asked(workload, name)[within].any()
    }
    if not unasked:
        return ""
    return f"{quota.with_bounds(unasked)}{_hint(workload, unasked)}"


def _hint(workload: Workload, names: Iterable[str]) -> str:
    """Return which resources of a workload may be meant by names that none has."""
    near = [near for name in names if (near := near_name(name, workload.per_unit))]
    return f" (did you mean {', '.join(near)}?)" if near else ""


def _unused_shares(workload: Workload, rules: FairShare) -> Iterator[tuple[str, list[str]]]:
    """Yield the same for shares of users."""
    parts = [workload] if workload.initial is None else [workload.initial.past, workload]
    users, groups = (
        {number for part in parts for number in part.columns[name].tolist()}
        for name in ("user_id", "group_id")
    )
    by_group = rules.accounts == BY_GROUP or rules.by_name
    known = {"user_id": users, **({"group_id": groups} if by_group else {})}
    yield "fair share: no job tells its", [name for name, of in known.items() if of == {MISSING}]
    if rules.by_name:
        leaves = {rules.leaf_of(*job) for part in parts for job in names_of_jobs(part)}
        strange = sorted(leaf for leaf in leaves if leaf not in rules.shares)
        text = ", ".join(strange[:3]) + (f" and {len(strange) - 3:,} more" * (len(strange) > 3))
        yield "fair share: these users have no share of their own, and 1 each", [text] * bool(text)
        return
    busy: set[Any] = {*users, *(f"{BY_GROUP}:{group}" for group in groups if by_group)}
    above = rules.accounts if isinstance(rules.accounts, Mapping) else {}
    for name in users:
        while (name := above.get(name)) is not None:
            busy.add(name)
    named = [*rules.shares, *(() if busy & above.keys() else above)]
    yield "fair share: there is no job of", [str(name) for name in named if name not in busy]
