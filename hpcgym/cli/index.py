"""``hpcgym index``: a page about the results in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcgym.cli.files import ForceOption, Written
from hpcgym.cli.running import ExplainedCommand, note
from hpcgym.progress import working


class Index(ExplainedCommand):
    """The command with examples in its help."""

    examples = (
        "hpcgym index results results/index.html",
        "hpcgym index results results/index.html --force",
    )


def index(
    results: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of results.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Argument(metavar="OUTPUT", help="Page to write: .html.", show_default=False),
        Written("page", (".html",)),
    ],
    force: ForceOption = False,
) -> None:
    """Write a page with a row for each schedule in the files of a folder, and links to them.

    It reads the records of the files: when they were written, by which command, for which jobs,
    with which scheduler and metrics. Files without a record are named below the table. A click on a
    heading sorts.
    """
    from hpcgym.explore.index import indexed, write_index

    with working(f"reading {results}"):
        found = indexed(results, but=output)  # which may be there already
        write_index(found, output, results.resolve().name)
    without = f", {len(found.others):,} without a record" if found.others else ""
    note(f"wrote {output}: {len(found.records):,} files{without}")
