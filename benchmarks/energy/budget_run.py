"""The study of energy budgets: what is published, tables beside it, pictures, report, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.energy import budget as simulated
from hpcgym.benchmarks.energy.budget import (
    BASELINE,
    BUDGETS,
    DRAWN_W,
    LARGE,
    MECHANISMS,
    READINGS,
    RECKONED_IDLE_W,
    RECKONED_W,
    TEXT,
    weeks_of,
)
from hpcgym.benchmarks.studies import items, tables
from hpcgym.benchmarks.studies.harness import Folder, grouped, load_jobs, load_sources, task_of
from hpcgym.errors import HpcgymError
from hpcgym.report import canvas
from hpcgym.version import __version__
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Table 5.1: measure -> mechanism -> change when idle nodes are switched off [%].
TABLE_5_1 = {
    measure: {mechanism: value for mechanism, (value,) in of.items()}
    for measure, of in items.published_values(__file__)["table 5.1"].items()
}

# --- The tables of the study of energy budgets ----------------------------------------------------

#: reading -> trace -> week -> what :func:`budget.measure` returns.
Outcomes = Mapping[str, Mapping[str, Mapping[int, Mapping[str, Any]]]]

MEASURES = ("utilisation", "AVEbsld", "energy", "jobs started")
RELATIVE = ("utilisation", "AVEbsld", "jobs started")  # to EASY; energy is to the possible
Row = Mapping[str, Any]
Setting = tuple[str, bool]  # mechanism, shutdown
SETTINGS: list[Setting] = [(name, shutdown) for name in MECHANISMS for shutdown in (False, True)]

#: (mechanism, shutdown, budget) -> measure -> trace -> a number for each week.
Cells = Mapping[tuple[str, bool, float], Mapping[str, Mapping[str, NDArray[np.float64]]]]


def cells_of(traces: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> Cells:
    """Return what figures 5.1 to 5.3 show: over EASY's of the same week, but for the energy."""
    cells: dict[tuple[str, bool, float], dict[str, dict[str, list[float]]]] = {}
    for trace, weeks in traces.items():
        for outcome in weeks.values():
            easy = outcome["rows"][0]
            for row in outcome["rows"]:
                cell = cells.setdefault((row["mechanism"], row["shutdown"], row["budget"]), {})
                for name in MEASURES:
                    value = row[name] / easy[name] if name in RELATIVE else row[name]
                    cell.setdefault(name, {}).setdefault(trace, []).append(value)
    return {
        key: {name: {t: np.array(v) for t, v in of.items()} for name, of in cell.items()}
        for key, cell in cells.items()
    }


def budgets_of(cells: Cells) -> list[float]:
    """Return the budgets, the highest first."""
    return sorted({budget for name, _, budget in cells if name != BASELINE}, reverse=True)


def mean(cells: Cells, setting: Setting, budget: float, measure: str) -> float:
    """Return the mean over traces of their means over weeks."""
    return float(np.mean([v.mean() for v in cells[(*setting, budget)][measure].values()]))


def percent(budget: float) -> str:
    """Return a budget in words."""
    return f"{budget:.0%}"


def figures(outcomes: Outcomes) -> pd.DataFrame:
    """Return the values of figures 5.1 to 5.3: of each trace, and of all."""
    cells, traces = cells_of(outcomes[TEXT]), list(outcomes[TEXT])
    rows = []
    for trace, (key, cell) in product(["all", *traces] if traces[1:] else traces, cells.items()):
        row: dict[str, Any] = {"trace": trace, "mechanism": key[0]}
        row |= {"shutdown": "yes" if key[1] else "no", "budget": percent(key[2])}
        for name in MEASURES:
            groups = [v for t, v in cell[name].items() if trace in ("all", t)]
            beside = "EASY" if name in RELATIVE else "possible"
            row[f"{name} / {beside}"] = float(np.mean([v.mean() for v in groups]))
            if name in ("utilisation", "AVEbsld"):
                row[f"interval of {name}"] = tables.interval_of_groups(groups)
        rows.append(row)
    return pd.DataFrame(rows)


def table_5_1(outcomes: Outcomes) -> pd.DataFrame:
    """Return table 5.1: under each reading, and as written of each trace."""
    parts = dict(outcomes.items())
    if len(outcomes[TEXT]) > 1:
        parts |= {f"{TEXT}, {trace}": {trace: of} for trace, of in outcomes[TEXT].items()}
    rows = []
    for reading, traces in parts.items():
        for measure, mechanism in product(TABLE_5_1, MECHANISMS):
            groups = [
                np.array([_change(week["rows"], mechanism, measure) for week in weeks.values()])
                for weeks in traces.values()
            ]
            ours, theirs = float(np.mean([g.mean() for g in groups])), TABLE_5_1[measure][mechanism]
            bounds = tables.interval_of_groups(groups, 1)
            rows.append(
                {
                    "reading": reading,
                    "traces": " ".join(traces),
                    "measure": measure,
                    "mechanism": mechanism,
                    "published %": theirs,
                    "ours %": ours,
                    "interval": bounds,
                    "median %": float(np.median(np.concatenate(groups))),
                    "the same sign": _same_sign(ours, theirs, bounds),
                }
            )
    return pd.DataFrame(rows)


def _same_sign(ours: float, theirs: float, bounds: str) -> str:
    """Return whether two changes have the same sign: undecided if the interval of ours has 0."""
    if bounds != "-":
        low, high = map(float, bounds.strip("[]").split(","))
        if low <= 0 <= high:
            return "undecided"
    return "yes" if ours * theirs > 0 else "no"


def _change(rows: Sequence[Row], mechanism: str, measure: str) -> float:
    """Return how a measure changes with shutdown in a week, the mean over budgets [%]."""
    found = {(r["shutdown"], r["budget"]): r[measure] for r in rows if r["mechanism"] == mechanism}
    budgets = {budget for _, budget in found}
    return 100 * float(np.mean([found[True, b] / found[False, b] - 1 for b in budgets]))


def of_weeks(outcomes: Outcomes) -> pd.DataFrame:
    """Return the weeks, and what EASY makes of them."""
    return pd.DataFrame(
        {
            "trace": trace,
            "week": str(week),
            "jobs": outcome["jobs"],
            "share in use, by the log": outcome["logged"],
            "share in use, EASY": outcome["rows"][0]["utilisation"],
            "AVEbsld, EASY": outcome["rows"][0]["AVEbsld"],
        }
        for trace, weeks in outcomes[TEXT].items()
        for week, outcome in weeks.items()
    )


def statements(outcomes: Outcomes) -> pd.DataFrame:
    """Return what the text of chapter 5 says, and whether it is so here.

    Of each reading, or of each trace as one of its own; without any there is no row.
    """
    found = {
        name: [check(cells_of(traces), _rows(traces)) for _, _, check in _STATEMENTS]
        for name, traces in outcomes.items()
    }
    said = _STATEMENTS if found else ()
    return tables.statements_table("Glesser 2016, chapter 5", said, found)


def line(budget: Any) -> Any:
    """Return the black line of figure 5.1 at budgets: 3/7 of the utilisation falls with them."""
    return 3 / 7 * budget + 4 / 7


def _rows(traces: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> list[Row]:
    return [row for weeks in traces.values() for of in weeks.values() for row in of["rows"]]


def _named(setting: Setting) -> str:
    return f"{setting[0]}{' with shutdown' if setting[1] else ''}"


def _within(cells: Cells, low: float, high: float) -> list[float]:
    return [budget for budget in budgets_of(cells) if low <= budget <= high]


def _first(cells: Cells, _: Sequence[Row], name: str, low: float, high: float) -> tables.Finding:
    """Return whether a mechanism has most utilisation, with and without shutdown, at budgets."""
    words, so = [], True
    for budget, shutdown in product(_within(cells, low, high), (False, True)):
        ours = {one: mean(cells, (one, shutdown), budget, "utilisation") for one in MECHANISMS}
        best = max(ours, key=lambda one: ours[one])
        so &= ours[name] >= ours[best]
        which = "all alike" if min(ours.values()) == ours[best] else best
        words.append(f"{percent(budget)}{' with shutdown' if shutdown else ''}: {which}")
    return ("; ".join(words), so) if words else tables.NOT_SIMULATED


def _above(
    cells: Cells, _: Sequence[Row], settings: Sequence[Setting], low: float, high: float
) -> tables.Finding:
    """Return whether some mechanisms are above the line at budgets."""
    points = {
        (setting, budget): mean(cells, setting, budget, "utilisation") - line(budget)
        for setting in settings
        for budget in _within(cells, low, high)
    }
    if not points:
        return tables.NOT_SIMULATED
    below = [f"{_named(s)} at {percent(b)}" for (s, b), gap in points.items() if gap <= 0]
    words = f"{len(points) - len(below)} of {len(points)} points above"
    return words + (f"; below: {', '.join(below)}" if below else ""), not below


_high_budgets = partial(_first, name="energyBud", low=0.75, high=0.95)
_low_budgets = partial(_first, name="reducePC", low=0.0, high=0.5)
_all_at_90 = partial(_above, settings=SETTINGS, low=0.85, high=0.95)
_BUD = [("energyBud", False), ("energyBud", True)]
_bud_at_80 = partial(_above, settings=_BUD, low=0.75, high=0.85)
_reduced_when_low = partial(_above, settings=[("reducePC", True)], low=0.0, high=0.5)


def _best_bsld(cells: Cells, _: Sequence[Row]) -> tables.Finding:
    budgets = _within(cells, 0.0, 0.95)
    best = [
        min(SETTINGS, key=lambda setting, b=budget: mean(cells, setting, b, "AVEbsld"))  # type: ignore[misc]
        for budget in budgets
    ]
    wins = best.count(("energyBud", True))
    others = {_named(one) for one in best} - {_named(("energyBud", True))}
    words = f"at {wins} of {len(budgets)} budgets below 100 %"
    return words + (f"; else {', '.join(sorted(others))}" if others else ""), wins == len(budgets)


def _comparable(cells: Cells, _: Sequence[Row]) -> tables.Finding:
    ratios = [
        mean(cells, ("powercap", False), b, "AVEbsld")
        / mean(cells, ("energyBud", False), b, "AVEbsld")
        for b in _within(cells, 0.0, 0.95)
    ]
    return f"{min(ratios):.2f} to {max(ratios):.2f} times", 0.5 < min(ratios) <= max(ratios) < 2


def _saves(cells: Cells, _: Sequence[Row]) -> tables.Finding:
    less = [
        mean(cells, (name, True), b, "energy") < mean(cells, (name, False), b, "energy")
        for name, b in product(MECHANISMS, budgets_of(cells))
    ]
    return f"in {sum(less)} of {len(less)}", all(less)


def _consumes(cells: Cells, _: Sequence[Row]) -> tables.Finding:
    ordered = []
    for shutdown, b in product((False, True), _within(cells, 0.0, 0.95)):
        names = ("energyBud", "reducePC", "powercap")
        first, second, third = (mean(cells, (name, shutdown), b, "energy") for name in names)
        ordered.append(first >= second >= third)
    return f"in {sum(ordered)} of {len(ordered)}", sum(ordered) > len(ordered) / 2


def _gained(cells: Cells, measure: str, name: str) -> float:
    """Return by how many percent shutdown changes a measure, the mean over budgets."""
    with_it, without = (
        np.mean([mean(cells, (name, on), b, measure) for b in budgets_of(cells)])
        for on in (True, False)
    )
    return float(100 * (with_it / without - 1))


def _most_of_it(cells: Cells, _: Sequence[Row]) -> tables.Finding:
    used, late = (
        {name: _gained(cells, measure, name) for name in MECHANISMS}
        for measure in ("utilisation", "AVEbsld")
    )
    form = "{:+.1f} %"
    words = f"utilisation: {tables.listed(used, form)}; AVEbsld: {tables.listed(late, form)}"
    return words, max(used.values()) == used["energyBud"] and (
        min(late.values()) == late["energyBud"]
    )


def _like_easy(_: Cells, rows: Sequence[Row]) -> tables.Finding:
    full = [
        row
        for row in rows
        if row["budget"] >= 1 and not row["shutdown"] and row["mechanism"] != BASELINE
    ]
    if not full:
        return tables.NOT_SIMULATED
    same = sum(row["same"] for row in full)
    return f"{same} of {len(full)} schedules", same == len(full)


def _respected(_: Cells, rows: Sequence[Row]) -> tables.Finding:
    """Return whether all budgets are kept that any schedule keeps.

    If nothing is switched off, one below what idle processors use (49 %, section 5.4.3) is not.
    """
    over = [row for row in rows if row["exceeded_j"] > 0]
    never = [r for r in over if not r["shutdown"] and r["budget"] < RECKONED_IDLE_W / RECKONED_W]
    words = f"exceeded in {len(over) - len(never)} of {len(rows) - len(never)} runs"
    if never:
        words += f", and in {len(never)} in which idle processors alone use more"
    return words, len(over) == len(never)


#: What is said, how it is published, what finds ours.
_STATEMENTS: tuple[tuple[str, str, Callable[[Cells, Sequence[Row]], tables.Finding]], ...] = (
    ("5.3.2: an unbounded budget gives EASY's schedule", "so", _like_easy),
    ("5.3.1: the budget is strictly respected", "so", _respected),
    ("figure 5.1: energyBud has most utilisation, budgets of 90 and 80 %", "so", _high_budgets),
    ("figure 5.1: reducePC has, budgets of 50 % and less", "so", _low_budgets),
    ("figure 5.1: at 90 % all points are above the line", "so", _all_at_90),
    ("figure 5.1: at 80 % those of energyBud are", "so", _bud_at_80),
    ("figure 5.1: reducePC with shutdown is, for low budgets", "so", _reduced_when_low),
    ("figure 5.2: energyBud with shutdown has the best AVEbsld", "of all", _best_bsld),
    ("figure 5.2: powercap and energyBud without shutdown", "comparable", _comparable),
    ("figure 5.3: with shutdown less energy is consumed", "so", _saves),
    ("figure 5.3: energyBud consumes more than reducePC, that more than powercap", "so", _consumes),
    ("table 5.1: energyBud gains most by shutdown", "utilisation, AVEbsld", _most_of_it),
)


# --- The pictures of the study of energy budgets --------------------------------------------------

_COLOURS = dict(zip(MECHANISMS, (canvas.BLUE, canvas.VERMILLION, canvas.GREEN), strict=True))
#: Measure -> figure, label.
FIGURES = {
    "utilisation": ("5.1", "utilisation / EASY's"),
    "AVEbsld": ("5.2", "AVEbsld / EASY's"),
    "energy": ("5.3", "energy / possible energy of the week"),
}


def draw(cells: Cells, measure: str, what: str) -> Figure:
    """Draw a measure over the budget, a line for each mechanism with and without shutdown.

    Figure 5.1 has the line on which the utilisation falls as the budget of the three days.
    """
    figure = canvas.new_figure(7, 4.4)
    axes = figure.add_subplot()
    budgets = budgets_of(cells)
    for setting in SETTINGS:
        mechanism, shutdown = setting
        axes.plot(
            [100 * budget for budget in budgets],
            [mean(cells, setting, budget, measure) for budget in budgets],
            "o-" if shutdown else "o--",
            markersize=4,
            markerfacecolor=_COLOURS[mechanism] if shutdown else "white",
            color=_COLOURS[mechanism],
            label=f"{mechanism}, {'shutdown' if shutdown else 'no shutdown'}",
        )
    if measure == "utilisation":
        ends = np.array([max(budgets), min(budgets)])
        axes.plot(100 * ends, line(ends), color=canvas.BLACK, linewidth=1, label="3/7 budget + 4/7")
    axes.invert_xaxis()
    number, label = FIGURES[measure]
    below, log = "budget (% of what busy processors use)", "y" if measure == "AVEbsld" else ""
    tables.finish(axes, f"As figure {number}: {what}", x=below, y=label, log=log)
    return figure


# --- The report on energy budgets -----------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(__file__, "budget.md")


# --- The whole study ------------------------------------------------------------------------------

#: Of a cut, and of that on a large machine; how many weeks the thesis has of a trace.
QUICK_BUDGETS, QUICK_LARGE = (0.9, 0.6, 0.3), (0.6,)
WEEKS = 5


def reproduce(
    sources: Sequence[str],
    folder: Folder,
    *,
    weeks: int = WEEKS,
    seed: int = 0,
    quick: bool = False,
) -> tuple[Path, dict[str, pd.DataFrame]]:
    """Run the study and write tables, pictures and a report; what was simulated before is kept.

    Parameters
    ----------
    sources : traces of the archive, files or generators.
    folder : where the study is run; outcomes of simulations are in its folder ``tasks``.
    weeks : so many of each trace's busy weeks, drawn at random; 0: all of them.
    seed : of the draw.
    quick : a small cut, which is compared with nothing published.

    Returns
    -------
    The file of the report, and the tables by name: see :data:`TEXTS`.

    Raises
    ------
    HpcgymError : a source that cannot be read or has no whole week, two of the same name, no
        weeks, a file that cannot be written, a simulation that fails, or no matplotlib.
    """
    if weeks < 0:
        raise HpcgymError(f"weeks must be a whole number of at least 0, not {weeks}")
    number = 1 if quick else weeks or None
    if seed < 0:
        raise HpcgymError(f"seed must be a whole number of at least 0, not {seed}")
    folder.begin(HEAD)
    tasks = _tasks(sources, number, seed, quick)
    found = folder.run(simulated.measure, tasks, "weeks")
    outcomes: Outcomes = grouped(tasks, found, "reading", "trace", "week")
    by_trace = {trace: {trace: weeks} for trace, weeks in outcomes[TEXT].items()}
    words = [(name, reading.meaning) for name, reading in READINGS.items()]
    made = {
        "statements": statements(outcomes),
        "statements-by-trace": statements(by_trace if len(by_trace) > 1 else {}),
        "5.1": table_5_1(outcomes),
        "figures": figures(outcomes),
        "weeks": of_weeks(outcomes),
        "readings": pd.DataFrame(words, columns=["reading", "meaning"]),
    }
    cells, traces = cells_of(outcomes[TEXT]), ", ".join(outcomes[TEXT])
    pictures = {
        f"Figure {figure}: {label}": folder.picture(
            draw(cells, measured, traces), f"figure-{figure}.png"
        )
        for measured, (figure, label) in FIGURES.items()
    }
    chosen = "the upper quarter of each trace by the log"
    if number is not None:
        chosen += f", of which {number} were drawn with the seed {seed}"
    head = HEAD.format(
        version=__version__,
        reckoned=RECKONED_W,
        drawn=DRAWN_W,
        traces=traces,
        weeks=chosen,
    )
    return folder.publish(
        head, made, TEXTS, pictures, "a week of each trace, three budgets" * quick
    )


def _tasks(
    sources: Sequence[str], number: int | None, seed: int, quick: bool
) -> list[dict[str, Any]]:
    """Return the tasks, those of large machines last."""

    def budgets(workload: Workload) -> list[float]:
        large = workload.processors > LARGE
        return list((QUICK_LARGE if large else QUICK_BUDGETS) if quick else BUDGETS)

    loaded = sorted(load_sources(sources, load_jobs).items(), key=lambda of: of[1].processors)
    return [
        task_of(source, workload, reading=reading, week=week, budgets=budgets(workload))
        for source, workload in loaded
        for reading in ([TEXT] if workload.processors > LARGE else READINGS)
        for week in weeks_of(workload, number, seed)
    ]


# --- The items of Glesser 2016, chapter 5, and what makes their verdicts --------------------------


def _table_5_1(stored: items.Stored) -> items.Verdict:
    """Judge the signs that weeks decide, under the first reading; those under others are named."""
    table = stored.table("table-5.1", "reading", "the same sign")
    found = {
        str(name): part["the same sign"].value_counts()
        for name, part in table.groupby("reading", sort=False)
    }
    if TEXT not in found:
        raise items.NotThereError("no readings")
    so = {name: (int(of.get("yes", 0)), int(of.get("no", 0))) for name, of in found.items()}
    words = [f"{name} {yes} of {yes + no}" for name, (yes, no) in so.items() if name != TEXT]
    yes, no = so[TEXT]
    told = f"{int(found[TEXT].get('undecided', 0))} more are undecided: their intervals have 0;"
    return items.of_count(
        yes, yes + no, "published signs", f"{told} other readings: {', '.join(words)}"
    )


def _of_traces(judge: items.Judge) -> items.Judge:
    """Return what says of which traces a verdict is, too."""

    def judged(stored: items.Stored) -> items.Verdict:
        verdict = judge(stored)
        weeks = stored.table("table-weeks", "trace", "week").groupby("trace", sort=False).size()
        words = ", ".join(f"{number} weeks of {trace}" for trace, number in weeks.items())
        return items.Verdict(verdict.verdict, f"{verdict.why}; {words} (there 5 of 3 traces)")

    return judged


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 5.1": _of_traces(_table_5_1),
    **{
        item: _of_traces(items.said("table-statements", "Glesser 2016, chapter 5", [begin]))
        for item, begin in (
            ("section 5.3", "5.3"),
            ("figure 5.1", "figure 5.1"),
            ("figure 5.2", "figure 5.2"),
            ("figure 5.3", "figure 5.3"),
            ("table 5.1, text", "table 5.1"),
        )
    },
}
