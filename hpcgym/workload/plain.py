"""Workloads as plain values, which JSON can hold, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpcgym.errors import WorkloadError, unknown
from hpcgym.files.writing import plain
from hpcgym.workload.columns import is_missing
from hpcgym.workload.model import Workload

#: What is told of a workload beside its columns.
_BESIDE = (
    *("name", "processors", "killed", "header", "cleaning", "units", "per_unit"),
    *("first_submit_s", "more_preceding"),
)


def as_plain(workload: Workload) -> dict[str, Any]:
    """Return all of a workload as text, numbers, lists and dicts, see :func:`from_plain`.

    Raises
    ------
    WorkloadError : an extract, which begins with the state of a machine.
    """
    if workload.initial is not None:
        raise WorkloadError(
            f"{workload.name} is an extract, which has no plain form: it begins with the state of"
            " a machine"
        )
    columns = {
        name: column
        for name, column in workload.columns.items()
        if name == "submit_time" or not is_missing(column)
    }
    beside = {name: getattr(workload, name) for name in _BESIDE}
    killed = workload.killed if any(workload.killed) else None
    values: dict[str, Any] = plain({"columns": columns, **beside, "killed": killed})
    return values


def from_plain(plain: Mapping[str, Any]) -> Workload:
    """Return the workload that :func:`as_plain` has told of.

    Raises
    ------
    WorkloadError : another mapping, or as of :meth:`Workload.from_columns`.
    """
    known = {"columns", *_BESIDE}
    for name in plain:
        if name not in known:
            raise WorkloadError(unknown("key of a plain workload", name, sorted(known)))
    for name in ("columns", "processors"):
        if name not in plain:
            raise WorkloadError(f"a plain workload needs the key {name!r}")
    given = dict(plain)
    try:
        return Workload.from_columns(given.pop("columns"), **given)
    except (TypeError, ValueError, AttributeError) as error:
        raise WorkloadError(f"a plain workload has a value of another kind: {error}") from None
