"""Accounting logs of PBS and Torque: ``MM/DD/YYYY HH:MM:SS;E;id;user=... queue=... ...``.

Records E are of the ends of jobs, and R of runs that were lost, after which a job was queued again;
those of other types are counted. What such a record does not tell is taken from the records Q and S
of the job before it: of old servers, and where a log was made
anonymous, they alone tell when it was queued and started. Times are seconds since 1970, perhaps
with decimals; those of records are dates of the site. The records: chapter "Accounting" of the
guides of PBS Professional, and
https://docs.adaptivecomputing.com/torque/3-0-5/9.1accounting.php

As of Slurm's accounting, ``submit_time`` is when a job became eligible (``etime``) where that is
later than its creation, processors are those that it was given (``exec_host``), and a subjob of an
array, ``123[4]``, is a job with a number of its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.dates import Clock, unix_seconds
from hpcgym.units import MEMORY_OF_PBS, amount_in, count_in, count_of
from hpcgym.workload.columns import MISSING
from hpcgym.workload.io import log_lines as logs
from hpcgym.workload.io.files import FileFormat, ReadOptions
from hpcgym.workload.model import Workload

_RECORD = re.compile(
    r"(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{4}) (?P<time>\d\d:\d\d:\d\d)(?:\.\d+)?"
    r";(?P<type>[A-Za-z]);(?P<id>[^;]*);(?P<entries>.*)"
)
_ENTRY = re.compile(r"""([^\s=]+)=("[^"]*"|'[^']*'|\S*)""")
_ID = re.compile(r"(\d{1,18})(?:\[(\d*)\]|-(\d+))?(?:\..*)?")
#: What a record R of a run has that was lost; without them it only tells that a job waits again.
_OF_RUN = re.compile(r"(?=.*\bstart=\d)(?=.*\bend=\d)")
_NOTHING = ("", "None", "N/A", "unknown")
_SLOTS = re.compile(r"[^/]+/([\d,-]+)(?:\*(\d+))?")


def is_pbs(head: bytes) -> bool:
    """Tell whether the first bytes of a file are those of such a log."""
    return logs.begins_with(_RECORD, head)


def read_pbs(path: Path, how: ReadOptions) -> Workload:
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
    log.drop(list(map(_no_job, *map(log.texts, ("id", "start", _BEGAN, _WALLTIME)))))
    if any(log.texts(_QUEUED)):
        unknown = zip(*map(log.texts, ("ctime", "qtime", _QUEUED)), strict=True)
        log.drop(["" if any(job) else "queued before the log begins" for job in unknown])
    log.drop_copies()
    clock = Clock(how.tz)
    return logs.workload_of(log, log.settled(_columns(log, clock)), clock, "id")


def _read(path: Path, how: ReadOptions) -> logs.LogRecords:
    """Return the records of ends of jobs, with what those of their beginnings tell."""
    log = logs.LogRecords(path, how)
    records: list[tuple[str, int, re.Match[str]]] = []
    for line, text, hint in log.texts_of_lines("an accounting log of PBS"):
        record = _RECORD.fullmatch(text.strip())
        if record is None:
            if text.strip():
                problem = f"no record such as 06/06/2005 14:07:17;E;407.server;user=...{hint}"
                log.refuse(line, problem, "line that is no record")
            continue
        if record["type"] != "E" and not _is_lost_run(record):
            log.counts[f"dropped: record {record['type']}, not of the end of a job"] += 1
        if record["type"] in "QSE" or _is_lost_run(record):
            date = f"{record['year']}-{record['month']}-{record['day']}T{record['time']}"
            records.append((date, line, record))
    rows: list[dict[str, str]] = []
    lines: list[int] = []
    before: dict[str, dict[str, str]] = {}  # what records Q and S tell of jobs that run or wait
    for date, line, record in sorted(records, key=itemgetter(0)):  # logs are joined in any order
        entries = {key: value.strip("\"'") for key, value in _ENTRY.findall(record["entries"])}
        entries = {key: value for key, value in entries.items() if value not in _NOTHING}
        if record["type"] in "ER":
            known = before.pop(record["id"], {})
            row = {**known, **entries, "id": record["id"], _ENDED: date}
            if record["type"] == "R":  # the next run begins anew
                again = {key: value for key, value in known.items() if key not in ("start", _BEGAN)}
                before[record["id"]] = again
            for name, others in _DATES.items():  # dates need a time zone
                if any(row.get(other, "0") != "0" for other in others):
                    row[name] = ""
            rows.append(row)
            lines.append(line)
        elif record["type"] == "Q":  # a job goes through several queues
            before[record["id"]] = {_QUEUED: date, **before.get(record["id"], {}), **entries}
        else:  # one that is run again has several starts
            before[record["id"]] = {**before.get(record["id"], {}), **entries, _BEGAN: date}
    read = {name for fields in _TOLD.values() for name, _ in fields} | {*_NAMES, "id", *_DATES}
    log.fill(read, [(lines, {name: [row.get(name, "") for row in rows] for name in read})])
    return log


def _is_lost_run(record: re.Match[str]) -> bool:
    return record["type"] == "R" and _OF_RUN.match(record["entries"]) is not None


def _no_job(name: str, start: str, began: str, ran: str) -> str:
    """Return why a record is of no job: of an array as a whole, or of one that never started."""
    if "[]" in name:
        return "array as a whole, beside its subjobs"
    return "ended before it started" if start in ("", "0") and not began and not ran else ""


def _columns(log: logs.LogRecords, clock: Clock) -> dict[str, Any]:
    """Return the columns of jobs, (n,) each; times in seconds since 1970; -1 is unknown."""
    columns: dict[str, Any] = {name: log.numbers(*fields) for name, fields in _TOLD.items()}
    queued, began, ended = (log.numbers((name, clock.seconds)) for name in _DATES)
    end, ran = columns.pop("end"), columns.pop("ran")
    if (end < 0).all():  # a log that never tells it; else it is a record that was cut
        end = np.where(ran < 0, ended, end)
    columns["submit_time"] = logs.first_known(columns["submit_time"], queued)
    untold = "neither ctime nor qtime tells when it was submitted, nor a record Q"
    log.refuse_at(columns["submit_time"] < 0, untold, "no submission")
    start = logs.first_known(columns["start"], began)
    log.count(_BY_END, (start < 0) & (ran >= 0))
    log.count(_ALONE, ["excl" in place for place in log.texts(_PLACE)])
    start = np.where((start < 0) & (ran >= 0), logs.first_known(end, ended) - ran, start)
    early = (end >= 0) & (end < start)
    log.refuse_at(early, "end is before start", "line that ends before it starts")
    untold = "neither end nor resources_used.walltime is there"
    log.refuse_at((end < 0) & (ran < 0), untold, "no end")
    untold = "neither exec_host nor Resource_List tells its processors"
    given, asked, a_node = (columns.pop(name) for name in ("given", "asked", "a_node"))
    cores = logs.processors(log, given, asked, "exec_host, not Resource_List", untold)
    # as Cray's ALPS places them
    spread = -(-cores["requested_processors"] // np.maximum(a_node, 1))
    columns["nodes"] = np.where(a_node > 0, spread, columns["nodes"])
    return {
        **columns,
        **logs.numbered(*log.column("id", _id, (MISSING, MISSING), "2i8").T),
        **cores,
        "start": start,
        "run_time": np.where(end < 0, ran, end - start),
        "user": log.names("user"),
        "group": log.names("account" if any(log.texts("account")) else "group"),
        "queue_name": log.names("queue"),
    }


# --- What entries say -----------------------------------------------------------------------------


def _id(text: str) -> tuple[int, int]:
    """Return the number of a job such as ``407.server``, and of its array's subjob ``407[4]``.

    That of what is no subjob is -1.
    """
    match = _ID.fullmatch(text)
    if match is None:
        raise ValueError("no id such as 407.server")
    task = match[2] or match[3]
    return int(match[1]), int(task) if task else MISSING


def _time(text: str) -> int:
    """Return the nearest second since 1970; 0, and below, is unknown."""
    return max(unix_seconds(text, decimals=True), 0) or MISSING


def _status(text: str) -> int:
    """Return 1 for an exit status of 0, else 0: failed."""
    return int(count_in(text, signed=True) == 0)


def _slots(text: str) -> list[int]:
    """Return the processors on each host of ``n1/0*13+n2/0*13`` or ``n1/0-11,14+n1/12``."""
    slots: dict[str, int] = defaultdict(int)
    for host in text.split("+"):
        match = _SLOTS.fullmatch(host)
        if match is None:
            raise ValueError("no hosts such as n1/0*4+n2/0*4")
        for part in match[1].split(","):
            low, _, high = part.partition("-")
            slots[host.partition("/")[0]] += (int(high or low) - int(low) + 1) * int(match[2] or 1)
    return list(slots.values())


def _nodes(text: str) -> int:
    """Return the nodes of ``2:ppn=4+n7:ppn=1``, which are three."""
    heads = (part.partition(":")[0] for part in text.split("+"))
    return sum(int(head) if head.isdecimal() else 1 for head in heads) or MISSING


def _chunks(resource: str, least: int, text: str) -> int:
    """Return the sum of a resource over the chunks of ``2:ncpus=4:ngpus=1+n7:ncpus=2``."""
    total = 0
    for chunk in text.split("+"):
        head, *entries = chunk.split(":")
        times = int(head) if head.isdecimal() else 1
        if "=" in head:
            entries.insert(0, head)
        amounts = dict(entry.partition("=")[::2] for entry in entries)
        amount = count_of(amounts.get(resource, str(least)))
        if amount is None:
            raise ValueError(f"of which {resource} is no whole number")
        total += times * amount
    return total or MISSING


def _kilobytes(text: str) -> int:
    """Return the kilobytes of ``600mb`` or ``888kb``, rounded up."""
    return logs.bounded(amount_in(text, MEMORY_OF_PBS) * 1024, logs.MOST_KB)


def _megabytes(text: str) -> int:
    """Return the megabytes of ``600mb``, rounded up, -1 of none."""
    return -(-_kilobytes(text) // 1024) or MISSING


_LIST = "Resource_List."
_WALLTIME = "resources_used.walltime"
_QUEUED, _BEGAN, _ENDED = "date of Q", "date of S", "date of E"
#: Dates of records, and the entries in whose place they stand.
_DATES = {_QUEUED: ("ctime", "qtime"), _BEGAN: ("start",), _ENDED: ("end",)}
_PLACE = f"{_LIST}place"
_ALONE = logs.ALONE.format("Resource_List.place=excl")
_BY_END = "repaired: start taken from the end and the walltime"

_HOSTS = logs.told_by_hosts("exec_host", _slots)
#: Column of jobs -> the entries that tell it, of which the first known one counts.
_TOLD: dict[str, tuple[logs.Told, ...]] = {
    "submit_time": (("ctime", _time), ("qtime", _time)),
    "eligible": (("etime", _time),),
    "start": (("start", _time),),
    "end": (("end", _time),),
    "ran": ((_WALLTIME, logs.lasted),),
    "requested_time": ((f"{_LIST}walltime", logs.time_limit),),
    "used_kb": (("resources_used.mem", _kilobytes),),
    "status": (("Exit_status", _status),),
    **{name: (field,) for name, field in _HOSTS.items()},
    # on Cray XT hosts and chunks are those of the login node on which the script runs
    "given": ((f"{_LIST}mppwidth", logs.above_0), _HOSTS["given"]),
    "asked": (
        (f"{_LIST}mppwidth", logs.above_0),
        (f"{_LIST}select", partial(_chunks, "ncpus", 1)),
        (f"{_LIST}nodes", partial(_chunks, "ppn", 1)),
        (f"{_LIST}ncpus", logs.above_0),
        (f"{_LIST}procs", logs.above_0),
        ("resources_used.ncpus", logs.above_0),
        (f"{_LIST}nodect", partial(_chunks, "ppn", 1)),
    ),
    "gpus": (
        (f"{_LIST}select", partial(_chunks, "ngpus", 0)),
        (f"{_LIST}nodes", partial(_chunks, "gpus", 0)),
        (f"{_LIST}ngpus", logs.above_0),
    ),
    "nodes": (
        _HOSTS["nodes"],
        (f"{_LIST}nodes", _nodes),
        (f"{_LIST}nodect", lambda text: logs.above_0(text.partition(":")[0])),
    ),
    "a_node": ((f"{_LIST}mppnppn", logs.above_0),),
    "memory_mb": ((f"{_LIST}mem", _megabytes),),
}
_NAMES = ("user", "group", "account", "queue", _PLACE)


FORMAT = FileFormat(lambda path, head: is_pbs(head), read_pbs)
