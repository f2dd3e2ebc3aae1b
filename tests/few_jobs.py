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
