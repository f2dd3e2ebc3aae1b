"""What the pictures of all studies share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.files.writing import writing
from hpcgym.report.canvas import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_picture(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, and its folder if need be.

    Raises
    ------
    HpcgymError : it cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path, ".png")


def log_ticks(axis: Any, digits: Sequence[float] = (1, 2, 5)) -> None:
    """Put these multiples of the powers of ten beside a logarithmic axis."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter("")
