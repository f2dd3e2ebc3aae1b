"""Slurm's accounting: what ``sacct -P`` and ``sacct --parsable`` print.

Line 1 has the names of fields, any of them in any order; each other line is a job, a step of one,
or tasks of an array that have not started. The fields, and what they hold:
https://slurm.schedmd.com/sacct.html

``submit_time`` is Eligible where that is later than Submit: before it Slurm could not start the job
either (``--begin``, dependencies). Processors are those that the job was given, all of a node's
where it had a whole one. Names of users, accounts, partitions and QOS become ``user_id``,
``group_id``, ``partition`` and ``queue``, and their names stay in the header.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.errors import WorkloadError
from hpcgym.files import lines_of
from hpcgym.naming import Clock, nearest, seconds_in
from hpcgym.workload.io import log_lines, sacct_fields
from hpcgym.workload.io.files import Reading
from hpcgym.workload.model import MISSING, Workload

_HEADER = re.compile(r"[A-Za-z]+([^A-Za-z]+)[A-Za-z].*")

#: Fields that a dump must have one of, in words of sacct.
_NEEDED = (
    ("JobID", "JobIDRaw"),
    ("Submit",),
    ("Start",),
    ("ElapsedRaw", "Elapsed", "End"),
    ("AllocCPUS", "NCPUS", "ReqCPUS", "AllocTRES", "ReqTRES"),
)
#: Others that tell that a line has the names of fields.
_TELLING = {
    *(name.casefold() for names in _NEEDED for name in names),
    *("jobname", "partition", "account", "state", "exitcode", "user", "qos", "timelimit"),
}
#: Fields that say something of the scheduling which no simulation goes by.
_UNUSED = ("Priority", "Reason", "Reservation", "Constraints")
#: All that are read.
_READ = {
    *(name.casefold() for names in (*_NEEDED, _UNUSED) for name in names),
    *("state", "eligible", "timelimit", "timelimitraw", "reqmem", "nnodes", "allocnodes"),
    *("dependency", "nice", "submitline", "jobname", "user", "uid", "account", "group", "gid"),
    *("qos", "partition"),
}
_NOTHING = ("", "None", "(null)", "N/A")

_FIELDS = "JobID,JobIDRaw,User,Account,Partition,QOS,State,Submit,Eligible,Start,ElapsedRaw"
_ADVICE = f"sacct -a -P -o {_FIELDS},TimelimitRaw,AllocCPUS,NNodes,ReqMem,AllocTRES prints them"
_MISSING_TIMES = ("", "Unknown", "None", "N/A")


def is_sacct(head: bytes) -> bool:
    """Tell whether the first bytes of a file are those of a dump, with separators or without."""
    first = head.split(b"\n", 1)[0].decode("utf-8-sig", "replace").strip()
    separator = _separator(first)
    names = {name.strip().casefold() for name in first.split(separator)}
    return bool({"jobid", "jobidraw"} & names) and len(_TELLING & names) > 2


def read_sacct(path: Path, how: Reading) -> Workload:
    """Read a dump of ``sacct``; see this module.

    Parameters
    ----------
    path : of the file, plain or gzip.
    how : as it is read; ``tz`` is the zone of dates without an offset, which sacct prints in its
        own zone. Without it they are taken for UTC: then jobs that ran while clocks were changed
        seem to wait an hour more or less.

    Raises
    ------
    WorkloadError : a file that cannot be read; fields that are lacking, all of them named; a line
        with fewer or more fields, or a wrong one, unless such lines are skipped; no job that ended.
    """
    clock = Clock(how.tz)
    log = _read(path, how)
    _drop_no_jobs(log)
    log.drop_copies()
    columns = log.settled(_columns(log, clock))
    resources = {name: columns.pop(name) for name in ("nodes", "gpus", "memory_mb")}
    log_lines.with_submissions(
        log, columns, columns.pop("eligible"), log.texts(_id(log).casefold())
    )
    generic = [name for name in columns if name.startswith(sacct_fields.GENERIC)]
    others = {name.removeprefix(sacct_fields.GENERIC): columns.pop(name) for name in generic}
    log_lines.with_units(log, columns, **resources, others=others)
    for name in _UNUSED:
        given = [text not in _NOTHING for text in log.texts(name.casefold())]
        log.count(f"not used: {name}", np.array(given, np.bool_))
    return log_lines.workload_of(log, columns, clock)


def throttles(path: Path) -> dict[int, int]:
    """Return how many tasks of arrays may run at once, by array, as far as a dump tells.

    It tells of arrays that had tasks which had not started.

    Raises
    ------
    WorkloadError : as :func:`read_sacct`, of the lines alone.
    """
    told = map(sacct_fields.throttle_of_id, _read(path, Reading()).texts("jobid"))
    return dict(one for one in told if one is not None)


def _separator(first: str) -> str:
    """Return what stands between the names of fields in line 1."""
    found = _HEADER.fullmatch(first)
    return "|" if found is None else found[1][:1]


def _read(path: Path, how: Reading) -> log_lines.Log:
    """Return the records of a dump; steps are counted, lines that are no records refused."""
    lines = lines_of(path, "a dump of sacct", WorkloadError)
    first, _ = next(lines, ("", True))
    if not first.strip():
        raise WorkloadError(f"{path} is empty, or its line 1 is: it must have the names of fields")
    separator = _separator(first.strip())
    if separator.isspace() and separator != "\t":
        raise WorkloadError(
            f"{path}, line 1: fields are separated by blanks, which cut names: print them with"
            " sacct -P (--parsable2)"
        )
    names = [name.strip().casefold() for name in first.split(separator)]
    closed = names[-1] == ""  # --parsable, with a separator behind the last field too
    if closed:
        names.pop()
    # what a user typed may have separators: as the last field it has all that is left
    splits = len(names) - 1 if names[-1] == "submitline" else -1
    _check_fields(path, names)
    log = log_lines.Log(path, how)
    read = [place for place, name in enumerate(names) if name in _READ]
    columns: list[list[str]] = [[] for _ in read]
    named = names.index("jobid" if "jobid" in names else "jobidraw")
    line, ended = 1, True
    for line, (text, ended) in enumerate(lines, 2):
        fields = text.removesuffix(separator if closed else "").split(separator, splits)
        if len(fields) == len(names) + 1 and fields[-1] == "":
            fields.pop()
        if len(fields) == len(names) and text != first:
            if sacct_fields.is_step(fields[named]):  # most lines
                log.counts[f"dropped: {sacct_fields.STEP}"] += 1
                continue
            for column, place in zip(columns, read, strict=True):
                column.append(fields[place].strip())
            log.lines.append(line)
        elif text.strip():
            _refuse(log, line, text == first, (len(fields), len(names)), separator, ended)
    log_lines.warn_of_cut(path, line, ended)
    log.fields = {names[place]: column for place, column in zip(read, columns, strict=True)}
    return log


def _check_fields(path: Path, names: list[str]) -> None:
    """Say which fields are lacking, or there twice."""
    lacking = [
        "one of " + ", ".join(some) if len(some) > 1 else some[0]
        for some in _NEEDED
        if not {name.casefold() for name in some} & {*names}
    ]
    if lacking:
        raise WorkloadError(f"{path}, line 1: fields lack {'; '.join(lacking)}. {_ADVICE}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise WorkloadError(f"{path}, line 1: the field {twice!r} stands there twice")


def _refuse(
    log: log_lines.Log, line: int, again: bool, sizes: tuple[int, int], separator: str, ended: bool
) -> None:
    """Refuse a line that has not as many fields as line 1; one that repeats it is counted only.

    ``sizes`` are how many fields were found, and how many there should be.
    """
    if again:
        log.counts["dropped: line with the names of fields again"] += 1
        return
    found, wanted = sizes
    many = found > wanted
    if many and separator == "|":
        hint = "; is the separator in a name? leave JobName and Comment out of -o, or put"
        hint += " SubmitLine last"
    elif many:
        hint = f"; is {separator!r} in a field, as in AllocTRES? sacct -P puts | between fields"
    else:
        hint = "" if ended else "; it is the last line: is the file truncated?"
    problem = f"{found} fields, and line 1, their names, {wanted}{hint}"
    log.refuse(line, problem, f"line with too {'many' if many else 'few'} fields")


def _drop_no_jobs(log: log_lines.Log) -> None:
    """Drop tasks of arrays that did not start, and jobs that did not start or end."""
    kinds = log.parsed(_id(log), sacct_fields.parts_of_id)
    throttled = [sacct_fields.throttle_of_id(text) is not None for text in log.texts("jobid")]
    log.count(sacct_fields.UNUSED_THROTTLE, np.array(throttled, np.bool_))
    log.drop({place: kind for place, kind in enumerate(kinds) if kind == sacct_fields.ARRAY_TASKS})
    states = log.parsed("State", sacct_fields.state_of, "")
    starts, ends = log.texts("start"), log.texts("end")
    by_ends = not {"elapsed", "elapsedraw"} & {*log.fields}
    reasons: dict[int, str] = {}
    for place, state in enumerate(states):
        if log.lines[place] in log.refused:
            continue
        if state in sacct_fields.OPEN_STATES:
            reasons[place] = f"{state} when the log was written"
        elif starts[place] in _MISSING_TIMES:
            reasons[place] = f"{state} before it started" if state else "not started"
        elif by_ends and ends[place] in _MISSING_TIMES:
            reasons[place] = "not ended when the log was written"
    log.drop(reasons)


def _id(log: log_lines.Log) -> str:
    """Return the field by which runs are those of one job."""
    return "JobID" if "jobid" in log.fields else "JobIDRaw"


def _columns(log: log_lines.Log, clock: Clock) -> dict[str, Any]:
    """Return the columns of jobs, (n,) each; times in seconds since 1970; -1 is unknown."""
    numbers = log.parsed(_id(log), sacct_fields.parts_of_id)
    parts = [isinstance(one, tuple) and one[1] == sacct_fields.PART for one in numbers]
    log.count(
        f"repaired: {sacct_fields.PART} taken for a job of its own", np.array(parts, np.bool_)
    )
    tasks = [sacct_fields.task_of_id(text) for text in log.texts("jobid")]
    number = _job_numbers(log, numbers, tasks)
    start, submit = log.numbers("Start", clock.seconds), log.numbers("Submit", clock.seconds)
    for place in np.flatnonzero(submit < 0).tolist():
        told = log.texts("submit")[place]
        problem = f"Submit is {told[:40]!r}, before 1970" if told else "Submit is blank"
        log.refuse(log.lines[place], problem, "line with a wrong Submit")
    start = _after(log, "Start", start, submit, clock)
    status = log.numbers(
        "State", lambda text: sacct_fields.STATES.get(sacct_fields.state_of(text), MISSING)
    )
    array = [MISSING if task is None else task[0] for task in tasks]
    nice = sacct_fields.nice_of(log)
    return {
        "job_number": number,
        **({"array": np.array(array, np.int64)} if any(tasks) else {}),
        **({"nice": nice} if nice.any() else {}),
        "submit_time": submit,
        "eligible": log.numbers("Eligible", _known(clock.seconds)),
        "start": start,
        "run_time": _run_times(log, clock, start),
        "requested_time": _requested(log),
        "status": status,
        "preceding_job": sacct_fields.preceding(log, number, status, submit),
        **sacct_fields.resources_of(log),
        "user": log.names("user", "uid"),
        "group": log.names("account", "group", "gid"),
        "queue_name": log.names("qos"),
        "partition_name": log.names("partition"),
    }


def _job_numbers(
    log: log_lines.Log, numbers: list[str | tuple[int, str]], tasks: list[tuple[int, int] | None]
) -> log_lines.Ints:
    """Return the numbers of jobs, (n,): JobIDRaw, else JobID.

    Tasks of arrays have one JobID, that of the array. Without JobIDRaw they are numbered anew,
    array by array, from the number behind the greatest of the dump on.

    Parameters
    ----------
    numbers, tasks : what each JobID tells, and its array and task.
    """
    raw = log.parsed("JobIDRaw", sacct_fields.parts_of_id)
    known = [
        one[0] if isinstance(one, tuple) else other[0] if isinstance(other, tuple) else MISSING
        for one, other in zip(raw, numbers, strict=True)
    ]
    told = [task is None or isinstance(one, tuple) for one, task in zip(raw, tasks, strict=True)]
    log.count(sacct_fields.ANEW, ~np.array(told, np.bool_))
    alike = {task for task, is_told in zip(tasks, told, strict=True) if task and not is_told}
    new = {task: number for number, task in enumerate(sorted(alike), max(known, default=0) + 1)}
    return np.array(
        [
            one if is_told or task is None else new[task]
            for one, task, is_told in zip(known, tasks, told, strict=True)
        ],
        dtype=np.int64,
    )


def _known(parse: Any) -> Any:
    """Return a parser of times that takes ``Unknown`` for unknown."""
    return lambda text: MISSING if text in _MISSING_TIMES else parse(text)


def _run_times(log: log_lines.Log, clock: Clock, start: log_lines.Ints) -> log_lines.Ints:
    """Return run times [s]: ElapsedRaw, else Elapsed, else End - Start."""
    for name in ("ElapsedRaw", "Elapsed"):
        if name.casefold() in log.fields:
            return log.numbers(name, lambda text: nearest(seconds_in(text)))
    end = _after(log, "End", log.numbers("End", clock.seconds), start, clock)
    for place in np.flatnonzero((end < start) & (end >= 0)).tolist():
        hint = "" if clock.name else "; were clocks changed? tz tells by which time zone"
        log.refuse(
            log.lines[place], f"End is before Start{hint}", "line that ends before it starts"
        )
    lasted: log_lines.Ints = np.maximum(end - start, 0)
    return lasted


def _requested(log: log_lines.Log) -> log_lines.Ints:
    """Return requested times [s], -1 where no limit was set or its value is not told."""
    raw = "timelimitraw" in log.fields
    name, parse = (
        ("TimelimitRaw", sacct_fields.minutes) if raw else ("Timelimit", sacct_fields.time_limit)
    )
    for unsaid in sacct_fields.UNSAID:
        at = np.array([text.casefold() == unsaid.casefold() for text in log.texts(name.casefold())])
        log.count(f"repaired: time limit {unsaid} taken for unknown", at)
    return log.numbers(name, parse)


def _after(
    log: log_lines.Log, name: str, times: log_lines.Ints, before: log_lines.Ints, clock: Clock
) -> log_lines.Ints:
    """Return times, those of the second hour where clocks were set back since ``before``."""
    texts = log.texts(name.casefold())
    for place in np.flatnonzero((times < before) & (times >= 0)).tolist():
        later = clock.seconds(texts[place], later=True)
        if later >= before[place]:
            times[place] = later
    return times
