"""``hpcgym reproduce``: published studies computed anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from hpcgym.cli import executors, options, output
from hpcgym.cli.options import Format
from hpcgym.cli.running import ExplainedCommand, Lists, measuring, note
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    import pandas as pd

reproduce = typer.Typer(name="reproduce", no_args_is_help=True, rich_markup_mode=None)

#: The traces of the study that are looked for if none is named.
TRACES = ("KTH-SP2", "SDSC-SP2", "CTC-SP2", "SDSC-BLUE")


@reproduce.callback()
def _reproduce() -> None:
    """Compute a published study anew, its own values beside ours."""


def _readings() -> list[tuple[str, str]]:
    from hpcgym.benchmarks.mixed_policies.readings import READINGS

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
        "Executors (--executor)": executors.names,
    }


@reproduce.command("mixed-policies", cls=_MixedPolicies)
def mixed_policies(
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORKLOAD",
            help="A trace of the archive, a file or a generator; several times for several.",
            show_default="those of the paper's traces that are on this machine",
        ),
    ] = None,
    folder: Annotated[
        Path,
        typer.Option(
            "--output",
            metavar="FOLDER",
            help="Where tables, pictures and report.md are written. What was computed before is"
            " kept there, and not computed again.",
        ),
    ] = Path("mixed-policies"),
    reading: Annotated[
        str,
        typer.Option(
            metavar="text|numbers",
            help="How the paper is read; the pure policies are simulated both ways.",
        ),
    ] = "numbers",
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A small cut that takes seconds: six weeks, a coarse grid."),
    ] = False,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where the long part is done, see the list below; all workers must see the"
            " folder. Results are the same.",
            show_default="this process, on all its threads",
        ),
    ] = None,
    workers: executors.WorkersOption = None,
    format: options.FormatOption = Format.table,
) -> None:
    """Study mixed policies as Legrand, Trystram and Zrigui did (2018).

    Weekly bounded slowdowns of the twelve pure policies with and without threshold; the best of a
    million mixed policies of each week and month, of a training half, of the week before; XNES over
    three and six weights. KTH-SP2 and SDSC-SP2 take ten minutes of two cores; after an
    interruption, the same command goes on.
    """
    from hpcgym.benchmarks.mixed_policies.run import reproduce as run

    if executor is not None:
        executors.become_mpi(executor, workers)
    elif workers is not None:
        raise HpcgymError("--workers needs an --executor, such as processes")
    sources = list(dict.fromkeys(workload or _at_hand()))
    rules = {"reading": reading, "quick": quick, "executor": executor, "workers": workers}
    path, findings = _shown(run, sources, folder, **rules)
    chosen = [found for found in findings if found.study.reading.name == reading]
    tables = {found.study.trace: found.tables["split"] for found in chosen}
    _print(tables, format)
    note(f"wrote {path}, tables and pictures beside it")


def _at_hand() -> list[str]:
    """Return the paper's traces that need not be fetched."""
    from hpcgym.workload.archive import find

    found = [name for name in TRACES if find(name) is not None]
    if not found:
        raise HpcgymError(
            "none of the paper's traces is on this machine: hpcgym traces fetch KTH-SP2 SDSC-SP2,"
            " or name a workload with --workload"
        )
    return found


def _shown(run: Any, *arguments: Any, **options: Any) -> Any:
    """Run with a bar for each long step."""
    from contextlib import ExitStack

    current, show = "", None
    with ExitStack() as bars:

        def progress(what: str, done: int, total: int) -> None:
            nonlocal current, show
            if what != current:
                bars.close()
                current, show = what, bars.enter_context(measuring(what))
            assert show is not None
            show(done, total)

        return run(*arguments, **options, progress=progress)


def _print(tables: dict[str, pd.DataFrame], format: Format) -> None:
    """Print the sums over the weeks of training and testing of each trace."""
    rows = [
        {"workload": trace, **{str(column): value for column, value in row.items()}}
        for trace, table in tables.items()
        for row in table.to_dict("records")
    ]
    if format is Format.json:
        output.print_json({"rows": rows})
    elif format is Format.csv:
        columns = list(dict.fromkeys(key for row in rows for key in row))
        output.print_csv({key: row.get(key) for key in columns} for row in rows)
    else:
        out = output.console()
        for trace, table in tables.items():
            out.print(_rich(trace, table))


def _rich(trace: str, table: pd.DataFrame) -> Any:
    """Return a table for people."""
    from rich.table import Table

    shown = Table(
        title=f"{trace}: sums of weekly mean BSLD", title_justify="left", title_style="bold"
    )
    for column in table.columns:
        shown.add_column(str(column), justify="left" if column == "policy" else "right")
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
    return f"{value:+.1f}" if "%" in column else f"{value:,.2f}"
