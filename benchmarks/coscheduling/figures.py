"""The pictures of the study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.coscheduling.plans import ALIKE, IN_USE
from hpcgym.benchmarks.coscheduling.published import IMPROVEMENTS
from hpcgym.benchmarks.coscheduling.readings import MAIN
from hpcgym.benchmarks.coscheduling.runs import MEASURED, REFERENCE
from hpcgym.benchmarks.coscheduling.tables import (
    COSCHEDULERS,
    SHARING,
    SIMPLE,
    Outcomes,
    by_set,
    over_heatmaps,
    pooled,
)
from hpcgym.report.canvas import BLACK, DARK_GREY, line_style, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GAIN = "makespan improvement over EASY (%)"
_USED = "cores in use until the queue is empty (share)"


def draw_pairs(outcomes: Outcomes) -> Figure:
    """Draw improvements by mean speedup, of pairs and of a run's jobs, under the main reading."""
    figure = new_figure(10, 4.6)
    left, right = figure.subplots(1, 2, sharey=True)
    for name in SHARING:
        gains = over_heatmaps(outcomes, MAIN, name, "improvement")
        left.plot(list(gains), [of.mean() for of in gains.values()], label=name, **_style(name))
    speedups = over_heatmaps(outcomes, MAIN, SIMPLE, "job_speedup")
    gains = over_heatmaps(outcomes, MAIN, SIMPLE, "improvement")
    x, y = (np.concatenate(list(of.values())) for of in (speedups, gains))
    right.plot(x, y, ".", markersize=3, label=f"{SIMPLE}, a heatmap each", color=DARK_GREY)
    for axes in (left, right):
        axes.plot(
            list(IMPROVEMENTS), list(IMPROVEMENTS.values()), "D", color=BLACK, label="published"
        )
        plain(axes, grid="both")
    left.set_ylabel(_GAIN)
    left.set_xlabel("mean speedup of all pairs")
    right.set_xlabel("mean speedup of the jobs of a run")
    _finish(figure, left, right, heading="500 jobs of 256 processes on 100 nodes of 48 cores")
    return figure


def draw_mixes(outcomes: Outcomes) -> Figure:
    """Draw improvements and utilisations by mix of process counts."""
    figure = new_figure(13, 4.6)
    panels = figure.subplots(1, 4)
    mixes = list(dict.fromkeys(task["mix"] for task, _ in outcomes))
    drawn = (
        ("improvement", MEASURED, SHARING, _GAIN),
        ("improvement", IN_USE, SHARING, f"the same, {IN_USE} (%)"),
        ("improvement", ALIKE, SHARING, f"the same, {ALIKE} (%)"),
        ("utilisation", MEASURED, [REFERENCE, *SHARING], _USED),
    )
    for axes, (what, kind, names, label) in zip(panels, drawn, strict=True):
        for name in names:
            means = [_of_mix(outcomes, mix, kind, name, what) for mix in mixes]
            axes.plot(range(len(mixes)), means, label=name, **_style(name))
        axes.set_xticks(range(len(mixes)), [mix.replace("+", "\n+") for mix in mixes])
        axes.set_ylabel(label)
        axes.set_xlabel("processes of jobs")
        plain(axes)
    low = min(axes.get_ylim()[0] for axes in panels[:-1])
    high = max(axes.get_ylim()[1] for axes in panels[:-1])
    for axes in panels[:-1]:
        axes.set_ylim(low, high)
    _finish(figure, panels[-1], heading="Mixes of process counts, 200 nodes of 20 cores")
    return figure


def _of_mix(outcomes: Outcomes, mix: str, kind: str, name: str, what: str) -> float:
    of = [out for task, out in outcomes if (task["mix"], task["kind"]) == (mix, kind)]
    return float(np.nanmean(pooled(of, name, what)))


def draw_shuffles(outcomes: Outcomes) -> Figure:
    """Draw improvements against job speedups and utilisations: a point for each shuffle."""
    sets = by_set(outcomes)
    figure = new_figure(10, 1.2 + 3.8 * len(sets))
    rows = figure.subplots(len(sets), 2, sharey="row", squeeze=False)
    for (codes, of), line in zip(sets.items(), rows, strict=True):
        for axes, what in zip(line, ("job_speedup", "utilisation"), strict=True):
            for name in SHARING:
                gain = pooled(of, name, "improvement")
                style = _style(name)
                marker = "o" if style["linestyle"] == "-" else "x"
                axes.scatter(
                    pooled(of, name, what),
                    gain,
                    s=7,
                    color=style["color"],
                    marker=marker,
                    linewidth=0.7,
                    label=name,
                )
            plain(axes, grid="both")
        line[0].set_ylabel(f"{_GAIN}\n{codes}")
        line[0].set_xlabel("mean speedup of jobs")
        line[1].set_xlabel(_USED)
    _finish(figure, rows[0][0], heading="Shuffles of measured codes, 200 nodes of 20 cores")
    return figure


def _style(name: str) -> dict[str, Any]:
    """Return how a scheduler is drawn, EASY dotted."""
    if name == REFERENCE:
        return {"color": BLACK, "linestyle": ":", "linewidth": 1.6}
    return line_style(COSCHEDULERS.index(name)) | {"linewidth": 1.2}


def _finish(figure: Figure, *drawn: Axes, heading: str) -> None:
    """Write the heading and, below all, a legend of what some axes have."""
    figure.suptitle(heading, x=0.01, horizontalalignment="left", fontsize=10, fontweight="bold")
    found: dict[str, Any] = {}
    for axes in drawn:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=6,
        fontsize=8,
        frameon=False,
    )
