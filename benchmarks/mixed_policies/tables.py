"""Tables and pictures of the study, ours beside the published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.mixed_policies.items import JOBS, TABLE_2, TABLE_7, TABLES_3_TO_6, THRESHOLDS
from hpcgym.benchmarks.mixed_policies.study import PURE, Floats, Parts, Study, grid
from hpcgym.benchmarks.studies.tables import finish, heading_above, log_ticks
from hpcgym.naming import WEEK_S
from hpcgym.report import canvas
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --- The paper's tables, ours beside its own, as DataFrames ---------------------------------------

#: What of w* a search may be away from it and still count as there.
NEAR = 0.01
_ROUNDING = 1e-9


def jobs(study: Study) -> pd.DataFrame:
    """Table 1: how many jobs, how long and how large."""
    log, week = study.workload, study.workload.submit_time // WEEK_S
    inside = week > 0
    parts = {
        "after cleaning": [log],
        "without week 0": [log.take(inside)],
        "without week 0 and the last": [log.take(inside & (week < week.max()))],
        f"in weeks {min(study.weeks)} to {max(study.weeks)}": list(study.weeks.values()),
    }
    rows: list[tuple[Any, ...]] = []
    for name, of in parts.items():
        run = np.concatenate([part.run_time for part in of])
        size = np.concatenate([part.requested_processors for part in of])
        some = float(run.mean()), float(size.mean()) if len(run) else np.nan
        rows.append((name, len(run), *some))
    if study.trace in JOBS:
        rows.append(("paper, table 1", *map(float, JOBS[study.trace])))
    columns = ["jobs of", "number", "mean run time (s)", "mean processors"]
    return pd.DataFrame(rows, columns=columns).astype({"number": int})


def by_period(
    study: Study, period: str, parts: Parts, optimum: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the mean BSLD of everything on each week or month (the figures' numbers)."""
    table = pd.DataFrame(study.pure(parts).T, columns=list(PURE), index=pd.Index(list(parts)))
    if optimum is not None:
        table = table.join(optimum.drop(columns="seconds"))
    table.insert(0, "jobs", [len(part) for part in parts.values()])
    return table.rename_axis(period).reset_index()


def grids(study: Study, found: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return how many vectors were tried, and what that took, over processes and earlier runs."""
    rows = []
    for period, optimum in found.items():
        points = study.covers()[period][1]
        vectors = len(grid(points).weights)
        rows.append(
            {
                "of": f"{period}s",
                "values of a weight": points,
                "different vectors": vectors,
                "number": len(optimum),
                "schedules": vectors * len(optimum),
                "seconds of computing": float(optimum["seconds"].sum()),
            }
        )
    return pd.DataFrame(rows)


def half_of_months(study: Study) -> tuple[list[int], list[int]]:
    """Return the months of training, the first ten or the first half, and of testing."""
    numbers = list(study.months)
    half = min(10, len(numbers) // 2)
    return numbers[:half], numbers[half:]


def split(
    table: pd.DataFrame,
    halves: tuple[Sequence[int], Sequence[int]],
    published: Mapping[str, tuple[float, float]] | None = None,
) -> pd.DataFrame:
    """Table 2: sums over training and testing, with gains on FCFS in percent, beside the paper's.

    Rows are in the order of our training sums. In the first week, which has none before it,
    w_greedy is FCFS: nothing was learned.

    Parameters
    ----------
    table : of :func:`by_period`.
    halves : numbers of the weeks or months of training and of testing.
    published : the paper's sums, if there are any.
    """
    names, period = [*PURE], table.columns[0]
    if "w_greedy" in table:
        table = table.assign(w_greedy=table["w_greedy"].fillna(table["fcfs"]))
        names = ["w*", "w*_train", "w_greedy", *names]
    columns: dict[str, Mapping[str, float]] = {}
    for place, (half, chosen) in enumerate(zip(("train", "test"), halves, strict=True)):
        sums = table[table[period].isin(chosen)][names].sum()
        ours = {name: float(sums[name]) for name in names}
        columns |= {half: ours, f"{half}: gain %": gains(ours)}
        if published:
            paper = {name: values[place] for name, values in published.items()}
            columns[f"{half}: paper"] = paper
            columns[f"{half}: paper's gain %"] = gains(paper)
            columns[f"{half}: ours / paper"] = {name: ours[name] / paper[name] for name in
                                                ours.keys() & paper.keys()}  # fmt: skip
    found = pd.DataFrame(columns).reindex(names).sort_values("train")
    return found.rename_axis("policy").reset_index()


def split_of_weeks(study: Study, weekly: pd.DataFrame) -> pd.DataFrame:
    """Return table 2 of a trace."""
    published = None if study.quick else TABLE_2.get(study.trace)
    return split(weekly, (study.train, study.test), published)


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
        gained, order = gains(ours), sorted(ours, key=ours.__getitem__)
        paper = {name: values[column] for name, values in published.items()}
        if paper and threshold is not None:
            fcfs = published["fcfs"][0]
            values = sorted(paper.values())
            values.remove(fcfs)
            others = [name for name in order if name != "fcfs"]
            paper = {"fcfs": fcfs, **dict(zip(others, values, strict=True))}
        for place, name in enumerate(order, start=1):
            row = {
                "threshold (s)": "none" if threshold is None else f"{threshold:,}",
                "place": place,
                "policy": name,
                "ours": ours[name],
                "gain %": gained[name],
            }
            if paper:
                row["paper"] = paper[name]
                row["paper's gain %"] = 100 * (1 - paper[name] / published["fcfs"][0])
                row["ours / paper"] = ours[name] / paper[name]
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
    jobs = log.take(np.sort(np.argsort(-log.run_time, kind="stable")[: len(printed)]))
    names = ["job_number", "submit_time", "run_time", "requested_processors", "requested_time"]
    table = pd.DataFrame({name: jobs.columns[name] for name in names})
    table = table.sort_values("run_time", ascending=False, kind="stable")
    same = [tuple(row) == of for row, of in zip(table[names[:4]].to_numpy().tolist(), printed,
                                                 strict=False)]  # fmt: skip
    kept = table["job_number"].isin(study.workload.job_number)
    heads = ["job", "submit time (s)", "run time (s)", "processors", "requested time (s)"]
    table = table.rename(columns=dict(zip(names, heads, strict=True))).astype({"job": str})
    return table.assign(
        **{
            "as in the paper": np.where(same, "yes", "no"),
            "kept by cleaning": np.where(kept, "yes", "no"),
        }
    ).reset_index(drop=True)


def gains(sums: Mapping[str, float]) -> dict[str, float]:
    """Return by how many percent each sum is below that of FCFS."""
    return {name: 100 * (1 - value / sums["fcfs"]) for name, value in sums.items()}


def searches(best: pd.Series, found: Mapping[str, Mapping[int, Floats]]) -> pd.DataFrame:
    """Section 8.1.2: XNES against w* of three features, over all weeks, by evaluations of a week.

    Three shares of weeks: those at w* or below, those at most 1 % above it, and those within 1 % of
    it either way, whose result is the same.

    Parameters
    ----------
    best : w* by week.
    found : name of a search -> evaluations -> least mean BSLD of each week.
    """
    rows = []
    for name, budgets in found.items():
        for budget, bsld in budgets.items():
            ratio = bsld / best.to_numpy()
            above = ratio <= (1 + NEAR) * (1 + _ROUNDING)
            same = above & (ratio >= (1 - NEAR) / (1 + _ROUNDING))
            rows.append(
                {
                    "search": name,
                    "evaluations a week": budget,
                    "sum": float(bsld.sum()),
                    "sum of w*": float(best.sum()),
                    "share of weeks at w* or below": float((ratio <= 1 + _ROUNDING).mean()),
                    f"share at most {NEAR} above w*": float(above.mean()),
                    f"share within {NEAR} of w*, either way": float(same.mean()),
                    "largest ratio to w*": float(ratio.max()),
                    "mean ratio to w*": float(ratio.mean()),
                }
            )
    return pd.DataFrame(rows)


def order_agreement(ours: Sequence[float], paper: Sequence[float]) -> tuple[int, int]:
    """Return how many pairs of values have the same order in both, and the number of pairs."""
    pairs = list(combinations(zip(ours, paper, strict=True), 2))
    return sum((a[0] < b[0]) == (a[1] < b[1]) for a, b in pairs), len(pairs)


# --- The paper's figures, drawn from the tables ---------------------------------------------------

#: Column of a table by week -> what it is called, its colour and marker.
Marks = Mapping[str, tuple[str, str, str]]
#: Figures 3, 7, 10, 13 and 15.
MIXED: Marks = {
    "fcfs": ("FCFS", canvas.DARK_GREY, "x"),
    "saf": ("SAF", canvas.BLUE, "o"),
    "w_greedy": ("w_greedy: the best of the one before (mean over ties)", canvas.ORANGE, "^"),
    "w*_train": ("w*_train: the best of the training part", canvas.GREEN, "s"),
    "w*": ("w*: the best of this one", canvas.VERMILLION, "D"),
}
#: Figures 2, 6, 9 and 12.
BEST: Marks = {
    "saf": ("SAF", canvas.BLUE, "o"),
    "best": ("best pure policy", canvas.VERMILLION, "D"),
}
#: Figures 5, 8, 11 and 14.
SEARCHED: Marks = {
    "w*": ("w* of three weights, all vectors of the grid", canvas.VERMILLION, "D"),
    "xnes3": ("xnes3", canvas.BLUE, "o"),
    "xnes6": ("xnes6", canvas.GREEN, "s"),
}

#: Numbers of the weeks or months of training and of testing.
Halves = tuple[Sequence[int], Sequence[int]]

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
        of_best = place >= len(means) - 3
        box.set(facecolor=canvas.SKY_BLUE if of_best else canvas.LIGHT_GREY, linewidth=0.6)
    labels = [f"{str(policy).upper()}  {mean:.1f}" for policy, mean in means.items()]
    axes.set_yticks(range(1, len(means) + 1), labels)
    note = f"{name}. By the mean over the weeks (diamond, number); the three best are coloured."
    finish(axes, "Pure policies", note, x="mean BSLD of a week", log="x", grid="x")
    return figure


def draw_periods(
    table: pd.DataFrame,
    marks: Marks,
    heading: str,
    name: str,
    halves: Halves = ((), ()),
) -> Figure:
    """Draw a table of :func:`by_period` by week or month: figures 2, 3, 5 and those of other logs.

    With SAF and the best pure policy alone, the latter is named where it is clearly better.
    """
    period = str(table.columns[0])
    table = table.assign(best=table[list(PURE)].min(axis=1))
    number = table[period].to_numpy()
    width = max(6.5, min(14.0, 2 + 0.13 * len(table)))
    figure = canvas.new_figure(width, 5 if len(marks) > 2 else 4)
    axes = figure.add_subplot()
    for column, (label, colour, marker) in marks.items():
        axes.plot(number, table[column], marker, color=colour, markersize=4.5, label=label)
    least, most = ("w*", "saf") if "w*" in marks else ("best", "saf")
    axes.vlines(number, table[least], table[most], color=canvas.LIGHT_GREY, linewidth=1, zorder=0)
    if len(marks) == 2:
        policies = table[list(PURE)].idxmin(axis=1)
        for x, low, high, policy in zip(number, table["best"], table["saf"], policies, strict=True):
            if high >= _NAMED * low:
                turned = 90 if len(table) > 60 else 45
                axes.text(x, 0.95 * low, str(policy).upper(), ha="center", va="top",
                          rotation=turned, fontsize=6.5)  # fmt: skip
        name += f". Named where SAF is worse by {100 * _NAMED - 100:.0f} % or more."
        axes.set_ylim(bottom=0.5)
    for part, chosen in zip(("training", "testing"), halves, strict=True):
        if chosen:
            middle = (chosen[0] + chosen[-1]) / 2
            axes.text(middle, 1.0, part, transform=axes.get_xaxis_transform(), ha="center",
                      va="top", fontsize=8, color=canvas.DARK_GREY)  # fmt: skip
    if all(halves):
        between = (halves[0][-1] + halves[1][0]) / 2
        axes.axvline(between, color=canvas.DARK_GREY, linewidth=0.8, linestyle="--")
    axes.set_xlim(number[0] - 1, number[-1] + 1)
    axes.locator_params(axis="x", integer=True)
    finish(axes, heading, name, x=period, y="mean BSLD", log="y")
    return figure


def draw_spaces(values: Mapping[int, Floats], points: Floats, name: str) -> Figure:
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
    panels = figure.subplots(len(values), 3, squeeze=False, width_ratios=(1, 1, 0.06))
    for row, (week, cube) in zip(panels, values.items(), strict=True):
        squares = {sign: square(cube, points, sign) for sign in (-1, 1)}
        norm = LogNorm(min(map(np.min, squares.values())), max(map(np.max, squares.values())))
        for axes, (sign, picture) in zip(row[:2], squares.items(), strict=True):
            image = axes.imshow(
                picture, origin="lower", extent=(-1, 1, -1, 1), cmap="cividis_r", norm=norm
            )
            _diagonals(axes, "q ≤ 0" if sign < 0 else "q ≥ 0", f"week {week}")
        best = points[list(np.unravel_index(int(cube.argmin()), cube.shape))]
        q, p, wait = best / np.abs(best).sum()
        dot = {"color": "red", "markersize": 6, "markeredgecolor": "white"}
        row[0 if q < 0 else 1].plot(wait - p, wait + p, "o", **dot)
        bar = figure.colorbar(image, cax=row[2])
        log_ticks(bar.ax.yaxis, (1, 1.5, 2, 3, 5, 7))
        bar.ax.tick_params(labelsize=7)
        bar.set_label("mean BSLD", fontsize=8)
    note = "q: processors, p: requested time, wait: waiting time; large scores first. Dot: least."
    heading_above(figure, f"The space of three weights\n{name}\n{note}")
    return figure


def square(cube: Floats, points: Floats, sign: int, pixels: int = 240) -> Floats:
    """Return the values over the turned square, (pixels, pixels): from the nearest grid vectors.

    At (x, y) of the square, -1 to 1 each, p = (y - x) / 2 and wait = (x + y) / 2.
    """
    middle = (np.arange(pixels) + 0.5) / pixels * 2 - 1
    x, y = np.meshgrid(middle, middle)
    p, wait = (y - x) / 2, (x + y) / 2
    q = sign * (1 - np.abs(p) - np.abs(wait))
    vectors = np.stack([q, p, wait])
    vectors /= np.abs(vectors).max(axis=0)  # out to where the grid is finest
    places: NDArray[np.int64] = np.rint((vectors + 1) / 2 * (len(points) - 1)).astype(np.int64)
    picture: Floats = cube[tuple(places)]
    return picture


def _diagonals(axes: Axes, half: str, week: str) -> None:
    """Name the corners: the weights that are 1 or -1 there."""
    corners = {(-1, 1): "p = 1", (1, 1): "wait = 1", (1, -1): "p = -1", (-1, -1): "wait = -1"}
    for (x, y), text in corners.items():
        side, at = "left" if x < 0 else "right", "bottom" if y > 0 else "top"
        axes.text(x, 1.02 * y, text, ha=side, va=at, fontsize=7, color=canvas.DARK_GREY)
    axes.set(xticks=[], yticks=[], xlabel=half, ylabel=week)
