"""Under which rules the rows of an evaluation keep jobs back: those given, and rows' own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hpcgym.evaluation import shared
from hpcgym.evaluation.brought import acts
from hpcgym.evaluation.lineup import by_name, find_policy, listed, named_scheduler, other_scheduler
from hpcgym.evaluation.seeds import unfolded
from hpcgym.evaluation.trained import options_of
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.site_rules import OF_JOBS, lifted_by, settled, under_site_rules


def found_policies(
    policies: Any, env: str | None = None, find: Callable[[Any], Any] = find_policy
) -> Any:
    """Return the policies of an evaluation by their names, found; as given if jobs share nodes.

    Parameters
    ----------
    policies, env : as :func:`hpcgym.evaluation.evaluate` takes them, which takes this, too.
    find : says what each policy is.

    Raises
    ------
    HpcgymError : as of ``find``.
    """
    given = listed(policies)
    return given if shared.is_meant(env, given) else by_name(given, find, other_scheduler)


def schedulers_of(found: Any, rules: Mapping[str, Any]) -> list[Scheduler]:
    """Return the schedulers for which the jobs of an evaluation must be fit.

    The first has the rules that are given, or that agents bring along from their training; others
    are rows with rules of their own, such as "saf:quota=user:jobs=2" or a slurm.conf.

    Parameters
    ----------
    found : of :func:`found_policies`.
    rules : as :func:`hpcgym.evaluation.evaluate` takes them.

    Raises
    ------
    HpcgymError : a rule that a row cannot have.
    """
    rows = unfolded(found)[0] if isinstance(found, Mapping) else {}
    acting = filter(acts, rows.values())
    kept = settled(OF_JOBS, rules, map(options_of, acting))
    simulated = [one for one in rows.values() if not acts(one)]
    lifted = lifted_by(rules)
    known = (one if isinstance(one, Scheduler) else named_scheduler(one, kept) for one in simulated)
    return [Scheduler().but(**kept), *(under_site_rules(one, kept, lifted) for one in known)]
