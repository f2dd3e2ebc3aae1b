"""Figures for papers of values on slices: performance profiles."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.errors import HpcgymError
from hpcgym.report.canvas import (
    axes_or_new,
    figure_of,
    labelled,
    legend_above,
    line_style,
    plain,
    shortened,
    title,
)
from hpcgym.report.figures import Drawing, best_of, label_lines, on_axes
from hpcgym.schedule.metrics import MORE, NEITHER, Metric
from hpcgym.study.intervals import Floats

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


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
    numbers = values.to_numpy(np.float64)
    numbers = numbers[(numbers > 0).all(axis=1)]
    if not len(numbers):
        raise HpcgymError(f"{metric.name}: on no slice all have a value above 0")
    if metric.better == MORE:
        numbers = 1 / numbers
    ratios: Floats = numbers / numbers.min(axis=1, keepdims=True)
    return ratios


def draw_profiles(values: pd.DataFrame, metric: Metric, axes: Axes | None = None) -> Axes:
    """Draw on which share of slices each scheduler is at most x times as bad as the best.

    The curve of a scheduler begins, at 1, with the share of slices on which it is the best; one
    further left or higher is better (Dolan and Moré, Benchmarking optimization software with
    performance profiles, Mathematical Programming 91, 2002). Which is the best depends on all
    that are compared.

    Parameters
    ----------
    values, metric : of :func:`ratios_to_best`.
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
    columns = dict(zip(map(str, values.columns), ratios.T, strict=True))
    _curves(axes, columns, metric, len(ratios))
    for line, column in zip(labelled(axes), columns.values(), strict=True):
        best = 100 * float((column == 1).mean())
        line.set_label(f"{line.get_label()}: best on {best:.0f} %")
    names = [str(line.get_label()) for line in labelled(axes)]
    title(axes, "Performance profiles", "", legend_above(axes, names))
    return axes


def _curves(axes: Axes, columns: Mapping[str, Floats], metric: Metric, slices: int) -> None:
    """Draw a curve for each scheduler, from its ratios to the best."""
    short = shortened(columns, figure_of(axes).get_figwidth())
    farthest = max(*(1.05 * float(column.max()) for column in columns.values()), 1.1)
    for place, (name, column) in enumerate(columns.items()):
        x = np.sort(column)
        share = 100 * np.arange(1, len(x) + 1) / len(x)
        steps = np.concatenate(([1.0], x, [farthest])), np.concatenate(([0.0], share, [100.0]))
        axes.step(*steps, where="post", label=short[name], linewidth=1.2, **line_style(place))
    axes.set_xscale("log")
    axes.set_xlim(1, farthest)
    axes.set_ylim(0, 103)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if farthest < 10 else "")
    axes.set_xlabel(f"{metric.title} / best {metric.title}, at most")
    axes.set_ylabel(f"share of {slices:,} slices (%)")
    plain(axes)
    axes.tick_params(which="minor", labelsize=8)


def profiles(
    grids: Mapping[str, pd.DataFrame], metrics: Mapping[str, Metric]
) -> dict[str, Drawing]:
    """Return the performance profiles of some metrics by name, ``profile-METRIC``.

    Of more than four schedulers they have the first, and the three others that are nearest to the
    best on geometric mean.

    Parameters
    ----------
    grids : metric -> a row a slice, a column a scheduler.
    metrics : those metrics.

    Raises
    ------
    HpcgymError : as :func:`ratios_to_best`.
    """
    return {
        f"profile-{name}": on_axes(
            partial(_few, ratios_to_best(grid, metrics[name]), grid, metrics[name])
        )
        for name, grid in grids.items()
    }


def _few(ratios: Floats, grid: pd.DataFrame, metric: Metric, axes: Axes) -> None:
    """Draw the profiles of the best schedulers, with their names beside the curves."""
    columns = dict(zip(map(str, grid.columns), ratios.T, strict=True))
    losses = {name: float(np.log(column).mean()) for name, column in columns.items()}
    shown, note = best_of(columns, losses)
    _curves(axes, shown, metric, len(ratios))
    label_lines(axes, note)
