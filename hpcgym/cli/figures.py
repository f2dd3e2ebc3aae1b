"""The options of commands that write figures for papers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from hpcgym.cli.files import WrittenFolder
from hpcgym.cli.running import note
from hpcgym.progress import working


@dataclass(frozen=True)
class FigureOptions:
    """Where figures go, and how wide they are."""

    panel: ClassVar[str] = "Output"

    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write figures for a paper, each as PDF and SVG: no titles, TrueType fonts, lines"
            " that differ in grey too.",
            show_default=False,
        ),
        WrittenFolder(),
    ] = None
    figures_width: Annotated[
        float,
        typer.Option(
            metavar="INCHES", help="Width of the figures: 3.5 is a column, 7.2 a page.", min=2.5,
            max=12,
        ),
    ] = 3.5  # fmt: skip

    def write(self, save: Callable[[Path, float], list[Path]]) -> None:
        """Write what a function of folder and width writes, if it is asked for, and say so."""
        if self.figures is None:
            return
        with working(f"drawing into {self.figures}"):
            files = save(self.figures, self.figures_width)
        names = dict.fromkeys(path.stem for path in files)
        note(f"wrote {', '.join(names)} into {self.figures}, each as PDF and SVG")
