"""Pictures of how busy the machine is, how long the queue, and how many jobs end, over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.report.canvas import (
    SKY_BLUE,
    UNITS,
    TimeAxis,
    axes_or_new,
    figure_of,
    legend_above,
    line_style,
    plain,
    time_axis,
    title,
)
from hpcgym.report.labels import Results, drawable, subtitle
from hpcgym.report.node_use import nodes_in_use, time_mean
from hpcgym.report.numbers import shown
from hpcgym.report.placement import has_nodes
from hpcgym.report.steps import envelope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.schedule.result import Result


#: Lines of which one has more steps than this are drawn as means of bins, and the axis says so.
MOST_STEPS = 2_000
#: Queues whose means differ by more than this factor are drawn on a logarithmic axis.
UNEQUAL = 20
#: Most bins of such a line, and how many an inch has: some pixels each, or least and greatest would
#: be all that is seen.
BINS, BINS_AN_INCH = 300, 30


def draw_utilization(results: Results, axes: Axes | None = None) -> Axes:
    """Draw the share of processors in use over time, one line a scheduler.

    Lines of many steps are drawn as means of equal bins of time, whose length the axis tells. If
    there is only one, a band goes from the least to the greatest value of each bin.

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
    return utilization_on(axes_or_new(axes, height=_height(parts)), parts, time_axis(parts), note)


def draw_queue_length(results: Results, axes: Axes | None = None) -> Axes:
    """Draw the number of queued jobs over time, one line a scheduler; as ``draw_utilization``.

    The legend tells mean and maximum.
    """
    parts = drawable(results)
    note = "" if axes else subtitle(parts)
    return queue_length_on(axes_or_new(axes, height=_height(parts)), parts, time_axis(parts), note)


def draw_nodes_in_use(results: Results, axes: Axes | None = None) -> Axes:
    """Draw the share of nodes that have a job over time; as ``draw_utilization``.

    The legend tells the mean, and which share of the nodes two or more jobs have on average.

    Raises
    ------
    HpcgymError : a schedule that does not tell who has which nodes.
    """
    parts = drawable(results)
    for name, result in parts.items():
        if not has_nodes(result):
            raise HpcgymError(f"{name} does not tell who has which nodes")
    note = "" if axes else subtitle(parts)
    return nodes_on(axes_or_new(axes, height=_height(parts)), parts, time_axis(parts), note)


def draw_throughput(results: Results, axes: Axes | None = None) -> Axes:
    """Draw how many jobs have ended by each time, one line a scheduler; as ``draw_utilization``."""
    parts = drawable(results)
    note = "" if axes else subtitle(parts)
    return throughput_on(axes_or_new(axes, height=_height(parts)), parts, time_axis(parts), note)


def utilization_on(
    axes: Axes,
    parts: Mapping[str, Result],
    time: TimeAxis,
    note: str = "",
    *,
    legend: bool = True,
) -> Axes:
    """Draw utilization over a time axis that others may share; see :func:`draw_utilization`."""
    from hpcgym.schedule.over_time import processors_in_use

    lines = {}
    for name, result in parts.items():
        times, used = processors_in_use(result)
        mean = f"mean {shown(100 * result.metrics['utilization'])} %"
        lines[_label(name, mean, parts)] = (times, used * (100 / result.cluster.processors))
    axes.set_ylim(0, 105)
    axes.set_ylabel("in use (% of processors)")
    return _draw(axes, "Utilization", lines, time, note, legend)


def queue_length_on(
    axes: Axes,
    parts: Mapping[str, Result],
    time: TimeAxis,
    note: str = "",
    *,
    legend: bool = True,
) -> Axes:
    """Draw queue lengths over a time axis that others may share; see :func:`draw_queue_length`."""
    from matplotlib.ticker import MaxNLocator

    from hpcgym.schedule.over_time import queue_length

    lines = {}
    means = [float(result.metrics["mean_queue_length"]) for result in parts.values()]
    for mean, (name, result) in zip(means, parts.items(), strict=True):
        text = f"mean {shown(mean)}, max {int(result.metrics['max_queue_length']):,}"
        lines[_label(name, text, parts)] = queue_length(result)
    axes.set_ylabel("queued jobs")
    if max(means) > UNEQUAL * min(means) > 0:
        axes.set_yscale("symlog", linthresh=1)
    else:
        axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.yaxis.set_major_formatter(lambda jobs, _: f"{jobs:,.0f}")
    _draw(axes, "Queue", lines, time, note, legend)
    axes.set_ylim(0, max(axes.get_ylim()[1], 1))
    return axes


def nodes_on(
    axes: Axes,
    parts: Mapping[str, Result],
    time: TimeAxis,
    note: str = "",
    *,
    legend: bool = True,
) -> Axes:
    """Draw nodes in use over a time axis that others may share; see :func:`draw_nodes_in_use`."""
    lines = {}
    for name, result in parts.items():
        times, used, shared = nodes_in_use(result)
        percent, span = 100 / result.cluster.nodes, float(result.metrics["makespan_s"])
        mean, both = (shown(percent * time_mean(times, part, span)) for part in (used, shared))
        lines[_label(name, f"mean {mean} %, shared {both} %", parts)] = (times, used * percent)
    axes.set_ylim(0, 105)
    axes.set_ylabel("with jobs (% of nodes)")
    return _draw(axes, "Nodes with jobs", lines, time, note, legend)


def throughput_on(
    axes: Axes,
    parts: Mapping[str, Result],
    time: TimeAxis,
    note: str = "",
    *,
    legend: bool = True,
) -> Axes:
    """Draw ended jobs over a time axis that others may share; see :func:`draw_throughput`."""
    lines = {}
    for name, result in parts.items():
        end = np.sort(result.end[result.decided])
        hours = float(result.metrics["makespan_s"]) / 3600
        mean = f"{shown(end.size / hours)} jobs/h" if hours else "all at once"
        counts = np.arange(1, end.size + 1)
        # what has ended stays so up to the end of the picture
        moments = np.append(end, max(time.last, end[-1]))
        lines[_label(name, mean, parts)] = (moments, np.append(counts, end.size))
    axes.set_ylabel("ended jobs")
    axes.yaxis.set_major_formatter(lambda jobs, _: f"{jobs:,.0f}")
    _draw(axes, "Throughput", lines, time, note, legend)
    axes.set_ylim(0, max(axes.get_ylim()[1], 1))
    return axes


def _height(parts: Mapping[str, Result]) -> float:
    """Return the height of a picture with a legend of all results, in inches."""
    return 2.5 + 0.1 * len(parts)


def _label(name: str, text: str, parts: Mapping[str, Result]) -> str:
    """Return the text for a legend, with the scheduler's name where there are several."""
    return f"{name}: {text}" if len(parts) > 1 else text


def _draw(
    axes: Axes,
    heading: str,
    lines: Mapping[str, tuple[NDArray[Any], NDArray[Any]]],
    time: TimeAxis,
    note: str,
    legend: bool,
) -> Axes:
    """Draw step functions, one line each, with title and legend.

    All are drawn step by step, or all as means of the same bins.
    """
    steps = {name: _over(*line, time) for name, line in lines.items()}
    binned = any(times.size > MOST_STEPS for times, _ in steps.values())
    number = bins_of(axes)
    for place, (name, (times, values)) in enumerate(steps.items()):
        style: dict[str, Any] = {**line_style(place), "linewidth": 1.1}
        if not binned:
            axes.step(time.place(times), values, where="post", label=name, **style)
            continue
        bins = envelope(times, values, number)
        edges = time.place(bins.edges)
        axes.plot((edges[1:] + edges[:-1]) / 2, bins.mean, label=name, zorder=2, **style)
        if len(lines) == 1:  # the bands of several would hide each other
            band: dict[str, Any] = {
                "baseline": bins.low,
                "fill": True,
                "color": SKY_BLUE,
                "alpha": 0.4,
            }
            axes.stairs(bins.high, edges, linewidth=0, label="least to greatest", **band)
    if binned:
        axes.set_ylabel(f"{axes.get_ylabel()},\n{means_of_bins(time.last - time.first, number)}")
    time.apply(axes)
    plain(axes)
    _, names = axes.get_legend_handles_labels()
    title(axes, heading, note, legend_above(axes, names) if legend else 0)
    return axes


def bins_of(axes: Axes) -> int:
    """Return how many bins a picture has room for."""
    return min(BINS, int(BINS_AN_INCH * figure_of(axes).get_figwidth()))


def means_of_bins(span: float, number: int) -> str:
    """Return what a line of so many bins over a time [s] shows, such as "means of 27 hours"."""
    length = span / number
    unit_s, unit = next((u for u in UNITS if length >= 2 * u[0]), UNITS[-1])
    return f"means of {length / unit_s:.3g} {unit}"


def _over(
    times: NDArray[Any], values: NDArray[Any], time: TimeAxis
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a step function from the first to the last time of the picture, 0 where undefined."""
    before, after = times[:1] > time.first, times[-1:] < time.last
    return (
        np.concatenate(([time.first] * int(before.sum()), times, [time.last] * int(after.sum()))),
        np.concatenate((np.zeros(int(before.sum())), values, np.zeros(int(after.sum())))),
    )
