"""A picture of how long classes of jobs wait, by size or by run time, under several schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import check_choice
from hpcgym.report.canvas import (
    LIGHT_GREY,
    UNITS,
    axes_or_new,
    legend_above,
    line_style,
    plain,
    title,
)
from hpcgym.report.labels import Results, drawable, subtitle
from hpcgym.report.numbers import shown
from hpcgym.report.timeline import UNEQUAL
from hpcgym.schedule.metrics import LENGTH_CLASSES, in_class

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.schedule.result import Result

#: What jobs may be classed by -> what the axis says.
CLASSES = {"size": "processors of the job", "length": "run time of the job"}
_LENGTHS = {"short": "< 10 min", "medium": "10 min to 2 h", "long": "≥ 2 h"}
_SHORT = {"days": "d", "hours": "h", "minutes": "min", "seconds": "s"}
#: As many as have no divisor in common with the colours: 56 schedulers differ.
_MARKERS = "osD^vPX*"
_APART = 0.6  # of the room of a class, in which schedulers stand side by side


def draw_class_waits(results: Results, by: str = "size", axes: Axes | None = None) -> Axes:
    """Draw the mean wait of classes of jobs, a mark a scheduler.

    Parameters
    ----------
    results : a result, a sequence of them, or scheduler name -> result.
    by : "size", classes of processors that double: 1, 2, 3 to 4, ... up to the machine's; or
        "length", classes of run times: below 10 min, below 2 h, the rest. Classes without jobs are
        left out.
    axes : where to draw; without it a new figure, with a note of what it shows.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.

    Raises
    ------
    HpcgymError : another class, or no jobs; matplotlib is not installed.
    """
    check_choice("by", by, CLASSES)
    parts = drawable(results)
    note = "" if axes else subtitle(parts)
    most = max(part.workload.processors for part in parts.values())
    every = {
        one: {name: _mean_waits(part, one, most) for name, part in parts.items()} for one in CLASSES
    }
    found = every[by]
    names = _in_order(found, by)
    means = {name: float(result.metrics["mean_wait_s"]) for name, result in parts.items()}
    unequal = max(means.values()) > UNEQUAL * min(means.values()) > 0
    # both pictures have the same unit
    longest = max(max(waits.values()) for of in every.values() for waits in of.values())
    told = min(means.values()) if unequal else longest
    unit_s, unit = next((u for u in UNITS if told >= 2 * u[0]), UNITS[-1])
    axes = axes_or_new(axes, 6, 4)
    for place, (name, waits) in enumerate(found.items()):
        heights = [waits.get(one, np.nan) / unit_s for one in names]
        mean = f"mean {shown(means[name] / unit_s)} {_SHORT[unit]}"
        style: dict[str, Any] = {
            "color": line_style(place)["color"],
            "marker": _MARKERS[place % len(_MARKERS)],
            "linestyle": "none",  # there is nothing between classes
        }
        beside = _APART * ((place + 0.5) / len(found) - 0.5)
        x = np.arange(len(names)) + beside
        axes.plot(x, heights, label=f"{name}: {mean}", markersize=5, **style)
    edges = np.arange(len(names) - 1) + 0.5
    high = axes.get_xaxis_transform()
    axes.vlines(edges, 0, 1, LIGHT_GREY, linewidth=0.6, zorder=0, transform=high)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks(range(len(names)), [_text(one, by) for one in names])
    if sum(len(_text(one, by)) + 2 for one in names) > 40:
        axes.tick_params(axis="x", rotation=45)
    axes.set_xlabel(CLASSES[by])
    axes.set_ylabel(f"mean wait ({unit})")
    if unequal:
        axes.set_yscale("symlog", linthresh=1)
        axes.yaxis.set_major_formatter(lambda wait, _: f"{wait:,g}")
    axes.set_ylim(0, max(axes.get_ylim()[1] * (1.5 if unequal else 1), 1e-9))
    plain(axes)
    _, labels = axes.get_legend_handles_labels()
    title(axes, f"Waits by {by}", note, legend_above(axes, labels))
    return axes


def _mean_waits(result: Result, by: str, most: int) -> dict[str, float]:
    """Return the mean wait [s] of each class that has jobs, none of more processors than most."""
    jobs = result.decided
    wait = result.wait[jobs]
    if by == "length":
        run = result.run_time[jobs]
        chosen: Mapping[str, NDArray[np.bool_]] = {n: in_class(run, n) for n in LENGTH_CLASSES}
    else:
        from hpcgym.explanation.waits import size_classes  # slow, and help needs none of it

        number, called = size_classes(result.workload.requested_processors[jobs], most)
        chosen = {called(one): number == one for one in np.unique(number).tolist()}
    return {name: float(wait[which].mean()) for name, which in chosen.items() if which.any()}


def _in_order(found: Mapping[str, Mapping[str, float]], by: str) -> list[str]:
    """Return the classes of all results in their order."""
    names = {name for waits in found.values() for name in waits}
    if by == "length":
        return [name for name in LENGTH_CLASSES if name in names]
    return sorted(names, key=lambda name: int(name.rpartition(" ")[2]))


def _text(name: str, by: str) -> str:
    """Return what a class is called at the axis."""
    return _LENGTHS[name] if by == "length" else name.replace(" to ", "-")
