"""The charts over time of an environment's picture; each function returns what it has drawn."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.render.view import View
from hpcgym.report.canvas import BLACK, BLUE, LIGHT_GREY, SKY_BLUE
from hpcgym.report.palettes import JOB_COLOURS
from hpcgym.report.placement import Rectangles, place_jobs, rows_of
from hpcgym.report.steps import envelope
from hpcgym.report.timeline import BINS, MOST_STEPS
from hpcgym.schedule.over_time import processors_in_use, queue_length

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

RECENT_STARTS = 250
PAST_SHARE = 0.7  # of the Gantt chart, at most
LEAST_SPAN_S, SPAN_RATIO = 60, 1.25  # time axes are this long, or longer by powers of this
OUTLINED_PIXELS = 5  # from this size on, a job is told from its neighbours by a white outline
NUMBER_POINTS = 6  # size of job numbers

MOST_TICKS = 8
_HOURS = (1, 2, 3, 4, 6, 12, 24, 48, 96, 168, 336)
#: [s] distances of ticks.
TICKS = (*(60 * n for n in (1, 2, 5, 10, 20, 30)), *(3600 * n for n in _HOURS))
#: Upper ends of the axis of the queue length.
COUNTS = (2, 5, 10, 20, 50, 100, 200, 500)


def draw_machine(axes: Axes, view: View, left: int, right: int) -> list[Artist]:
    """Draw which processors each job has from ``left`` to ``right`` [s], later ones as predicted.

    Numbers are those of running jobs. A job keeps its processors from frame to frame.
    """
    _set_time_axis(axes, view.first, left, right)
    rows = int(rows_of(view.schedule)[-1])  # processors or, where jobs share nodes, parts of nodes
    axes.set_ylim(0, rows)
    runs, of_job = view.drawn()
    rectangles = _within(place_jobs(runs), left, right)
    jobs = of_job[rectangles.job]
    colours = _colours()[jobs % len(JOB_COLOURS)]
    first, now = view.first, view.now
    past = _boxes(rectangles, left, now, first)
    future = _boxes(rectangles, now, right, first)
    scale = axes.bbox.width / (right - left), axes.bbox.height / rows
    edges = np.where(_large(past, scale)[:, None], 1.0, colours)
    return [
        # the outline in its own colour lets the shortest job be seen
        add_boxes(axes, past, colours, edgecolors=edges, linewidths=0.4),
        add_boxes(axes, future, 0.45 * colours + 0.55, edgecolors="white", linewidths=0.4),
        add_boxes(axes, future, "none", edgecolors="white", linewidths=0, hatch="////"),
        *_number_running(axes, future, jobs, scale),
        _line_now(axes, view),
    ]


def machine_limits(view: View) -> tuple[int, int]:
    """Return the first and the last second of the Gantt chart."""
    workload, predicted = view.schedule.workload, view.schedule.predicted_run_time
    n_started = len(predicted) - len(view.queued)
    area = predicted * workload.requested_processors.astype(np.float64)
    # a processor second belongs to a job that is predicted to last so long, on average
    typical = float(area @ predicted) / max(float(area.sum()), 1.0)
    recent = view.elapsed * min(1.0, RECENT_STARTS / max(n_started, 1))
    past = _span(max(recent, typical / 2))
    left = max(view.first, view.now - past)
    return left, left + round(past / PAST_SHARE)


def draw_utilization(axes: Axes, view: View, left: int, right: int) -> list[Artist]:
    """Draw the share of busy processors so far, and the time of the Gantt chart in grey."""
    times, used = processors_in_use(view.schedule)
    axes.set_ylim(0, 105)
    axes.set_yticks([0, 50, 100])
    return _draw_so_far(axes, view, times, used * 100.0 / view.processors, left, right)


def draw_queue_length(axes: Axes, view: View, left: int, right: int) -> list[Artist]:
    """Draw the number of queued jobs so far, and the time of the Gantt chart in grey."""
    times, lengths = queue_length(view.schedule)
    most = max(lengths.max(initial=0), len(view.queued), 1)
    axes.set_ylim(0, _round_up(1.05 * most, COUNTS))
    return _draw_so_far(axes, view, times, lengths.astype(np.float64), left, right)


def add_boxes(axes: Axes, boxes: Floats, facecolors: Any, **style: Any) -> Artist:
    """Draw the rectangles (n, 4, 2) that are not empty, in colours of their own."""
    from matplotlib.collections import PolyCollection

    seen = boxes[:, 2, 0] > boxes[:, 0, 0]
    own: dict[str, Any] = {
        name: value[seen] if isinstance(value, np.ndarray) else value
        for name, value in {"facecolors": facecolors, **style}.items()
    }
    return axes.add_collection(PolyCollection(list(boxes[seen]), **own), autolim=False)


def corners(left: Any, right: Any, low: Any, high: Any) -> Floats:
    """Return the corners (n, 4, 2) of rectangles of which the sides (n,) are given."""
    x = np.stack((left, left, right, right), axis=1)
    y = np.stack((low, high, high, low), axis=1)
    return np.stack((x, y), axis=2).astype(np.float64)


def _within(rectangles: Rectangles, left: int, right: int) -> Rectangles:
    """Return the rectangles that can be seen between two times."""
    seen = (rectangles.end > left) & (rectangles.begin < right)
    return Rectangles(*(column[seen] for column in rectangles))


def _boxes(rectangles: Rectangles, left: int, right: int, first: int) -> Floats:
    """Return the corners of what lies between two times, some empty; seconds since ``first``."""
    begin = np.clip(rectangles.begin, left, right) - first
    end = np.clip(rectangles.end, left, right) - first
    return corners(begin, end, rectangles.low, rectangles.high)


def _large(boxes: Floats, scale: tuple[float, float]) -> NDArray[np.bool_]:
    """Return which boxes are larger than OUTLINED_PIXELS both ways."""
    sizes = (boxes[:, 2] - boxes[:, 0]) * scale
    return np.asarray((sizes > OUTLINED_PIXELS).all(axis=1))


def _colours() -> Floats:
    """Return the colours of jobs in turn, (n, 3)."""
    from matplotlib.colors import to_rgb

    return np.array([to_rgb(colour) for colour in JOB_COLOURS])


def _number_running(
    axes: Axes, future: Floats, jobs: NDArray[np.int64], scale: tuple[float, float]
) -> list[Artist]:
    """Write the rows of running jobs beyond now, where there is room."""
    letter = NUMBER_POINTS * axes.figure.dpi / 72  # in pixels
    width, height = ((future[:, 2] - future[:, 0]) * scale).T
    middle = (future[:, 2] + future[:, 0]) / 2
    texts: list[Artist] = []
    for k in np.flatnonzero((height >= 1.2 * letter) & (width > 0)):
        text = str(jobs[k])
        if width[k] < 0.65 * letter * (len(text) + 1):
            continue
        label = axes.text(
            middle[k, 0],
            middle[k, 1],
            text,
            fontsize=NUMBER_POINTS,
            ha="center",
            va="center_baseline",
            bbox={"facecolor": "white", "linewidth": 0, "pad": 0.8, "alpha": 0.75},
        )
        texts.append(label)
    return texts


def _draw_so_far(
    axes: Axes, view: View, times: NDArray[np.int64], values: Floats, left: int, right: int
) -> list[Artist]:
    """Draw a step function up to now; one of many steps as mean, least and greatest of bins."""
    _set_time_axis(axes, view.first, view.first, view.first + _span(view.elapsed))
    before = times < view.now
    seconds = np.append(times[before], view.now).astype(np.float64) - view.first
    levels = values[before]
    levels = np.append(levels, levels[-1] if levels.size else 0.0)
    lower: Any = 0.0
    style: dict[str, Any] = {"drawstyle": "steps-post"}
    if len(levels) > MOST_STEPS:
        bins = envelope(seconds, levels, BINS)
        seconds, levels = (bins.edges[1:] + bins.edges[:-1]) / 2, bins.mean
        lower, upper, style = bins.low, bins.high, {}
    else:
        upper = levels
    step: Any = "post" if style else None
    area: dict[str, Any] = {"color": SKY_BLUE, "alpha": 0.4, "linewidth": 0}
    shade: dict[str, Any] = {"color": LIGHT_GREY, "alpha": 0.45, "linewidth": 0}
    return [
        axes.axvspan(left - view.first, min(right, view.now) - view.first, **shade),
        axes.fill_between(seconds, upper, lower, step=step, **area),
        *axes.plot(seconds, levels, color=BLUE, linewidth=0.9, **style),
        _line_now(axes, view),
    ]


def _line_now(axes: Axes, view: View) -> Artist:
    """Draw the line of the present time."""
    return axes.axvline(view.elapsed, color=BLACK, linewidth=1.3, zorder=5)


def _round_up(value: float, steps: tuple[int, ...]) -> int:
    """Return the first of the steps that is not below a value; beyond them they double."""
    place = bisect_left(steps, value)
    if place < len(steps):
        return steps[place]
    step = steps[-1]
    while step < value:
        step *= 2
    return step


def _span(seconds: float) -> int:
    """Return the length [s] of a time axis that is to have room for a time."""
    powers = np.log(max((seconds + 1) / LEAST_SPAN_S, 1.0)) / np.log(SPAN_RATIO)
    return int(LEAST_SPAN_S * SPAN_RATIO ** np.ceil(powers))


def _set_time_axis(axes: Axes, first: int, left: int, right: int) -> None:
    """Set limits and ticks: time since the first submission."""
    begin, end = left - first, right - first
    step = _round_up((end - begin) / MOST_TICKS, TICKS)
    ticks = np.arange(-(-begin // step) * step, end + 1, step)
    axes.set_xlim(begin, end)
    axes.set_xticks(ticks, [_tick(int(tick), step) for tick in ticks])


def _tick(seconds: int, step: int) -> str:
    """Return a time as a label: days, and hours or minutes where the ticks need them."""
    days, rest = divmod(seconds, 86_400)
    if step % 86_400 == 0 or (days and not rest):
        return f"{days} d"
    hours = f"{rest // 3600} h" if step % 3600 == 0 else f"{rest // 3600}:{rest // 60 % 60:02}"
    return f"{days} d {hours}" if days else hours
