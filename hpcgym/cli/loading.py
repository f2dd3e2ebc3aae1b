"""How commands read their jobs: options for files, machines and periods, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import click

from hpcgym.cli.groups import Entry, Option
from hpcgym.errors import HpcgymError, WorkloadError

if TYPE_CHECKING:
    from hpcgym.machine import Cluster
    from hpcgym.machine.speedups import Heatmap
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload import Workload
    from hpcgym.workload.io.files import Errors


# --- Which jobs of a workload a machine and its schedulers can run --------------------------------


def follow(schedulers: Sequence[Scheduler]) -> bool:
    """Tell whether all schedulers, of which there are some, know jobs that follow others."""
    return bool(schedulers) and all(scheduler.dependencies != "none" for scheduler in schedulers)


def for_schedulers(workload: Workload, schedulers: Sequence[Scheduler], drop: bool) -> Workload:
    """Return the jobs for the schedulers of a command.

    What all of them heed is not told as ignored, and jobs that a quota never lets run are refused,
    or dropped.
    """
    return _allowed(_heeded(workload, schedulers), schedulers, drop)


def _heeded(workload: Workload, schedulers: Sequence[Scheduler]) -> Workload:
    """Return jobs of which throttles of arrays are not counted as not used, if all heed them."""
    from hpcgym.names import ARRAY

    quotas = [[ARRAY in dict(quota.where) for quota in scheduler.quota] for scheduler in schedulers]
    if not quotas or not all(map(any, quotas)):
        return workload
    from hpcgym.workload.io.sacct_fields import UNUSED_THROTTLE

    left = {k: n for k, n in workload.cleaning.items() if k != UNUSED_THROTTLE}
    return replace(workload, cleaning=left)


def _allowed(workload: Workload, schedulers: Sequence[Scheduler], drop: bool) -> Workload:
    """Return the jobs that each quota lets run by itself: all, unless others are to be dropped."""
    from hpcgym.simulation.restricted import check_within, within_quotas
    from hpcgym.workload.summary import warn_of_dropped

    quotas = [quota for scheduler in schedulers for quota in scheduler.quota]
    if drop:
        kept = within_quotas(workload, quotas)
        warn_of_dropped(kept, workload)
        return kept
    try:
        check_within(workload, quotas)
    except HpcgymError as error:
        raise _to_drop(error) from None
    return workload


def fitting_on(workload: Workload, cluster: Cluster | None, drop: bool) -> Workload:
    """Return the jobs that the empty machine holds: all, unless the others are to be dropped."""
    from hpcgym.workload import check_fits, fitting, needs_of, within_limits
    from hpcgym.workload.cleaning import clean
    from hpcgym.workload.constraints import machine_for
    from hpcgym.workload.partitions import check_limits, check_partitions

    if cluster is None or not cluster.groups:
        processors = None if cluster is None else cluster.processors
        return clean(workload, "drop-larger-than-machine", processors) if drop else workload
    partitions = [partition.name for partition in cluster.partitions]
    cluster = machine_for(workload, cluster)
    if drop:
        kept = fitting(workload, cluster.resources, cluster.capacity, partitions)
        return within_limits(kept, cluster)
    try:
        check_partitions(workload, partitions)
        needs = needs_of(workload, cluster.resources)
        check_fits(workload, needs, cluster.capacity, cluster.resources)
        check_limits(workload, cluster)
    except HpcgymError as error:
        if workload.units is None and (workload.requested_processors < 1).any():
            raise  # those are for --clean
        raise _to_drop(error) from None
    return workload


def _to_drop(error: HpcgymError) -> HpcgymError:
    """Return an error of jobs that do not fit, with the option that drops them."""
    message = str(error).partition(": hpcgym.")[0]  # how Python does
    return HpcgymError(f"{message}; --errors skip drops such jobs, counted")


# --- Options of simulations in which jobs share nodes ---------------------------------------------


@dataclass(frozen=True)
class Sharing:
    """What jobs that share nodes run, and how fast.

    Attributes
    ----------
    speedups : true ones of codes beside each other.
    seed : of the codes that jobs are given at random; None: they have their own.
    machine : whose nodes they share.
    """

    speedups: Heatmap
    seed: int | None
    machine: Cluster

    def with_codes(self, workload: Workload) -> Workload:
        """Return the jobs with codes, all of which have speedups."""
        from hpcgym.workload import assign_codes, codes_of

        if self.seed is not None:
            return assign_codes(workload, self.speedups.codes, seed=self.seed)
        try:
            codes_of(workload, self.speedups.codes)
        except WorkloadError as error:
            raise HpcgymError(
                f"{error}; --codes SEED gives all jobs codes of --speedups at random"
            ) from None
        return workload

    def facts(self) -> dict[str, Any]:
        """Return what a result was computed from, beside workload and machine."""
        return {"speedups": self.speedups.describe(), "codes_seed": self.seed}


@dataclass(frozen=True)
class SharingOptions:
    """How fast jobs run that share nodes, and the rules by which they do.

    Shared nodes
    ------------
    speedups FILE|generated:... : Let jobs share the nodes of --cluster: how fast codes run beside
        each other. A file (CSV, JSON, loads of ELiSE; hpcgym machines --speedups FILE shows it), or
        generated:codes=16,mean=1.1,spread=0.1,seed=0.
    codes SEED : Give each job a code of --speedups, drawn at random, for workloads that do not tell
        what their jobs run.
    partners best|fill|first|used : Which nodes a job that shares nodes takes: those where it is
        fastest, where an idle node counts as one without a neighbour (best); nodes in use first,
        where it is fastest (fill) or by number (used); all by number (first). [default: fill]
    pairs_above X|none : Two jobs start beside each other only if the mean of both speedups is above
        X, such as 1; else a job takes idle nodes, or waits. [default: any may]
    pair_estimate known|learned|FILE : The speedups that the scheduler assumes: the true ones, those
        that it learns while jobs run, or those of another file (or generated:...). [default: known]
    """

    speedups: str | None = None
    codes: int | None = None
    partners: str | None = None
    pairs_above: str | None = None
    pair_estimate: str | None = None

    def read(self, machine: Cluster | None) -> Sharing | None:
        """Return what jobs run that share nodes; None without ``--speedups``.

        Raises
        ------
        HpcgymError : no such speedups, options that do not go together, or a machine whose nodes
            cannot be shared.
        """
        if self.speedups is None:
            if self.codes is not None:
                raise HpcgymError("--codes needs --speedups, which has the codes")
            return None
        from hpcgym.machine.speedups import find_speedups
        from hpcgym.scheduler.shared_nodes import check_machine

        if machine is None or not machine.groups:
            raise HpcgymError(
                "--speedups is for machines with nodes, of which a pool of processors has none;"
                " --cluster says which, such as 100x2x24 (nodes x sockets x cores)"
            )
        if self.codes is not None and self.codes < 0:
            raise HpcgymError(f"--codes must be a whole number of at least 0, not {self.codes}")
        check_machine(machine)
        return Sharing(find_speedups(self.speedups), self.codes, machine)

    def given(self) -> dict[str, Any]:
        """Return the rules of jobs that share nodes that were given."""
        from hpcgym.cli.options import given, given_rules

        known: Any = self.pair_estimate
        if known not in (None, "known", "learned"):
            from hpcgym.machine.speedups import find_speedups

            try:
                known = find_speedups(known)
            except HpcgymError as error:
                raise HpcgymError(f"--pair-estimate is known, learned or a file: {error}") from None
        rules = given_rules(partners=self.partners, pairs_above=self.pairs_above)
        return rules | given(pair_estimate=known)


def check_shares(schedulers: Iterable[Scheduler], given: Mapping[str, Any]) -> None:
    """Raise if rules of :class:`SharingOptions` are given that none of the schedulers heeds."""
    if given and not any(scheduler.parts > 1 for scheduler in schedulers):
        raise HpcgymError(
            f"--{next(iter(given)).replace('_', '-')} is for jobs that share nodes: name a"
            " co-scheduler, such as easy-co"
        )


def add_improvement(results: Sequence[Result]) -> None:
    """Add to the metrics by how much the makespan is better than the first one's.

    The makespan of the first over that of each, less 1: what ELiSE calls makespan speedup,
    and tables as an improvement in percent.
    """
    reference = results[0].metrics["makespan_s"]
    for result in results:
        result.metrics["makespan_improvement"] = reference / result.metrics["makespan_s"] - 1


# --- How commands read their jobs -----------------------------------------------------------------

WorkloadOption = Annotated[
    str,
    Entry(
        "WORKLOAD",
        "A file, a trace of the archive or a generator, as for hpcgym simulate.",
        None,
        "Workload",
    ),
]


@dataclass(frozen=True)
class Reading:
    """What becomes of the jobs of a file before anything is done with them.

    Workload
    --------
    clean RECIPE : Cleaning recipe or filter, several joined by '+'.
    errors raise|skip : Stop at a line that is not a job, and at a job that can never run because
        of the machine, its partition or a quota; or drop and count both.
    tz ZONE : Time zone of dates in the file that have none, such as Europe/Berlin. [default: UTC]
    fields NAMES : Names of the fields of a dump of sacct -n, which has no header: the argument of
        its -o, such as JobID,User,Submit.
    """

    clean: str = "default"
    errors: str = "raise"
    tz: str | None = None
    fields: str | None = None

    def load(self, source: str) -> Workload:
        """Return the workload that a command is about."""
        from hpcgym.progress import working

        with working(f"reading {source}"):
            return self._read(source)

    def read(
        self, source: str, processors: int | None = None, **where: Any
    ) -> tuple[Workload, Workload]:
        """Return the jobs, and all that there are before cleaning."""
        from hpcgym.workload.io.files import ReadOptions, names_in
        from hpcgym.workload.load import load_with_raw

        errors = cast("Errors", self.errors)
        how = ReadOptions(processors, errors, None, self.tz, names_in(self.fields))
        return load_with_raw(source, self.clean, how, **where)

    def _read(self, source: str, **where: Any) -> Workload:
        from hpcgym.workload.load import is_generator
        from hpcgym.workload.summary import warn_of_doubts

        jobs, raw = self.read(source, **where)
        kept = jobs
        try:
            kept = self._fitting(jobs)
        finally:
            generated = is_generator(source)  # which do what they were told
            if not generated or len(kept) < len(jobs):
                warn_of_doubts(kept, raw)
        return kept

    def _fitting(self, workload: Workload) -> Workload:
        """Return the jobs that the machine can run: all that there are."""
        return workload


@dataclass(frozen=True)
class PoolReading(Reading):
    """The same, for a machine of which only the processors are told.

    Machine
    -------
    processors N : Processors of the machine, in place of the workload's own number; larger jobs are
        dropped.
    """

    processors: int | None = None

    def _read(self, source: str, **where: Any) -> Workload:
        return super()._read(source, processors=self.processors, **where)


@dataclass(frozen=True)
class ShownReading(PoolReading):
    """The same, for a machine that may have nodes, of which a command only tells.

    Machine
    -------
    cluster NAME|FILE|N : A machine with nodes: a ready-made one, or a TOML file
        (hpcgym machines NAME prints one to begin with); or a number of processors. Without it the
        machine is a pool of processors. Cleaning drops jobs that are larger; --errors is about
        others that do not fit.
    """

    cluster: str | None = None

    @cached_property
    def machine(self) -> Cluster | None:
        """The machine of ``--cluster``; None without it."""
        if self.cluster is not None and self.processors is not None:
            raise click.BadParameter(
                "a machine or its processors, not both", param_hint="'--cluster' / '--processors'"
            )
        from hpcgym.machine import find_cluster

        return None if self.cluster is None else find_cluster(self.cluster)


@dataclass(frozen=True)
class MachineReading(ShownReading):
    """The same, whose nodes jobs are given.

    Machine
    -------
    allocation first-fit|best-fit|worst-fit|balanced|weighted|hybrid|random[:SEED]|contiguous :
        Which nodes of --cluster are filled first: by number, those with the least free, those with
        the most free, those without scarce resources (balanced), those on which least is left of
        what waiting jobs ask for (weighted), by both rules (hybrid), or at random. contiguous: each
        job has nodes of its own, in a row. [default: first-fit]
    """

    allocation: str | None = None

    def given(self) -> dict[str, Any]:
        """Return the rules of schedulers that were given."""
        return {} if self.allocation is None else {"allocation": self.allocation}

    @cached_property
    def machine(self) -> Cluster | None:
        """The machine of ``--cluster``; None without it."""
        cluster = super().machine
        if self.allocation not in (None, "first-fit") and (cluster is None or not cluster.groups):
            raise HpcgymError(
                "--allocation is for machines with nodes, of which a pool of processors has none;"
                " --cluster says which"
            )
        return cluster

    def named(self, source: str) -> tuple[Any, Any] | None:
        """Return the names by which an environment reads the same jobs and machine.

        None: an option changes the jobs, of which names know nothing.
        """
        if self != MachineReading(cluster=self.cluster, allocation=self.allocation):
            return None
        machine = self.cluster
        if machine is not None and Path(machine).is_file():
            machine = str(Path(machine).resolve())
        return source, machine

    def load(
        self,
        source: str,
        *,
        schedulers: Iterable[Scheduler] = (),
        change: Callable[[Workload], Workload] | None = None,
    ) -> Workload:
        """Return the workload that a command is about, or the part of it.

        ``schedulers`` are those that it is for: what they heed is not told as ignored, and what
        their quotas never let run is refused, or dropped with ``--errors skip``. ``change`` is
        applied to the whole of it, before a part is taken.
        """
        from hpcgym.progress import working

        chosen = tuple(schedulers)
        with working(f"reading {source}"):
            workload = self._read(source, follows=follow(chosen))
            workload = self._part(workload if change is None else change(workload))
        return for_schedulers(workload, chosen, self.errors == "skip")

    def _part(self, workload: Workload) -> Workload:
        """Return the part that was asked for: all of it."""
        return workload

    def _read(self, source: str, **where: Any) -> Workload:
        return super()._read(source, cluster=self.machine, **where)

    def _fitting(self, workload: Workload) -> Workload:
        return fitting_on(workload, self.machine, self.errors == "skip")


def time_of_log(text: str) -> int | str:
    """Return the whole seconds of an option, given as a number or with units, or its date."""
    from hpcgym.dates import Clock, is_date
    from hpcgym.units import seconds_of

    if is_date(text):
        try:
            Clock(None).seconds(text.strip())
        except ValueError as error:
            raise click.BadParameter(f"{text!r}: {error}") from None
        return text.strip()
    sign = -1 if text.startswith("-") else 1  # an extract may begin before the log's time 0
    seconds = seconds_of(text.removeprefix("-"))
    if seconds is None or seconds != int(seconds):
        raise click.BadParameter(
            f"{text!r} is no whole seconds, nor a time such as 5h or 2d, nor a date"
        )
    return sign * int(seconds)


@dataclass(frozen=True)
class WeekReading(MachineReading):
    """The same, of all that a workload has or of a week of it.

    Workload
    --------
    week N : Only week N of the trace, from an empty machine. Weeks have 7 days and count from the
        log's first submission; jobs that cross the end of the week are dropped.
    """

    week: int | None = None

    def _part(self, workload: Workload) -> Workload:
        """Return the week that was asked for; all without one."""
        return workload if self.week is None else _week(workload, self.week)


@dataclass(frozen=True)
class PeriodReading(WeekReading):
    """The same, of all that a workload has or of a part of its time; nodes may be shared.

    Workload
    --------
    begin TIME : Only the trace from this time on, in seconds of its clock, 84d or 2024-03-05T08:00,
        with the machine as it was then: jobs that ran keep their starts, jobs that waited are
        queued, and fair share knows the users' past usage. This needs the waiting times that the
        trace recorded.
    end TIME : With --from: only jobs submitted before this time. They are simulated to their ends.
        [default: the last submission]

    Machine
    -------
    allocation NAME : Which nodes of --cluster are filled first: by number (first-fit), those with
        the least free (best-fit), those with the most free (worst-fit), those without scarce
        resources (balanced), those with least left of what waiting jobs ask for (weighted), by both
        rules (hybrid), or at random (random[:SEED]). contiguous: each job has nodes of its own, in
        a row. With --speedups, how jobs lie on nodes: compact, spread (half of each socket, alone),
        half-socket or part:K (one of K parts of each socket; others may have the rest). [default:
        first-fit; with --speedups compact, co-schedulers half-socket]
    """

    begin: Annotated[Any, Option("--from", type=time_of_log)] = None
    end: Annotated[Any, Option("--to", type=time_of_log)] = None

    def _read(self, source: str, **where: Any) -> Workload:
        if self.begin is None and self.end is not None:
            raise click.BadParameter("it needs --from", param_hint="'--to'")
        if self.begin is not None and self.week is not None:
            raise click.BadParameter(
                "an extract or a week, not both", param_hint="'--from' / '--week'"
            )
        return super()._read(source, **where)

    def _part(self, workload: Workload) -> Workload:
        """Return the week or the extract that was asked for; all without one."""
        workload = super()._part(workload)
        if self.begin is not None:
            begin = _time_in(workload, "--from", self.begin)
            end = None if self.end is None else _time_in(workload, "--to", self.end)
            if end is not None and end <= begin:
                raise HpcgymError(f"--to {self.end} must be later than --from {self.begin}")
            workload = _of_whole(workload.extract(begin, end), workload)
        return workload


def _time_in(workload: Workload, option: str, text: str) -> int:
    """Return a time of a workload's clock [s]; one before its first submission is refused."""
    from hpcgym.dates import time_text
    from hpcgym.scheduler.restrictions import second_of

    time = second_of(text, workload.header, f"{option} {text}")
    if time < 0:
        first = time_text(workload.header, 0)
        raise HpcgymError(
            f"{option} {text} is before {workload.name}, whose first job came at {first}"
        )
    return time


def _week(workload: Workload, number: int) -> Workload:
    """Return one week of a workload."""
    by_number = {int(part.name.rpartition(" ")[2]): part for part in workload.weeks()}
    if number not in by_number:
        first, last = min(by_number), max(by_number)
        raise HpcgymError(
            f"{workload.name} has no jobs in week {number}, only from week {first} to {last}:"
            " week 0 is left out, as the machine's test phase"
        )
    return _of_whole(by_number[number], workload)


def _of_whole(part: Workload, workload: Workload) -> Workload:
    """Return a part of a workload that tells what the cleaning of the whole did."""
    # what the whole trace lost may have been submitted in this period
    return part.counted({f"{why} (whole trace)": n for why, n in workload.cleaning.items()})


def simulating(workload: str, reading: Reading) -> list[str]:
    """Return the words of ``hpcgym simulate`` that name the same jobs on the same machine."""
    spelled = {"begin": "from", "end": "to"}
    words = ["hpcgym", "simulate", workload]
    for option in fields(reading):
        value = getattr(reading, option.name)
        if value != option.default and option.name != "allocation":  # which is a rule
            words += [f"--{spelled.get(option.name, option.name)}", str(value)]
    return words
