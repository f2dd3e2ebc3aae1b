"""A policy that sets the priorities of the jobs in Slurm's queue, again and again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from hpcgym.drive import giving_back
from hpcgym.drive.order import order_of, order_rules
from hpcgym.drive.priorities import LOWEST, changes
from hpcgym.drive.queue import FORMAT, Queue, read_queue
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.rules import Scheduler

INSTALL = "apt-get install slurm-client"
#: Set for Slurm's commands: times in seconds since 1970.
VARIABLES = {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
#: What scontrol says of a job that waits no longer.
_GONE = ("Invalid job id", "already completing or completed", "no longer pending")

#: Runs a command of Slurm, with a text for its standard input, and returns its exit status, what it
#: prints and what it says is wrong.
Run = Callable[[Sequence[str], str], tuple[int, str, str]]


class Asked(NamedTuple):
    """What was found and done at one time.

    Attributes
    ----------
    time : [s] since 1970.
    queue : the jobs that wait.
    order : their rows in the order that the policy wants.
    changed : job -> the priority that it is to have; without those that stay as they are.
    """

    time: int
    queue: Queue
    order: list[int]
    changed: dict[str, int]


class Driver:
    """Sets the priorities of the jobs that wait so that Slurm has them in a policy's order.

    Parameters
    ----------
    scheduler : whose policy and threshold say the order.
    run : runs a command of Slurm.
    squeue, scontrol : paths of these.
    noted : is told of jobs, and the nice of each, before their priorities are set.

    Raises
    ------
    HpcgymError : an order that is not known of a queue alone.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        run: Run,
        squeue: str,
        scontrol: str,
        noted: Callable[[Mapping[str, int]], None] = lambda nice: None,
    ) -> None:
        self._rules = order_rules(scheduler)
        self._run, self._squeue, self._scontrol, self._noted = run, squeue, scontrol, noted
        self._first: int | None = None
        self._nice: dict[str, int] = {}

    def ask(self, now: int, *, sets: bool = True) -> Asked:
        """Look at the queue, and set the priorities that must change.

        Parameters
        ----------
        now : [s] since 1970.
        sets : False: nothing is set.

        Raises
        ------
        HpcgymError : Slurm does not answer, or does not let priorities be set.
        """
        told = self._said([self._squeue, "-h", "-t", "PD", "-o", FORMAT])
        queue = self._with_nice(read_queue(told, self._first))
        if queue.ids:
            self._first = int(queue.jobs.first_submit_s)
        # a job may have been submitted by a clock somewhat ahead of this one
        last = int(queue.jobs.submit_time.max(initial=0))
        order = order_of(queue.jobs, self._rules, max(now, last)).tolist()
        present = dict(zip(queue.ids, queue.priority.tolist(), strict=True))
        changed = changes([queue.ids[row] for row in order], present)
        if changed and sets:
            self._noted({job: self._nice.get(job, 0) for job in changed})
            self._set(changed)
        return Asked(now, queue, order, changed)

    def _with_nice(self, queue: Queue) -> Queue:
        """Return a queue whose jobs have their nice, which Slurm forgets when a priority is set."""
        told = dict(zip(queue.ids, queue.jobs.nice.tolist(), strict=True))
        self._nice |= {job: nice for job, nice in told.items() if nice}
        nice = [self._nice.get(job, 0) for job in queue.ids]
        return queue._replace(jobs=queue.jobs.with_columns(nice=np.array(nice, np.int64)))

    def _set(self, changed: dict[str, int]) -> None:
        """Set priorities, the highest first."""
        lines = [f"update jobid={job} priority={value}\n" for job, value in changed.items()]
        status, _, wrong = self._run([self._scontrol], "".join(lines))
        said = [line for line in wrong.splitlines() if not any(one in line for one in _GONE)]
        if status and said:
            raise HpcgymError(f"scontrol does not set priorities: {said[0].strip()}")

    def _said(self, command: Sequence[str]) -> str:
        status, out, wrong = self._run(command, "")
        if status:
            raise HpcgymError(f"{os.path.basename(command[0])} failed: {_line(wrong)}")
        return out


def _line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else "it says nothing"


def find_clients() -> tuple[str, str]:
    """Return the paths of squeue and scontrol.

    Raises
    ------
    HpcgymError : Slurm's commands are not installed; the message says how to install them.
    """
    found = [shutil.which(name) for name in ("squeue", "scontrol")]
    for name, path in zip(("squeue", "scontrol"), found, strict=True):
        if path is None:
            raise HpcgymError(f"to drive Slurm needs {name}, which is not installed: {INSTALL}")
    return str(found[0]), str(found[1])


def run_command(command: Sequence[str], given: str) -> tuple[int, str, str]:
    """Run a command of Slurm; see :data:`Run`."""
    done = subprocess.run(
        command, input=given, env={**os.environ, **VARIABLES}, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


@contextmanager
def driven(scheduler: Scheduler, run: Run = run_command) -> Iterator[Driver]:
    """Drive the Slurm that this machine's commands talk to, while the block lasts.

    When it ends, however it does, all jobs whose priorities were set get Slurm's own again: a
    process of its own waits for the end of this one.

    Parameters
    ----------
    scheduler : whose policy and threshold say the order.
    run : runs a command of Slurm.

    Raises
    ------
    HpcgymError : Slurm is not installed, or an order that is not known of a queue alone.
    """
    order_rules(scheduler)  # which says what is wrong before anything begins
    squeue, scontrol = find_clients()
    command = [sys.executable, "-I", "-S", giving_back.__file__, squeue, scontrol, str(LOWEST)]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, text=True)
    assert guard.stdin is not None
    told = guard.stdin

    def note(nice: Mapping[str, int]) -> None:
        try:
            told.write("".join(f"{job} {one}\n" for job, one in nice.items()))
            told.flush()
        except BrokenPipeError:
            raise HpcgymError(
                "the process that gives jobs back to Slurm's own priorities has ended: nothing more"
                " is set, and `scontrol release` gives them back"
            ) from None

    try:
        yield Driver(scheduler, run, squeue, scontrol, note)
    finally:
        guard.communicate()  # closes its input, at whose end it gives the jobs back


def look(scheduler: Scheduler) -> Asked:
    """Return what would be set now, and set nothing.

    Raises
    ------
    HpcgymError : as of :func:`driven`.
    """
    order_rules(scheduler)
    return Driver(scheduler, run_command, *find_clients()).ask(int(time.time()), sets=False)


def drive(scheduler: Scheduler, every_s: int, tell: Callable[[Asked], None]) -> None:
    """Drive Slurm for ever: until this is interrupted, or Slurm does not answer.

    Parameters
    ----------
    scheduler : whose policy and threshold say the order.
    every_s : from one look at the queue to the next [s].
    tell : is told what was done each time.

    Raises
    ------
    HpcgymError : as of :func:`driven`; Slurm does not answer, or does not let priorities be set.
    """
    with driven(scheduler) as driver:
        while True:
            tell(driver.ask(int(time.time())))
            time.sleep(every_s)
