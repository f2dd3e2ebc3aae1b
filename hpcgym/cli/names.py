"""What the names that options take mean, for the help of commands."""

from __future__ import annotations

from collections.abc import Iterable

#: What the cleaning recipes are for.
RECIPES = {
    "default": "glesser, and the run time stands in for a missing requested time",
    "glesser": "drop jobs without run time, request or processors, or larger than the machine; cut"
    " run times at the request (thesis of D. Glesser)",
    "legrand": "as glesser, but jobs that ran longer than requested are dropped (paper of Legrand,"
    " Trystram and Zrigui)",
    "none": "the file as it is",
}


def schedulers() -> Iterable[tuple[str, str]]:
    """Return the named schedulers and their rules."""
    from hpcgym.baselines import SCHEDULERS
    from hpcgym.report.labels import describe

    return [(name, describe(scheduler)) for name, scheduler in SCHEDULERS.items()]


def recipes() -> Iterable[tuple[str, str]]:
    """Return the cleaning recipes, and the filters that they consist of."""
    from hpcgym.workload.cleaning import FILTERS

    filters = [(name, _first_line(function.__doc__)) for name, function in FILTERS.items()]
    return [*RECIPES.items(), *filters]


def policies() -> Iterable[tuple[str, str]]:
    """Return the index policies and what they serve first."""
    from hpcgym.policy import POLICIES

    return [(name, policy.meaning) for name, policy in POLICIES.items()]


def _first_line(text: str | None) -> str:
    """Return the first line of a docstring as it stands in a list."""
    line = (text or "").strip().splitlines()[0].rstrip(".")
    return line[:1].lower() + line[1:]
