"""Under which rules the rows of an evaluation keep jobs back: those given, and rows' own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hpcgym.evaluation import shared
from hpcgym.evaluation.brought import acts
from hpcgym.evaluation.lineup import by_name, find_policy, listed, named_scheduler, other_scheduler
from hpcgym.evaluation.seeds import unfolded
from hpcgym.evaluation.site_rules import lifted_by, under_site_rules
from hpcgym.scheduler.rules import Scheduler

#: Rules that say which jobs may never run, or when jobs are submitted.
_KEPT = ("quota", "dependencies")


def schedulers_of(
    policies: Any,
    rules: Mapping[str, Any],
    env: str | None = None,
    find: Callable[[Any], Any] = find_policy,
) -> list[Scheduler]:
    """Return the schedulers for which the jobs of an evaluation must be fit.

    The first has the rules that are given, or that agents bring along from their training; others
    are rows with rules of their own, such as "saf:quota=user:jobs=2" or a slurm.conf.

    Parameters
    ----------
    policies, rules, env : as :func:`hpcgym.evaluation.evaluate` takes them.
    find : says what each policy is.

    Raises
    ------
    HpcgymError : as of ``find``, or a rule that a row cannot have.
    """
    given = listed(policies)
    rows: dict[str, Any] = {}
    if not shared.is_meant(env, given):
        rows, _ = unfolded(by_name(given, find, other_scheduler))
    kept = {rule: rules[rule] for rule in _KEPT if rule in rules}  # None: no row has it
    for one in rows.values():
        trained = (getattr(one, "env_options", None) or {}) if acts(one) else {}
        asked = {rule: trained[rule] for rule in _KEPT if trained.get(rule) is not None}
        kept = {**asked, **kept}
    simulated = [one for one in rows.values() if not acts(one)]
    lifted = lifted_by(rules)
    found = (one if isinstance(one, Scheduler) else named_scheduler(one, kept) for one in simulated)
    return [Scheduler().but(**kept), *(under_site_rules(one, kept, lifted) for one in found)]
