"""A Slurm of one's own on loopback, under the virtual clock; nothing is left of it."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from hpcgym.dates import Clock, utc_text
from hpcgym.drive.driving import Driver
from hpcgym.errors import HpcgymError
from hpcgym.machine import Partition
from hpcgym.replay import cleanup
from hpcgym.replay.accounts import AccountLimits, write_limits
from hpcgym.replay.configuration import RECORDS, PrivateNodes, SlurmNode, gres_conf, slurm_conf
from hpcgym.replay.native import (
    SYSTEM,
    Conductor,
    Programs,
    find_programs,
    kept_ports,
    library,
    version_of,
)
from hpcgym.scheduler.rules import Scheduler
from hpcgym.slurm.programs import VARIABLES, SlurmPrograms
from hpcgym.units import DAY_S, MINUTE_S

# --- What Slurm tells of jobs that have ended -----------------------------------------------------

_FIELD = re.compile(r"(\w+)=(\S*)")


class Record(NamedTuple):
    """What Slurm tells of a job that has ended; times are those of the jobs.

    Attributes
    ----------
    name : the job's.
    state : such as ``COMPLETED``.
    submit, start, end : [s].
    nodes : list of nodes, such as ``n[1-3,7]``.
    processors : how many it had on each of them; empty: not told.
    """

    name: str
    state: str
    submit: int
    start: int
    end: int
    nodes: str
    processors: tuple[int, ...] = ()


def read_records(text: str, zero_s: int, shares: str = "") -> list[Record]:
    """Return the jobs in a file of Slurm's plugin ``jobcomp/filetxt``, in its order.

    Parameters
    ----------
    zero_s : the time since 1970 from which times are counted.
    shares : lines of the name of a job, and its processors on each node, such as ``job-7 4(x2),1``.

    Raises
    ------
    HpcgymError : a line without a field that it must have, or an invalid time.
    """
    records, clock = [], Clock("UTC")
    had = dict(line.split() for line in shares.splitlines())
    for line in text.splitlines():
        fields = dict(_FIELD.findall(line))
        try:
            name, state, nodes = (fields[key] for key in ("Name", "JobState", "NodeList"))
            submit, start, end = (clock.seconds(fields[key]) - zero_s for key in _TIMES)
            processors = _each(had.get(name, ""))
            records.append(Record(name, state, submit, start, end, nodes, processors))
        except (KeyError, ValueError) as error:
            raise HpcgymError(f"Slurm's record of a job is not understood: {line}") from error
    return records


_TIMES = ("SubmitTime", "StartTime", "EndTime")
_SHARE = re.compile(r"(\d+)(?:\(x(\d+)\))?")


def _each(text: str) -> tuple[int, ...]:
    """Return the numbers of a text such as ``4(x2),1``."""
    return tuple(int(n) for n, times in _SHARE.findall(text) for _ in range(int(times or 1)))


# --- A Slurm of one's own on loopback, under the virtual clock ------------------------------------

#: 2026-01-01, when the clock begins. Slurm looks around each second from then on: in the middle of
#: the seconds at whose beginnings jobs are submitted, so that a job which fits starts in the same.
_BEGIN_S = 1_767_225_600.5
_READY_S = 300  # of the clock in which all nodes must be there
_LAST_S = 120  # of the clock for what is to be done after the last job


class Closed(NamedTuple):
    """Nodes that are closed for maintenance, and from when to when [s of the jobs' times]."""

    span: tuple[int, int]
    nodes: Sequence[int]


@contextmanager
def private_slurm(
    nodes: tuple[SlurmNode, ...],
    scheduling: dict[str, str],
    every_s: int,
    partitions: tuple[Partition, ...] = (),
    even_s: int = MINUTE_S,
    limits: AccountLimits | None = None,
) -> Iterator[PrivateSlurm]:
    """Run a private Slurm; when the block ends, however it does, nothing is left of it.

    A process of its own waits for the end of this one, and cleans up if it was killed.

    Parameters
    ----------
    nodes : its machine.
    scheduling : settings, as :func:`hpcgym.replay.configuration.scheduling_of` returns them.
    every_s : how often Slurm backfills [s]; 0 where nothing depends on when it does.
    partitions : beside that of all nodes.
    even_s : second 0 of the jobs' times is a whole multiple of so many seconds of the clock, since
        Slurm rounds times.
    limits : of QOS and accounts; None: there are no accounts.

    Raises
    ------
    HpcgymError : Slurm or a C compiler is not installed, or it does not come up.
    """
    programs = find_programs()
    library("clock"), library("conductor")  # what is missing is said before anything runs
    with cleanup.swept_folder() as folder, kept_ports(len(nodes) + 2) as port:
        machine = PrivateNodes(nodes, port, partitions)
        slurm = PrivateSlurm(programs, folder, machine, scheduling, every_s, even_s, limits)
        try:
            slurm.wait_until_ready()
            yield slurm
        finally:
            slurm.stop()


class PrivateSlurm:
    """slurmctld, and a slurmd for each node, under a clock that is moved as far as is asked for.

    Attributes
    ----------
    version : such as ``Slurm 22.05.8``.
    zero_s : the time of the clock from which jobs' times are counted.
    asked : is called when a job is about to end, and when it has, while the clock stands still; or
        None.
    """

    def __init__(
        self,
        programs: Programs,
        folder: Path,
        machine: PrivateNodes,
        scheduling: dict[str, str],
        every_s: int,
        even_s: int,
        limits: AccountLimits | None,
    ) -> None:
        self.version = version_of(programs)
        self.zero_s = 0
        self.asked: Callable[[], object] | None = None
        self._every_s, self._even_s = every_s, even_s
        self._programs, self._folder = programs, folder
        self._machine = machine
        self._clock = Conductor(folder / cleanup.CLOCK_FILE, _BEGIN_S)
        user = self._user = pwd.getpwuid(os.geteuid()).pw_name
        self._shares = folder / "shares.txt"
        (folder / "state").mkdir()
        tracked = None
        if limits is not None:
            tracked = limits.tracked(machine.partitions)
            write_limits(folder / "state", limits, tracked, user, os.geteuid(), int(_BEGIN_S))
        conf = folder / "slurm.conf"
        conf.write_text(slurm_conf(folder, machine, user, scheduling, tracked))
        (folder / "gres.conf").write_text(gres_conf(machine))
        self._environment = {
            "PATH": SYSTEM,
            "LC_ALL": "C",
            "TZ": "UTC",
            "SLURM_CONF": str(conf),
            cleanup.CLOCK: str(self._clock.file),
            "LD_PRELOAD": str(library("clock")),
        }
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._jobs = 0
        self._longest_s = 0
        self._start("slurmctld", programs.slurmctld, "-D", "-c")
        stepd = ["-d", programs.stepd] if programs.stepd else []
        for name in self._machine.names:
            self._start(f"slurmd-{name}", programs.slurmd, "-D", "-N", name, *stepd)

    def _start(self, name: str, *command: str) -> None:
        with Path(self._folder, f"{name}.out").open("wb") as out:
            # by what it is called slurmctld tells that it is slurmctld
            called = Path(command[0]).name.removesuffix("-wlm")
            self._daemons[name] = subprocess.Popen(
                (called, *command[1:]),
                executable=command[0],
                env=self._environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self) -> None:
        """End all daemons."""
        for daemon in self._daemons.values():
            daemon.kill()
        for daemon in self._daemons.values():
            daemon.wait()
        self._clock.close()

    def wait_until_ready(self) -> None:
        """Move the clock until all nodes are idle.

        Raises
        ------
        HpcgymError : a daemon has ended, or the nodes do not come.
        """
        states = ""
        while self._clock.now_s < _BEGIN_S + _READY_S:
            self._check_daemons()
            self._clock.advance(self._clock.now_s + 1)
            with suppress(HpcgymError):  # slurmctld does not answer yet
                states = self.run(self._programs.sinfo, "-h", "-o", "%T %D").strip()
            if states == f"idle {len(self._machine.nodes)}":
                return
            time.sleep(0.02)
        raise HpcgymError(
            f"Slurm's nodes must be idle, and are {states or 'not there'}{self._last_words()}"
        )

    def begin(self, time_s: int, closed: Iterable[Closed] = ()) -> None:
        """Let jobs' times go on from this one [s], a minute from now or later.

        Parameters
        ----------
        closed : which nodes are reserved for maintenance, and when.

        Raises
        ------
        HpcgymError : Slurm does not take a reservation.
        """
        looks_s = 2 * self._every_s  # by then Slurm has looked at its queue, whatever happened
        begin_s = self._clock.now_s + looks_s
        zero_s = int(begin_s) + MINUTE_S - time_s
        self.zero_s = -(-zero_s // self._even_s) * self._even_s
        for window in closed:
            self._reserve(window)
        self._clock.advance(begin_s)
        self._clock.linger(looks_s + 4)
        self._clock.submitted(0)

    def _reserve(self, closed: Closed) -> None:
        """Close nodes for maintenance; Slurm takes no time that is over."""
        first_s, last_s = (time_s + self.zero_s for time_s in closed.span)
        first_s = max(first_s, self.now_s + 1)
        if last_s <= first_s:
            return
        names = ",".join(self._machine.names[node] for node in closed.nodes)
        command = [self._programs.scontrol, "create", "reservation", f"Nodes={names}"]
        command += [f"StartTime={utc_text(first_s)}", f"EndTime={utc_text(last_s)}"]
        self.run(*command, f"Users={self._user}", "Flags=MAINT,IGNORE_JOBS")

    def run(self, *command: str) -> str:
        """Run a command of Slurm at the time of the clock, and return what it prints.

        Raises
        ------
        HpcgymError : it fails.
        """
        return self._clock.run(command, self._environment)

    def tried(self, command: Sequence[str], given: str = "") -> tuple[int, str, str]:
        """Run a command as :meth:`run`; return its status, what it prints and what is wrong.

        ``given`` is its standard input.
        """
        return self._clock.tried(command, {**self._environment, **VARIABLES}, given)

    def advance(self, time_s: int) -> None:
        """Move the clock to a time of the jobs [s], with a stop whenever jobs have ended.

        Raises
        ------
        HpcgymError : Slurm has ended, or does not come to rest.
        """
        # who looked around late, after a jump, does so in the middle of seconds from there on
        for until_s in (self.zero_s + time_s - 0.5, self.zero_s + time_s):
            while self.asked is not None and self._clock.now_s < until_s:
                self._advance_to_an_end(until_s, self.asked)
            self._clock.advance(until_s)
        self._check_daemons()

    def _advance_to_an_end(self, until_s: float, asked: Callable[[], object]) -> None:
        """Move the clock to a time, or until a job has ended, with a stop before it does.

        When it ends, Slurm serves its queue at once: the order of then must be there before.
        """
        ended = self._clock.ended
        if self._clock.advance(until_s, ended + 1, before=True):
            asked()
            self._clock.advance(until_s, ended + 1)
        if self._clock.ended > ended:
            asked()

    def submit(self, name: str, asks: Sequence[str], requested_s: int, run_s: int) -> None:
        """Submit a job now.

        Parameters
        ----------
        name : of the job.
        asks : what ``sbatch`` is told of it, such as ``["-n", "4"]``.
        requested_s : its requested time [s], whole minutes.
        run_s : how long it runs [s].

        Raises
        ------
        HpcgymError : Slurm does not take it.
        """
        limit = str(requested_s // MINUTE_S)
        command = [self._programs.sbatch, "-Q", "-J", name, "-t", limit, *asks]
        command += ["-o", "/dev/null", "-D", "/"]
        tells = f'echo "$SLURM_JOB_NAME $SLURM_JOB_CPUS_PER_NODE" >> {self._shares}'
        command += [f"--wrap={tells}; exec {self._programs.sleep} {run_s}"]
        self._clock.submitted(1)
        self.run(*command)
        self._jobs += 1
        self._longest_s = max(self._longest_s, run_s)

    @property
    def now_s(self) -> int:
        """The time of the clock [s], the second that it is in."""
        return int(self._clock.now_s)

    def driver(self, scheduler: Scheduler) -> Driver:
        """Return what sets the priorities of the jobs here, in the order of a policy."""
        programs = self._programs
        return Driver(scheduler, self.tried, programs.squeue, programs.scontrol, user="%k")

    @property
    def time_s(self) -> int:
        """The time of the jobs [s]."""
        return self.now_s - self.zero_s

    @property
    def left(self) -> int:
        """How many jobs have been submitted that have not ended."""
        return self._jobs - self._clock.ended

    def looking(self) -> SlurmPrograms:
        """Return the programs that look at this Slurm; whose a job is, its comment tells."""
        return SlurmPrograms(os.path.dirname(self._programs.squeue), self.tried, user="%k")

    def finish(self) -> None:
        """Move the clock until all jobs have ended, and Slurm has told of them.

        Raises
        ------
        HpcgymError : Slurm has ended, or does not come to rest.
        """
        since_s = self._clock.now_s
        while self._clock.ended < self._jobs:
            before = self._clock.ended
            until_s = self._clock.now_s + DAY_S
            if self.asked is None:
                self._clock.advance(until_s, self._jobs)
            else:
                self._advance_to_an_end(until_s, self.asked)
            self._check_daemons()
            if self._clock.ended > before:
                since_s = self._clock.now_s
                continue
            left = self._jobs - before
            if not self._clock.running:
                raise HpcgymError(
                    f"{left} jobs wait, and Slurm started none in a day{self._last_words()}"
                )
            # a job that something else has killed never says that it ended
            if self._clock.now_s - since_s > self._longest_s + DAY_S:
                raise HpcgymError(
                    f"{left} jobs are left on Slurm, and none ends{self._last_words()}"
                )
        self._clock.advance(self._clock.now_s + _LAST_S)

    def records(self) -> list[Record]:
        """Return what Slurm tells of the jobs that have ended.

        Raises
        ------
        HpcgymError : it tells nothing.
        """
        text, shares = (
            file.read_text() if file.exists() else ""
            for file in (self._folder / RECORDS, self._shares)
        )
        return read_records(text, self.zero_s, shares)

    def _check_daemons(self) -> None:
        for name, daemon in self._daemons.items():
            if daemon.poll() is not None:
                raise HpcgymError(f"{name} has ended{self._last_words(name)}")

    def _last_words(self, name: str = "slurmctld") -> str:
        """Return the last line that a daemon wrote."""
        for ending in ("log", "out"):
            with suppress(OSError):
                lines = (self._folder / f"{name}.{ending}").read_text().splitlines()
                if lines:
                    return f": {lines[-1]}"
        return ""
