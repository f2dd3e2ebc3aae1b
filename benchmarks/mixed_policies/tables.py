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
    from matplotlib.figure import Figure

# --- The paper's tables, ours beside its own, as DataFrames ---------------------------------------

#: Numbers of the weeks or months of training and of testing.
Halves = tuple[Sequence[int], Sequence[int]]

#: What of w* a search may be away from it and still count as there.
NEAR = 0.01
_ROUNDING = 1e-9


def jobs(study: Study) -> pd.DataFrame:
    """Table 1: how many jobs, how long and how large."""
    log, week = study.workload, study.workload.submit_time // WEEK_S
    kept = {
        "after cleaning": week >= 0,
        "without week 0": week > 0,
        "without week 0 and the last": (week > 0) & (week < week.max()),
    }
    parts = {name: log.take(inside) for name, inside in kept.items()}
    rows: list[tuple[Any, ...]] = [
        (name, len(part), part.run_time.mean(), part.requested_processors.mean())
        for name, part in parts.items()
    ]
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
    points = {period: values for period, (_, values) in study.covers().items()}
    return pd.DataFrame(
        {
            "of": f"{period}s",
            "number": len(optimum),
            "values of a weight": points[period],
            "different vectors": len(grid(points[period]).weights),
            "seconds of computing": float(optimum["seconds"].sum()),
        }
        for period, optimum in found.items()
    )


def half_of_months(study: Study) -> Halves:
    """Return the months of training, the first ten or the first half, and of testing."""
    numbers = list(study.months)
    half = min(10, len(numbers) // 2)
    return numbers[:half], numbers[half:]


def split(
    table: pd.DataFrame,
    halves: Halves,
    published: Mapping[str, tuple[float, float]] | None = None,
) -> pd.DataFrame:
    """Table 2: sums over training and testing, beside the paper's.

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
    columns: dict[str, pd.Series] = {}
    for place, (half, chosen) in enumerate(zip(("train", "test"), halves, strict=True)):
        columns[half] = table[table[period].isin(chosen)][names].sum()
        if published:
            paper = pd.Series({name: values[place] for name, values in published.items()})
            columns |= {f"{half}: paper": paper, f"{half}: ours / paper": columns[half] / paper}
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
    tables = []
    for column, threshold in enumerate(THRESHOLDS):
        sums = pd.Series(study.pure(study.weeks, threshold).sum(axis=1), PURE, name="ours")
        table = sums.rename_axis("policy").sort_values().reset_index()
        table.insert(0, "threshold (s)", "none" if threshold is None else f"{threshold:,}")
        if published:
            paper = {name: values[column] for name, values in published.items()}
            if threshold is not None:
                fcfs = published["fcfs"][0]
                values = sorted(paper.values())
                values.remove(fcfs)
                others = [name for name in table["policy"] if name != "fcfs"]
                paper = {"fcfs": fcfs, **dict(zip(others, values, strict=True))}
            table["paper"] = table["policy"].map(paper)
            table["ours / paper"] = table["ours"] / table["paper"]
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


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
    table = pd.DataFrame(
        {
            "job": jobs.job_number,
            "submit time (s)": jobs.submit_time,
            "run time (s)": jobs.run_time,
            "processors": jobs.requested_processors,
            "requested time (s)": jobs.requested_time,
        }
    ).sort_values("run time (s)", ascending=False, kind="stable")
    same = [tuple(row) == of for row, of in zip(table.iloc[:, :4].to_numpy().tolist(), printed,
                                                 strict=False)]  # fmt: skip
    kept = table["job"].isin(study.workload.job_number)
    words = {"as in the paper": np.where(same, "yes", "no")}
    words["kept by cleaning"] = np.where(kept, "yes", "no")
    return table.assign(**words).astype({"job": str}).reset_index(drop=True)


def searches(best: pd.Series, found: Mapping[str, Floats]) -> pd.DataFrame:
    """Section 8.1.2: XNES against w* of three features, over all weeks.

    Two shares of weeks: those within 1 % of w*, either way, whose result is the same, and those at
    most 1 % above it.

    Parameters
    ----------
    best : w* by week.
    found : name of a search -> least mean BSLD of each week.
    """
    rows = []
    for name, bsld in found.items():
        ratio = bsld / best.to_numpy()
        above = ratio <= (1 + NEAR) * (1 + _ROUNDING)
        rows.append(
            {
                "search": name,
                "sum": float(bsld.sum()),
                "sum of w*": float(best.sum()),
                "share within 1 %": float((above & (ratio >= (1 - NEAR) / (1 + _ROUNDING))).mean()),
                "share at most 1 % above": float(above.mean()),
                "mean ratio": float(ratio.mean()),
                "largest ratio": float(ratio.max()),
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


def draw_distribution(table: pd.DataFrame, *, heading: str, note: str) -> Figure:
    """Figure 1: how the weekly mean BSLD of the pure policies is distributed, best mean first."""
    means = table[list(PURE)].mean().sort_values(ascending=False)
    figure = canvas.new_figure(8, 4.6)
    axes = figure.add_subplot()
    axes.boxplot([table[policy] for policy in means.index], orientation="horizontal", widths=0.6,
                 showmeans=True, meanprops={"marker": "D"}, flierprops={"marker": "."})  # fmt: skip
    labels = [f"{str(policy).upper()}  {mean:.1f}" for policy, mean in means.items()]
    axes.set_yticks(range(1, len(means) + 1), labels)
    note = f"{note}. By the mean over the weeks (diamond, number)."
    finish(axes, heading, note, x="mean BSLD of a week", log="x", grid="x")
    return figure


def draw_periods(
    table: pd.DataFrame, marks: Marks, tested: Sequence[int] = (), *, heading: str, note: str
) -> Figure:
    """Draw a table of :func:`by_period` by week or month: figures 2, 3, 5 and those of other logs.

    Weeks or months of testing, from a broken line on, are those after training.
    """
    period = str(table.columns[0])
    table = table.assign(best=table[list(PURE)].min(axis=1))
    number = table[period].to_numpy()
    figure = canvas.new_figure(max(6.5, min(14.0, 2 + 0.13 * len(table))), 4.5)
    axes = figure.add_subplot()
    for column, (label, colour, marker) in marks.items():
        axes.plot(number, table[column], marker, color=colour, markersize=4.5, label=label)
    least, most = ("w*", "saf") if "w*" in marks else ("best", "saf")
    axes.vlines(number, table[least], table[most], color=canvas.LIGHT_GREY, linewidth=1, zorder=0)
    if tested:
        axes.axvline(tested[0] - 0.5, color=canvas.DARK_GREY, linewidth=0.8, linestyle="--")
    axes.locator_params(axis="x", integer=True)
    finish(axes, heading, note, x=period, y="mean BSLD", log="y")
    return figure


def draw_spaces(values: Mapping[int, Floats], points: Floats, *, heading: str, note: str) -> Figure:
    """Figure 4: mean BSLD over the space of three weights, a row a week.

    The space |q| + |p| + |wait| = 1 is two squares that stand on a corner, one where q <= 0 and one
    where q >= 0; turned by 45 degrees, the weights of p and wait are the diagonals.

    Parameters
    ----------
    values : week -> mean BSLD under all vectors of a grid, (n, n, n) by q, p, wait.
    points : (n,) the values of a weight.
    heading, note : above the picture.
    """
    from matplotlib.colors import LogNorm

    figure = canvas.new_figure(7.6, 3.4 * len(values) + 0.6)
    panels = figure.subplots(len(values), 2, squeeze=False)
    for row, (week, cube) in zip(panels, values.items(), strict=True):
        norm = LogNorm(cube.min(), cube.max())
        for axes, sign in zip(row, (-1, 1), strict=True):
            image = axes.imshow(
                square(cube, points, sign),
                origin="lower", extent=(-1, 1, -1, 1), cmap="cividis_r", norm=norm,
            )  # fmt: skip
            axes.set(xticks=[], yticks=[], xlabel="q ≤ 0" if sign < 0 else "q ≥ 0",
                     ylabel=f"week {week}")  # fmt: skip
        best = points[list(np.unravel_index(int(cube.argmin()), cube.shape))]
        q, p, wait = best / np.abs(best).sum()
        row[0 if q < 0 else 1].plot(wait - p, wait + p, "o", color="red", markeredgecolor="white")
        bar = figure.colorbar(image, ax=list(row), label="mean BSLD")
        log_ticks(bar.ax.yaxis, (1, 1.5, 2, 3, 5, 7))
    names = "q: processors, p: requested time, wait: waiting time; large scores first. Dot: least."
    corners = "Corners, from the upper left: p = 1, wait = 1, p = -1, wait = -1."
    heading_above(figure, f"{heading}\n{note}\n{names}\n{corners}")
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
