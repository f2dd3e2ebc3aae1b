"""The table of a sweep: a row for each simulation, or for each class of jobs, or user, of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files import shaped
from hpcgym.schedule.groups import GROUPED_BY
from hpcgym.sweep.manifest import Tasks
from hpcgym.sweep.records import RESULTS, read_results
from hpcgym.sweep.run import read_manifest

if TYPE_CHECKING:
    import pandas as pd


def read_table(folder: str | Path, by: str | None = None) -> pd.DataFrame:
    """Return what a sweep has found so far, a row for each finished task.

    Parameters
    ----------
    folder : of the sweep.
    by : one of :data:`hpcgym.schedule.groups.GROUPED_BY`: a row for each class of jobs, or user, of
        each task, with the metrics of :func:`hpcgym.schedule.groups.metrics_by`; a column of that
        name stands before scheduler. The experiment has to say so, ``by = ["class", "user"]``.

    Returns
    -------
    table : columns workload, slice ("whole", "week 1", ...), seed (missing without one), scheduler,
        then the metrics; in the order of the experiment, on whatever executor it ran. With speedups
        there is a column ``speedups`` behind workload, with limits ``limits``, their names, and
        with shuffles ``shuffle``, their seeds, before scheduler. With speedups and makespans the
        last column is ``makespan_improvement``: the makespan of the first scheduler on the same
        jobs over that of the row, less 1; missing
        as long as the first is not done.

    Raises
    ------
    HpcgymError : no sweep is there, it cannot be read, or it keeps no metrics ``by``.
    """
    import pandas as pd

    manifest = read_manifest(folder)
    if by is not None:
        _check_kept(folder, manifest, by)
    tasks = Tasks(manifest)
    keys = keys_of(manifest, by)
    with shaped(Path(folder) / RESULTS, "the file of the results of a sweep"):
        metrics = set(manifest["metrics"])
        records = read_results(folder, tasks)
        if by is None:
            rows = [_row(record, keys, metrics) for record in records]
        else:
            rows = [row for record in records for row in _rows_by(record, keys, by)]
        table = pd.DataFrame(rows, columns=None if rows else keys)
        # where no slice has a value of a metric, it is still a number that is missing
        missing = [name for name in table.columns[len(keys) :] if table[name].dtype == object]
        table = table.astype({"seed": "Int64", **dict.fromkeys(missing, "float64")})
    if by is None and "speedups" in keys and "makespan_s" in table:
        _add_improvement(table, keys, next(iter(manifest["schedulers"])))
    return table


def _row(record: Mapping[str, Any], keys: list[str], metrics: set[str]) -> dict[str, Any]:
    """Return the row of a task; raise a ValueError if its result has not these metrics.

    Without ``metrics`` it has all that there are, whose names are one word.
    """
    task = record["task"]
    result = {name: value for name, value in record["result"].items() if name != "by"}
    if metrics and result.keys() != metrics:
        raise ValueError(result)
    return {**{key: task[key] for key in keys}, **_numbers(result, keys)}


def _rows_by(record: Mapping[str, Any], keys: list[str], by: str) -> list[dict[str, Any]]:
    """Return the rows of the groups of a task; raise a ValueError if its result has none."""
    groups = record["result"]["by"][by]
    return [
        {**{key: (record["task"] | {by: name})[key] for key in keys}, **_numbers(found, keys)}
        for name, found in groups.items()
    ]


def _numbers(metrics: Mapping[str, Any], keys: list[str]) -> Mapping[str, Any]:
    """Return metrics as they are; raise a ValueError if there are none, or one is no number."""
    for name, value in metrics.items():
        if name in keys or not name.isidentifier() or type(value) not in (int, float, NoneType):
            raise ValueError(metrics)
    if not metrics:
        raise ValueError(metrics)
    return metrics


def keys_of(manifest: Mapping[str, Any], by: str | None = None) -> list[str]:
    """Return which columns of the table tell its rows apart, the scheduler being the last."""
    of_jobs = [key for key in ("speedups", "limits") if key in manifest]
    shuffle = ["shuffle"] if "shuffles" in manifest else []
    group = [] if by is None else [by]
    return ["workload", *of_jobs, "slice", "seed", *shuffle, *group, "scheduler"]


def _check_kept(folder: str | Path, manifest: Mapping[str, Any], by: str) -> None:
    """Raise an HpcgymError unless a sweep keeps metrics of classes, or of users."""
    check_choice("by", by, GROUPED_BY)
    if by not in manifest.get("by", ()):
        raise HpcgymError(
            f"{folder} keeps no metrics by {by}: write by = {json.dumps([by])} into the experiment,"
            " and run it again, into another folder"
        )


def _add_improvement(table: pd.DataFrame, keys: list[str], first: str) -> None:
    """Add by how much makespans are better than those of the first scheduler on the same jobs."""
    jobs = table[keys[:-1]].astype(object).where(table[keys[:-1]].notna(), None)
    same = [tuple(row) for row in jobs.itertuples(index=False)]
    rows = zip(same, table["scheduler"], table["makespan_s"], strict=True)
    reference = {of: makespan for of, scheduler, makespan in rows if scheduler == first}
    makespans = [reference.get(of, float("nan")) for of in same]
    table["makespan_improvement"] = makespans / table["makespan_s"] - 1
