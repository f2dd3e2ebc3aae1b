"""What is known of a machine at a time: jobs that run, jobs that wait, jobs that have ended."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning, warn_caller
from hpcgym.schedule.result import Result
from hpcgym.scheduler.restrictions import second_of
from hpcgym.simulation.continued import continuations
from hpcgym.units import DAY_S, duration, in_seconds
from hpcgym.words import counted
from hpcgym.workload.columns import MISSING
from hpcgym.workload.extracts import jobs_at, whole_seconds
from hpcgym.workload.load import jobs_and_machine
from hpcgym.workload.model import Initial, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    """

    jobs: Workload
    cluster: Cluster

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
    source: Result | Workload | str | os.PathLike[str] | pd.DataFrame,
    at: float | str,
    *,
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    processors: int | None = None,
) -> MachineState:
    """Return what was known of a machine at a time, by a log or by a simulation.

    Parameters
    ----------
    source : what :func:`hpcgym.simulate` returned: the scheduler's own state, such as its
        reservations and what it has learned, is known then, too. Or a log, as
        :func:`hpcgym.load_workload` takes it, with recorded waits and run times; -1 of jobs that
        had not started, or ended, when the log was written: so it may be the log of now. A file is
        read with these (``clean="unfinished"``), such as a dump of ``sacct`` in which jobs are
        RUNNING or PENDING.
    at : the time, [s] of the log's clock, or a text such as ``"84d"`` or ``"2024-03-05T08:00"``.
    cluster, processors : the machine of a log, as :func:`hpcgym.simulate` takes it.

    Returns
    -------
    state : just before that second.

    Raises
    ------
    HpcgymError : a result that :func:`hpcgym.continued` refuses, or a machine for one.
    WorkloadError : no such time; a log that does not tell when jobs ran.

    Examples
    --------
    >>> import hpcgym
    >>> result = hpcgym.simulate("lublin:jobs=500,processors=64,load=1.1,seed=0", "easy")
    >>> hpcgym.snapshot(result, at="2d")  # doctest: +ELLIPSIS
    MachineState(lublin... at 172800 s: ... jobs run on 64 processors, ... wait, ... have ended)
    """
    if isinstance(source, Result):
        if cluster is not None or processors is not None:
            raise HpcgymError("a result knows its machine: give neither cluster nor processors")
        return next(snapshots(source, [time_of(at, source.workload)]))
    jobs, machine = jobs_and_machine(source, cluster, processors, clean="unfinished")
    time = time_of(at, jobs)
    _warn_of_unknown(jobs, time)
    return state_of_log(jobs, time, machine)


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
    elapsed = np.where(part.initial.start >= 0, time - part.initial.start, 0)  # type: ignore[union-attr]
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
