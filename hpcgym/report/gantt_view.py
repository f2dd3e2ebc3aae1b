"""What of a Gantt chart is in view: its jobs one by one or, if there are many, as pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.report.canvas import TimeAxis, figure_of
from hpcgym.report.palettes import Palette
from hpcgym.report.placement import Rectangles
from hpcgym.report.raster import coverage

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from hpcgym.schedule.result import Result

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
    """What is in view: from when until when [s], from which row up to which."""

    first: float
    last: float
    low: float
    high: float


class Chart:
    """The jobs of a schedule on axes; what is drawn of them follows the limits of the axes."""

    def __init__(
        self,
        axes: Axes,
        result: Result,
        rectangles: Rectangles,
        time: TimeAxis,
        palette: Palette,
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
        view = View(first, last, *sorted(self.axes.get_ylim()))
        seen = _in_view(self.rectangles, view)
        if seen.job.size <= (MOST_LANES if self.shared else MOST_RECTANGLES):
            self.drawn = self._jobs(seen, view)
        else:
            self.drawn = [self._pixels(seen, view)]

    def _jobs(self, seen: Rectangles, view: View) -> list[Artist]:
        """Draw every job by itself."""
        from matplotlib.collections import PolyCollection

        left, right = self.time.place(seen.begin), self.time.place(seen.end)
        x = np.stack((left, left, right, right), axis=1)
        y = np.stack((seen.low, seen.high, seen.high, seen.low), axis=1)
        colours = self.palette.colours[self.palette.of_job[seen.job]]
        few = np.unique(seen.job).size <= MOST_OUTLINED
        outlined = few or not self.shared
        per_second, per_row = self._scales(view)
        large = (seen.high - seen.low) * per_row >= OUTLINED_PIXELS
        if not few:
            large &= (seen.end - seen.begin) * per_second >= OUTLINED_PIXELS
        corners = PolyCollection(
            list(np.stack((x, y), axis=2)),
            facecolors=colours,
            edgecolors="white" if outlined else "none",
            linewidths=np.where(large, 0.6, 0.0) if outlined else 0,
            # low lanes would be mixed with those above and below them
            antialiaseds=outlined or not self.shared,
        )
        self.axes.add_collection(corners, autolim=False)
        if outlined:
            return [corners, *self._numbers(seen, view, colours)]
        return [corners, self._ends(seen, view)] if self.shared else [corners]

    def _scales(self, view: View) -> tuple[float, float]:
        """Return how many pixels a second and a row have."""
        extent = self.axes.get_window_extent()
        return extent.width / max(view.last - view.first, 1), extent.height / (view.high - view.low)

    def _ends(self, seen: Rectangles, view: View) -> Artist:
        """Draw white lines where jobs end, or those of one colour would look like one."""
        wide = (seen.end - seen.begin) * self._scales(view)[0] >= _LEAST_PIXELS
        ends = self.time.place(seen.end[wide])
        return self.axes.vlines(ends, seen.low[wide], seen.high[wide], "white", linewidth=0.4)

    def _numbers(self, seen: Rectangles, view: View, colours: NDArray[np.float64]) -> list[Artist]:
        """Write the number of each job where there is room, in what contrasts with its colour."""
        letter = 7 * figure_of(self.axes).dpi / 72  # of 7 points, in pixels
        begin, end = np.maximum(seen.begin, view.first), np.minimum(seen.end, view.last)
        low, high = np.maximum(seen.low, view.low), np.minimum(seen.high, view.high)
        per_second, per_row = self._scales(view)
        width, height = (end - begin) * per_second, (high - low) * per_row
        numbers = self.result.workload.job_number
        found: list[Artist] = []
        for row, job in enumerate(seen.job.tolist()):
            text = str(numbers[job] if numbers[job] >= 0 else job)
            if width[row] < letter * len(text) or height[row] < 1.5 * letter:
                continue
            luminance = colours[row] @ (0.299, 0.587, 0.114)
            found.append(
                self.axes.text(
                    self.time.place((begin[row] + end[row]) / 2),
                    (low[row] + high[row]) / 2,
                    text,
                    fontsize=7,
                    color="black" if luminance > 0.45 else "white",
                    horizontalalignment="center",
                    verticalalignment="center",
                )
            )
        return found

    def _pixels(self, seen: Rectangles, view: View) -> Artist:
        """Draw an image with the resolution of the picture."""
        from matplotlib.image import AxesImage

        extent = self.axes.get_window_extent()
        width, height = max(round(extent.width), 1), max(round(extent.height), 1)
        scale_x = width / max(view.last - view.first, 1)
        scale_y = height / (view.high - view.low)
        left, right = ((at - view.first) * scale_x for at in (seen.begin, seen.end))
        low, high = ((at - view.low) * scale_y for at in (seen.low, seen.high))
        left, right = (np.clip(at, 0, width) for at in (left, right))
        low, high = (np.clip(at, 0, height) for at in (low, high))
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


def _in_view(rectangles: Rectangles, view: View) -> Rectangles:
    """Return the rectangles of which a part is in view."""
    seen = (rectangles.begin <= view.last) & (rectangles.end >= view.first)
    seen &= (rectangles.low < view.high) & (rectangles.high > view.low)
    return Rectangles(*(column[seen] for column in rectangles))
