"""What is known of a machine at a time: jobs that run, jobs that wait, jobs that have ended."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning, warn_caller
from hpcgym.machine.pool import MOST_PROCESSORS
from hpcgym.schedule.result import Result
from hpcgym.scheduler.restrictions import second_of
from hpcgym.simulation.continued import continuations
from hpcgym.slurm.looks import SlurmLook, look
from hpcgym.slurm.present import configured, open_now, present, warn_misread, with_parts
from hpcgym.slurm.programs import SlurmPrograms
from hpcgym.slurm.queue import MOST_ENDED, QueuedJob, ended_of, jobs_told, latest_ended
from hpcgym.units import DAY_S, duration, in_seconds
from hpcgym.words import counted
from hpcgym.workload.columns import MISSING
from hpcgym.workload.extracts import jobs_at, whole_seconds
from hpcgym.workload.load import jobs_and_machine, load_workload
from hpcgym.workload.model import Initial, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

    from hpcgym.machine.pool import Cluster


@dataclass(frozen=True, eq=False)
class MachineState:
    """What is known of a machine just before a time: events of that second are still to come.

    It has nothing that nobody can know then: no run times of jobs that have not ended, no starts of
    jobs that wait, no jobs to come.

    Attributes
    ----------
    jobs : that run or wait, in the order of submission. ``run_time`` is -1 of all of them,
        ``wait_time`` of those that wait. ``jobs.initial`` has the time, the starts of jobs that
        run, and the jobs that have ended.
    cluster : the machine.
    look : what a Slurm told that runs, of which this is the state, else None.
    """

    jobs: Workload
    cluster: Cluster
    look: SlurmLook | None = None

    def __post_init__(self) -> None:
        if self.jobs.initial is None:
            raise HpcgymError("a state has jobs that run or wait at a time: hpcgym.snapshot")

    def __repr__(self) -> str:
        running = int(self.running.sum())
        return (
            f"MachineState({self.jobs.name}: {running:,} jobs run on {self.cluster.processors:,}"
            f" processors, {len(self.jobs) - running:,} wait, {len(self.past):,} have ended)"
        )

    @property
    def _initial(self) -> Initial:
        assert self.jobs.initial is not None
        return self.jobs.initial

    @property
    def time(self) -> int:
        """[s] of the log's clock."""
        return self._initial.begin

    @property
    def start(self) -> NDArray[np.int64]:
        """When jobs that run started, (n_jobs,) [s]; -1 of those that wait."""
        return self._initial.start

    @property
    def past(self) -> Workload:
        """The jobs that have ended, with their waits and run times."""
        return self._initial.past

    @property
    def running(self) -> NDArray[np.bool_]:
        """Whether a job runs, (n_jobs,); the others wait."""
        return self._initial.running


def snapshot(
    source: Result | Workload | str | os.PathLike[str] | pd.DataFrame | None = None,
    at: float | str | None = None,
    *,
    slurm: bool | str | os.PathLike[str] | SlurmPrograms | None = None,
    past: Workload | str | os.PathLike[str] | pd.DataFrame | None = None,
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    processors: int | None = None,
) -> MachineState:
    """Return what was known of a machine at a time, by a log or by a simulation; or is, by Slurm.

    Parameters
    ----------
    source : what :func:`hpcgym.simulate` returned: the scheduler's own state, such as its
        reservations and what it has learned, is known then, too. Or a log, as
        :func:`hpcgym.load_workload` takes it, with recorded waits and run times; -1 of jobs that
        had not started, or ended, when the log was written: so it may be the log of now. A file is
        read with these (``clean="unfinished"``), such as a dump of ``sacct`` in which jobs are
        RUNNING or PENDING.
    at : the time, [s] of the log's clock, or a text such as ``"84d"`` or ``"2024-03-05T08:00"``.
    slurm : in place of a log and a time the Slurm that runs here, True; or a folder of its programs
        squeue, sinfo, sdiag and scontrol. They only look. Jobs that are held are left out.
    past : of Slurm, a log of jobs that have ended, such as of ``sacct``, with names of users.
    cluster, processors : the machine of a log, as :func:`hpcgym.simulate` takes it. That of Slurm
        is told by its slurm.conf, if no ``cluster`` is given.

    Returns
    -------
    state : just before that second. That of Slurm is on a clock of seconds since 1970.

    Raises
    ------
    HpcgymError : a result that :func:`hpcgym.continued` refuses, or a machine for one; a Slurm that
        does not answer.
    WorkloadError : no such time; a log that does not tell when jobs ran.

    Examples
    --------
    >>> import hpcgym
    >>> result = hpcgym.simulate("lublin:jobs=500,processors=64,load=1.1,seed=0", "easy")
    >>> hpcgym.snapshot(result, at="2d")  # doctest: +ELLIPSIS
    MachineState(lublin... at 172800 s: ... jobs run on 64 processors, ... wait, ... have ended)
    """
    if slurm:
        if source is not None or at is not None or processors is not None:
            raise HpcgymError("a state of Slurm is of now: give no log, time or processors")
        programs = slurm if isinstance(slurm, SlurmPrograms) else _programs(slurm)
        return SlurmStates(programs, cluster, past).now()
    if source is None or at is None:
        raise HpcgymError("snapshot: of a log or a result, and a time; or of slurm=True")
    if past is not None:
        raise HpcgymError("past: of slurm=True; a log and a result have their own")
    if isinstance(source, Result):
        if cluster is not None or processors is not None:
            raise HpcgymError("a result knows its machine: give neither cluster nor processors")
        return next(snapshots(source, [time_of(at, source.workload)]))
    jobs, machine = jobs_and_machine(source, cluster, processors, clean="unfinished")
    time = time_of(at, jobs)
    _warn_of_unknown(jobs, time)
    return state_of_log(jobs, time, machine)


def _programs(slurm: Any) -> SlurmPrograms:
    """Return the programs of a folder, or those on the PATH."""
    return SlurmPrograms(None if slurm is True else os.fspath(slurm))


class SlurmStates:
    """States of a Slurm that runs, one after the other; it remembers the jobs that have ended.

    Parameters
    ----------
    programs : that are asked.
    cluster, past : as of :func:`snapshot`.
    ended : whether Slurm is asked for the jobs that it remembers.

    Attributes
    ----------
    machine : of Slurm: all nodes before the first look, then those that were open at the last one.
    ended : the jobs that had ended at the last look, by a key that no other job has.

    Raises
    ------
    HpcgymError : Slurm does not answer, or no machine is known.
    WorkloadError : a past that cannot be read.
    """

    def __init__(
        self,
        programs: SlurmPrograms,
        cluster: Cluster | str | int | os.PathLike[str] | None = None,
        past: Workload | str | os.PathLike[str] | pd.DataFrame | None = None,
        *,
        ended: bool = True,
    ) -> None:
        self.programs, self._asks_ended = programs, ended
        self.machine = self._whole = configured(programs, cluster)
        log = past
        if not (log is None or isinstance(log, Workload)):
            log = load_workload(log, processors=MOST_PROCESSORS, clean="none")
        self._past = {} if log is None else jobs_told(log)
        self.ended: dict[str, QueuedJob] = {}
        self._warned_of_cut = False

    def remember(self, ended: Mapping[str, QueuedJob]) -> None:
        """Learn of jobs that have ended, by keys of their own."""
        self._past |= ended

    def now(self) -> MachineState:
        """Look at Slurm, and return what is known.

        Raises
        ------
        HpcgymError : it does not answer.
        """
        slurm = look(self.programs, parts=self._whole.shares_nodes, ended=self._asks_ended)
        warn_misread(slurm)
        self.machine = open_now(self._whole, self.programs)
        self.ended = ended_of(with_parts(seen, slurm, self.machine) for seen in slurm.jobs)
        self._past |= self.ended
        known = latest_ended(self._past)
        self._warn_of_cut(len(self._past) - len(known))
        self._past = known
        return MachineState(present(slurm, self.machine, self._past), self.machine.cluster, slurm)

    def _warn_of_cut(self, jobs: int) -> None:
        """Warn once of jobs of the past that are left out: then each that ends costs one."""
        if jobs and not self._warned_of_cut:
            self._warned_of_cut = True
            warn_caller(
                f"{counted(jobs, 'job')} of the past {'is' if jobs == 1 else 'are'} left out, which"
                f" ended first: the last {MOST_ENDED:,} are known",
                WorkloadWarning,
            )


def _warn_of_unknown(jobs: Workload, time: int) -> None:
    """Warn of a log that does not tell what a forecast of this time needs.

    Raises
    ------
    WorkloadError : a time before the log.
    """
    if len(jobs) == 0:
        return
    first, last = int(jobs.submit_time[0]), int(jobs.submit_time[-1])
    if time < first:
        raise WorkloadError(f"at: {time} s is before the first submission, {first} s")
    dropped = jobs.cleaning.get("dropped: no run time", 0)
    if dropped and time > last - DAY_S:  # it may be the log of now
        warn_caller(
            f"{counted(dropped, 'job')} of {jobs.name} had no run time and were dropped;"
            " if they run or wait, load the log with clean='unfinished'",
            WorkloadWarning,
        )
    if time - last > DAY_S:
        warn_caller(
            f"{time} s is {duration(time - last)} after the last submission of {jobs.name}: nothing"
            " is known of the time between",
            WorkloadWarning,
        )
    elif time - first < 14 * DAY_S:
        warn_caller(
            f"{jobs.name} tells of {duration(time - first)} before {time} s: of less than two weeks"
            " few jobs to come are known, and starts may be forecast too early",
            WorkloadWarning,
        )


def snapshots(result: Result, times: Sequence[int]) -> Iterator[MachineState]:
    """Yield the state of a simulation at some rising times [s], from one simulation."""
    for part in continuations(result, [(time, time) for time in times]):
        yield MachineState(_unknown(part), result.cluster)


def state_of_log(jobs: Workload, time: int, cluster: Cluster) -> MachineState:
    """Return the state at a time [s] of a log, whose jobs may not have started or ended yet.

    Raises
    ------
    WorkloadError : as :func:`hpcgym.workload.extracts.jobs_at`.
    """
    part = jobs_at(jobs, time)
    requested = part.requested_time
    # one that runs on beyond its limit may end at any time
    began = part.initial.start  # type: ignore[union-attr]
    elapsed = np.where(began >= 0, time - began, 0)
    beyond = (requested > 0) & (elapsed > requested)
    if beyond.any():
        part = part.with_columns(requested_time=np.where(beyond, elapsed + 1, requested))
    return MachineState(_unknown(part), cluster)


def _unknown(part: Workload) -> Workload:
    """Return jobs without what is not known of them yet."""
    initial = part.initial
    assert initial is not None
    n, running = len(part), initial.running
    missing = np.broadcast_to(np.int64(MISSING), n)
    wait = np.where(running, part.wait_time, MISSING)
    jobs = part.with_columns(run_time=missing, wait_time=wait)
    none_killed = np.broadcast_to(np.False_, n)
    name = f"{initial.past.name.removesuffix(f' before {initial.begin}')} at {initial.begin} s"
    return replace(jobs, name=name, killed=none_killed)


def time_of(at: Any, jobs: Workload) -> int:
    """Return a time of a log's clock in whole seconds.

    Raises
    ------
    WorkloadError, HpcgymError : it is no time of that clock.
    """
    if isinstance(at, str) and in_seconds(at) == at:
        try:
            return second_of(at, jobs.header, f"at {at!r}")
        except ValueError as error:
            raise WorkloadError(f"at {at!r}: {error}, nor a time such as 84d") from None
    return whole_seconds("at", at, 0)
