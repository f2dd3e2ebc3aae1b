"""Gantt charts: processors or nodes over time, job by job."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, is_number
from hpcgym.names import printable
from hpcgym.report import canvas
from hpcgym.report.placement import has_nodes, place_jobs, rows_of
from hpcgym.report.tables import Results, drawable
from hpcgym.units import WEEK_S

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection

    from hpcgym.machine.pool import Cluster
    from hpcgym.schedule.result import Result


# --- The axis of nodes ----------------------------------------------------------------------------

#: Nodes so high, in points, are numbered each and told apart by lines.
APART_POINTS = 9
_LINE_POINTS = 9.0  # of the text of a group


def label_nodes(axes: Axes, cluster: Cluster, rows: NDArray[np.int64]) -> None:
    """Write names or numbers of nodes at the left, and the names of their groups at the right.

    Parameters
    ----------
    rows : (nodes + 1,) the first row of each node, and the number of all: the axis counts cores,
        node after node, so that larger nodes are higher, or parts of nodes that jobs share.
    """
    figure = canvas.figure_of(axes)
    height_pt = axes.get_window_extent().height * 72 / figure.dpi
    axes.set_ylabel("node")
    nodes = cluster.nodes
    if height_pt / nodes >= APART_POINTS:
        named = np.arange(nodes)
        lanes = nodes < rows[-1] < cluster.processors  # have lines of their own
        colour = canvas.DARK_GREY if lanes else canvas.LIGHT_GREY
        across = axes.get_yaxis_transform()
        axes.hlines(rows[1:-1], 0, 1, colour, linewidth=0.6, transform=across, zorder=1.5)
    else:
        named = _round_numbers(nodes)
    names = cluster.node_names
    texts = [name if isinstance(name, str) else f"{name:,}" for name in (names[k] for k in named)]
    axes.set_yticks((rows[named] + rows[named + 1]) / 2, texts)
    if len(cluster.groups) > 1:
        _name_groups(axes, cluster, rows, height_pt)


def _round_numbers(nodes: int) -> NDArray[np.int64]:
    """Return some round numbers of nodes."""
    from matplotlib.ticker import MaxNLocator

    numbers = np.asarray(MaxNLocator(8, integer=True).tick_values(0, nodes - 1), np.int64)
    return numbers[(numbers >= 0) & (numbers < nodes)]


def _name_groups(axes: Axes, cluster: Cluster, rows: NDArray[np.int64], height_pt: float) -> None:
    """Write each group's name and size at its middle, or beside it where it is too narrow."""
    ends = np.concatenate(([0], np.cumsum([group.nodes for group in cluster.groups])))
    edges = rows[ends] / rows[-1]  # as shares of the axis
    across = axes.get_yaxis_transform()
    axes.hlines(edges[1:-1] * rows[-1], 0, 1, canvas.DARK_GREY, linewidth=0.8, transform=across)
    texts = [f"{printable(group.name)} ({group.nodes:,})" for group in cluster.groups]
    middles = [(low + high) / 2 for low, high in pairwise(edges.tolist())]
    for text, middle in zip(texts, _spread(middles, _LINE_POINTS / height_pt), strict=True):
        axes.annotate(
            text,
            (1, middle),
            (4, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=8,
            color=canvas.DARK_GREY,
            verticalalignment="center",
        )


def _spread(places: list[float], distance: float) -> list[float]:
    """Return rising places from 0 to 1 moved apart, by as little as one sweep up and down needs."""
    spread = list(places)
    for i in range(1, len(spread)):
        spread[i] = max(spread[i], spread[i - 1] + distance)
    limit = 1.0
    for i in reversed(range(len(spread))):
        spread[i] = min(spread[i], limit)
        limit = spread[i] - distance
    return spread


# --- The jobs of a Gantt chart --------------------------------------------------------------------

#: Up to so many rectangles are polygons in files of vectors; more are an image in them.
MOST_RECTANGLES = 3_000
#: Of up to so many jobs that share nodes, lanes are as high as their numbers need.
MOST_OUTLINED = 150
#: Lower or narrower ones have no outlines: nothing would be left of them between these.
OUTLINED_PIXELS = 5


def _draw_jobs(axes: Axes, result: Result, time: canvas.TimeAxis, palette: canvas.Palette) -> None:
    """Draw each job in its colour, and write its number where there is room.

    Sides are at whole pixels, so that adjacent rectangles leave no gap: of what is smaller than a
    pixel, as much is drawn as has its middle.
    """
    placed = place_jobs(result)
    seen = (placed.begin <= time.last) & (placed.end >= time.first)
    job, *sides = (column[seen] for column in placed)
    begin, end, low, high = sides
    extent = axes.get_window_extent()
    across = extent.width / max(time.last - time.first, 1)  # pixels a second
    begin, end = np.maximum(begin, time.first), np.minimum(end, time.last)
    wide, tall = across * (end - begin), (high - low) * extent.height / axes.get_ylim()[1]
    few = len(job) <= MOST_RECTANGLES  # of more, outlines would take too much room
    large = few & (wide >= OUTLINED_PIXELS) & (tall >= OUTLINED_PIXELS)
    colours = palette.colours[palette.of_job[job]]
    jobs = _boxes(
        time.place(begin), time.place(end), low, high, facecolors=colours, edgecolors="white",
        linewidths=np.where(large, 0.6, 0.0), antialiaseds=False, snap=True,
        rasterized=not few,
    )  # fmt: skip
    axes.add_collection(jobs, autolim=False)
    letter = 7 * canvas.figure_of(axes).dpi / 72  # of 7 points, in pixels
    known = result.workload.job_number[job]
    texts = np.where(known >= 0, known, job).astype(str)
    room = (wide >= letter * np.char.str_len(texts)) & (tall >= 1.5 * letter)
    x, y = time.place((begin + end) / 2), (low + high) / 2
    dark = colours @ (0.299, 0.587, 0.114) <= 0.45
    for row in np.flatnonzero(room).tolist():
        axes.text(
            x[row], y[row], texts[row], fontsize=7, color="white" if dark[row] else "black",
            horizontalalignment="center", verticalalignment="center",
        )  # fmt: skip


def _boxes(left: Any, right: Any, low: Any, high: Any, **look: Any) -> PolyCollection:
    """Return rectangles of these sides, (n,) each."""
    from matplotlib.collections import PolyCollection

    x, y = np.stack((left, left, right, right), axis=1), np.stack((low, high, high, low), axis=1)
    return PolyCollection(list(np.stack((x, y), axis=2)), **look)


# --- Gantt charts ---------------------------------------------------------------------------------

#: Longer schedules, of more pieces than are drawn one by one, are drawn for a week [s].
LONG_S = 4 * WEEK_S
_LANE_INCHES, _OUTLINED_INCHES = 0.04, 0.16  # of a lane; where jobs have numbers
_LEAST_INCHES, _MOST_INCHES = 4.0, 9.0
_DOWN = "#4d4d4d"  # nodes that are down


def draw_gantt(
    results: Results,
    axes: Axes | None = None,
    *,
    begin: float | None = None,
    end: float | None = None,
) -> Axes:
    """Draw which processors are busy with whose jobs, over time.

    Of a schedule of more than four weeks and thousands of jobs it is the week in which most
    processors are in use, unless ``begin`` or ``end`` is given.

    A pool has no processor numbers: jobs are drawn on the lowest that are free, in one piece where
    possible. On a machine with nodes each job is drawn on the nodes it has: a node is as high as it
    has cores, and a job takes as much of it as it has of these. Groups of nodes are named at the
    right. The seven users with most processor time then have a colour each, all others are grey;
    where there is one user, or none is known, jobs take colours in turn.

    Of more than 3,000 pieces files of vectors have an image.

    Where nodes fail or jobs stop others, runs that were lost are drawn too, and nodes that are down
    in dark grey.

    Where jobs share nodes a node has as many lanes as parts. A job that shares its nodes has one
    lane of each from its start to its end, any other all lanes. Colours tell the speedups of jobs,
    grey being 1.

    Parameters
    ----------
    results : what :func:`hpcgym.simulate` returns, or its name -> it.
    axes : where to draw; without it a new figure, with a note of what it shows.
    begin, end : the part to be drawn [s], times as in ``results.start``; of one that is None the
        first or the last time of the schedule.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.

    Raises
    ------
    HpcgymError : several results, an end that is not after the begin, or matplotlib is missing.
    """
    named = drawable(results)
    if len(named) > 1:
        raise HpcgymError(f"a Gantt chart shows one schedule, not {len(named)}")
    ((name, result),) = named.items()
    time, which = gantt_time(named, begin, end)
    heading = "Gantt chart" if axes is None else f"Gantt chart, {name}"
    _, axes, note = canvas.begun(results, axes, height=gantt_inches(result))
    palette = canvas.palette_of(result.runs, (time.first, time.last))
    return gantt_on(axes, result, time, heading, note, which, palette)


def gantt_time(
    parts: Mapping[str, Result], begin: float | None = None, end: float | None = None
) -> tuple[canvas.TimeAxis, str]:
    """Return the axis of Gantt charts, and which part it is in words if nobody said which."""
    whole = canvas.time_axis(parts)
    if begin is None and end is None:
        if whole.last - whole.first <= LONG_S:
            return whole, ""
        if max(place_jobs(result.runs).job.size for result in parts.values()) <= MOST_RECTANGLES:
            return whole, ""
        number, first = busiest_week(parts, whole)
        weeks = math.ceil((whole.last - whole.first) / WEEK_S)
        which = f", the busiest week: {number} of {weeks}"
        return canvas.time_axis(parts, (first, first + WEEK_S)), which
    for name, value in (("begin", begin), ("end", end)):
        if not (value is None or (is_number(value) and value == value)):
            raise HpcgymError(f"{name} must be a number of seconds, not {value!r}")
    first, last = whole.first if begin is None else begin, whole.last if end is None else end
    if first >= last:
        raise HpcgymError(f"a Gantt chart ends after it begins, not from {first:g} s to {last:g} s")
    if first >= whole.last or last <= whole.first:
        raise HpcgymError(
            f"no job runs from {first:g} s to {last:g} s: the schedule lasts from {whole.first:g} s"
            f" to {whole.last:g} s"
        )
    return canvas.time_axis(parts, (first, last)), ""


def busiest_week(parts: Mapping[str, Result], time: canvas.TimeAxis) -> tuple[int, float]:
    """Return the number of the week in which most processors are in use, and its first second.

    Weeks count from 1 and from the first second of the axis; of several schedules the sum counts.
    """
    from hpcgym.schedule.metrics import processors_in_use

    edges = np.arange(time.first, time.last + WEEK_S, WEEK_S)
    used = np.zeros(len(edges) - 1)
    for result in parts.values():
        times, level = processors_in_use(result)
        seconds = np.append(0.0, np.cumsum(level[:-1] * np.diff(times)))
        used += np.diff(np.interp(edges, times, seconds))
    week = int(used.argmax())
    return week + 1, float(edges[week])


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
    time: canvas.TimeAxis,
    heading: str,
    note: str = "",
    which: str = "",
    palette: canvas.Palette | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a Gantt chart whose time axis and palette others may share; see :func:`draw_gantt`.

    ``which`` stands behind the label of time.
    """
    lost = result.lost
    fails = lost is not None and result.scheduler.preemption is None
    result = result.runs
    palette = palette or canvas.palette_of(result, (time.first, time.last))
    rows = rows_of(result)
    time.apply(axes)
    axes.set_xlabel(time.label + which)
    axes.set_ylim(0, rows[-1])
    if not has_nodes(result):
        axes.set_ylabel("processor")
        axes.locator_params(axis="y", integer=True)
        axes.yaxis.set_major_formatter(lambda processor, _: f"{processor:,.0f}")
    canvas.plain(axes, grid=None)
    canvas.title(
        axes, heading, note, legend_rows=_draw_legend(axes, palette, fails) if legend else 0
    )
    # The layout comes first: what fits depends on the chart's size in pixels.
    canvas.figure_of(axes).draw_without_rendering()
    if has_nodes(result):
        label_nodes(axes, result.cluster, rows)
        canvas.figure_of(axes).draw_without_rendering()  # the labels take room
    _draw_jobs(axes, result, time, palette)
    if lost is not None and fails:
        down = lost.failures
        left, right = time.place(down.time), time.place(down.repaired)
        sides = left, right, rows[down.node], rows[down.node + 1]
        axes.add_collection(_boxes(*sides, facecolors=_DOWN, label="down", zorder=2), autolim=False)
    return axes


def _draw_legend(axes: Axes, palette: canvas.Palette, fails: bool) -> int:
    """Say which colour is whose, and of nodes that are down; return in how many rows."""
    from matplotlib.patches import Patch

    meaning = palette.meaning | ({"down": _DOWN} if fails else {})
    if not meaning:
        return 0
    # matplotlib leaves out what begins with an underscore
    labels = {f" {name}" if name[0] == "_" else name: colour for name, colour in meaning.items()}
    keys = [Patch(color=colour, label=label) for label, colour in labels.items()]
    return canvas.legend_above(axes, list(meaning), handles=keys)
