"""Rows that are in each evaluation: chance, and the best static weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpcgym.baselines.chance import RANDOM, RandomActions, random_order
from hpcgym.baselines.labels import labelled
from hpcgym.errors import HpcgymError
from hpcgym.evaluation.lineup import STATIC, scheduler_of, under_limits
from hpcgym.evaluation.stage import Stage
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.site_rules import SITE_RULES
from hpcgym.scheduler.usage import without_idle_shares


def by_chance(stage: Stage, jobs: int, seed: int) -> tuple[str, Any]:
    """Return what the row of chance is called, and who that is, for so many jobs."""
    acting = f"{RANDOM} (acting)"
    if stage.add_random(acting):
        return acting, RandomActions(seed)
    scheduler = under_limits(scheduler_of("spf", stage.rules), stage.limits)
    found = random_order(without_idle_shares(scheduler), jobs, seed)
    return _under_site_rules(RANDOM, found), found


def static_row(rules: Mapping[str, Any]) -> str:
    """Return what the row of the best static weights is called under the rules of an evaluation."""
    return _under_site_rules(STATIC, scheduler_of("spf", rules))


def _under_site_rules(name: str, scheduler: Scheduler) -> str:
    """Return a name with the rules of a site behind it."""
    return labelled(name, Scheduler(), scheduler, SITE_RULES)


def check_static(rules: Mapping[str, Any]) -> None:
    """Raise an HpcgymError for rules that static weights cannot be chosen under."""
    try:
        check_scheduler(Scheduler().but(**rules), "environments")
    except HpcgymError as error:
        raise HpcgymError(f"{error}; budget=0 (--budget 0) leaves best-static out") from None
