"""A policy that sets the priorities of the jobs in Slurm's queue, again and again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.drive import giving_back
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.files import header_number
from hpcgym.scheduler.estimates.by_name import learns, predictor_of
from hpcgym.scheduler.policies.features import RUNS_LOOKED_AT
from hpcgym.scheduler.policies.index import refuse_usage
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.driver import order_of
from hpcgym.units import NO_LIMIT_S, OF_SQUEUE, count_in, seconds_in
from hpcgym.workload.io.swf_header import HEADER_KEYS, name_lines, names_of, numbered
from hpcgym.workload.model import Workload

# --- Which priorities to change so that jobs stand in an order ------------------------------------

#: Priorities that are set lie above this: whatever Slurm gives by itself is below, so that jobs
#: which have just come stand behind until they are looked at.
LOWEST = 0xFFFF0000
#: Above are values that stand for something else.
HIGHEST = 0xFFFFFFFD
#: So many jobs can stand in a queue whose order is set.
MOST = 20_000
#: So many of those that have ended, the latest, are remembered.
MOST_ENDED = 50_000


def changes(wanted: Sequence[str], present: Mapping[str, int]) -> dict[str, int]:
    """Return the priorities to set, job -> priority, in the order of the jobs; {}: none.

    Jobs that stand in the order already keep their priorities; others get one between those of
    their neighbours. Where there is no room, all get new ones.

    Parameters
    ----------
    wanted : the jobs, the first first; those after the first 20,000 are left alone.
    present : job -> its priority now.
    """
    jobs = wanted[:MOST]
    given = [present[job] for job in jobs]
    if all(before > after for before, after in pairwise(given)):
        return {}
    values = _between(len(jobs), {place: given[place] for place in _falling(given)})
    if values is None:
        values = _between(len(jobs), {})
        assert values is not None
    return {job: new for job, old, new in zip(jobs, given, values, strict=True) if old != new}


def _falling(values: Sequence[int]) -> list[int]:
    """Return the places of a longest falling part of the values that were set."""
    least: list[int] = []  # the negative last value of the best part of each length
    at: list[int] = []
    before = [-1] * len(values)
    for place, value in enumerate(values):
        if not LOWEST < value < HIGHEST:
            continue
        length = bisect_left(least, -value)
        if length == len(least):
            least.append(-value)
            at.append(place)
        else:
            least[length], at[length] = -value, place
        before[place] = at[length - 1] if length else -1
    places, place = [], at[-1] if at else -1
    while place >= 0:
        places.append(place)
        place = before[place]
    return places[::-1]


def _between(number: int, kept: Mapping[int, int]) -> list[int] | None:
    """Return falling values, those that are kept as they are; None if there is no room."""
    edges = [(-1, HIGHEST), *sorted(kept.items()), (number, LOWEST)]
    values: list[int] = []
    for (place, high), (after, low) in pairwise(edges):
        missing = after - place - 1
        if high - low <= missing:
            return None
        values += [high - (high - low) * k // (missing + 1) for k in range(1, missing + 1)]
        values += [low] if after < number else []
    return values


# --- The queue of a Slurm that runs, as squeue tells it -------------------------------------------

#: What squeue is asked for; the environment variable SLURM_TIME_FORMAT must be ``%s``. ``{user}``
#: is the field that says whose a job is.
FORMAT = "%A|%C|%l|%V|%Q|%y|{user}|%a|%q|%P"
_FIELDS = FORMAT.count("|") + 1
#: The same of jobs that run or have ended, too, where a policy looks at these.
WITH_OTHERS = FORMAT + "|%t|%S|%e"
_NAMED = ("user_id", "group_id", "queue", "partition")  # of the last four fields


class QueuedJob(NamedTuple):
    """What Slurm tells of a job.

    Attributes
    ----------
    submit, limit : [s], the first since 1970.
    names : of user, account (group), QOS (queue) and partition.
    began, ended : [s] since 1970; -1: not yet.
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
        try:
            if len(parts) not in (_FIELDS, _FIELDS + 3):
                raise ValueError
            limit = max(int(seconds_in(parts[2], OF_SQUEUE)), 1)
            number, processors, submit, priority, nice = (
                count_in(parts[k], signed=True) for k in (0, 1, 3, 4, 5)
            )
            state, began, ended = parts[_FIELDS:] or ("PD", "", "")
            waits, runs = state == "PD", state in _RUN
            if not waits and not runs and not (began + ended).isdigit():
                continue  # it was cancelled while it waited
            job = QueuedJob(number, processors, submit, limit, priority, nice, (*parts[6:_FIELDS],))
            job = job._replace(began=-1 if waits else count_in(began))
            jobs[parts[0]] = job._replace(ended=-1 if waits or runs else count_in(ended))
        except ValueError:
            misread.append(line)
    return jobs, misread


_RUN = ("R", "S", "ST", "SO", "CF")  # states of jobs that have their nodes


def _ended(every: Iterable[QueuedJob]) -> dict[str, QueuedJob]:
    """Return those that have ended; other logs may have jobs of the same numbers."""
    return {f"{job.number} of {job.submit} s": job for job in every if job.ended >= 0}


def jobs_told(past: Workload) -> dict[str, QueuedJob]:
    """Return the jobs of a log that have ended, as Slurm would tell of them."""
    named = [names_of(past, column) for column in _NAMED]
    zero = int(header_number(past.header, "UnixStartTime") or 0)
    jobs = []
    rows = zip(
        past.job_number.tolist(), past.requested_processors.tolist(),
        (zero + past.submit_time).tolist(), past.requested_time.tolist(), past.wait_time.tolist(),
        past.run_time.tolist(), zip(*(past.columns[c].tolist() for c in _NAMED), strict=True),
        strict=True,
    )  # fmt: skip
    for number, processors, submit, limit, wait, run, ids in rows:
        if wait < 0 or run < 1 or processors < 1:
            continue
        limit = limit if limit > 0 else NO_LIMIT_S
        names = tuple(of.get(value, str(value)) for of, value in zip(named, ids, strict=True))
        began = submit + wait
        job = QueuedJob(number, processors, submit, limit, 0, 0, names, began, began + run)
        jobs.append(job)
    return _ended(jobs)


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

    def column(name: str) -> NDArray[np.int64]:
        return np.array([getattr(job, name) for job in every], np.int64)

    submit, limit, began, ended = map(column, ("submit", "limit", "began", "ended"))
    columns = {
        "job_number": column("number"),
        "submit_time": submit,
        "requested_processors": column("processors"),
        "requested_time": limit,
        "run_time": np.where(ended < 0, limit, ended - began),  # else nobody knows
        "nice": column("nice"),
        "wait_time": np.where(began < 0, -1, np.maximum(began - submit, 0)),
    }
    header = {"UnixStartTime": ["0"]}
    for k, name in enumerate(_NAMED):
        of_name = numbered(job.names[k] for job in every)
        columns[name] = np.array([of_name[job.names[k]] for job in every], np.int64)
        header[HEADER_KEYS[name]] = name_lines({v: name for name, v in of_name.items()})
    present = submit[ended < 0]
    first = min(int(present.min(initial=2**62)), first_submit_s or 2**62)
    all_jobs = Workload.from_columns(
        columns,
        processors=int(columns["requested_processors"][ended < 0].max(initial=1)),
        name="queue",
        header=header,
        first_submit_s=first if len(present) else None,
    )
    waits, runs = began < 0, (began >= 0) & (ended < 0)
    past = (ended > began) & (began >= 0)
    return SlurmQueue(
        [job for job, entry in zip(ids, every, strict=True) if entry.began < 0],
        column("priority")[waits],
        *(all_jobs.take(rows) for rows in (waits, runs, past)),
    )


def processors_of(text: str) -> int:
    """Return how many processors the nodes have that scontrol tells of, a line each.

    Those that are down do not count.
    """
    up = [line for line in text.splitlines() if not re.search(r"\bState=(DOWN|FAIL)", line)]
    return sum(int(number) for line in up for number in re.findall(r"\bCPUTot=(\d+)", line))


# --- In which order a policy has the jobs that wait -----------------------------------------------


def order_rules(scheduler: Scheduler) -> Scheduler:
    """Return the rules of a scheduler that say in which order jobs wait, and no others.

    Raises
    ------
    HpcgymError : that order is not known of a queue alone.
    """
    if scheduler.dispatcher is not None or scheduler.order.function is not None:
        raise HpcgymError(
            "to drive Slurm takes an order of the queue: a policy by name, an expression, weights"
            " or a scheduler with one, and no dispatcher or function"
        )
    refuse_usage(scheduler.order)
    estimate = scheduler.policy_estimate
    if estimate != "requested" and (not learns(estimate) or predictor_of(estimate) is not None):
        raise HpcgymError(
            "to drive Slurm a policy must look at requested times, or at what is learned by a"
            f" formula, and not at policy_estimate {scheduler.describe()['policy_estimate']!r}"
        )
    return Scheduler(
        policy=scheduler.policy,
        threshold=scheduler.threshold,
        policy_estimate=estimate,
        backfill="none",
    )


def looks_at(rules: Scheduler) -> str:
    """Return the states of jobs, as squeue takes them, that an order looks at."""
    if learns(rules.policy_estimate) or RUNS_LOOKED_AT.keys() & rules.state:
        return "all"
    return ",".join(("PD", *_RUN)) if rules.state else "PD"


# --- A policy that sets the priorities of the jobs in Slurm's queue -------------------------------

INSTALL = "apt-get install slurm-client"
#: Set for Slurm's commands: times in seconds since 1970.
VARIABLES = {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
#: What scontrol says of a job that waits no longer.
_GONE = ("Invalid job id", "already completing or completed", "no longer pending")

#: Runs a command of Slurm, with a text for its standard input, and returns its exit status, what it
#: prints and what it says is wrong.
Run = Callable[[Sequence[str], str], tuple[int, str, str]]


class DrivenPass(NamedTuple):
    """What was found and done at one time.

    Attributes
    ----------
    time : [s] since 1970.
    queue : the jobs that wait.
    order : their rows in the order that the policy wants.
    changed : job -> the priority that it is to have; without those that stay as they are.
    misread : lines of squeue that are not understood; their jobs are left alone.
    """

    time: int
    queue: SlurmQueue
    order: list[int]
    changed: dict[str, int]
    misread: list[str]


class Driver:
    """Sets the priorities of the jobs that wait so that Slurm has them in a policy's order.

    Parameters
    ----------
    scheduler : whose policy and threshold say the order.
    run : runs a command of Slurm.
    squeue, scontrol : paths of these.
    noted : is told of jobs, and the nice of each, before their priorities are set.
    past : jobs that ended before, such as of ``sacct``, if the policy learns from these.
    user : the field of squeue that says whose a job is.

    Raises
    ------
    HpcgymError : an order that is not known of a queue alone.

    Warns
    -----
    HpcgymWarning : the scheduler has its jobs in the order of submission, and others to backfill:
        Slurm has one order, in which they stay as they came.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        run: Run,
        squeue: str,
        scontrol: str,
        noted: Callable[[Mapping[str, int]], None] = lambda nice: None,
        past: Workload | None = None,
        user: str = "%u",
    ) -> None:
        self._rules = order_rules(scheduler)
        if scheduler.reserve.sweeps and scheduler.order.given == "fcfs" != scheduler.backfill_order:
            order = scheduler.said("backfill_order")
            warn_caller(
                f"Slurm's queue stays first come, first served, as the policy is fcfs: {order} is"
                " not followed, since Slurm backfills in the order of its queue",
                HpcgymWarning,
            )
        self._run, self._squeue, self._scontrol, self._noted = run, squeue, scontrol, noted
        self._first: int | None = None
        self._nice: dict[str, int] = {}
        self._past = {} if past is None else jobs_told(past)
        which = looks_at(self._rules)
        fields = (FORMAT if which == "PD" else WITH_OTHERS).format(user=user)
        self._look = [squeue, "-h", "-t", which, "-o", fields]

    def ask(self, now: int, *, sets: bool = True) -> DrivenPass:
        """Look at the queue, and set the priorities that must change.

        Parameters
        ----------
        now : [s] since 1970.
        sets : False: nothing is set.

        Raises
        ------
        HpcgymError : Slurm does not answer, or does not let priorities be set.
        """
        size = 0
        if self._rules.state:
            size = processors_of(self._said([self._scontrol, "-o", "show", "node"]))
        jobs, misread = read_jobs(self._said(self._look))
        # Slurm soon forgets jobs that have ended
        self._past |= _ended(jobs.values())
        for job in [*self._past][:-MOST_ENDED]:
            del self._past[job]
        here = {job: entry for job, entry in jobs.items() if entry.ended < 0}
        queue = self._with_nice(queue_of({**self._past, **here}, self._first))
        if queue.ids:
            self._first = int(queue.jobs.first_submit_s)
        # a job may have been submitted by a clock somewhat ahead of this one
        last = int(queue.jobs.submit_time.max(initial=0))
        beside = queue.running, size, queue.past
        order = order_of(queue.jobs, self._rules, max(now, last), *beside).tolist()
        present = dict(zip(queue.ids, queue.priority.tolist(), strict=True))
        changed = changes([queue.ids[row] for row in order], present)
        if changed and sets:
            self._noted({job: self._nice.get(job, 0) for job in changed})
            self._set(changed)
        return DrivenPass(now, queue, order, changed, misread)

    def _with_nice(self, queue: SlurmQueue) -> SlurmQueue:
        """Return a queue whose jobs have their nice, which Slurm forgets when a priority is set."""
        nice_of = dict(zip(queue.ids, queue.jobs.nice.tolist(), strict=True))
        self._nice |= {job: nice for job, nice in nice_of.items() if nice}
        nice = [self._nice.get(job, 0) for job in queue.ids]
        return queue._replace(jobs=queue.jobs.with_columns(nice=np.array(nice, np.int64)))

    def _set(self, changed: dict[str, int]) -> None:
        """Set priorities, the highest first."""
        lines = [f"update jobid={job} priority={value}\n" for job, value in changed.items()]
        status, _, wrong = self._run([self._scontrol], "".join(lines))
        problems = [line for line in wrong.splitlines() if not any(text in line for text in _GONE)]
        if status and problems:
            raise HpcgymError(f"scontrol does not set priorities: {problems[0].strip()}")

    def _said(self, command: Sequence[str]) -> str:
        status, out, wrong = self._run(command, "")
        if status:
            text = wrong.strip().partition("\n")[0] or "it says nothing"
            raise HpcgymError(
                f"{os.path.basename(command[0])} failed: {text}; to drive Slurm takes a machine on"
                " which squeue lists the jobs of your Slurm"
            )
        return out


def find_clients() -> tuple[str, str]:
    """Return the paths of squeue and scontrol.

    Raises
    ------
    HpcgymError : Slurm's commands are not installed; the message says how to install them.
    """
    paths = {name: shutil.which(name) for name in ("squeue", "scontrol")}
    for name, path in paths.items():
        if path is None:
            raise HpcgymError(
                f"{name} is not installed: to drive Slurm, and to show what that would do, takes a"
                f" machine on which squeue lists the jobs of your Slurm ({INSTALL})"
            )
    return str(paths["squeue"]), str(paths["scontrol"])


def run_command(command: Sequence[str], given: str) -> tuple[int, str, str]:
    """Run a command of Slurm; see :data:`Run`."""
    done = subprocess.run(
        command, input=given, env={**os.environ, **VARIABLES}, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


@contextmanager
def driven(scheduler: Scheduler, past: Workload | None = None) -> Iterator[Driver]:
    """Drive the Slurm that this machine's commands talk to, while the block lasts.

    When it ends, however it does, all jobs whose priorities were set get Slurm's own again: a
    process of its own waits for the end of this one.

    Parameters
    ----------
    scheduler : whose policy and threshold say the order.
    past : as of :class:`Driver`.

    Raises
    ------
    HpcgymError : Slurm is not installed, or an order that is not known of a queue alone.
    """
    order_rules(scheduler)  # which says what is wrong before anything begins
    squeue, scontrol = find_clients()
    command = [sys.executable, "-I", "-S", giving_back.__file__, squeue, scontrol, str(LOWEST)]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, text=True)
    assert guard.stdin is not None
    stdin = guard.stdin

    def note(nice: Mapping[str, int]) -> None:
        try:
            stdin.write("".join(f"{job} {value}\n" for job, value in nice.items()))
            stdin.flush()
        except BrokenPipeError:
            raise HpcgymError(
                "the process that gives jobs back to Slurm's own priorities has ended: nothing more"
                " is set, and `scontrol release` gives them back"
            ) from None

    try:
        yield Driver(scheduler, run_command, squeue, scontrol, note, past)
    finally:
        guard.communicate()  # closes its input, at whose end it gives the jobs back


def look(scheduler: Scheduler, past: Workload | None = None) -> DrivenPass:
    """Return what would be set now, and set nothing.

    Raises
    ------
    HpcgymError : as of :func:`driven`.
    """
    order_rules(scheduler)
    return Driver(scheduler, run_command, *find_clients(), past=past).ask(
        int(time.time()), sets=False
    )


def drive(
    scheduler: Scheduler,
    every_s: int,
    tell: Callable[[DrivenPass], None],
    past: Workload | None = None,
) -> None:
    """Drive Slurm for ever: until this is interrupted, or Slurm does not answer.

    Parameters
    ----------
    scheduler : whose policy and threshold say the order.
    every_s : from one look at the queue to the next [s].
    tell : is told what was done each time.
    past : as of :class:`Driver`.

    Raises
    ------
    HpcgymError : as of :func:`driven`; Slurm does not answer, or does not let priorities be set.
    """
    with driven(scheduler, past) as driver:
        while True:
            tell(driver.ask(int(time.time())))
            time.sleep(every_s)
