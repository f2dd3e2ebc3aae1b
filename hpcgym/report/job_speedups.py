"""Pictures of how much faster or slower jobs run beside others: by code and by scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.report.canvas import (
    BLACK,
    DARK_GREY,
    LIGHT_GREY,
    SKY_BLUE,
    VERMILLION,
    axes_or_new,
    figure_of,
    legend_above,
    plain,
    title,
)
from hpcgym.report.labels import Results, drawable, subtitle
from hpcgym.report.palettes import SPEEDUP_COLOURS, SPEEDUP_NAMES, speedup_classes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.schedule.result import Result

#: So many codes have boxes, those with most jobs.
MOST_CODES = 40
_ROW_INCHES, _FRAME_INCHES = 0.24, 1.3
_INCHES_A_LETTER, _MOST_ROOM = 0.07, 0.6  # of 8 points; as share of the axis
_SLOWED = 3  # classes of speedups below 1

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
    parts = _with_speedups(results)
    groups, left_out = _groups(parts)
    note = "" if axes else subtitle(parts)
    axes = axes_or_new(axes, 8, boxes_inches(parts))
    _draw_boxes(axes, groups)
    by = "code" if len(parts) == 1 else "scheduler"
    heading = f"Job speedups by {by}"
    title(axes, f"{heading}, {left_out} codes left out" if left_out else heading, note)
    return axes


def draw_slowed(results: Results, axes: Axes | None = None) -> Axes:
    """Draw which share of the jobs is slowed down, and which sped up, a bar a scheduler.

    Parameters and what is raised are those of :func:`draw_job_speedups`.
    """
    parts = _with_speedups(results)
    note = "" if axes else subtitle(parts)
    axes = axes_or_new(axes, 8, _ROW_INCHES * max(len(parts), 3) + _FRAME_INCHES)
    counts = np.array(
        [
            np.bincount(speedup_classes(result)[result.decided], minlength=len(SPEEDUP_NAMES))
            for result in parts.values()
        ]
    )
    percent = 100 * counts / counts.sum(axis=1, keepdims=True)
    below = np.cumsum(percent, axis=1) - percent
    for place in np.flatnonzero(counts.any(axis=0)).tolist():
        axes.barh(
            np.arange(len(parts)),
            percent[:, place],
            left=below[:, place],
            color=SPEEDUP_COLOURS[place],
            label=SPEEDUP_NAMES[place],
        )
    _name_rows(axes, list(parts))
    slowed = percent[:, :_SLOWED].sum(axis=1)
    axes.set_xlim(0, 100)
    _write_right(axes, [f"{part:.0f} % slowed" for part in slowed])
    axes.set_xlabel("jobs (%)")
    plain(axes, grid=None)
    axes.tick_params(left=False)
    _, names = axes.get_legend_handles_labels()
    rows = legend_above(axes, names, inches=_inches(axes))
    title(axes, "Jobs by their speedups", note, rows)
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
    line: dict[str, Any] = {"color": DARK_GREY, "linewidth": 0.9}
    axes.boxplot(
        list(groups.values()),
        positions=range(len(groups)),
        orientation="horizontal",
        whis=(5, 95),
        showfliers=False,
        showmeans=True,
        patch_artist=True,
        widths=0.6,
        boxprops={"facecolor": SKY_BLUE, "edgecolor": DARK_GREY, "linewidth": 0.9},
        medianprops={"color": BLACK, "linewidth": 1.4},
        meanprops={
            "marker": "o",
            "markerfacecolor": VERMILLION,
            "markeredgecolor": "white",
            "markersize": 5,
        },
        whiskerprops=line,
        capprops=line,
        manage_ticks=False,
    )
    axes.axvline(1, color=BLACK, linewidth=0.8, linestyle=":", zorder=0.9)
    _name_rows(axes, list(groups))
    _write_right(axes, [_in_words(values) for values in groups.values()])
    axes.set_xlabel("job speedup: run time compact / run time")
    plain(axes, grid="x")
    axes.tick_params(left=False)


def _name_rows(axes: Axes, names: list[str]) -> None:
    """Put names at the left of rows, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    across = axes.get_yaxis_transform()
    axes.hlines(np.arange(1, len(names)) - 0.5, 0, 1, LIGHT_GREY, linewidth=0.5, transform=across)


def _in_words(speedups: NDArray[np.float64]) -> str:
    """Return the mean of job speedups, which share of them is slowed down, and their number."""
    slowed = 100 * float((speedups < 1 - 1e-9).mean())
    number = f"{len(speedups):,} job{'' if len(speedups) == 1 else 's'}"
    return f"mean {speedups.mean():.3f} · {slowed:.0f} % slowed · {number}"


def _write_right(axes: Axes, texts: list[str]) -> None:
    """Write a text at the right of each row, for which the axis is made longer."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_xlim()
    room = min((max(map(len, texts)) + 1) * _INCHES_A_LETTER / _inches(axes), _MOST_ROOM)
    ticks = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    axes.set_xlim(low, low + (high - low) / (1 - room))
    axes.set_xticks([tick for tick in ticks if low <= tick <= high])
    for row, text in enumerate(texts):
        axes.text(
            1,
            row,
            text,
            transform=axes.get_yaxis_transform(),
            fontsize=8,
            color=DARK_GREY,
            horizontalalignment="right",
            verticalalignment="center",
        )


def _inches(axes: Axes) -> float:
    """Return about how wide axes are."""
    return float(axes.get_position().width * figure_of(axes).get_figwidth())
