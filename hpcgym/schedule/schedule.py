"""A schedule: when each job started, on what, and what follows from that for each job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.machine.pool import Cluster
from hpcgym.machine.power import Floats, unslowed
from hpcgym.schedule.runs import Allocation, Coschedule, of_the_run_before
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.extracts import decided, first_time
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym.schedule.runs import LostRuns, NodeStates
    from hpcgym.scheduler.dispatchers.asking import Dispatching
    from hpcgym.scheduler.estimates.learning import Learned
    from hpcgym.scheduler.limits import Limit

Ints = NDArray[np.int64]

#: What made the schedule of a log's own past.
RECORDED = "recorded"
T = TypeVar("T")
S = TypeVar("S", bound="Schedule")


def check_not_past(name: str) -> None:
    """Raise an HpcgymError if a scheduler is called as the past of the log is in tables."""
    if name == RECORDED:
        raise HpcgymError(f"{name!r} is the row of the log's own past: choose another name")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False, repr=False)
class Schedule:
    """A schedule: when each job started, and why. Arrays are read-only, in order of submission.

    Attributes
    ----------
    workload, cluster, scheduler : what was simulated, on what, by which rules.
    start : (n_jobs,) int64 [s] start times.
    run_time : (n_jobs,) int64 [s] run times; a job is killed at its requested time, or with the
        correction "kill" at its predicted one.
    predicted_run_time : (n_jobs,) int64 [s] the estimate at submission, before any correction.
    reserved_start : (n_jobs,) int64 [s] the first start time promised by a reservation, -1 if none.
    backfilled : (n_jobs,) bool; started at a pass that left a job waiting which came earlier in
        the queue.
    idle_seconds : processor seconds of processors without a job, by what they did: "idle", "off",
        "switching_off", "switching_on"; None where all were idle.
    outside : whether the order of the queue came from outside, as in an environment, and not from
        the scheduler's policy.
    outside_orders : whether nothing else came from outside: jobs were served in that order by the
        scheduler's other rules, and none was kept from starting.
    policy_run_time : (n_jobs,) int64 [s] the predictions that the policy looked at, where they were
        learned; else None.
    candidate_run_time : (n_jobs,) int64 [s] the same of those by which relaxed backfilling judged
        jobs; else None.
    learned : what was learned of run times, for :func:`hpcgym.simulate` to go on with; else None.
    allocation : the nodes of each job, on machines that have nodes; else None.
    dispatcher : the dispatcher that was asked, with whatever it has kept; else None.
    dispatching : when the dispatcher was asked, and how late its answers came, where that takes
        time (``dispatch_time``); else None.
    frequency : (n_jobs,) int64, the level at which each job runs, 0 being the lowest; None where
        all run at the highest. ``run_time`` is then that of the highest times the slowdown of the
        level (:func:`hpcgym.schedule.schedule.job_slowdowns`), whole seconds, rounded up.
    node_states : when nodes are off, being switched, or down; None where all are on.
    limits : caps and budgets that were to be kept; None where jobs may share nodes.
    coschedule : where jobs share nodes and speed each other up; None elsewhere. ``start``,
        ``run_time``, ``reserved_start`` and what follows from them are float64 then.
    lost : runs that failures of nodes ended, and these failures, or that other jobs ended
        (``preemption``); None where neither happens, nor where they are suspended.
        ``start``, ``run_time``, ``allocation`` and ``backfilled`` are those of the last run of each
        job, ``reserved_start`` is the first promise, and ``wait`` goes from the submission to the
        last start.
    pieces : runs up to when other jobs suspended them (``preemption``), by job and time; None where
        no job can be suspended. ``start`` is then that of the first piece of each job, ``run_time``
        that of all its pieces, and ``wait`` the time from its submission to its end in which it
        does not run.
    suspended : (n_jobs,) int64 [s] for how long each job was suspended; None where none can be.
    replayed_on : the scheduler that made the schedule, such as "Slurm 22.05.8", where it was not
        simulated (:func:`hpcgym.replay.replay_on_slurm`); else "". ``scheduler`` is what it was set
        to, and ``reserved_start`` is -1: it does not tell what it promised. Where a policy drove
        it, ``backfilled`` is False.
    given : the jobs as they were given, where the schedule says when they were submitted, so that
        ``workload`` has them as they came (``dependencies``, quotas of submitted jobs); else None.
    ended : (n_jobs,) bool, which jobs have ended, where others are still to start, as amid an
        episode of an environment: these have start -1. Metrics are of those that have ended, and
        those of the machine are nan. None: the schedule is whole.
    """

    workload: Workload
    cluster: Cluster
    scheduler: Scheduler
    start: NDArray[np.int64]
    run_time: NDArray[np.int64]
    predicted_run_time: NDArray[np.int64]
    reserved_start: NDArray[np.int64]
    backfilled: NDArray[np.bool_]
    idle_seconds: Mapping[str, int] | None = None
    outside: bool = False
    outside_orders: bool = False
    policy_run_time: NDArray[np.int64] | None = None
    candidate_run_time: NDArray[np.int64] | None = None
    learned: Learned | None = None
    allocation: Allocation | None = None
    dispatcher: Any = None
    dispatching: Dispatching | None = None
    frequency: NDArray[np.int64] | None = None
    node_states: NodeStates | None = None
    limits: tuple[Limit, ...] | None = None
    coschedule: Coschedule | None = None
    lost: LostRuns | None = None
    pieces: LostRuns | None = None
    suspended: NDArray[np.int64] | None = None
    replayed_on: str = ""
    given: Workload | None = None
    ended: NDArray[np.bool_] | None = None

    @classmethod
    def of(
        cls,
        workload: Workload,
        cluster: Cluster,
        scheduler: Scheduler,
        schedule: Mapping[str, NDArray[np.int64]],
        idle_seconds: Mapping[str, int] | None = None,
        outside: bool = False,
    ) -> Self:
        """Return the schedule of a simulation, by the columns of its ``schedule``."""
        return cls(
            workload,
            cluster,
            scheduler,
            start=read_only(schedule["start"]),
            run_time=read_only(schedule["run"]),
            predicted_run_time=read_only(schedule["predicted"]),
            reserved_start=read_only(schedule["promised"]),
            backfilled=read_only(schedule["backfilled"] != 0),
            idle_seconds=idle_seconds,
            outside=outside,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.workload!r}, {self.scheduler!r})"

    @property
    def begin(self) -> int:
        """When the schedule begins [s]; see :func:`hpcgym.workload.extracts.first_time`."""
        return first_time(self.workload)

    @cached_property
    def decided(self) -> NDArray[np.bool_]:
        """Which jobs the schedule started, (n_jobs,) bool: not those that ran at the beginning."""
        return read_only(decided(self.workload))

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Which jobs metrics are of, (n_jobs,) bool: ``decided``, and of a part ``ended``."""
        return self.decided if self.ended is None else self.decided & self.ended

    @property
    def from_begin(self) -> Self:
        """What lies after ``begin``: jobs that ran or waited before are submitted or start then.

        The schedule itself if its machine was empty. Energy, and the metrics of the machine, are
        counted from it.
        """
        return self if self.workload.initial is None else self._from_begin

    @cached_property
    def _from_begin(self) -> Self:
        start = np.maximum(self.start, self.begin)
        submit = np.maximum(self.workload.submit_time, self.begin)
        return replace(
            self,
            workload=replace(self.workload, initial=None).with_columns(submit_time=submit),
            start=read_only(start),
            run_time=read_only(self.end - start),
        )

    @cached_property
    def _runs(self) -> tuple[Self, NDArray[np.int64]]:
        return runs_of(self)

    @property
    def interrupted(self) -> LostRuns | None:
        """Runs that ended before their job did: ``lost``, or ``pieces``; None where none can."""
        return self.pieces if self.lost is None else self.lost

    @property
    def runs(self) -> Self:
        """The schedule of all runs, as if each was a job; itself where none can be interrupted.

        A run that follows a lost one is submitted when that was lost. The pieces of a job that was
        suspended are runs, too.
        """
        return self if self.interrupted is None else self._runs[0]

    @property
    def job_of_runs(self) -> Ints | None:
        """The row of the job of each of ``runs``, (n_runs,); None where these are the jobs."""
        return None if self.interrupted is None else self._runs[1]

    @cached_property
    def restarts(self) -> NDArray[np.int64]:
        """How many runs of each job were lost, and begun anew, (n_jobs,) int64.

        By failures of nodes, or because other jobs started (``preemption``).
        """
        job = np.zeros(0, np.int64) if self.lost is None else self.lost.job
        return read_only(np.bincount(job, minlength=len(self.start)))

    @property
    def cancels(self) -> bool:
        """Whether jobs may be stopped by others for good (``preemption``)."""
        rule = self.scheduler.preemption
        return self.lost is not None and rule is not None and rule.mode == "cancel"

    @cached_property
    def cancelled(self) -> NDArray[np.bool_]:
        """Whether another job stopped the job for good, (n_jobs,) bool; it is ``killed`` too."""
        return read_only(cut_short(self) & self.cancels)

    @cached_property
    def lost_core_seconds(self) -> NDArray[np.int64]:
        """What each job had of processors in runs that were lost, (n_jobs,) int64 [core s].

        Of a cancelled job, also in its last.
        """
        seconds = np.zeros(len(self.start), np.int64)
        if self.lost is not None:
            np.add.at(seconds, self.lost.job, self.lost.end - self.lost.start)
        seconds += np.where(self.cancelled, self.run_time, 0)
        return read_only(seconds * self.workload.requested_processors)

    @cached_property
    def end(self) -> NDArray[np.int64]:
        """End times, (n_jobs,) int64 [s]; float64 where jobs share nodes."""
        if self.coschedule is not None:
            return read_only(self.coschedule.end_ticks / self.coschedule.ticks)
        end = self.start + self.run_time
        return read_only(end if self.suspended is None else end + self.suspended)

    @cached_property
    def wait(self) -> NDArray[np.int64]:
        """Waiting times, (n_jobs,) int64 [s]; float64 where jobs share nodes.

        With the time for which a job was suspended.
        """
        if self.coschedule is not None:
            submit = self.workload.submit_time * self.coschedule.ticks
            return read_only((self.coschedule.start_ticks - submit) / self.coschedule.ticks)
        return read_only(self.end - self.run_time - self.workload.submit_time)

    @cached_property
    def full_speed_run_time(self) -> NDArray[np.int64]:
        """Run times at the highest frequency, (n_jobs,) int64 [s]; of killed jobs rounded down.

        Where jobs share nodes, run times on filled nodes of their own.
        """
        if self.coschedule is not None:
            return read_only(self.coschedule.compact_s)
        if self.frequency is None:
            return self.run_time
        return read_only(full_speed_times(self))

    @cached_property
    def killed(self) -> NDArray[np.bool_]:
        """Whether the job was cut, here or when cleaning the workload, (n_jobs,) bool."""
        cut = self.workload.run_time > self.full_speed_run_time
        return read_only(self.workload.killed | cut)

    @cached_property
    def job_speedup(self) -> NDArray[np.float64]:
        """Run time at full speed, compact, over that which the job took, (n_jobs,) float64.

        ELiSE, "Computation method": AppSpeedup.
        """
        return read_only(self.full_speed_run_time / self.run_time)

    @property
    def keeps_books(self) -> bool:
        """Whether energies are those of the books: not all draw the flat powers of processors."""
        cluster = self.cluster
        return (
            any(group.power is not None for group in cluster.groups)
            or bool(cluster.levels)
            or self.frequency is not None
            or self.node_states is not None
            or known_powers(self) is not None
        )


def kept(compute: Callable[[Any], T]) -> Callable[[Schedule], T]:
    """Let what is worked out of a schedule be kept in it: the second time it is there already."""
    name = compute.__name__

    @wraps(compute)
    def known(schedule: Schedule) -> T:
        attributes = vars(schedule)
        if name not in attributes:
            attributes[name] = compute(schedule)
        value: T = attributes[name]
        return value

    return known


# --- How much longer jobs take at the frequencies that they run at --------------------------------


def full_speed_times(result: Schedule) -> NDArray[np.int64]:
    """Return how long jobs would have taken at the highest frequency, (n_jobs,) [s], rounded down.

    Raises
    ------
    HpcgymError : see :func:`job_slowdowns`.
    """
    return unslowed(result.run_time, job_slowdowns(result))


def job_slowdowns(result: Schedule) -> Floats:
    """Return the completion time of each job over that at the highest frequency, (n_jobs,).

    A job's own slowdown at the lowest level, the workload's column ``slowdown``, comes before that
    of its nodes. On nodes of several groups a job is as slow as on the slowest.

    Raises
    ------
    HpcgymError : frequencies of jobs on a machine with nodes, but a schedule without jobs' nodes.
    """
    factors = np.ones(len(result.start))
    if result.frequency is None:
        return factors
    own = result.workload.slowdown
    if result.cluster.groups and result.allocation is None:
        raise HpcgymError("frequency: the schedule does not tell the nodes of jobs")
    for number, group in enumerate(result.cluster.groups):
        assert result.allocation is not None
        if group.power is None or group.power.levels == 1:
            continue
        first, node, _ = result.allocation
        job = np.repeat(np.arange(len(factors)), np.diff(first))
        here = np.zeros(len(factors), np.bool_)
        here[job[result.cluster.group_of[node] == number]] = True
        level = np.minimum(result.frequency[here], group.power.levels - 1)
        slow = group.power.slowdowns_of(own[here])[np.arange(len(level)), level]
        factors[here] = np.maximum(factors[here], slow)
    return factors


def known_powers(result: Schedule) -> Floats | None:
    """Return the measured powers of jobs [W], -1 where unknown; None where none is known."""
    power_w = getattr(result.workload, "columns", {}).get("power_w")
    if power_w is None or not (power_w >= 0).any():
        return None
    return np.asarray(power_w, dtype=np.float64)


# --- Runs of jobs that others, or failures of nodes, have interrupted -----------------------------


def ran_before(result: Schedule) -> Ints:
    """Return how long each job had run when its last piece began, (n_jobs,) [s]."""
    pieces, ran = result.pieces, np.zeros(len(result.start), np.int64)
    if pieces is not None:
        np.add.at(ran, pieces.job, pieces.end - pieces.start)
    return ran


def last_starts(result: Schedule) -> Ints:
    """Return when the last run, or piece, of each job started, (n_jobs,) [s]."""
    if result.suspended is None:
        return result.start
    return result.start + result.suspended + ran_before(result)


def cut_short(result: Schedule) -> NDArray[np.bool_]:
    """Return which jobs ran for less than they would have by themselves, (n_jobs,)."""
    length = np.minimum(result.workload.run_time, result.workload.requested_time)
    if result.scheduler.correction == "kill":
        length = np.minimum(length, result.predicted_run_time)
    short: NDArray[np.bool_] = result.run_time < length
    return short


def queued_at(result: Schedule) -> tuple[Ints, Ints]:
    """Return since when each run that ended so had waited, (k,), each last one, (n_jobs,) [s]."""
    lost, submit = result.interrupted, result.workload.submit_time
    assert lost is not None
    since = of_the_run_before(lost, lost.end, submit[lost.job])
    last = submit.copy()
    np.maximum.at(last, lost.job, lost.end)
    return since, last


def runs_of(result: S) -> tuple[S, Ints]:
    """Return the schedule of all runs, and the job of each.

    A run that follows a lost one is submitted when that was lost. The runs are sorted by that,
    then by job.
    """
    lost, held = result.interrupted, result.allocation
    assert lost is not None
    n = len(result.start)
    since = np.concatenate(queued_at(result))
    job = np.concatenate([lost.job, np.arange(n)])
    order = np.lexsort((job, since))
    allocation = None
    if held is not None:
        allocation = Allocation(
            np.concatenate([lost.first, len(lost.node) + held.first[1:]]),
            np.concatenate([lost.node, held.node]),
            np.concatenate([lost.units, held.units]),
        ).rows(order)
    start = np.concatenate([lost.start, last_starts(result)])[order]
    end = np.concatenate([lost.end, result.end])[order]
    job = job[order]
    columns = {"submit_time": since[order]}
    if result.pieces is not None:  # no piece is killed, but for the last
        whole = result.workload.run_time - ran_before(result)
        columns["run_time"] = np.concatenate([lost.end - lost.start, whole])[order]
    workload = result.workload.take(job).with_columns(**columns)
    if workload.initial is not None:  # at its beginning no later runs
        running = np.where(workload.initial.start == start, start, -1)
        workload = replace(workload, initial=replace(workload.initial, start=running))
    return replace(
        result,
        workload=workload,
        start=start,
        run_time=end - start,
        predicted_run_time=result.predicted_run_time[job],
        reserved_start=result.reserved_start[job],
        backfilled=result.backfilled[job],
        allocation=allocation,
        lost=None,
        pieces=None,
        suspended=None,
        ended=None,
    ), job
