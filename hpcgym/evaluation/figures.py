"""Figures for papers of values on slices: performance profiles, critical differences."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from hpcgym.evaluation.intervals import FEWEST
from hpcgym.evaluation.profiles import draw_profiles
from hpcgym.evaluation.ranks import LEAST_SCHEDULERS, draw_ranks, inches_of
from hpcgym.report.figures import bare_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from hpcgym.schedule.metrics import Metric


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
    HpcgymError : as :func:`~hpcgym.evaluation.draw_profiles`, or a width that figures cannot have.
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
