"""``hpcgym reproduce items``: all items of the documents with their verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from hpcgym.cli import options, output
from hpcgym.cli.files import ForceOption, Written
from hpcgym.cli.options import Format
from hpcgym.cli.running import ExplainedCommand, Lists, note

if TYPE_CHECKING:
    from hpcgym.benchmarks.studies.documents import Entry


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
    from hpcgym.benchmarks.studies.markdown import write_text

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
