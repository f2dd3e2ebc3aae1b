"""Cases worked out by hand: a few jobs, rules, and what becomes of the jobs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from same_results import agreed, cells_of

from hpcgym.schedule.result import Result
from hpcgym.workload.model import Workload


class Case(NamedTuple):
    """Jobs, rules, and what becomes of the jobs, by the words of :func:`values_of`.

    ``backfills``: under each of them it is the same; ``slow``: whether the reference has it.
    """

    jobs: Workload
    rules: dict[str, Any]
    expected: dict[str, list[Any]]
    backfills: tuple[str, ...] = ("easy",)
    slow: bool = True


def values_of(result: Result, what: str) -> list[Any]:
    """Return an attribute of all jobs; ``nodes``: the first of each; ``cells``: node -> units."""
    if what == "submit":
        return result.workload.submit_time.tolist()
    if what == "number":
        return result.workload.job_number.tolist()
    if what == "start of job":
        return result.start[np.argsort(result.workload.job_number)].tolist()
    if what == "nodes":
        assert result.allocation is not None
        return result.allocation.node[result.allocation.first[:-1]].tolist()
    if what == "cells":
        return cells_of(result.allocation)
    values: list[Any] = getattr(result, what).tolist()
    return values


Cases = dict[str, Case]


def add(
    cases: Cases, name: str, jobs: Workload, start: list[int] | None = None, /, **rules: Any
) -> None:
    """Add a case that may say when jobs start; see :class:`Case` for ``backfills`` and ``slow``."""
    more = {key: rules.pop(key) for key in ("backfills", "slow") if key in rules}
    expected = ({} if start is None else {"start": start}) | rules.pop("expected", {})
    if "backfill" in rules:
        more["backfills"] = (rules.pop("backfill"),)
    assert name not in cases
    cases[name] = Case(jobs, rules, expected, **more)


def each_way(cases: Cases) -> list[tuple[str, str]]:
    """Return the name of each case with each of its ways to backfill."""
    return [(name, way) for name, case in cases.items() for way in case.backfills]


def check(case: Case, backfill: str) -> None:
    """Check that the engine and the reference make of a case what is expected, and prove it."""
    result = agreed(case.jobs, case.slow, backfill=backfill, **case.rules)
    for what, expected in case.expected.items():
        values = (
            values_of(result, "start")[-1:] if what == "last start" else values_of(result, what)
        )
        assert values == expected, what
