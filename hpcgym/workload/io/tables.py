"""Workloads from and to tables: pandas, CSV, Parquet, JSON, with SWF's column names.

A table has no header, so it does not tell the machine's size: give ``processors``, or it is what
the jobs tell of it (:func:`hpcgym.workload.io.records.size_by_jobs`). Nor does it tell the numbers
of queues: where jobs have their names, give the machine's. (JSON may tell both:
:mod:`hpcgym.workload.io.json_jobs`.) Users, groups, queues, partitions and what jobs run may have
names: :mod:`hpcgym.workload.io.table_names`. Submissions may be dates, and durations such as
``1-02:03:04``: :mod:`hpcgym.workload.io.table_times`.

Jobs that ask for more than processors have columns that SWF lacks: ``units``, how many equal units
(1 where it is blank), and one for each resource, what a unit asks for (0 where it is blank, but a
share of the requested processors of ``core``). A table has them if it has ``units`` or ``core``.
``mem`` is in whole MB, or a text such as ``16 GB``.

A table with the column ``begin`` is an extract: :mod:`hpcgym.workload.io.table_extracts`.

Other columns that SWF lacks are ``power_w``, the mean power of a job on each processor [W],
``slowdown``, its completion time at the lowest frequency over that at the highest, and ``killed``,
1 where cleaning cut the run time of a job at its requested time, else 0 or blank.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, unknown
from hpcgym.files import need_parquet
from hpcgym.files.writing import whole, whole_text
from hpcgym.naming import (
    CORE,
    JOB_COLUMNS,
    KILLED,
    MEMORY,
    MOST_AMOUNT,
    NAME_COLUMNS,
    UNITS,
    megabytes,
)
from hpcgym.workload.io.files import TABLE_ENDINGS, Errors, check_errors, is_table, stem
from hpcgym.workload.io.json_jobs import is_json, read_json, write_json
from hpcgym.workload.io.records import size_by_jobs
from hpcgym.workload.io.table_columns import resource_columns
from hpcgym.workload.io.table_extracts import BEGIN, begin_of, extract_of, trace_of
from hpcgym.workload.io.table_files import read_csv, read_parquet, where_row
from hpcgym.workload.io.table_names import with_names, without_names
from hpcgym.workload.io.table_numbers import TEXT, numbers_alone, wrong_numbers
from hpcgym.workload.io.table_preceding import pairs_in, without_several
from hpcgym.workload.io.table_times import with_seconds
from hpcgym.workload.model import (
    FLOAT_COLUMNS,
    MISSING,
    Workload,
)
from hpcgym.workload.needs import queue_numbers

if TYPE_CHECKING:
    import pandas as pd


def from_pandas(
    frame: pd.DataFrame,
    *,
    processors: int | None = None,
    name: str = "workload",
    errors: Errors = "raise",
    queues: Mapping[str, int] | None = None,
    tz: str | None = None,
) -> Workload:
    """Return the workload of a DataFrame, one job a row, columns named as in ``JOB_COLUMNS``.

    Missing columns become -1, but without ``job_number`` the rows are numbered from 1. Missing
    values become -1 too, and are counted. Decimals of times and
    memory are rounded to the nearest whole number (halves away from 0) and counted.

    Users, groups, executables, queues and partitions may be names in place of numbers, or have
    their names in columns of their own; see :mod:`hpcgym.workload.io.table_names`. They are
    numbered, and the names become lines of the header. ``submit_time`` may be dates, and durations
    texts such as ``1-02:03:04``; see :mod:`hpcgym.workload.io.table_times`. ``preceding_job`` may
    be several numbers with blanks between, ``7 9``.

    Parameters
    ----------
    frame : n_jobs rows; ``submit_time`` is needed, in seconds.
    processors : size of the machine; without it, that of the largest job, or the most processors
        that jobs were busy on at once, by their waits and run times, if these were more.
    name : of the workload.
    errors : "raise" stops at the first value that is no number, none that the column can hold, or
        no amount of a resource; "skip" drops and counts such rows.
    queues : name of a queue -> its number; they become lines of the header.
    tz : the time zone of dates without an offset, such as ``Europe/Berlin``; None: UTC.

    Raises
    ------
    WorkloadError : an unknown column, a table without jobs, or a value that is no number (True and
        False are none), or none that the column can hold; it names the column and the row: its
        label in the DataFrame, the line of a CSV file. An extract without ``processors``.
    """
    check_errors(errors)
    begin = begin_of(frame, processors, name)
    if begin is not None:
        bare = frame.drop(columns=BEGIN)
        trace = from_pandas(
            bare, processors=processors, name=name, errors=errors, queues=queues, tz=tz
        )
        return extract_of(trace, begin)
    frame, told = without_names(frame, name, queues)
    frame, times = with_seconds(frame, tz)
    resources = resource_columns(frame, name)
    counts: dict[str, int] = {}
    if "job_number" not in frame:
        frame = frame.assign(job_number=np.arange(1, len(frame) + 1))
    if queues and "queue" in frame:
        given = frame["queue"].astype(object)
        frame = frame.assign(queue=given.map(lambda queue: queues.get(queue, queue)))
    frame, more = without_several(frame)
    numeric = _numbers(frame, name, errors, counts, queues)
    numeric = _with_amounts(numeric, resources, name, errors, counts)
    if not len(numeric):
        why = ", ".join(f"{number:,} {reason}" for reason, number in counts.items())
        raise WorkloadError(f"{name} holds no job{': ' + why if why else ''}")
    columns = {c: _column(numeric[c], c, counts) for c in JOB_COLUMNS if c in numeric}
    demands = (
        list(dict.fromkeys([CORE, *(r for r in resources if r != UNITS)])) if resources else []
    )
    named = [f"{number} {queue}" for queue, number in (queues or {}).items()]
    header = {**times, "Queue": named, **told}
    workload = Workload.from_columns(
        columns,
        processors=1 if processors is None else processors,
        name=name,
        header={key: lines for key, lines in header.items() if lines},
        cleaning=counts,
        killed=(numeric[KILLED] == 1).to_numpy(np.bool_, na_value=False)
        if KILLED in numeric
        else None,
        units=numeric[UNITS].to_numpy() if resources else None,
        per_unit={r: numeric[r].to_numpy() for r in demands},
        more_preceding=pairs_in(numeric, more, name),
    )
    if processors is None:
        return replace(workload, processors=size_by_jobs(workload.columns, name))
    return workload


def read_table(
    path: str | os.PathLike[str],
    *,
    processors: int | None = None,
    errors: Errors = "raise",
    machine_queues: Sequence[str] = (),
    tz: str | None = None,
) -> Workload:
    """Read a ``.csv``, ``.parquet`` or ``.json`` file, also ``.csv.gz``; see :func:`from_pandas`.

    ``machine_queues`` are by what :func:`hpcgym.workload.needs.queue_numbers` numbers names; ``tz``
    is as there.

    Raises
    ------
    WorkloadError : also for a file that cannot be read, and for Parquet without its library.
    """
    path = Path(path)
    check_errors(errors)
    skipped: dict[str, int] = {}
    told: dict[str, list[str]] = {}
    size, queues = None, None
    if is_json(path):
        frame, size, queues = read_json(path)
        told = {} if size is None else {"MaxProcs": [str(size)]}
    elif path.suffix == ".parquet":
        frame = read_parquet(path)
    else:
        frame = read_csv(path, errors, skipped)
    size = size if processors is None else processors
    queues = queues or queue_numbers(frame, machine_queues)
    workload = from_pandas(
        frame, processors=size, name=str(path), errors=errors, queues=queues, tz=tz
    )
    header = {**told, **workload.header}
    return workload.take(slice(None), name=stem(path), cleaning=skipped, header=header)


def write_table(workload: Workload, path: str | os.PathLike[str]) -> None:
    """Write a file of one of ``TABLE_ENDINGS``: the columns of ``Workload.to_pandas``.

    Names are columns more. JSON leaves out columns that no job has. The others lose the rest of the
    header: the machine's size, when second 0 was. Of an extract the jobs from
    before its beginning are written too. A file that is there is replaced, whole or not at all.

    Raises
    ------
    WorkloadError : another ending, a file that cannot be written, Parquet without its library, or
        an extract of a simulation, which knows more than a table has.
    """
    path = Path(path)
    if not is_table(path):
        raise WorkloadError(f"{path}: a table's name ends in {', '.join(TABLE_ENDINGS)}")
    workload, begin = trace_of(workload, str(path))
    frame = with_names(workload.to_pandas(), workload)
    if begin is not None:
        frame[BEGIN] = begin
    if is_json(path):
        write_json(workload, path, begin)
    elif path.suffix == ".parquet":
        need_parquet()
        with whole(path) as part:
            frame.to_parquet(part, index=False)
    else:
        with whole_text(path) as file:
            frame.to_csv(file, index=False, lineterminator="\n")


def _with_amounts(
    frame: pd.DataFrame, resources: list[str], name: str, errors: Errors, counts: dict[str, int]
) -> pd.DataFrame:
    """Return the table with whole amounts of units and resources, blanks filled."""
    if not resources:
        return frame
    filled = frame.copy()
    amounts = dict.fromkeys((UNITS, CORE, *resources))
    for column in amounts:
        least = 1 if column in (UNITS, CORE) else 0
        if column not in frame:
            filled[column] = np.nan
        values = filled[column].to_numpy(dtype=np.float64, na_value=np.nan)
        blank = np.isnan(values)
        if column == CORE and "requested_processors" in filled and blank.any():
            share = filled["requested_processors"].to_numpy(np.float64, na_value=np.nan)
            share = share // filled[UNITS].to_numpy(np.float64)
            values = np.where(blank & (share >= 1), share, values)
            blank = np.isnan(values)
        filled[column] = np.where(blank, least, values)
        within = (values >= least) & (values <= MOST_AMOUNT)
        bad = ~blank & ~(within & (np.floor(values) == values))
        if bad.any() and errors == "raise":
            row = int(bad.argmax())
            raise WorkloadError(
                f"{where_row(frame.index, row, name)}: column {column} is {values[row]:g}; it must"
                f" be a whole number from {least} to {MOST_AMOUNT}"
            )
        if bad.any():
            reason = f"dropped: no whole number of {column}"
            counts[reason] = counts.get(reason, 0) + int(bad.sum())
            filled, frame = filled[~bad], frame[~bad]
    return filled.astype(dict.fromkeys(amounts, np.int64))


def _numbers(
    frame: pd.DataFrame,
    name: str,
    errors: Errors,
    counts: dict[str, int],
    queues: Mapping[str, int] | None,
) -> pd.DataFrame:
    """Return the table with numbers that its columns can hold; other rows are dropped."""
    import pandas as pd

    numeric = frame
    limited = (*JOB_COLUMNS, KILLED)
    reasons: dict[str, NDArray[np.bool_]] = {}
    for column in map(str, frame.columns):
        dtype = frame[column].dtype
        truths = pd.api.types.is_bool_dtype(dtype)
        if truths or not pd.api.types.is_numeric_dtype(dtype):
            texts = pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype)
            if not (truths or texts):
                how = _how_to_number(column)
                raise WorkloadError(f"{name}: column {column} holds {dtype}, not numbers{how}")
            given = frame[column].map(_in_megabytes) if column == MEMORY else frame[column]
            numeric = numeric.assign(**{column: numbers_alone(given)})
        unread = (numeric[column].isna() & frame[column].notna()).to_numpy()
        # of units and resources _with_amounts says what they may be
        limits = wrong_numbers(numeric[column], column) if column in limited else {}
        for (reason, problem), wrong in {(TEXT, "not a number"): unread, **limits}.items():
            if wrong.any() and errors == "raise":
                row = int(wrong.argmax())
                shown = str(frame[column].iloc[row])[:24]
                where = where_row(frame.index, row, name)
                if wrong is not unread:
                    raise WorkloadError(f"{where}: column {column} is {shown}, {problem}")
                if column == "queue" and queues:
                    raise WorkloadError(f"{where}: {unknown('queue', shown, queues)}")
                how = _how_to_number(column)
                raise WorkloadError(f"{where}: column {column} is {shown!r}, {problem}{how}")
            if wrong.any():
                reasons[reason] = reasons.get(reason, np.zeros(len(frame), np.bool_)) | wrong
    bad = np.zeros(len(frame), np.bool_)
    for reason, wrong in reasons.items():
        # a row counts once, by the first reason
        if number := int(np.count_nonzero(wrong & ~bad)):
            counts[f"dropped: {reason}"] = number
        bad |= wrong
    return numeric[~bad] if bad.any() else numeric


def _how_to_number(column: str) -> str:
    """Return what a column holds in place of text, to be added to an error; nothing of most."""
    if column == MEMORY:
        return "; it must be whole MB or such as '16 GB'"
    if column in ("requested_memory", "used_memory"):
        return ", of kilobytes a processor"
    if column == "submit_time":
        return ", nor a date such as '2024-03-01 12:00'"
    return ", nor a name" if column in NAME_COLUMNS.values() else ""


def _in_megabytes(value: Any) -> Any:
    """Return the megabytes of a text such as ``16 GB``, and anything else as it is."""
    found = megabytes(value) if isinstance(value, str) else None
    return value if found is None else found


def _column(series: pd.Series[Any], column: str, counts: dict[str, int]) -> NDArray[Any]:
    """Return a column as SWF has it: -1 for missing values, whole numbers where they must be."""
    missing = int(series.isna().sum())
    if missing:
        counts[f"repaired: missing {column} set to {MISSING}"] = missing
        series = series.fillna(MISSING)
    values: NDArray[Any] = series.to_numpy()
    if column in FLOAT_COLUMNS or values.dtype.kind != "f":
        return values
    nearest: NDArray[Any] = np.copysign(np.floor(np.abs(values) + 0.5), values)
    changed = int(np.count_nonzero(nearest != values))
    if changed:
        counts[f"repaired: {column} rounded to a whole number"] = changed
    return nearest
