"""The pictures of the study of energy budgets: figures 5.1 to 5.3 of Glesser 2016."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcgym.benchmarks.energy.budget import MECHANISMS
from hpcgym.benchmarks.energy.budget_tables import SETTINGS, Cells, budgets_of, line, mean
from hpcgym.benchmarks.studies.pictures import log_ticks
from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    GREEN,
    VERMILLION,
    legend_above,
    new_figure,
    plain,
    title,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = dict(zip(MECHANISMS, (BLUE, VERMILLION, GREEN), strict=True))
#: Measure -> figure, label.
FIGURES = {
    "utilisation": ("5.1", "utilisation / EASY's"),
    "AVEbsld": ("5.2", "AVEbsld / EASY's"),
    "energy": ("5.3", "energy / possible energy of the week"),
}


def draw(cells: Cells, measure: str, what: str) -> Figure:
    """Draw a measure over the budget, a line for each mechanism with and without shutdown.

    Figure 5.1 has the line on which the utilisation falls as the budget of the three days.
    """
    figure = new_figure(7, 4.4)
    axes = figure.add_subplot()
    budgets = budgets_of(cells)
    for setting in SETTINGS:
        mechanism, shutdown = setting
        axes.plot(
            [100 * budget for budget in budgets],
            [mean(cells, setting, budget, measure) for budget in budgets],
            "o-" if shutdown else "o--",
            markersize=4,
            markerfacecolor=_COLOURS[mechanism] if shutdown else "white",
            color=_COLOURS[mechanism],
            label=f"{mechanism}, {'shutdown' if shutdown else 'no shutdown'}",
        )
    if measure == "utilisation":
        ends = np.array([max(budgets), min(budgets)])
        axes.plot(100 * ends, line(ends), color=BLACK, linewidth=1, label="3/7 budget + 4/7")
    if measure == "AVEbsld":
        axes.set_yscale("log")
        log_ticks(axes.yaxis)
    axes.invert_xaxis()
    number, label = FIGURES[measure]
    axes.set_xlabel("budget (% of what busy processors use)")
    axes.set_ylabel(label)
    plain(axes)
    _, names = axes.get_legend_handles_labels()
    title(axes, f"As figure {number}: {what}", legend_rows=legend_above(axes, names))
    return figure
