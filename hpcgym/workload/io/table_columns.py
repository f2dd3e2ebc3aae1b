"""Which columns a table of jobs has: those of jobs, and those of resources; hints for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgym.errors import WorkloadError
from hpcgym.naming import (
    CORE,
    JOB_COLUMNS,
    KILLED,
    MEMORY,
    NAME_COLUMNS,
    ONCE_CALLED,
    UNITS,
    known_columns,
    near_name,
    resource_problem,
)

if TYPE_CHECKING:
    import pandas as pd

#: Columns of other programs' logs, for which a table has two others.
_TIMES = ("start", "start_time", "begin_time", "end", "end_time", "finish_time")
_FOR_TIMES = "write wait_time and run_time in place of starts and ends"


def resource_columns(frame: pd.DataFrame, name: str) -> list[str]:
    """Return the columns of a table that are of units and resources.

    Raises
    ------
    WorkloadError : a column that is unknown, there twice, or needed and not there; all unknown
        ones are named, each with what may be meant.
    """
    names = [str(column) for column in frame.columns]
    now = {ONCE_CALLED.get(column, column) for column in names}
    if {"submit_time", "start_time", "end_time", "wait_time", "bsld"} <= now:  # Result.jobs
        raise WorkloadError(
            f"{name} is a schedule that hpcgym wrote, not a log: simulate the log that it is of"
        )
    _check_separator(names, name)
    has_units = UNITS in names or CORE in names
    resources = []
    unknown = {}
    for column in names:
        if names.count(column) > 1:
            raise WorkloadError(f"{name} has the column {column!r} twice")
        if column in JOB_COLUMNS or column == KILLED:
            continue
        if column not in (UNITS, CORE) and (hint := _hint(column, has_units, name)):
            unknown[column] = hint
        resources.append(column)
    if len(unknown) == 1:
        ((column, hint),) = unknown.items()
        raise WorkloadError(f"{name} has an unknown column {column!r}; {hint}")
    if unknown:
        told = "; ".join(f"{column!r} ({hint})" for column, hint in unknown.items())
        raise WorkloadError(f"{name} has unknown columns: {told}")
    if "submit_time" not in names:
        raise WorkloadError(f"{name} lacks the column 'submit_time', which a workload needs")
    return resources


def _check_separator(names: list[str], name: str) -> None:
    """Raise a WorkloadError if all names are one, with something else than commas between."""
    for mark, called in ((";", "';'"), ("\t", "tabs"), ("|", "'|'")):
        if len(names) == 1 and mark in names[0]:
            raise WorkloadError(f"{name} has {called} between its columns; write commas")


def _hint(column: str, has_units: bool, name: str) -> str:
    """Return why a column is no resource and what may be meant; nothing if it is one."""
    problem = resource_problem(column)
    if has_units and not problem:
        return ""
    if column == MEMORY:
        return (
            "it is a resource, of which each unit of a job asks for some, and needs a column that"
            f" the table lacks: {UNITS!r}, how many units a job has, or {CORE!r}, the cores of each"
        )
    if column.strip().casefold() in _TIMES:
        return _FOR_TIMES
    if not has_units and near_name(column, (CORE,)):
        return "did you mean 'requested_processors'?"
    known = (*JOB_COLUMNS, KILLED, UNITS, CORE, MEMORY, *NAME_COLUMNS)
    if near := near_name(column, known, 0.8 if has_units else 0.6):
        return f"did you mean {near!r}?"
    if has_units:
        raise WorkloadError(f"{name} has an unknown column; {problem}")
    return (
        f"{known_columns()}, {', '.join(NAME_COLUMNS)}; a resource, of which each unit of a job"
        f" asks for some, needs the column {UNITS!r} or {CORE!r} beside it"
    )
