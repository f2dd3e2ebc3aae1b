"""One picture of everything: Gantt charts, utilisation, queue, slowdowns and the main metrics."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.report.canvas import (
    GREEN,
    LIGHT_GREY,
    new_figure,
    picture_suffix,
    save_figure,
    time_axis,
)
from hpcgym.report.distribution import bsld_legend, bsld_on
from hpcgym.report.gantt import gantt_on
from hpcgym.report.labels import Results, describe, drawable, subtitle
from hpcgym.report.tables import comparison, described
from hpcgym.report.timeline import queue_length_on, utilization_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpec

    from hpcgym.result import Result

#: Up to so many schedulers have a Gantt chart; of more, none could be read.
MOST_GANTTS = 3
#: Up to so many schedulers are named at each of the timelines; more only beside the slowdowns.
MOST_NAMED = 4
_GANTT_INCHES = {1: 4.0, 2: 3.2, 3: 2.6}
_TIMELINES_INCHES = (2.1, 2.1)
_BSLD_INCHES, _ROW_INCHES, _WIDTH_INCHES = 3.8, 0.2, 12.0

#: Metrics of a schedule that is alone.
_LISTED = (
    "mean_bsld",
    "median_bsld",
    "p95_bsld",
    "max_bsld",
    "mean_wait_s",
    "max_wait_s",
    "mean_response_s",
    "utilization",
    "makespan_s",
    "backfilled_share",
    "killed_jobs",
)


def save_picture(results: Results, path: str | os.PathLike[str]) -> None:
    """Draw an overview of one or several schedules of a workload into a file.

    It has a Gantt chart for each of up to three schedulers, utilisation and queue length over the
    same time axis, the distribution of the bounded slowdown, and the main metrics.

    Parameters
    ----------
    results : a result, a sequence of them, or scheduler name -> result.
    path : ends in ``.png``, ``.svg`` or ``.pdf``, which tells the format.

    Raises
    ------
    HpcgymError : another ending, a file that cannot be written, or matplotlib is not installed.
    """
    path = Path(path)
    suffix = picture_suffix(path)
    save_figure(draw_overview(results), path, suffix)


def why_no_gantts(parts: Sized) -> str:
    """Return why there are no Gantt charts of so many schedulers, in a line; else nothing."""
    number = len(parts)
    if number <= MOST_GANTTS:
        return ""
    return f"No Gantt charts: they are for up to {MOST_GANTTS} schedulers, and these are {number}."


def draw_overview(results: Results) -> Figure:
    """Return the figure that :func:`save_picture` saves."""
    parts = drawable(results)
    return _draw_one(parts) if len(parts) == 1 else _draw_several(parts)


def _draw_one(parts: Mapping[str, Result]) -> Figure:
    """Draw the schedule over time, then the slowdowns beside the metrics."""
    figure, grid = _new_overview(parts, [_GANTT_INCHES[1], *_TIMELINES_INCHES, _BSLD_INCHES])
    bsld_on(figure.add_subplot(grid[-1, 0]), parts)
    ((_, result),) = parts.items()
    rows = [
        [(metric.heading, False), (metric.text(result.metrics[metric.name]), False)]
        for metric in described(_LISTED)
    ]
    _draw_table(figure.add_subplot(grid[-1, 1]), rows)
    _draw_timelines([figure.add_subplot(grid[row, :]) for row in range(3)], parts)
    return figure


def _draw_several(parts: Mapping[str, Result]) -> Figure:
    """Draw the slowdowns beside the names of the schedulers, then time, then the metrics."""
    gantts = 0 if why_no_gantts(parts) else len(parts)
    table_inches = _ROW_INCHES * (len(parts) + 2.5)
    heights = [_BSLD_INCHES, *[_GANTT_INCHES[len(parts)]] * gantts] if gantts else [_BSLD_INCHES]
    figure, grid = _new_overview(parts, [*heights, *_TIMELINES_INCHES, table_inches])
    curves = bsld_on(figure.add_subplot(grid[0, 0]), parts)
    names = figure.add_subplot(grid[0, 1])
    names.axis("off")
    bsld_legend(names, curves)
    _draw_table(figure.add_subplot(grid[-1, :]), comparison(parts))
    _draw_timelines([figure.add_subplot(grid[row + 1, :]) for row in range(gantts + 2)], parts)
    return figure


def _new_overview(parts: Mapping[str, Result], heights: list[float]) -> tuple[Figure, GridSpec]:
    """Return a figure with a heading, and its grid: two columns, rows of the given heights."""
    figure = new_figure(_WIDTH_INCHES, sum(heights) + 0.5)
    figure.suptitle(_heading(parts), x=0.01, horizontalalignment="left", fontsize=10)
    return figure, figure.add_gridspec(len(heights), 2, height_ratios=heights, width_ratios=(5, 4))


def _draw_timelines(rows: list[Axes], parts: Mapping[str, Result]) -> None:
    """Draw what changes over time into axes one below the other, the lowest with all labels."""
    time = time_axis(parts)
    legend = len(parts) <= MOST_NAMED
    utilization_on(rows[-2], parts, time, legend=legend)
    queue_length_on(rows[-1], parts, time, legend=legend)
    for axes, (name, result) in zip(rows[:-2], parts.items(), strict=False):
        gantt_on(axes, result, time, name if len(parts) > 1 else "Gantt chart")
    for axes in rows[:-1]:
        axes.set_xlabel("")
        axes.tick_params(labelbottom=False)
        axes.xaxis.offsetText.set_visible(False)


def _heading(parts: Mapping[str, Result]) -> str:
    """Return what the picture is of, and the rules of a scheduler that is alone."""
    heading = subtitle(parts)
    if len(parts) > 1:
        return heading
    rules = describe(next(iter(parts.values())).scheduler)
    return heading if rules in heading else f"{heading}\n{rules}"


def _draw_table(axes: Axes, rows: Sequence[Sequence[tuple[str, bool]]]) -> None:
    """Write rows of (text, is it the best), columns as wide as their longest text needs."""
    axes.axis("off")
    widths = [3 + max(len(text) for text, _ in column) for column in zip(*rows, strict=True)]
    table = axes.table(
        [[text for text, _ in row] for row in rows],
        cellLoc="right",
        colWidths=[width / sum(widths) for width in widths],
        loc="upper center",
        edges="horizontal",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(8)
    for (row, column), cell in table.get_celld().items():
        cell.set_edgecolor(LIGHT_GREY)
        if not column:
            cell.set_text_props(horizontalalignment="left")
        if rows[row][column][1]:
            cell.set_text_props(fontweight="bold", color=GREEN)
