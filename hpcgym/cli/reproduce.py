"""``hpcgym reproduce items``: all items of the documents with their verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from hpcgym.cli import groups, options, output
from hpcgym.cli.files import ForceOption, Written
from hpcgym.cli.groups import grouped
from hpcgym.cli.options import Format
from hpcgym.cli.running import ExplainedCommand, Lists, note
from hpcgym.errors import HpcgymError
from hpcgym.files.recorded import KEY
from hpcgym.progress import measuring, watched

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.benchmarks.studies.documents import Entry
    from hpcgym.workload import Workload


# --- ``hpcgym reproduce``: published studies computed anew ----------------------------------------

reproduce = typer.Typer(name="reproduce", no_args_is_help=True, rich_markup_mode=None)

#: Traces of the studies that are looked for if none is named.
TRACES = ("KTH-SP2", "SDSC-SP2", "CTC-SP2", "SDSC-BLUE")
LARGER = ("CEA-Curie", "MetaCentrum")

WorkloadsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        metavar="WORKLOAD",
        help="A trace of the archive, a file or a generator; several times for several.",
        show_default="those of the study's traces that are on this machine",
        rich_help_panel="Workload",
        autocompletion=options.complete_traces,
    ),
]

#: Where a study writes; the default is the study's own.
FolderOption = Annotated[
    Path,
    typer.Option(
        "--output",
        metavar="FOLDER",
        help="Folder for tables, pictures and report.md. Earlier results are kept there and not"
        " computed again.",
        rich_help_panel="Output",
    ),
]
QuickOption = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="A small cut that takes seconds, to see what the study writes.",
        rich_help_panel="Experiment",
    ),
]


@reproduce.callback()
def _reproduce() -> None:
    """Compute a published study anew, and show the published values beside ours."""


def _readings() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.mixed_policies.study import READINGS

    return [(reading.name, reading.meaning) for reading in READINGS.values()]


class _MixedPolicies(ExplainedCommand):
    examples = (
        "hpcgym reproduce mixed-policies --quick",
        "hpcgym reproduce mixed-policies --workload KTH-SP2",
        "hpcgym reproduce mixed-policies --reading text --output as-written",
        "mpiexec -n 9 hpcgym reproduce mixed-policies --executor mpi    # 8 workers",
        "hpcgym reproduce mixed-policies --workload trace.swf.gz --format csv > sums.csv",
    )
    lists: ClassVar[Lists] = {
        "Readings of the paper (--reading)": _readings,
        "Executors (--executor)": groups.names,
    }


@reproduce.command("mixed-policies", cls=_MixedPolicies)
@grouped
def mixed_policies(
    *,
    workload: WorkloadsOption = None,
    folder: FolderOption = Path("mixed-policies"),
    reading: Annotated[
        str,
        typer.Option(
            metavar="text|numbers",
            help="How the paper is read; the pure policies are simulated both ways.",
            rich_help_panel="Experiment",
        ),
    ] = "numbers",
    quick: QuickOption = False,
    executor: groups.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: output.PageOptions,
) -> None:
    """Study mixed policies as Legrand, Trystram and Zrigui did (2018).

    It computes weekly bounded slowdowns of the twelve pure policies with and without threshold; of
    the best of a million mixed policies of each week and month, of a training half, and of the week
    before; and of XNES over three and six weights. KTH-SP2 and SDSC-SP2 take three hours of
    two cores. After an interruption, the same command goes on. The long part, all vectors on each
    week, runs as tasks of the executor, whose workers must all see the folder.
    """
    from hpcgym.benchmarks.mixed_policies.run import reproduce as run

    executor.become_mpi()
    sources = list(dict.fromkeys(workload or at_hand(TRACES)))
    rules = {"reading": reading, "quick": quick, **vars(executor)}
    path, findings = shown(run, sources, folder, **rules)
    chosen = [found for found in findings if found.study.reading.name == reading]
    tables = {found.study.trace: found.tables["split"] for found in chosen}
    print_tables(tables, "sums of weekly mean BSLD", format)
    page.write_study(path)


class _Prediction(ExplainedCommand):
    examples = (
        "hpcgym reproduce prediction --quick",
        "hpcgym reproduce prediction --workload KTH-SP2 --published results",
        "hpcgym reproduce prediction --full --executor dask:tcp://node1:8786",
        "mpiexec -n 9 hpcgym reproduce prediction --executor mpi    # 8 workers",
        "hpcgym reproduce prediction --workload trace.swf.gz --format csv > overview.csv",
    )
    lists: ClassVar[Lists] = {"Executors (--executor)": groups.names}


@reproduce.command("prediction", cls=_Prediction)
@grouped
def prediction(
    *,
    workload: WorkloadsOption = None,
    folder: FolderOption = Path("prediction"),
    published: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="HPCGYM_PUBLISHED",
            help="Folder with the original results, glesser-ch7-TRACE.csv.gz.",
            show_default="only what the thesis prints",
            rich_help_panel="Experiment",
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="All 5,772 configurations of the original results: hours.",
            rich_help_panel="Experiment",
        ),
    ] = False,
    quick: QuickOption = False,
    executor: groups.ExecutorOptions,
    format: options.FormatOption = Format.table,
    page: output.PageOptions,
) -> None:
    """Study run time prediction as Gaussier, Glesser, Reis and Trystram did (2015, 2016).

    It simulates EASY with predicted run times: by request, AVE2 and regressions that learn on-line
    under 20 losses, with three corrections, and backfilling by arrival or shortest first. Tables
    show the thesis's values beside ours. After an interruption, the same command goes on.
    """
    from hpcgym.benchmarks.prediction.run import reproduce as run

    executor.become_mpi()
    sources = list(dict.fromkeys(workload or at_hand((*TRACES, *LARGER))))
    rules = {"published": published, "full": full, "quick": quick}
    path, tables = shown(run, sources, folder, **rules, **vars(executor))
    by_trace = tables["7.6"].groupby("trace", sort=False)
    parts = {str(trace): part.drop(columns="trace") for trace, part in by_trace}
    print_tables(parts, "mean BSLD (table 7.6)", format)
    page.write_study(path)


def at_hand(traces: Sequence[str]) -> list[str]:
    """Return those of the study's traces that need not be fetched."""
    from hpcgym.workload.archive import find

    found = [name for name in traces if find(name) is not None]
    if not found:
        raise HpcgymError(
            "none of the study's traces is on this machine: hpcgym traces fetch"
            f" {' '.join(traces[:2])}, or name a workload with --workload"
        )
    return found


def shown(run: Any, sources: Any, folder: Path, **options: Any) -> Any:
    """Run with a bar for each long step, lines in a log; say that an interrupted study goes on."""
    from contextlib import ExitStack

    current, show = "", None
    with ExitStack() as bars:

        def progress(what: str, done: int, total: int) -> None:
            nonlocal current, show
            if what != current:
                bars.close()
                current = what
                show = bars.enter_context(measuring(what)) if watched() else _lines(what)
            assert show is not None
            show(done, total)

        try:
            return run(sources, folder, **options, progress=progress)
        except KeyboardInterrupt:
            bars.close()
            if folder.exists():
                note(f"\n{folder} keeps what is done: the same command goes on")
            raise


def _lines(what: str) -> Callable[[int, int], None]:
    """Return what writes a line for each task that is done, of many for each hundredth of them."""
    begin, told = time.monotonic(), -1

    def show(done: int, total: int) -> None:
        nonlocal told
        part = done if total <= 100 else 100 * done // total
        if part != told:
            told = part
            note(f"{what}: {done:,} of {total:,}, {(time.monotonic() - begin) / 60:.1f} min")

    return show


def print_tables(
    tables: dict[str, pd.DataFrame], what: str, format: Format, jobs: Sequence[Workload] = ()
) -> None:
    """Print a table of each trace, which says what; JSON tells of the jobs, if they are known."""
    from hpcgym.schedule.provenance import provenance_of_workloads

    rows = [
        {"workload": trace, **{str(column): value for column, value in row.items()}}
        for trace, table in tables.items()
        for row in table.to_dict("records")
    ]
    if format is Format.json:
        output.print_json({"rows": rows, KEY: provenance_of_workloads(jobs)})
    elif format is Format.csv:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        output.print_csv({key: row.get(key) for key in columns} for row in rows)
    else:
        out = output.console()
        for trace, table in tables.items():
            out.print(_rich(f"{trace}: {what}", table))


def _rich(heading: str, table: pd.DataFrame) -> Any:
    """Return a table for people; what the paper has nothing of is left out."""
    from rich.table import Table

    shown = Table(title=heading, title_justify="left", title_style="bold")
    table = table.dropna(axis="columns", how="all")
    for column in table.columns:
        number = table[column].dtype.kind in "if"
        shown.add_column(str(column), justify="right" if number else "left")
    for row in table.itertuples(index=False):
        cells = zip(table.columns, row, strict=True)
        shown.add_row(*(_text(str(column), value) for column, value in cells))
    return shown


def _text(column: str, value: Any) -> str:
    """Return a value for people."""
    if isinstance(value, str):
        return value
    if value != value:  # the paper has no such value
        return ""
    if "/" in column:
        return f"{value:.3f}"
    return f"{value:+.1f}" if "%" in column else f"{value:,.2f}"


# --- ``hpcgym reproduce items`` -------------------------------------------------------------------


def _verdicts() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.studies.items import VERDICTS

    return list(VERDICTS.items())


class DocumentItems(ExplainedCommand):
    """The command with a list of verdicts in its help."""

    examples = (
        "hpcgym reproduce items",
        "hpcgym reproduce items --results studies --output documents.md",
        "hpcgym reproduce items --format csv > items.csv",
    )
    lists: ClassVar[Lists] = {"Verdicts": _verdicts}


def items(
    results: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Where the folders of the studies are, such as mixed-policies."
        ),
    ] = Path(),
    page: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write a page too, as Markdown, such as documents.md.",
            show_default=False,
            rich_help_panel="Output",
        ),
        Written("page", (".md",)),
    ] = None,
    force: ForceOption = False,
    format: options.FormatOption = Format.table,
) -> None:
    """List all items of the documents with their verdicts, by what the studies have found.

    An item is a table, figure, equation or sentence with a result. Its verdict is exact, close,
    trend or not met, with the reason. The list also says what was not run yet, and by which
    command, and what the inputs do not allow. Nothing is simulated: the command reads the tables
    that the other commands have written.
    """
    from hpcgym.benchmarks.studies import documents
    from hpcgym.benchmarks.studies.harness import write_text

    entries = documents.all_items(results)
    rows = documents.table_of(entries).to_dict("records")
    if page is not None:
        write_text(documents.page_text(entries, results=True), page)
    if format is Format.json:
        output.print_json({"rows": rows})
    elif format is Format.csv:
        output.print_csv({str(key): value for key, value in row.items()} for row in rows)
    else:
        _print(documents.DOCUMENTS, entries)
    note(f"{documents.counts_text(entries)} (results in {results}; --results names another folder)")
    if page is not None:
        note(f"wrote {page}")


def _print(titles: dict[str, str], entries: list[Entry]) -> None:
    """Print a table for each document."""
    from rich.table import Table

    out = output.console()
    for document, title in titles.items():
        shown = Table(title=f"{document}: {title}", title_justify="left", title_style="bold")
        for heading in ("item", "what", "verdict", "why, or the command"):
            shown.add_column(heading)
        for entry in entries:
            if entry.item.document == document:
                missing = entry.verdict.verdict in ("not run", "quick cut")
                parts = [entry.verdict.why, entry.command if missing else ""]
                why = "; ".join(part for part in parts if part)
                cells = (entry.item.place, entry.item.what, entry.verdict.verdict, why)
                shown.add_row(*cells)
        out.print(shown, markup=False)
