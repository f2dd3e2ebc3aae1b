"""The pictures of the study of power caps: figures 4.4 to 4.6 of Glesser 2016."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.energy.powercap import POLICIES
from hpcgym.benchmarks.energy.powercap_tables import SHAPES, Outcomes, cells_of
from hpcgym.benchmarks.energy.powercap_workload import HOUR_S, Interval
from hpcgym.cluster.power_plans import greatest_w
from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    DARK_GREY,
    GREEN,
    LIGHT_GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    legend_above,
    new_figure,
    plain,
    title,
)
from hpcgym.schedule.runs import STATE_NAMES
from hpcgym.scheduler.limits import PowerCap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hpcgym.schedule.result import Result

_COLOURS = {"SHUT": BLUE, "DVFS": VERMILLION, "MIX": GREEN, "none": DARK_GREY}
_STATES = {
    "components": DARK_GREY,
    "idle": LIGHT_GREY,
    "off": "#9A9A9A",
    "switching_off": PURPLE,
    "switching_on": ORANGE,
}
_MEASURES = {
    "energy": "energy / possible",
    "launched": "launched jobs / most",
    "work": "work / possible",
}
_SLOW, _FAST = np.array([0.81, 0.90, 0.96]), np.array([0, 0.27, 0.44])

Steps = Mapping[str, NDArray[np.float64]]


def nodes_by_state(result: Result) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """Return how many nodes are in which state over time.

    Returns
    -------
    times : (n_times,) int64 [s].
    nodes : "busy_..." as in the books, by frequency, the lowest first, "idle", and states of
        switching -> (n_times - 1,), from each time to the next.
    """
    times, busy = result.books.time, [n for n in result.books.states if n.startswith("busy")]
    assert result.allocation is not None
    widths = np.diff(result.allocation.first)
    changes = {name: np.zeros(len(times)) for name in (*busy, *STATE_NAMES)}
    top = len(busy) - 1
    level = np.full(len(widths), top) if result.frequency is None else result.frequency
    begin, end = np.searchsorted(times, result.start), np.searchsorted(times, result.end)
    for number, name in enumerate(busy):
        here = level == number
        np.add.at(changes[name], begin[here], widths[here])
        np.subtract.at(changes[name], end[here], widths[here])
    if result.node_states is not None:
        states = result.node_states
        begin, end = (
            np.searchsorted(times, np.clip(moments, times[0], times[-1]))
            for moments in (states.begin, states.end)
        )
        for number, name in enumerate(STATE_NAMES):
            here = states.state == number
            np.add.at(changes[name], begin[here], 1)
            np.subtract.at(changes[name], end[here], 1)
    nodes = {name: np.cumsum(change)[:-1] for name, change in changes.items()}
    nodes["idle"] = result.cluster.nodes - np.sum(list(nodes.values()), axis=0)
    return times, nodes


def draw_interval(result: Result, interval: Interval, heading: str) -> Figure:
    """Draw nodes and power over an interval under a cap, as figures 4.4 and 4.5 do."""
    (cap,) = (limit for limit in result.limits or () if isinstance(limit, PowerCap))
    figure = new_figure(9, 5.6)
    above, below = figure.subplots(2, 1, sharex=True)
    times, nodes = nodes_by_state(result)
    busy = [name for name in nodes if name.startswith("busy")]
    cores = result.cluster.processors / result.cluster.nodes
    order = [*reversed(busy), "idle", *STATE_NAMES]
    hours = (times - interval.begin) / HOUR_S
    seen = (times[:-1] < interval.end) & (times[1:] > interval.begin)
    used = {name: nodes[name] * cores / 1e3 for name in order if nodes[name][seen].any()}
    _stack(above, hours, used, busy)
    above.set_ylabel("cores (thousands)")
    above.set_ylim(0, 1.03 * result.cluster.processors / 1e3)
    _, names = above.get_legend_handles_labels()
    title(above, heading, legend_rows=legend_above(above, names))
    watts = result.books.watts()
    order = ["components", "idle", *STATE_NAMES, *busy]
    drawn = {name: watts[name] / 1e6 for name in order if watts[name][seen].any()}
    _stack(below, hours, drawn, busy)
    most = greatest_w(result.cluster) / 1e6
    window = [(moment - interval.begin) / HOUR_S for moment in (cap.start, cap.end or interval.end)]
    below.fill_between(
        window,
        cap.watts / 1e6,
        most,
        facecolor="none",
        edgecolor=BLACK,
        hatch="///",
        linewidth=0.6,
        label="not to be used",
    )
    below.set_ylim(0, 1.03 * most)
    below.set_ylabel("power (MW)")
    below.set_xlabel("hours of the interval")
    below.set_xlim(0, (interval.end - interval.begin) / HOUR_S)
    _, names = below.get_legend_handles_labels()
    legend_above(below, names)
    for axes in (above, below):
        plain(axes)
    return figure


def _stack(axes: Axes, hours: NDArray[Any], levels: Steps, busy: Sequence[str]) -> None:
    """Draw step functions one on the other, from below; busy nodes are the darker the faster."""
    under: NDArray[Any] = np.zeros(len(hours))
    shades = dict(zip(busy, np.linspace(0, 1, len(busy)), strict=True))
    for name, values in levels.items():
        over = under + np.append(values, values[-1:])
        shade = shades.get(name)
        colour = _STATES.get(name) if shade is None else tuple(_SLOW + shade * (_FAST - _SLOW))
        axes.fill_between(
            hours, under, over, step="post", color=colour, linewidth=0, label=_text(name)
        )
        under = over


def _text(state: str) -> str:
    """Return what a state is called in the legend."""
    if state.startswith("busy_"):
        return f"{state.removeprefix('busy_').removesuffix('ghz')} GHz"
    return {"components": "above nodes", "busy": "busy"}.get(state, state.replace("_", " "))


def draw_4_6(outcomes: Outcomes, trace: str, requests: str) -> Figure:
    """Figure 4.6: energy, launched jobs and work by interval, cap and policy."""
    names = [name for name in SHAPES if (trace, requests, name) in outcomes]
    figure = new_figure(9, 1.2 + 2.6 * len(names))
    rows = figure.subplots(len(names), len(_MEASURES), sharey="row", sharex="col", squeeze=False)
    for line, name in zip(rows, names, strict=True):
        cells = cells_of(outcomes[trace, requests, name])
        for axes, measure in zip(line, _MEASURES, strict=True):
            _bars(axes, cells, measure)
            plain(axes, grid="x")
            axes.set_xlim(0, 1.02)
        line[0].set_ylabel(name)
    for axes, label in zip(rows[-1], _MEASURES.values(), strict=True):
        axes.set_xlabel(label)
    heading = f"{trace}; requested times: {requests}; lines: 95 % of resampled workloads"
    figure.suptitle(heading, x=0.01, horizontalalignment="left", fontsize=10, fontweight="bold")
    handles, labels = rows[0][0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False
    )
    return figure


def _bars(axes: Axes, cells: Mapping[tuple[float, str], Any], measure: str) -> None:
    """Draw a bar for each cap and policy, from above."""
    place, ticks = 0.0, []
    for cap in sorted({cap for cap, _ in cells}, reverse=True):
        policies = ["none"] if cap >= 1 else list(POLICIES)
        for policy in policies:
            values = cells[cap, policy][measure]
            drawn = np.random.default_rng(0).integers(0, len(values), (2_000, len(values)))
            low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
            middle = values.mean()
            axes.barh(
                place,
                middle,
                0.8,
                xerr=[[max(middle - low, 0)], [max(high - middle, 0)]],
                color=_COLOURS[policy],
                ecolor=BLACK,
                error_kw={"linewidth": 0.8},
                label=policy if cap == min(c for c, _ in cells) else None,
            )
            place += 1
        ticks.append((place - 0.5 - len(policies) / 2, f"{cap:.0%}"))
        place += 0.7
    axes.set_yticks([at for at, _ in ticks], [text for _, text in ticks])
    axes.set_ylim(place - 1.2, -0.6)
