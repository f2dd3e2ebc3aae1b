"""Figures for papers: a column wide, names beside the curves, at most four curves in a plot."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files.writing import whole_text, writing
from hpcgym.report import canvas, distribution, tables
from hpcgym.report.cells import Table
from hpcgym.report.timeline import CURVES, curve_on, has_many_steps, unequal_queues
from hpcgym.schedule.provenance import provenance_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.schedule.result import Result

#: Formats of each figure: LaTeX takes the first, word processors and pages the other.
SUFFIXES = (".pdf", ".png")
#: Widths [inches]: a column of most journals, and what a page has at most.
COLUMN_INCHES, MOST_INCHES = 3.3, 12.0
#: Narrower figures have no room for letters beside what is drawn.
LEAST_INCHES = 2.5
#: Curves in one plot; a figure of more schedulers has the best ones.
MOST_CURVES = 4

_INCHES, _PANEL_INCHES, _ROW_INCHES, _FRAME_INCHES = 2.2, 0.8, 0.2, 0.55
_LETTERS_PT, _DOTS_PER_INCH, _LINES_OF_NAMES = 7, 300, 2


class Drawing(NamedTuple):
    """A plot that is not drawn yet.

    Attributes
    ----------
    inches : its height in a column, without a legend.
    draw : draws on a figure, or on a part of one.
    grows : whether it is higher where it is wider.
    """

    inches: float
    draw: Callable[[Any], Any]
    grows: bool = False

    def height(self, width: float) -> float:
        """Return how high it is at a width; all are inches."""
        return self.inches * width / COLUMN_INCHES if self.grows else self.inches


def on_axes(
    draw: Callable[[Axes], Any], inches: float = _INCHES, *, grows: bool = False
) -> Drawing:
    """Return the drawing of a function that draws on axes."""
    return Drawing(inches, lambda figure: draw(figure.add_subplot()), grows)


# --- The figures of schedules ---------------------------------------------------------------------


def save_figures(
    results: tables.Results, folder: str | os.PathLike[str], width: float = COLUMN_INCHES
) -> list[Path]:
    """Write each figure of one or several schedules as PDF and PNG, and each table as LaTeX.

    These are the files of ``hpcgym compare --figures``. Figures are ``slowdown``
    (:func:`~hpcgym.report.draw_bsld`), ``utilization`` and ``queue`` over time, with a panel for
    each scheduler, and ``job-speedups`` if jobs share nodes. If there are more than four
    schedulers, the first and the three others with the least mean bounded slowdown are drawn, and
    the figure says so. Figures have no title: papers have captions. Fonts are TrueType, and lines
    differ in grey too. The metadata say where a figure is from.

    Parameters
    ----------
    results : a result, a sequence of them, or scheduler name -> result.
    folder : to write into; it is made if need be, and files of these names are replaced.
    width : of a figure [inches], from 2.5 to 12.

    Returns
    -------
    The files: figures in the order above, then ``table-1.tex``, the metrics, ``table-2.tex``, who
    pays, and ``table-3.tex``, who loses most; of one schedule, ``table.tex``.

    Raises
    ------
    HpcgymError : another width, no jobs, a file that cannot be written, or matplotlib is missing.
    """
    parts = tables.drawable(results)
    drawings, made_tables = drawings_of(parts, width), tables.tables_of(parts)
    return write_figures(drawings, made_tables, folder, provenance_of(parts), width)


def draw_figure(results: tables.Results, name: str, width: float = COLUMN_INCHES) -> Figure:
    """Return one of the figures that :func:`save_figures` writes.

    Raises
    ------
    HpcgymError : another name, or what that function raises.
    """
    drawings = drawings_of(tables.drawable(results), width)
    check_choice("figure", name, drawings)
    return drawn(drawings[name], width)


def drawings_of(parts: Mapping[str, Result], width: float = COLUMN_INCHES) -> dict[str, Drawing]:
    """Return the figures of schedules by their names, for a width [inches]."""
    short = canvas.shortened(parts, _LINES_OF_NAMES * width)
    every = {short[name]: result for name, result in parts.items()}
    shown, note = best_of(
        every, {name: float(result.metrics["mean_bsld"]) for name, result in every.items()}
    )
    drawings = {"slowdown": on_axes(partial(_slowdown, parts=shown, note=note))}
    time = canvas.time_axis(shown)
    for name in CURVES:
        inches = _PANEL_INCHES * len(shown) + _FRAME_INCHES if len(shown) > 1 else _INCHES
        draw = partial(_panels, name=name, parts=shown, time=time, note=note)
        drawings[name] = Drawing(inches, draw)
    if distribution.has_speedups(every):
        rows = canvas.shortened(parts, width)
        boxes = partial(
            distribution.draw_job_speedups, {rows[name]: result for name, result in parts.items()}
        )
        drawings["job-speedups"] = on_axes(boxes, distribution.boxes_inches(every))
    return drawings


def best_of(parts: Mapping[str, Any], losses: Mapping[str, float]) -> tuple[dict[str, Any], str]:
    """Return the first part and the best others, in their order, and a note if any are left out.

    The others are compared with the first; ``losses`` : the less, the better.
    """
    if len(parts) <= MOST_CURVES:
        return dict(parts), ""
    first, *others = parts
    chosen = {first, *sorted(others, key=lambda name: losses[name])[: MOST_CURVES - 1]}
    kept = {name: part for name, part in parts.items() if name in chosen}
    return kept, f"{first} and the best {len(kept) - 1} of {len(others)} others"


def _slowdown(axes: Axes, parts: Mapping[str, Result], note: str) -> None:
    """Draw the slowdowns; a dot on each curve marks its mean."""
    distribution.bsld_on(axes, parts)
    axes.set_title("", loc="left")
    for line in axes.get_lines():
        line.set_markersize(4)
    for line, name in zip(canvas.labelled(axes), parts, strict=True):
        line.set_label(name)
    axes.set_xlabel("bounded slowdown x (dots: means)")
    label_lines(axes, note)


def _panels(
    figure: Any, name: str, parts: Mapping[str, Result], time: canvas.TimeAxis, note: str
) -> None:
    """Draw a curve over time for each schedule, one below the other on the same axes."""
    column = np.atleast_1d(figure.subplots(len(parts), 1, sharex=True))
    binned = has_many_steps(name, parts, time)
    for axes, (who, result) in zip(column, parts.items(), strict=True):
        curve_on(axes, name, {who: result}, time, legend=False, binned=binned)
        axes.set_title(who if len(parts) > 1 else "", loc="left", fontsize=8, pad=2)
        axes.set_xlabel("")
        label = axes.get_ylabel()
        axes.set_ylabel("")
    highest = max(axes.get_ylim()[1] for axes in column)
    for axes in column:
        if name == "queue" and unequal_queues(parts):
            axes.set_yscale("symlog", linthresh=1)
            axes.yaxis.set_major_formatter(lambda jobs, _: f"{jobs:,.0f}")
        axes.set_ylim(0, highest)
    figure.supylabel(label, fontsize=8)
    column[-1].set_xlabel(time.label)
    bands = ["bands: from the least to the greatest value"] if binned else []
    label_lines(column[-1], "\n".join([*bands, *([note] if note else [])]))


# --- Figures of rows: values with intervals, and parts of a whole ---------------------------------

#: A value and the ends of its interval; nan if it has no interval.
Mean = tuple[float, float, float]


def of_means(means: Mapping[str, Mean], label: str, zero: float | None = None) -> Drawing:
    """Return a drawing of values with their intervals, a row each, the first on top.

    Parameters
    ----------
    means : name -> value and interval.
    label : what the values are.
    zero : where a line is drawn, such as at the value of a reference; None: nowhere.
    """

    def draw(axes: Axes) -> None:
        value, low, high = np.array([*means.values()], dtype=np.float64).reshape(-1, 3).T
        places = np.arange(len(means))
        away = np.nan_to_num([value - low, high - value]).clip(min=0)
        axes.errorbar(
            value, places, xerr=away, fmt="o", color=canvas.BLUE, markersize=4, capsize=2,
            linewidth=1,
        )  # fmt: skip
        if zero is not None:
            axes.axvline(zero, color=canvas.BLACK, linewidth=0.8, zorder=0)
        _rows(axes, [*means], label)

    return on_axes(draw, _ROW_INCHES * len(means) + _FRAME_INCHES)


def of_shares(rows: Mapping[str, Mapping[str, float]], label: str) -> Drawing:
    """Return a drawing of bars, a row each, in which the parts of a row lie side by side.

    Parameters
    ----------
    rows : name -> part -> its size; all rows have the same parts.
    label : what the sizes are.
    """
    parts = [*next(iter(rows.values()), {})]

    def draw(axes: Axes) -> None:
        begin = np.zeros(len(rows))
        for place, part in enumerate(parts):
            sizes = np.array([row[part] for row in rows.values()])
            colour = canvas.LINE_COLOURS[place % len(canvas.LINE_COLOURS)]
            axes.barh(range(len(rows)), sizes, left=begin, color=colour, label=part, height=0.65)
            begin += sizes
        _rows(axes, [*rows], label)
        if len(parts) > 1:
            canvas.legend_above(axes, parts)

    return on_axes(draw, _ROW_INCHES * len(rows) + _FRAME_INCHES)


def _rows(axes: Axes, names: Sequence[str], label: str) -> None:
    """Name the rows of a plot, the first on top, and say what is drawn."""
    short = canvas.shortened(names, canvas.figure_of(axes).get_figwidth())
    axes.set_yticks(range(len(names)), [short[name] for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(label)
    canvas.plain(axes, grid="x")
    axes.tick_params(left=False)


# --- Files ----------------------------------------------------------------------------------------


def label_lines(axes: Axes, note: str = "") -> None:
    """Write names beside curves, or in a legend if there is no room, and a note at the axis."""
    if note:
        axes.set_xlabel(f"{axes.get_xlabel()}\n{note}")
    lines = canvas.labelled(axes)
    if len(lines) > 1 and not canvas.label_curves(axes):
        canvas.legend_above(axes, [str(line.get_label()) for line in lines])


def drawn(drawing: Drawing, width: float = COLUMN_INCHES) -> Figure:
    """Return a figure without a title, as much higher as its legend needs.

    Raises
    ------
    HpcgymError : a width that figures cannot have.
    """
    if not LEAST_INCHES <= width <= MOST_INCHES:
        raise HpcgymError(
            f"figures are from {LEAST_INCHES:g} to {MOST_INCHES:g} inches wide, not {width:g}"
        )
    figure = canvas.new_figure(width, drawing.height(width), _DOTS_PER_INCH)
    drawing.draw(figure)
    for axes in figure.axes:
        if len(figure.axes) == 1 or drawing.grows:
            axes.set_title("", loc="left")
        axes.tick_params(labelsize=_LETTERS_PT, which="both")
        axes.xaxis.label.set_fontsize(_LETTERS_PT + 1)
        axes.yaxis.label.set_fontsize(_LETTERS_PT + 1)
    figure.set_figheight(drawing.height(width) + _legends(figure))
    return figure


def _legends(figure: Figure) -> float:
    """Return how high the legends of a figure are together [inches]."""
    legends = [legend for axes in figure.axes if (legend := axes.get_legend()) is not None]
    if not legends:
        return 0.0
    figure.draw_without_rendering()
    return sum(legend.get_window_extent().height for legend in legends) / figure.dpi


def write_figures(
    drawings: Mapping[str, Drawing],
    made_tables: Sequence[Table],
    folder: str | os.PathLike[str],
    record: Mapping[str, Any],
    width: float = COLUMN_INCHES,
) -> list[Path]:
    """Write drawings by their names in each of the formats, then tables as LaTeX; return the files.

    Parameters
    ----------
    record : where they are from.

    Raises
    ------
    HpcgymError : there is nothing to write; a file, or the folder, cannot be written.
    """
    folder = Path(folder)
    if not drawings and not made_tables:
        raise HpcgymError(f"{folder}: nothing is written, because there is nothing to draw")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, drawing in drawings.items():
        figure, about = drawn(drawing, width), {"figure": {"name": name, "width": width}}
        for suffix in SUFFIXES:
            paths.append(folder / f"{name}{suffix}")
            canvas.save_figure(figure, paths[-1], suffix, {**record, **about})
    for place, table in enumerate(made_tables, 1):
        paths.append(folder / f"table{'' if len(made_tables) == 1 else f'-{place}'}.tex")
        with whole_text(paths[-1]) as file:
            file.write(f"% {table.title}\n" if table.title else "")
            file.write(table.latex())
    return paths


def save_drawings(
    drawings: Iterable[Drawing], path: Path, record: Mapping[str, Any], width: float = 7.0
) -> None:
    """Write drawings one below the other as one picture, whose ending tells the format.

    Raises
    ------
    HpcgymError : there are no drawings; the file cannot be written.
    """
    every = [*drawings]
    if not every:
        raise HpcgymError(f"{path} is not written: there is nothing to draw")
    heights = [drawing.height(width) + _legends(drawn(drawing, width)) for drawing in every]
    figure = canvas.new_figure(width, sum(heights))
    parts: Any = figure.subfigures(len(every), 1, height_ratios=heights, squeeze=False)
    for part, drawing in zip(parts[:, 0], every, strict=True):
        drawing.draw(part)
    canvas.save_figure(figure, path, canvas.picture_suffix(path), record)
