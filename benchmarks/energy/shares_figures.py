"""The pictures of the study of energy fair share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.energy import esp
from hpcgym.benchmarks.energy.published_shares import TABLE_6_1
from hpcgym.benchmarks.energy.shares import EFFICIENCIES
from hpcgym.benchmarks.energy.shares_tables import CELLS, ratios
from hpcgym.benchmarks.studies.pictures import log_ticks
from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    DARK_GREY,
    GREEN,
    VERMILLION,
    legend_above,
    new_figure,
    plain,
    title,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = dict(zip(EFFICIENCIES, (GREEN, VERMILLION), strict=True))
_USERS = (GREEN, BLUE, VERMILLION)


def draw_users(outcome: Mapping[str, Any], trace: str) -> Figure:
    """Table 6.1 as a picture: a mark for each user, our mean and the published one."""
    figure = new_figure(7, 4.2)
    axes = figure.add_subplot()
    found, theirs = ratios(outcome), TABLE_6_1.get(trace, {})
    for place, cell in enumerate(CELLS):
        values = np.sort(found[cell])
        beside = place + np.linspace(-0.22, 0.22, len(values))
        colour = _COLOURS[cell[1]]
        axes.plot(beside, values, "o", color=colour, markersize=4, alpha=0.7)
        axes.plot([place - 0.3, place + 0.3], [values.mean()] * 2, color=BLACK, linewidth=1.5)
        if cell in theirs:
            axes.plot(place, theirs[cell].mean, "D", color=BLUE, markersize=6, zorder=3)
    axes.axhline(1, color=DARK_GREY, linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    log_ticks(axes.yaxis)
    axes.set_xticks(range(len(CELLS)), [f"{policy}\n{name}" for policy, name in CELLS])
    axes.set_ylabel("stretch / stretch under FS")
    plain(axes)
    marks = axes.get_lines()
    names = ["one user", "mean", *(["published mean"] if theirs else [])]
    rows = legend_above(axes, names, handles=list(marks[: len(names)]), labels=names)
    title(axes, f"Users who save or waste energy: {trace}", legend_rows=rows)
    return figure


def draw_esp(outcomes: Sequence[esp.Outcome]) -> Figure:
    """Figures 6.2 and 6.3: mean stretch of each user under each policy, over that of FIFO."""
    figure = new_figure(9, 3.8)
    panels = figure.subplots(1, len(outcomes), sharey=True)
    for axes, outcome in zip(np.atleast_1d(panels), outcomes, strict=True):
        fifo = outcome.stretch["FIFO"].mean()
        for place, user in enumerate(esp.USERS):
            values = [rows[:, place] / fifo for rows in outcome.stretch.values()]
            middle = np.arange(len(values)) + 0.27 * (place - 1)
            error = [1.96 * one.std(ddof=1) / np.sqrt(len(one)) for one in values]
            axes.bar(
                middle,
                [one.mean() for one in values],
                0.25,
                yerr=error,
                color=_USERS[place],
                ecolor=DARK_GREY,
                capsize=2,
                label=f"user {user}",
            )
        axes.set_xticks(range(len(outcome.stretch)), list(outcome.stretch))
        plain(axes)
        handles, names = axes.get_legend_handles_labels()
        rows = legend_above(axes, names, handles=handles, labels=names)
        title(axes, outcome.experiment.heading.capitalize(), legend_rows=rows)
    np.atleast_1d(panels)[0].set_ylabel("mean stretch / that under FIFO")
    return figure
