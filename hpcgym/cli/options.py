"""Options that several commands have, and what their values become."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.workload import Workload
    from hpcgym.workload.files import Errors


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"
    csv = "csv"


WorkloadArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="A file (.swf, .swf.gz, .csv, .parquet), a trace of the archive (see hpcgym traces"
        " list) or a generator (lublin:jobs=10000,seed=1).",
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
        help="Only week N of the trace, from an empty machine: 7 days from time 0 on, jobs that"
        " cross its end dropped.",
        show_default=False,
    ),
]
MonthOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Only month N, of 30 days, likewise.", show_default=False),
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
        metavar="requested|incremental|recursive-doubling|predicted-again",
        help="What a prediction that turned out too short becomes.",
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
]


def load(
    source: str,
    clean: str,
    processors: int | None,
    errors: str,
    week: int | None,
    month: int | None,
) -> Workload:
    """Return the workload that a command is about."""
    from hpcgym.cli.running import note, working
    from hpcgym.workload import load_workload

    if week is not None and month is not None:
        raise typer.BadParameter("a week or a month, not both", param_hint="'--week' / '--month'")
    with working(f"reading {source}"):
        workload = load_workload(
            source, clean, processors=processors, errors=cast("Errors", errors)
        )
        if processors is None and not {"MaxProcs", "MaxNodes"} & set(workload.header):
            note(
                f"{workload.name} does not say how large its machine was: taken to be its largest "
                f"job, {workload.processors:,} processors; --processors says otherwise"
            )
        for label, number in (("week", week), ("month", month)):
            if number is not None:
                workload = _period(workload, label, number)
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
    part = by_number[number]
    # what the whole trace lost may have been submitted in this period
    return part.counted({f"{why} (whole trace)": n for why, n in workload.cleaning.items()})


def given(**overrides: Any) -> dict[str, Any]:
    """Return the options that were given: the scheduler keeps its own for others."""
    return {name: value for name, value in overrides.items() if value is not None}


def check_file(path: Path | None, endings: tuple[str, ...], what: str) -> None:
    """Say before the work, not after it, that a file cannot be written."""
    if path is None:
        return
    if not path.name.endswith(endings):
        raise HpcgymError(f"{path}: the name of a {what} ends in {', '.join(endings)}")
    if not path.absolute().parent.is_dir():
        raise HpcgymError(f"{path} cannot be written: there is no folder {path.parent}")
