"""Published tables of jobs with columns of their own: PM100 and F-DATA, in Parquet or CSV.

PM100 (Marconi100, https://doi.org/10.5281/zenodo.8129257): its documentation says that ``run_time``
is in seconds, ``time_limit`` in minutes, and its plots that memory is in gigabytes and
``power_consumption`` in watts, a list of samples of all nodes of a job. The columns of processors
are called ``num_cores_...`` in its scripts, ``num_cpus_...`` in its documentation: both are read.

F-DATA (Fugaku, https://doi.org/10.5281/zenodo.11467483): ``duration`` is in seconds. Its
documentation does not tell the units of ``elpl`` (taken for seconds), ``mszl`` (bytes on each node,
and no limit from 2^60 on) and ``avgpcon``, which it calls that of a node: by its energies,
``econ``, it is that of the job [W], and so it is read. These three are as users of the files found
them, not as their authors say.

Dates without an offset are of the time zone ``tz``: neither documentation tells it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError
from hpcgym.files.tables import csv_frame, need_parquet, parquet_frame, parquet_names
from hpcgym.naming import Clock, printable
from hpcgym.workload.io import log_lines
from hpcgym.workload.io.files import Reading, as_numbers
from hpcgym.workload.io.sacct_fields import OPEN_STATES, STATES, state_of
from hpcgym.workload.model import MISSING, Workload

if TYPE_CHECKING:
    import pandas as pd

#: Columns that a table is recognised by, and must have.
_PM100 = ("job_id", "submit_time", "start_time", "run_time", "job_state", "num_nodes_alloc")
_F_DATA = ("jid", "usr", "adt", "sdt", "duration", "cnumat")

#: Others that are read.
_PM100_MORE = (
    *("eligible_time", "time_limit", "num_cores_alloc", "num_cpus_alloc", "num_cores_req"),
    *("num_cpus_req", "num_gpus_alloc", "num_gpus_req", "mem_alloc", "mem_req", "user_id"),
    *("group_id", "partition", "qos", "power_consumption"),
)
_F_DATA_MORE = ("cnumr", "nnuma", "elpl", "mszl", "avgpcon", "exit state")

#: Columns of dates.
_DATES = ("submit_time", "eligible_time", "start_time", "adt", "sdt")

_NO_LIMIT = 2.0**60  # bytes


def is_pm100(path: Path, head: bytes) -> bool:
    """Tell whether a file is a table of PM100, by the names of its columns."""
    return {*_PM100} <= _names(path, head)


def is_f_data(path: Path, head: bytes) -> bool:
    """Tell whether a file is a table of F-DATA, by the names of its columns."""
    return {*_F_DATA} <= _names(path, head)


def read_pm100(path: Path, how: Reading) -> Workload:
    """Read a table of PM100; see this module.

    Raises
    ------
    WorkloadError : a file that cannot be read, or lacks columns; a row that is no job, unless such
        rows are skipped; no job that ended.
    """
    log, frame, clock = _opened(path, how, _PM100, _PM100_MORE)
    log.fields["job_state"] = [str(state) for state in frame["job_state"]]
    states = log.parsed("job_state", state_of, "")
    for line, state in zip(log.lines, states, strict=True):
        if state in OPEN_STATES:
            log.refuse(line, f"the job is {state}", f"{state} when the log was written")
    cores, asked, gigabytes, gpus = (
        log_lines.first_known(*(_whole(frame, name) for name in names))
        for names in (
            ("num_cores_alloc", "num_cpus_alloc"), ("num_cores_req", "num_cpus_req"),
            ("mem_alloc", "mem_req"), ("num_gpus_alloc", "num_gpus_req"),
        )
    )  # fmt: skip
    limit, number = _whole(frame, "time_limit"), _floats(frame, "job_id")
    power = frame.get("power_consumption")
    columns = {
        "job_number": number if (number % 1 == 0).all() else np.arange(1, len(log) + 1),
        "submit_time": log.numbers("submit_time", clock.seconds),
        "eligible": log.numbers("eligible_time", clock.seconds),
        "start": log.numbers("start_time", clock.seconds),
        "run_time": _whole(frame, "run_time", least=0),
        "requested_time": np.where(limit > 0, limit * 60, MISSING),
        "status": np.array([STATES.get(state, MISSING) for state in states], np.int64),
        "nodes": _whole(frame, "num_nodes_alloc"),
        "gpus": gpus,
        "memory_mb": np.where(gigabytes > 0, gigabytes * 1000, MISSING),
        "power_w": np.full(len(log), -1.0) if power is None else _means(power),
        "user": _texts(frame, "user_id"),
        "group": _texts(frame, "group_id"),
        "queue_name": _texts(frame, "qos"),
        "partition_name": _texts(frame, "partition"),
    }
    return _workload(log, columns, clock, cores, asked)


def read_f_data(path: Path, how: Reading) -> Workload:
    """Read a table of F-DATA, such as ``21_04.parquet``; see this module.

    Raises
    ------
    WorkloadError : as :func:`read_pm100`.
    """
    log, frame, clock = _opened(path, how, _F_DATA, _F_DATA_MORE)
    limit = _floats(frame, "mszl")
    known = (limit > 0) & (limit < _NO_LIMIT)
    nodes = _whole(frame, "nnuma")
    held = np.where(known, limit, 0) * np.maximum(nodes, 1) / 1e6
    states = [str(state) for state in frame.get("exit state", [""] * len(log))]
    told = {"completed": 1, "failed": 0}
    columns = {
        "job_number": np.arange(1, len(log) + 1),
        "submit_time": log.numbers("adt", clock.seconds),
        "eligible": np.full(len(log), MISSING),
        "start": log.numbers("sdt", clock.seconds),
        "run_time": _whole(frame, "duration", least=0),
        "requested_time": _whole(frame, "elpl"),
        "status": np.array([told.get(state, MISSING) for state in states], np.int64),
        "nodes": nodes,
        "gpus": np.full(len(log), MISSING),
        "memory_mb": np.where(known, np.ceil(held), MISSING).astype(np.int64),
        "power_w": np.maximum(_floats(frame, "avgpcon"), -1.0),
        "user": _texts(frame, "usr"),
    }
    return _workload(log, columns, clock, _whole(frame, "cnumat"), _whole(frame, "cnumr"))


def _names(path: Path, head: bytes) -> set[str]:
    """Return the names of a table's columns, none of what is no table."""
    if head.startswith(b"PAR1"):
        try:
            return {*parquet_names(path, WorkloadError)}
        except (ImportError, WorkloadError):
            return set()  # its reader says what is wrong
    if not path.name.casefold().endswith((".csv", ".csv.gz")):
        return set()
    first = head.split(b"\n", 1)[0].decode("utf-8-sig", "replace")
    return {name.strip().strip('"') for name in first.split(",")}


def _opened(
    path: Path, how: Reading, needed: tuple[str, ...], more: tuple[str, ...]
) -> tuple[log_lines.Log, pd.DataFrame, Clock]:
    """Return what counts rows, the columns that are read, and the clock of dates."""
    clock = Clock(how.tz)
    wanted = (*needed, *more)
    if path.name.casefold().endswith((".csv", ".csv.gz")):
        frame = csv_frame(path, WorkloadError, usecols=lambda name: name in wanted)
        lines = [place + 2 for place in frame.index]
    else:
        need_parquet()
        frame = parquet_frame(path, WorkloadError, wanted)
        lines = list(range(1, len(frame) + 1))
    lacking = [name for name in needed if name not in frame]
    if lacking:
        raise WorkloadError(f"{path} lacks the columns {', '.join(lacking)}")
    blank = ("NaT", "nan", "None")
    dates = {
        name: ["" if (text := str(value).strip()) in blank else text for value in frame[name]]
        for name in _DATES
        if name in frame
    }
    return log_lines.Log(path, how, lines, dates), frame, clock


def _workload(
    log: log_lines.Log,
    columns: dict[str, Any],
    clock: Clock,
    cores: log_lines.Ints,
    asked: log_lines.Ints,
) -> Workload:
    """Return the jobs of a table that ran."""
    size = log_lines.first_known(cores, asked)
    for reason, at in {
        "no submission or start": (columns["submit_time"] < 0) | (columns["start"] < 0),
        "no run time": columns["run_time"] < 0,
        "no processors": size <= 0,
    }.items():
        for place in np.flatnonzero(at).tolist():
            log.refuse(log.lines[place], f"a row with {reason}", f"row with {reason}")
    log.count(
        "repaired: requested_processors taken from those allocated",
        (asked > 0) & (asked != size),
    )
    columns |= {"requested_processors": size, "allocated_processors": cores}
    columns["power_w"] = np.where(columns["power_w"] >= 0, columns["power_w"] / size, -1.0)
    columns = log.settled(columns)
    resources: dict[str, Any] = {name: columns.pop(name) for name in ("nodes", "gpus", "memory_mb")}
    log_lines.with_submissions(
        log, columns, columns.pop("eligible"), list(map(str, range(len(log))))
    )
    log_lines.with_units(log, columns, **resources)
    return log_lines.workload_of(log, columns, clock)


def _floats(frame: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Return a column of numbers, -1 where there is none."""
    if column not in frame:
        return np.full(len(frame), -1.0)
    values = as_numbers(frame[column]).to_numpy(np.float64, na_value=np.nan)
    found: NDArray[np.float64] = np.where(np.isfinite(values), values, -1.0)
    return found


def _whole(frame: pd.DataFrame, column: str, least: int = 1) -> log_lines.Ints:
    """Return a column of whole numbers, -1 where there is none, or one below ``least``."""
    values = np.floor(_floats(frame, column) + 0.5)
    right = (values >= least) & (values < 2.0**53)
    return np.where(right, values, MISSING).astype(np.int64)


def _texts(frame: pd.DataFrame, column: str) -> list[str | None]:
    """Return a column as names, None where there is none."""
    if column not in frame:
        return [None] * len(frame)
    nothing = ("", "nan", "None", "<NA>")
    return [None if text in nothing else text for text in map(_name, frame[column])]


def _name(value: Any) -> str:
    """Return a name; a number is its own."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return printable(str(int(value)) if whole else str(value))


def _means(samples: pd.Series[Any]) -> NDArray[np.float64]:
    """Return the mean of each list of samples, -1 of an empty one, or of a text."""
    return np.array(
        [
            -1.0 if isinstance(one, str) or one is None or not np.size(one) else float(np.mean(one))
            for one in samples
        ]
    )
