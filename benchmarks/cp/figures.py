"""The documents' figures: boxes of slowdowns, queues and waits, ratios by instance, and growth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.cp.campaign import Findings
from hpcgym.benchmarks.cp.configurations import DURATIONS, Run
from hpcgym.benchmarks.cp.published import VARIABLES_BELOW
from hpcgym.benchmarks.cp.shapes import CLASSES, box
from hpcgym.benchmarks.cp.tables import number, ratios
from hpcgym.benchmarks.studies.pictures import log_ticks
from hpcgym.report.canvas import (
    BLUE,
    DARK_GREY,
    GREEN,
    LIGHT_GREY,
    ORANGE,
    VERMILLION,
    legend_above,
    line_style,
    new_figure,
    plain,
    title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = dict(zip(DURATIONS, (VERMILLION, BLUE, ORANGE, GREEN), strict=True))
_WIDTH = 0.25  # inches of a box
_NOTE = "low, quartiles, median and high; triangles: means"


def draw_slowdowns(found: Findings) -> Figure:
    """Figures 5.1, 5.5 and 5.9: slowdowns of the jobs that waited."""
    heading = "Slowdown of the jobs that waited"
    return _alone(found, heading, "slowdown", lambda of: of["shapes"]["all"]["slowed"], "log")


def draw_classes(found: Findings) -> Figure:
    """Figures 5.2 and 5.6: the same for short, medium and long jobs."""
    names = classes_of(found)
    figure = new_figure(_wide(found), 1.5 + 2.5 * len(names))
    axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    for one, name in zip(axes, names, strict=True):
        _boxes(one, found, lambda of, name=name: of["shapes"][name]["slowed"])  # type: ignore[misc]
        one.set_yscale("log")
        one.set_ylabel(f"slowdown, {name}")
        plain(one)
    heading = f"Slowdown by class of jobs, of those that waited: {found.machine}"
    title(axes[0], heading, _NOTE, legend_rows=_legend(axes[0], found))
    return figure


def classes_of(found: Findings) -> list[str]:
    """Return the classes of which some job waited in some run; one panel, empty, if none did."""
    shapes = [outcome["shapes"] for outcome in found.outcomes.values()]
    names = [name for name in CLASSES if name != "all"]
    some = [name for name in names if any(of[name]["slowed"]["number"] for of in shapes)]
    return some or names[:1]


def draw_queues(found: Findings) -> Figure:
    """Figures 5.3, 5.7 and 5.10: jobs that wait after each pass."""
    figure = _alone(found, "Queue", "jobs that wait", _queue, "symlog")
    figure.axes[0].set_ylim(bottom=0)
    return figure


def _queue(of: Mapping[str, Any]) -> Any:
    """Return the box of a run's queue, that of no values where nobody waits after any pass."""
    queue = of["queues"]["queue"]
    return queue if queue["number"] and queue["high"] > 0 else box([])


def draw_waits(found: Findings) -> Figure:
    """Figures 5.4, 5.8 and 5.11: waits, and the trend of their average over all jobs."""
    figure = new_figure(_wide(found), 7)
    boxes, trend = figure.subplots(2, 1, sharex=True)
    _boxes(boxes, found, lambda of: of["shapes"]["all"]["waited"])
    boxes.set_yscale("log")
    boxes.set_ylabel("wait of those that waited (s)")
    heading = f"Waiting times: {found.machine}"
    title(boxes, heading, _NOTE, legend_rows=_legend(boxes, found))
    means = [number(of["shapes"]["all"]["wait"]["mean"]) for of in found.outcomes.values()]
    trend.plot(range(len(means)), means, "o-", color=DARK_GREY, markersize=4, linewidth=1)
    trend.set_ylim(bottom=0)
    trend.set_ylabel("average wait (s)")
    trend.tick_params(axis="x", rotation=90)  # the shared axis hands on names, not their rotation
    for axes in (boxes, trend):
        plain(axes)
    return figure


def _alone(
    found: Findings, what: str, label: str, of: Callable[[Mapping[str, Any]], Any], scale: str
) -> Figure:
    """Return a figure of one row of boxes."""
    figure = new_figure(_wide(found), 4.4)
    axes = figure.add_subplot()
    _boxes(axes, found, of)
    axes.set_yscale(scale)
    axes.set_ylabel(label)
    plain(axes)
    title(axes, f"{what}: {found.machine}", _NOTE, legend_rows=_legend(axes, found))
    return figure


def _legend(axes: Axes, found: Findings) -> int:
    """Say which colour is which durations; return the legend's rows."""
    from matplotlib.patches import Patch

    letters = [name for name in DURATIONS if any(run.duration == name for run in found.outcomes)]
    names = [f"{letter}: {_MEANS[letter]}" for letter in letters]
    colours = [_COLOURS[letter] for letter in letters]
    handles = [Patch(color=colour, alpha=0.7) for colour in colours]
    return legend_above(axes, names, handles=handles, labels=names)


_MEANS = {"W": "requested", "D": "data-driven", "L2": "last two of the user", "R": "real run time"}


def _wide(found: Findings) -> float:
    return max(6.0, 1.5 + _WIDTH * len(found.outcomes))


def _boxes(axes: Axes, found: Findings, of: Callable[[Mapping[str, Any]], Any]) -> None:
    """Draw a box for each run, coloured by its durations."""
    runs = list(found.outcomes)
    places, drawn = [], []
    for place, run in enumerate(runs):
        part = of(found.outcomes[run])
        if part["number"]:
            places.append(place)
            drawn.append(
                {
                    "whislo": part["low"],
                    "q1": part["q1"],
                    "med": part["median"],
                    "q3": part["q3"],
                    "whishi": part["high"],
                    "mean": part["mean"],
                }
            )
    if drawn:
        made = axes.bxp(
            drawn, positions=places, widths=0.6, showfliers=False, showmeans=True,
            patch_artist=True, medianprops={"color": "black"}, meanprops=_MEAN,
            manage_ticks=False,
        )  # fmt: skip
        for place, patch in zip(places, made["boxes"], strict=True):
            patch.set_facecolor(_COLOURS[runs[place].duration])
            patch.set_alpha(0.7)
    else:
        axes.text(0.5, 0.5, "no job waits", transform=axes.transAxes, ha="center", fontsize=9)
        axes.tick_params(axis="y", which="both", left=False, labelleft=False)
    axes.set_xlim(-0.7, len(runs) - 0.3)
    axes.set_xticks(range(len(runs)), [str(run) for run in runs], rotation=90)


_MEAN = {"marker": "^", "markerfacecolor": "black", "markeredgecolor": "white", "markersize": 5}


def draw_means(found: Findings) -> Figure:
    """Figures 4 and 5 of Galleguillos 2020, of all runs: means and one standard deviation."""
    runs = list(found.outcomes)
    figure = new_figure(_wide(found), 7)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, measure, label in zip(panels, ("slowdown", "wait"), ("", " (s)"), strict=True):
        of_all = [found.outcomes[run]["shapes"]["all"][measure] for run in runs]
        parts = [[number(one[name]) for one in of_all] for name in ("mean", "std", "low")]
        mean, std, low = np.array(parts)
        # no job is below the least, and a deviation of a long tail may be
        errors = np.array([np.fmin(std, mean - low), std])
        axes.errorbar(range(len(runs)), mean, errors, fmt="o", color=BLUE, capsize=3)
        axes.set_ylabel(f"average {measure}{label}")
        plain(axes)
    panels[1].set_xticks(range(len(runs)), [str(run) for run in runs], rotation=90)
    note = "bars: one standard deviation, but not below the least value"
    title(panels[0], f"Slowdown and wait of all jobs: {found.machine}", note)
    return figure


def draw_ratios(found: Findings) -> Figure:
    """Figures 6 and 7 of Galleguillos et al. 2020: PCP'20 to PCP'19 on each instance."""
    figure = new_figure(8, 3.8)
    panels = (("variables", "number of variables"), ("seconds", "time of a dispatch"))
    for axes, (what, label) in zip(figure.subplots(1, 2), panels, strict=True):
        for place, (run, outcome) in enumerate(found.instances.items()):
            ratio = ratios(outcome[what])
            style = {"markersize": 4, "alpha": 0.7, "color": line_style(place)["color"]}
            axes.plot(np.arange(1, ratio.size + 1), ratio, "o", label=str(run), **style)
        axes.axhline(VARIABLES_BELOW if what == "variables" else 1, color=DARK_GREY, linewidth=0.8)
        axes.set_yscale("log")
        log_ticks(axes.yaxis)
        axes.set_xlabel("instance")
        axes.set_ylabel(f"ratio: {label}")
        plain(axes)
        rows = legend_above(axes, [str(run) for run in found.instances])
        title(axes, f"PCP'20 to PCP'19: {label}", found.machine, legend_rows=rows)
    return figure


def draw_by_queue(found: Findings) -> Figure:
    """How the time of a dispatch grows with the number of queued jobs."""
    runs = {run: of["by_queue"] for run, of in found.outcomes.items() if of.get("solved")}
    last: dict[str, tuple[Run, Any]] = {run.dispatcher: (run, of) for run, of in runs.items()}
    lines = {
        str(run): ([row["queued"] for row in of], [row["mean_ms"] for row in of])
        for run, of in last.values()
    }
    return _lines(lines, f"Time of a dispatch: {found.machine}", "queued jobs, from")


def draw_by_nodes(grown: Sequence[Mapping[str, Any]]) -> Figure:
    """How it grows with the number of nodes, the queue the same."""
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for row in grown:
        x, y = lines.setdefault(str(row["dispatcher"]), ([], []))
        x.append(row["nodes"])
        y.append(row["ms"])
    return _lines(lines, "Time of a dispatch by size of the machine", "nodes")


def _lines(lines: Mapping[str, tuple[Any, Any]], heading: str, label: str) -> Figure:
    """Return a figure of times [ms] on logarithmic axes."""
    figure = new_figure(6.5, 4.2)
    axes = figure.add_subplot()
    for place, (name, (x, y)) in enumerate(lines.items()):
        axes.plot(x, y, marker="o", markersize=4, label=name, **line_style(place))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(label)
    axes.set_ylabel("mean time of a dispatch (ms)")
    axes.grid(visible=True, color=LIGHT_GREY, linewidth=0.6)
    plain(axes, None)
    rows = legend_above(axes, list(lines)) if lines else 0
    title(axes, heading, "", legend_rows=rows)
    return figure
