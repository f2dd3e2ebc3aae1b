"""How trainings went: the curves that submissions keep, and their picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.files import csv_frame
from hpcgym.report.canvas import line_style, new_figure, plain
from hpcgym.suite.submissions import Submission
from hpcgym.suite.trainings import TRAININGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What of a log is drawn, the first that it has -> in words. All are mean bounded slowdowns.
DRAWN = {
    "validation/mean_bsld": "validation",
    "train/least_mean_bsld": "train, least so far",
    "train/mean_bsld": "train, exploring",
}

_WIDE = 3  # panels side by side


class Curve(NamedTuple):
    """How a training went.

    Attributes
    ----------
    task, agent, seed : which one.
    measure : a key of :data:`DRAWN`.
    steps, values : (n,) float64 steps of environments so far, and what was told then.
    """

    task: str
    agent: str
    seed: str
    measure: str
    steps: NDArray[np.float64]
    values: NDArray[np.float64]


def curves_of(submissions: Sequence[Submission]) -> list[Curve]:
    """Return the curves of submissions; agents that log none of these measures have none.

    Raises
    ------
    HpcgymError : there is none at all, or a file that is no log.
    """
    found = []
    for one in submissions:
        for task in one.tasks:
            for path in sorted((one.folder / TRAININGS / task).glob("*.csv")):
                log = csv_frame(path)
                measure = next((key for key in DRAWN if key in log), None)
                if measure is None:
                    continue
                try:
                    rows = log[["steps", measure]].dropna().astype(float)
                except (KeyError, ValueError):
                    raise HpcgymError(f"{path} is not the log of a training") from None
                told = rows["steps"].to_numpy(), rows[measure].to_numpy()
                found.append(Curve(task, one.agent, path.stem, measure, *told))
    if not found:
        raise HpcgymError("these submissions have no curves of trainings")
    return found


def draw(curves: Sequence[Curve]) -> Figure:
    """Return the picture: a panel a task, a line a training, a colour an agent."""
    tasks = list(dict.fromkeys(one.task for one in curves))
    agents = list(dict.fromkeys((one.agent, one.measure) for one in curves))
    wide = min(len(tasks), _WIDE)
    tall = -(-len(tasks) // wide)
    figure = new_figure(3.6 * wide + 0.4, 2.7 * tall + 0.6)
    grid = figure.subplots(tall, wide, squeeze=False).ravel()
    lines = {}
    for one in curves:
        who = one.agent, one.measure
        axes = grid[tasks.index(one.task)]
        (lines[who],) = axes.plot(
            one.steps / 1e6, one.values, linewidth=1.2, alpha=0.8, marker="o", markersize=2,
            **line_style(agents.index(who)),
        )  # fmt: skip
    for place, axes in enumerate(grid):
        axes.set_visible(place < len(tasks))
        if place < len(tasks):
            axes.set_title(tasks[place], fontsize=10)
            axes.set_yscale("log")
            for axis in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
                axis("{x:g}")
            plain(axes, "y")
            axes.tick_params(axis="y", which="minor", labelsize=7)
    figure.supxlabel("steps, in millions", fontsize=9)
    figure.supylabel("mean bounded slowdown", fontsize=9)
    names = [f"{agent} ({DRAWN[measure]})" for agent, measure in agents]
    figure.legend(
        [lines[who] for who in agents], names, loc="outside upper center",
        ncols=min(len(names), wide), frameon=False, fontsize=8,
    )  # fmt: skip
    return figure
