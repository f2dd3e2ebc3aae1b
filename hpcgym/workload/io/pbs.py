"""Accounting logs of PBS and Torque: ``MM/DD/YYYY HH:MM:SS;E;id;user=... queue=... ...``.

Records E are of the ends of jobs, and tell all of them; those of other types are counted. Times are
seconds since 1970. The records: chapter "Accounting" of the guides of PBS Professional, and
https://docs.adaptivecomputing.com/torque/3-0-5/9.1accounting.php

As of Slurm's accounting, ``submit_time`` is when a job became eligible (``etime``) where that is
later than its creation, and processors are those that it was given (``exec_host``).
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.errors import WorkloadError
from hpcgym.files import lines_of
from hpcgym.naming import Clock, nearest, seconds_in
from hpcgym.workload.io import log_lines
from hpcgym.workload.io.files import Reading
from hpcgym.workload.model import MISSING, Workload

_RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;([A-Za-z]);([^;]*);(.*)")
_ENTRY = re.compile(r"""([^\s=]+)=("[^"]*"|'[^']*'|\S*)""")
_ID = re.compile(r"(\d{1,18})(?:\[(\d*)\]|-\d+)?(?:\..*)?")
_SLOTS = re.compile(r"[^/]+/([\d,-]+)(?:\*(\d+))?")
_MEMORY = re.compile(r"(\d{1,15})(b|kb|mb|gb|tb|w|kw|mw|gw)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

#: Entries of records that are read.
_READ = (
    *("user", "group", "account", "queue", "ctime", "qtime", "etime", "start", "end"),
    *("exec_host", "Exit_status", "Resource_List.select", "Resource_List.nodes"),
    *("Resource_List.ncpus", "Resource_List.procs", "Resource_List.nodect", "Resource_List.mem"),
    *("Resource_List.ngpus", "Resource_List.walltime", "resources_used.walltime"),
    "resources_used.mem",
)


def is_pbs(head: bytes) -> bool:
    """Tell whether the first bytes of a file are those of such a log."""
    first = head.lstrip(b"\xef\xbb\xbf\r\n ").split(b"\n", 1)[0].decode("utf-8", "replace")
    return _RECORD.fullmatch(first.rstrip()) is not None


def read_pbs(path: Path, how: Reading) -> Workload:
    """Read an accounting log of PBS or Torque; see this module.

    Parameters
    ----------
    path : of the file, plain or gzip; logs of several days may be joined.
    how : as it is read; ``tz`` only says in which zone the site's clocks ran.

    Raises
    ------
    WorkloadError : a file that cannot be read; a line that is no record, or a wrong one, unless
        such lines are skipped; no job that ended.
    """
    clock = Clock(how.tz)
    log = _read(path, how)
    _drop_no_jobs(log)
    log.drop_copies()
    columns = log.settled(_columns(log))
    resources: dict[str, Any] = {name: columns.pop(name) for name in ("nodes", "gpus", "memory_mb")}
    log_lines.with_submissions(log, columns, columns.pop("eligible"), log.texts("id"))
    log_lines.with_units(log, columns, **resources)
    return log_lines.workload_of(log, columns, clock)


def _read(path: Path, how: Reading) -> log_lines.Log:
    """Return the records of ends of jobs."""
    log = log_lines.Log(path, how)
    rows: list[dict[str, str]] = []
    lines = lines_of(path, "an accounting log of PBS", WorkloadError)
    line, ended = 1, True
    for line, (text, ended) in enumerate(lines, 1):
        found = _RECORD.fullmatch(text.strip())
        if found is None:
            if text.strip():
                hint = "" if ended else "; it is the last line: is the file truncated?"
                problem = f"no record such as 06/06/2005 14:07:17;E;407.server;user=...{hint}"
                log.refuse(line, problem, "line that is no record")
        elif found[1] != "E":
            log.counts[f"dropped: record {found[1]}, not of the end of a job"] += 1
        else:
            entries = {key: value.strip("\"'") for key, value in _ENTRY.findall(found[3])}
            rows.append(entries | {"id": found[2]})
            log.lines.append(line)
    log_lines.warn_of_cut(path, line, ended)
    log.fields = {name.casefold(): [row.get(name, "") for row in rows] for name in ("id", *_READ)}
    return log


def _drop_no_jobs(log: log_lines.Log) -> None:
    """Drop arrays as a whole, and jobs that never started."""
    reasons: dict[int, str] = {}
    for place, (name, start) in enumerate(zip(log.texts("id"), log.texts("start"), strict=True)):
        if "[]" in name:
            reasons[place] = "array as a whole, beside its subjobs"
        elif start in ("", "0"):
            reasons[place] = "ended before it started"
    log.drop(reasons)


def _columns(log: log_lines.Log) -> dict[str, Any]:
    """Return the columns of jobs, (n,) each; times in seconds since 1970; -1 is unknown."""
    start, end = log.numbers("start", _whole), log.numbers("end", _whole)
    lasted = log.numbers("resources_used.walltime", lambda text: nearest(seconds_in(text)))
    submit = log_lines.first_known(log.numbers("ctime", _whole), log.numbers("qtime", _whole))
    for place, line in enumerate(log.lines):
        if submit[place] < 0:
            log.refuse(line, "neither ctime nor qtime tells when it was submitted", "no submission")
        if 0 <= end[place] < start[place]:
            log.refuse(line, "end is before start", "line that ends before it starts")
        if end[place] < 0 and lasted[place] < 0:
            log.refuse(line, "neither end nor resources_used.walltime is there", "no end")
    given = _resources(log)
    cores = given["requested_processors"]
    used = log.numbers("resources_used.mem", _kilobytes)
    return {
        "job_number": log.numbers("id", _number),
        "submit_time": submit,
        "eligible": log.numbers("etime", _whole),
        "start": start,
        "run_time": np.where(end < 0, lasted, end - start),
        "requested_time": log.numbers(
            "Resource_List.walltime", lambda text: nearest(seconds_in(text)) or MISSING
        ),
        "used_memory": np.where(used >= 0, -(-used // np.maximum(cores, 1)), MISSING),
        "status": log.numbers("Exit_status", _status),
        **given,
        "user": log.names("user"),
        "group": log.names("account" if any(log.texts("account")) else "group"),
        "queue_name": log.names("queue"),
    }


def _resources(log: log_lines.Log) -> dict[str, log_lines.Ints]:
    """Return processors, nodes, GPUs and memory of jobs."""
    allocated = log.numbers("exec_host", _slots)
    asked = log_lines.first_known(
        log.numbers("Resource_List.select", lambda text: _chunks(text, "ncpus", 1)),
        log.numbers("Resource_List.nodes", lambda text: _chunks(text, "ppn", 1)),
        log.numbers("Resource_List.ncpus", _whole),
        log.numbers("Resource_List.procs", _whole),
    )
    cores = log_lines.first_known(allocated, asked)
    log.count(
        "repaired: requested_processors taken from exec_host, not Resource_List",
        (asked > 0) & (asked != cores),
    )
    for place in np.flatnonzero(cores <= 0).tolist():
        problem = "neither exec_host nor Resource_List tells its processors"
        log.refuse(log.lines[place], problem, "line without processors")
    gpus = log_lines.first_known(
        log.numbers("Resource_List.select", lambda text: _chunks(text, "ngpus", 0)),
        log.numbers("Resource_List.nodes", lambda text: _chunks(text, "gpus", 0)),
        log.numbers("Resource_List.ngpus", _whole),
    )
    kilobytes = log.numbers("Resource_List.mem", _kilobytes)
    return {
        "requested_processors": cores,
        "allocated_processors": allocated,
        "nodes": log.numbers("Resource_List.nodect", _whole),
        "gpus": gpus,
        "memory_mb": np.where(kilobytes > 0, -(-kilobytes // 1024), MISSING),
    }


def _number(text: str) -> int:
    """Return the number of a job such as ``407.server`` or ``123[4].server``."""
    found = _ID.fullmatch(text)
    if found is None:
        raise ValueError("no id such as 407.server")
    return int(found[1])


def _whole(text: str) -> int:
    """Return a whole number, of seconds or amounts; 0, and below, is unknown."""
    if not re.fullmatch(r"-?\d{1,12}", text):
        raise ValueError("no whole number")
    return max(int(text), 0) or MISSING


def _status(text: str) -> int:
    """Return 1 for an exit status of 0, else 0: failed."""
    if not re.fullmatch(r"-?\d{1,12}", text):
        raise ValueError("no exit status")
    return int(int(text) == 0)


def _slots(text: str) -> int:
    """Return the processors of ``n1/0*13+n2/0*13``, ``n1/0+n1/1`` or ``n1/0-11,14``."""
    total = 0
    for host in text.split("+"):
        found = _SLOTS.fullmatch(host)
        if found is None:
            raise ValueError("no hosts such as n1/0*4+n2/0*4")
        for part in found[1].split(","):
            low, _, high = part.partition("-")
            total += (int(high or low) - int(low) + 1) * int(found[2] or 1)
    return total


def _chunks(text: str, resource: str, least: int) -> int:
    """Return the sum of a resource over the chunks of ``2:ncpus=4:ngpus=1+n7:ncpus=2``."""
    total = 0
    for chunk in text.split("+"):
        head, *entries = chunk.split(":")
        times = int(head) if head.isdecimal() else 1
        if "=" in head:
            entries.insert(0, head)
        amounts = dict(entry.partition("=")[::2] for entry in entries)
        amount = amounts.get(resource, str(least))
        if not amount.isdecimal():
            raise ValueError(f"of which {resource} is no whole number")
        total += times * int(amount)
    return total or MISSING


def _kilobytes(text: str) -> int:
    """Return the kilobytes of ``600mb`` or ``888kb``, rounded up; words (w) have eight bytes."""
    found = _MEMORY.fullmatch(text)
    if found is None:
        raise ValueError("no memory such as 600mb")
    unit = found[2].casefold()
    size = int(found[1]) * (8 if unit.endswith("w") else 1) << 10 * _POWERS[unit[:-1]]
    return math.ceil(size / 1024)
