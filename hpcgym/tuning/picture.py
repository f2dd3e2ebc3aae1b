"""The picture of a tuned scheduler: what each of its parts does, and the later weeks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from hpcgym.report.canvas import (
    BLUE,
    DARK_GREY,
    LIGHT_GREY,
    ORANGE,
    VERMILLION,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.tuning.tuned import Tuned

_WORDS = {
    "weekly_bsld": "weekly mean bounded slowdown (geometric mean)",
    "mean_bsld": "mean bounded slowdown",
    "mean_wait_h": "mean wait [h]",
}


def draw(tuned: Tuned) -> Figure:
    """Return the picture; see :meth:`hpcgym.tuning.tuned.Tuned.figure`."""
    figure = new_figure(11, 4.5)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    _draw_way(left, tuned)
    _draw_weeks(right, tuned)
    title = textwrap.fill(f"{tuned.log}: {tuned.verdict}", 150)
    figure.suptitle(title, fontsize=9)
    return figure


def _draw_way(axes: Axes, tuned: Tuned) -> None:
    """Draw the objective as one part after the other is given up."""
    given_up = [what for what, _, _ in tuned.steps[1:]]
    names = ["tuned", *(f"without {what}" for what in given_up[:1])]
    names += [f"nor {what}" for what in given_up[1:]]
    if given_up:
        names[-1] += ": EASY"
    places = range(len(names))
    later = [step[2] for step in tuned.steps]
    axes.barh(places, later, color=BLUE, height=0.55, label="later part, not searched on")
    early = [step[1] for step in tuned.steps]
    axes.plot(early, places, "o", color=ORANGE, label="early part")
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlabel(_WORDS[tuned.objective])
    axes.set_xlim(left=0)
    plain(axes, "x")
    axes.legend(frameon=False, fontsize=8)


def _draw_weeks(axes: Axes, tuned: Tuned) -> None:
    """Draw the mean of each later week: of the tuned scheduler, and of those to be beaten."""
    names = [str(name) for name in tuned.board.index]
    colours = {names[0]: BLUE, names[1]: VERMILLION, "easy": LIGHT_GREY}
    column = 2 if tuned.objective == "mean_wait_h" else 1
    for name, colour in reversed(colours.items()):
        sums = tuned.weeks[name]
        weeks = sums[:, 0].nonzero()[0]
        axes.plot(
            weeks, sums[weeks, column] / sums[weeks, 0], "o-", color=colour, markersize=3,
            linewidth=1, label=name,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("week of the log")
    axes.set_ylabel("mean wait [h]" if column == 2 else "mean bounded slowdown")
    axes.tick_params(colors=DARK_GREY)
    plain(axes, "y")
    axes.legend(frameon=False, fontsize=8)
