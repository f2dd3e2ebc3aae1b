"""A policy that sets the priorities of the jobs in Slurm's queue, again and again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hpcgym.drive import giving_back
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.scheduler.estimates.by_name import learns, predictor_of
from hpcgym.scheduler.policies.features import RUNS_LOOKED_AT
from hpcgym.scheduler.policies.index import refuse_usage
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.driver import order_of
from hpcgym.slurm.programs import INSTALL, Run, run_command
from hpcgym.slurm.queue import (
    FORMAT,
    RUNNING,
    WITH_OTHERS,
    SlurmQueue,
    ended_of,
    jobs_told,
    latest_ended,
    processors_of,
    queue_of,
    read_jobs,
)
from hpcgym.workload.model import Workload

# --- Which priorities to change so that jobs stand in an order ------------------------------------

#: Priorities that are set lie above this: whatever Slurm gives by itself is below, so that jobs
#: which have just come stand behind until they are looked at.
LOWEST = 0xFFFF0000
#: Above are values that stand for something else.
HIGHEST = 0xFFFFFFFD
#: So many jobs can stand in a queue whose order is set.
MOST = 20_000


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
    return ",".join(("PD", *RUNNING)) if rules.state else "PD"


# --- A policy that sets the priorities of the jobs in Slurm's queue -------------------------------

#: What scontrol says of a job that waits no longer.
_GONE = ("Invalid job id", "already completing or completed", "no longer pending")


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
        self._squeue, self._user = squeue, user
        self.order_by(scheduler)
        if scheduler.reserve.sweeps and scheduler.order.given == "fcfs" != scheduler.backfill_order:
            order = scheduler.said("backfill_order")
            warn_caller(
                f"Slurm's queue stays first come, first served, as the policy is fcfs: {order} is"
                " not followed, since Slurm backfills in the order of its queue",
                HpcgymWarning,
            )
        self._run, self._scontrol, self._noted = run, scontrol, noted
        self._first: int | None = None
        self._nice: dict[str, int] = {}
        self._past = {} if past is None else jobs_told(past)

    def order_by(self, scheduler: Scheduler) -> None:
        """Have jobs in the order of another policy from now on.

        Raises
        ------
        HpcgymError : an order that is not known of a queue alone.
        """
        self._rules = order_rules(scheduler)
        which = looks_at(self._rules)
        fields = (FORMAT if which == "PD" else WITH_OTHERS).format(user=self._user)
        self._look = [self._squeue, "-h", "-t", which, "-o", fields]

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
        self._past = latest_ended(self._past | ended_of(jobs.values()))
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
    choose: Callable[[], Scheduler | None] = lambda: None,
) -> None:
    """Drive Slurm for ever: until this is interrupted, or Slurm does not answer.

    Parameters
    ----------
    scheduler : whose policy and threshold say the order.
    every_s : from one look at the queue to the next [s].
    tell : is told what was done each time.
    past : as of :class:`Driver`.
    choose : returns whose policy is followed from now on, before each look; None: the last one.

    Raises
    ------
    HpcgymError : as of :func:`driven`; Slurm does not answer, or does not let priorities be set.
    """
    with driven(scheduler, past) as driver:
        while True:
            if (other := choose()) is not None:
                driver.order_by(other)
            tell(driver.ask(int(time.time())))
            time.sleep(every_s)
