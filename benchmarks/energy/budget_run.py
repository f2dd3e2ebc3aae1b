"""The study of energy budgets: what is published, tables beside it, pictures, report, verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hpcgym import Workload
from hpcgym.benchmarks.energy import budget
from hpcgym.benchmarks.studies import harness, items, tables
from hpcgym.errors import check_whole
from hpcgym.report import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Table 5.1: measure -> mechanism -> change when idle nodes are switched off [%].
TABLE_5_1 = {
    measure: {mechanism: value for mechanism, (value,) in of.items()}
    for measure, of in items.published_values(__file__)["table 5.1"].items()
}

# --- The tables of the study of energy budgets ----------------------------------------------------

RELATIVE = ["utilisation", "AVEbsld", "jobs started"]  # to EASY; energy is to the possible
MEASURES = [*RELATIVE, "energy"]


@tables.of_rows
def rows_of(tasks: harness.Tasks, found: harness.Tasks) -> tables.Rows:
    """Return what :func:`budget.measure` found, a row for each run: over EASY's of the week."""
    for task, outcome in zip(tasks, found, strict=True):
        known = {name: task[name] for name in ("reading", "trace", "week")}
        easy = outcome["rows"][0]
        for row in outcome["rows"]:
            yield (known | row | {name: row[name] / easy[name] for name in RELATIVE})


@tables.of_rows
def figures(rows: pd.DataFrame) -> tables.Rows:
    """Return the values of figures 5.1 to 5.3: of each trace, and of all, as written."""
    written = rows[rows["reading"] == budget.TEXT]
    parts = {str(trace): part for trace, part in written.groupby("trace", sort=False)}
    for trace, part in (({"all": written} if len(parts) > 1 else {}) | parts).items():
        for key, runs in part.groupby(["mechanism", "shutdown", "budget"], sort=False):
            row: dict[str, Any] = {"trace": trace, "mechanism": key[0]}
            row |= {"shutdown": "yes" if key[1] else "no", "budget": f"{key[2]:.0%}"}
            for name in MEASURES:
                groups = by_trace(runs.set_index("trace")[name])
                beside = "EASY" if name in RELATIVE else "possible"
                row[f"{name} / {beside}"] = float(np.mean([v.mean() for v in groups]))
                if name in ("utilisation", "AVEbsld"):
                    row[f"interval of {name}"] = tables.interval_of_groups(groups)
            yield row


def by_trace(values: Any) -> list[tables.Floats]:
    """Return the values of each trace."""
    return [of.to_numpy() for _, of in values.groupby("trace", sort=False)]


def changes(rows: pd.DataFrame) -> Any:
    """Return how measures change with shutdown, the mean over budgets [%].

    A row for each week, a column for each measure and mechanism.
    """
    runs = rows[rows["mechanism"] != budget.BASELINE]
    runs = runs.set_index(["trace", "week", "mechanism", "budget", "shutdown"])[MEASURES]
    change = runs.xs(True, level="shutdown") / runs.xs(False, level="shutdown") - 1
    return 100 * change.groupby(["trace", "week", "mechanism"], sort=False).mean().unstack()


@tables.of_rows
def table_5_1(rows: pd.DataFrame) -> tables.Rows:
    """Return table 5.1: under each reading, and as written of each trace."""
    parts = {str(reading): part for reading, part in rows.groupby("reading", sort=False)}
    if parts[budget.TEXT]["trace"].nunique() > 1:
        by_name = parts[budget.TEXT].groupby("trace", sort=False)
        parts |= {f"{budget.TEXT}, {name}": of for name, of in by_name}
    for reading, part in parts.items():
        found = changes(part)
        for measure, mechanism in product(TABLE_5_1, budget.MECHANISMS):
            groups, theirs = by_trace(found[measure, mechanism]), TABLE_5_1[measure][mechanism]
            ours = float(np.mean([values.mean() for values in groups]))
            ends = tables.ends_of_groups(groups)
            traces = " ".join(dict.fromkeys(part["trace"]))
            row: dict[str, Any] = {"reading": reading, "traces": traces, "measure": measure}
            row |= {"mechanism": mechanism, "published %": theirs}
            row |= {"ours %": ours, "interval": tables.interval_of_groups(groups, 1)}
            row |= {"median %": float(np.median(np.concatenate(groups)))}
            yield row | {"the same sign": _same_sign(ours, theirs, ends)}


def _same_sign(ours: float, theirs: float, ends: tuple[float, float] | None) -> str:
    """Return whether two changes have the same sign: undecided if the interval of ours has 0."""
    if ends is not None and ends[0] <= 0 <= ends[1]:
        return "undecided"
    return "yes" if ours * theirs > 0 else "no"


@tables.of_rows
def of_weeks(tasks: harness.Tasks, found: harness.Tasks) -> tables.Rows:
    """Return the weeks, and what EASY makes of them."""
    for task, outcome in zip(tasks, found, strict=True):
        if task["reading"] == budget.TEXT:
            easy = outcome["rows"][0]
            row = {"trace": task["trace"], "week": str(task["week"]), "jobs": outcome["jobs"]}
            row |= {"share in use, by the log": outcome["logged"]}
            row |= {"share in use, EASY": easy["utilisation"]}
            yield row | {"AVEbsld, EASY": easy["AVEbsld"]}


# --- What the text says ---------------------------------------------------------------------------


ITEMS = ("section 5.3", "figure 5.1", "figure 5.2", "figure 5.3", "table 5.1, text")
SENTENCES = items.csv_rows(__file__, "sentences.csv", ITEMS)


def means_of(rows: pd.DataFrame) -> Any:
    """Return means over traces of means over weeks: rows (budget, shutdown), measures by mechanism.

    The lowest budget is first.
    """
    keys = ["budget", "shutdown", "mechanism"]
    runs = rows[rows["mechanism"] != budget.BASELINE]
    means = runs.groupby(["trace", *keys])[MEASURES].mean().groupby(keys).mean()
    return means.unstack("mechanism")


def frames_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what the sentences are about, of the runs of some traces under a reading.

    Returns
    -------
    frames : "runs"; "points", of each budget with and without shutdown: "energy_powercap" and the
        like, and the black "line" of figure 5.1; "budgets", of each: "energy_powercap_on" and
        "..._off"; "changes", as in table 5.1 [%].
    """
    points = means_of(rows)
    points.columns = [f"{measure}_{name}" for measure, name in points]
    budgets = points.unstack("shutdown")
    budgets.columns = [f"{name}_{'on' if shutdown else 'off'}" for name, shutdown in budgets]
    points["line"] = line(points.index.get_level_values("budget"))
    change = changes(rows).groupby("trace").mean().mean()
    change.index = [f"{measure}_{name}".replace("jobs ", "") for measure, name in change.index]
    changed = change.to_frame().T
    return {"runs": rows, "points": points, "budgets": budgets, "changes": changed}


def statements(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return what the text of chapter 5 says, and whether it is so here.

    Of each reading, or as written of each trace: ``by`` names the column.
    """
    found = {
        str(name): tables.checked(SENTENCES, frames_of(part))
        for name, part in rows.groupby(by, sort=False)
    }
    return tables.statements_table(SENTENCES, found)


def line(budget: Any) -> Any:
    """Return the black line of figure 5.1 at budgets: 3/7 of the utilisation falls with them."""
    return 3 / 7 * budget + 4 / 7


# --- The pictures of the study of energy budgets --------------------------------------------------

_COLOURS = dict(zip(budget.MECHANISMS, (canvas.BLUE, canvas.VERMILLION, canvas.GREEN), strict=True))
#: Measure -> figure, label.
FIGURES = {
    "utilisation": ("5.1", "utilisation / EASY's"),
    "AVEbsld": ("5.2", "AVEbsld / EASY's"),
    "energy": ("5.3", "energy / possible energy of the week"),
}


def draw(of: Any, measure: str, what: str) -> Figure:
    """Draw a measure over the budget, a line for each mechanism with and without shutdown.

    Figure 5.1 has the line on which the utilisation falls as the budget of the three days.
    """
    figure = canvas.new_figure(7, 4.4)
    axes = figure.add_subplot()
    of = of.unstack("shutdown")
    percent = 100 * of.index.to_numpy()
    for (mechanism, shutdown), values in of.items():
        colour = _COLOURS[mechanism]
        face, words = (colour, "shutdown") if shutdown else ("white", "no shutdown")
        style: dict[str, Any] = {"markersize": 4, "markerfacecolor": face, "color": colour}
        dashes = "o-" if shutdown else "o--"
        axes.plot(percent, values, dashes, label=f"{mechanism}, {words}", **style)
    if measure == "utilisation":
        falls = line(percent / 100)
        axes.plot(percent, falls, color=canvas.BLACK, linewidth=1, label="3/7 budget + 4/7")
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
    folder: harness.Folder,
    *,
    weeks: int = WEEKS,
    seed: int = 0,
    quick: bool = False,
) -> harness.Studied:
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
    number = 1 if quick else check_whole("weeks", weeks, 0) or None
    check_whole("seed", seed, 0)
    folder.begin(HEAD)
    tasks = _tasks(sources, number, seed, quick)
    found = folder.run(budget.measure, tasks, "weeks")
    rows = rows_of(tasks, found)
    written = rows[rows["reading"] == budget.TEXT]
    words = [(name, reading.meaning) for name, reading in budget.READINGS.items()]
    made = {
        "statements": statements(rows, "reading"),
        "5.1": table_5_1(rows),
        "figures": figures(rows),
        "weeks": of_weeks(tasks, found),
        "readings": pd.DataFrame(words, columns=["reading", "meaning"]),
    }
    if written["trace"].nunique() > 1:
        made["statements-by-trace"] = statements(written, "trace")
    means, traces = means_of(written), ", ".join(dict.fromkeys(written["trace"]))
    pictures = folder.pictures(
        (f"Figure {figure}: {label}", f"figure-{figure}.png", draw(means[one], one, traces))
        for one, (figure, label) in FIGURES.items()
    )
    chosen = "the upper quarter of each trace by the log"
    if number is not None:
        chosen += f", of which {number} were drawn with the seed {seed}"
    head = HEAD.format(
        reckoned=budget.RECKONED_W, drawn=budget.DRAWN_W, traces=traces, weeks=chosen
    )
    cut = "a week of each trace, three budgets" * quick
    return folder.publish(head, made, TEXTS, pictures, cut)


def _tasks(sources: Sequence[str], number: int | None, seed: int, quick: bool) -> list[Any]:
    """Return the tasks, those of large machines last."""

    def budgets(workload: Workload) -> list[float]:
        large = workload.processors > budget.LARGE
        return list((QUICK_LARGE if large else QUICK_BUDGETS) if quick else budget.BUDGETS)

    loaded = sorted(
        harness.load_sources(sources, harness.load_jobs).items(), key=lambda of: of[1].processors
    )
    return [
        harness.task_of(source, workload, reading=reading, week=week, budgets=budgets(workload))
        for source, workload in loaded
        for reading in ([budget.TEXT] if workload.processors > budget.LARGE else budget.READINGS)
        for week in budget.weeks_of(workload, number, seed)
    ]


# --- The items of Glesser 2016, chapter 5, and what makes their verdicts --------------------------


def _table_5_1(stored: items.Stored) -> items.Verdict:
    """Judge the signs under the first reading, by intervals; those under others are told."""
    table = stored.table("table-5.1", "reading", "measure", "mechanism", "the same sign")
    how = {"yes": "held", "no": "contradicted", "undecided": "undecided"}
    rows = table[table["reading"] == budget.TEXT]
    names = rows["measure"] + " of " + rows["mechanism"]
    signs = dict(zip(names, rows["the same sign"].map(how), strict=True))
    words = [
        f"{name}: {(part['the same sign'] == 'yes').sum()} of {len(part)} held"
        for name, part in table.groupby("reading", sort=False)
        if name in budget.READINGS and name != budget.TEXT
    ]
    found = items.of_intervals(signs, "published signs")
    return found.noted(f"other readings: {', '.join(words)}")


def _weeks(stored: items.Stored) -> str:
    """Say of which traces verdicts are."""
    weeks = stored.table("table-weeks", "trace", "week").groupby("trace", sort=False).size()
    words = ", ".join(f"{number} weeks of {trace}" for trace, number in weeks.items())
    return f"{words} (there 5 of 3 traces)"


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 5.1": items.noted(_table_5_1, _weeks),
    **{item: items.noted(items.said(item), _weeks) for item in ITEMS},
}
