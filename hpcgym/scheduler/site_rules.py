"""Rules of a site: what machines and users may do, whatever the order of the queue."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from hpcgym.scheduler.rules import Scheduler


class SiteRule(NamedTuple):
    """What a rule of a site says.

    Attributes
    ----------
    of_machine : what holds on the machine, for who left it as an episode finds it, too.
    of_jobs : which jobs may never run, or when jobs are submitted.
    """

    of_machine: bool
    of_jobs: bool


#: Rules of a site. An evaluation has them for all its rows. Dispatchers would break them.
SITE_RULES = {
    "quota": SiteRule(of_machine=True, of_jobs=True),
    "maintenance": SiteRule(of_machine=True, of_jobs=False),
    "preemption": SiteRule(of_machine=False, of_jobs=False),
    "dependencies": SiteRule(of_machine=False, of_jobs=True),
}

#: Rules that all environments have and tell, and an evaluation may set.
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
    "fair_share",
    *SITE_RULES,
)

#: Those of the machine, and those of jobs.
OF_MACHINES = tuple(rule for rule, one in SITE_RULES.items() if one.of_machine)
OF_JOBS = tuple(rule for rule, one in SITE_RULES.items() if one.of_jobs)

_USUAL = {rule: getattr(Scheduler(), rule) for rule in SITE_RULES}


def lifted_by(rules: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the rules of a site that the user wants no row to have, as by ``quota=None``."""
    return tuple(rule for rule in SITE_RULES if rule in rules and rules[rule] is None)


def own_site_rules(scheduler: Scheduler) -> tuple[str, ...]:
    """Return the rules of a site that a scheduler has itself."""
    return tuple(rule for rule, usual in _USUAL.items() if getattr(scheduler, rule) != usual)


def settled(
    names: Collection[str], given: Mapping[str, Any], brought: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return rules: those given, and of others the first that somebody brings along.

    Parameters
    ----------
    names : of the rules.
    given : by the user; a rule that is None here stays so, and no row has it.
    brought : from environments, and from the training of agents.
    """
    found = {rule: given[rule] for rule in names if rule in given}
    for one in brought:
        for rule in names:
            if rule not in found and one.get(rule) is not None:
                found[rule] = one[rule]
    return found


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
    HpcgymError : a scheduler that goes with none of the rules.
    """
    own = own_site_rules(scheduler)
    given = {rule: rules[rule] for rule in SITE_RULES if rule in rules and rule not in own}
    return scheduler.but(**{**given, **{rule: _USUAL[rule] for rule in lifted}})
