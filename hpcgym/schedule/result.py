"""The outcome of a simulation: a schedule and what can be said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from sys import modules
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.pool import Cluster
from hpcgym.naming import NAMED
from hpcgym.progress import silence
from hpcgym.schedule.books import Books, known_powers
from hpcgym.schedule.energy import Energy, full_speed_times, power_table
from hpcgym.schedule.metrics import bsld, compute_metrics
from hpcgym.schedule.runs import Allocation, Coschedule, cut_short, runs_of
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.extracts import decided, first_time
from hpcgym.workload.io.swf_header import name_all
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.schedule.runs import LostRuns, NodeStates
    from hpcgym.scheduler.dispatchers.asking import Dispatching
    from hpcgym.scheduler.estimates.learning import Learned
    from hpcgym.scheduler.limits import Limit


# --- The jobs of a schedule as a table ------------------------------------------------------------


def jobs_table(result: Result) -> pd.DataFrame:
    """Return one row a job: the schedule beside the workload's columns that shaped it.

    Columns: job_number, user_id; those of group_id, executable, queue and partition that the
    workload has of any job, -1 where it has none; behind each of these the names, if the log tells
    any: user, group, code, queue_name, partition_name; requested_processors, units if jobs have
    any, submit_time, start_time, end_time, wait_time, run_time, requested_time, predicted_run_time,
    reserved_start (all int64, times in seconds), bsld, backfilled, killed; where nodes fail, or
    jobs stop others, restarts and lost_core_seconds, and cancelled, bool, where stopped jobs do not
    run again, or suspended [s], where they go on later; their wait has that time in it. What a
    workload has, too, is called as there. Where jobs share nodes times are float64, and there are
    more columns: shape, a name of :data:`hpcgym.schedule.runs.SHAPES`, code, its name, and
    job_speedup. In logs of Slurm groups are accounts, and queues QOS.
    """
    import pandas as pd

    columns = result.workload.columns
    apart = [column for word, column in NAMED.items() if word != "user"]
    units = {} if result.workload.units is None else {"units": result.workload.units}
    more = {}
    if result.coschedule is not None:
        shape, code = result.coschedule.names
        more = {"shape": shape, "code": code, "job_speedup": result.job_speedup}
    if result.lost is not None:
        more = {"restarts": result.restarts, "lost_core_seconds": result.lost_core_seconds}
    if result.suspended is not None:
        more = {"suspended": result.suspended}
    if result.cancels:
        more["cancelled"] = result.cancelled
    table = pd.DataFrame(
        {
            "job_number": columns["job_number"],
            "user_id": columns["user_id"],
            **{name: columns[name] for name in apart if (columns[name] >= 0).any()},
            "requested_processors": columns["requested_processors"],
            **units,
            "submit_time": columns["submit_time"],
            "start_time": result.start,
            "end_time": result.end,
            "wait_time": result.wait,
            "run_time": result.run_time,
            "requested_time": columns["requested_time"],
            "predicted_run_time": result.predicted_run_time,
            "reserved_start": result.reserved_start,
            "bsld": result.bsld,
            "backfilled": result.backfilled,
            "killed": result.killed,
            **more,
        }
    )
    return name_all(table, result.workload)


# --- The outcome of a simulation: a schedule and what can be said of it ---------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Result:
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
    policy_run_time : (n_jobs,) int64 [s] the predictions that the policy looked at, where they were
        learned; else None.
    learned : what was learned of run times, for :func:`hpcgym.simulate` to go on with; else None.
    allocation : the nodes of each job, on machines that have nodes; else None.
    dispatcher : the dispatcher that was asked, with whatever it has kept; else None.
    dispatching : when the dispatcher was asked, and how late its answers came, where that takes
        time (``dispatch_time``); else None.
    frequency : (n_jobs,) int64, the level at which each job runs, 0 being the lowest; None where
        all run at the highest. ``run_time`` is then that of the highest times the slowdown of the
        level (:func:`hpcgym.schedule.energy.job_slowdowns`), whole seconds, rounded up.
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
    policy_run_time: NDArray[np.int64] | None = None
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

    @classmethod
    def of(
        cls,
        workload: Workload,
        cluster: Cluster,
        scheduler: Scheduler,
        schedule: Mapping[str, NDArray[np.int64]],
        idle_seconds: Mapping[str, int] | None = None,
        outside: bool = False,
    ) -> Result:
        """Return the result of a simulation, by the columns of its ``schedule``."""
        return cls(
            workload,
            cluster,
            scheduler,
            start=_read_only(schedule["start"]),
            run_time=_read_only(schedule["run"]),
            predicted_run_time=_read_only(schedule["predicted"]),
            reserved_start=_read_only(schedule["promised"]),
            backfilled=_read_only(schedule["backfilled"] != 0),
            idle_seconds=idle_seconds,
            outside=outside,
        )

    def __repr__(self) -> str:
        return f"Result({self.workload!r}, {self.scheduler!r})"

    @property
    def begin(self) -> int:
        """When the schedule begins [s]; see :func:`hpcgym.workload.extracts.first_time`."""
        return first_time(self.workload)

    @cached_property
    def decided(self) -> NDArray[np.bool_]:
        """Which jobs the schedule started, (n_jobs,) bool: not those that ran at the beginning."""
        return _read_only(decided(self.workload))

    @property
    def from_begin(self) -> Result:
        """What lies after ``begin``: jobs that ran or waited before are submitted or start then.

        The schedule itself if its machine was empty. Energy, and the metrics of the machine, are
        counted from it.
        """
        return self if self.workload.initial is None else self._from_begin

    @cached_property
    def _from_begin(self) -> Result:
        start = np.maximum(self.start, self.begin)
        submit = np.maximum(self.workload.submit_time, self.begin)
        return replace(
            self,
            workload=replace(self.workload, initial=None).with_columns(submit_time=submit),
            start=_read_only(start),
            run_time=_read_only(self.end - start),
        )

    @cached_property
    def _runs(self) -> tuple[Result, NDArray[np.int64]]:
        return runs_of(self)

    @property
    def interrupted(self) -> LostRuns | None:
        """Runs that ended before their job did: ``lost``, or ``pieces``; None where none can."""
        return self.pieces if self.lost is None else self.lost

    @property
    def runs(self) -> Result:
        """The schedule of all runs, as if each was a job; itself where none can be interrupted.

        A run that follows a lost one is submitted when that was lost. The pieces of a job that was
        suspended are runs, too.
        """
        return self if self.interrupted is None else self._runs[0]

    @cached_property
    def restarts(self) -> NDArray[np.int64]:
        """How many runs of each job were lost, and begun anew, (n_jobs,) int64.

        By failures of nodes, or because other jobs started (``preemption``).
        """
        job = np.zeros(0, np.int64) if self.lost is None else self.lost.job
        return _read_only(np.bincount(job, minlength=len(self.start)))

    @property
    def cancels(self) -> bool:
        """Whether jobs may be stopped by others for good (``preemption``)."""
        rule = self.scheduler.preemption
        return self.lost is not None and rule is not None and rule.mode == "cancel"

    @cached_property
    def cancelled(self) -> NDArray[np.bool_]:
        """Whether another job stopped the job for good, (n_jobs,) bool; it is ``killed`` too."""
        return _read_only(cut_short(self) & self.cancels)

    @cached_property
    def lost_core_seconds(self) -> NDArray[np.int64]:
        """What each job had of processors in runs that were lost, (n_jobs,) int64 [core s].

        Of a cancelled job, also in its last.
        """
        seconds = np.zeros(len(self.start), np.int64)
        if self.lost is not None:
            np.add.at(seconds, self.lost.job, self.lost.end - self.lost.start)
        seconds += np.where(self.cancelled, self.run_time, 0)
        return _read_only(seconds * self.workload.requested_processors)

    @cached_property
    def end(self) -> NDArray[np.int64]:
        """End times, (n_jobs,) int64 [s]; float64 where jobs share nodes."""
        if self.coschedule is not None:
            return _read_only(self.coschedule.end_ticks / self.coschedule.ticks)
        end = self.start + self.run_time
        return _read_only(end if self.suspended is None else end + self.suspended)

    @cached_property
    def wait(self) -> NDArray[np.int64]:
        """Waiting times, (n_jobs,) int64 [s]; float64 where jobs share nodes.

        With the time for which a job was suspended.
        """
        if self.coschedule is not None:
            submit = self.workload.submit_time * self.coschedule.ticks
            return _read_only((self.coschedule.start_ticks - submit) / self.coschedule.ticks)
        return _read_only(self.end - self.run_time - self.workload.submit_time)

    @cached_property
    def full_speed_run_time(self) -> NDArray[np.int64]:
        """Run times at the highest frequency, (n_jobs,) int64 [s]; of killed jobs rounded down.

        Where jobs share nodes, run times on filled nodes of their own.
        """
        if self.coschedule is not None:
            return _read_only(self.coschedule.compact_s)
        if self.frequency is None:
            return self.run_time
        return _read_only(full_speed_times(self))

    @cached_property
    def bsld(self) -> NDArray[np.float64]:
        """Bounded slowdowns, (n_jobs,) float64: :func:`hpcgym.schedule.metrics.bsld`."""
        return _read_only(bsld(self.wait, self.run_time, full_speed=self.full_speed_run_time))

    @cached_property
    def killed(self) -> NDArray[np.bool_]:
        """Whether the job was cut, here or when cleaning the workload, (n_jobs,) bool."""
        cut = self.workload.run_time > self.full_speed_run_time
        return _read_only(self.workload.killed | cut)

    @cached_property
    def job_speedup(self) -> NDArray[np.float64]:
        """Run time at full speed, compact, over that which the job took, (n_jobs,) float64.

        ELiSE, "Computation method": AppSpeedup.
        """
        return _read_only(self.full_speed_run_time / self.run_time)

    @cached_property
    def metrics(self) -> dict[str, float | int]:
        """Metrics by name; see :func:`hpcgym.schedule.metrics.compute_metrics`.

        Energies are always there. If nobody gave powers (``cluster.watts_given``), they are by the
        default watts, those of a node of Glesser 2016 for each processor; then tables, pages and
        the command line leave them out.
        """
        return compute_metrics(self)

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

    @cached_property
    def books(self) -> Books:
        """What the machine draws, and who is charged; see :mod:`hpcgym.schedule.books`."""
        result, owner = self.runs.from_begin, None if self.interrupted is None else self._runs[1]
        # of a copy: who has books that have it back is freed late, with arrays of any size
        return Books(replace(result), owner)

    @cached_property
    def power(self) -> pd.DataFrame:
        """Power over time, one row a change: time [s], watts, then watts by state, as idle_w.

        Each row holds up to the time of the next; the last one ends the schedule, with 0 W. Raises
        an HpcgymError of a pool whose processors are switched off: when is not kept.
        """
        return power_table(self.books)

    @cached_property
    def energy(self) -> Energy:
        """Energy by job, user, node, group and state: :class:`hpcgym.schedule.energy.Energy`."""
        return Energy(replace(self), self.books)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row a job, made when first asked for: :func:`hpcgym.schedule.result.jobs_table`.

        What jobs are told apart by is there, too:
        ``result.jobs.groupby("queue")["wait_time"].mean()``.
        """
        return jobs_table(self)

    def explain(
        self,
        job: int,
        *,
        most: int | None = None,
        seconds: float | None = 20.0,
        progress: Callable[[int, int], None] = silence,
    ) -> Any:
        """Say why a job waited: :func:`hpcgym.explain` of this schedule, which tells all of it."""
        explain = modules["hpcgym"].explain  # the package has what later rooms do
        return explain(self, job, most=most, seconds=seconds, progress=progress)

    def show(self, *, height: int = 760) -> Any:
        """Return the page that shows each job, for a notebook, as :func:`hpcgym.explore.show`.

        As the last line of a cell it is shown below it.
        """
        return modules["hpcgym"].show(self, height=height)

    def as_workload(self) -> Workload:
        """Return the workload with the simulated waiting and run times in place of the logged.

        It is a trace of its own, without the state that an extract begins with. Where jobs share
        nodes, starts and ends are rounded to whole seconds, so that who follows another still does,
        and run times, those beside others, are at least 1 s; they may be longer than requested.

        The header says what made this schedule: the version, the scheduler's rules, the machine.
        Of the simulated workload's header it keeps the clock and the names of numbers of jobs; all
        else becomes notes that begin with "original log".
        """
        from hpcgym.schedule.provenance import workload_of

        return workload_of(self)

    def to_swf(self, path: str | Path, *, name: str = "schedule") -> None:
        """Write the schedule in the Standard Workload Format, gzip-packed if ``path`` ends in .gz.

        A note of the header says where it is from
        (:func:`hpcgym.schedule.provenance.provenance_of`), where the schedule is called ``name``.

        Raises
        ------
        WorkloadError : the file cannot be written, or has the name of a table; what was there
            before is still there.

        Warns
        -----
        WorkloadWarning : the format has no place for something that jobs have.
        """
        from hpcgym.files.recorded import note_of
        from hpcgym.schedule.provenance import provenance_of
        from hpcgym.workload.io.swf import write_swf

        workload = self.as_workload()
        note = note_of(provenance_of({name: self}))
        header = {**workload.header, "Note": [note, *workload.header["Note"]]}
        write_swf(replace(workload, header=header), path)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
