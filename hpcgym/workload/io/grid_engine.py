"""The file ``accounting`` of Grid Engine: of Sun, Univa (Altair) and its other editions.

Each line is a job that ended, or a task of an array: fields with colons between, in an order that
all editions share up to ``maxvmem``. Times are seconds since 1970, in newer ones milliseconds. The
fields: accounting(5), https://gridscheduler.sourceforge.net/htmlman/htmlman5/accounting.html

Requested times and memory stand in ``category``, as options of ``qsub``: ``-l h_rt=600,h_vmem=2G``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.dates import Clock, unix_seconds
from hpcgym.units import MEMORY_OF_GRID_ENGINE, OF_GRID_ENGINE, amount_of, count_in
from hpcgym.workload.columns import MISSING
from hpcgym.workload.io import log_lines as logs
from hpcgym.workload.io.files import FileFormat, ReadOptions
from hpcgym.workload.model import Workload

#: Fields before ``category`` that are read, by their places; names as in accounting(5).
_PLACES = {
    **{"qname": 0, "group": 2, "owner": 3, "job_number": 5},
    **{"submission_time": 8, "start_time": 9, "end_time": 10, "failed": 11, "exit_status": 12},
    **{"project": 31, "slots": 34, "task_number": 35},
}
_CATEGORY = 39
# its options may hold colons; behind it are iow, pe_taskid and maxvmem
_REST = re.compile(r"(?P<category>.*?):\d+\.\d+:(?P<pe_taskid>[^:]*):(?P<maxvmem>[\d.e+]+)(?::.*)?")
#: A resource of the relation EXCL (complex(5)) as sites call it, with a value that holds.
_EXCLUSIVE = re.compile(r"[ ,]excl(?:usive)?=(?:true|1)(?![^ ,])", re.IGNORECASE)
_NONE = (None, "", "NONE", "none")


def is_grid_engine(head: bytes) -> bool:
    """Tell whether the first bytes of a file are those of such a log; comments may come first."""
    for line in head.splitlines():
        fields = line.split(b":")
        if line.strip() and not line.startswith(b"#"):
            times = [fields[place] for place in (5, 8, 9, 10)] if len(fields) > _CATEGORY else [b""]
            return all(map(bytes.isdigit, times))
    return False


def read_grid_engine(path: Path, how: ReadOptions) -> Workload:
    """Read the accounting of Grid Engine as :func:`hpcgym.workload.io.pbs.read_pbs` a log of PBS.

    Processors are slots. Memory is h_vmem, else mem_free, of each slot.
    """
    log = _read(path, how)
    log.drop(list(map(_no_job, log.texts("pe_taskid"), log.texts("start_time"))))
    log.drop_copies()
    columns = log.settled(_columns(log))
    alone = [_EXCLUSIVE.search(category) is not None for category in log.texts("category")]
    log.count(logs.ALONE.format("-l exclusive"), alone)
    return logs.workload_of(log, columns, Clock(how.tz), "job_number", "task_number")


def _read(path: Path, how: ReadOptions) -> logs.LogRecords:
    """Return the records of a log."""
    log = logs.LogRecords(path, how)
    names = (*_PLACES, "category", "pe_taskid", "maxvmem")
    rows, lines = [], []
    for line, text, hint in log.texts_of_lines("an accounting file of Grid Engine"):
        if len(text.strip()) < 2 or text.startswith("#"):
            continue
        fields = text.split(":", _CATEGORY)
        rest = _REST.fullmatch(fields[-1]) if len(fields) > _CATEGORY else None
        if rest is None:
            problem = f"no record of 43 fields such as queue:host:group:owner:...{hint}"
            log.refuse(line, problem, "line that is no record")
            continue
        values = [*(fields[place] for place in _PLACES.values()), *rest.groups()]
        rows.append([value.strip() for value in values])
        lines.append(line)
    log.fill(names, [(lines, dict(zip(names, zip(*rows, strict=True), strict=False)))])
    return log


def _no_job(slave: str, start: str) -> str:
    """Return why a record is of no job: of a part of one, or of one that never started."""
    if slave not in _NONE:
        return "task of a parallel job, beside the record of the job"
    return "failed before it started" if start in ("", "0") else ""


def _columns(log: logs.LogRecords) -> dict[str, Any]:
    """Return the columns of jobs, (n,) each; times in seconds since 1970; -1 is unknown."""
    columns: dict[str, Any] = {name: log.numbers(*fields) for name, fields in _TOLD.items()}
    start, end = columns["start"], columns.pop("end")
    log.refuse_at(columns["submit_time"] < 0, "submission_time is 0", "no submission")
    log.refuse_at(end < start, "end_time is before start_time", "line that ends before it starts")
    unknown = np.full(len(log), MISSING)
    slots = logs.processors(
        log, columns.pop("slots"), unknown, "slots", "slots tells no processors"
    )
    size = np.maximum(slots["requested_processors"], 1)
    failed = log.numbers(("failed", count_in)) != 0
    asked = columns.pop("memory_of_slot")
    projects = [None if name in _NONE else name for name in log.names("project")]
    number = log.column("job_number", count_in)
    return {
        **columns,
        **logs.numbered(number, log.column("task_number", logs.task_of)),
        **slots,
        "run_time": end - start,
        "status": np.where((columns["status"] == 0) & ~failed, 1, 0),
        "memory_mb": np.where(asked > 0, asked * size, MISSING),
        "user": log.names("owner"),
        "group": projects if any(projects) else log.names("group"),
        "queue_name": log.names("qname"),
    }


# --- What fields say ------------------------------------------------------------------------------


def _time(text: str) -> int:
    """Return seconds since 1970, -1 of 0."""
    return unix_seconds(text) or MISSING


def _option(names: tuple[str, ...], read: Callable[[str], int], category: str) -> int:
    """Return what the first of some resources in ``-l`` is, -1 if none is there."""
    for name in names:
        if match := re.search(rf"(?:^|[ ,]){name}=([^ ,]*)", category):
            return read(match[1])
    return MISSING


def _megabytes(text: str) -> int:
    """Return the megabytes of ``2G``, ``1.5g`` or bytes, rounded up; -1 of what is not one."""
    megabytes = amount_of(text, MEMORY_OF_GRID_ENGINE)
    return MISSING if megabytes is None else logs.bounded(megabytes, logs.MOST_MB)


def _kilobytes(text: str) -> int:
    """Return the kilobytes of bytes such as ``1.5e+09``, rounded up."""
    return logs.bounded(float(text) // 1 / 1024, logs.MOST_KB)


_time_limit = partial(logs.time_limit, how=OF_GRID_ENGINE)

#: Column of jobs -> the field that tells it.
_TOLD: dict[str, tuple[logs.Told, ...]] = {
    "submit_time": (("submission_time", _time),),
    "start": (("start_time", _time),),
    "end": (("end_time", _time),),
    "slots": (("slots", count_in),),
    "status": (("exit_status", count_in),),
    "used_kb": (("maxvmem", _kilobytes),),
    "requested_time": (("category", partial(_option, ("h_rt",), _time_limit)),),
    "memory_of_slot": (
        ("category", partial(_option, ("h_vmem", "mem_free", "m_mem_free"), _megabytes)),
    ),
}


FORMAT = FileFormat(lambda path, head: is_grid_engine(head), read_grid_engine)
