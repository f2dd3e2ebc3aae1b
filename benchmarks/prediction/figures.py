"""The thesis's figures, and ours against the published values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.prediction.campaign import Findings
from hpcgym.benchmarks.prediction.configurations import (
    CLAIRVOYANT,
    CORRECTIONS,
    E_LOSS_TRIPLE,
    EASY,
    EASY_PLUS_PLUS,
    ORDERS,
)
from hpcgym.benchmarks.prediction.tables import name_of
from hpcgym.benchmarks.studies.pictures import log_ticks
from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    DARK_GREY,
    GREEN,
    PURPLE,
    VERMILLION,
    legend_above,
    new_figure,
    plain,
    title,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = dict(zip(CORRECTIONS, (BLUE, VERMILLION, GREEN), strict=True))
_MARKERS = dict(zip(ORDERS, ("o", "^"), strict=True))
_LINES = {
    "clairvoyant": (BLACK, ":"),
    "requested": (DARK_GREY, "--"),
    "AVE2": (BLUE, "-"),
    "squared loss": (GREEN, "-"),
    "E-Loss": (VERMILLION, "-"),
}
_NAMED = (EASY, EASY_PLUS_PLUS, E_LOSS_TRIPLE, *CLAIRVOYANT.values())
_POINTS = 2001  # of a distribution that are drawn


def draw_against_published(found: Findings, table: pd.DataFrame) -> Figure:
    """Each configuration of a table: our mean bounded slowdown against the published one."""
    table = table[table["published"].notna()]
    figure = new_figure(6.5, 6)
    axes = figure.add_subplot()
    _scatter(axes, table, table["published"], table["mean_bsld"])
    values = table[["published", "mean_bsld"]].to_numpy()
    ends = [values.min(), values.max()]
    axes.plot(ends, ends, color=DARK_GREY, linewidth=0.8, linestyle="--", zorder=0)
    _name(axes, table, "published", "mean_bsld")
    _finish(axes, "published", "ours")
    _legend(figure)
    title(axes, "Mean bounded slowdown of each configuration", found.trace)
    return figure


def draw_two_traces(first: Findings, second: Findings) -> Figure:
    """Figure 7.2: each configuration on two traces."""
    other = second.table["mean_bsld"].rename("mean_bsld too")
    shown = first.of_thesis.join(other, how="inner")
    figure = new_figure(6.5, 6)
    axes = figure.add_subplot()
    _scatter(axes, shown, shown["mean_bsld"], shown["mean_bsld too"])
    _name(axes, shown, "mean_bsld", "mean_bsld too")
    _finish(axes, first.trace, second.trace)
    _legend(figure)
    title(axes, "Mean bounded slowdown of each configuration on two traces (figure 7.2)", "")
    return figure


def _scatter(axes: Axes, table: pd.DataFrame, x: pd.Series[float], y: pd.Series[float]) -> None:
    """Draw a mark for each configuration, by correction, order and whether it learns."""
    crowded = len(table) > 500
    for correction, colour in _COLOURS.items():
        for order, marker in _MARKERS.items():
            part = (table["correction"] == correction) & (table["order"] == order)
            for learned in (True, False):
                these = part & ((table["estimate"] == "regression") == learned)
                style: dict[str, Any] = {"color": colour, "alpha": 0.3 if crowded else 0.8}
                if not learned:
                    style = {"color": BLACK, "markerfacecolor": "none", "zorder": 3}
                size = 2 if crowded and learned else 5
                axes.plot(x[these], y[these], marker, markersize=size, **style)


def _name(axes: Axes, table: pd.DataFrame, x: str, y: str) -> None:
    """Write names beside some configurations."""
    for one in _NAMED:
        if str(one) in table.index:
            place = (float(table[x][str(one)]), float(table[y][str(one)]))
            axes.annotate(
                name_of(one), place, (5, -3), textcoords="offset points", fontsize=7, zorder=4
            )


def _finish(axes: Axes, x: str, y: str) -> None:
    """Set the axes of a scatter."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        log_ticks(axis, range(1, 10))
    axes.set_xlabel(f"mean bounded slowdown, {x}")
    axes.set_ylabel(f"mean bounded slowdown, {y}")
    plain(axes)


def _legend(figure: Figure) -> None:
    """Explain colours and forms."""
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], marker="s", linestyle="", color=colour, label=f"correction: {name}")
        for name, colour in _COLOURS.items()
    ]
    marks += [
        Line2D([], [], marker=form, linestyle="", color=DARK_GREY, label=order.upper())
        for order, form in _MARKERS.items()
    ]
    hollow: dict[str, Any] = {"marker": "o", "color": BLACK, "markerfacecolor": "none"}
    marks.append(Line2D([], [], linestyle="", label="without learning", **hollow))
    figure.legend(handles=marks, loc="outside lower center", ncols=3, fontsize=8, frameon=False)


def draw_errors(predictions: Mapping[str, NDArray[np.int64]], trace: str) -> Figure:
    """Figure 7.3: how prediction errors, predicted less actual run time, are distributed."""
    errors = {"clairvoyant": np.zeros(1)}
    errors |= {name: (given - run) / 3600 for name, (given, run) in predictions.items()}
    figure = new_figure(7, 4.4)
    axes = figure.add_subplot()
    _distributions(axes, errors)
    ends = np.concatenate([np.quantile(values, (0.005, 0.995)) for values in errors.values()])
    axes.set_xlim(ends.min(), ends.max())
    axes.set_xlabel("predicted less actual run time (hours)")
    title(axes, "Prediction errors (figure 7.3)", trace, legend_rows=1)
    return figure


def draw_predicted(predictions: Mapping[str, NDArray[np.int64]], trace: str) -> Figure:
    """Figure 7.4: how predicted run times are distributed."""
    values = {"clairvoyant": next(iter(predictions.values()))[1] / 3600}
    values |= {name: given / 3600 for name, (given, _) in predictions.items()}
    figure = new_figure(7, 4.4)
    axes = figure.add_subplot()
    _distributions(axes, values)
    axes.set_xscale("log")
    log_ticks(axes.xaxis, (1,))
    axes.set_xlabel("predicted run time (hours)")
    title(axes, "Predicted run times (figure 7.4)", trace, legend_rows=1)
    return figure


def _distributions(axes: Axes, values: Mapping[str, NDArray[Any]]) -> None:
    """Draw the share of jobs at or below each value."""
    share = np.linspace(0, 1, _POINTS)
    for name, numbers in values.items():
        colour, dashes = _LINES.get(name, (PURPLE, "-"))
        # the least value that this share of the jobs is at or below
        at = np.quantile(numbers, share, method="inverted_cdf")
        axes.step(at, share, where="post", color=colour, linestyle=dashes, label=name)
    axes.set_ylim(0, 1)
    axes.set_ylabel("share of jobs")
    plain(axes)
    legend_above(axes, list(values))
