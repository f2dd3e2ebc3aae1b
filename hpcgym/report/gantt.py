"""Gantt charts: processors or nodes over time, job by job or, for many jobs, pixel by pixel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, is_number
from hpcgym.report.canvas import (
    TimeAxis,
    axes_or_new,
    figure_of,
    legend_above,
    plain,
    time_axis,
    title,
)
from hpcgym.report.gantt_view import MOST_OUTLINED, MOST_RECTANGLES, Chart
from hpcgym.report.labels import Results, drawable, subtitle
from hpcgym.report.node_axis import label_nodes
from hpcgym.report.palettes import Palette, palette_of
from hpcgym.report.placement import has_nodes, place_jobs, rows_of
from hpcgym.workload.slicing import WEEK_S

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.cluster.failures import Failures
    from hpcgym.schedule.result import Result

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
    parts = drawable(results)
    if len(parts) > 1:
        raise HpcgymError(f"a Gantt chart shows one schedule, not {len(parts)}")
    ((name, result),) = parts.items()
    time, which = gantt_time(parts, begin, end)
    if axes is None:
        axes = axes_or_new(None, height=gantt_inches(result))
        return gantt_on(axes, result, time, "Gantt chart", subtitle(parts), which, colours)
    return gantt_on(axes, result, time, f"Gantt chart, {name}", which=which, colours=colours)


def gantt_time(
    parts: Mapping[str, Result], begin: float | None = None, end: float | None = None
) -> tuple[TimeAxis, str]:
    """Return the axis of Gantt charts, and which part it is in words if nobody said which."""
    whole = time_axis(parts)
    if begin is None and end is None:
        if whole.last - whole.first <= LONG_S:
            return whole, ""
        if max(place_jobs(result.runs).job.size for result in parts.values()) <= MOST_RECTANGLES:
            return whole, ""
        number, first = busiest_week(parts, whole)
        weeks = math.ceil((whole.last - whole.first) / WEEK_S)
        which = f", the busiest week: {number} of {weeks}"
        return time_axis(parts, (first, first + WEEK_S)), which
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
    return time_axis(parts, (first, last)), ""


def busiest_week(parts: Mapping[str, Result], time: TimeAxis) -> tuple[int, float]:
    """Return the number of the week in which most processors are in use, and its first second.

    Weeks count from 1 and from the first second of the axis; of several schedules the sum counts.
    """
    from hpcgym.schedule.over_time import processors_in_use

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
    time: TimeAxis,
    heading: str,
    note: str = "",
    which: str = "",
    colours: str | None = None,
    palette: Palette | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a Gantt chart whose time axis and palette others may share; see :func:`draw_gantt`.

    ``which`` stands behind the label of time as long as that part is in view.
    """
    lost = result.lost
    fails = lost is not None and result.scheduler.preemption is None
    result = result.runs
    palette = palette or palette_of(result, colours, (time.first, time.last))
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
    plain(axes, grid=None)
    title(axes, heading, note, legend_rows=_draw_legend(axes, palette, fails) if legend else 0)
    rectangles = place_jobs(result)
    # The layout comes first: what fits depends on the chart's size in pixels.
    figure_of(axes).draw_without_rendering()
    if has_nodes(result):
        label_nodes(axes, result.cluster, rows)
        figure_of(axes).draw_without_rendering()  # the labels take room
    Chart(axes, result, rectangles, time, palette).draw()
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
