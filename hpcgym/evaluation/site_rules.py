"""Rules of a site, which an evaluation has for all rows, for given schedulers, too."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hpcgym.scheduler.rules import Scheduler

#: Rules of a site. Dispatchers would break them.
SITE_RULES = ("quota", "maintenance", "preemption", "dependencies")

_USUAL = {rule: getattr(Scheduler(), rule) for rule in SITE_RULES}


def lifted_by(rules: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the rules of a site that the user wants no row to have, as by ``quota=None``."""
    return tuple(rule for rule in SITE_RULES if rule in rules and rules[rule] is None)


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
    given = {
        rule: rules[rule]
        for rule, usual in _USUAL.items()
        if rule in rules and getattr(scheduler, rule) == usual
    }
    return scheduler.but(**{**given, **{rule: _USUAL[rule] for rule in lifted}})
