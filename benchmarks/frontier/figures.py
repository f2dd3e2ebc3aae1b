"""The pictures: slowdown against tails, of all rules, with those that nobody beats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgym.benchmarks.frontier.choice import front_of
from hpcgym.benchmarks.frontier.rules import ORDERS, Rule
from hpcgym.benchmarks.studies.pictures import log_ticks
from hpcgym.report.canvas import BLACK, DARK_GREY, LINE_COLOURS, new_figure, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ACROSS = {"max_wait_h": "longest wait / EASY's", "p99_wait_h": "99th percentile of waits / EASY's"}


def draw_front(table: pd.DataFrame, rules: dict[str, Rule], log: str, best: str | None) -> Figure:
    """Each rule's mean bounded slowdown against its tails, all divided by EASY's.

    Parameters
    ----------
    table : a row for each rule, of :func:`choice.ratios_to_reference`.
    rules : what is in its index.
    best : the chosen rule, which gets a circle.
    """
    figure = new_figure(10, 5)
    for place, (aim, label) in enumerate(_ACROSS.items()):
        axes = figure.add_subplot(1, 2, place + 1)
        _scatter(axes, table, rules, aim)
        front = front_of(table).sort_values([aim, "mean_bsld"])
        lower = front[front["mean_bsld"].cummin() == front["mean_bsld"]]
        axes.plot(lower[aim], lower["mean_bsld"], color=DARK_GREY, linewidth=0.8, zorder=1)
        if best:
            chosen = table.loc[best]
            axes.scatter(
                chosen[aim], chosen["mean_bsld"], s=110, facecolors="none", edgecolors=BLACK,
                label="chosen on the early parts", zorder=4,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        log_ticks(axes.xaxis)
        log_ticks(axes.yaxis, (1, 2, 3, 5, 7))
        axes.axvline(1, color=DARK_GREY, linewidth=0.5, linestyle=":")
        axes.axhline(1, color=DARK_GREY, linewidth=0.5, linestyle=":")
        axes.set_xlabel(label)
        axes.set_ylabel("mean bounded slowdown / EASY's")
        plain(axes, None)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize=8)
    figure.suptitle(
        f"Rules on {log}. Triangles hold long jobs back; the line: the best for each tail"
    )
    return figure


def _scatter(axes: Axes, table: pd.DataFrame, rules: dict[str, Rule], aim: str) -> None:
    """Draw a mark for each rule: colours are orders, triangles hold long jobs back."""
    for order, colour in zip(ORDERS, LINE_COLOURS, strict=False):
        for holds, marker in ((False, "o"), (True, "^")):
            names = [
                name
                for name, rule in rules.items()
                if rule.order == order and bool(rule.share) == holds and name in table.index
            ]
            if names:
                axes.scatter(
                    table.loc[names, aim], table.loc[names, "mean_bsld"], s=16, color=colour,
                    marker=marker, linewidths=0, alpha=0.8, zorder=2,
                    label=None if holds else order,
                )  # fmt: skip
