"""Figures for papers of values on slices: performance profiles, critical differences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.report.canvas import (
    BLACK,
    DARK_GREY,
    axes_or_new,
    figure_of,
    legend_above,
    line_style,
    plain,
    shortened,
    title,
)
from hpcgym.report.overview import bare_figure
from hpcgym.report.tables import shown_p
from hpcgym.schedule.metrics import MORE, NEITHER, Metric
from hpcgym.study.intervals import FEWEST, Floats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- Performance profiles -------------------------------------------------------------------------


def ratios_to_best(values: pd.DataFrame, metric: Metric) -> Floats:
    """Return how many times as bad each value is as the best of its row, (rows, columns) float64.

    Parameters
    ----------
    values : a row a slice, a column a scheduler. Rows in which a value is missing, or not more than
        0, have no ratios and are left out.
    metric : tells whether less or more is better.

    Raises
    ------
    HpcgymError : a metric of which neither is better, or no row has ratios.
    """
    if metric.better == NEITHER:
        raise HpcgymError(f"{metric.name}: neither less nor more of it is better")
    found = values.to_numpy(np.float64)
    found = found[(found > 0).all(axis=1)]
    if not len(found):
        raise HpcgymError(f"{metric.name}: on no slice all have a value above 0")
    if metric.better == MORE:
        found = 1 / found
    ratios: Floats = found / found.min(axis=1, keepdims=True)
    return ratios


def called(index: pd.Index) -> str:
    """Return what the rows of a table are for a reader: weeks, months, or else instances."""
    words = {str(label).partition(" ")[0] for label in index}
    return f"{words.pop()}s" if words in ({"week"}, {"month"}) else "instances"


def draw_profiles(values: pd.DataFrame, metric: Metric, axes: Axes | None = None) -> Axes:
    """Draw on which share of instances each scheduler is at most x times as bad as the best.

    The curve of a scheduler begins, at 1, with the share of instances on which it is the best; one
    further left or higher is better (Dolan and Moré, Benchmarking optimization software with
    performance profiles, Mathematical Programming 91, 2002). Who is the best depends on all that
    are compared.

    Parameters
    ----------
    values, metric : of :func:`ratios_to_best`. Where all labels of rows are such as "week 3", or
        "month 3", the axis says weeks, or months; else instances.
    axes : where to draw; without it a new figure.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.

    Raises
    ------
    HpcgymError : what :func:`ratios_to_best` raises; matplotlib is not installed.
    """
    ratios = ratios_to_best(values, metric)
    axes = axes_or_new(axes, 6, 4)
    short = shortened(map(str, values.columns), figure_of(axes).get_figwidth())
    farthest = max(float(ratios.max()) * 1.05, 1.1)
    for place, (name, column) in enumerate(zip(values.columns, ratios.T, strict=True)):
        x = np.sort(column)
        share = 100 * np.arange(1, len(x) + 1) / len(x)
        best = f"best on {100 * float((column == 1).mean()):.0f} %"
        steps = np.concatenate(([1.0], x, [farthest])), np.concatenate(([0.0], share, [100.0]))
        axes.step(
            *steps,
            where="post",
            label=f"{short[str(name)]}: {best}",
            linewidth=1.2,
            **line_style(place),
        )
    axes.set_xscale("log")
    axes.set_xlim(1, farthest)
    axes.set_ylim(0, 103)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if farthest < 10 else "")
    axes.set_xlabel(f"{metric.title}, times that of the best")
    axes.set_ylabel(f"% of {len(ratios):,} {called(values.index)}")
    plain(axes)
    axes.tick_params(which="minor", labelsize=8)
    _, names = axes.get_legend_handles_labels()
    title(axes, "Performance profiles", "", legend_above(axes, names))
    return axes


# --- Average ranks over slices, and which differ by more than chance ------------------------------

LEAST_SCHEDULERS = 3
_ALPHA = 0.05
_BAR, _FIRST, _STEP = 0.22, 0.35, 0.5  # of the picture: between bars, to the first and next name
_LEFT = 0.9  # where lines end at names


class Ranks(NamedTuple):
    """How schedulers rank on slices.

    Attributes
    ----------
    names : of the schedulers, the best first.
    mean : (k,) average rank of each; 1 is the best on every slice, and equal ones share ranks.
    slices : how many there are.
    p : of Friedman's test, by chi-square: that all rank alike.
    difference : the critical one of Nemenyi's test at 5 %: of two average ranks.
    """

    names: list[str]
    mean: Floats
    slices: int
    p: float
    difference: float

    @property
    def groups(self) -> list[tuple[int, int]]:
        """The first and last of each longest row of schedulers that do not differ.

        Where Friedman's test finds no difference at all, they are one.
        """
        k = len(self.names)
        if self.p > _ALPHA:
            return [(0, k - 1)]
        near = self.mean[None, :] - self.mean[:, None] <= self.difference
        last = [int(np.flatnonzero(near[place])[-1]) for place in range(k)]
        # a row that is a part of the one before is not told again
        new = [place == 0 or last[place] > last[place - 1] for place in range(k)]
        return [(place, last[place]) for place in range(k) if new[place] and last[place] > place]


def average_ranks(values: pd.DataFrame, metric: Metric) -> Ranks:
    """Return how schedulers rank on average, with Friedman's and Nemenyi's tests.

    Parameters
    ----------
    values : a row a slice, a column a scheduler. Rows in which a value is missing are left out.
    metric : tells whether less or more is better.

    Raises
    ------
    HpcgymError : a metric of which neither is better, fewer than three schedulers, or fewer than
        five slices.
    """
    if metric.better == NEITHER:
        raise HpcgymError(f"{metric.name}: neither less nor more of it is better")
    table = values.dropna()
    n, k = table.shape
    if k < LEAST_SCHEDULERS or n < FEWEST:
        raise HpcgymError(
            f"ranks need {LEAST_SCHEDULERS} schedulers and {FEWEST} slices on which all have a"
            f" value; there are {k} and {n}"
        )
    ranks = table.rank(axis=1, ascending=metric.better != MORE).to_numpy(np.float64)
    mean = ranks.mean(axis=0)
    # equal ranks make the sum of squares smaller, by which the statistic is divided
    spread = float(((ranks - (k + 1) / 2) ** 2).sum())
    statistic = (k - 1) * n**2 * float(((mean - (k + 1) / 2) ** 2).sum()) / spread if spread else 0
    order = np.argsort(mean, kind="stable")
    names = [str(table.columns[place]) for place in order]
    return Ranks(names, mean[order], n, _chi_square_p(statistic, k - 1), critical_difference(k, n))


def critical_difference(schedulers: int, slices: int, alpha: float = _ALPHA) -> float:
    """Return by how much two average ranks must differ, by Nemenyi's test."""
    q = _studentized_range(schedulers, alpha) / math.sqrt(2)
    return q * math.sqrt(schedulers * (schedulers + 1) / (6 * slices))


def _chi_square_p(statistic: float, freedom: int) -> float:
    """Return how likely a chi-square is at least as large, of so many degrees of freedom."""
    half = statistic / 2
    odd = freedom % 2
    p = math.erfc(math.sqrt(half)) if odd else 0.0
    for place in range((freedom - odd) // 2):
        power = place + odd / 2
        p += math.exp(power * math.log(half) - half - math.lgamma(power + 1)) if half else not power
    return min(float(p), 1.0)


def _studentized_range(groups: int, alpha: float) -> float:
    """Return what the range of so many standard normal numbers exceeds with probability alpha."""
    z = np.linspace(-8, 8, 3201)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    def below(points: Floats) -> Floats:
        return np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in points.tolist()])

    whole = below(z)

    def exceeded(q: float) -> float:
        return 1 - groups * float(np.trapezoid(density * (whole - below(z - q)) ** (groups - 1), z))

    low, high = 0.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeded(middle) > alpha else (low, middle)
    return high


def draw_ranks(values: pd.DataFrame, metric: Metric, axes: Axes | None = None) -> Axes:
    """Draw the average ranks of schedulers: a critical-difference diagram.

    The best is on the left, and its name on top. A bar joins schedulers whose average ranks differ
    by less than the critical difference CD, by Nemenyi's test at 5 %: their order may be chance.
    Both tests take rows for independent.

    Parameters
    ----------
    values, metric : of :func:`average_ranks`. Rows are called as in
        :func:`~hpcgym.study.draw_profiles`.
    axes : where to draw; without it a new figure.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.

    Raises
    ------
    HpcgymError : what :func:`average_ranks` raises; matplotlib is not installed.
    """
    found = average_ranks(values, metric)
    axes = axes_or_new(axes, 6, inches_of(len(found.names)))
    short = shortened(found.names, figure_of(axes).get_figwidth())
    _scale(axes, found, called(values.index))
    for place, (first, last) in enumerate(found.groups):
        ends = found.mean[first] - 0.04, found.mean[last] + 0.04
        y = -_BAR * (place + 1)
        axes.plot(ends, (y, y), color=BLACK, linewidth=3, solid_capstyle="butt")
    top = -_BAR * len(found.groups) - _FIRST
    for place, (name, rank) in enumerate(zip(found.names, found.mean.tolist(), strict=True)):
        y = top - _STEP * place
        axes.plot((rank, rank, _LEFT), (0, y, y), color=DARK_GREY, linewidth=0.8)
        words = f"{short[name]}  {rank:.2f} "
        axes.text(_LEFT, y, words, ha="right", va="center", fontsize=8).set_parse_math(False)
    axes.set_ylim(top - _STEP * (len(found.names) - 0.5), 1.6)
    title(axes, f"Average ranks by {metric.title}")
    return axes


def inches_of(schedulers: int) -> float:
    """Return how high a picture of the ranks of so many schedulers must be."""
    return 1.2 + 0.17 * schedulers


def _scale(axes: Axes, found: Ranks, rows: str) -> None:
    """Draw the axis of ranks, the critical difference above it, and how many ``rows`` were used."""
    k = len(found.names)
    axes.set_axis_off()
    axes.set_xlim(_LEFT, k + 0.1)
    axes.plot((1, k), (0, 0), color=BLACK, linewidth=0.8)
    for rank in range(1, k + 1):
        axes.plot((rank, rank), (0, 0.1), color=BLACK, linewidth=0.8)
        axes.text(rank, 0.18, f"{rank}", ha="center", va="bottom", fontsize=8)
    ends = 1, min(1 + found.difference, k)
    axes.plot(ends, (0.9, 0.9), color=BLACK, linewidth=1.2, marker="|", markersize=5)
    p = "p < 0.001" if found.p < 0.001 else f"p = {shown_p(found.p)}"
    axes.text(1, 1.1, f"CD = {found.difference:.2f}", ha="left", va="bottom", fontsize=8)
    tested = f"{found.slices:,} {rows} \nFriedman's {p} "
    axes.text(_LEFT, 0, tested, ha="right", va="bottom", fontsize=8, color=DARK_GREY)


# --- Figures for papers of values on slices -------------------------------------------------------


def slice_figures(
    grids: Mapping[str, pd.DataFrame], metrics: Mapping[str, Metric], width: float
) -> dict[str, Figure]:
    """Return the figures of some metrics by name: ``profile-METRIC`` and ``ranks-METRIC``.

    The latter is left out of fewer than three schedulers, or five slices.

    Parameters
    ----------
    grids : metric -> a row a slice, a column a scheduler.
    metrics : those metrics.
    width : of a figure [inches].

    Raises
    ------
    HpcgymError : as :func:`~hpcgym.study.draw_profiles`, or a width that figures cannot have.
    """
    found = {}
    for name, grid in grids.items():
        metric = metrics[name]
        slices, schedulers = grid.dropna().shape
        ranks = slices >= FEWEST and schedulers >= LEAST_SCHEDULERS
        if not ranks or (grid.dropna() > 0).all(axis=1).any():  # ratios need values above 0
            found[f"profile-{name}"] = bare_figure(partial(draw_profiles, grid, metric), width)
        if ranks:
            draw = partial(draw_ranks, grid, metric)
            found[f"ranks-{name}"] = bare_figure(draw, width, inches_of(schedulers))
    return found
