"""The features that a scheduler asks for, as the table of capabilities names them; site rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.scheduler.capabilities import check
from hpcgym.scheduler.policies.features import USER_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload

# --- What a scheduler asks for --------------------------------------------------------------------


def check_scheduler(scheduler: Scheduler, *things: str) -> None:
    """Raise an HpcgymError if features of a scheduler do not go together, or with these things.

    As :func:`check` does.
    """
    check(*things, words=scheduler.asks_for)


# --- Rules that look at usage, and so at shares ---------------------------------------------------


def counts_usage(scheduler: Scheduler, features: Iterable[str]) -> bool:
    """Return whether weights over these features, or the order of backfilling, look at usage."""
    return scheduler.usage_orders[1] or not USER_FEATURES.keys().isdisjoint(features)


def check_fair_share(fair_share: Any, counted: bool, dispatcher: str = "") -> None:
    """Raise an HpcgymError if shares of users are given where nothing looks at usage.

    Parameters
    ----------
    fair_share : as it was given, or None.
    counted : whether anything looks at what users have used.
    dispatcher : name of the dispatcher that chooses the jobs that start, or "".
    """
    if isinstance(fair_share, str) and not fair_share.strip():
        raise HpcgymError(
            "fair_share (--fair-share) says nothing; such as half_life_s=86400, or a file .toml"
        )
    if fair_share is not None and dispatcher:
        raise HpcgymError(
            f"fair_share (--fair-share): {dispatcher} orders the queue itself, and looks at nothing"
            " that users have used"
        )
    if fair_share is not None and not counted:
        raise HpcgymError(
            "fair_share (--fair-share): nothing here looks at what users have used; choose an order"
            " that does, such as fairshare, or weigh a feature that does"
            f" ({', '.join(USER_FEATURES)})"
        )


def without_idle_shares(scheduler: Scheduler) -> Scheduler:
    """Return the scheduler without shares of users if no order of it looks at usage."""
    if scheduler.fair_share is None or any(scheduler.usage_orders):
        return scheduler
    return scheduler.but(fair_share=None)


# --- Rules of a site ------------------------------------------------------------------------------


class SiteRule(NamedTuple):
    """The scope of a rule of a site.

    Attributes
    ----------
    of_machine : whether it holds on the machine, so also for jobs before an episode begins.
    of_jobs : whether it decides which jobs may never run, or when jobs are submitted.
    """

    of_machine: bool
    of_jobs: bool


#: Rules of a site. In an evaluation they hold for all rows. Dispatchers would break them.
SITE_RULES = {
    "quota": SiteRule(of_machine=True, of_jobs=True),
    "maintenance": SiteRule(of_machine=True, of_jobs=False),
    "preemption": SiteRule(of_machine=False, of_jobs=False),
    "dependencies": SiteRule(of_machine=False, of_jobs=True),
}

#: Rules that all environments have and report, and that an evaluation may set.
OF_ENVIRONMENTS = (
    "backfill",
    "backfill_order",
    "estimate",
    "policy_estimate",
    "correction",
    "passes",
    "allocation",
    "threshold",
    "hold",
    "relax",
    "candidate_estimate",
    "fair_share",
    *SITE_RULES,
)

#: The rules of the machine, and the rules of jobs.
OF_MACHINES = tuple(rule for rule, site_rule in SITE_RULES.items() if site_rule.of_machine)
OF_JOBS = tuple(rule for rule, site_rule in SITE_RULES.items() if site_rule.of_jobs)

_USUAL = {rule: getattr(Scheduler(), rule) for rule in SITE_RULES}


def lifted_by(rules: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the rules of a site that the user lifts for all rows, as by ``quota=None``."""
    return tuple(rule for rule in SITE_RULES if rule in rules and rules[rule] is None)


def own_site_rules(scheduler: Scheduler) -> tuple[str, ...]:
    """Return the rules of a site that a scheduler has itself."""
    return tuple(rule for rule, usual in _USUAL.items() if getattr(scheduler, rule) != usual)


def settled(
    names: Collection[str], given: Mapping[str, Any], brought: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return rules with their values: the given one, or else the first that is brought along.

    Parameters
    ----------
    names : of the rules.
    given : by the user; a rule that is None here stays None, and no row has it.
    brought : by environments, and by the training of agents.
    """
    chosen = {rule: given[rule] for rule in names if rule in given}
    for rules in brought:
        for rule in names:
            if rule not in chosen and rules.get(rule) is not None:
                chosen[rule] = rules[rule]
    return chosen


def under_site_rules(
    scheduler: Scheduler, rules: Mapping[str, Any], lifted: Collection[str]
) -> Scheduler:
    """Return a scheduler with the rules of a site that it does not have itself.

    Parameters
    ----------
    rules : of the evaluation.
    lifted : of :func:`lifted_by`.

    Raises
    ------
    HpcgymError : the scheduler does not go with the rules.
    """
    own = own_site_rules(scheduler)
    given = {rule: rules[rule] for rule in SITE_RULES if rule in rules and rule not in own}
    return scheduler.but(**{**given, **{rule: _USUAL[rule] for rule in lifted}})


# --- Rules that look at submit times --------------------------------------------------------------


def what_moves(scheduler: Scheduler) -> str:
    """Return the rule that changes submit times."""
    if scheduler.dependencies == "none":
        return scheduler.said("quota")
    return scheduler.said("dependencies")


BY_SUBMISSION = {"submit", "clock", "f1", "f2", "f3", "f4"}


def check_weighed(features: Sequence[str], scheduler: Scheduler) -> None:
    """Raise an HpcgymError for features of submit times, if the schedule changes these."""
    looking = [name for name in features if name in BY_SUBMISSION]
    if looking and scheduler.moves_submissions:
        raise HpcgymError(
            f"feature {looking[0]!r} looks at when the log says that jobs are submitted, and"
            f" {what_moves(scheduler)} changes that"
        )


def check_extract(workload: Workload, *things: str, **words: str) -> None:
    """Raise an HpcgymError for an extract, where simulations begin with an empty machine.

    ``things`` are their features, of :mod:`hpcgym.scheduler.capabilities`; ``words`` are further
    ones, with the caller's words for them.
    """
    if workload.initial is not None:
        begin = workload.initial.begin
        name = f"{workload.name}, which begins with the jobs that run at {begin} s,"
        check(*things, words={"extract": name, **words})


def places_of_usage(features: Sequence[str]) -> NDArray[np.int64]:
    """Return the places of users' priorities in features, by processors and by energy; else -1."""
    names = list(features)
    return np.array([names.index(name) if name in names else -1 for name in USER_FEATURES])
