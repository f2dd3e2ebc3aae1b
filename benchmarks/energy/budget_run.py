"""The study of energy budgets: tables beside what is published, pictures, report, verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.energy import budget
from hpcgym.benchmarks.energy.budget import BASELINE, MECHANISMS, line
from hpcgym.benchmarks.studies import harness, items, tables
from hpcgym.benchmarks.studies.harness import Folder, Studied
from hpcgym.report import canvas

#: Table 5.1 [%], by measure and mechanism: as printed, and in the authors' notebook; energies of
#: single weeks [J] there; and utilisation over thirty weeks, read to 0.002 off its picture that is
#: like figure 5.1 (cell 22): by what free processors are, and the budget [%], of MECHANISMS.
PUBLISHED = items.published_values(__file__)
TABLE_5_1 = PUBLISHED["table 5.1"]
_NOTES = items.notes_of(__file__)
QUICK_BUDGETS = (0.9, 0.6, 0.3)

# --- Tables ---------------------------------------------------------------------------------------

MEASURES = ("AVEbsld", "utilisation", "jobs started", "energy")
RELATIVE = MEASURES[:3]  # to EASY in the figures; energy is to what may be drawn
_RUN = ["mechanism", "shutdown", "budget"]


@tables.of_rows
def rows_of(tasks: harness.Tasks, outcomes: harness.Tasks) -> tables.Rows:
    """Return what was measured, a row for each run; "... / EASY" is over that of EASY.

    The "trace" is what stands before "_1w_" in the name of a week.
    """
    for task, outcome in zip(tasks, outcomes, strict=True):
        trace = task["trace"].partition("_1w_")[0]
        known = {"trace": trace, "week": task["trace"], "jobs": outcome["jobs"]}
        for row in outcome["rows"]:
            easy = {f"{name} / EASY": row[name] / outcome["rows"][0][name] for name in RELATIVE}
            yield known | row | easy


def parts_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs of all weeks, if they are of several traces, and of each trace."""
    parts = {str(trace): part for trace, part in rows.groupby("trace", sort=False)}
    return ({"all": rows} if len(parts) > 1 else {}) | parts


def by_trace(values: pd.Series) -> list[tables.Floats]:
    """Return the values of each trace, a level of the index."""
    return [of.to_numpy() for _, of in values.groupby("trace", sort=False)]


@tables.of_rows
def figures(rows: pd.DataFrame) -> tables.Rows:
    """Return the values of figures 5.1 to 5.3, with 95 % intervals of resampled weeks."""
    for trace, part in parts_of(rows).items():
        for key, runs in part.set_index("trace").groupby(_RUN, sort=False):
            row: dict[str, Any] = {"trace": trace, "mechanism": key[0]}
            row |= {"shutdown": "yes" if key[1] else "no", "budget": f"{key[2]:.0%}"}
            for name in (*(f"{of} / EASY" for of in RELATIVE), "energy"):
                groups = by_trace(runs[name])
                row[name] = float(np.mean([values.mean() for values in groups]))
                row[f"interval of {name}"] = tables.interval_of_groups(groups)
            yield row


def changes(rows: pd.DataFrame) -> tuple[Any, Any]:
    """Return how measures change when free processors are switched off [%], in two reductions.

    Returns
    -------
    by_text : the change of each run, its mean over budgets: a row for each week, a column for each
        measure and mechanism (section 5.4.4).
    by_program : the change of the mean over weeks, its mean over budgets, divided by three: by
        measure and mechanism. The authors' program divides the sum over 8 budgets by 24, the number
        of budgets and mechanisms.
    """
    runs = rows[rows["mechanism"] != BASELINE]
    runs = runs.set_index(["trace", "week", *_RUN])[list(MEASURES)]

    def change(values: Any, over: list[str]) -> Any:
        by_run = values.xs(True, level="shutdown") / values.xs(False, level="shutdown") - 1
        return 100 * by_run.groupby(over, sort=False).mean()

    by_text = change(runs, ["trace", "week", "mechanism"]).unstack()
    means = runs.groupby(_RUN, sort=False).mean()
    return by_text, change(means, ["mechanism"]).unstack() / len(MECHANISMS)


@tables.of_rows
def table_5_1(rows: pd.DataFrame) -> tables.Rows:
    """Return table 5.1 in both reductions."""
    for trace, part in parts_of(rows).items():
        by_text, by_program = changes(part)
        for name, mechanism in product(TABLE_5_1, MECHANISMS):
            groups, theirs = by_trace(by_text[name, mechanism]), TABLE_5_1[name][mechanism]
            ours = float(np.mean([values.mean() for values in groups]))
            row: dict[str, Any] = {"trace": trace, "measure": name, "mechanism": mechanism}
            row |= dict(zip(("published %", "their notebook %"), theirs, strict=True))
            row |= {"by the program %": by_program[name, mechanism]}
            row |= {"by the text %": ours, "interval": tables.interval_of_groups(groups, 1)}
            ends = tables.ends_of_groups(groups)
            yield row | {"the same sign": _same_sign(ours, theirs[0], ends)}


def _same_sign(ours: float, theirs: float, ends: tuple[float, float] | None) -> str:
    """Return whether two changes have the same sign: undecided if the interval of ours has 0."""
    if ends is not None and ends[0] <= 0 <= ends[1]:
        return "undecided"
    return "yes" if ours * theirs > 0 else "no"


_ENERGIES = {"week_j": "week", "period_j": "three days"}


@tables.of_rows
def published_weeks(rows: pd.DataFrame) -> tables.Rows:
    """Return energies of single runs beside those in the authors' repository [J]."""
    keys = ["week", "mechanism", "shutdown", "budget %"]
    runs = rows.assign(**{"budget %": (100 * rows["budget"]).astype(int)})
    known = {tuple(run[key] for key in keys): run for run in runs.to_dict("records")}
    for week, mechanisms in PUBLISHED["weeks"].items():
        for mechanism, states in mechanisms.items():
            for name, (percent, *theirs) in states.items():
                key = week, mechanism, name.startswith("off"), percent
                for (what, words), joules in zip(_ENERGIES.items(), theirs, strict=False):
                    if key in known:
                        ours = known[key][what]
                        row = dict(zip(keys, key, strict=True)) | {"energy of the": words}
                        row |= {"published J": joules, "ours J": ours}
                        yield row | {"off by %": 100 * (ours / joules - 1)}


@tables.of_rows
def of_weeks(rows: pd.DataFrame) -> tables.Rows:
    """Return the weeks, and what EASY makes of them."""
    for row in rows[rows["mechanism"] == BASELINE].to_dict("records"):
        yield {name: row[name] for name in ("trace", "week", "jobs", "utilisation", "AVEbsld")}


# --- What the text says ---------------------------------------------------------------------------

ITEMS = ("section 5.3", "figure 5.1", "figure 5.2", "figure 5.3", "table 5.1, text")
#: The same where it can be, as free processors use 49 % (section 5.4.3).
POSSIBLE = "section 5.3, possible"
SENTENCES = items.csv_rows(__file__, "sentences.csv", [*ITEMS, POSSIBLE])


def means_of(rows: pd.DataFrame) -> Any:
    """Return means over traces of means over weeks: rows (budget, shutdown), measures by mechanism.

    The lowest budget is first. Measures are over EASY's, but for the energy.
    """
    keys = ["budget", "shutdown", "mechanism"]
    runs = rows[rows["mechanism"] != BASELINE]
    named = {f"{name} / EASY": name for name in RELATIVE}
    runs = runs.drop(columns=list(RELATIVE)).rename(columns=named)
    means = runs.groupby(["trace", *keys])[list(MEASURES)].mean().groupby(keys).mean()
    return means.unstack("mechanism")


def frames_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what the sentences are about, of the runs of some traces.

    Returns
    -------
    frames : "runs"; "points", of each budget with and without shutdown: "energy_powercap" and the
        like, and the black "line" of figure 5.1; "budgets", of each: "energy_powercap_on" and
        "..._off"; "changes", as in table 5.1 by the text [%].
    """
    points = means_of(rows)
    points.columns = [f"{measure}_{name}" for measure, name in points]
    budgets = points.unstack("shutdown")
    budgets.columns = [f"{name}_{'on' if shutdown else 'off'}" for name, shutdown in budgets]
    points["line"] = line(points.index.get_level_values("budget"))
    change = changes(rows)[0].groupby("trace").mean().mean()
    change.index = [f"{measure}_{name}".replace("jobs ", "") for measure, name in change.index]
    return {"runs": rows, "points": points, "budgets": budgets, "changes": change.to_frame().T}


def statements(rows: pd.DataFrame) -> pd.DataFrame:
    """Return what the text of chapter 5 says, and whether it is so: of all weeks, of each trace."""
    findings = {
        name: tables.checked(SENTENCES, frames_of(of)) for name, of in parts_of(rows).items()
    }
    return tables.statements_table(SENTENCES, findings)


# --- Pictures -------------------------------------------------------------------------------------

_COLOURS = dict(zip(MECHANISMS, (canvas.BLUE, canvas.VERMILLION, canvas.GREEN), strict=True))
#: Measure -> figure, label.
FIGURES = {
    "utilisation": ("5.1", "utilisation / EASY's"),
    "AVEbsld": ("5.2", "AVEbsld / EASY's"),
    "energy": ("5.3", "energy / what may be drawn"),
}


def draw(of: Any, measure: str, what: str) -> canvas.Figure:
    """Draw a measure over the budget, a line for each mechanism with and without shutdown.

    Figure 5.1 has the line on which the utilisation falls as the budget of the three days.
    """
    axes = canvas.new_figure(7, 4.4).add_subplot()
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
    return canvas.figure_of(axes)


# --- The study ------------------------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(__file__, "budget.md")


def reproduce(sources: Sequence[str], folder: Folder, *, quick: bool = False) -> Studied:
    """Run the study; see :mod:`hpcgym.benchmarks.studies.harness`.

    Parameters
    ----------
    sources : weeks, see :func:`budget.load_week`.
    folder : where the study is run.
    quick : three budgets.
    """
    folder.begin(HEAD)
    budgets = list(QUICK_BUDGETS if quick else budget.BUDGETS)
    weeks = harness.load_sources(sources, budget.load_week).items()
    tasks = [
        harness.task_of(source, jobs, budgets=budgets)
        for source, jobs in sorted(weeks, key=lambda week: week[1].processors)
    ]
    rows = rows_of(tasks, folder.run(budget.measure, tasks, "weeks"))
    made = {
        "statements": statements(rows),
        "5.1": table_5_1(rows),
        "published": published_weeks(rows),
        "figures": figures(rows),
        "weeks": of_weeks(rows),
    }
    means, counts = means_of(rows), rows.groupby("trace", sort=False)["week"].nunique()
    what = ", ".join(f"{number} of {trace}" for trace, number in counts.items())
    pictures = folder.pictures(
        (f"Figure {figure}: {label}", f"figure-{figure}.png", draw(means[name], name, what))
        for name, (figure, label) in FIGURES.items()
    )
    watts = {"reckoned": budget.RECKONED_W, "free": budget.RECKONED_FREE_W, "drawn": budget.DRAWN_W}
    head = HEAD.format(**watts, weeks=what)
    return folder.publish(head, made, TEXTS, pictures, "three budgets" * quick)


# --- The items of Glesser 2016, chapter 5, and what makes their verdicts --------------------------


def _table_5_1(stored: items.Stored) -> items.Verdict:
    """Judge the signs by intervals; sizes, in the authors' own reduction, are told."""
    table = stored.table("table-5.1", "trace", "measure", "mechanism", "the same sign")
    rows = table[table["trace"] == table["trace"].iloc[0]]
    how = {"yes": "held", "no": "contradicted", "undecided": "undecided"}
    names = rows["measure"] + " of " + rows["mechanism"]
    signs = dict(zip(names, rows["the same sign"].map(how), strict=True))
    ours = rows["by the program %"]
    words = [
        f"{(rows[theirs] * ours > 0).sum()} of {len(rows)} signs and"
        f" {((rows[theirs] - ours).abs() <= 1).sum()} values within a point as {where}"
        for theirs, where in (("published %", "printed"), ("their notebook %", "in the notebook"))
    ]
    verdict = items.of_intervals(signs, "published signs")
    return verdict.noted(f"as the authors' program reduces it: {', '.join(words)}")


def _published(stored: items.Stored) -> items.Verdict:
    """Judge energies of single weeks."""
    table = stored.table("table-published", "published J", "ours J")
    verdict = items.of_values(table["ours J"], table["published J"], 0, "energies")
    within = (table["off by %"].abs() <= 1).sum()
    return verdict.noted(f"{within} within 1 %")


def _strictly(stored: items.Stored) -> items.Verdict:
    """Judge section 5.3, which contradicts itself if a budget is exceeded only where it must be."""
    verdict, possible = (items.said(item)(stored) for item in ("section 5.3", POSSIBLE))
    if verdict.verdict != possible.verdict == "trend":
        return items.Verdict(items.CONTRADICTION, _NOTES["idle"]).noted(verdict.why)
    return verdict


def _of_authors() -> pd.DataFrame:
    """Return the "points" of the authors' own picture that is like figure 5.1."""
    rows = [(of.startswith("off"), *values) for of, values in PUBLISHED["figure 5.1"].items()]
    names = [f"utilisation_{name}" for name in MECHANISMS]
    points = pd.DataFrame(rows, columns=["shutdown", "budget", *names])
    points[names] /= points.loc[0, names]  # of no bound, as of EASY
    points["budget"] /= 100
    return points.assign(line=line(points["budget"]))


def _figure_5_1(stored: items.Stored) -> items.Verdict:
    """Judge figure 5.1: a contradiction if its sentences are not of the authors' own results."""
    verdict = items.said("figure 5.1")(stored)
    said = [sentence for sentence in SENTENCES if sentence["item"] == "figure 5.1"]
    theirs = tables.checked(said, {"points": _of_authors()})
    so = {sentence["sentence"]: bool(of) for sentence, (_, of) in zip(said, theirs, strict=True)}
    own = items.of_sentences(so)
    why = _NOTES["authors"].format(why=own.why)
    against = items.Verdict(items.CONTRADICTION, why).noted(f"ours: {verdict.why}")
    return verdict if own.verdict == "trend" else against


def _weeks(stored: items.Stored) -> str:
    """Say of which traces verdicts are."""
    weeks = stored.table("table-weeks", "trace", "week").groupby("trace", sort=False).size()
    words = ", ".join(f"{number} weeks of {trace}" for trace, number in weeks.items())
    return f"{words} (the text has 5 of 3 traces, the authors' repository 10)"


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 5.1": items.noted(_table_5_1, _weeks),
    "section 5.4.4, weeks": _published,
    **{item: items.noted(items.said(item), _weeks) for item in ITEMS},
    "section 5.3": items.noted(_strictly, _weeks),
    "figure 5.1": items.noted(_figure_5_1, _weeks),
}
