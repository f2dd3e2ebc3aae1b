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

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError
from hpcgym.files.tables import csv_frame, need_parquet, parquet_frame, parquet_names
from hpcgym.naming import Clock, printable
from hpcgym.workload.io.files import Reading, as_numbers
from hpcgym.workload.io.log_lines import Ints, Log, first_known, processors, workload_of
from hpcgym.workload.io.sacct_fields import OPEN_STATES, state_of, status_of
from hpcgym.workload.model import MISSING, Workload

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Preset:
    """Which columns of a published table tell what.

    Attributes
    ----------
    needed : what a table is recognised by, and must have.
    dates, names : column of jobs -> that of the table.
    numbers : column of jobs -> those of the table, of which the first known one counts.
    run_time : column of run times [s].
    others : further columns that are read.
    """

    needed: tuple[str, ...]
    dates: Mapping[str, str]
    names: Mapping[str, str]
    numbers: Mapping[str, tuple[str, ...]]
    run_time: str
    others: tuple[str, ...]

    @property
    def read(self) -> set[str]:
        """All columns that are read."""
        several = {name for names in self.numbers.values() for name in names}
        return {*self.needed, *self.dates.values(), *self.names.values(), *several, *self.others}


PM100 = Preset(
    needed=("job_id", "submit_time", "start_time", "run_time", "job_state", "num_nodes_alloc"),
    dates={"submit_time": "submit_time", "eligible": "eligible_time", "start": "start_time"},
    names={
        "user": "user_id",
        "group": "group_id",
        "queue_name": "qos",
        "partition_name": "partition",
    },
    numbers={
        "given": ("num_cores_alloc", "num_cpus_alloc"),
        "asked": ("num_cores_req", "num_cpus_req"),
        "nodes": ("num_nodes_alloc",),
        "gpus": ("num_gpus_alloc", "num_gpus_req"),
        "memory_mb": ("mem_alloc", "mem_req"),  # GB
        "requested_time": ("time_limit",),  # minutes
    },
    run_time="run_time",
    others=("power_consumption",),
)
F_DATA = Preset(
    needed=("jid", "usr", "adt", "sdt", "duration", "cnumat"),
    dates={"submit_time": "adt", "start": "sdt"},
    names={"user": "usr"},
    numbers={
        "given": ("cnumat",),
        "asked": ("cnumr",),
        "nodes": ("nnuma",),
        "requested_time": ("elpl",),
    },
    run_time="duration",
    others=("mszl", "avgpcon", "exit state"),
)

_NO_LIMIT = 2.0**60  # bytes


def is_pm100(path: Path, head: bytes) -> bool:
    """Tell whether a file is a table of PM100, by the names of its columns."""
    return {*PM100.needed} <= _names(path, head)


def is_f_data(path: Path, head: bytes) -> bool:
    """Tell whether a file is a table of F-DATA, by the names of its columns."""
    return {*F_DATA.needed} <= _names(path, head)


def read_pm100(path: Path, how: Reading) -> Workload:
    """Read a table of PM100; see this module.

    Raises
    ------
    WorkloadError : a file that cannot be read, or lacks columns; a row that is no job, unless such
        rows are skipped; no job that ended.
    """
    log, frame = _opened(path, how, PM100)
    log.fields["job_state"] = list(map(str, frame["job_state"]))
    for line, state in zip(log.lines, log.parsed("job_state", state_of, ""), strict=True):
        if state in OPEN_STATES:
            log.refuse(line, f"the job is {state}", f"{state} when the log was written")
    number, power = _floats(frame, "job_id"), frame.get("power_consumption")
    found = {
        "job_number": number if (number % 1 == 0).all() else np.arange(1, len(log) + 1),
        "status": log.numbers(("job_state", status_of)),
        "power_w": np.full(len(log), -1.0) if power is None else _means(power),
    }
    return _workload(log, frame, PM100, found, {"memory_mb": 1000, "requested_time": 60})


def read_f_data(path: Path, how: Reading) -> Workload:
    """Read a table of F-DATA, such as ``21_04.parquet``; see this module.

    Raises
    ------
    WorkloadError : as :func:`read_pm100`.
    """
    log, frame = _opened(path, how, F_DATA)
    limit = _floats(frame, "mszl")
    known = (limit > 0) & (limit < _NO_LIMIT)
    held = np.where(known, limit, 0) * np.maximum(_whole(frame, "nnuma"), 1) / 1e6
    told = {"completed": 1, "failed": 0}
    states = frame.get("exit state", [""] * len(log))
    found = {
        "job_number": np.arange(1, len(log) + 1),
        "memory_mb": np.where(known, np.ceil(held), MISSING).astype(np.int64),
        "power_w": np.maximum(_floats(frame, "avgpcon"), -1.0),
        "status": np.array([told.get(str(state), MISSING) for state in states], np.int64),
    }
    return _workload(log, frame, F_DATA, found, {})


def _names(path: Path, head: bytes) -> set[str]:
    """Return the names of a table's columns, none of what is no table."""
    if head.startswith(b"PAR1"):
        try:
            return {*parquet_names(path, WorkloadError)}
        except (ImportError, WorkloadError):
            return set()  # its reader says what is wrong
    if not _is_csv(path):
        return set()
    first = head.split(b"\n", 1)[0].decode("utf-8-sig", "replace")
    return {name.strip().strip('"') for name in first.split(",")}


def _is_csv(path: Path) -> bool:
    return path.name.casefold().endswith((".csv", ".csv.gz"))


def _opened(path: Path, how: Reading, preset: Preset) -> tuple[Log, pd.DataFrame]:
    """Return what counts rows, which has the dates, and the columns that are read."""
    wanted = preset.read
    if _is_csv(path):
        frame = csv_frame(path, WorkloadError, usecols=lambda name: name in wanted)
        lines = [place + 2 for place in frame.index]
    else:
        need_parquet()
        frame = parquet_frame(path, WorkloadError, sorted(wanted))
        lines = list(range(1, len(frame) + 1))
    lacking = [name for name in preset.needed if name not in frame]
    if lacking:
        raise WorkloadError(f"{path} lacks the columns {', '.join(lacking)}")
    blank = ("NaT", "nan", "None")
    dates = {
        name: ["" if (text := str(value).strip()) in blank else text for value in frame[name]]
        for name in preset.dates.values()
        if name in frame
    }
    return Log(path, how, lines, dates), frame


def _workload(
    log: Log,
    frame: pd.DataFrame,
    preset: Preset,
    found: dict[str, NDArray[Any]],
    units: Mapping[str, int],
) -> Workload:
    """Return the jobs of a table that ran.

    Parameters
    ----------
    log, frame : of :func:`_opened`.
    found : what tables of each kind tell in their own ways, (n,) each.
    units : what numbers of a column are multiplied by.
    """
    clock = Clock(log.how.tz)
    unknown = np.full(len(log), MISSING)
    columns: dict[str, Any] = {"eligible": unknown, "gpus": unknown}
    for name, column in preset.dates.items():
        columns[name] = log.numbers((column, clock.seconds))
    columns["run_time"] = _whole(frame, preset.run_time, least=0)
    for name, several in preset.numbers.items():
        amount = first_known(*(_whole(frame, column) for column in several))
        columns[name] = np.where(amount > 0, amount * units.get(name, 1), MISSING)
    columns |= {name: _texts(frame, column) for name, column in preset.names.items()}
    untold = (columns["submit_time"] < 0) | (columns["start"] < 0)
    for reason, at in (("submission or start", untold), ("run time", columns["run_time"] < 0)):
        log.refuse_at(at, f"a row with no {reason}", f"row with no {reason}")
    cores = processors(
        log,
        columns.pop("given"),
        columns.pop("asked"),
        "those allocated",
        "a row with no processors",
    )
    columns = log.settled(columns | found | cores)
    columns["power_w"] = np.where(
        columns["power_w"] >= 0, columns["power_w"] / columns["requested_processors"], -1.0
    )
    return workload_of(log, columns, clock, list(map(str, range(len(log)))))


def _floats(frame: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Return a column of numbers, -1 where there is none."""
    if column not in frame:
        return np.full(len(frame), -1.0)
    values = as_numbers(frame[column]).to_numpy(np.float64, na_value=np.nan)
    found: NDArray[np.float64] = np.where(np.isfinite(values), values, -1.0)
    return found


def _whole(frame: pd.DataFrame, column: str, least: int = 1) -> Ints:
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
