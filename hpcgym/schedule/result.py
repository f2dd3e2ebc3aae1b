"""The outcome of a simulation: a schedule, its metrics, energy and tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from sys import modules
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, WorkloadError, check_choice
from hpcgym.files.recorded import note_of
from hpcgym.machine.pool import Cluster
from hpcgym.names import NAMED
from hpcgym.progress import silence
from hpcgym.schedule.books import Books, books
from hpcgym.schedule.energy import Energy, power_table
from hpcgym.schedule.groups import group_metrics, metrics_by
from hpcgym.schedule.metrics import Metrics, bsld_of, metrics
from hpcgym.schedule.provenance import provenance_of, workload_of
from hpcgym.schedule.schedule import RECORDED, Schedule, read_only
from hpcgym.scheduler.rules import Scheduler
from hpcgym.words import shown
from hpcgym.workload.io.swf_header import name_all
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd


# --- The jobs of a schedule as a table ------------------------------------------------------------


def jobs_table(result: Result) -> pd.DataFrame:
    """Return one row a job: the schedule beside the workload's columns that shaped it.

    Columns: job_number, user_id; group_id, executable, queue and partition if any job has one, -1
    for jobs without; behind each of these the names, if the log has any: user, group, code,
    queue_name, partition_name; requested_processors, units if jobs have any, submit_time,
    start_time, end_time, wait_time, run_time, requested_time, predicted_run_time, reserved_start
    (all int64, times in seconds), bsld, backfilled, killed. If nodes fail, or jobs stop others:
    restarts and lost_core_seconds; cancelled, bool, if stopped jobs do not run again; suspended
    [s], which counts as wait, if they go on later. Columns of the workload keep their names. If
    jobs share nodes, times are float64, and there are also shape, a name of
    :data:`hpcgym.schedule.runs.SHAPES`, code, a name, and job_speedup. In logs of Slurm groups are
    accounts, and queues QOS.
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


#: Metrics that print and notebooks show.
_FIRST = ("mean_bsld", "p95_bsld", "mean_wait_s", "max_wait_s", "utilization")


# --- The outcome of a simulation ------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Result(Schedule):
    """A schedule, its metrics, its energy and its jobs as a table; and why jobs waited.

    Attributes of jobs and of the machine are those of :class:`hpcgym.schedule.schedule.Schedule`.
    """

    @cached_property
    def bsld(self) -> NDArray[np.float64]:
        """Bounded slowdowns, (n_jobs,) float64: :func:`hpcgym.schedule.metrics.bsld`."""
        return read_only(bsld_of(self))

    @property
    def metrics(self) -> Metrics:
        """Metrics by name, or as attributes; see :func:`hpcgym.schedule.metrics.compute_metrics`.

        Energies are always there. If no powers were given (see ``cluster.watts_given``), each
        processor draws the default watts, those of a node of Glesser 2016; then tables, pages and
        the command line leave energies out.
        """
        return metrics(self)

    @property
    def books(self) -> Books:
        """Power of the machine and charges of jobs; see :mod:`hpcgym.schedule.books`."""
        return books(self)

    @cached_property
    def power(self) -> pd.DataFrame:
        """Power over time, one row a change: time [s], watts, then watts by state, as idle_w.

        Each row holds up to the time of the next; the last one ends the schedule, with 0 W. Raises
        an HpcgymError for a pool whose processors are switched off: the times are not kept.
        """
        return power_table(self.books)

    @cached_property
    def energy(self) -> Energy:
        """Energy by job, user, node, group and state: :class:`hpcgym.schedule.energy.Energy`."""
        return Energy(replace(self), self.books)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row a job, made when first asked for: :func:`hpcgym.schedule.result.jobs_table`.

        Users, groups, codes, queues and partitions are columns:
        ``result.jobs.groupby("queue")["wait_time"].mean()``.
        """
        return jobs_table(self)

    @cached_property
    def past(self) -> Result | None:
        """What the log recorded of the same jobs, :func:`recorded`; None where it does not tell."""
        jobs = self.workload if self.given is None else self.given
        return recorded(jobs) if self.coschedule is None and tells_past(jobs) else None

    def by(self, group: str, *metrics: str) -> pd.DataFrame:
        """Return metrics of groups of jobs: a row a group, in columns ``jobs`` and the metrics.

        Parameters
        ----------
        group : "class" of run times (short, medium, long), "size" (small, large), "user", "group",
            "code", "queue" or "partition"; see :func:`hpcgym.schedule.groups.metrics_by`.
        metrics : those of jobs alone, such as "mean_wait_s"; without any: all. One that this
            schedule has not is nan.

        Raises
        ------
        HpcgymError : another group or metric.
        """
        import pandas as pd

        for metric in metrics:
            if not isinstance(metric, str):
                raise HpcgymError(
                    f"metrics are names, each an argument, as in by({group!r}, 'mean_bsld',"
                    f" 'max_wait_s'), not {metric!r}"
                )
            check_choice("metric", metric, group_metrics())
        table = pd.DataFrame.from_dict(metrics_by(self, group, metrics), orient="index")
        table = table.rename_axis(group)
        return table.reindex(columns=list(dict.fromkeys(["jobs", *metrics]))) if metrics else table

    def __str__(self) -> str:
        """Return what it is of and, in a second line, its first metrics."""
        known = self.metrics
        texts = [f"{name} {shown(known[name])}" for name in _FIRST if name in known]
        return f"{self!r}\n{', '.join(texts)}"

    def _repr_html_(self) -> str:
        """Return its first metrics as a table, for a notebook."""
        import pandas as pd

        first = {name: self.metrics[name] for name in _FIRST if name in self.metrics}
        table = pd.DataFrame({str(self.scheduler): first}).map(shown).to_html()
        return f"<p>{escape(repr(self.workload))}</p>{table}"

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
        nodes, starts and ends are rounded to whole seconds, so that a job that follows another
        still does; run times are those beside other jobs, at least 1 s, and may be longer than
        requested.

        The header tells what made this schedule: the version, the scheduler's rules, the machine.
        It keeps the clock and the names of the simulated workload's header; the rest of that header
        becomes notes that begin with "original log".
        """
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
        from hpcgym.workload.io.swf import write_swf

        workload = self.as_workload()
        note = note_of(provenance_of({name: self}))
        header = {**workload.header, "Note": [note, *workload.header["Note"]]}
        write_swf(replace(workload, header=header), path)


# --- What a log says of its own past --------------------------------------------------------------


def tells_past(workload: Workload) -> bool:
    """Tell whether the log has the waiting time of each job."""
    return len(workload) > 0 and bool((workload.wait_time >= 0).all())


def recorded(workload: Workload) -> Result:
    """Return the past as a log recorded it, to set beside simulations of the same jobs.

    Jobs start when they did, on a pool of the log's processors, and run as long as in the workload.
    Which nodes they had, and which of them were backfilled, is not told; ``replayed_on`` is
    "recorded". Metrics of an extract are of the same jobs and times as those of its simulations.

    Parameters
    ----------
    workload : jobs whose waiting times the log tells.

    Raises
    ------
    WorkloadError : it does not tell those of all.

    Examples
    --------
    >>> import hpcgym
    >>> jobs = {"submit_time": [0, 5], "run_time": [10, 10], "wait_time": [0, 30]}
    >>> jobs |= {"requested_processors": [1, 1], "requested_time": [60, 60]}
    >>> hpcgym.recorded(Workload.from_columns(jobs, processors=2)).metrics["mean_wait_s"]
    15.0
    """
    if not tells_past(workload):
        raise WorkloadError(f"{workload.name}: it does not tell the waiting time of each job")
    start = workload.submit_time + workload.wait_time
    return Result(
        workload,
        Cluster(workload.processors, name=RECORDED),
        Scheduler(),
        start=read_only(start),
        run_time=workload.run_time,
        predicted_run_time=workload.requested_time,
        reserved_start=read_only(np.full(len(start), -1)),
        backfilled=read_only(np.zeros(len(start), np.bool_)),
        replayed_on=RECORDED,
    )
