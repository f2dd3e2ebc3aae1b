"""Pictures of distributions: of waits and slowdowns, and of speeds beside other jobs."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.report import canvas
from hpcgym.report.tables import Results, drawable
from hpcgym.words import counted, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.machine.speedups.heatmap import Heatmap
    from hpcgym.schedule.result import Result


# --- Picture of how the bounded slowdown is distributed over the jobs -----------------------------


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
    parts, axes, note = canvas.begun(results, axes, 6, 4)
    bsld_on(axes, parts, note)
    bsld_legend(axes, axes)
    return axes


def bsld_on(axes: Axes, parts: Mapping[str, Result], note: str = "") -> None:
    """Draw the curves without a legend; see :func:`draw_bsld`."""
    _scale(axes, parts)
    for place, (name, result) in enumerate(parts.items()):
        slowdown = result.bsld[result.decided]
        mean = float(slowdown.mean())
        style: dict[str, Any] = canvas.line_style(place)
        label = textwrap.fill(f"{name}: mean {shown(mean)}", 40)
        axes.ecdf(slowdown, complementary=True, compress=True, label=label, linewidth=1.2, **style)
        axes.plot(
            [mean], [(slowdown > mean).mean()], "o", color=style["color"], markersize=6, zorder=3
        )
    if not any(result.wait.any() for result in parts.values()):
        axes.text(0.5, 0.5, "no job waits", transform=axes.transAxes, ha="center", fontsize=9)
    canvas.title(axes, "Bounded slowdown", note)


def bsld_legend(axes: Axes, curves: Axes) -> None:
    """Put the legend of the axes ``curves`` into ``axes``, the same or others beside them."""
    beside = axes is not curves
    axes.legend(
        *curves.get_legend_handles_labels(), fontsize=8, title="dots mark the means",
        title_fontsize=8, alignment="left", loc="upper left" if beside else "best",
        frameon=not beside, borderaxespad=0 if beside else 0.5,
    )  # fmt: skip


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
    canvas.plain(axes, grid="both")


# --- A picture of a heatmap: how fast each code runs beside each other one ------------------------

_MOST_NUMBERS = 40  # codes; with more the cells are too small for numbers
_INCHES_A_CODE, _LEAST_CODES = 0.27, 17  # with fewer the cells are larger
_INCHES_A_LETTER = 0.06  # of 7 points
_NUMBER_INCHES = 0.2  # cells that are narrower have none
_LEAST_SPAN = 0.01  # of the colours, about 1


def draw_speedups(heatmap: Heatmap, axes: Axes | None = None) -> Axes:
    """Draw the speedup of each code, row by row, beside each other one, column by column.

    Blue codes run faster than on whole nodes, orange ones slower; pairs that were not measured are
    grey.

    Parameters
    ----------
    heatmap : of any number of codes; up to 40 have their numbers in the cells.
    axes : where to draw; without it a new figure that has room for the names.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.
    """
    side = _INCHES_A_CODE * min(max(len(heatmap), _LEAST_CODES), _MOST_NUMBERS)
    room = _INCHES_A_LETTER * max(map(len, heatmap.codes))
    axes = canvas.axes_or_new(axes, width=side + room + 1.5, height=side + room + 0.8)
    from matplotlib.colors import CenteredNorm, LinearSegmentedColormap

    speedup, shades = heatmap.speedup, [canvas.VERMILLION, "#FFFFFF", canvas.BLUE]
    known = np.argwhere(~np.isnan(speedup)).tolist()
    span = max([_LEAST_SPAN, *(abs(speedup[row, column] - 1) for row, column in known)])
    colours = LinearSegmentedColormap.from_list("speedups", shades).with_extremes(
        bad=canvas.LIGHT_GREY
    )
    cells = axes.imshow(speedup, cmap=colours, norm=CenteredNorm(1, span))
    wide = canvas.figure_of(axes).get_figwidth()
    if len(heatmap) <= _MOST_NUMBERS and (wide - room - 1) / len(heatmap) > _NUMBER_INCHES:
        size = min(5.5 * max(_LEAST_CODES / len(heatmap), 1), 9)
        for row, column in known:
            value = speedup[row, column]
            colour = "white" if abs(value - 1) > 0.6 * span else canvas.BLACK
            text = f"{value:.2f}"
            axes.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)
    step = -(-len(heatmap) // (2 * _MOST_NUMBERS))  # of very many only some have names
    places = range(0, len(heatmap), step)
    axes.set_xticks(places, heatmap.codes[::step], rotation=90)
    axes.set_yticks(places, heatmap.codes[::step])
    axes.tick_params(labelsize=7 if step == 1 else 6, length=0)
    axes.set_xlabel("beside", fontsize=9)
    axes.set_ylabel("speedup of", fontsize=9)
    bar = canvas.figure_of(axes).colorbar(cells, ax=axes, fraction=0.04, pad=0.02)
    bar.ax.tick_params(labelsize=8)
    if wide >= _WIDE_INCHES:
        bar.set_label("compact run time / run time side by side", fontsize=9)
    note = f"{Path(heatmap.source).name} · {len(heatmap)} codes"
    if heatmap.unknown:
        note += f" · {heatmap.unknown} of {speedup.size} pairs not measured (grey)"
    mean = f": mean {heatmap.mean_speedup:.3f}" if known else ""
    canvas.title(axes, f"Speedups side by side{mean}", note if wide >= _WIDE_INCHES else "")
    return axes


# --- Pictures of how much faster or slower jobs run beside others ---------------------------------

#: So many codes have boxes, those with most jobs.
MOST_CODES = 40
_ROW_INCHES, _FRAME_INCHES = 0.24, 1.3
_WIDE_INCHES = 6  # narrower figures have no room for words beside boxes

Groups = dict[str, NDArray[np.float64]]


def draw_job_speedups(results: Results, axes: Axes | None = None) -> Axes:
    """Draw how the speedups of jobs are distributed: of one result by code, else by scheduler.

    The speedup of a job is its run time compact over that which it took (ELiSE,
    "AppSpeedup"). Boxes go from quartile to quartile, with a line at the median and a dot at the
    mean; whiskers from the 5th to the 95th percentile.

    Parameters
    ----------
    results : a result, or scheduler name -> result, of which one at least has speedups of jobs.
    axes : where to draw; without it a new figure, with a note of what it shows.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.

    Raises
    ------
    HpcgymError : no result in which jobs share nodes; matplotlib is not installed.
    """
    shared = _with_speedups(results)
    groups, left_out = _groups(shared)
    parts, axes, note = canvas.begun(shared, axes, 8, boxes_inches(shared))
    _draw_boxes(axes, groups)
    by = "code" if len(parts) == 1 else "scheduler"
    heading = f"Job speedups by {by}"
    canvas.title(axes, f"{heading}, {left_out} codes left out" if left_out else heading, note)
    return axes


def boxes_inches(parts: Mapping[str, Result]) -> float:
    """Return the height of a picture with all boxes of such results."""
    return _ROW_INCHES * max(len(_groups(parts)[0]), 3) + _FRAME_INCHES


def has_speedups(parts: Mapping[str, Result]) -> bool:
    """Return whether any of the results has speedups of jobs."""
    return any(result.coschedule is not None for result in parts.values())


def _with_speedups(results: Results) -> dict[str, Result]:
    """Return results by name, of which one at least has speedups of jobs."""
    parts = drawable(results)
    if not has_speedups(parts):
        raise HpcgymError("there are no speedups of jobs: simulate with speedups=")
    return parts


def _groups(parts: Mapping[str, Result]) -> tuple[Groups, int]:
    """Return job speedups by what a box is of, and how many codes have none for want of room."""
    if len(parts) > 1:
        return {name: part.job_speedup[part.decided] for name, part in parts.items()}, 0
    (result,) = parts.values()
    run = result.coschedule
    assert run is not None
    jobs = np.bincount(run.code, minlength=len(run.speedups.codes))
    most = np.argsort(-jobs, kind="stable")[: min(MOST_CODES, int(np.count_nonzero(jobs)))]
    groups = {run.speedups.codes[code]: result.job_speedup[run.code == code] for code in most}
    by_median = sorted(groups, key=lambda code: -float(np.median(groups[code])))
    return {code: groups[code] for code in by_median}, int(np.count_nonzero(jobs)) - len(most)


def _draw_boxes(axes: Axes, groups: Groups) -> None:
    """Draw a box for each group, the first on top."""
    grey = canvas.DARK_GREY
    line: dict[str, Any] = {"color": grey, "linewidth": 0.9}
    dot = {"marker": "o", "markerfacecolor": canvas.VERMILLION, "markeredgecolor": "white"}
    axes.boxplot(
        list(groups.values()), positions=range(len(groups)), orientation="horizontal",
        whis=(5, 95), showfliers=False, showmeans=True, patch_artist=True, widths=0.6,
        boxprops={"facecolor": canvas.SKY_BLUE, "edgecolor": grey, "linewidth": 0.9},
        medianprops={"color": canvas.BLACK, "linewidth": 1.4},
        meanprops={**dot, "markersize": 5}, whiskerprops=line, capprops=line, manage_ticks=False,
    )  # fmt: skip
    axes.axvline(1, color=canvas.BLACK, linewidth=0.8, linestyle=":", zorder=0.9)
    _name_rows(axes, list(groups))
    axes.set_xlabel("job speedup")
    if canvas.figure_of(axes).get_figwidth() >= _WIDE_INCHES:
        axes.set_xlabel("job speedup: run time compact / run time")
        right = axes.secondary_yaxis("right")
        right.set_yticks(range(len(groups)), [_in_words(values) for values in groups.values()])
        right.tick_params(length=0, labelsize=8, labelcolor=canvas.DARK_GREY)
        right.spines.right.set_visible(False)
    canvas.plain(axes, grid="x")
    axes.tick_params(left=False)


def _name_rows(axes: Axes, names: list[str]) -> None:
    """Put names at the left of rows, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    across = axes.get_yaxis_transform()
    axes.hlines(
        np.arange(1, len(names)) - 0.5, 0, 1, canvas.LIGHT_GREY, linewidth=0.5, transform=across
    )


def _in_words(speedups: NDArray[np.float64]) -> str:
    """Return the mean of job speedups, which share of them is slowed down, and their number."""
    slowed = 100 * float((speedups < 1 - 1e-9).mean())
    number = counted(len(speedups), "job")
    return f"mean {speedups.mean():.3f} · {slowed:.0f} % slowed · {number}"
