"""Pictures over time: utilization, queue and power."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.report import canvas
from hpcgym.report.placement import envelope
from hpcgym.report.tables import Results, drawable
from hpcgym.schedule.metrics import processors_in_use, queue_length
from hpcgym.units import DAY_S, HOUR_S, MINUTE_S
from hpcgym.words import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpcgym.schedule.result import Result


# --- Pictures of how busy the machine is ----------------------------------------------------------

Parts = Mapping[str, "Result"]

#: Lines of which one has more steps than this are drawn as means of bins, and the axis says so.
MOST_STEPS = 2_000
#: Queues whose means differ by more than this factor are drawn on a logarithmic axis.
UNEQUAL = 20
#: Most bins of such a line, and how many an inch has: some pixels each, or least and greatest would
#: be all that is seen.
BINS, BINS_AN_INCH = 300, 30
#: What a bin may be, as people count time: seconds, and what it is called.
BIN_LENGTHS = (
    (1, "seconds"), (10, "10 seconds"), (MINUTE_S, "minutes"), (10 * MINUTE_S, "10 minutes"),
    (HOUR_S, "hours"), (3 * HOUR_S, "3 hours"), (6 * HOUR_S, "6 hours"), (12 * HOUR_S, "half days"),
    (DAY_S, "days"), (2 * DAY_S, "2 days"), (7 * DAY_S, "weeks"), (28 * DAY_S, "4 weeks"),
)  # fmt: skip


def draw_utilization(results: Results, axes: Axes | None = None) -> Axes:
    """Draw the share of processors in use over time, one line a scheduler.

    Lines of many steps are drawn as means of hours, days or the like, as the axis tells. If there
    is only one, a band goes from the least to the greatest value of each bin.

    Parameters
    ----------
    results : a result, or scheduler name -> result.
    axes : where to draw; without it a new figure, with a note of what it shows.

    Returns
    -------
    The axes; ``axes.figure.savefig(path)`` saves the picture.
    """
    return _alone("utilization", results, axes)


def draw_queue_length(results: Results, axes: Axes | None = None) -> Axes:
    """Draw the number of queued jobs over time, one line a scheduler; as ``draw_utilization``.

    The legend tells mean and maximum.
    """
    return _alone("queue", results, axes)


Line = tuple[NDArray[Any], NDArray[Any]]  # times, and what holds from each to the next


#: What there is over time -> heading, and label of the axis.
CURVES = {
    "utilization": ("Utilization", "in use (% of processors)"),
    "queue": ("Queue", "queued jobs"),
}


def _line(name: str, result: Result) -> tuple[str, Line]:
    """Return what the legend says of a schedule, and its line."""
    if name == "queue":
        mean, most = (result.metrics[f"{which}_queue_length"] for which in ("mean", "max"))
        return f"mean {shown(float(mean))}, max {int(most):,}", queue_length(result)
    times, used = processors_in_use(result)
    percent = shown(100 * result.metrics["utilization"])
    return f"mean {percent} %", (times, used * (100 / result.cluster.processors))


def unequal_queues(parts: Parts) -> bool:
    """Tell whether queues are so unequal that they need a logarithmic axis."""
    means = [float(result.metrics["mean_queue_length"]) for result in parts.values()]
    return max(means) > UNEQUAL * min(means) > 0


def curve_on(
    axes: Axes,
    name: str,
    parts: Parts,
    time: canvas.TimeAxis,
    note: str = "",
    *,
    legend: bool = True,
    binned: bool | None = None,
) -> Axes:
    """Draw one of :data:`CURVES` over a time axis that others may share.

    ``binned`` : whether lines are means of bins; None: if one has many steps.
    """
    from matplotlib.ticker import MaxNLocator

    heading, label = CURVES[name]
    lines = {}
    for who, result in parts.items():
        text, line = _line(name, result)
        lines[f"{who}: {text}" if len(parts) > 1 else text] = line
    axes.set_ylabel(label)
    if name == "queue":
        if unequal_queues(parts):
            axes.set_yscale("symlog", linthresh=1)
        else:
            axes.yaxis.set_major_locator(MaxNLocator("auto", integer=True))
        axes.yaxis.set_major_formatter(lambda jobs, _: f"{jobs:,.0f}")
    _draw(axes, lines, time, binned)
    axes.set_ylim(0, max(axes.get_ylim()[1], 1) if name == "queue" else 105)
    if legend:
        return canvas.headed(axes, heading, note)
    canvas.title(axes, heading, note)
    return axes


def _alone(name: str, results: Results, axes: Axes | None) -> Axes:
    """Draw over the time of all results; a new figure has room for a legend, and a note."""
    parts, axes, note = canvas.begun(results, axes, height=2.5 + 0.1 * len(drawable(results)))
    return curve_on(axes, name, parts, canvas.time_axis(parts), note)


def has_many_steps(name: str, parts: Parts, time: canvas.TimeAxis) -> bool:
    """Tell whether one of several lines has too many steps to be drawn one by one."""
    return any(
        _over(*_line(name, result)[1], time)[0].size > MOST_STEPS for result in parts.values()
    )


def _draw(
    axes: Axes, lines: Mapping[str, Line], time: canvas.TimeAxis, binned: bool | None
) -> None:
    """Draw step functions, one line each: all step by step, or all as means of the same bins."""
    steps = {name: _over(*line, time) for name, line in lines.items()}
    if binned is None:
        binned = any(times.size > MOST_STEPS for times, _ in steps.values())
    edges, means = bins_of(canvas.figure_of(axes).get_figwidth(), time)
    for place, (name, (times, values)) in enumerate(steps.items()):
        style: dict[str, Any] = {**canvas.line_style(place), "linewidth": 1.1}
        if not binned:
            axes.step(time.place(times), values, where="post", label=name, **style)
            continue
        bins, places = envelope(times, values, edges), time.place(edges)
        axes.plot((places[1:] + places[:-1]) / 2, bins.mean, label=name, zorder=2, **style)
        if len(lines) == 1:  # the bands of several would hide each other
            axes.stairs(
                bins.high, places, baseline=bins.low, fill=True, color=canvas.SKY_BLUE, alpha=0.4,
                linewidth=0, label="least to greatest",
            )  # fmt: skip
    if binned:
        axes.set_ylabel(f"{axes.get_ylabel()},\n{means}")
    time.apply(axes)
    canvas.plain(axes)


def bins_of(inches: float, time: canvas.TimeAxis) -> tuple[NDArray[np.float64], str]:
    """Return bins for which a picture so wide has room, as days or hours of the axis are.

    Returns
    -------
    edges : (n_bins + 1,) [s], from the first time of the axis to the last.
    means : what a line of their means shows, such as "means of days".
    """
    most = min(BINS, int(BINS_AN_INCH * inches))
    span, longest = time.last - time.first, BIN_LENGTHS[-1]
    length, name = next((b for b in BIN_LENGTHS if span <= most * b[0]), longest)
    begin = time.midnight + np.floor((time.first - time.midnight) / length + 1) * length
    within = np.arange(begin, time.last, length, dtype=np.float64)
    return np.concatenate(
        ([time.first], within, [max(time.last, time.first + 1)])
    ), f"means of {name}"


def _over(times: NDArray[Any], values: NDArray[Any], time: canvas.TimeAxis) -> Line:
    """Return a step function from the first to the last time of the picture, 0 where undefined."""
    before, after = (int(late.sum()) for late in (times[:1] > time.first, times[-1:] < time.last))
    moments = np.concatenate(([time.first] * before, times, [time.last] * after))
    return moments, np.pad(values, (before, after))


# --- Many schedules over time, each beside the first ----------------------------------------------

#: Of more schedules than this, lines in one picture would hide each other.
MOST_LINES = 2
#: How high a row is [inches].
ROW_INCHES = 1.2


def rows_beside_first(
    parts: Parts, time: canvas.TimeAxis, inches: float
) -> list[Callable[[Axes, Axes], None]]:
    """Return what draws each schedule but the first: its utilization, and its queue, on two axes.

    The first schedule is grey in each, which a caption should say. All are means of the same bins
    of time, and all queues have one scale. ``inches`` : how wide the axes are.
    """
    edges, means = bins_of(inches, time)
    places = time.place((edges[1:] + edges[:-1]) / 2)
    lines = {
        curve: {
            name: envelope(*_over(*_line(curve, result)[1], time), edges).mean
            for name, result in parts.items()
        }
        for curve in CURVES
    }
    longest = max(1.0, *(queue.max(initial=0) for queue in lines["queue"].values()))
    logarithmic = unequal_queues(parts)
    first, *others = parts
    short = canvas.shortened(parts, inches)

    def draw(axes: Axes, curve: str, name: str) -> None:
        heading, label = CURVES[curve]
        axes.plot(places, lines[curve][first], color=canvas.GREY, linewidth=1)
        axes.plot(places, lines[curve][name], color=canvas.BLUE, linewidth=1)
        text, _ = _line(curve, parts[name])
        axes.set_title(f"{short[name]}, {heading.lower()}: {text}", loc="left", fontsize=9)
        axes.set_ylabel(f"{label.replace(' (', chr(10) + '(')},\n{means}")
        if curve == "queue" and logarithmic:
            axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(0, longest if curve == "queue" else 105)
        time.apply(axes)
        canvas.plain(axes)
        axes.yaxis.label.set_fontsize(7)

    def row(used: Axes, queued: Axes, name: str) -> None:
        draw(used, "utilization", name)
        draw(queued, "queue", name)

    return [partial(row, name=name) for name in others]


# --- A picture of the power that a machine draws over time ----------------------------------------

#: Colours of states; busy nodes are the darker the faster.
_COLOURS = {
    "components": canvas.DARK_GREY,
    "idle": canvas.LIGHT_GREY,
    "switching_off": canvas.PURPLE,
    "switching_on": canvas.ORANGE,
    "off": "#9A9A9A",
}
_SLOWEST = "#CFE6F5"
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
    (drawn,) = drawable(result).values()
    times, known = drawn.books.time, drawn.books.watts()
    parts, axes, note = canvas.begun(result, axes, height=3.6)
    time = canvas.time_axis(parts)
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
        inches = canvas.figure_of(axes).get_figwidth()
        edges, means = bins_of(inches, replace(time, first=times[0].item(), last=times[-1].item()))
        bins = envelope(times, np.append(total, total[-1:]) / scale, edges)
        levels = {name: envelope(times, each, edges).mean for name, each in levels.items()}
        levels = {name: np.append(each, each[-1:]) for name, each in levels.items()}
        line: dict[str, Any] = {"color": canvas.BLACK, "linewidth": 0.7, "zorder": 3}
        axes.stairs(bins.high, time.place(bins.edges), label="greatest", **line)
        label += f",\n{means}"
    below: NDArray[Any] = np.zeros(edges.size)
    for name, watts in levels.items():
        look: dict[str, Any] = {"color": colours[name], "label": _text(name), "linewidth": 0}
        axes.fill_between(time.place(edges), below, below + watts, step="post", **look)
        below = below + watts
    axes.set_ylabel(label)
    axes.set_ylim(0, 1.05 * max(float(total.max(initial=0)) / scale, 1e-9))
    time.apply(axes)
    canvas.plain(axes)
    mean = float(drawn.metrics["energy_j"]) / float(times[-1] - times[0]) / scale
    heading = f"Power: mean {shown(mean)} {unit}, max {shown(float(total.max()) / scale)} {unit}"
    return canvas.headed(axes, heading, note)


def _colours(states: Mapping[str, Any]) -> dict[str, Any]:
    """Return the colour of each state that there is."""
    from matplotlib.colors import LinearSegmentedColormap

    blues = LinearSegmentedColormap.from_list("busy", [_SLOWEST, canvas.BLUE])
    busy = [name for name in states if name not in _COLOURS]
    shades = np.linspace(0, 1, len(busy)) if len(busy) > 1 else [1.0]
    return _COLOURS | dict(zip(busy, map(blues, shades), strict=True))


def _text(state: str) -> str:
    """Return what a state is called in the legend."""
    name, _, ghz = state.partition("_")
    if name == "busy" and ghz:
        return f"busy at {ghz.removesuffix('ghz')} GHz"
    return "components above nodes" if state == "components" else state.replace("_", " ")
