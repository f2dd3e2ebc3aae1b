"""How commands read their jobs: options for files, machines and periods, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import typer

from hpcgym.cli import completion, coscheduling
from hpcgym.cli.unfit import fitting_on, follow, for_schedulers
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.cluster import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload import Workload
    from hpcgym.workload.io.files import Errors

WorkloadArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="A file (.swf, .swf.gz, .csv, .parquet, .json, or a site's own log: what sacct -P"
        " prints, accounting of PBS; - is standard input), a trace (see hpcgym traces list)"
        " or a generator (lublin:jobs=10000,seed=1; eurora:days=30; kit:days=7;"
        " light-esp:processors=180; codes:jobs=500,processes=256).",
        show_default=False,
        autocompletion=completion.traces,
    ),
]
WorkloadOption = Annotated[
    str,
    typer.Option(
        metavar="WORKLOAD",
        help="A file, a trace of the archive or a generator, as for hpcgym simulate.",
        show_default=False,
        rich_help_panel="Workload",
        autocompletion=completion.traces,
    ),
]
FailuresOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Failures of nodes on a machine of --cluster: CSV with the columns node (from"
        " 0), time and repaired (seconds of the workload). Jobs on a node that fails"
        " wait again and start from the beginning.",
        show_default=False,
        rich_help_panel="Machine",
    ),
]


@dataclass(frozen=True)
class Reading:
    """What becomes of the jobs of a file before anything is done with them."""

    panel: ClassVar[str] = "Workload"

    clean: Annotated[
        str,
        typer.Option(
            metavar="RECIPE",
            help="Cleaning recipe or filter, several joined by '+'; see the list below.",
            autocompletion=completion.recipes,
        ),
    ] = "default"
    errors: Annotated[
        str,
        typer.Option(
            metavar="raise|skip",
            help="What to do with a line of the file that is not a job: stop, or drop and count"
            " it.",
        ),
    ] = "raise"
    tz: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE",
            help="Time zone of dates in the file that have none, such as Europe/Berlin.",
            show_default="UTC",
        ),
    ] = None

    def load(self, source: str) -> Workload:
        """Return the workload that a command is about."""
        from hpcgym.progress import working

        with working(f"reading {source}"):
            return self._read(source)

    def read(self, source: str, **where: Any) -> tuple[Workload, Workload]:
        """Return the jobs, and all that there are before cleaning."""
        from hpcgym.workload.load import load_with_raw

        errors = cast("Errors", self.errors)
        return load_with_raw(source, self.clean, errors=errors, tz=self.tz, **where)

    def _read(self, source: str, **where: Any) -> Workload:
        from hpcgym.workload.load import GENERATORS
        from hpcgym.workload.summary import warn_of_doubts

        jobs, raw = self.read(source, **where)
        if source.partition(":")[0] not in GENERATORS:  # which do what they were told
            warn_of_doubts(jobs, raw)
        return jobs


@dataclass(frozen=True)
class PoolReading(Reading):
    """The same, for a machine of which only the processors are told."""

    panel: ClassVar[str] = "Machine"

    processors: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Processors of the machine, in place of the workload's own number; larger jobs"
            " are dropped.",
            show_default=False,
        ),
    ] = None

    def _read(self, source: str, **where: Any) -> Workload:
        return super()._read(source, processors=self.processors, **where)


@dataclass(frozen=True)
class MachineReading(PoolReading):
    """The same, for a machine that may have nodes."""

    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="A machine with nodes: a ready-made one of the list below, or a TOML file (hpcgym"
            " machines NAME prints one to begin with). Without it the machine is a pool of"
            " processors. Cleaning drops jobs larger than it; --unfit is about others that do not"
            " fit.",
            show_default=False,
            autocompletion=completion.machines,
        ),
    ] = None
    allocation: Annotated[
        str | None,
        typer.Option(
            metavar="first-fit|best-fit|worst-fit|balanced|weighted|hybrid|random[:SEED]"
            "|contiguous",
            help="Which nodes of --cluster are filled first: by number, those with the least free,"
            " those with the most free, those without scarce resources (balanced), those on which"
            " least is left of what waiting jobs ask for (weighted), by both rules (hybrid), or at"
            " random. contiguous: each job has nodes of its own, in a row.",
            show_default="first-fit",
        ),
    ] = None
    unfit: Annotated[
        str,
        typer.Option(
            metavar="raise|drop",
            help="What to do with a job that does not fit on the empty machine, or that a limit of"
            " its partition or a quota never lets run: stop, or drop and count it.",
        ),
    ] = "raise"

    def given(self) -> dict[str, Any]:
        """Return the rules of schedulers that were given."""
        return {} if self.allocation is None else {"allocation": self.allocation}

    @cached_property
    def machine(self) -> Cluster | None:
        """The machine of ``--cluster``; None without it."""
        if self.cluster is not None and self.processors is not None:
            raise typer.BadParameter(
                "a machine or its processors, not both", param_hint="'--cluster' / '--processors'"
            )
        from hpcgym.cluster import find_cluster

        found = None if self.cluster is None else find_cluster(self.cluster)
        if self.allocation not in (None, "first-fit") and (found is None or not found.groups):
            raise HpcgymError(
                "--allocation is for machines with nodes, of which a pool of processors has none;"
                " --cluster says which"
            )
        return found

    def named(self, source: str) -> tuple[str, str | None]:
        """Return the names by which an environment reads the same jobs and machine.

        Raises
        ------
        HpcgymError : an option that changes the jobs, of which names know nothing.
        """
        for one in fields(MachineReading):
            if one.name not in ("cluster", "allocation") and getattr(self, one.name) != one.default:
                raise HpcgymError(
                    f"--{one.name} changes the jobs, and what is written for Minari only names"
                    " them: write them to a file first, and name that"
                )
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
        their quotas never let run is refused, or dropped with ``--unfit drop``. ``change`` is
        applied to the whole of it, before a part is taken.
        """
        from hpcgym.progress import working

        chosen = tuple(schedulers)
        with working(f"reading {source}"):
            workload = self._read(source, follows=follow(chosen))
            workload = self._part(workload if change is None else change(workload))
        return for_schedulers(workload, chosen, self.unfit == "drop")

    def _part(self, workload: Workload) -> Workload:
        """Return the part that was asked for: all of it."""
        return workload

    def _read(self, source: str, **where: Any) -> Workload:
        if self.unfit not in ("raise", "drop"):
            raise HpcgymError(f"--unfit must be 'raise' or 'drop', not {self.unfit!r}")
        workload = super()._read(source, cluster=self.machine, **where)
        return fitting_on(workload, self.machine, self.unfit == "drop")


def whole_seconds(text: str) -> int:
    """Return the seconds of an option, which are whole, given as a number or with units."""
    from hpcgym.naming import seconds_of

    sign = -1 if text.startswith("-") else 1  # an extract may begin before the log's time 0
    seconds = seconds_of(text.removeprefix("-"))
    if seconds is None or seconds != int(seconds):
        raise typer.BadParameter(f"{text!r} is no whole seconds, nor a time such as 5h or 2d")
    return sign * int(seconds)


@dataclass(frozen=True)
class PeriodReading(MachineReading):
    """The same, of all that a workload has or of a part of its time; nodes may be shared."""

    panel: ClassVar[str] = "Workload"

    allocation: coscheduling.AllocationOption = None
    week: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Only week N of the trace, from an empty machine. Weeks have 7 days and count"
            " from the log's first submission; jobs that cross the end of the week are"
            " dropped.",
            show_default=False,
        ),
    ] = None
    month: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Only month N, of 30 days, in the same way.", show_default=False
        ),
    ] = None
    begin: Annotated[
        int | None,
        typer.Option(
            "--from",
            metavar="TIME",
            parser=whole_seconds,
            help="Only the trace from this time of its clock on, in seconds or as 84d, with the"
            " machine as it was then: jobs that ran keep their starts, jobs that waited are"
            " queued, and fair share knows the users' past usage. This needs the waiting times"
            " that the trace recorded.",
            show_default=False,
        ),
    ] = None
    end: Annotated[
        int | None,
        typer.Option(
            "--to",
            metavar="TIME",
            parser=whole_seconds,
            help="With --from: only jobs submitted before this time. They are simulated to"
            " their ends.",
            show_default="the last submission",
        ),
    ] = None

    def _read(self, source: str, **where: Any) -> Workload:
        if self.week is not None and self.month is not None:
            raise typer.BadParameter(
                "a week or a month, not both", param_hint="'--week' / '--month'"
            )
        if self.begin is None and self.end is not None:
            raise typer.BadParameter("it needs --from", param_hint="'--to'")
        if self.begin is not None and (self.week, self.month) != (None, None):
            raise typer.BadParameter(
                "an extract, a week or a month", param_hint="'--from' / '--week' / '--month'"
            )
        return super()._read(source, **where)

    def _part(self, workload: Workload) -> Workload:
        """Return the week, the month or the extract that was asked for; all without one."""
        for label, number in (("week", self.week), ("month", self.month)):
            if number is not None:
                workload = _period(workload, label, number)
        if self.begin is not None:
            workload = _of_whole(workload.extract(self.begin, self.end), workload)
        return workload


def _period(workload: Workload, label: str, number: int) -> Workload:
    """Return one week or month of a workload."""
    from hpcgym.workload.slicing import MONTH_S, WEEK_S

    parts = workload.weeks() if label == "week" else workload.months()
    by_number = {int(part.name.rpartition(" ")[2]): part for part in parts}
    if number not in by_number:
        first, last = min(by_number), max(by_number)
        if number == 0:
            begin = workload.first_submit_s
            end = begin + (WEEK_S if label == "week" else MONTH_S)
            raise HpcgymError(
                f"{label} 0 is left out, as the machine's test phase; {workload.name} has {label}"
                f" {first} to {last}, and --from {begin} --to {end} takes {label} 0"
            )
        raise HpcgymError(
            f"{workload.name} has no jobs in {label} {number}, only from {label} {first} to {last}"
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
