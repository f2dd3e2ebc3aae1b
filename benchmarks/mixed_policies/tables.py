"""Tables and pictures of the study, ours beside the published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.mixed_policies.optimum import SEARCHES, Optimum
from hpcgym.benchmarks.mixed_policies.published import (
    JOBS,
    TABLE_2,
    TABLE_7,
    TABLES_3_TO_6,
    THRESHOLDS,
)
from hpcgym.benchmarks.mixed_policies.study import PURE, THREE, Study
from hpcgym.benchmarks.studies.tables import finish, heading_above, log_ticks
from hpcgym.report import canvas
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- The paper's tables, ours beside its own, as DataFrames ---------------------------------------

#: Name of a search -> its arrays for each budget, that of the least first.
Found = Mapping[str, Sequence[Mapping[str, Any]]]

#: What of w* a search may be away from it and still count as there.
NEAR = 0.01
_ROUNDING = 1e-9


def jobs(study: Study) -> pd.DataFrame:
    """Table 1: how many jobs, how long and how large."""
    parts = {"after cleaning": [study.workload], "in the weeks": list(study.weeks.values())}
    rows: list[dict[str, Any]] = []
    for name, workloads in parts.items():
        run = np.concatenate([part.run_time for part in workloads])
        size = np.concatenate([part.requested_processors for part in workloads])
        rows.append(_row(name, len(run), run.mean(), size.mean()))
    if study.trace in JOBS:
        rows.append(_row("paper, table 1", *JOBS[study.trace]))
    return pd.DataFrame(rows)


def _row(name: str, number: int, run_time: float, size: float) -> dict[str, Any]:
    return {
        "jobs of": name,
        "number": number,
        "mean run time (s)": float(run_time),
        "mean processors": float(size),
    }


def weekly(
    study: Study, optimum: Optimum | None = None, searched: Found | None = None
) -> pd.DataFrame:
    """Return the mean BSLD of everything on each week (the figures' numbers).

    Of the searches those with the least budget.
    """
    table = _by_period(study, "week", study.weeks, optimum)
    for name, found in (searched or {}).items():
        table[name] = found[0]["bsld"]
    return table


def monthly(study: Study, optimum: Optimum) -> pd.DataFrame:
    """Return the mean BSLD of everything on each month (figure 15's numbers)."""
    return _by_period(study, "month", study.months, optimum)


def _by_period(
    study: Study, period: str, parts: Mapping[int, Workload], optimum: Optimum | None
) -> pd.DataFrame:
    """Return what pure policies, and all vectors, have told of each week or month."""
    table = pd.DataFrame(study.pure(parts).T, columns=list(PURE))
    table.insert(0, period, list(parts))
    table.insert(1, "jobs", [len(part) for part in parts.values()])
    if optimum is not None:
        table["w*"] = optimum.best
        table["w*_train"] = optimum.train
        table["w_greedy"] = optimum.greedy
        table["w_greedy, first"] = optimum.greedy_first
        for place, name in enumerate(THREE):
            table[f"w*: {name}"] = optimum.weights[:, place]
        table["w*: share of vectors"] = optimum.ties
        table["below SAF: share of vectors"] = optimum.below_saf
    return table


def split(study: Study, optimum: Optimum | None = None) -> pd.DataFrame:
    """Table 2: sums of weekly mean BSLD over the weeks of training and of testing.

    Rows are in the order of our training sums. Gains are relative to FCFS, in percent. In the first
    week, which has none before it, w_greedy is FCFS.
    """
    published = {} if study.quick else TABLE_2.get(study.trace, {})
    return _halves(weekly(study, optimum), "week", (study.train, study.test), published)


def months(study: Study, optimum: Optimum) -> pd.DataFrame:
    """Section 11: sums of monthly mean BSLD over the months of training and of testing."""
    return _halves(monthly(study, optimum), "month", half_of_months(study), {})


def half_of_months(study: Study) -> tuple[list[int], list[int]]:
    """Return the months of training, the first ten or the first half, and of testing."""
    numbers = list(study.months)
    half = min(10, len(numbers) // 2)
    return numbers[:half], numbers[half:]


def _halves(
    table: pd.DataFrame,
    period: str,
    halves: tuple[Sequence[int], Sequence[int]],
    published: Mapping[str, tuple[float, float]],
) -> pd.DataFrame:
    """Return sums over both halves, with gains, and what is published of them."""
    names = [*PURE]
    if "w_greedy" in table:
        # nothing is before the first for w_greedy to have learned from
        table = table.assign(w_greedy=table["w_greedy"].fillna(table["fcfs"]))
        names = ["w*", "w*_train", "w_greedy", *names]
    columns = {}
    for place, (half, chosen) in enumerate(zip(("train", "test"), halves, strict=True)):
        rows = table[table[period].isin(chosen)]
        ours = {name: float(rows[name].sum()) for name in names}
        columns[half] = ours
        columns[f"{half}: gain %"] = gains(ours)
        if published:
            paper = {name: values[place] for name, values in published.items()}
            columns[f"{half}: paper"] = paper
            columns[f"{half}: paper's gain %"] = gains(paper)
            columns[f"{half}: ours / paper"] = {
                name: value / paper[name] for name, value in ours.items() if name in paper
            }
    sums = pd.DataFrame(columns).sort_values("train")
    sums.index.name = "policy"
    return sums.reset_index()


def thresholds(study: Study) -> pd.DataFrame:
    """Tables 3 to 6: sums of weekly mean BSLD over all weeks, with and without a threshold.

    The paper's columns are each in rising order beside names in the order of the first: the value
    of FCFS, which no threshold changes, is in the row of SEXP in table 3 and of LRF in table 6. So
    with a threshold only the value of FCFS is known by name, and the others are compared by place.
    """
    published = {} if study.quick else TABLES_3_TO_6.get(study.trace, {})
    rows = []
    for column, threshold in enumerate(THRESHOLDS):
        sums = study.pure(study.weeks, threshold).sum(axis=1)
        ours = dict(zip(PURE, sums.tolist(), strict=True))
        gained = gains(ours)
        paper = {name: values[column] for name, values in published.items()}
        fcfs = published["fcfs"][0] if published else np.nan
        reference = paper
        if paper and threshold is not None:
            reference = _in_places(ours, paper, fcfs)
        for place, name in enumerate(sorted(ours, key=ours.__getitem__), start=1):
            row = {
                "threshold (s)": "none" if threshold is None else f"{threshold:,}",
                "place": place,
                "policy": name,
                "ours": ours[name],
                "gain %": gained[name],
            }
            if paper:
                value = reference[name]
                row["paper"] = value
                row["paper's gain %"] = 100 * (1 - value / fcfs)
                row["ours / paper"] = ours[name] / value
            rows.append(row)
    return pd.DataFrame(rows)


def longest(study: Study, log: Workload) -> pd.DataFrame:
    """Table 7: the jobs with the longest run times; empty where the paper has no such table.

    Parameters
    ----------
    study : of the trace.
    log : the trace as logged, with nothing cleaned: most of these jobs ran for longer than they
        requested, and the cleaning of section 5.1's weeks drops them.
    """
    printed = TABLE_7.get(study.trace, ())
    order = np.argsort(-log.run_time, kind="stable")[: len(printed)]
    kept = {*study.workload.job_number.tolist()}
    rows = []
    for place, theirs in zip(order.tolist(), printed, strict=False):
        columns = (log.job_number, log.submit_time, log.run_time, log.requested_processors)
        ours = tuple(int(column[place]) for column in columns)
        rows.append(
            {
                "job": str(ours[0]),
                "submit time (s)": ours[1],
                "run time (s)": ours[2],
                "processors": ours[3],
                "as in the paper": "yes" if ours == theirs else "no",
                "requested time (s)": int(log.requested_time[place]),
                "kept by cleaning": "yes" if ours[0] in kept else "no",
            }
        )
    return pd.DataFrame(rows)


def _in_places(
    ours: Mapping[str, float], paper: Mapping[str, float], fcfs: float
) -> dict[str, float]:
    """Return the paper's values by our names: that of FCFS, then the least for the least."""
    values = sorted(paper.values())
    values.remove(fcfs)
    others = sorted(ours.keys() - {"fcfs"}, key=ours.__getitem__)
    return {"fcfs": fcfs, **dict(zip(others, values, strict=True))}


def gains(sums: Mapping[str, float]) -> dict[str, float]:
    """Return by how many percent each sum is below that of FCFS."""
    return {name: 100 * (1 - value / sums["fcfs"]) for name, value in sums.items()}


def searches(optimum: Optimum, found: Found) -> pd.DataFrame:
    """Section 8.1.2: XNES against w* of three features, over all weeks, by evaluations of a week.

    The paper says that "for most weeks" both "give the same result", and for few others the search
    a slightly better one. Three shares of weeks tell how many: those at w* or below, those at most
    1 % above it, and those within 1 % of it either way, whose result is the same.
    """
    rows = []
    for name, budgets in found.items():
        for one in budgets:
            bsld = one["bsld"]
            ratio = bsld / optimum.best
            there = reached(bsld, optimum.best)
            above = (1 + NEAR) * (1 + _ROUNDING)
            same = (ratio <= above) & (ratio >= (1 - NEAR) / (1 + _ROUNDING))
            rows.append(
                {
                    "search": name,
                    "features": SEARCHES[name],
                    "evaluations a week": int(one["evaluations"]),
                    "sum": float(bsld.sum()),
                    "sum of w*": float(optimum.best.sum()),
                    "weeks": len(bsld),
                    "weeks at w* or below": int(there.sum()),
                    "share of weeks at w* or below": float(there.mean()),
                    f"share at most {NEAR} above w*": float((ratio <= above).mean()),
                    f"share within {NEAR} of w*, either way": float(same.mean()),
                    "largest ratio to w*": float(ratio.max()),
                    "mean ratio to w*": float(ratio.mean()),
                    "weeks above w*": " ".join(map(str, optimum.numbers[~there].tolist())),
                }
            )
    return pd.DataFrame(rows)


def reached(bsld: Any, best: Any) -> Any:
    """Return where a search is at w* or below, but for rounding."""
    return bsld <= best * (1 + _ROUNDING)


def order_agreement(ours: Mapping[str, float], paper: Mapping[str, float]) -> tuple[int, int]:
    """Return how many pairs of policies have the same order in both, and the number of pairs."""
    pairs = list(combinations([name for name in ours if name in paper], 2))
    same = sum((ours[a] < ours[b]) == (paper[a] < paper[b]) for a, b in pairs)
    return same, len(pairs)


# --- The paper's figures, drawn from the tables ---------------------------------------------------

#: How what is compared in figures 3, 13 and 15 is marked.
MARKS = {
    "fcfs": ("FCFS", canvas.DARK_GREY, "x"),
    "saf": ("SAF", canvas.BLUE, "o"),
    "w_greedy": ("w_greedy: the best of the one before (mean over ties)", canvas.ORANGE, "^"),
    "w*_train": ("w*_train: the best of the training part", canvas.GREEN, "s"),
    "w*": ("w*: the best of this one", canvas.VERMILLION, "D"),
}

_NAMED = 1.25  # a pure policy is named where SAF is worse by this factor


def draw_distribution(table: pd.DataFrame, name: str) -> Figure:
    """Figure 1: how the weekly mean BSLD of the pure policies is distributed, best mean first."""
    means = table[list(PURE)].mean().sort_values(ascending=False)
    figure = canvas.new_figure(8, 4.6)
    axes = figure.add_subplot()
    boxes = axes.boxplot(
        [table[policy] for policy in means.index],
        orientation="horizontal",
        widths=0.6,
        showmeans=True,
        patch_artist=True,
        medianprops={"color": canvas.BLACK, "linewidth": 1.2},
        meanprops={"marker": "D", "markerfacecolor": canvas.VERMILLION, "markeredgecolor": "none"},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": canvas.DARK_GREY},
    )
    for place, box in enumerate(boxes["boxes"]):
        box.set(
            facecolor=canvas.SKY_BLUE if place >= len(means) - 3 else canvas.LIGHT_GREY,
            linewidth=0.6,
        )
    labels = [f"{str(policy).upper()}  {mean:.1f}" for policy, mean in means.items()]
    axes.set_yticks(range(1, len(means) + 1), labels)
    note = f"{name}. By the mean over the weeks (diamond, number); the three best are coloured."
    finish(axes, "Pure policies", note, x="mean BSLD of a week", log="x", grid="x")
    return figure


def draw_saf(table: pd.DataFrame, name: str) -> Figure:
    """Figures 2, 6, 9 and 12: SAF against the best pure policy of each week."""
    figure = canvas.new_figure(_width(len(table)), 4)
    axes = figure.add_subplot()
    week = table["week"].to_numpy()
    saf, best = table["saf"].to_numpy(), table[list(PURE)].min(axis=1).to_numpy()
    names = table[list(PURE)].idxmin(axis=1)
    axes.vlines(week, best, saf, color=canvas.DARK_GREY, linewidth=1)
    axes.plot(week, saf, "o", color=canvas.BLUE, markersize=4, label="SAF")
    axes.plot(week, best, "D", color=canvas.VERMILLION, markersize=4, label="best pure policy")
    for x, low, high, policy in zip(week, best, saf, names, strict=True):
        if high >= _NAMED * low:
            turned = 90 if len(table) > 60 else 45
            axes.text(x, 0.95 * low, str(policy).upper(), ha="center", va="top", rotation=turned,
                      fontsize=6.5)  # fmt: skip
    note = f"{name}. Named where SAF is worse by {100 * _NAMED - 100:.0f} % or more."
    _weeks(axes, week, "week", "SAF and the best pure policy of each week", note)
    axes.set_ylim(bottom=0.5)
    return figure


def draw_comparison(
    table: pd.DataFrame, name: str, period: str, train: Sequence[int], test: Sequence[int]
) -> Figure:
    """Figures 3, 7, 10, 13 and 15: w*, w*_train, w_greedy, SAF and FCFS week by week."""
    figure = canvas.new_figure(_width(len(table)), 5)
    axes = figure.add_subplot()
    number = table[period].to_numpy()
    for column, (label, colour, marker) in MARKS.items():
        axes.plot(number, table[column], marker, color=colour, markersize=4.5, label=label)
    axes.vlines(number, table["w*"], table["saf"], color=canvas.LIGHT_GREY, linewidth=1, zorder=0)
    top = 1.0
    for part, chosen in (("training", train), ("testing", test)):
        if chosen:
            middle = (chosen[0] + chosen[-1]) / 2
            axes.text(middle, top, part, transform=axes.get_xaxis_transform(), **_PART)
    if train and test:
        axes.axvline(
            (train[-1] + test[0]) / 2, color=canvas.DARK_GREY, linewidth=0.8, linestyle="--"
        )
    _weeks(axes, number, period, f"Mixed and pure policies on each {period}", name)
    return figure


_PART: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 8, "color": canvas.DARK_GREY}


def draw_searches(table: pd.DataFrame, name: str) -> Figure:
    """Figures 5, 8, 11 and 14: the searches over 3 and 6 weights against w* of the grid."""
    figure = canvas.new_figure(_width(len(table)), 5)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1))
    week = table["week"].to_numpy()
    styles = {
        "w*": (canvas.VERMILLION, "D"),
        "xnes3": (canvas.BLUE, "o"),
        "xnes6": (canvas.GREEN, "s"),
    }
    for column, (colour, marker) in styles.items():
        label = "w* of three weights, all vectors of the grid" if column == "w*" else column
        style: dict[str, Any] = {"color": colour, "markersize": 3.5}
        if column == "w*":
            style |= {"markersize": 7, "markerfacecolor": "none"}
        upper.plot(week, table[column], marker, label=label, **style)
        if column != "w*":
            ratio = 100 * (table[column] / table["w*"] - 1)
            lower.plot(week, ratio, marker, **style)
    lower.axhline(0, color=canvas.VERMILLION, linewidth=0.8)
    finish(lower, x="week", y="above w* (%)")
    _weeks(upper, week, "", "Search over three and six weights, and the grid", name)
    return figure


def draw_spaces(
    values: Mapping[int, NDArray[np.float64]], points: NDArray[np.float64], name: str
) -> Figure:
    """Figure 4: mean BSLD over the space of three weights, a row a week.

    The space |q| + |p| + |wait| = 1 is two squares that stand on a corner, one where q <= 0 and one
    where q >= 0; turned by 45 degrees, the weights of p and wait are the diagonals.

    Parameters
    ----------
    values : week -> mean BSLD under all vectors of a grid, (n, n, n) by q, p, wait.
    points : (n,) the values of a weight.
    name : of the trace.
    """
    from matplotlib.colors import LogNorm

    figure = canvas.new_figure(7.6, 3.4 * len(values) + 0.6)
    grid = figure.subplots(len(values), 3, squeeze=False, width_ratios=(1, 1, 0.06))
    for row, (week, cube) in zip(grid, values.items(), strict=True):
        squares = {sign: square(cube, points, sign) for sign in (-1, 1)}
        norm = LogNorm(min(map(np.min, squares.values())), max(map(np.max, squares.values())))
        for axes, (sign, picture) in zip(row[:2], squares.items(), strict=True):
            image = axes.imshow(
                picture, origin="lower", extent=(-1, 1, -1, 1), cmap="cividis_r", norm=norm
            )
            _diagonals(axes, "q ≤ 0" if sign < 0 else "q ≥ 0", f"week {week}")
        _mark_best(row, cube, points)
        bar = figure.colorbar(image, cax=row[2])
        log_ticks(bar.ax.yaxis, (1, 1.5, 2, 3, 5, 7))
        bar.ax.tick_params(labelsize=7)
        bar.set_label("mean BSLD", fontsize=8)
    note = "q: processors, p: requested time, wait: waiting time; large scores first. Dot: least."
    heading_above(figure, f"The space of three weights\n{name}\n{note}")
    return figure


def square(
    cube: NDArray[np.float64], points: NDArray[np.float64], sign: int, pixels: int = 240
) -> NDArray[np.float64]:
    """Return the values over the turned square, (pixels, pixels): from the nearest grid vectors.

    At (x, y) of the square, -1 to 1 each, p = (y - x) / 2 and wait = (x + y) / 2.
    """
    middle = (np.arange(pixels) + 0.5) / pixels * 2 - 1
    x, y = np.meshgrid(middle, middle)
    p, wait = (y - x) / 2, (x + y) / 2
    q = sign * (1 - np.abs(p) - np.abs(wait))
    vectors = np.stack([q, p, wait])
    vectors /= np.abs(vectors).max(axis=0)  # out to where the grid is finest
    places = np.rint((vectors + 1) / 2 * (len(points) - 1)).astype(np.int64)
    picture: NDArray[np.float64] = cube[tuple(places)]
    return picture


def _mark_best(row: Sequence[Axes], cube: NDArray[np.float64], points: NDArray[np.float64]) -> None:
    """Put a dot at the first vector with the least value."""
    vector = points[list(np.unravel_index(int(cube.argmin()), cube.shape))]
    q, p, wait = vector / np.abs(vector).sum()
    axes = row[0] if q < 0 else row[1]
    axes.plot(wait - p, wait + p, "o", color="red", markersize=6, markeredgecolor="white")


def _diagonals(axes: Axes, half: str, week: str) -> None:
    """Name the corners: the weights that are 1 or -1 there."""
    corners = {(-1, 1): "p = 1", (1, 1): "wait = 1", (1, -1): "p = -1", (-1, -1): "wait = -1"}
    for (x, y), text in corners.items():
        side, at = "left" if x < 0 else "right", "bottom" if y > 0 else "top"
        axes.text(x, 1.02 * y, text, ha=side, va=at, fontsize=7, color=canvas.DARK_GREY)
    axes.set(xticks=[], yticks=[], xlabel=half, ylabel=week)


def _width(number: int) -> float:
    """Return the width in inches of a picture with that many weeks."""
    return max(6.5, min(14.0, 2 + 0.13 * number))


def _weeks(axes: Axes, numbers: NDArray[Any], label: str, heading: str, note: str) -> None:
    """Set the axes of a picture by week, and say what it shows."""
    axes.set_xlim(numbers[0] - 1, numbers[-1] + 1)
    axes.locator_params(axis="x", integer=True)
    finish(axes, heading, note, x=label, y="mean BSLD", log="y")
