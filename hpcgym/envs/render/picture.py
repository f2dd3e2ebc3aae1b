"""Frames of 1280 x 800 pixels: the machine over time, the queue, utilization, metrics so far.

The Gantt chart goes back so far that it has about the last 250 starts, or that predicted run times
can be seen. Utilization and queue length are those of the whole episode so far. The lengths of the
time axes change by steps, so that a film does not tremble.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.render.charts import (
    add_boxes,
    corners,
    draw_machine,
    draw_queue_length,
    draw_utilization,
    machine_limits,
)
from hpcgym.envs.render.view import View, clock, duration, metrics_so_far
from hpcgym.report.canvas import BLACK, DARK_GREY, ORANGE, SKY_BLUE, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

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
