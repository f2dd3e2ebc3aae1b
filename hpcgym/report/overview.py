"""One picture of everything, and figures for a paper."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.baselines.labels import describe
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files.writing import writing
from hpcgym.report import canvas, distribution, tables
from hpcgym.report.gantt import gantt_inches, gantt_on, gantt_time
from hpcgym.report.placement import has_nodes
from hpcgym.report.timeline import (
    curve_on,
    draw_class_waits,
)
from hpcgym.schedule.provenance import provenance_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpec

    from hpcgym.schedule.result import Result


# --- Figures for papers ---------------------------------------------------------------------------

#: Formats of each figure: LaTeX takes the first, word processors and pages the other.
SUFFIXES = (".pdf", ".svg")
#: Widths [inches]: a column of most journals, and what a page has at most.
COLUMN_INCHES, MOST_INCHES = 3.5, 12.0
#: Letters in narrower figures leave no room for what is drawn.
LEAST_INCHES = 2.5
_LINES_OF_NAMES = 4
_INCHES = 2.4  # of what is drawn, without a legend above it

_MACHINE = ("utilization", "queue")  # what is drawn over time of any schedule

#: Draws on axes.
Draw = Callable[["Axes"], Any]


def save_figures(
    results: tables.Results, folder: str | os.PathLike[str], width: float = COLUMN_INCHES
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
    parts = tables.drawable(results)
    drawn = {name: draw_figure(parts, name, width) for name in _draws_of(parts)}
    record = provenance_of(parts)
    return write_figures(drawn, folder, lambda name: record | _told(name, width))


def draw_figure(results: tables.Results, name: str, width: float = COLUMN_INCHES) -> Figure:
    """Return one of the figures that :func:`save_figures` writes.

    Raises
    ------
    HpcgymError : another name, or what that function raises.
    """
    given = tables.drawable(results)
    # at rows there is room for few letters; a legend has names over some lines
    short = canvas.shortened(given, width if name == "job-speedups" else _LINES_OF_NAMES * width)
    parts = {short[name]: result for name, result in given.items()}
    draws = _draws_of(parts)
    check_choice("figure", name, draws)
    inches = distribution.boxes_inches(parts) if name == "job-speedups" else _INCHES
    return bare_figure(draws[name], width, inches)


def figure_again(results: tables.Results, told: Mapping[str, Any], path: Path) -> None:
    """Write a figure once more, from what its record tells as "figure"."""
    figure = draw_figure(results, told["name"], told["width"])
    record = provenance_of(tables.drawable(results)) | _told(told["name"], told["width"])
    canvas.save_figure(figure, path, path.suffix.casefold(), record)


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
    figure = canvas.new_figure(width, inches)
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
            canvas.save_figure(figure, found[-1], suffix, record(name))
    return found


def _draws_of(parts: Mapping[str, Result]) -> dict[str, Draw]:
    """Return what draws each figure there is of these results, by its name."""
    time = canvas.time_axis(parts)
    found: dict[str, Draw] = {
        "slowdown": partial(_slowdown, parts=parts),
        **{name: partial(curve_on, name=name, parts=parts, time=time) for name in _MACHINE},
        "waits-by-size": partial(draw_class_waits, parts, "size"),
        "waits-by-length": partial(draw_class_waits, parts, "length"),
    }
    if distribution.has_speedups(parts):
        found["throughput"] = partial(curve_on, name="throughput", parts=parts, time=time)
        found["job-speedups"] = partial(distribution.draw_job_speedups, parts)
        if all(map(has_nodes, parts.values())):
            found["nodes"] = partial(curve_on, name="nodes", parts=parts, time=time)
    return found


def _slowdown(axes: Axes, parts: Mapping[str, Result]) -> None:
    """Draw slowdowns with the legend above the curves, which fill a narrow figure."""
    distribution.bsld_on(axes, parts)
    axes.plot([], [], "o", color=canvas.DARK_GREY, markersize=6, label="means")
    _, names = axes.get_legend_handles_labels()
    canvas.legend_above(axes, names)


# --- One picture of everything --------------------------------------------------------------------

#: Up to so many schedulers have a Gantt chart; of more, none could be read.
MOST_GANTTS = 3
#: Up to so many schedulers are in one panel whatever their machines.
MOST_TOGETHER = 4
#: Up to so many machines have panels; pictures of more would be higher than files may be.
MOST_PANELS = 12
#: Of a table: the texts of each, and whether it is the best of its column.
Rows = list[list[tuple[str, bool]]]
#: When Gantt charts begin and end [s], as far as somebody said so.
Span = tuple[float | None, float | None]

_GANTT_INCHES = {1: 4.0, 2: 3.2, 3: 2.6}
_MOST_GANTT_INCHES = 6.0  # of several
_TIMELINE_INCHES = 2.1
_LETTERS_PER_INCH = 12  # of 10 points
_BSLD_INCHES, _ROW_INCHES, _WIDTH_INCHES = 3.8, 0.2, 12.0
_LEAST_LETTERS = 24  # of a name on a line
_PAD = 0.02  # beside a name, of the width of its column
_NAME_INCHES = 0.33  # of two lines of 8 points

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
_OF_SPEEDUPS = (
    "mean_job_speedup",
    "slowed_share",
    "compact_share",
    "io_congestion",
    "throughput_per_h",
)


def save_picture(
    results: tables.Results,
    path: str | os.PathLike[str],
    *,
    begin: float | None = None,
    end: float | None = None,
) -> None:
    """Draw an overview of one or several schedules of a workload into a file.

    It has a Gantt chart for each of up to three schedulers, utilization and queue length over time,
    the distribution of the bounded slowdown, and the main metrics. Where jobs share
    nodes, also job speedups, and nodes in use and ended jobs over time. More than four schedulers
    on several machines have these once for each machine. Gantt charts of long schedules are of the
    busiest week, as of :func:`draw_gantt`, which is grey in what is drawn over time. Its metadata
    say where it is from (:func:`hpcgym.schedule.provenance.provenance_of`).

    Parameters
    ----------
    results : a result, a sequence of them, or scheduler name -> result.
    path : ends in ``.png``, ``.svg`` or ``.pdf``, which tells the format.
    begin, end : the part of Gantt charts [s], as of :func:`draw_gantt`.

    Raises
    ------
    HpcgymError : another ending, a file that cannot be written, or matplotlib is not installed.
    """
    path = Path(path)
    suffix = canvas.picture_suffix(path)
    canvas.save_figure(
        draw_overview(results, begin, end), path, suffix, provenance_of(tables.drawable(results))
    )


def why_no_gantts(parts: Mapping[str, Result]) -> str:
    """Return why there are no Gantt charts of so many schedulers, in a line; else nothing."""
    number = max(map(len, panels(parts)))
    if number <= MOST_GANTTS:
        return ""
    most = f"at most {MOST_GANTTS} are drawn"
    return f"Gantt charts are left out: there are {number} schedulers, and {most}."


def draw_overview(
    results: tables.Results, begin: float | None = None, end: float | None = None
) -> Figure:
    """Return the figure that :func:`save_picture` saves."""
    parts = tables.drawable(results)
    draw = _draw_one if len(parts) == 1 else _draw_several
    return draw(parts, (begin, end))


def _draw_one(parts: Mapping[str, Result], span: Span) -> Figure:
    """Draw the schedule over time, then the slowdowns beside the metrics."""
    timelines = _timelines(parts)
    heights = [*_gantt_heights(parts), *[_TIMELINE_INCHES] * len(timelines), *_boxes_heights(parts)]
    figure, grid = _new_overview(parts, [*heights, _BSLD_INCHES])
    distribution.bsld_on(figure.add_subplot(grid[-1, 0]), parts)
    ((_, result),) = parts.items()
    names = (*_LISTED, *_OF_SPEEDUPS) if distribution.has_speedups(parts) else _LISTED
    rows = [
        [(metric.heading, False), (tables.text_of(metric, result.metrics[metric.name]), False)]
        for metric in tables.described(names)
        if metric.name in result.metrics
    ]
    _draw_table(figure.add_subplot(grid[-1, 1]), rows)
    if distribution.has_speedups(parts):
        distribution.draw_job_speedups(parts, figure.add_subplot(grid[-2, :]))
    _draw_over_time(figure, grid, parts, 0, canvas.time_axis(parts), span)
    return figure


def _draw_several(parts: Mapping[str, Result], span: Span) -> Figure:
    """Draw the panels, one below the other, then the metrics, which have long names in full."""
    short = canvas.shortened(parts, _WIDTH_INCHES)
    groups = [{short[name]: one for name, one in group.items()} for group in panels(parts)]
    heights = [_panel_heights(group) for group in groups]
    rows_of_table = wrapped(tables.comparison(parts))
    lines = sum(row[0][0].count("\n") + 1 for row in rows_of_table)
    table = _ROW_INCHES * (lines + 1.5)
    figure, grid = _new_overview(parts, [*chain(*heights), table])
    first = 0
    for group, rows in zip(groups, heights, strict=True):
        where = (
            tables.machine_in_words(next(iter(group.values())).cluster) if len(groups) > 1 else ""
        )
        _draw_panel(figure, grid, group, first, canvas.time_axis(parts), span, where)
        first += len(rows)
    _draw_table(figure.add_subplot(grid[-1, :]), rows_of_table)
    return figure


def panels(parts: Mapping[str, Result]) -> list[Mapping[str, Result]]:
    """Return the results that are drawn beside each other.

    Those of each machine, if there are more than can be followed together, and on machines of which
    a picture has room; else all.
    """
    groups = tables.by_machine(parts)
    apart = len(parts) > max(MOST_TOGETHER, len(groups)) and len(groups) <= MOST_PANELS
    return [*groups] if apart else [parts]


def _panel_heights(parts: Mapping[str, Result]) -> list[float]:
    """Return the heights in inches of what is drawn of some schedulers."""
    timelines = [_TIMELINE_INCHES] * len(_timelines(parts))
    names = max(_BSLD_INCHES, 0.5 + _NAME_INCHES * len(parts))
    return [names, *_boxes_heights(parts), *_gantt_heights(parts), *timelines]


def _draw_panel(
    figure: Figure,
    grid: GridSpec,
    parts: Mapping[str, Result],
    first: int,
    time: canvas.TimeAxis,
    span: Span,
    where: str,
) -> None:
    """Draw the slowdowns beside the names of the schedulers, then time, from a row of the grid.

    ``where`` is the machine, if others are in other panels.
    """
    curves = distribution.bsld_on(figure.add_subplot(grid[first, 0]), parts, where)
    names = figure.add_subplot(grid[first, 1])
    names.axis("off")
    distribution.bsld_legend(names, curves)
    boxes = _boxes_heights(parts)
    if boxes:
        distribution.draw_job_speedups(parts, figure.add_subplot(grid[first + 1, 0]))
        distribution.draw_slowed(parts, figure.add_subplot(grid[first + 1, 1]))
    _draw_over_time(figure, grid, parts, first + 1 + len(boxes), time, span, where)


def _gantt_heights(parts: Mapping[str, Result]) -> list[float]:
    """Return the heights of Gantt charts in inches, of none if there are too many."""
    if why_no_gantts(parts):
        return []
    least = _GANTT_INCHES[len(parts)]
    most = _MOST_GANTT_INCHES if len(parts) > 1 else math.inf
    return [min(gantt_inches(result, least), most) for result in parts.values()]


def _boxes_heights(parts: Mapping[str, Result]) -> list[float]:
    """Return the height of the boxes of job speedups in inches, if there are any."""
    return [distribution.boxes_inches(parts)] if distribution.has_speedups(parts) else []


def _timelines(parts: Mapping[str, Result]) -> list[str]:
    """Return what is drawn over time; how many jobs end only where their lengths differ."""
    if not distribution.has_speedups(parts):
        return [*_MACHINE]
    nodes = ["nodes"] if all(map(has_nodes, parts.values())) else []
    return ["utilization", *nodes, "queue", "throughput"]


def _new_overview(parts: Mapping[str, Result], heights: list[float]) -> tuple[Figure, GridSpec]:
    """Return a figure with a heading, and its grid: two columns, rows of the given heights."""
    figure = canvas.new_figure(_WIDTH_INCHES, sum(heights) + 0.5)
    width = int(_WIDTH_INCHES * _LETTERS_PER_INCH)
    lines = [part for line in _heading(parts).split("\n") for part in textwrap.wrap(line, width)]
    figure.suptitle("\n".join(lines), x=0.01, horizontalalignment="left", fontsize=10)
    return figure, figure.add_gridspec(len(heights), 2, height_ratios=heights, width_ratios=(5, 4))


def _draw_over_time(
    figure: Figure,
    grid: GridSpec,
    parts: Mapping[str, Result],
    first: int,
    time: canvas.TimeAxis,
    span: Span,
    where: str = "",
) -> None:
    """Draw what changes over time, one below the other, the lowest with all labels."""
    legend = len(parts) == 1  # of several, the slowdowns have it
    gantts, timelines = len(_gantt_heights(parts)), _timelines(parts)
    number = gantts + len(timelines)
    rows = [figure.add_subplot(grid[first + row, :]) for row in range(number)]
    shown, which = gantt_time(parts, *span) if gantts else (time, "")
    apart = gantts > 0 and (which or span != (None, None))  # their time is another
    for axes, name in zip(rows[gantts:], timelines, strict=True):
        curve_on(axes, name, parts, time, where, legend=legend)
        if apart:
            ends = time.place(shown.first), time.place(shown.last)
            axes.axvspan(*ends, color=canvas.LIGHT_GREY, zorder=0)
    # of several the users of all times, or colours would differ; they are named once
    palettes = [None] if legend else [canvas.palette_of(result.runs) for result in parts.values()]
    told: list[dict[str, str]] = []
    for axes, (name, result), palette in zip(rows[:gantts], parts.items(), palettes, strict=False):
        heading = name if len(parts) > 1 else "Gantt chart"
        new = palette is None or palette.meaning not in told or result.lost is not None
        told += [palette.meaning] if palette else []
        on = shown if apart else time  # which other panels may share
        gantt_on(axes, result, on, heading, which=which, palette=palette, legend=new)
    for place, axes in enumerate(rows[:-1]):
        if not (apart and place == gantts - 1):
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
            axes.xaxis.offsetText.set_visible(False)


def _heading(parts: Mapping[str, Result]) -> str:
    """Return what the picture is of, the rules of a scheduler that is alone, and the limits."""
    heading = tables.subtitle(parts)
    rules = describe(next(iter(parts.values())).scheduler)
    alone = [rules] if len(parts) == 1 and rules not in heading else []
    return "\n".join(filter(None, [heading, *alone, tables.limits_of(parts)]))


def wrapped(rows: Rows) -> Rows:
    """Return the rows of a table, their names on as many lines as the picture's width needs."""
    others = sum(_width(column) for column in list(zip(*rows, strict=True))[1:])
    room = max(int((_WIDTH_INCHES - 1) * _LETTERS_PER_INCH) - others, _LEAST_LETTERS)
    return [[("\n".join(textwrap.wrap(row[0][0], room)), row[0][1]), *row[1:]] for row in rows]


def _width(column: Iterable[tuple[str, bool]]) -> int:
    """Return how wide a column of a table is, in letters."""
    return 3 + max(len(line) for text, _ in column for line in text.split("\n"))


def _draw_table(axes: Axes, rows: Rows) -> None:
    """Write rows of (text, is it the best), columns as wide as their longest text needs."""
    axes.axis("off")
    widths = list(map(_width, zip(*rows, strict=True)))
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
        cell.set_edgecolor(canvas.LIGHT_GREY)
        cell.set_height(cell.get_height() * (rows[row][0][0].count("\n") + 1))
        if not column:
            cell.PAD = _PAD
            cell.set_text_props(horizontalalignment="left")
        if rows[row][column][1]:
            cell.set_text_props(fontweight="bold", color=canvas.GREEN)
