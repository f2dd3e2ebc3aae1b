"""A picture of a heatmap: how fast each code runs beside each other one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    LIGHT_GREY,
    VERMILLION,
    axes_or_new,
    figure_of,
    title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.speedups.heatmap import Heatmap

_MOST_NUMBERS = 40  # codes; with more the cells are too small for numbers
_INCHES_A_CODE, _LEAST_CODES = 0.27, 17  # with fewer the cells are larger
_INCHES_A_LETTER = 0.06  # of 7 points
_HATCHES = "#AAAAAA"
_LEAST_SPAN = 0.01  # of the colours, about 1


def draw_speedups(heatmap: Heatmap, axes: Axes | None = None) -> Axes:
    """Draw the speedup of each code, row by row, beside each other one, column by column.

    Blue codes run faster than on whole nodes, orange ones slower; pairs that were not measured are
    hatched.

    Parameters
    ----------
    heatmap : of any number of codes; up to 40 have their numbers in the cells.
    axes : where to draw; without it a new figure that has room for the names.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.
    """
    side = _INCHES_A_CODE * min(max(len(heatmap), _LEAST_CODES), _MOST_NUMBERS)
    names = _INCHES_A_LETTER * max(map(len, heatmap.codes))
    axes = axes_or_new(axes, width=side + names + 1.5, height=side + names + 0.8)
    cells = _draw_cells(axes, heatmap.speedup)
    if len(heatmap) <= _MOST_NUMBERS:
        _write_numbers(axes, heatmap.speedup)
    _name_codes(axes, heatmap.codes)
    _draw_bar(axes, cells, heatmap.speedup)
    note = f"{Path(heatmap.source).name} · {len(heatmap)} codes"
    mean = ""
    if heatmap.unknown:
        note += f" · {heatmap.unknown} of {heatmap.speedup.size} pairs not measured (hatched)"
    if heatmap.unknown < heatmap.speedup.size:
        mean = f": mean {heatmap.mean_speedup:.3f}"
    title(axes, f"Speedups side by side{mean}", note)
    return axes


def _draw_cells(axes: Axes, speedup: NDArray[np.float64]) -> Any:
    """Draw the cells, hatched where unknown; return what colours them."""
    from matplotlib.colors import CenteredNorm, LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    known = speedup[~np.isnan(speedup)]
    span = max(float(np.abs(known - 1).max(initial=0)), _LEAST_SPAN)
    colours = LinearSegmentedColormap.from_list("speedups", [VERMILLION, "#FFFFFF", BLUE])
    size = len(speedup)
    for row, column in np.argwhere(np.isnan(speedup)).tolist():
        axes.add_patch(
            Rectangle(
                (column - 0.5, row - 0.5),
                1,
                1,
                facecolor=LIGHT_GREY,
                edgecolor=_HATCHES,
                hatch="////",
                linewidth=0,
            )
        )
    edges = np.arange(size + 1) - 0.5
    mesh = axes.pcolormesh(
        edges,
        edges,
        np.ma.masked_invalid(speedup),
        cmap=colours,
        norm=CenteredNorm(1, span),
        edgecolors="white",
        linewidth=0.4,
    )
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)  # the first code on top
    axes.set_aspect("equal")
    return mesh


def _write_numbers(axes: Axes, speedup: NDArray[np.float64]) -> None:
    """Write each known speedup into its cell, white on dark colours."""
    known = np.argwhere(~np.isnan(speedup)).tolist()
    size = min(5.5 * max(_LEAST_CODES / len(speedup), 1), 9)
    span = max((abs(speedup[row, column] - 1) for row, column in known), default=0.0)
    for row, column in known:
        value = speedup[row, column]
        axes.text(
            column,
            row,
            f"{value:.2f}",
            ha="center",
            va="center",
            fontsize=size,
            color="white" if abs(value - 1) > 0.6 * span else BLACK,
        )


def _draw_bar(axes: Axes, cells: Any, speedup: NDArray[np.float64]) -> None:
    """Draw what the colours mean, from the least speedup to the greatest."""
    bar = figure_of(axes).colorbar(cells, ax=axes, fraction=0.04, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)
    bar.set_label("compact run time / run time side by side", fontsize=9)
    known = speedup[~np.isnan(speedup)]
    if known.size and known.min() < known.max():
        bar.ax.set_ylim(known.min(), known.max())


def _name_codes(axes: Axes, codes: tuple[str, ...]) -> None:
    """Put the names of the codes beside rows and columns; of very many only some."""
    step = -(-len(codes) // (2 * _MOST_NUMBERS))
    places = range(0, len(codes), step)
    names = [codes[place] for place in places]
    axes.set_xticks(places, names, rotation=90)
    axes.set_yticks(places, names)
    axes.tick_params(labelsize=7 if step == 1 else 6, length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("beside", fontsize=9)
    axes.set_ylabel("speedup of", fontsize=9)
