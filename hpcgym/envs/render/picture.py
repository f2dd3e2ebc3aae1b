"""Frames of 1280 x 800 pixels: the machine over time, the queue, utilization, metrics so far.

The Gantt chart goes back so far that it has about the last 250 starts, or that predicted run times
can be seen. Utilization and queue length are those of the whole episode so far. The lengths of the
time axes change by steps, so that a film does not tremble.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.render.view import View, clock, duration, metrics_so_far
from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    DARK_GREY,
    JOB_COLOURS,
    LIGHT_GREY,
    ORANGE,
    SKY_BLUE,
    new_figure,
    plain,
)
from hpcgym.report.placement import Rectangles, envelope, place_jobs, rows_of
from hpcgym.report.timeline import BINS, MOST_STEPS
from hpcgym.schedule.metrics import processors_in_use, queue_length

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text


# --- The charts over time of an environment's picture ---------------------------------------------

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


# --- Frames of 1280 x 800 pixels ------------------------------------------------------------------

DPI = 128
WIDTH, HEIGHT = 1280, 800  # pixels, multiples of 16 as video codecs like them
QUEUE_ROWS = 22

#: Left sides of the queue's columns, as shares of the width; the first has no bars.
COLUMNS = {"job": 0.0, "processors": 0.17, "requested": 0.45, "waits for": 0.73}
BAR = 0.26  # length of the longest bar
LEAST_BAR_S, GREATEST_BAR_S = 20, 1_000_000  # [s] bars of times are logarithmic


class Picture:
    """A figure that is drawn again and again; what it shows depends on the view alone."""

    def __init__(self) -> None:
        figure = new_figure(WIDTH / DPI, HEIGHT / DPI)
        figure.set_dpi(DPI)
        figure.set_layout_engine("none")
        self._figure = figure
        self._drawn: list[Artist] = []
        self._heading = figure.text(0.012, 0.972, "", fontsize=9, fontweight="bold", va="center")
        self._counts = figure.text(0.012, 0.938, "", fontsize=8, color=DARK_GREY, va="center")
        self._machine = figure.add_axes((0.055, 0.44, 0.585, 0.43))
        self._use = figure.add_axes((0.055, 0.255, 0.585, 0.105))
        self._length = figure.add_axes((0.055, 0.07, 0.585, 0.105))
        self._queue = figure.add_axes((0.675, 0.27, 0.315, 0.60))
        self._metrics = figure.add_axes((0.675, 0.03, 0.315, 0.18))
        for axes in (self._machine, self._use, self._length):
            _prepare_chart(axes, grid=None if axes is self._machine else "y")
        for axes in (self._queue, self._metrics):
            axes.axis("off")
            axes.set_xlim(0, 1)
        self._titles = {axes: _text_above(axes, at_left=True) for axes in figure.axes}
        self._notes = {axes: _text_above(axes, at_left=False) for axes in figure.axes}
        self._notes[self._machine].set_text("line: now · hatched: until the predicted end")
        self._notes[self._use].set_text("grey: time of the chart above")
        self._notes[self._queue].set_text("blue fits now, orange does not")
        self._titles[self._use].set_text("Utilization so far (%)")
        self._titles[self._length].set_text("Queued jobs so far")
        self._titles[self._metrics].set_text("Metrics so far")
        self._cells = _cells(self._queue)
        style: dict[str, Any] = {"fontsize": 7.5, "va": "top", "linespacing": 1.45}
        self._names = self._metrics.text(0, 0.97, "", **style)
        self._values = self._metrics.text(1, 0.97, "", ha="right", **style)

    def draw(self, view: View) -> NDArray[np.uint8]:
        """Return the view as an image, (800, 1280, 3)."""
        for artist in self._drawn:
            artist.remove()
        left, right = machine_limits(view)
        self._drawn = [
            *draw_machine(self._machine, view, left, right),
            *draw_utilization(self._use, view, left, right),
            *draw_queue_length(self._length, view, left, right),
            *self._draw_queue(view),
        ]
        self._write(view)
        canvas = cast("FigureCanvasAgg", self._figure.canvas)
        canvas.draw()  # type: ignore[no-untyped-call]
        return np.array(np.asarray(canvas.buffer_rgba())[..., :3])  # type: ignore[no-untyped-call]

    def _write(self, view: View) -> None:
        """Write what is not drawn."""
        self._heading.set_text(view.heading)
        self._counts.set_text(
            f"{clock(view.elapsed)} since the episode began  ·  {len(view.queued):,} queued  ·  "
            f"{len(view.running):,} running  ·  {int(view.ended.sum()):,} ended"
        )
        busy = view.processors - view.free
        self._titles[self._machine].set_text(
            f"Machine: {busy:,} of {view.processors:,} processors busy"
        )
        metrics = metrics_so_far(view)
        self._names.set_text("\n".join(metrics))
        self._values.set_text("\n".join(metrics.values()))

    def _draw_queue(self, view: View) -> list[Artist]:
        """Write the jobs that wait, first submitted first, over bars."""
        n_all = len(view.queued)
        # the last row says how many more there are
        rows = view.queued[: QUEUE_ROWS if n_all <= QUEUE_ROWS else QUEUE_ROWS - 1]
        jobs = "1 job" if n_all == 1 else f"{n_all:,} jobs"
        self._titles[self._queue].set_text(f"Queue: {jobs if n_all else 'empty'}")
        workload = view.schedule.workload
        processors = workload.requested_processors[rows]
        requested, wait = workload.requested_time[rows], view.schedule.wait[rows]
        texts = [
            (str(row), f"{n:,}", duration(t), duration(w))
            for row, n, t, w in zip(rows, processors, requested, wait, strict=True)
        ]
        if len(rows) < n_all:
            texts.append((f"… and {n_all - len(rows):,} more", "", "", ""))
        texts += [("", "", "", "")] * (QUEUE_ROWS - len(texts))
        for cells, words in zip(self._cells, texts, strict=True):
            for cell, word in zip(cells, words, strict=True):
                cell.set_text(word)
        fits = view.fits[: len(rows)]
        shares = (processors / view.processors, _logarithmic(requested), _logarithmic(wait))
        return [
            self._add_bars(column, share, fits)
            for column, share in zip(list(COLUMNS.values())[1:], shares, strict=True)
        ]

    def _add_bars(
        self, column: float, shares: NDArray[np.float64], fits: NDArray[np.bool_]
    ) -> Artist:
        """Draw the bars of a column of the queue, the colours pale behind the numbers."""
        from matplotlib.colors import to_rgb

        rows = np.arange(len(shares))
        left = np.full(len(shares), column)
        boxes = corners(left, left + BAR * shares, rows + 0.1, rows + 0.9)
        colours = np.where(fits[:, None], to_rgb(SKY_BLUE), to_rgb(ORANGE))
        return add_boxes(self._queue, boxes, 0.6 * colours + 0.4)


def _logarithmic(seconds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the lengths of bars, 0 to 1."""
    powers = np.log(np.maximum(seconds, LEAST_BAR_S) / LEAST_BAR_S)
    return np.asarray(np.minimum(powers / np.log(GREATEST_BAR_S / LEAST_BAR_S), 1.0))


def _prepare_chart(axes: Axes, grid: str | None) -> None:
    """Make axes plain, with labels at fixed places, or each frame would search for room."""
    from matplotlib.ticker import MaxNLocator

    plain(axes, grid=grid)
    axes.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.0f}")
    axes.tick_params(labelsize=7)
    axes.xaxis.set_label_coords(0.5, -0.2)
    axes.yaxis.set_label_coords(-0.1, 0.5)


def _text_above(axes: Axes, *, at_left: bool) -> Text:
    """Return an empty title at the left, or note at the right, of axes."""
    # no title of matplotlib's own, which searches for room in each frame
    return axes.annotate(
        "",
        (0 if at_left else 1, 1),
        (0, 5),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=8 if at_left else 7,
        fontweight="bold" if at_left else "normal",
        color=BLACK if at_left else DARK_GREY,
        ha="left" if at_left else "right",
        annotation_clip=False,
    )


def _cells(axes: Axes) -> list[list[Text]]:
    """Return the empty cells of the queue's table, row by row, and write its head."""
    axes.set_ylim(QUEUE_ROWS, -1)
    for column, left in COLUMNS.items():
        axes.text(left, -0.5, column, fontsize=7, color=DARK_GREY, va="center_baseline")
    return [
        [
            axes.text(left + 0.008, row + 0.5, "", fontsize=7, va="center_baseline")
            for left in COLUMNS.values()
        ]
        for row in range(QUEUE_ROWS)
    ]
