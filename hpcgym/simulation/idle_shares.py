"""Warnings of what has no effect in schedules, given once for a whole workload."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import RuleWarning, warn_caller
from hpcgym.scheduler.policies.fair_share import BY_GROUP, FairShare
from hpcgym.scheduler.policies.features import USER_FEATURES
from hpcgym.simulation.fair_share import MIXED, usage_order
from hpcgym.simulation.warm_start import past_jobs
from hpcgym.workload.model import MISSING

if TYPE_CHECKING:
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


@contextmanager
def told_already() -> Iterator[None]:
    """Silence these warnings while parts of a workload are simulated: they were given for all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuleWarning)
        yield


def warn_of_schedulers(workload: Workload, schedulers: Iterable[Scheduler]) -> None:
    """Warn as :func:`warn_of_shares` of those that look at usage, once for the same shares."""
    weighed: dict[str, tuple[Any, bool]] = {}
    for scheduler in schedulers:
        if any(scheduler.usage_orders):
            fair, mixed = scheduler.fair_share, _weighs_usage(scheduler)
            _, before = weighed.get(str(fair), (None, False))
            weighed[str(fair)] = fair, before or mixed
    for fair, mixed in weighed.values():
        warn_of_shares([workload], fair, mixed)


def warn_of_weights(
    parts: Sequence[Workload], scheduler: Scheduler, features: Sequence[str]
) -> None:
    """Warn as :func:`warn_of_shares` where weights over features order the queue."""
    weighed = not USER_FEATURES.keys().isdisjoint(features)
    if weighed or any(scheduler.usage_orders):
        mixed = (weighed and len(features) > 1) or _weighs_usage(scheduler)
        warn_of_shares(parts, scheduler.fair_share, mixed)


def warn_of_shares(parts: Sequence[Workload], fair: Any, mixed: bool) -> None:
    """Warn where shares of users have no effect.

    Parameters
    ----------
    parts : workloads whose users count together.
    fair : a FairShare, or None for the usual one.
    mixed : whether an order weighs priorities beside something else.

    Warns
    -----
    RuleWarning : no job tells its user, a user or account with a share has no job, or a damping
        changes nothing.
    """
    rules = fair or FairShare()
    every = [one for part in parts for one in (past_jobs(part)[0], part) if one is not None]
    user, group = (
        np.concatenate([part.columns[name] for part in every]) for name in ("user_id", "group_id")
    )
    if rules.damping != FairShare().damping and not mixed:
        warn_caller(
            f"fair share: damping={rules.damping:g} changes nothing here; damping matters only"
            " where fairshare is a weighed feature, beside others",
            RuleWarning,
        )
    if not len(user):
        return
    by_group = rules.accounts == BY_GROUP
    for name, column in {"user_id": user, **({"group_id": group} if by_group else {})}.items():
        if (column == MISSING).all():
            text = f"fair share: no job tells its {name}, so that all count as those of one"
            warn_caller(text, RuleWarning)
    there = {*map(str, np.unique(user)), *(f"{BY_GROUP}:{number}" for number in np.unique(group))}
    named = [str(name) for name in rules.users]
    if by_group:
        named += [name for name in rules.shares if isinstance(name, str)]
    if named and there.isdisjoint(named):
        text = f"fair share: none of those that it names has a job: {', '.join(named)}"
        warn_caller(text, RuleWarning)
    elif idle := _without_jobs(rules, there):
        text = f"fair share: shares are given of whom nobody has a job: {', '.join(idle)}"
        warn_caller(text, RuleWarning)


def _without_jobs(rules: FairShare, there: set[str]) -> list[str]:
    """Return the users and accounts with shares below whom nobody has a job.

    ``there``: who has jobs, as texts.
    """
    above = rules.accounts if isinstance(rules.accounts, Mapping) else {}
    busy = set(there)
    for user in above:
        name: Any = user
        while str(user) in there and name in above:
            name = above[name]
            busy.add(name)
    return [str(name) for name in rules.shares if str(name) not in busy]


def _weighs_usage(scheduler: Scheduler) -> bool:
    """Tell whether an order of a scheduler weighs usage beside something else."""
    orders = zip((scheduler.policy, scheduler.backfill_order), scheduler.usage_orders, strict=True)
    return any(looks and usage_order(order)[0] == MIXED for order, looks in orders)
