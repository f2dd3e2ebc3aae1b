"""Few jobs, written down by hand."""

from __future__ import annotations

from typing import Any

from hpcgym.workload.model import Workload

#: What a workload has beside columns.
BESIDE = ("name", "units", "per_unit", "header", "killed", "more_preceding")


def few_jobs(
    processors: int,
    submit: Any,
    run: Any,
    wide: Any,
    requested: Any = None,
    **more: Any,
) -> Workload:
    """Return jobs of a machine of so many processors, which request their run times if not others.

    ``wide``: how many processors they request; ``more``: other columns, units and whatever else a
    workload has.
    """
    columns = {
        "submit_time": submit,
        "run_time": run,
        "requested_time": run if requested is None else requested,
        "requested_processors": wide,
    }
    beside = {name: more.pop(name) for name in BESIDE if name in more}
    return Workload.from_columns(columns | more, processors=processors, **beside)


def tiny(**columns: Any) -> Workload:
    """Three jobs on four processors, with some columns replaced."""
    table = {
        "job_number": [7, 8, 9],
        "submit_time": [0, 0, 5],
        "run_time": [10, 90, 1],
        "requested_time": [20, 60, 30],
        "requested_processors": [1, 2, 4],
    }
    return Workload.from_columns(table | columns, processors=4, name="tiny")


def four(**columns: Any) -> Workload:
    """Return four jobs of 10 s on 2 of 8 processors each, all submitted at once by one user."""
    given = {"submit": [0] * 4, "run": [10] * 4, "wide": [2] * 4, "user_id": [1] * 4}
    return few_jobs(8, **{**given, "requested": [10] * 4, **columns})


def five(**columns: Any) -> Workload:
    """Return five jobs, of three users in two queues, on a machine with room for all of them."""
    given: dict[str, Any] = {
        **{"submit": [0, 0, 1, 2, 3], "run": [10, 20, 10, 5, 5], "wide": [1] * 5},
        **{"requested": [20] * 5, "job_number": [1, 2, 3, 4, 5]},
        **{"user_id": [1, 2, 1, 1, 3], "queue": [1, 2, 2, 1, 2]},
    }
    return few_jobs(8, **{**given, **columns})


def three(**columns: Any) -> Workload:
    """Return three jobs of 10 s on 2 of 4 processors each, submitted at 0 s, 1 s and 2 s."""
    given: dict[str, Any] = {"submit": [0, 1, 2], "run": [10] * 3, "wide": [2] * 3}
    header = {"UnixStartTime": ["1772352000"], "TimeZoneString": ["Europe/Berlin"]}
    return few_jobs(4, **{**given, **columns}, header=header)


def chain(**columns: Any) -> Workload:
    """Return three jobs of 10 s on 2 of 4 processors, each of which follows the one before it."""
    given: dict[str, Any] = {
        **{"submit": [0, 1, 40], "run": [10] * 3, "wide": [2] * 3, "requested": [20] * 3},
        **{"job_number": [5, 7, 9], "preceding_job": [-1, 5, 7], "think_time": [-1, 3, -1]},
    }
    return few_jobs(4, **{**given, **columns})
