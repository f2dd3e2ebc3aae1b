"""The file ``lsb.acct`` of LSF: ``"JOB_FINISH" "10.1" 1527327585 7610 1000 ...``.

Records JOB_FINISH are of jobs that ended; those of other types are counted. Their fields stand
between blanks, texts in quotes, some behind lists of hosts and the like. Times are seconds since
1970. The fields: https://www.ibm.com/docs/en/spectrum-lsf/10.1.0?topic=files-lsbacct

Processors are the slots on which a job ran. Memory that a job asked for, ``rusage[mem=...]``, is
not read: the site says elsewhere of which unit it is, and whether of each slot.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from hpcgym.dates import Clock
from hpcgym.units import count_in, count_of
from hpcgym.workload.io import log_lines as logs
from hpcgym.workload.io.files import FileFormat, ReadOptions
from hpcgym.workload.model import Workload

_RECORD = re.compile(r'"[A-Z_0-9]+" "[\d.]+" \d{9,11} .*')
_FIELD = re.compile(r'"((?:[^"]|"")*)"(?!\S)|(\S+)')
_HOST = re.compile(r"(?:(\d+)\*)?(\S+)")
_DEPENDENCY = "not used: conditions on other jobs, dependCond"
_MEMORY = "not used: memory of rusage[mem=...], of a unit that the log does not tell"

#: Fields of a record up to the first list, by their places; names as in lsb.acct(5).
_FIRST = {
    **{
        "eventTime": 2,
        "jobId": 3,
        "options": 5,
        "numProcessors": 6,
        "submitTime": 7,
        "beginTime": 8,
    },
    **{"startTime": 10, "userName": 11, "queue": 12, "resReq": 13, "dependCond": 14},
}
_ASKED_HOSTS = 22
#: The same behind the lists of hosts; what a job used has 19 fields from the fifth on.
_AFTER_HOSTS = {"jStatus": 0, "projectName": 24, "exitStatus": 25, "idx": 29, "maxRMem": 30}
_SUBMIT_EXT = 53  # behind the lists of hosts: how many pairs follow
_DONE = 64  # jStatus
_EXCLUSIVE = 0x40  # options: SUB_EXCLUSIVE of lsbatch.h


def is_lsf(head: bytes) -> bool:
    """Tell whether the first bytes of a file are those of such a log."""
    return logs.begins_with(_RECORD, head)


def read_lsf(path: Path, how: ReadOptions) -> Workload:
    """Read the accounting of LSF; see this module, and :func:`hpcgym.workload.io.pbs.read_pbs`."""
    log = _read(path, how)
    log.drop(["" if time != "0" else "ended before it started" for time in log.texts("startTime")])
    log.drop_copies()
    columns = log.settled(_columns(log))
    log.count(_DEPENDENCY, [bool(text) for text in log.texts("dependCond")])
    alone = [bool((count_of(text) or 0) & _EXCLUSIVE) for text in log.texts("options")]
    log.count(logs.ALONE.format("bsub -x"), alone)
    log.count(_MEMORY, ["mem=" in text for text in log.texts("resReq")])
    return logs.workload_of(log, columns, Clock(how.tz), "jobId", "idx")


def _read(path: Path, how: ReadOptions) -> logs.LogRecords:
    """Return the records of ends of jobs."""
    log = logs.LogRecords(path, how)
    rows, lines = [], []
    for line, text, hint in log.texts_of_lines("an lsb.acct of LSF"):
        kind = text.strip().partition(" ")[0].strip('"')
        if not text.strip() or text.startswith("#"):
            continue
        if _RECORD.fullmatch(text.strip()) is None:
            problem = f'no record such as "JOB_FINISH" "10.1" 1527327585 7610 ...{hint}'
            log.refuse(line, problem, "line that is no record")
        elif kind != "JOB_FINISH":
            log.counts[f"dropped: record {kind}, not of the end of a job"] += 1
        else:
            row = _row([a.replace('""', '"') or b for a, b in _FIELD.findall(text)])
            if row is None:
                log.refuse(line, f"a record with too few fields{hint}", "line with too few fields")
                continue
            rows.append(row)
            lines.append(line)
    names = (*_FIRST, *_AFTER_HOSTS, "execHosts", "runLimit")
    log.fill(names, [(lines, {name: [row[name] for row in rows] for name in names})])
    return log


def _row(fields: list[str]) -> dict[str, str] | None:
    """Return the fields of a record that are read; None if it lacks some that all versions have."""
    at = _ASKED_HOSTS
    hosts: list[str] = []
    for _ in ("asked", "used"):
        number = count_of(fields[at]) if at < len(fields) else None
        if number is None:
            return None
        hosts = fields[at + 1 : at + 1 + number]
        at += 1 + number
    if at + max(_AFTER_HOSTS.values()) >= len(fields):
        return None
    return {
        **{name: fields[place] for name, place in _FIRST.items()},
        **{name: fields[at + place] for name, place in _AFTER_HOSTS.items()},
        "execHosts": " ".join(hosts),
        "runLimit": _run_limit(fields[at + _SUBMIT_EXT :]),
    }


def _run_limit(fields: list[str]) -> str:
    """Return the run limit, which newer versions tell behind two lists of any lengths; else -1."""
    try:
        pairs = int(fields[0])  # a key and a value each
        behind = fields[1 + 2 * pairs :]
        hosts = int(behind[0])  # six fields each
        return behind[1 + 6 * hosts]
    except (IndexError, ValueError):
        return "-1"


def _columns(log: logs.LogRecords) -> dict[str, Any]:
    """Return the columns of jobs, (n,) each; times in seconds since 1970; -1 is unknown."""
    columns: dict[str, Any] = {name: log.numbers(*fields) for name, fields in _TOLD.items()}
    start, end = columns["start"], columns.pop("end")
    log.refuse_at(columns["submit_time"] < 0, "submitTime is 0", "no submission")
    log.refuse_at(end < start, "eventTime is before startTime", "line that ends before it starts")
    number, given, asked = map(columns.pop, ("number", "given", "asked"))
    names = "execHosts, not numProcessors"
    slots = logs.processors(
        log, given, asked, names, "neither execHosts nor numProcessors tells slots"
    )
    return {
        **columns,
        **logs.numbered(number, log.column("idx", logs.task_of)),
        **slots,
        "run_time": end - start,
        "user": log.names("userName"),
        "group": log.names("projectName"),
        "queue_name": log.names("queue"),
    }


# --- What fields say ------------------------------------------------------------------------------


def _status(text: str) -> int:
    """Return 1 of a job that is done, else 0."""
    return int(count_in(text) == _DONE)


def _slots(text: str) -> list[int]:
    """Return the slots on each host of ``16*host1 host2 host2``."""
    slots: dict[str, int] = defaultdict(int)
    for number, host in _HOST.findall(text):
        slots[host] += int(number or 1)
    return list(slots.values())


#: Column of jobs -> the field that tells it.
_TOLD: dict[str, tuple[logs.Told, ...]] = {
    "number": (("jobId", count_in),),
    "submit_time": (("submitTime", logs.above_0),),
    "eligible": (("beginTime", logs.above_0),),
    "start": (("startTime", logs.above_0),),
    "end": (("eventTime", logs.above_0),),
    "requested_time": (("runLimit", logs.above_0),),
    "used_kb": (("maxRMem", logs.above_0),),
    "status": (("jStatus", _status),),
    **{name: (field,) for name, field in logs.told_by_hosts("execHosts", _slots).items()},
    "asked": (("numProcessors", logs.above_0),),
}


FORMAT = FileFormat(lambda path, head: is_lsf(head), read_lsf)
