"""Slurm's accounting: what ``sacct -P``, ``sacct --parsable`` and ``sacct --json`` print.

Line 1 has the names of fields, any of them in any order; each other line is a job, a step of one,
or tasks of an array that have not started. The fields, and what they hold:
https://slurm.schedmd.com/sacct.html

``submit_time`` is Eligible where that is later than Submit: before it Slurm could not start the job
either (``--begin``, dependencies). Processors are those that the job was given, all of a node's
where it had a whole one. Names of users, accounts, partitions and QOS become ``user_id``,
``group_id``, ``partition`` and ``queue``, and their names stay in the header.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.dates import Clock
from hpcgym.errors import WorkloadError, WorkloadWarning, warn_caller
from hpcgym.files import head_of
from hpcgym.names import LICENCE, OF_WHOLE_JOBS, printable
from hpcgym.units import NO_LIMIT, OF_TIMELIMIT, OF_TIMELIMIT_RAW
from hpcgym.workload.columns import MISSING
from hpcgym.workload.io import sacct_dependencies, sacct_fields, sacct_json, sacct_lines
from hpcgym.workload.io.files import FileFormat, ReadOptions
from hpcgym.workload.io.log_lines import GENERIC, Ints, LogRecords, lasted, numbered, workload_of
from hpcgym.workload.io.sacct_fields import ids_in
from hpcgym.workload.model import Workload

_SHIFTED = "repaired: job numbered anew, for one of another cluster has its number"
_NOTHING = ("", "None", "(null)", "N/A")
_MISSING_TIMES = ("", "Unknown", "None", "N/A")


def is_sacct(head: bytes) -> bool:
    """Tell whether the first bytes of a file are those of a dump, of lines or in JSON."""
    return sacct_json.is_json(head) or sacct_lines.is_dump(head)


def read_sacct(path: Path, how: ReadOptions) -> Workload:
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
    log = _records(path, how)
    _drop_no_jobs(log)
    log.drop_copies()
    if how.unfinished:
        _list_tasks(log)
    _take_cluster(log)
    columns = _with_parts(log, log.settled(_columns(log, clock)))
    for name in sacct_lines.UNUSED:
        log.count(f"not used: {name}", log.column(name, lambda text: text not in _NOTHING, False))
    return workload_of(log, columns, clock, "Cluster", _id(log))


def throttles(path: Path) -> dict[int, int] | None:
    """Return how many tasks of each array may run at once; None for a file that is no dump.

    A dump tells it for arrays with tasks that had not started.

    Raises
    ------
    WorkloadError : as :func:`read_sacct`, of the lines and ids alone; no array has a throttle.
    """
    if not is_sacct(head_of(path, WorkloadError)):
        return None
    ids = ids_in(_records(path, ReadOptions()), "JobID")
    ids = ids[ids["at_once"] > 0]
    at_once = dict(zip(ids["number"].tolist(), ids["at_once"].tolist(), strict=True))
    if not at_once:
        raise WorkloadError(
            f"{path}: no line tells how many tasks of an array may run at once, as 7_[5-9%2]"
        )
    return at_once


def _records(path: Path, how: ReadOptions) -> LogRecords:
    """Return the records of a dump, of lines or in JSON."""
    if how.fields is None and sacct_json.is_json(head_of(path, WorkloadError)):
        return sacct_json.records_of(path, how)
    return sacct_lines.records_of(path, how)


def _drop_no_jobs(log: LogRecords) -> None:
    """Drop tasks of arrays that did not start, and jobs that did not start or end.

    If these are to stay, those are dropped that wait, and may not start: Eligible is not known of
    jobs that are held, or wait for others.
    """
    log.count(sacct_fields.UNUSED_THROTTLE, ids_in(log, "JobID")["at_once"])
    waiting = ids_in(log, _id(log))["waiting"] & (not log.how.unfinished)
    log.drop([sacct_fields.ARRAY_TASKS if tasks else "" for tasks in waiting.tolist()])
    states = log.parsed("State", sacct_fields.state_of, "")
    by_ends = not {"elapsed", "elapsedraw"} & {*log.fields}
    reasons = []
    names = ("Start", "End", "Eligible")
    times = zip(log.lines.tolist(), states, *(log.texts(name) for name in names), strict=True)
    for line, state, start, end, eligible in times:
        reason = ""
        if line in log.refused:
            pass
        elif state in sacct_fields.OPEN_STATES and log.how.unfinished:
            held = state in sacct_fields.WAITING and eligible in _MISSING_TIMES
            if state in sacct_fields.HELD or (held and "eligible" in log.fields):
                reason = f"{state} and not eligible when the log was written"
        elif state in sacct_fields.OPEN_STATES:
            reason = f"{state} when the log was written"
        elif start in _MISSING_TIMES:
            reason = f"{state} before it started" if state else "not started"
        elif by_ends and end in _MISSING_TIMES:
            reason = "not ended when the log was written"
        reasons.append(reason)
    log.drop(reasons)


def _list_tasks(log: LogRecords) -> None:
    """Let each task of an array that has not started have a line of its own: it waits."""
    name, other = ("JobID", "JobIDRaw") if _id(log) == "JobID" else ("JobIDRaw", "JobID")
    ids = ids_in(log, name)
    tasks = [
        sacct_fields.tasks_in(text) if waits else []
        for text, waits in zip(log.texts(name), ids["waiting"].tolist(), strict=True)
    ]
    times = np.array([max(len(listed), 1) for listed in tasks], np.int64)
    ids_in(log, other)
    log.keep(np.repeat(np.arange(len(log)), times))
    for place, task in zip(
        np.flatnonzero(np.repeat([bool(listed) for listed in tasks], times)).tolist(),
        (task for listed in tasks for task in listed),
        strict=True,
    ):
        whose = int(log.beside[name]["number"][place])
        log.beside[name][place] = (whose, task, False, False, 0)
        log.beside[other][place] = sacct_fields.NO_ID


def _take_cluster(log: LogRecords) -> None:
    """Keep the jobs of one cluster if the log has several: of the machine's, else of the largest.

    Without a machine with nodes all jobs stay.

    Warns
    -----
    WorkloadWarning : there are several; how many jobs each has, and which are taken.
    """
    clusters = log.texts("Cluster")
    jobs = Counter(filter(None, clusters))
    if len(jobs) < 2:
        return
    known = {name.casefold(): name for name in jobs}
    wanted = log.how.cluster
    if wanted is None:
        taken = "One machine stands for all: sacct -M NAME prints one, --cluster slurm.conf its own"
    else:
        own = known.get(wanted.casefold())
        chosen = own or jobs.most_common(1)[0][0]
        why = "as the machine is called" if own else "which has most: no ClusterName says otherwise"
        taken = f"Those of {printable(chosen)} are taken, {why}"
        log.drop(["" if name == chosen else f"job of another cluster, {name}" for name in clusters])
    listed = ", ".join(f"{printable(name)} ({number:,})" for name, number in jobs.most_common())
    warn_caller(f"{log.path} has jobs of {len(jobs)} clusters: {listed}. {taken}", WorkloadWarning)


def _id(log: LogRecords) -> str:
    """Return the field that is equal for all runs of a job."""
    return "JobID" if "jobid" in log.fields else "JobIDRaw"


def _columns(log: LogRecords, clock: Clock) -> dict[str, Any]:
    """Return the columns of jobs, (n,) each; times in seconds since 1970; -1 is unknown."""
    tasks, raw, shift = _ids(log)
    number = _job_numbers(log, tasks, raw)
    submit = log.numbers(("Submit", _since_1970(clock)))
    log.refuse_at(submit < 0, "Submit is blank", "line with a wrong Submit")
    start = _after(log, "Start", submit, clock)
    status = log.numbers(("State", sacct_fields.status_of))
    run_time = _run_times(log, clock, start)
    if log.how.unfinished:
        states = log.parsed("State", sacct_fields.state_of, "")
        start = np.where(np.isin(states, sacct_fields.WAITING), MISSING, start)
        run_time = np.where(np.isin(states, sacct_fields.OPEN_STATES), MISSING, run_time)
    nice = sacct_fields.nice_of(log)
    arrays = np.where(tasks["task"] >= 0, tasks["number"], MISSING)
    return {
        "job_number": number,
        **({"array": arrays} if (arrays >= 0).any() else {}),
        **({"nice": nice} if nice.any() else {}),
        "submit_time": submit,
        "eligible": log.numbers(("Eligible", _known(clock))),
        "start": start,
        "run_time": run_time,
        "requested_time": _requested(log),
        "status": status,
        "preceding_job": sacct_dependencies.preceding(log, tasks, number, status, shift),
        **sacct_fields.resources_of(log),
        "user": log.names("user", "uid"),
        "group": log.names("account", "group", "gid"),
        "queue_name": log.names("qos"),
        "partition_name": log.names("partition"),
        "constraint_name": sacct_fields.constraints_of(log),
        "reservation_name": sacct_fields.reservations_of(log),
    }


def _ids(log: LogRecords) -> tuple[NDArray[Any], NDArray[Any], Ints]:
    """Return the ids in JobID and JobIDRaw, and the shift of each job's number, (n,).

    Ids are unique in a cluster. If jobs of several clusters stay and share ids, those of all
    clusters but the first are shifted behind all others.
    """
    tasks, raw = (ids_in(log, name).copy() for name in ("JobID", "JobIDRaw"))
    clusters = log.texts("Cluster")
    order = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
    cluster = np.array([order[name] for name in clusters], np.int64)
    numbers = np.concatenate([tasks["number"], raw["number"]])
    known = [
        np.unique(numbers[np.tile(cluster == place, 2) & (numbers >= 0)])
        for place in order.values()
        if len(order) > 1
    ]
    together = np.concatenate([[MISSING], *known])
    is_shared = len(np.unique(together)) < len(together)
    shift = cluster * (int(together.max()) + 1 if is_shared else 0)
    log.count(_SHIFTED, shift)
    for ids in (tasks, raw):
        ids["number"] += np.where(ids["number"] >= 0, shift, 0)
    return tasks, raw, shift


def _job_numbers(log: LogRecords, tasks: NDArray[Any], raw: NDArray[Any]) -> Ints:
    """Return the numbers of jobs, (n,): JobIDRaw, ``raw``, else JobID, ``tasks``.

    Tasks of arrays have one JobID, that of the array. Without JobIDRaw they are numbered anew,
    array by array, from the number behind the greatest of the dump on.
    """
    known = np.where(raw["number"] >= 0, raw, tasks)
    log.count(sacct_fields.ANEW, known["task"] >= 0)
    return numbered(known["number"], known["task"], known["part"])["job_number"]


# What the components of a heterogeneous job must have alike to be one job.
_ALIKE = ("submit_time", "requested_time", "user", "group", "queue_name", "partition_name")
_CORES = ("requested_processors", "allocated_processors", "memory_mb")  # of any machine


def _with_parts(log: LogRecords, columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns with one job in place of the components of a heterogeneous job.

    They start together. So they are one job where equal units say what they hold: where all have
    the same share of a node, or where the machine is a pool, on which all units are processors.
    Such a job runs for as long as the longest of them. Others stay jobs of their own.
    """
    runs: dict[tuple[str, int, int], list[int]] = {}
    ids, clusters, start = ids_in(log, _id(log)), log.texts("Cluster"), columns["start"]
    for place in np.flatnonzero(ids["part"]).tolist():
        run = clusters[place], int(ids["number"][place]), int(start[place])
        runs.setdefault(run, []).append(place)
    pool = log.how.cluster is None and log.how.processors is not None
    resources = ["nodes", "gpus", *(name for name in columns if name.startswith(GENERIC))]
    of_jobs = [name for name in columns if name in OF_WHOLE_JOBS or name.startswith(LICENCE)]
    reasons, apart, longer = [""] * len(log), 0, 0
    for places in runs.values():
        shares = {_share_of_a_node(columns, resources, place) for place in places}
        alike = [len({columns[name][place] for place in places}) == 1 for name in _ALIKE]
        if len(places) < 2 or not (all(alike[:-1]) and (pool or (alike[-1] and len(shares) == 1))):
            apart += len(places)
            continue
        first, *others = sorted(places, key=lambda place: columns["job_number"][place])
        longest = columns["run_time"][places].max()
        longer += int((columns["run_time"][places] < longest).sum())
        columns["run_time"][first] = longest
        for name in (*_CORES, *of_jobs, *resources):
            held = columns[name][places]
            is_known = (held >= 0).all() and (len(shares) == 1 or name not in resources)
            columns[name][first] = held.sum() if is_known else MISSING
        for place in others:
            reasons[place] = f"{sacct_fields.PART}, which is one job with the first"
    log.count(f"repaired: {sacct_fields.PART} taken for a job of its own", np.ones(apart))
    log.count(f"repaired: {sacct_fields.PART} that ended before the longest", np.ones(longer))
    kept = np.array([not reason for reason in reasons], np.bool_)
    log.drop(reasons)
    return {name: values[kept] for name, values in columns.items()}


def _share_of_a_node(columns: dict[str, Any], resources: list[str], place: int) -> tuple[Any, ...]:
    """Return a job's resources on each of its nodes; if these are not told, those of a unit."""
    names = [name for name in (*resources, "memory_mb") if name != "nodes"]
    cores, *held = (int(columns[name][place]) for name in ("requested_processors", *names))
    nodes = int(columns["nodes"][place])
    units = nodes if nodes > 0 else math.gcd(cores, *(n for n in held[:-1] if n > 0))
    return (nodes > 0, *(Fraction(max(amount, 0), units) for amount in (cores, *held)))


def _since_1970(clock: Clock) -> Any:
    """Return a parser of times that refuses times before 1970."""

    def seconds(text: str) -> int:
        time = clock.seconds(text)
        if time < 0:
            raise ValueError("before 1970")
        return time

    return seconds


def _known(clock: Clock) -> Any:
    """Return a parser of times that takes ``Unknown`` for unknown."""
    return lambda text: MISSING if text in _MISSING_TIMES else clock.seconds(text)


def _run_times(log: LogRecords, clock: Clock, start: Ints) -> Ints:
    """Return run times [s]: ElapsedRaw, else Elapsed, else End - Start."""
    for name in ("ElapsedRaw", "Elapsed"):
        if name.casefold() in log.fields:
            ran = log.numbers((name, lasted))
            _count_other_ends(log, clock, start + ran)
            return ran
    end = _after(log, "End", start, clock)
    hint = "" if clock.name else "; were clocks changed? tz tells by which time zone"
    problem = f"End is before Start{hint}"
    log.refuse_at((end < start) & (end >= 0), problem, "line that ends before it starts")
    run_times: Ints = np.maximum(end - start, 0)
    return run_times


def _count_other_ends(log: LogRecords, clock: Clock, expected: Ints) -> None:
    """Count the lines whose End is not ``expected``, Start + Elapsed [s]; a second is no matter."""

    def seconds(text: str, later: bool = False) -> int:
        try:
            return clock.seconds(text, later)
        except ValueError:  # it is not used
            return MISSING

    end, texts = log.column("End", seconds), log.texts("End")
    off = (np.abs(end - expected) > 1) & (end >= 0)
    for place in np.flatnonzero(off).tolist():
        off[place] = abs(seconds(texts[place], later=True) - expected[place]) > 1
    log.count(sacct_fields.OTHER_END, off)


def _requested(log: LogRecords) -> Ints:
    """Return requested times [s]: a year if there is no limit, -1 if the limit is not told."""
    name = "TimelimitRaw" if "timelimitraw" in log.fields else "Timelimit"
    for word, words, taken in (
        (sacct_fields.UNLIMITED, NO_LIMIT, "365 days, as Slurm plans with"),
        (sacct_fields.UNSAID, (sacct_fields.UNSAID.casefold(),), "unknown"),
    ):
        at = [text.casefold() in words for text in log.texts(name)]
        log.count(f"repaired: time limit {word} taken for {taken}", at)
    raw = name == "TimelimitRaw"
    return log.numbers(
        (name, partial(sacct_fields.time_limit, how=OF_TIMELIMIT_RAW if raw else OF_TIMELIMIT))
    )


def _after(log: LogRecords, name: str, before: Ints, clock: Clock) -> Ints:
    """Return times, those of the second hour where clocks were set back since ``before``."""
    times, texts = log.numbers((name, _known(clock))), log.texts(name)
    for place in np.flatnonzero((times < before) & (times >= 0)).tolist():
        later = clock.seconds(texts[place], later=True)
        if later >= before[place]:
            times[place] = later
    return times


FORMAT = FileFormat(lambda path, head: is_sacct(head), read_sacct)
