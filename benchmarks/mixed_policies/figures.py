"""The paper's figures, drawn from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.mixed_policies.study import PURE
from hpcgym.benchmarks.studies.pictures import log_ticks
from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    DARK_GREY,
    GREEN,
    LIGHT_GREY,
    ORANGE,
    SKY_BLUE,
    VERMILLION,
    new_figure,
    plain,
    title,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: How what is compared in figures 3, 13 and 15 is marked.
MARKS = {
    "fcfs": ("FCFS", DARK_GREY, "x"),
    "saf": ("SAF", BLUE, "o"),
    "w_greedy": ("w_greedy: the best of the one before (mean over ties)", ORANGE, "^"),
    "w*_train": ("w*_train: the best of the training part", GREEN, "s"),
    "w*": ("w*: the best of this one", VERMILLION, "D"),
}

_NAMED = 1.25  # a pure policy is named where SAF is worse by this factor


def draw_distribution(table: pd.DataFrame, name: str) -> Figure:
    """Figure 1: how the weekly mean BSLD of the pure policies is distributed, best mean first."""
    means = table[list(PURE)].mean().sort_values(ascending=False)
    figure = new_figure(8, 4.6)
    axes = figure.add_subplot()
    boxes = axes.boxplot(
        [table[policy] for policy in means.index],
        orientation="horizontal",
        widths=0.6,
        showmeans=True,
        patch_artist=True,
        medianprops={"color": BLACK, "linewidth": 1.2},
        meanprops={"marker": "D", "markerfacecolor": VERMILLION, "markeredgecolor": "none"},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": DARK_GREY},
    )
    for place, box in enumerate(boxes["boxes"]):
        box.set(facecolor=SKY_BLUE if place >= len(means) - 3 else LIGHT_GREY, linewidth=0.6)
    labels = [f"{str(policy).upper()}  {mean:.1f}" for policy, mean in means.items()]
    axes.set_yticks(range(1, len(means) + 1), labels)
    axes.set_xscale("log")
    log_ticks(axes.xaxis)
    axes.set_xlabel("mean BSLD of a week")
    plain(axes, grid="x")
    note = "By the mean over the weeks (diamond, number); the three best are coloured."
    title(axes, "Pure policies", f"{name}. {note}")
    return figure


def draw_saf(table: pd.DataFrame, name: str) -> Figure:
    """Figures 2, 6, 9 and 12: SAF against the best pure policy of each week."""
    figure = new_figure(_width(len(table)), 4)
    axes = figure.add_subplot()
    week = table["week"].to_numpy()
    saf, best = table["saf"].to_numpy(), table[list(PURE)].min(axis=1).to_numpy()
    names = table[list(PURE)].idxmin(axis=1)
    axes.vlines(week, best, saf, color=DARK_GREY, linewidth=1)
    axes.plot(week, saf, "o", color=BLUE, markersize=4, label="SAF")
    axes.plot(week, best, "D", color=VERMILLION, markersize=4, label="best pure policy")
    for x, low, high, policy in zip(week, best, saf, names, strict=True):
        if high >= _NAMED * low:
            axes.annotate(
                str(policy).upper(),
                (x, low),
                (0, -5),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize=6.5,
                rotation=90 if len(table) > 60 else 45,
            )
    _weeks(axes, week, "week")
    axes.set_ylim(bottom=0.5)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    note = f"Named where SAF is worse by {100 * _NAMED - 100:.0f} % or more."
    title(axes, "SAF and the best pure policy of each week", f"{name}. {note}")
    return figure


def draw_comparison(
    table: pd.DataFrame, name: str, period: str, train: Sequence[int], test: Sequence[int]
) -> Figure:
    """Figures 3, 7, 10, 13 and 15: w*, w*_train, w_greedy, SAF and FCFS week by week."""
    figure = new_figure(_width(len(table)), 5)
    axes = figure.add_subplot()
    number = table[period].to_numpy()
    for column, (label, colour, marker) in MARKS.items():
        axes.plot(number, table[column], marker, color=colour, markersize=4.5, label=label)
    axes.vlines(number, table["w*"], table["saf"], color=LIGHT_GREY, linewidth=1, zorder=0)
    top = 1.0
    for part, chosen in (("training", train), ("testing", test)):
        if chosen:
            middle = (chosen[0] + chosen[-1]) / 2
            axes.text(middle, top, part, transform=axes.get_xaxis_transform(), **_PART)
    if train and test:
        axes.axvline((train[-1] + test[0]) / 2, color=DARK_GREY, linewidth=0.8, linestyle="--")
    _weeks(axes, number, period)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    title(axes, f"Mixed and pure policies on each {period}", name)
    return figure


_PART: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 8, "color": DARK_GREY}


def draw_searches(table: pd.DataFrame, name: str) -> Figure:
    """Figures 5, 8, 11 and 14: the searches over 3 and 6 weights against w* of the grid."""
    figure = new_figure(_width(len(table)), 5)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1))
    week = table["week"].to_numpy()
    styles = {"w*": (VERMILLION, "D"), "xnes3": (BLUE, "o"), "xnes6": (GREEN, "s")}
    for column, (colour, marker) in styles.items():
        label = "w* of three weights, all vectors of the grid" if column == "w*" else column
        style: dict[str, Any] = {"color": colour, "markersize": 3.5}
        if column == "w*":
            style |= {"markersize": 7, "markerfacecolor": "none"}
        upper.plot(week, table[column], marker, label=label, **style)
        if column != "w*":
            ratio = 100 * (table[column] / table["w*"] - 1)
            lower.plot(week, ratio, marker, **style)
    lower.axhline(0, color=VERMILLION, linewidth=0.8)
    lower.set_ylabel("above w* (%)")
    plain(lower)
    _weeks(upper, week, "")
    lower.set_xlabel("week")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    title(upper, "Search over three and six weights, and the grid", name)
    return figure


def draw_spaces(
    values: Mapping[int, NDArray[np.float64]], points: NDArray[np.float64], name: str
) -> Figure:
    """Figure 4: mean BSLD over the space of three weights, a row a week.

    The space |q| + |p| + |wait| = 1 is two squares that stand on a corner, one where q <= 0 and one
    where q >= 0; turned by 45 degrees, the weights of p and wait are the diagonals.

    Parameters
    ----------
    values : week -> mean BSLD under all vectors of a grid, (n, n, n) by q, p, wait.
    points : (n,) the values of a weight.
    name : of the trace.
    """
    from matplotlib.colors import LogNorm

    figure = new_figure(7.6, 3.4 * len(values) + 0.6)
    grid = figure.subplots(len(values), 3, squeeze=False, width_ratios=(1, 1, 0.06))
    for row, (week, cube) in zip(grid, values.items(), strict=True):
        squares = {sign: square(cube, points, sign) for sign in (-1, 1)}
        norm = LogNorm(min(map(np.min, squares.values())), max(map(np.max, squares.values())))
        for axes, (sign, picture) in zip(row[:2], squares.items(), strict=True):
            image = axes.imshow(
                picture, origin="lower", extent=(-1, 1, -1, 1), cmap="cividis_r", norm=norm
            )
            _diagonals(axes, "q ≤ 0" if sign < 0 else "q ≥ 0", f"week {week}")
        _mark_best(row, cube, points)
        bar = figure.colorbar(image, cax=row[2])
        log_ticks(bar.ax.yaxis, (1, 1.5, 2, 3, 5, 7))
        bar.ax.tick_params(labelsize=7)
        bar.set_label("mean BSLD", fontsize=8)
    note = "q: processors, p: requested time, wait: waiting time; large scores first. Dot: least."
    figure.suptitle("The space of three weights\n\n", x=0.02, ha="left", **_HEADING)
    figure.text(0.02, 0.995, f"\n{name}\n{note}", va="top", fontsize=8, color=DARK_GREY)
    return figure


_HEADING: dict[str, Any] = {"fontsize": 10, "fontweight": "bold"}


def square(
    cube: NDArray[np.float64], points: NDArray[np.float64], sign: int, pixels: int = 240
) -> NDArray[np.float64]:
    """Return the values over the turned square, (pixels, pixels): from the nearest grid vectors.

    At (x, y) of the square, -1 to 1 each, p = (y - x) / 2 and wait = (x + y) / 2.
    """
    middle = (np.arange(pixels) + 0.5) / pixels * 2 - 1
    x, y = np.meshgrid(middle, middle)
    p, wait = (y - x) / 2, (x + y) / 2
    q = sign * (1 - np.abs(p) - np.abs(wait))
    vectors = np.stack([q, p, wait])
    vectors /= np.abs(vectors).max(axis=0)  # out to where the grid is finest
    places = np.rint((vectors + 1) / 2 * (len(points) - 1)).astype(np.int64)
    picture: NDArray[np.float64] = cube[tuple(places)]
    return picture


def _mark_best(row: Sequence[Axes], cube: NDArray[np.float64], points: NDArray[np.float64]) -> None:
    """Put a dot at the first vector with the least value."""
    vector = points[list(np.unravel_index(int(cube.argmin()), cube.shape))]
    q, p, wait = vector / np.abs(vector).sum()
    axes = row[0] if q < 0 else row[1]
    axes.plot(wait - p, wait + p, "o", color="red", markersize=6, markeredgecolor="white")


def _diagonals(axes: Axes, half: str, week: str) -> None:
    """Name the corners: the weights that are 1 or -1 there."""
    axes.set_xticks([])
    axes.set_yticks([])
    corners = {(-1, 1): "p = 1", (1, 1): "wait = 1", (1, -1): "p = -1", (-1, -1): "wait = -1"}
    for (x, y), text in corners.items():
        axes.annotate(
            text,
            (x, y),
            (0, 3 * y),
            textcoords="offset points",
            ha="left" if x < 0 else "right",
            va="bottom" if y > 0 else "top",
            fontsize=7,
            color=DARK_GREY,
        )
    axes.set_xlabel(half, fontsize=8)
    axes.set_ylabel(week, fontsize=8)


def _width(number: int) -> float:
    """Return the width in inches of a picture with that many weeks."""
    return max(6.5, min(14.0, 2 + 0.13 * number))


def _weeks(axes: Axes, numbers: NDArray[Any], label: str) -> None:
    """Set the axes of a picture by week."""
    axes.set_yscale("log")
    log_ticks(axes.yaxis)
    axes.set_ylabel("mean BSLD")
    axes.set_xlabel(label)
    axes.set_xlim(numbers[0] - 1, numbers[-1] + 1)
    axes.locator_params(axis="x", integer=True)
    plain(axes)
