"""Sums over weeks, each from an empty machine: what most documents report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpcgym.benchmarks.frontier.rules import Rule, named_rules
from hpcgym.benchmarks.prediction.predictors import Similar
from hpcgym.benchmarks.studies.weeks import weekly_slowdowns
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

#: The least requested area back-filled first, and what long jobs hold back by their requests.
BY_REQUEST = Scheduler("saf", backfill_order="saf", hold=0.1)
_STRONG = Hold(0.14, 3272, 64, 14400, "both")


def lineup() -> dict[str, Scheduler]:
    """Return the schedulers of the table by the names of its rows."""
    rows = {rule.name: rule.scheduler for rule in named_rules()}
    for name in ("easy", "saf"):
        strict = Rule(name, backfill="until-shadow")
        rows[strict.name] = strict.scheduler
    typical = Rule("saf-typical").scheduler
    similar = Scheduler("saf", backfill_order="saf", policy_estimate=Similar())
    return {
        **rows,
        "saf, back-filled by area, hold 0.1": BY_REQUEST,
        "saf-typical, hold 0.14 from 3,272 s": typical.but(hold=_STRONG),
        "saf by similar jobs, back-filled by area": similar,
        "the same, hold 0.14 from 3,272 s": similar.but(hold=_STRONG),
    }


def sums_of(weeks: Mapping[int, Workload]) -> dict[str, float]:
    """Return the sum of the mean bounded slowdowns of weeks by the names of rows."""
    return {name: sum(weekly_slowdowns(weeks, each)) for name, each in lineup().items()}


def table_of(sums: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return a row for each scheduler, a column for each log."""
    import pandas as pd

    rows: list[dict[str, Any]] = [
        {"rule": name, **{log: values[name] for log, values in sums.items()}} for name in lineup()
    ]
    return pd.DataFrame(rows)
