"""One picture of everything."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcgym.baselines.labels import describe
from hpcgym.report import canvas, distribution, tables
from hpcgym.report.cells import two_lines
from hpcgym.report.gantt import gantt_inches, gantt_on, gantt_time
from hpcgym.report.timeline import (
    CURVES,
    MOST_LINES,
    ROW_INCHES,
    curve_on,
    draw_power,
    rows_beside_first,
)
from hpcgym.schedule.provenance import provenance_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.schedule.result import Result


# --- One picture of everything --------------------------------------------------------------------

#: Draws on axes.
Draw = Callable[["Axes"], Any]
#: Up to so many schedulers have a Gantt chart; of more, none could be read.
MOST_GANTTS = 3
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
    "area_weighted_wait_s",
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
    the distribution of the bounded slowdown, and the main metrics; of one schedule also the power
    of nodes; where jobs share nodes, job speedups. Gantt charts of long schedules are of the
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
    """Return why there are no Gantt charts of so many schedulers, and what helps; else nothing."""
    if len(parts) <= MOST_GANTTS:
        return ""
    return (
        f"no Gantt charts to print, because {len(parts)} would be too small to read: for charts,"
        f" name at most {MOST_GANTTS} schedulers"
    )


class PictureRow(NamedTuple):
    """A row of the picture: how high it is [inches], and what draws on its one or two axes.

    What is ``late`` depends on the places of all others, and is drawn after them.
    """

    inches: float
    draw: Callable[..., Any]
    columns: int = 1
    late: bool = False


def draw_over_time(results: tables.Results) -> Figure:
    """Return a picture of utilization and queue; of more than two schedules each beside the first.

    Parameters
    ----------
    results : a result, a sequence of them, or scheduler name -> result.
    """
    canvas.require_matplotlib()
    parts = tables.drawable(results)
    return _picture(_labelled_once(_curves(parts, canvas.time_axis(parts), legend=True)))


def draw_overview(
    results: tables.Results, begin: float | None = None, end: float | None = None
) -> Figure:
    """Return the figure that :func:`save_picture` saves."""
    canvas.require_matplotlib()
    parts = tables.drawable(results)
    rows = (_rows_of_one if len(parts) == 1 else _rows_of_several)(parts, (begin, end))
    figure = _picture(rows)
    width = int(_WIDTH_INCHES * _LETTERS_PER_INCH)
    lines = [part for line in _heading(parts).split("\n") for part in textwrap.wrap(line, width)]
    figure.suptitle("\n".join(lines), x=0.01, horizontalalignment="left", fontsize=10)
    return figure


def _picture(rows: list[PictureRow]) -> Figure:
    """Return a figure of rows, one below the other."""
    figure = canvas.new_figure(_WIDTH_INCHES, sum(row.inches for row in rows) + 0.5)
    heights = [row.inches for row in rows]
    grid = figure.add_gridspec(len(rows), 2, height_ratios=heights, width_ratios=(5, 4))
    places = []
    for k, row in enumerate(rows):
        cells = [grid[k, 0], grid[k, 1]] if row.columns == 2 else [grid[k, :]]
        places.append((row, [figure.add_subplot(cell) for cell in cells]))
    for row, axes in sorted(places, key=lambda place: place[0].late):
        row.draw(*axes)
    return figure


def _rows_of_one(parts: Mapping[str, Result], span: Span) -> list[PictureRow]:
    """Return the schedule over time, then the slowdowns beside the metrics."""
    (result,) = parts.values()
    shared = distribution.has_speedups(parts)
    rows = [
        [(metric.heading, False), (tables.text_of(metric, result.metrics[metric.name]), False)]
        for metric in tables.described((*_LISTED, *(_OF_SPEEDUPS if shared else ())))
        if metric.name in result.metrics
    ]

    def last(curves: Axes, listed: Axes) -> None:
        distribution.bsld_on(curves, parts)
        curves.set_xlabel("bounded slowdown x (dot: mean)")
        _draw_table(listed, rows)

    over_time = _over_time(parts, canvas.time_axis(parts), span)
    return [*over_time, *_speedups(parts), PictureRow(_BSLD_INCHES, last, 2)]


def _rows_of_several(parts: Mapping[str, Result], span: Span) -> list[PictureRow]:
    """Return slowdowns beside the names, what changes over time, and metrics with names in full."""
    short = canvas.shortened(parts, _WIDTH_INCHES)
    drawn = {short[name]: result for name, result in parts.items()}

    def slowdowns(curves: Axes, names: Axes) -> None:
        distribution.bsld_on(curves, drawn)
        names.axis("off")
        distribution.bsld_legend(names, curves)

    rows = [PictureRow(max(_BSLD_INCHES, 0.5 + _NAME_INCHES * len(parts)), slowdowns, 2)]
    rows += [*_speedups(drawn), *_over_time(drawn, canvas.time_axis(drawn), span)]
    lines = wrapped(tables.comparison(parts))
    number = sum(map(_lines, lines))
    return [*rows, PictureRow(_ROW_INCHES * (number + 1.5), partial(_draw_table, rows=lines))]


def _speedups(parts: Mapping[str, Result]) -> list[PictureRow]:
    """Return the speedups of jobs, where any share nodes."""
    if not distribution.has_speedups(parts):
        return []
    return [
        PictureRow(distribution.boxes_inches(parts), partial(distribution.draw_job_speedups, parts))
    ]


def _over_time(parts: Mapping[str, Result], time: canvas.TimeAxis, span: Span) -> list[PictureRow]:
    """Return what changes over time, one below the other, the lowest with all labels."""
    alone = len(parts) == 1  # of several, the slowdowns have the legend
    gantts = {} if why_no_gantts(parts) else parts
    shown, which = gantt_time(parts, *span) if gantts else (time, "")
    apart = bool(gantts) and (which != "" or span != (None, None))  # their time is another
    # of several the users of all times, or colours would differ; they are named once
    palettes = {
        name: canvas.palette_of(result.runs) for name, result in gantts.items() if not alone
    }
    meanings = [palette.meaning for palette in palettes.values()]
    rows = []
    for place, (name, result) in enumerate(gantts.items()):
        least, most = _GANTT_INCHES[len(parts)], math.inf if alone else _MOST_GANTT_INCHES
        new = alone or result.lost is not None or meanings[place] not in meanings[:place]
        draw = partial(
            gantt_on, result=result, time=shown if apart else time, which=which,
            heading="Gantt chart" if alone else name, palette=palettes.get(name), legend=new,
        )  # fmt: skip
        rows.append(PictureRow(min(gantt_inches(result, least), most), draw, late=True))

    def shaded(draw: Callable[..., Any], *given: Axes) -> None:
        draw(*given)
        for axes in given:
            axes.axvspan(
                time.place(shown.first), time.place(shown.last), color=canvas.LIGHT_GREY, zorder=0
            )

    curves = _curves(parts, time, legend=alone)
    rows += [row._replace(draw=partial(shaded, row.draw)) for row in curves] if apart else curves
    if alone and all(
        result.keeps_books and result.idle_seconds is None for result in parts.values()
    ):
        rows.append(PictureRow(_TIMELINE_INCHES, partial(draw_power, parts)))
    return _labelled_once(rows, len(gantts) if apart else 0)


def _curves(
    parts: Mapping[str, Result], time: canvas.TimeAxis, *, legend: bool
) -> list[PictureRow]:
    """Return utilization and queue of all schedules, or of more than two each beside the first."""
    if len(parts) > MOST_LINES:
        beside = rows_beside_first(parts, time, _WIDTH_INCHES / 2)
        return [PictureRow(ROW_INCHES, draw, 2) for draw in beside]
    draws = (partial(curve_on, name=name, parts=parts, time=time, legend=legend) for name in CURVES)
    return [PictureRow(_TIMELINE_INCHES, draw) for draw in draws]


def _labelled_once(rows: list[PictureRow], apart: int = 0) -> list[PictureRow]:
    """Return rows over time of which the lowest is labelled, and that of those ``apart`` above."""
    lowest = {len(rows) - 1, apart - 1}
    return [
        row if place in lowest else row._replace(draw=partial(_without_time, row.draw))
        for place, row in enumerate(rows)
    ]


def _without_time(draw: Callable[..., Any], *given: Axes) -> None:
    """Draw, and leave out what the axes of time say: that of a lower picture is the same."""
    draw(*given)
    for axes in given:
        axes.set_xlabel("")
        axes.tick_params(labelbottom=False)
        axes.xaxis.offsetText.set_visible(False)


def _heading(parts: Mapping[str, Result]) -> str:
    """Return what the picture is of, the rules of a scheduler that is alone, and the limits."""
    heading = tables.subtitle(parts)
    rules = describe(next(iter(parts.values())).scheduler)
    alone = [rules] if len(parts) == 1 and rules not in heading else []
    beside = f"over time, grey: {next(iter(parts))}" if len(parts) > MOST_LINES else ""
    return "\n".join(filter(None, [heading, *alone, tables.limits_of(parts), beside]))


def wrapped(rows: Rows) -> Rows:
    """Return the rows of a table, headings on two lines, names on as many as the width needs."""
    rows = [[(two_lines(text), best) for text, best in rows[0]], *rows[1:]]
    others = sum(_width(column) for column in list(zip(*rows, strict=True))[1:])
    room = max(int((_WIDTH_INCHES - 1) * _LETTERS_PER_INCH) - others, _LEAST_LETTERS)
    return [[("\n".join(textwrap.wrap(row[0][0], room)), row[0][1]), *row[1:]] for row in rows]


def _width(column: Iterable[tuple[str, bool]]) -> int:
    """Return how wide a column of a table is, in letters."""
    return 3 + max(len(line) for text, _ in column for line in text.split("\n"))


def _lines(row: Iterable[tuple[str, bool]]) -> int:
    """Return how many lines a row of a table has."""
    return max(text.count("\n") + 1 for text, _ in row)


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
        cell.set_height(cell.get_height() * _lines(rows[row]))
        if not column:
            cell.PAD = _PAD
            cell.set_text_props(horizontalalignment="left")
        if rows[row][column][1]:
            cell.set_text_props(fontweight="bold", color=canvas.GREEN)
