"""The whole study: tables and pictures beside the published values, and a report that grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym import Workload, load_workload
from hpcgym.benchmarks.mixed_policies import items, study
from hpcgym.benchmarks.mixed_policies.items import JOBS, TABLE_2, TABLE_7, TABLES_3_TO_6, THRESHOLDS
from hpcgym.benchmarks.mixed_policies.study import PURE, Floats, Parts, Study, grid
from hpcgym.benchmarks.studies import tables
from hpcgym.benchmarks.studies.harness import Folder, folder_name
from hpcgym.report import canvas
from hpcgym.units import WEEK_S

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


@tables.of_rows
def grids(study: Study, optima: Mapping[str, pd.DataFrame]) -> tables.Rows:
    """Return how many vectors were tried, and what that took, over processes and earlier runs."""
    points = {period: values for period, (_, values) in study.covers().items()}
    for period, optimum in optima.items():
        row: dict[str, Any] = {"of": f"{period}s", "number": len(optimum)}
        row |= {"values of a weight": points[period]}
        row |= {"different vectors": len(grid(points[period]).weights)}
        yield row | {"seconds of computing": float(optimum["seconds"].sum())}


def half_of_months(study: Study) -> Halves:
    """Return the months of training, the first ten or the first half, and of testing."""
    numbers = list(study.months)
    half = min(10, len(numbers) // 2)
    return numbers[:half], numbers[half:]


def split(
    table: pd.DataFrame, halves: Halves, published: Mapping[str, tuple[float, float]] | None = None
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
    sums = pd.DataFrame(columns).reindex(names).sort_values("train")
    return sums.rename_axis("policy").reset_index()


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


@tables.of_rows
def searches(best: pd.Series, least: Mapping[str, Floats]) -> tables.Rows:
    """Section 8.1.2: XNES against w* of three features, over all weeks.

    Two shares of weeks: those within 1 % of w*, either way, whose result is the same, and those at
    most 1 % above it.

    Parameters
    ----------
    best : w* by week.
    least : name of a search -> least mean BSLD of each week.
    """
    for name, bsld in least.items():
        ratio = bsld / best.to_numpy()
        above = ratio <= (1 + NEAR) * (1 + _ROUNDING)
        near = above & (ratio >= (1 - NEAR) / (1 + _ROUNDING))
        row = {"search": name, "sum": float(bsld.sum()), "sum of w*": float(best.sum())}
        row |= {"share within 1 %": float(near.mean())}
        row |= {"share at most 1 % above": float(above.mean())}
        yield row | {"mean ratio": float(ratio.mean()), "largest ratio": float(ratio.max())}


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


def draw_distribution(table: pd.DataFrame, *, heading: str, note: str) -> canvas.Figure:
    """Figure 1: how the weekly mean BSLD of the pure policies is distributed, best mean first."""
    means = table[list(PURE)].mean().sort_values(ascending=False)
    axes = canvas.new_figure(8, 4.6).add_subplot()
    axes.boxplot([table[policy] for policy in means.index], orientation="horizontal", widths=0.6,
                 showmeans=True, meanprops={"marker": "D"}, flierprops={"marker": "."})  # fmt: skip
    labels = [f"{str(policy).upper()}  {mean:.1f}" for policy, mean in means.items()]
    axes.set_yticks(range(1, len(means) + 1), labels)
    note = f"{note}. By the mean over the weeks (diamond, number)."
    tables.finish(axes, heading, note, x="mean BSLD of a week", log="x", grid="x")
    return canvas.figure_of(axes)


def draw_periods(
    table: pd.DataFrame, marks: Marks, tested: Sequence[int] = (), *, heading: str, note: str
) -> canvas.Figure:
    """Draw a table of :func:`by_period` by week or month: figures 2, 3, 5 and those of other logs.

    Weeks or months of testing, from a broken line on, are those after training.
    """
    period = str(table.columns[0])
    table = table.assign(best=table[list(PURE)].min(axis=1))
    number = table[period].to_numpy()
    axes = canvas.new_figure(max(6.5, min(14.0, 2 + 0.13 * len(table))), 4.5).add_subplot()
    for column, (label, colour, marker) in marks.items():
        axes.plot(number, table[column], marker, color=colour, markersize=4.5, label=label)
    least, most = ("w*", "saf") if "w*" in marks else ("best", "saf")
    axes.vlines(number, table[least], table[most], color=canvas.LIGHT_GREY, linewidth=1, zorder=0)
    if tested:
        axes.axvline(tested[0] - 0.5, color=canvas.DARK_GREY, linewidth=0.8, linestyle="--")
    axes.locator_params(axis="x", integer=True)
    tables.finish(axes, heading, note, x=period, y="mean BSLD", log="y")
    return canvas.figure_of(axes)


def draw_spaces(
    values: Mapping[int, Floats], points: Floats, *, heading: str, note: str
) -> canvas.Figure:
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
        tables.log_ticks(bar.ax.yaxis, (1, 1.5, 2, 3, 5, 7))
    names = "q: processors, p: requested time, wait: waiting time; large scores first. Dot: least."
    corners = "Corners, from the upper left: p = 1, wait = 1, p = -1, wait = -1."
    tables.heading_above(figure, f"{heading}\n{note}\n{names}\n{corners}")
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


#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(__file__, threshold=study.THRESHOLD_S)
#: The table of all traces and readings.
_ALL = "how-close"

#: Name of a picture -> heading, and the figures of the paper that it stands for.
_PICTURES = {
    "distribution": "Weekly mean BSLD of the pure policies (figure 1)",
    "saf": "SAF and the best pure policy of each week (figures 2, 6, 9, 12)",
    "weeks": "Mixed and pure policies on each week (figures 3, 7, 10, 13)",
    "spaces": "The space of three weights (figure 4)",
    "searches": "XNES and all vectors of three weights (figures 5, 8, 11, 14)",
    "months": "Mixed and pure policies on each month (figure 15)",
}


@dataclass
class Findings:
    """What has been computed of one trace under one reading so far.

    Attributes
    ----------
    study, source : the trace and the reading; what the trace was loaded from.
    folder : where the study is run.
    tables : name -> table; each is a CSV file too.
    pictures : name -> file, relative to the folder.
    """

    study: study.Study
    source: str
    folder: Folder
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)

    def place(self, name: str) -> str:
        """Return the name of a table or picture of these findings, in a folder of their own."""
        return f"{folder_name(f'{self.study.trace}-{self.study.reading.name}')}/{name}"

    def draw(self, name: str, draw: Any, *what: Any) -> None:
        """Draw a picture with its heading, of what it takes before and after these."""
        trace = self.study.trace if len(self.study.trace) <= 40 else f"{self.study.trace[:39]}…"
        note = f"{trace}, reading: {self.study.reading.name}, threshold {study.THRESHOLD_S:,} s"
        figure = draw(*what, heading=_PICTURES[name], note=note)
        self.pictures[name] = self.folder.picture(figure, self.place(f"{name}.png"))


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    reading: str = "numbers",
    points: int = study.POINTS,
    quick: bool = False,
) -> tuple[Path, list[Findings]]:
    """Run the study and write tables, pictures and a report; what was done before is kept.

    Pure policies are simulated under both readings, everything else under the one given.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run; results of steps are in its folder ``steps``. Its executor does
        the long part, all vectors on each week; the rest is done here, on all threads.
    reading : "text" or "numbers", see ``study.READINGS``.
    points : values of each of the three weights.
    quick : a small cut.

    Returns
    -------
    The file of the report, and the findings of each trace, those under ``reading`` first.

    Raises
    ------
    HpcgymError : a source or reading that is none, a file that cannot be written, or no matplotlib.
    """
    names = [reading, *(name for name in study.READINGS if name != reading)]
    rules: dict[str, Any] = {"folder": folder.path, "points": points, "quick": quick}
    findings = [
        Findings(study.Study(source, name, progress=folder.progress, **rules), source, folder)
        for source in sources
        for name in names
    ]
    folder.begin(HEAD)
    for of_trace in findings:
        add_pure(of_trace)
    path = write(findings, folder)
    for of_trace in findings:
        if of_trace.study.reading.name == reading:
            study.cover_on(of_trace.study, of_trace.source, folder)
            add_mixed(of_trace)
            write(findings, folder)
    return path, findings


def add_pure(findings: Findings) -> None:
    """Simulate the pure policies: tables 1 and 3 to 7, figures 1 and 2."""
    of = findings.study
    of.progress(f"{of.trace}, {of.reading.name}: pure policies", 0, 1)
    weekly = by_period(of, "week", of.weeks)
    findings.tables |= {
        "jobs": jobs(of),
        "thresholds": thresholds(of),
        "split": split_of_weeks(of, weekly),
        "weekly": weekly,
    }
    if of.trace in items.TABLE_7:
        findings.tables["longest"] = longest(of, load_workload(findings.source, clean="none"))
    findings.draw("distribution", draw_distribution, weekly)
    findings.draw("saf", draw_periods, weekly, BEST)


def add_mixed(findings: Findings) -> None:
    """Try all vectors of three weights, and searches: table 2, figures 3 to 5 and 15."""
    of, tried = findings.study, {}
    halves = {"week": (of.train, of.test), "month": half_of_months(of)}
    for period, (parts, points) in of.covers().items():
        tried[period] = study.optimum(of, parts, halves[period][0], points)
        table = findings.tables[f"{period}ly"] = by_period(of, period, parts, tried[period])
        findings.draw(f"{period}s", draw_periods, table, MIXED, halves[period][1])
    findings.tables["grid"] = grids(of, tried)
    if "month" in tried:
        findings.tables["months"] = split(findings.tables["monthly"], halves["month"])
    found_by = {name: study.searched(of, name) for name in study.SEARCHES}
    weekly = findings.tables["weekly"] = findings.tables["weekly"].assign(**found_by)
    findings.tables["searches"] = searches(tried["week"]["w*"], found_by)
    findings.tables["split"] = split_of_weeks(of, weekly)
    findings.draw("searches", draw_periods, weekly, SEARCHED)
    mapped = items.MAPPED.get(of.trace, set()) & of.weeks.keys() or [*of.weeks][:4]
    cubes = {
        week: study.covered(of, week, of.weeks[week], of.points)["values"]
        for week in sorted(mapped)
    }
    findings.draw("spaces", draw_spaces, cubes, study.grid(of.points).points)


# --- The report -----------------------------------------------------------------------------------


def write(findings: Sequence[Findings], folder: Folder) -> Path:
    """Write all tables so far, and a report of them; return its file."""
    made, texts = {_ALL: closeness(findings)}, {_ALL: TEXTS[_ALL]}
    pictures: dict[str, Path] = {}
    for of_trace in findings:
        said = f"{of_trace.study.trace}, reading {of_trace.study.reading.name}"
        texts |= {
            of_trace.place(name): (f"{said}: {text[0]}", text[1]) for name, text in TEXTS.items()
        }
        made |= {of_trace.place(name): table for name, table in of_trace.tables.items()}
        pictures |= {f"{said}: {_PICTURES[name]}": file for name, file in of_trace.pictures.items()}
    cut = "few weeks and a coarse grid" * any(of_trace.study.quick for of_trace in findings)
    lines = [f"- **{reading.name}**: {reading.meaning}." for reading in study.READINGS.values()]
    head = "\n".join([HEAD, "Two readings of the paper:\n", *lines, ""])
    return folder.publish(head, made, texts, pictures, cut, begin="")[0]


@tables.of_rows
def closeness(findings: Sequence[Findings]) -> tables.Rows:
    """Return how near the sums without a threshold are to the paper's, by trace and reading.

    Those of other traces than the paper's have no row.
    """
    for of_trace in findings:
        table = of_trace.tables["thresholds"]
        if "paper" in table:
            free = table[table["threshold (s)"] == "none"].set_index("policy")
            ratio = free["ours / paper"]
            same, pairs = order_agreement(free["ours"].tolist(), free["paper"].tolist())
            row: dict[str, Any] = {
                "trace": of_trace.study.trace,
                "reading": of_trace.study.reading.name,
            }
            row |= {"FCFS: ratio": float(ratio["fcfs"]), "least ratio": float(ratio.min())}
            row |= {"geometric mean ratio": float(np.exp(np.log(ratio).mean()))}
            yield row | {"largest ratio": float(ratio.max()), "same order": f"{same} of {pairs}"}
