"""The option of commands that write what they print as a page, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.cli.files import ForceOption, Written
from hpcgym.cli.running import note
from hpcgym.files.recorded import write_beside
from hpcgym.files.writing import whole_text
from hpcgym.progress import working


@dataclass(frozen=True)
class PageOptions:
    """Where a page goes."""

    panel: ClassVar[str] = "Output"

    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page too, whose tables can be sorted: .html.",
            show_default=False,
        ),
        Written("page", (".html",)),
    ] = None
    force: ForceOption = False

    def write(self, make: Callable[[], str]) -> None:
        """Write the page that a function returns, if one is asked for, and say so."""
        if self.html is None:
            return
        with working(f"writing {self.html}"), whole_text(self.html) as file:
            file.write(make())
        note(f"wrote {self.html}")

    def write_study(self, report: Path) -> None:
        """Say where the report of a study is, record what made it, and write a page if asked to."""
        from hpcgym.explore.study import study_page
        from hpcgym.schedule.provenance import provenance_of_workloads

        write_beside(report, provenance_of_workloads([]))
        note(f"wrote {report}, tables and pictures beside it")
        self.write(lambda: study_page(report))
