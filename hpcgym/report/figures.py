"""Figures for papers: each by itself, as PDF and SVG, as wide as a column."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files.writing import writing
from hpcgym.report.canvas import (
    DARK_GREY,
    legend_above,
    new_figure,
    save_figure,
    shortened,
    time_axis,
)
from hpcgym.report.class_waits import draw_class_waits
from hpcgym.report.distribution import bsld_on
from hpcgym.report.job_speedups import boxes_inches, draw_job_speedups, has_speedups
from hpcgym.report.labels import Results, drawable
from hpcgym.report.placement import has_nodes
from hpcgym.report.timeline import nodes_on, queue_length_on, throughput_on, utilization_on
from hpcgym.schedule.provenance import provenance_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.schedule.result import Result

#: Formats of each figure: LaTeX takes the first, word processors and pages the other.
SUFFIXES = (".pdf", ".svg")
#: Widths [inches]: a column of most journals, and what a page has at most.
COLUMN_INCHES, MOST_INCHES = 3.5, 12.0
#: Letters in narrower figures leave no room for what is drawn.
LEAST_INCHES = 2.5
_LINES_OF_NAMES = 4
_INCHES = 2.4  # of what is drawn, without a legend above it

#: Draws on axes.
Draw = Callable[["Axes"], Any]


def save_figures(
    results: Results, folder: str | os.PathLike[str], width: float = COLUMN_INCHES
) -> list[Path]:
    """Write each figure of one or several schedules of a workload as PDF and as SVG.

    They are ``slowdown`` (:func:`~hpcgym.report.draw_bsld`), ``utilization``, ``queue``,
    ``waits-by-size`` and ``waits-by-length``; where jobs share nodes also ``throughput``,
    ``job-speedups`` and, if it is known who has which, ``nodes``. They have no title: papers have
    captions. Long names of schedulers take several lines, and lack a part
    that others have too if they need more. Fonts are TrueType, lines differ in
    grey too. Their metadata say where they are from.

    Parameters
    ----------
    results : a result, a sequence of them, or scheduler name -> result.
    folder : to write into; it is made if need be, and files of these names are replaced.
    width : of a figure [inches], from 2.5 to 12.

    Returns
    -------
    The files, in the order above.

    Raises
    ------
    HpcgymError : another width, no jobs, a file that cannot be written, or matplotlib is missing.
    """
    parts = drawable(results)
    drawn = {name: draw_figure(parts, name, width) for name in _draws_of(parts)}
    record = provenance_of(parts)
    return write_figures(drawn, folder, lambda name: record | _told(name, width))


def draw_figure(results: Results, name: str, width: float = COLUMN_INCHES) -> Figure:
    """Return one of the figures that :func:`save_figures` writes.

    Raises
    ------
    HpcgymError : another name, or what that function raises.
    """
    given = drawable(results)
    # at rows there is room for few letters; a legend has names over some lines
    short = shortened(given, width if name == "job-speedups" else _LINES_OF_NAMES * width)
    parts = {short[name]: result for name, result in given.items()}
    draws = _draws_of(parts)
    check_choice("figure", name, draws)
    inches = boxes_inches(parts) if name == "job-speedups" else _INCHES
    return bare_figure(draws[name], width, inches)


def figure_again(results: Results, told: Mapping[str, Any], path: Path) -> None:
    """Write a figure once more, from what its record tells as "figure"."""
    figure = draw_figure(results, told["name"], told["width"])
    record = provenance_of(drawable(results)) | _told(told["name"], told["width"])
    save_figure(figure, path, path.suffix.casefold(), record)


def _told(name: str, width: float) -> dict[str, Any]:
    """Return what a record tells of a figure, so that it can be drawn again."""
    return {"figure": {"name": name, "width": width}}


def bare_figure(draw: Draw, width: float, inches: float = _INCHES) -> Figure:
    """Return a figure without a title, ``inches`` high and as much more as its legend needs.

    Raises
    ------
    HpcgymError : a width that figures cannot have.
    """
    if not LEAST_INCHES <= width <= MOST_INCHES:
        raise HpcgymError(
            f"figures are from {LEAST_INCHES:g} to {MOST_INCHES:g} inches wide, not {width:g}"
        )
    figure = new_figure(width, inches)
    axes = figure.add_subplot()
    draw(axes)
    axes.set_title("", loc="left")
    legend = axes.get_legend()
    if legend is not None:
        figure.draw_without_rendering()
        figure.set_figheight(inches + legend.get_window_extent().height / figure.dpi)
    return figure


def write_figures(
    figures: Mapping[str, Figure],
    folder: str | os.PathLike[str],
    record: Callable[[str], Mapping[str, Any]],
) -> list[Path]:
    """Write figures by their names in each of the formats, and return the files.

    Parameters
    ----------
    record : returns where the figure of a name is from.

    Raises
    ------
    HpcgymError : a file, or the folder, cannot be written.
    """
    folder = Path(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    found = []
    for name, figure in figures.items():
        for suffix in SUFFIXES:
            found.append(folder / f"{name}{suffix}")
            save_figure(figure, found[-1], suffix, record(name))
    return found


def _draws_of(parts: Mapping[str, Result]) -> dict[str, Draw]:
    """Return what draws each figure there is of these results, by its name."""
    time = time_axis(parts)
    found: dict[str, Draw] = {
        "slowdown": partial(_slowdown, parts=parts),
        "utilization": partial(utilization_on, parts=parts, time=time),
        "queue": partial(queue_length_on, parts=parts, time=time),
        "waits-by-size": partial(draw_class_waits, parts, "size"),
        "waits-by-length": partial(draw_class_waits, parts, "length"),
    }
    if has_speedups(parts):
        found["throughput"] = partial(throughput_on, parts=parts, time=time)
        found["job-speedups"] = partial(draw_job_speedups, parts)
        if all(map(has_nodes, parts.values())):
            found["nodes"] = partial(nodes_on, parts=parts, time=time)
    return found


def _slowdown(axes: Axes, parts: Mapping[str, Result]) -> None:
    """Draw slowdowns with the legend above the curves, which fill a narrow figure."""
    bsld_on(axes, parts)
    axes.plot([], [], "o", color=DARK_GREY, markersize=6, label="means")
    _, names = axes.get_legend_handles_labels()
    legend_above(axes, names)
