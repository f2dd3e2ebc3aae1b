"""A picture of the power that a machine draws over time, by what its nodes do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    DARK_GREY,
    LIGHT_GREY,
    ORANGE,
    PURPLE,
    TimeAxis,
    axes_or_new,
    legend_above,
    plain,
    time_axis,
    title,
)
from hpcgym.report.labels import Results, drawable, subtitle
from hpcgym.report.numbers import shown
from hpcgym.report.steps import envelope
from hpcgym.report.timeline import MOST_STEPS, bins_of, means_of_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.schedule.result import Result

#: Colours of states; busy nodes are the darker the faster.
_COLOURS = {
    "components": DARK_GREY,
    "idle": LIGHT_GREY,
    "switching_off": PURPLE,
    "switching_on": ORANGE,
    "off": "#9A9A9A",
}
_SLOWEST = np.array([0xCF, 0xE6, 0xF5]) / 255  # a pale blue
_UNITS = ((1e6, "MW"), (1e3, "kW"), (1.0, "W"))


def draw_power(result: Results, axes: Axes | None = None) -> Axes:
    """Draw the power of a machine over time, stacked by what its nodes do.

    A schedule of many changes is drawn as means of equal bins of time, of which the axis tells the
    length, with a line at the greatest power in each.

    Parameters
    ----------
    result : one result, or scheduler name -> result.
    axes : where to draw; without it a new figure, with a note of what it shows.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.

    Raises
    ------
    HpcgymError : a pool whose processors are switched off: when is not known.
    """
    parts = drawable(result)
    ((_, one),) = parts.items()
    note = "" if axes else subtitle(parts)
    return power_on(axes_or_new(axes, height=3.6), one, time_axis(parts), note)


def power_on(axes: Axes, result: Result, time: TimeAxis, note: str = "") -> Axes:
    """Draw power over a time axis that others may share; see :func:`draw_power`."""
    times = result.books.time
    known = result.books.watts()
    busy = [name for name in known if name not in _COLOURS]
    # from below: what is busy stands on what never changes much
    order = ["components", *busy, *list(_COLOURS)[1:]]
    states = {name: known[name] for name in order if known[name].any()}
    total = np.sum(list(states.values()) or [np.zeros(len(times) - 1)], axis=0)
    scale, unit = next((s, u) for s, u in _UNITS if total.max(initial=0) >= s or s == 1)
    colours = _colours(states)
    # each to the end of its step, the last value twice
    levels = {name: np.append(watts, watts[-1:]) / scale for name, watts in states.items()}
    edges: NDArray[Any] = times
    label = f"power ({unit})"
    if times.size > MOST_STEPS:
        number = bins_of(axes)
        bins = envelope(times, np.append(total, total[-1:]) / scale, number)
        levels = {name: envelope(times, each, number).mean for name, each in levels.items()}
        levels = {name: np.append(each, each[-1:]) for name, each in levels.items()}
        axes.stairs(
            bins.high,
            time.place(bins.edges),
            color=BLACK,
            linewidth=0.7,
            label="greatest",
            zorder=3,
        )
        edges = bins.edges
        label += f",\n{means_of_bins(times[-1] - times[0], number)}"
    below: NDArray[Any] = np.zeros(edges.size)
    for name, watts in levels.items():
        axes.fill_between(
            time.place(edges),
            below,
            below + watts,
            step="post",
            color=colours[name],
            linewidth=0,
            label=_text(name),
        )
        below = below + watts
    axes.set_ylabel(label)
    axes.set_ylim(0, 1.05 * max(float(total.max(initial=0)) / scale, 1e-9))
    time.apply(axes)
    plain(axes)
    _, names = axes.get_legend_handles_labels()
    span = float(result.books.time[-1] - result.books.time[0])
    mean = float(result.metrics["energy_j"]) / span / scale
    heading = f"Power: mean {shown(mean)} {unit}, max {shown(float(total.max()) / scale)} {unit}"
    title(axes, heading, note, legend_above(axes, names))
    return axes


def _colours(states: Mapping[str, Any]) -> dict[str, Any]:
    """Return the colour of each state that there is."""
    busy = [name for name in states if name not in _COLOURS]
    fastest = np.array([int(BLUE[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    shades = np.linspace(0, 1, len(busy)) if len(busy) > 1 else [1.0]
    blues = {
        name: tuple(_SLOWEST + shade * (fastest - _SLOWEST))
        for name, shade in zip(busy, shades, strict=True)
    }
    return {name: _COLOURS.get(name) or blues[name] for name in states}


def _text(state: str) -> str:
    """Return what a state is called in the legend."""
    name, _, ghz = state.partition("_")
    if name == "busy" and ghz:
        return f"busy at {ghz.removesuffix('ghz')} GHz"
    return "components above nodes" if state == "components" else state.replace("_", " ")
