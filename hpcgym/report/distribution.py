"""Picture of how the bounded slowdown is distributed over the jobs, by scheduler."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.report.canvas import axes_or_new, line_style, plain, title
from hpcgym.report.labels import Results, drawable, subtitle
from hpcgym.report.numbers import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.schedule.result import Result

#: Points of a curve, spread over the logarithm of the slowdown.
POINTS = 500


def draw_bsld(results: Results, axes: Axes | None = None) -> Axes:
    """Draw the share of jobs whose bounded slowdown is above x, one curve a scheduler.

    Both axes are logarithmic: most jobs do not wait, and the few that wait for long make the mean,
    which a dot on each curve marks. A curve further left or lower is better throughout.

    Parameters
    ----------
    results : a result, or scheduler name -> result.
    axes : where to draw; without it a new figure, with a note of what it shows.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.
    """
    parts = drawable(results)
    note = "" if axes else subtitle(parts)
    axes = bsld_on(axes_or_new(axes, 6, 4), parts, note)
    bsld_legend(axes, axes)
    return axes


def bsld_on(axes: Axes, parts: Mapping[str, Result], note: str = "") -> Axes:
    """Draw the curves without a legend; see :func:`draw_bsld`."""
    _scale(axes, parts)
    for place, (name, result) in enumerate(parts.items()):
        slowdown = np.sort(result.bsld[result.decided])
        x, share = _shares_above(slowdown)
        mean = float(slowdown.mean())
        style: dict[str, Any] = line_style(place)
        label = textwrap.fill(f"{name}: mean {shown(mean)}", 40)
        axes.step(x, share, where="post", label=label, linewidth=1.2, **style)
        at_mean = _share_above(slowdown, np.array([mean]))
        axes.plot([mean], at_mean, "o", color=style["color"], markersize=6, zorder=3)
    if not any(result.wait.any() for result in parts.values()):
        axes.text(0.5, 0.5, "no job waits", transform=axes.transAxes, ha="center", fontsize=9)
    title(axes, "Bounded slowdown", note)
    return axes


def bsld_legend(axes: Axes, curves: Axes) -> None:
    """Put the legend of the axes ``curves`` into ``axes``, the same or others beside them."""
    handles, names = curves.get_legend_handles_labels()
    axes.legend(
        handles,
        names,
        fontsize=8,
        title="dots mark the means",
        title_fontsize=8,
        alignment="left",
        loc="best" if axes is curves else "upper left",
        frameon=axes is curves,
        borderaxespad=0.5 if axes is curves else 0,
    )


def _scale(axes: Axes, parts: Mapping[str, Result]) -> None:
    """Make both axes logarithmic, with room for all curves and with numbers written out."""
    greatest = max(10.0, *(float(result.metrics["max_bsld"]) for result in parts.values()))
    least_share = min(0.1, *(1 / max(len(result.wait), 1) for result in parts.values()))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, greatest * 1.1)
    axes.set_ylim(least_share * 0.8, 1.2)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    axes.yaxis.set_minor_formatter("")
    axes.set_xlabel("bounded slowdown x")
    axes.set_ylabel("share of jobs above x")
    plain(axes, grid="both")


def _shares_above(slowdown: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the curve: every step if there are few jobs, else enough of them."""
    x = np.unique(slowdown)
    if x.size > POINTS:
        x = np.geomspace(1, slowdown[-1], POINTS)
        x[-1] = slowdown[-1]
    x = np.concatenate(([1.0], x))
    return x, _share_above(slowdown, x)


def _share_above(slowdown: NDArray[np.float64], x: NDArray[Any]) -> NDArray[Any]:
    """Return the share of jobs above each ``x``."""
    return 1 - np.searchsorted(slowdown, x, side="right") / slowdown.size
