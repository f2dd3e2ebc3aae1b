"""Gantt charts: processors or nodes over time, job by job or, for many jobs, pixel by pixel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, is_number
from hpcgym.naming import printable
from hpcgym.report import canvas
from hpcgym.report.placement import Rectangles, coverage, has_nodes, place_jobs, rows_of
from hpcgym.report.tables import Results, drawable
from hpcgym.workload.extracts import WEEK_S

if TYPE_CHECKING:
    from matplotlib.artist import Artist
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
    texts = [one if isinstance(one, str) else f"{one:,}" for one in (names[k] for k in named)]
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


# --- What of a Gantt chart is in view -------------------------------------------------------------

#: Up to so many rectangles in view are drawn one by one; more are summed up in pixels.
MOST_RECTANGLES = 3_000
#: Up to so many jobs have outlines and, where there is room, their numbers, also on shared nodes.
MOST_OUTLINED = 150
#: Lower ones have none even then: nothing would be left of them between their outlines. Of more
#: jobs, nor have narrower ones.
OUTLINED_PIXELS = 5

#: Where jobs share nodes so many are, a line at start and end of each.
MOST_LANES = 60_000
_LEAST_PIXELS = 3  # of jobs that have lines


class View(NamedTuple):
    """What is in view: from when until when [s], which rows, and how many pixels these have."""

    first: float
    last: float
    low: float
    high: float
    width: float
    height: float

    def across(self, seconds: NDArray[Any]) -> NDArray[Any]:
        """Return how many pixels times are wide."""
        return seconds * (self.width / max(self.last - self.first, 1))

    def up(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return how many pixels rows are high."""
        return rows * (self.height / (self.high - self.low))


class Chart:
    """The jobs of a schedule on axes; what is drawn of them follows the limits of the axes."""

    def __init__(
        self,
        axes: Axes,
        result: Result,
        rectangles: Rectangles,
        time: canvas.TimeAxis,
        palette: canvas.Palette,
    ) -> None:
        self.axes, self.result, self.rectangles = axes, result, rectangles
        self.time, self.palette = time, palette
        self.shared = result.coschedule is not None
        self.drawn: list[Artist] = []
        for limits in ("xlim_changed", "ylim_changed"):
            axes.callbacks.connect(limits, lambda _: self.draw())

    def draw(self) -> None:
        """Draw what is in view, in place of what was."""
        for artist in self.drawn:
            artist.remove()
        first, last = sorted(map(self.time.seconds, self.axes.get_xlim()))
        extent = self.axes.get_window_extent()
        low, high = sorted(self.axes.get_ylim())
        view = View(first, last, low, high, extent.width, extent.height)
        seen = _in_view(self.rectangles, view)
        if seen.job.size <= (MOST_LANES if self.shared else MOST_RECTANGLES):
            self.drawn = self._jobs(seen, view)
        else:
            self.drawn = [self._pixels(seen, view)]

    def _jobs(self, seen: Rectangles, view: View) -> list[Artist]:
        """Draw every job by itself."""
        colours = self.palette.colours[self.palette.of_job[seen.job]]
        few = np.unique(seen.job).size <= MOST_OUTLINED
        outlined = few or not self.shared
        wide = view.across(seen.end - seen.begin)
        large = view.up(seen.high - seen.low) >= OUTLINED_PIXELS
        if not few:
            large &= wide >= OUTLINED_PIXELS
        jobs = _boxes(
            self.time.place(seen.begin), self.time.place(seen.end), seen.low, seen.high,
            facecolors=colours, edgecolors="white" if outlined else "none",
            linewidths=np.where(large, 0.6, 0.0) if outlined else 0,
            # low lanes would be mixed with those above and below them
            antialiaseds=outlined or not self.shared,
        )  # fmt: skip
        self.axes.add_collection(jobs, autolim=False)
        if outlined:
            return [jobs, *self._numbers(seen, view, colours)]
        # white lines where jobs end, or those of one colour would look like one
        long = wide >= _LEAST_PIXELS
        ends = self.time.place(seen.end[long])
        lines = self.axes.vlines(ends, seen.low[long], seen.high[long], "white", linewidth=0.4)
        return [jobs, lines]

    def _numbers(self, seen: Rectangles, view: View, colours: NDArray[np.float64]) -> list[Artist]:
        """Write the number of each job where there is room, in what contrasts with its colour."""
        letter = 7 * canvas.figure_of(self.axes).dpi / 72  # of 7 points, in pixels
        begin, end = np.maximum(seen.begin, view.first), np.minimum(seen.end, view.last)
        low, high = np.maximum(seen.low, view.low), np.minimum(seen.high, view.high)
        width, height = view.across(end - begin), view.up(high - low)
        known = self.result.workload.job_number[seen.job]
        texts = list(map(str, np.where(known >= 0, known, seen.job).tolist()))
        room = (width >= letter * np.array([len(text) for text in texts])) & (
            height >= 1.5 * letter
        )
        x, y = self.time.place((begin + end) / 2), (low + high) / 2
        dark = colours @ (0.299, 0.587, 0.114) <= 0.45
        return [
            self.axes.text(
                x[row], y[row], texts[row], fontsize=7, color="white" if dark[row] else "black",
                horizontalalignment="center", verticalalignment="center",
            )
            for row in np.flatnonzero(room).tolist()
        ]  # fmt: skip

    def _pixels(self, seen: Rectangles, view: View) -> Artist:
        """Draw an image with the resolution of the picture."""
        from matplotlib.image import AxesImage

        width, height = max(round(view.width), 1), max(round(view.height), 1)
        view = view._replace(width=width, height=height)
        left, right = (
            np.clip(view.across(at - view.first), 0, width) for at in (seen.begin, seen.end)
        )
        low, high = (np.clip(view.up(at - view.low), 0, height) for at in (seen.low, seen.high))
        colour = self.palette.of_job[seen.job]
        shares = np.stack(
            [
                coverage(left[mine], right[mine], low[mine], high[mine], width, height)
                for mine in (colour == place for place in range(len(self.palette.colours)))
            ]
        )
        busy = np.clip(shares.sum(axis=0), 0, 1)[..., np.newaxis]
        colours = self.palette.colours[shares.argmax(axis=0)] * busy + (1 - busy)
        sides: Any = (*sorted(self.axes.get_xlim()), view.low, view.high)
        # not imshow, which would set limits, and so draw once more
        image = AxesImage(
            self.axes, extent=sides, origin="lower", interpolation="nearest", zorder=0
        )
        image.set_data(np.clip(colours, 0, 1))
        image.set_clip_path(self.axes.patch)
        self.axes.add_image(image)
        return image


def _boxes(left: Any, right: Any, low: Any, high: Any, **look: Any) -> PolyCollection:
    """Return rectangles of these sides, (n,) each."""
    from matplotlib.collections import PolyCollection

    x, y = np.stack((left, left, right, right), axis=1), np.stack((low, high, high, low), axis=1)
    return PolyCollection(list(np.stack((x, y), axis=2)), **look)


def _in_view(rectangles: Rectangles, view: View) -> Rectangles:
    """Return the rectangles of which a part is in view."""
    seen = (rectangles.begin <= view.last) & (rectangles.end >= view.first)
    seen &= (rectangles.low < view.high) & (rectangles.high > view.low)
    return Rectangles(*(column[seen] for column in rectangles))


# --- Gantt charts ---------------------------------------------------------------------------------

#: Longer schedules, of more pieces than are drawn one by one, are drawn for a week [s].
LONG_S = 4 * WEEK_S
_LANE_INCHES, _OUTLINED_INCHES = 0.04, 0.16  # of a lane; where jobs have numbers
_LEAST_INCHES, _MOST_INCHES = 4.0, 9.0
_DOWN = "#4d4d4d"  # nodes that are down


def draw_gantt(
    results: Results,
    axes: Axes | None = None,
    colours: str | None = None,
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

    Up to 3,000 pieces in view are drawn job by job. If there are more, every pixel has the colour
    of the user who holds most of its area, the paler the more of it is idle. If another part comes
    into view, as by ``axes.set_xlim``, that part is drawn anew.

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
    begin, end : the part to be drawn [s], times as in ``results.start``; of one that is None the
        first or the last time of the schedule.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.

    Raises
    ------
    HpcgymError : several results, colours that there are not, an end that is not after the begin,
        or matplotlib is not installed.
    """
    named = drawable(results)
    if len(named) > 1:
        raise HpcgymError(f"a Gantt chart shows one schedule, not {len(named)}")
    ((name, result),) = named.items()
    time, which = gantt_time(named, begin, end)
    heading = "Gantt chart" if axes is None else f"Gantt chart, {name}"
    _, axes, note = canvas.begun(results, axes, height=gantt_inches(result))
    palette = canvas.palette_of(result.runs, colours, (time.first, time.last))
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

    ``which`` stands behind the label of time as long as that part is in view.
    """
    lost = result.lost
    fails = lost is not None and result.scheduler.preemption is None
    result = result.runs
    palette = palette or canvas.palette_of(result, None, (time.first, time.last))
    rows = rows_of(result)
    time.apply(axes)
    if which:
        axes.set_xlabel(time.label + which)
        axes.callbacks.connect("xlim_changed", lambda _: axes.set_xlabel(time.label))
    axes.set_ylim(0, rows[-1])
    if not has_nodes(result):
        axes.set_ylabel("processor")
        axes.locator_params(axis="y", integer=True)
        axes.yaxis.set_major_formatter(lambda processor, _: f"{processor:,.0f}")
    canvas.plain(axes, grid=None)
    canvas.title(
        axes, heading, note, legend_rows=_draw_legend(axes, palette, fails) if legend else 0
    )
    rectangles = place_jobs(result)
    # The layout comes first: what fits depends on the chart's size in pixels.
    canvas.figure_of(axes).draw_without_rendering()
    if has_nodes(result):
        label_nodes(axes, result.cluster, rows)
        canvas.figure_of(axes).draw_without_rendering()  # the labels take room
    Chart(axes, result, rectangles, time, palette).draw()
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
