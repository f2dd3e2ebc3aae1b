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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.naming import Clock
from hpcgym.workload.io.files import Reading
from hpcgym.workload.io.log_lines import Log, Told, lasted, processors, workload_of
from hpcgym.workload.model import MISSING, Workload

_RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;([A-Za-z]);([^;]*);(.*)")
_ENTRY = re.compile(r"""([^\s=]+)=("[^"]*"|'[^']*'|\S*)""")
_ID = re.compile(r"(\d{1,18})(?:\[(\d*)\]|-\d+)?(?:\..*)?")
_SLOTS = re.compile(r"[^/]+/([\d,-]+)(?:\*(\d+))?")
_MEMORY = re.compile(r"(\d{1,15})(b|kb|mb|gb|tb|w|kw|mw|gw)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


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
    log = _read(path, how)
    log.drop(list(map(_no_job, log.texts("id"), log.texts("start"))))
    log.drop_copies()
    columns = log.settled(_columns(log))
    return workload_of(log, columns, Clock(how.tz), log.texts("id"))


def _read(path: Path, how: Reading) -> Log:
    """Return the records of ends of jobs."""
    log = Log(path, how)
    rows: list[dict[str, str]] = []
    for line, text, hint in log.texts_of_lines("an accounting log of PBS"):
        found = _RECORD.fullmatch(text.strip())
        if found is None:
            if text.strip():
                problem = f"no record such as 06/06/2005 14:07:17;E;407.server;user=...{hint}"
                log.refuse(line, problem, "line that is no record")
        elif found[1] != "E":
            log.counts[f"dropped: record {found[1]}, not of the end of a job"] += 1
        else:
            entries = {key: value.strip("\"'") for key, value in _ENTRY.findall(found[3])}
            rows.append(entries | {"id": found[2]})
            log.lines.append(line)
    read = {name for told in _TOLD.values() for name, _ in told} | {*_NAMES}
    log.fields = {name.casefold(): [row.get(name, "") for row in rows] for name in sorted(read)}
    return log


def _no_job(name: str, start: str) -> str:
    """Return why a record is of no job: of an array as a whole, or of one that never started."""
    if "[]" in name:
        return "array as a whole, beside its subjobs"
    return "ended before it started" if start in ("", "0") else ""


def _columns(log: Log) -> dict[str, Any]:
    """Return the columns of jobs, (n,) each; times in seconds since 1970; -1 is unknown."""
    columns: dict[str, Any] = {name: log.numbers(*told) for name, told in _TOLD.items()}
    start, end, ran = columns["start"], columns.pop("end"), columns.pop("ran")
    untold = "neither ctime nor qtime tells when it was submitted"
    log.refuse_at(columns["submit_time"] < 0, untold, "no submission")
    early = (end >= 0) & (end < start)
    log.refuse_at(early, "end is before start", "line that ends before it starts")
    untold = "neither end nor resources_used.walltime is there"
    log.refuse_at((end < 0) & (ran < 0), untold, "no end")
    cores = processors(
        log,
        columns.pop("given"),
        columns.pop("asked"),
        "exec_host, not Resource_List",
        "neither exec_host nor Resource_List tells its processors",
    )
    used = columns["used_memory"]  # of all processors
    size = np.maximum(cores["requested_processors"], 1)
    return {
        **columns,
        **cores,
        "run_time": np.where(end < 0, ran, end - start),
        "used_memory": np.where(used >= 0, -(-used // size), MISSING),
        "user": log.names("user"),
        "group": log.names("account" if any(log.texts("account")) else "group"),
        "queue_name": log.names("queue"),
    }


# --- What entries say -----------------------------------------------------------------------------


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


def _chunks(resource: str, least: int, text: str) -> int:
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


def _megabytes(text: str) -> int:
    """Return the megabytes of ``600mb``, rounded up, -1 of none."""
    return -(-_kilobytes(text) // 1024) or MISSING


_LIST = "Resource_List."

#: Column of jobs -> the entries that tell it, of which the first known one counts.
_TOLD: dict[str, tuple[Told, ...]] = {
    "job_number": (("id", _number),),
    "submit_time": (("ctime", _whole), ("qtime", _whole)),
    "eligible": (("etime", _whole),),
    "start": (("start", _whole),),
    "end": (("end", _whole),),
    "ran": (("resources_used.walltime", lasted),),
    "requested_time": ((f"{_LIST}walltime", lambda text: lasted(text) or MISSING),),
    "used_memory": (("resources_used.mem", _kilobytes),),
    "status": (("Exit_status", _status),),
    "given": (("exec_host", _slots),),
    "asked": (
        (f"{_LIST}select", partial(_chunks, "ncpus", 1)),
        (f"{_LIST}nodes", partial(_chunks, "ppn", 1)),
        (f"{_LIST}ncpus", _whole),
        (f"{_LIST}procs", _whole),
    ),
    "gpus": (
        (f"{_LIST}select", partial(_chunks, "ngpus", 0)),
        (f"{_LIST}nodes", partial(_chunks, "gpus", 0)),
        (f"{_LIST}ngpus", _whole),
    ),
    "nodes": ((f"{_LIST}nodect", _whole),),
    "memory_mb": ((f"{_LIST}mem", _megabytes),),
}
_NAMES = ("user", "group", "account", "queue")
