"""Gantt charts: processors or nodes over time, job by job or, for many jobs, pixel by pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.report.canvas import (
    TimeAxis,
    axes_or_new,
    figure_of,
    legend_above,
    plain,
    time_axis,
    title,
)
from hpcgym.report.labels import Results, drawable, subtitle
from hpcgym.report.node_axis import label_nodes
from hpcgym.report.palettes import Palette, palette_of
from hpcgym.report.placement import Rectangles, has_nodes, place_jobs, rows_of
from hpcgym.report.raster import coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.cluster.failures import Failures
    from hpcgym.schedule.result import Result

#: Up to so many rectangles are drawn one by one; more are summed up in pixels.
MOST_RECTANGLES = 3_000
#: Up to so many jobs have outlines and, where there is room, their numbers.
MOST_OUTLINED = 150
#: Lower ones have none even then: nothing would be left of them between their outlines.
OUTLINED_PIXELS = 5

#: Where jobs share nodes so many are, a line at start and end of each.
MOST_LANES = 60_000
_LANE_INCHES, _OUTLINED_INCHES = 0.04, 0.16  # of a lane; where jobs have numbers
_LEAST_INCHES, _MOST_INCHES = 4.0, 9.0
_LEAST_PIXELS = 3  # of jobs that have lines
_DOWN = "#4d4d4d"  # nodes that are down


def draw_gantt(results: Results, axes: Axes | None = None, colours: str | None = None) -> Axes:
    """Draw which processors are busy with whose jobs, over time.

    A pool has no processor numbers: jobs are drawn on the lowest that are free, in one piece where
    possible. On a machine with nodes each job is drawn on the nodes it has: a node is as high as it
    has cores, and a job takes as much of it as it has of these. Groups of nodes are named at the
    right. The seven users with most processor time have a colour each, all others are grey; where
    there is one user, or none is known, jobs take colours in turn.

    A small schedule is drawn job by job. In a large one every pixel has the colour of the user who
    holds most of its area, the paler the more of it is idle.

    Where nodes fail or jobs stop others, runs that were lost are drawn too, and nodes that are down
    in dark grey.

    Where jobs share nodes a node has as many lanes as parts. A job that shares its nodes has one
    lane of each from its start to its end, any other all lanes. Colours tell the speedups of jobs,
    grey being 1, or their codes.

    Parameters
    ----------
    results : what :func:`hpcgym.simulate` returns, or its name -> it.
    axes : where to draw; without it a new figure, with a note of what it shows.
    colours : "user"; "code" or "speedup", of schedules with speedups; None: "speedup" there, "code"
        if all jobs are compact, else "user".

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.

    Raises
    ------
    HpcgymError : several results, colours that there are not, or matplotlib is not installed.
    """
    parts = drawable(results)
    if len(parts) > 1:
        raise HpcgymError(f"a Gantt chart shows one schedule, not {len(parts)}")
    ((name, result),) = parts.items()
    time = time_axis(parts)
    if axes is None:
        axes = axes_or_new(None, height=gantt_inches(result))
        return gantt_on(axes, result, time, "Gantt chart", subtitle(parts), colours)
    return gantt_on(axes, result, time, f"Gantt chart, {name}", colours=colours)


def gantt_inches(result: Result, least: float = _LEAST_INCHES) -> float:
    """Return the height of a picture in which lanes of shared nodes can be told apart."""
    if result.coschedule is None:
        return least
    outlined = len(result.workload) <= MOST_OUTLINED
    lane = _OUTLINED_INCHES if outlined else _LANE_INCHES
    return min(max(lane * int(rows_of(result)[-1]) + 1, least), _MOST_INCHES)


def gantt_on(
    axes: Axes,
    result: Result,
    time: TimeAxis,
    heading: str,
    note: str = "",
    colours: str | None = None,
) -> Axes:
    """Draw a Gantt chart whose time axis others may share; see :func:`draw_gantt`."""
    lost = result.lost
    fails = lost is not None and result.scheduler.preemption is None
    result = result.runs
    palette = palette_of(result, colours)
    rows = rows_of(result)
    time.apply(axes)
    axes.set_ylim(0, rows[-1])
    if not has_nodes(result):
        axes.set_ylabel("processor")
        axes.locator_params(axis="y", integer=True)
        axes.yaxis.set_major_formatter(lambda processor, _: f"{processor:,.0f}")
    plain(axes, grid=None)
    title(axes, heading, note, legend_rows=_draw_legend(axes, palette, fails))
    rectangles = place_jobs(result)
    # The layout comes first: what fits depends on the chart's size in pixels.
    figure_of(axes).draw_without_rendering()
    if has_nodes(result):
        label_nodes(axes, result.cluster, rows)
        figure_of(axes).draw_without_rendering()  # the labels take room
    most = MOST_RECTANGLES if result.coschedule is None else MOST_LANES
    if rectangles.job.size <= most:
        _draw_jobs(axes, result, rectangles, time, palette)
    else:
        _draw_pixels(axes, rectangles, time, palette)
    if lost is not None and fails:
        _draw_down(axes, lost.failures, rows, time)
    return axes


def _draw_down(axes: Axes, failures: Failures, rows: NDArray[np.int64], time: TimeAxis) -> None:
    """Draw when nodes are down, in dark grey."""
    from matplotlib.collections import PolyCollection

    left, right = time.place(failures.time), time.place(failures.repaired)
    low, high = rows[failures.node], rows[failures.node + 1]
    x, y = (left, left, right, right), (low, high, high, low)
    corners = np.stack((np.stack(x, axis=1), np.stack(y, axis=1)), axis=2)
    down = PolyCollection(list(corners), facecolors=_DOWN, label="down", zorder=2)
    axes.add_collection(down, autolim=False)


def _draw_legend(axes: Axes, palette: Palette, fails: bool) -> int:
    """Say which colour is whose, and of nodes that are down; return in how many rows."""
    from matplotlib.patches import Patch

    meaning = palette.meaning | ({"down": _DOWN} if fails else {})
    if not meaning:
        return 0
    # matplotlib leaves out what begins with an underscore
    labels = {f" {name}" if name[0] == "_" else name: colour for name, colour in meaning.items()}
    keys = [Patch(color=colour, label=label) for label, colour in labels.items()]
    return legend_above(axes, list(meaning), handles=keys)


def _draw_jobs(
    axes: Axes, result: Result, rectangles: Rectangles, time: TimeAxis, palette: Palette
) -> None:
    """Draw every job by itself."""
    from matplotlib.collections import PolyCollection

    left, right = time.place(rectangles.begin), time.place(rectangles.end)
    low, high = rectangles.low, rectangles.high
    x = np.stack((left, left, right, right), axis=1)
    y = np.stack((low, high, high, low), axis=1)
    colours = palette.colours[palette.of_job[rectangles.job]]
    outlined = len(result.workload) <= MOST_OUTLINED
    pixels = (high - low) * _row_pixels(axes)
    corners = PolyCollection(
        list(np.stack((x, y), axis=2)),
        facecolors=colours,
        edgecolors="white" if outlined else "none",
        linewidths=np.where(pixels >= OUTLINED_PIXELS, 0.6, 0.0) if outlined else 0,
        # low lanes would be mixed with those above and below them
        antialiaseds=outlined or result.coschedule is None,
    )
    axes.add_collection(corners)
    if outlined:
        _number_jobs(axes, result, rectangles, time, colours)
    elif result.coschedule is not None:
        _draw_ends(axes, rectangles, time)


def _row_pixels(axes: Axes) -> float:
    """Return how high a row is."""
    return axes.get_window_extent().height / axes.get_ylim()[1]


def _draw_ends(axes: Axes, rectangles: Rectangles, time: TimeAxis) -> None:
    """Draw white lines where jobs end, or those of one colour would look like one."""
    width = rectangles.end - rectangles.begin
    wide = width * axes.get_window_extent().width >= _LEAST_PIXELS * max(time.last - time.first, 1)
    axes.vlines(
        time.place(rectangles.end[wide]),
        rectangles.low[wide],
        rectangles.high[wide],
        "white",
        linewidth=0.4,
    )


def _number_jobs(
    axes: Axes,
    result: Result,
    rectangles: Rectangles,
    time: TimeAxis,
    colours: NDArray[np.float64],
) -> None:
    """Write the number of each job where there is room, in what contrasts with its colour."""
    extent = axes.get_window_extent()
    letter = 7 * figure_of(axes).dpi / 72  # of 7 points, in pixels
    width = (rectangles.end - rectangles.begin) * extent.width / max(time.last - time.first, 1)
    height = (rectangles.high - rectangles.low) * _row_pixels(axes)
    numbers = result.workload.job_number
    for row, job in enumerate(rectangles.job.tolist()):
        text = str(numbers[job] if numbers[job] >= 0 else job)
        if width[row] < letter * len(text) or height[row] < 1.5 * letter:
            continue
        luminance = colours[row] @ (0.299, 0.587, 0.114)
        axes.text(
            time.place((rectangles.begin[row] + rectangles.end[row]) / 2),
            (rectangles.low[row] + rectangles.high[row]) / 2,
            text,
            fontsize=7,
            color="black" if luminance > 0.45 else "white",
            horizontalalignment="center",
            verticalalignment="center",
        )


def _draw_pixels(axes: Axes, rectangles: Rectangles, time: TimeAxis, palette: Palette) -> None:
    """Draw an image with the resolution of the picture."""
    extent = axes.get_window_extent()
    width, height = max(round(extent.width), 1), max(round(extent.height), 1)
    scale_x = width / max(time.last - time.first, 1)
    scale_y = height / axes.get_ylim()[1]
    left = (rectangles.begin - time.first) * scale_x
    right = (rectangles.end - time.first) * scale_x
    low, high = rectangles.low * scale_y, rectangles.high * scale_y
    colour = palette.of_job[rectangles.job]
    shares = np.stack(
        [
            coverage(left[mine], right[mine], low[mine], high[mine], width, height)
            for mine in (colour == place for place in range(len(palette.colours)))
        ]
    )
    busy = np.clip(shares.sum(axis=0), 0, 1)[..., np.newaxis]
    image = palette.colours[shares.argmax(axis=0)] * busy + (1 - busy)
    axes.imshow(
        np.clip(image, 0, 1),
        origin="lower",
        aspect="auto",
        extent=(*axes.get_xlim(), *axes.get_ylim()),
        interpolation="nearest",
        zorder=0,
    )
