"""Workloads from and to tables: pandas, CSV, Parquet, JSON, with SWF's column names.

A table has no header, so it does not tell the machine's size: give ``processors``, or it is what
the jobs tell of it (:func:`hpcgym.workload.cleaning.size_by_jobs`). JSON may tell it. Users,
groups, queues, partitions and what jobs run may have names:
:mod:`hpcgym.workload.io.table_columns`. Submissions may be dates, and durations such as
``1-02:03:04``: :mod:`hpcgym.workload.io.table_columns`.

Jobs that ask for more than processors have columns that SWF lacks: ``units``, how many equal units
(1 where it is blank), and one for each resource, what a unit asks for (0 where it is blank, but a
share of the requested processors of ``core``). A table has them if it has ``units`` or ``core``.
``mem`` is in whole MB, or a text such as ``16 GB``.

Other columns that SWF lacks are ``power_w``, the mean power of a job on each processor [W],
``slowdown``, its completion time at the lowest frequency over that at the highest, and ``killed``,
1 where cleaning cut the run time of a job at its requested time, else 0 or blank.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import NoJobError, WorkloadError, unknown
from hpcgym.files import bytes_of, json_of
from hpcgym.files.tables import MOST_COLUMNS, need_parquet, parquet_frame, write_csv_frame
from hpcgym.files.writing import whole_file, whole_text
from hpcgym.names import CORE, KILLED, UNITS, job_columns
from hpcgym.workload.cleaning import size_by_jobs
from hpcgym.workload.columns import MISSING, kind_of
from hpcgym.workload.io import files as job_files
from hpcgym.workload.io import table_columns
from hpcgym.workload.model import Workload, check_processors

if TYPE_CHECKING:
    import pandas as pd


# --- Jobs in JSON ---------------------------------------------------------------------------------
#
# ::
#
#     {"processors": 1024,
#      "jobs": [{"submit_time": 0, "run_time": 60, "requested_time": 3600, "queue": "debug",
#                "units": 2, "core": 8, "mem": 4000, "gpu": 1, "code": "lu.D.64"}, ...]}
#
# Fields of jobs are the columns of tables; what a job leaves out is unknown. It may be the list of
# jobs alone.

_KEYS = ("processors", "jobs")
_MOST_BYTES = 1 << 30  # in the memory they take ten times as much


def is_json(path: Path) -> bool:
    """Tell whether a file's name ends as that of a file of jobs in JSON does."""
    return path.name.casefold().endswith((".json", ".json.gz"))


def read_json(path: Path) -> tuple[pd.DataFrame, int | None]:
    """Return the jobs as a table, and the processors if the file tells them.

    Raises
    ------
    WorkloadError : a file that is no JSON of this form; the message names the job.
    """
    import pandas as pd

    given = json_of(bytes_of(path, _MOST_BYTES, WorkloadError), str(path), WorkloadError)
    top = {"jobs": given} if isinstance(given, list) else given
    if not isinstance(top, dict) or not isinstance(top.get("jobs"), list):
        raise WorkloadError(f"{path} holds neither a list of jobs nor an object with 'jobs'")
    for key in top:
        if key not in _KEYS:
            raise WorkloadError(f"{path}: {unknown('entry', key, _KEYS)}")
    for number, job in enumerate(top["jobs"], 1):
        if not isinstance(job, dict):
            raise WorkloadError(f"{path}, job {number} is no object")
        for field, value in job.items():
            if isinstance(value, list | dict):
                raise WorkloadError(f"{path}, job {number}: {field} is a list or an object")
    columns = list(dict.fromkeys(field for job in top["jobs"] for field in job))
    if len(columns) > MOST_COLUMNS:
        raise WorkloadError(f"{path}: jobs have {len(columns):,} fields, over {MOST_COLUMNS:,}")
    frame = pd.DataFrame(top["jobs"], columns=columns)
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="job")
    if not top["jobs"]:
        raise NoJobError(f"{path} holds no job")
    return frame, told_processors(top.get("processors"), str(path))


def _write_json(frame: pd.DataFrame, processors: int, path: Path) -> None:
    """Write the jobs, one a line, with the columns that any job has."""
    known = [c for c in job_columns(frame.columns) if c != "submit_time"]
    unknown = [c for c in known if (frame[c] == MISSING).all()]
    rows = frame.drop(columns=unknown).to_dict("records")
    with whole_text(path) as file:
        file.write(f'{{"processors": {processors},\n "jobs": [\n  ')
        file.write(",\n  ".join(json.dumps(row) for row in rows))
        file.write("]}\n")


def told_processors(processors: Any, where: str) -> int | None:
    """Return the machine's size if it is told, or say ``where`` it cannot be one."""
    try:
        return None if processors is None else check_processors(processors)
    except WorkloadError as error:
        raise WorkloadError(f"{where}: {error}") from None


# --- Workloads from and to tables -----------------------------------------------------------------


def from_pandas(
    frame: pd.DataFrame,
    *,
    processors: int | None = None,
    name: str = "workload",
    errors: job_files.Errors = "raise",
    tz: str | None = None,
) -> Workload:
    """Return the workload of a DataFrame, one job a row, columns named as those of workloads.

    Missing columns become -1, but without ``job_number`` the rows are numbered from 1. Missing
    values become -1 too, and are counted. Decimals of times and
    memory are rounded to the nearest whole number (halves away from 0) and counted.

    Users, groups, executables, queues and partitions may be names in place of numbers, or have
    their names in columns of their own; see :mod:`hpcgym.workload.io.table_columns`. They are
    numbered, and the names become lines of the header. ``submit_time`` may be dates, and durations
    texts such as ``1-02:03:04``; see :mod:`hpcgym.workload.io.table_columns`. ``preceding_job`` may
    be several numbers with blanks between, ``7 9``.

    Parameters
    ----------
    frame : n_jobs rows; ``submit_time`` is needed, in seconds.
    processors : size of the machine; without it, that of the largest job, or the most processors
        that jobs were busy on at once, by their waits and run times, if these were more.
    name : of the workload.
    errors : "raise" stops at the first value that is no number, none that the column can hold, or
        no amount of a resource; "skip" drops and counts such rows.
    tz : the time zone of dates without an offset, such as ``Europe/Berlin``; None: UTC.

    Raises
    ------
    WorkloadError : an unknown column, a table without jobs, or a value that is no number (True and
        False are not), or none that the column can hold; it names the column and the row: its
        label in the DataFrame, the line of a CSV file.
    """
    job_files.check_errors(errors)
    job_files.check_once(map(str, frame.columns), name)
    frame, names = table_columns.without_names(frame, name)
    frame, times = table_columns.with_seconds(frame, tz)
    resources = table_columns.resource_columns(frame, name)
    counts: dict[str, int] = {}
    if "job_number" not in frame:
        frame = frame.assign(job_number=np.arange(1, len(frame) + 1))
    frame, more = table_columns.without_several(frame)
    numeric = _with_amounts(_numbers(frame, name, errors, counts), resources)
    if not len(numeric):
        raise job_files.no_job(name, counts)
    columns = {c: _column(numeric[c], c, counts) for c in job_columns(map(str, numeric.columns))}
    demands = dict.fromkeys([CORE, *resources] if resources else [])
    demands.pop(UNITS, None)
    workload = Workload.from_columns(
        columns,
        processors=1 if processors is None else processors,
        name=name,
        header={**times, **names},
        cleaning=counts,
        killed=(numeric[KILLED] == 1).to_numpy(np.bool_, na_value=False)
        if KILLED in numeric
        else None,
        units=numeric[UNITS].to_numpy() if resources else None,
        per_unit={r: numeric[r].to_numpy() for r in demands},
        more_preceding=table_columns.pairs_in(numeric, more, name),
    )
    if processors is None:
        return replace(workload, processors=size_by_jobs(workload.columns, name))
    return workload


def read_table(
    path: str | os.PathLike[str],
    *,
    processors: int | None = None,
    errors: job_files.Errors = "raise",
    tz: str | None = None,
) -> Workload:
    """Read a ``.csv``, ``.parquet`` or ``.json`` file, also ``.csv.gz``; see :func:`from_pandas`.

    Raises
    ------
    WorkloadError : also for a file that cannot be read, and for Parquet without its library.
    """
    path = Path(path)
    job_files.check_errors(errors)
    skipped: dict[str, int] = {}
    size = None
    if is_json(path):
        frame, size = read_json(path)
    elif path.suffix == ".parquet":
        need_parquet()
        frame = parquet_frame(path, WorkloadError)
    else:
        frame = job_files.read_csv(path, errors, skipped)
    own_header = {} if size is None else {"MaxProcs": [str(size)]}
    size = size if processors is None else processors
    workload = from_pandas(frame, processors=size, name=str(path), errors=errors, tz=tz)
    header = {**own_header, **workload.header}
    return replace(workload.counted(skipped), name=job_files.file_name(path), header=header)


def write_table(workload: Workload, path: str | os.PathLike[str]) -> None:
    """Write a file of one of ``TABLE_ENDINGS``: the columns of ``Workload.to_pandas``.

    Names are columns more. JSON leaves out columns that no job has, and tells the machine's size.
    The rest of the header is lost, as when second 0 was. A file that is there is replaced, whole or
    not at all.

    Raises
    ------
    WorkloadError : another ending, a file that cannot be written, Parquet without its library, or
        an extract, of which a table would lose with which jobs it begins.
    """
    path = Path(path)
    if not job_files.is_table(path):
        raise WorkloadError(f"{path}: a table's name ends in {', '.join(job_files.TABLE_ENDINGS)}")
    if workload.initial is not None:
        raise WorkloadError(
            f"{path}: a table would lose the state with which {workload.name} begins: write the"
            " whole trace, and take the extract when it is read; or pickle the extract"
        )
    frame = table_columns.with_names(workload.to_pandas(), workload)
    if is_json(path):
        _write_json(frame, workload.processors, path)
    elif path.suffix == ".parquet":
        need_parquet()
        with whole_file(path) as part:
            frame.to_parquet(part, index=False)
    else:
        with whole_text(path) as file:
            write_csv_frame(frame, file)


def _with_amounts(frame: pd.DataFrame, resources: Sequence[str]) -> pd.DataFrame:
    """Return the table with amounts of units and resources where they are blank."""
    filled = frame.copy(deep=False) if resources else frame
    for column in dict.fromkeys((UNITS, CORE, *resources) if resources else ()):
        values = np.full(len(filled), np.nan)
        if column in filled:
            values = filled[column].to_numpy(dtype=np.float64, na_value=np.nan)
        if column == CORE and "requested_processors" in filled:
            share = filled["requested_processors"].to_numpy(np.float64, na_value=np.nan)
            share = share // filled[UNITS].to_numpy(np.float64)
            values = np.where(np.isnan(values) & (share >= 1), share, values)
        least = kind_of(column).lowest
        filled[column] = np.where(np.isnan(values), least, values).astype(np.int64)
    return filled


def _numbers(
    frame: pd.DataFrame, name: str, errors: job_files.Errors, counts: dict[str, int]
) -> pd.DataFrame:
    """Return the table with numbers that its columns can hold; other rows are dropped."""
    numeric = frame
    reasons: dict[str, NDArray[np.bool_]] = {}
    for column in map(str, frame.columns):
        given = frame[column]
        numbers = table_columns.numbers_in(given, column, name)
        if numbers is not given:
            numeric = numeric.assign(**{column: numbers})
        problems = table_columns.wrong_numbers(given, numbers, column)
        for (reason, problem), wrong in problems.items():
            if wrong.any() and errors == "raise":
                row = int(wrong.argmax())
                shown: Any = str(given.iloc[row])[:24]
                where = job_files.where_row(frame.index, row, name)
                shown = repr(shown) if reason == table_columns.TEXT else shown
                raise WorkloadError(f"{where}: column {column} is {shown}, {problem}")
            if wrong.any():
                reasons[reason] = reasons.get(reason, np.zeros(len(frame), np.bool_)) | wrong
    bad = np.zeros(len(frame), np.bool_)
    for reason, wrong in reasons.items():
        # a row counts once, by the first reason
        if number := int(np.count_nonzero(wrong & ~bad)):
            counts[f"dropped: {reason}"] = number
        bad |= wrong
    return numeric[~bad] if bad.any() else numeric


def _column(series: pd.Series[Any], column: str, counts: dict[str, int]) -> NDArray[Any]:
    """Return a column as SWF has it: -1 for missing values, whole numbers where they must be."""
    missing = int(series.isna().sum())
    if missing:
        counts[f"repaired: missing {column} set to {MISSING}"] = missing
        series = series.fillna(MISSING)
    values: NDArray[Any] = series.to_numpy()
    if kind_of(column).dtype is np.float64 or values.dtype.kind != "f":
        return values
    nearest: NDArray[Any] = np.copysign(np.floor(np.abs(values) + 0.5), values)
    changed = int(np.count_nonzero(nearest != values))
    if changed:
        counts[f"repaired: {column} rounded to a whole number"] = changed
    return nearest


FORMAT = job_files.FileFormat(
    lambda path, head: job_files.is_table(path),
    lambda path, how: read_table(path, processors=how.processors, errors=how.errors, tz=how.tz),
)
