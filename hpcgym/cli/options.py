"""Options that several commands have, and what their values become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hpcgym.cli.files import PAGE, PICTURE
from hpcgym.errors import HpcgymError, unknown

if TYPE_CHECKING:
    from hpcgym.cluster import Cluster
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload import Workload
    from hpcgym.workload.io.files import Errors


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"
    csv = "csv"


WorkloadArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="A file (.swf, .swf.gz, .csv, .parquet, .json), a trace (see hpcgym traces list)"
        " or a generator (lublin:jobs=10000,seed=1; eurora:days=30; kit:days=7;"
        " light-esp:processors=180; codes:jobs=500,processes=256).",
        show_default=False,
    ),
]
CleanOption = Annotated[
    str,
    typer.Option(
        metavar="RECIPE",
        help="Cleaning recipe or filter, several joined by '+'; see the list below.",
    ),
]
ProcessorsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Processors of the machine, instead of what the workload tells; larger jobs are"
        " dropped.",
        show_default=False,
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="A machine with nodes: a ready-made one of the list below, or a TOML file (hpcgym"
        " machines NAME prints one to begin with). Without it the machine is a pool of"
        " processors. Cleaning goes by its size; jobs that the empty machine does not hold for"
        " another reason: see --unfit.",
        show_default=False,
    ),
]
UnfitOption = Annotated[
    str,
    typer.Option(
        metavar="raise|drop",
        help="At a job that never fits, since the empty machine does not hold it: stop, or drop and"
        " count it.",
    ),
]
AllocationOption = Annotated[
    str | None,
    typer.Option(
        metavar="first-fit|best-fit|worst-fit|random[:SEED]|contiguous",
        help="Which nodes of --cluster are filled first: by number, those with the least free,"
        " those with the most free, or at random; contiguous: each job has nodes of its own, in a"
        " row.",
        show_default="first-fit",
    ),
]
ErrorsOption = Annotated[
    str,
    typer.Option(
        metavar="raise|skip",
        help="At a line of the file that is no job: stop, or drop and count it.",
    ),
]
WeekOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Only week N of the trace, from an empty machine: 7 days each, counted from the log's"
        " first submission; jobs that cross its end are dropped.",
        show_default=False,
    ),
]
MonthOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Only month N, of 30 days, likewise.", show_default=False),
]
FromOption = Annotated[
    int | None,
    typer.Option(
        "--from",
        metavar="SECONDS",
        help="Only what the trace has from this time of its clock on, with the machine as it was:"
        " jobs that ran keep their starts, jobs that waited are queued, and fair share knows what"
        " users had used. By the waiting times that the trace recorded.",
        show_default=False,
    ),
]
ToOption = Annotated[
    int | None,
    typer.Option(
        "--to",
        metavar="SECONDS",
        help="With --from: only jobs submitted before this time; they are simulated to their ends.",
        show_default="the last submission",
    ),
]
JobsOption = Annotated[int, typer.Option(metavar="N", help="Jobs of a window.")]
TrainShareOption = Annotated[
    float, typer.Option(metavar="SHARE", help="Share of the workload that is for training.")
]
NumberOption = Annotated[
    int | None,
    typer.Option(
        "--number",
        "-n",
        metavar="N",
        help="Number of slices, chosen at random.",
        show_default="100 windows, all weeks or months",
    ),
]
PassesOption = Annotated[
    str | None,
    typer.Option(
        metavar="per-timestamp|per-event",
        help="When the queue is looked at: once at each time, after all that happens then; or after"
        " each submission and each end, as older simulators do.",
        show_default="per-timestamp",
    ),
]
EstimateOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What run times are predicted to be, for backfilling: requested, double-requested,"
        " clairvoyant, ave2 (or 1, 3, ...), user-ratio, typical-ratio, data-driven, e-loss, or"
        " regression:over=...,under=...,weight=...",
        show_default=False,
    ),
]
PolicyEstimateOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What policies look at in place of requested times; as --estimate.",
        show_default=False,
    ),
]
CorrectionOption = Annotated[
    str | None,
    typer.Option(
        metavar="requested|incremental|recursive-doubling|predicted-again|kill|next-second",
        help="What a prediction that turned out too short becomes: the requested time; somewhat"
        " more; twice the time so far; what the estimate says then; nothing, for the job is"
        " killed (kill); or, for dispatchers, the next second, again and again (next-second).",
        show_default=False,
    ),
]
ThresholdOption = Annotated[
    int | None,
    typer.Option(
        metavar="SECONDS",
        help="Jobs that waited longer come first, whatever the policy.",
        show_default=False,
    ),
]
FairShareOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|KEY=VALUE,...",
        help="For policies by usage: half_life_s=604800, damping=1, accounts=group; or a TOML file"
        " with these and the tables shares and accounts.",
        show_default=False,
    ),
]
FormatOption = Annotated[
    Format,
    typer.Option("--format", help="How to print the result; numbers are in full in json and csv."),
]
PictureOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw Gantt charts, utilisation, queue and slowdowns: .png, .svg, .pdf, or a page,"
        " .html, with tables too.",
        show_default=False,
    ),
    PICTURE,
]
HtmlOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write a page with all tables and pictures.", show_default=False
    ),
    PAGE,
]


def load(
    source: str,
    clean: str,
    processors: int | None,
    errors: str,
    week: int | None,
    month: int | None,
    cluster: Cluster | None = None,
    unfit: str = "raise",
    begin: int | None = None,
    end: int | None = None,
    change: Callable[[Workload], Workload] | None = None,
) -> Workload:
    """Return the workload that a command is about; with ``begin`` [s] an extract of it.

    ``change`` is applied to the whole of it, before a period is taken.
    """
    from hpcgym.progress import working
    from hpcgym.workload import load_workload

    if unfit not in ("raise", "drop"):
        raise HpcgymError(f"--unfit must be 'raise' or 'drop', not {unfit!r}")
    if week is not None and month is not None:
        raise typer.BadParameter("a week or a month, not both", param_hint="'--week' / '--month'")
    if begin is None and end is not None:
        raise typer.BadParameter("it needs --from", param_hint="'--to'")
    if begin is not None and (week, month) != (None, None):
        raise typer.BadParameter(
            "an extract, a week or a month", param_hint="'--from' / '--week' / '--month'"
        )
    with working(f"reading {source}"):
        workload = load_workload(
            source, clean, processors=processors, cluster=cluster, errors=cast("Errors", errors)
        )
        workload = _fitting(workload, cluster, unfit == "drop")
        if change is not None:
            workload = change(workload)
        for label, number in (("week", week), ("month", month)):
            if number is not None:
                workload = _period(workload, label, number)
        if begin is not None:
            workload = _of_whole(workload.extract(begin, end), workload)
    return workload


def _fitting(workload: Workload, cluster: Cluster | None, drop: bool) -> Workload:
    """Return the jobs that the empty machine holds: all, unless the others are to be dropped."""
    from hpcgym.workload import check_fits, fitting, needs_of
    from hpcgym.workload.cleaning import clean

    if cluster is None or not cluster.groups:
        processors = None if cluster is None else cluster.processors
        return clean(workload, "drop-larger-than-machine", processors) if drop else workload
    if drop:
        return fitting(workload, cluster.resources, cluster.capacity)
    try:
        needs = needs_of(workload, cluster.resources)
        check_fits(workload, needs, cluster.capacity, cluster.resources)
    except HpcgymError as error:
        if workload.units is None and (workload.requested_processors < 1).any():
            raise  # those are for --clean
        raise HpcgymError(f"{error}; --unfit drop drops such jobs, counted") from None
    return workload


def _period(workload: Workload, label: str, number: int) -> Workload:
    """Return one week or month of a workload."""
    parts = workload.weeks() if label == "week" else workload.months()
    by_number = {int(part.name.rpartition(" ")[2]): part for part in parts}
    if number not in by_number:
        first, last = min(by_number), max(by_number)
        raise HpcgymError(
            f"{workload.name} has no jobs in {label} {number}, only from {label} {first} to {last}"
        )
    return _of_whole(by_number[number], workload)


def _of_whole(part: Workload, workload: Workload) -> Workload:
    """Return a part of a workload that tells what the cleaning of the whole did."""
    # what the whole trace lost may have been submitted in this period
    return part.counted({f"{why} (whole trace)": n for why, n in workload.cleaning.items()})


def rules(name: str, overrides: Mapping[str, Any]) -> Scheduler:
    """Return the scheduler of a name, or the one that asks a dispatcher, with rules changed.

    What is wrong is said before the work: an unknown name, a dispatcher that needs what is not
    installed, or a rule of the queue beside a dispatcher.
    """
    from hpcgym.baselines import SCHEDULERS
    from hpcgym.baselines.coschedulers import COSCHEDULERS
    from hpcgym.baselines.dispatchers import DISPATCHERS, find_dispatcher
    from hpcgym.scheduler.rules import OF_THE_QUEUE, not_beside_a_dispatcher
    from hpcgym.simulation.run import scheduler_of

    if name in DISPATCHERS:
        find_dispatcher(name)
        per_event = ["passes"] if overrides.get("passes") == "per-event" else []
        for rule in (*OF_THE_QUEUE, *per_event):
            if rule in overrides:
                raise HpcgymError(not_beside_a_dispatcher(f"--{rule.replace('_', '-')}", name))
    elif name not in SCHEDULERS and name not in COSCHEDULERS:
        known = [*SCHEDULERS, *DISPATCHERS, *COSCHEDULERS]
        raise HpcgymError(unknown("scheduler or dispatcher", name, known))
    return scheduler_of(name, overrides)


def machine(cluster: str | None, processors: int | None, allocation: str | None) -> Cluster | None:
    """Return the machine of ``--cluster``; None without it."""
    if cluster is not None and processors is not None:
        raise typer.BadParameter(
            "a machine or its processors, not both", param_hint="'--cluster' / '--processors'"
        )
    from hpcgym.cluster import find_cluster

    found = None if cluster is None else find_cluster(cluster)
    if allocation not in (None, "first-fit") and (found is None or not found.groups):
        raise HpcgymError(
            "--allocation is for machines with nodes, of which a pool of processors has none;"
            " --cluster says which"
        )
    return found


def given(**overrides: Any) -> dict[str, Any]:
    """Return the options that were given: the scheduler keeps its own for others."""
    return {name: value for name, value in overrides.items() if value is not None}
