"""A picture of what waiting is due to, a bar a group of jobs or a scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcgym.explanation.explain import ORDERED, shortened
from hpcgym.explanation.story import CALLED
from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    DARK_GREY,
    GREEN,
    LIGHT_GREY,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    UNITS,
    VERMILLION,
    YELLOW,
    axes_or_new,
    legend_above,
    plain,
    title,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: Bars that a picture has at most, but of sizes and weeks; the others are one, "others".
MOST_BARS = 30
_ROW_INCHES, _FRAME_INCHES = 0.24, 1.2
_LETTERS = 32  # of a name
_COLOURS = {
    "quota": BLACK,
    "processors": BLUE,
    "nodes": SKY_BLUE,
    "partition": LIGHT_GREY,
    "order": DARK_GREY,
    "reservation": VERMILLION,
    "plan": ORANGE,
    "clock": PURPLE,
    "unseen": YELLOW,
    "hold": GREEN,
}


def draw_waits(table: pd.DataFrame, note: str = "", axes: Axes | None = None) -> Axes:
    """Draw what waiting is due to, a bar a row, as long as all of it.

    Parameters
    ----------
    table : of :func:`hpcgym.explanation.waits_by`: columns of reasons [s], index what the bars are
        called. Of more than 30 rows, but of sizes and weeks, the last ones are one bar; and rows in
        which nobody waited are left out.
    note : what it shows, for a new figure.
    axes : where to draw; without it a new figure.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.

    Raises
    ------
    HpcgymError : matplotlib is not installed.
    """
    reasons = [name for name in CALLED if name in table and table[name].any()]
    waited = table[reasons].any(axis=1)
    shown = table if table.index.name in ORDERED else table[waited]
    shown = shortened(shown, MOST_BARS)
    names = [_short(str(name)) for name in shown.index]
    seconds = shown[reasons].to_numpy(np.float64)
    size, unit = _unit(float(seconds.sum(axis=1).max(initial=0)))
    axes = axes_or_new(axes, 9, _ROW_INCHES * max(len(names), 3) + _FRAME_INCHES)
    left = np.zeros(len(names))
    for name, part in zip(reasons, seconds.T / size, strict=True):
        rows = np.arange(len(names))
        axes.barh(rows, part, left=left, color=_COLOURS[name], label=CALLED[name])
        left += part
    axes.set_yticks(range(len(names)), names)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)  # users may have any name
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(f"time that jobs waited ({unit}, all together)")
    plain(axes, grid="x")
    axes.tick_params(left=False)
    rows_of_legend = legend_above(axes, [CALLED[name] for name in reasons]) if reasons else 0
    heading = "What jobs waited for" if reasons else "No job waited"
    title(axes, heading, note, rows_of_legend)
    return axes


def _short(name: str) -> str:
    """Return a name that leaves room for bars."""
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"


def _unit(seconds: float) -> tuple[int, str]:
    """Return the largest unit of which the longest bar has two, its seconds and its name."""
    return next((unit for unit in UNITS if seconds >= 2 * unit[0]), UNITS[-1])
