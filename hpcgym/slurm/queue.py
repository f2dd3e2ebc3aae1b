"""The jobs of a Slurm that runs, as squeue tells them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.headers import header_number
from hpcgym.names import CORE, UNITS_PER_NODE
from hpcgym.units import NO_LIMIT_S, OF_SQUEUE, count_in, seconds_in
from hpcgym.workload.io.swf_header import HEADER_KEYS, name_lines, names_of, numbered
from hpcgym.workload.model import Workload

_NAMED = ("user_id", "group_id", "queue", "partition")
#: What squeue is asked for -> how it calls that; the environment variable SLURM_TIME_FORMAT must be
#: ``%s``. ``{user}`` is the field that says whose a job is.
FIELDS = {
    "number": "%A", "processors": "%C", "limit": "%l", "submit": "%V", "priority": "%Q",
    "nice": "%y", **dict(zip(_NAMED, ("{user}", "%a", "%q", "%P"), strict=True)),
}  # fmt: skip
#: The same of jobs that run or have ended, too, where a policy looks at these.
FIELDS_OF_OTHERS = FIELDS | {"state": "%t", "began": "%S", "ended": "%e"}
FORMAT, WITH_OTHERS = "|".join(FIELDS.values()), "|".join(FIELDS_OF_OTHERS.values())
#: So many of the jobs that have ended, the latest, are remembered.
MOST_ENDED = 50_000


class QueuedJob(NamedTuple):
    """What Slurm tells of a job.

    Attributes
    ----------
    submit, limit : [s], the first since 1970.
    names : of user, account (group), QOS (queue) and partition.
    began, ended : [s] since 1970; -1: not yet.
    units : equal parts, each on one node; 0: its processors.
    most : of these that a node may have; -1: as many as it holds.
    """

    number: int
    processors: int
    submit: int
    limit: int
    priority: int
    nice: int
    names: tuple[str, ...]
    began: int = -1
    ended: int = -1
    units: int = 0
    most: int = -1


class SlurmQueue(NamedTuple):
    """The jobs that wait, but for those that are held.

    Attributes
    ----------
    ids : what Slurm calls each, in order of submission.
    priority : (n,) int64, what Slurm gives each.
    jobs : the same jobs as policies see them: users, accounts (groups), QOS (queues) and partitions
        with their names, nice, times in seconds since 1970. An array of jobs is one.
    running : the jobs that run, likewise, with ``wait_time``; none where nobody asked for them.
    past : those that have ended, with ``run_time``, too.
    """

    ids: list[str]
    priority: NDArray[np.int64]
    jobs: Workload
    running: Workload
    past: Workload


def read_jobs(text: str) -> tuple[dict[str, QueuedJob], list[str]]:
    """Return the jobs that squeue printed, by their ids, without those that never ran.

    And the lines that are not understood.

    Parameters
    ----------
    text : a line a job, in :data:`FORMAT` or :data:`WITH_OTHERS`.
    """
    jobs, misread = {}, []
    for line in text.splitlines():
        parts = line.split("|")
        names = FIELDS if len(parts) == len(FIELDS) else FIELDS_OF_OTHERS
        try:
            fields = dict(zip(names, parts, strict=True))
            job = job_of(fields)
        except ValueError:
            misread.append(line)
            continue
        if job is not None:
            jobs[fields["number"]] = job
    return jobs, misread


def job_of(fields: Mapping[str, str]) -> QueuedJob | None:
    """Return the job of :data:`FIELDS`, or :data:`FIELDS_OF_OTHERS`; None: it never ran.

    Raises
    ------
    ValueError : they are not understood.
    """
    limit = max(int(seconds_in(fields["limit"], OF_SQUEUE)), 1)
    numbers = {
        name: count_in(fields[name], signed=True)
        for name in ("number", "processors", "submit", "priority", "nice")
    }
    state, began = fields.get("state", "PD"), fields.get("began", "")
    ended = fields.get("ended", "")
    waits, runs = state == "PD", state in RUNNING
    if not waits and not runs and not (began + ended).isdigit():
        return None  # it was cancelled while it waited
    job = QueuedJob(**numbers, limit=limit, names=tuple(fields[name] for name in _NAMED))
    job = job._replace(began=-1 if waits else count_in(began))
    return job._replace(ended=-1 if waits or runs else count_in(ended))


#: States of jobs that have their nodes.
RUNNING = ("R", "S", "ST", "SO", "CF")


def ended_of(every: Iterable[QueuedJob]) -> dict[str, QueuedJob]:
    """Return those that have ended; other logs may have jobs of the same numbers."""
    return {f"{job.number} of {job.submit} s": job for job in every if job.ended >= 0}


def latest_ended(ended: Mapping[str, QueuedJob]) -> dict[str, QueuedJob]:
    """Return those of the jobs that ended last, :data:`MOST_ENDED` at most."""
    if len(ended) <= MOST_ENDED:
        return {**ended}
    return dict(sorted(ended.items(), key=lambda item: item[1].ended)[-MOST_ENDED:])


def jobs_told(past: Workload) -> dict[str, QueuedJob]:
    """Return the jobs of a log that have ended, as Slurm would tell of them."""
    named = [names_of(past, column) for column in _NAMED]
    zero = int(header_number(past.header, "UnixStartTime") or 0)
    jobs = []
    units = np.zeros(len(past), np.int64) if past.units is None else past.units
    rows = zip(
        past.job_number.tolist(), past.requested_processors.tolist(),
        (zero + past.submit_time).tolist(), past.requested_time.tolist(), past.wait_time.tolist(),
        past.run_time.tolist(), zip(*(past.columns[c].tolist() for c in _NAMED), strict=True),
        units.tolist(), past.columns[UNITS_PER_NODE].tolist(), strict=True,
    )  # fmt: skip
    for number, processors, submit, limit, wait, run, ids, parts, most in rows:
        if wait < 0 or run < 1 or processors < 1:
            continue
        limit = limit if limit > 0 else NO_LIMIT_S
        names = tuple(of.get(value, str(value)) for of, value in zip(named, ids, strict=True))
        began = submit + wait
        ended = began + run
        job = QueuedJob(number, processors, submit, limit, 0, 0, names, began, ended, parts, most)
        jobs.append(job)
    return ended_of(jobs)


def queue_of(jobs: Mapping[str, QueuedJob], first_submit_s: int | None = None) -> SlurmQueue:
    """Return the queue that jobs make.

    Parameters
    ----------
    jobs : id -> what Slurm told of it.
    first_submit_s : when the first job was submitted that was seen waiting or running before; None:
        there was none.
    """
    # one that is held has no priority
    known = {job: entry for job, entry in jobs.items() if entry.priority > 0 or entry.began >= 0}
    ids = sorted(known, key=lambda job: (known[job].submit, known[job].number))
    every = [known[job] for job in ids]
    present = [job for job in every if job.ended < 0]
    first = min(min((job.submit for job in present), default=2**62), first_submit_s or 2**62)
    all_jobs = workload_of(
        every,
        max((job.processors for job in present), default=1),
        "queue",
        first_submit_s=first if present else None,
    )
    began, ended = (np.array([getattr(job, name) for job in every], np.int64) for name in _TIMES)
    priority = np.array([job.priority for job in every], np.int64)
    waits, runs = began < 0, (began >= 0) & (ended < 0)
    past = (ended > began) & (began >= 0)
    return SlurmQueue(
        [job for job, entry in zip(ids, every, strict=True) if entry.began < 0],
        priority[waits],
        *(all_jobs.take(rows) for rows in (waits, runs, past)),
    )


_TIMES = ("began", "ended")


def workload_of(
    jobs: Sequence[QueuedJob],
    processors: int,
    name: str,
    first_submit_s: int | None = None,
    zone: str = "UTC",
    unknown_run_s: int | None = None,
) -> Workload:
    """Return jobs of Slurm, in the order of submission, as policies and simulations see them.

    Users, accounts (groups), QOS (queues) and partitions have their names; times are in seconds
    since 1970.

    Parameters
    ----------
    processors, name, first_submit_s : as of a :class:`hpcgym.Workload`.
    zone : in which its days begin.
    unknown_run_s : what is the run time of a job that has not ended; None: its limit.
    """

    def column(name: str) -> NDArray[np.int64]:
        return np.array([getattr(job, name) for job in jobs], np.int64)

    submit, limit, began, ended = map(column, ("submit", "limit", *_TIMES))
    columns = {
        "job_number": column("number"),
        "submit_time": submit,
        "requested_processors": column("processors"),
        "requested_time": limit,
        "run_time": np.where(
            ended < 0, limit if unknown_run_s is None else unknown_run_s, ended - began
        ),
        "nice": column("nice"),
        "wait_time": np.where(began < 0, -1, np.maximum(began - submit, 0)),
    }
    header = {"UnixStartTime": ["0"], "TimeZoneString": [zone]}
    for k, named in enumerate(_NAMED):
        of_name = numbered(job.names[k] for job in jobs)
        columns[named] = np.array([of_name[job.names[k]] for job in jobs], np.int64)
        header[HEADER_KEYS[named]] = name_lines({v: name for name, v in of_name.items()})
    units, per_unit = column("units"), None
    if (units > 0).any():
        columns[UNITS_PER_NODE] = column("most")
        units = np.where(units > 0, units, columns["requested_processors"])
        per_unit = {CORE: columns["requested_processors"] // units}
    return Workload.from_columns(
        columns,
        processors=processors,
        name=name,
        header=header,
        first_submit_s=first_submit_s,
        units=None if per_unit is None else units,
        per_unit=per_unit,
    )


def processors_of(text: str) -> int:
    """Return how many processors the nodes have that scontrol tells of, a line each.

    Those that are down do not count.
    """
    up = [line for line in text.splitlines() if not re.search(r"\bState=(DOWN|FAIL)", line)]
    return sum(int(number) for line in up for number in re.findall(r"\bCPUTot=(\d+)", line))
