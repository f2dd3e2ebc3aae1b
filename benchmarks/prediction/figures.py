"""The thesis's figures, and ours against the published values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.prediction.campaign import Findings
from hpcgym.benchmarks.prediction.configurations import (
    CLAIRVOYANT,
    CORRECTIONS,
    E_LOSS_TRIPLE,
    EASY,
    EASY_PLUS_PLUS,
    ORDERS,
)
from hpcgym.benchmarks.prediction.tables import name_of
from hpcgym.benchmarks.studies.pictures import log_ticks
from hpcgym.report.canvas import (
    BLACK,
    BLUE,
    DARK_GREY,
    GREEN,
    PURPLE,
    VERMILLION,
    figure_of,
    legend_above,
    new_figure,
    plain,
    title,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

_COLOURS = dict(zip(CORRECTIONS, (BLUE, VERMILLION, GREEN), strict=True))
_MARKERS = dict(zip(ORDERS, ("o", "^"), strict=True))
_LINES = {
    "clairvoyant": (BLACK, ":"),
    "requested": (DARK_GREY, "--"),
    "AVE2": (BLUE, "-"),
    "squared loss": (GREEN, "-"),
    "E-Loss": (VERMILLION, "-"),
}
_NAMED = (EASY, EASY_PLUS_PLUS, E_LOSS_TRIPLE, *CLAIRVOYANT.values())
#: Where names may be, from the mark: points to the right and upwards, and the side at the mark.
_BESIDE = tuple(
    ((right, up), {-1: "right", 0: "center", 1: "left"}[np.sign(right)])
    for reach in (6, 12, 18, 24, 30)
    for right, up in (
        *((reach, 0), (-reach, 0), (reach, reach), (reach, -reach)),
        *((-reach, reach), (-reach, -reach), (0, reach + 2), (0, -reach - 2)),
    )
)
_NEAR = 8  # of them, which need no line to the mark
_MARK_PIXELS = 4  # a name covers a mark whose middle is so near
_POINTS = 2001  # of a distribution that are drawn
_OUT_OF_SIGHT = 0.02  # of the errors of each predictor, at either end: long tails of few jobs


def draw_against_published(found: Findings, table: pd.DataFrame) -> Figure:
    """Each configuration of a table: our mean bounded slowdown against the published one."""
    table = table[table["published"].notna()]
    figure = new_figure(6.5, 6)
    axes = figure.add_subplot()
    _scatter(axes, table, table["published"], table["mean_bsld"])
    values = table[["published", "mean_bsld"]].to_numpy()
    ends = [values.min(), values.max()]
    axes.plot(ends, ends, color=DARK_GREY, linewidth=0.8, linestyle="--", zorder=0)
    _finish(axes, "published", "ours")
    _legend(figure, table)
    title(axes, "Mean bounded slowdown of each configuration", found.trace)
    _name(axes, table, "published", "mean_bsld")
    return figure


def draw_two_traces(first: Findings, second: Findings) -> Figure:
    """Figure 7.2: each configuration on two traces."""
    other = second.table["mean_bsld"].rename("mean_bsld too")
    shown = first.of_thesis.join(other, how="inner")
    figure = new_figure(6.5, 6)
    axes = figure.add_subplot()
    _scatter(axes, shown, shown["mean_bsld"], shown["mean_bsld too"])
    _finish(axes, first.trace, second.trace)
    _legend(figure, shown)
    title(axes, "Mean bounded slowdown of each configuration on two traces (figure 7.2)", "")
    _name(axes, shown, "mean_bsld", "mean_bsld too")
    return figure


def _scatter(axes: Axes, table: pd.DataFrame, x: pd.Series[float], y: pd.Series[float]) -> None:
    """Draw a mark for each configuration, by correction, order and whether it learns."""
    crowded = len(table) > 500
    for correction, colour in _COLOURS.items():
        for order, marker in _MARKERS.items():
            part = (table["correction"] == correction) & (table["order"] == order)
            for learned in (True, False):
                these = part & ((table["estimate"] == "regression") == learned)
                style: dict[str, Any] = {"color": colour, "alpha": 0.3 if crowded else 0.8}
                if not learned:
                    style = {"color": BLACK, "markerfacecolor": "none", "zorder": 3}
                size = 2 if crowded and learned else 5
                axes.plot(x[these], y[these], marker, markersize=size, **style)


def _name(axes: Axes, table: pd.DataFrame, x: str, y: str) -> None:
    """Write names beside some configurations, where they cover the fewest marks."""
    from matplotlib.patheffects import withStroke

    figure_of(axes).draw_without_rendering()  # that places are known
    taken = axes.transData.transform(table[[x, y]].to_numpy())
    halo = [withStroke(linewidth=2, foreground="white")]
    style: dict[str, Any] = {"fontsize": 7, "zorder": 4, "va": "center", "path_effects": halo}
    line = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
    for one in _NAMED:
        if str(one) not in table.index:
            continue
        place = (float(table[x][str(one)]), float(table[y][str(one)]))
        words: dict[str, Any] = {"text": name_of(one), "xy": place, "textcoords": "offset points"}
        tried = [
            axes.annotate(
                **words, **style, xytext=at, ha=side, arrowprops=line if k >= _NEAR else None
            )
            for k, (at, side) in enumerate(_BESIDE)
        ]
        covered = [_covered(axes, _letters(label), taken) for label in tried]
        chosen = tried.pop(int(np.argmin(covered)))
        for label in tried:
            label.remove()
        chosen.set_in_layout(False)  # else the axes would move
        box = _letters(chosen)
        letters = np.linspace(box.x0, box.x1, 40)
        taken = np.vstack([taken, np.stack([letters, np.full(40, (box.y0 + box.y1) / 2)], axis=1)])


def _letters(label: Annotation) -> Bbox:
    """Return where the letters of a name are, without the line to its mark."""
    from matplotlib.text import Text

    label.get_window_extent()  # puts it into its place
    return Text.get_window_extent(label)


def _covered(axes: Axes, box: Bbox, taken: NDArray[np.float64]) -> int:
    """Return how many places, (n, 2) in pixels, a name would cover; many if outside the axes."""
    frame, room = axes.get_window_extent(), box.padded(_MARK_PIXELS)
    inside = (taken > room.min) & (taken < room.max)
    outside = bool(np.any(box.min < frame.min) or np.any(box.max > frame.max))
    return int(inside.all(axis=1).sum()) + len(taken) * outside


def _finish(axes: Axes, x: str, y: str) -> None:
    """Set the axes of a scatter."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        log_ticks(axis, range(1, 10))
    axes.margins(0.08)  # room for names
    axes.set_xlabel(f"mean bounded slowdown, {x}")
    axes.set_ylabel(f"mean bounded slowdown, {y}")
    plain(axes)


def _legend(figure: Figure, table: pd.DataFrame) -> None:
    """Explain the colours and forms that a table's configurations have."""
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.lines import Line2D

    def mark(form: str, **style: Any) -> Line2D:
        return Line2D([], [], marker=form, markersize=5, linestyle="", **style)

    learned = set(table["correction"][table["estimate"] == "regression"])
    colours = {f"correction: {name}": _COLOURS[name] for name in _COLOURS if name in learned}
    entries: dict[str, tuple[Line2D, ...]] = {
        name: tuple(mark(form, color=colour) for form in _MARKERS.values())
        for name, colour in colours.items()
    }
    hollow: dict[str, Any] = {"color": BLACK, "markerfacecolor": "none"}
    entries["without learning"] = tuple(mark(form, **hollow) for form in _MARKERS.values())
    entries |= {order.upper(): (mark(_MARKERS[order], color=DARK_GREY),) for order in _MARKERS}
    handles: list[Any] = list(entries.values())  # what their handler draws
    figure.legend(
        handles,
        list(entries),
        handler_map={tuple: HandlerTuple(ndivide=None)},
        loc="outside lower center",
        ncols=3,
        fontsize=8,
        frameon=False,
    )


def draw_errors(predictions: Mapping[str, NDArray[np.int64]], trace: str) -> Figure:
    """Figure 7.3: how prediction errors, predicted less actual run time, are distributed."""
    errors = {"clairvoyant": np.zeros(1)}
    errors |= {name: (given - run) / 3600 for name, (given, run) in predictions.items()}
    figure = new_figure(7, 4.4)
    axes = figure.add_subplot()
    _distributions(axes, errors)
    shares = (_OUT_OF_SIGHT, 1 - _OUT_OF_SIGHT)
    ends = np.concatenate([np.quantile(values, shares) for values in errors.values()])
    axes.set_xlim(ends.min(), ends.max())
    axes.set_xlabel("predicted less actual run time (hours)")
    note = f"{trace}; at most {_OUT_OF_SIGHT:.0%} of a predictor's errors are beyond either end"
    title(axes, "Prediction errors (figure 7.3)", note, legend_rows=1)
    return figure


def draw_predicted(predictions: Mapping[str, NDArray[np.int64]], trace: str) -> Figure:
    """Figure 7.4: how predicted run times are distributed."""
    values = {"clairvoyant": next(iter(predictions.values()))[1] / 3600}
    values |= {name: given / 3600 for name, (given, _) in predictions.items()}
    figure = new_figure(7, 4.4)
    axes = figure.add_subplot()
    _distributions(axes, values)
    axes.set_xscale("log")
    log_ticks(axes.xaxis, (1,))
    axes.set_xlabel("predicted run time (hours)")
    title(axes, "Predicted run times (figure 7.4)", trace, legend_rows=1)
    return figure


def _distributions(axes: Axes, values: Mapping[str, NDArray[Any]]) -> None:
    """Draw the share of jobs at or below each value."""
    share = np.linspace(0, 1, _POINTS)
    for name, numbers in values.items():
        colour, dashes = _LINES.get(name, (PURPLE, "-"))
        # the least value that this share of the jobs is at or below
        at = np.quantile(numbers, share, method="inverted_cdf")
        axes.step(at, share, where="post", color=colour, linestyle=dashes, label=name)
    axes.set_ylim(0, 1)
    axes.set_ylabel("share of jobs")
    plain(axes)
    legend_above(axes, list(values))
