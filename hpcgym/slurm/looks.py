"""One look at a Slurm that runs: its jobs, and when it last backfilled."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import NamedTuple

from hpcgym.errors import HpcgymError
from hpcgym.machine.partitions import hosts
from hpcgym.slurm.programs import SlurmPrograms
from hpcgym.slurm.queue import FIELDS_OF_OTHERS, RUNNING, QueuedJob, job_of

#: What squeue is asked for -> how it calls that: the job as its user calls it, the fields of any
#: job, its nodes, and what it waits for.
FIELDS_SEEN = {"label": "%i", **FIELDS_OF_OTHERS, "nodes": "%N", "reason": "%r"}
LOOKED_AT = "|".join(FIELDS_SEEN.values())
#: Reasons of jobs that do not wait for room: nobody knows when they may start.
HELD = (
    *("JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied", "BeginTime"),
    *("JobArrayTaskLimit", "BadConstraints", "PartitionDown", "PartitionInactive"),
)


class JobParts(NamedTuple):
    """What ``scontrol show job -d`` tells of a job beside squeue.

    Attributes
    ----------
    units, most : as of a :class:`hpcgym.slurm.queue.QueuedJob`.
    cells : node -> how many processors it has there; {}: it does not run.
    """

    units: int
    most: int
    cells: Mapping[str, int]


class SeenJob(NamedTuple):
    """A job at a look.

    Attributes
    ----------
    label : what Slurm calls it: its number, with that of a task of an array as ``12_3``.
    told : what squeue tells of it.
    planned : when Slurm plans that it starts, if it waits [s since 1970]; -1: it does not say.
    nodes : a list of those that it has.
    reason : why it waits.
    """

    label: str
    told: QueuedJob
    planned: int
    nodes: str
    reason: str

    @property
    def waits(self) -> bool:
        """Whether it waits, be it for room or held."""
        return self.told.began < 0

    @property
    def is_held(self) -> bool:
        """Whether it waits, and not for room."""
        return self.waits and (self.told.priority == 0 or self.reason in HELD)


class SlurmLook(NamedTuple):
    """What Slurm told at one time.

    Attributes
    ----------
    time : [s since 1970].
    jobs : that wait, run, or have ended lately.
    passed : when the last backfill pass began [s since 1970]; -1: not told.
    parts : of jobs by their numbers; {} where nobody asked.
    misread : lines that are not understood, whose jobs are left out.
    """

    time: int
    jobs: list[SeenJob]
    passed: int
    parts: Mapping[int, JobParts]
    misread: list[str]


def look(programs: SlurmPrograms, *, parts: bool = False, ended: bool = True) -> SlurmLook:
    """Look at Slurm; nothing is changed.

    Parameters
    ----------
    programs : that are asked.
    parts : whether to ask for the parts of jobs too, which nodes of several cores take.
    ended : whether to ask for the jobs that Slurm remembers, too.

    Raises
    ------
    HpcgymError : Slurm does not answer, or tells nothing that is understood.
    """
    # first, so that a pass between both is taken for one to come, which then finds nothing to do
    now, passed = clock_of(programs.said("sdiag"))
    fields = LOOKED_AT.format(user=programs.user)
    states = "all" if ended else ",".join(("PD", *RUNNING))
    jobs, misread = seen_jobs(programs.said("squeue", "-r", "-h", "-t", states, "-o", fields))
    if misread and not jobs:
        raise HpcgymError(f"squeue is not understood: {misread[0]!r}")
    placed = parts_of(programs.said("scontrol", "-o", "-d", "show", "job")) if parts else {}
    # no clock is ahead of what has happened
    now = max(now, max((max(seen.told.submit, seen.told.began) for seen in jobs), default=now))
    return SlurmLook(now, jobs, passed, placed, misread)


_NOW = re.compile(r"^sdiag output at .*\((\d+)\)", re.MULTILINE)
_PASSED = re.compile(r"^Backfilling stats.*?Last cycle when:[^\n]*?\((\d+)\)", re.DOTALL | re.M)


def clock_of(text: str) -> tuple[int, int]:
    """Return what sdiag tells of Slurm's clock [s since 1970]: now, and the last backfill pass.

    Now is this machine's where it is not told; the pass is -1 then, or where there was none.
    """
    now, passed = _NOW.search(text), _PASSED.search(text)
    last = int(passed[1]) if passed else 0
    return int(now[1]) if now else int(time.time()), last or -1


def seen_jobs(text: str) -> tuple[list[SeenJob], list[str]]:
    """Return the jobs that squeue printed, and the lines that are not understood.

    Parameters
    ----------
    text : a line a job, in :data:`LOOKED_AT`.
    """
    jobs, misread = [], []
    for line in text.splitlines():
        parts = line.split("|", len(FIELDS_SEEN) - 1)
        try:
            fields = dict(zip(FIELDS_SEEN, parts, strict=True))
            job = job_of(fields)
        except ValueError:
            misread.append(line)
            continue
        if job is None:
            continue
        label, began = fields["label"], fields["began"]
        waits = job.began < 0
        task = label.partition("_")[2]
        if waits and task.isdecimal():  # until they start they all have the number of the array
            job = job._replace(number=job.number + (int(task) + 1) * _OF_TASKS)
        planned = int(began) if waits and began.isdecimal() else -1
        jobs.append(SeenJob(label, job, planned, fields["nodes"], fields["reason"]))
    return jobs, misread


_OF_TASKS = 2**40  # beyond all numbers of jobs


def parent_of(number: int) -> int:
    """Return the number of the array of a waiting task, or that of any other job."""
    return number % _OF_TASKS


_FIELD = re.compile(r"(?:^| )(JobId|NumNodes|NumCPUs|NumTasks|CPUs/Task|NtasksPerN:B:S:C)=(\S+)")
_CELLS = re.compile(r" Nodes=(\S+) CPU_IDs=(\S+)")


def parts_of(text: str) -> dict[int, JobParts]:
    """Return the parts of the jobs that ``scontrol -o -d show job`` printed, by their numbers."""
    by_number: dict[int, JobParts] = {}
    for line in text.splitlines():
        fields = dict(_FIELD.findall(line))
        try:
            number, processors = int(fields["JobId"]), int(fields["NumCPUs"])
            cells = {
                node: _count(ids)
                for names, ids in _CELLS.findall(line)
                for node in hosts(names, "scontrol")
            }
            least, _, most = fields["NumNodes"].partition("-")
            tasks, each = (fields.get(name, "") for name in ("NumTasks", "CPUs/Task"))
            on_node = fields.get("NtasksPerN:B:S:C", "0").partition(":")[0]
        except (KeyError, ValueError, HpcgymError):
            continue
        units, bound = processors, -1
        if tasks.isdecimal() and each.isdecimal() and int(tasks) * int(each) == processors:
            units = int(tasks)
        if on_node.isdecimal() and int(on_node) > 0:
            bound = int(on_node)
        elif not cells and most == least and processors % int(least) == 0:
            units, bound = int(least), 1  # on just so many nodes
        if cells and any(had % (processors // units) for had in cells.values()):
            units, bound = processors, -1
        by_number[number] = JobParts(units, bound, cells)
    return by_number


def _count(ids: str) -> int:
    """Return how many numbers a text such as ``0-3,7`` has."""
    spans = [span.partition("-") for span in ids.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in spans)
