"""The study of energy budgets: what is published, tables beside it, pictures, report, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

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
from hpcgym.benchmarks.studies.harness import Folder, load_jobs, load_sources, task_of
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

RELATIVE = ["utilisation", "AVEbsld", "jobs started"]  # to EASY; energy is to the possible
MEASURES = [*RELATIVE, "energy"]
#: Where no processor is switched off, what keeps no budget below this: idle ones use as much.
IDLE = RECKONED_IDLE_W / RECKONED_W


def rows_of(tasks: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return what :func:`budget.measure` found, a row for each run: over EASY's of the week."""
    rows = []
    for task, outcome in zip(tasks, found, strict=True):
        known = {name: task[name] for name in ("reading", "trace", "week")}
        easy = outcome["rows"][0]
        for row in outcome["rows"]:
            rows.append(known | row | {name: row[name] / easy[name] for name in RELATIVE})
    return pd.DataFrame(rows)


def figures(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the values of figures 5.1 to 5.3: of each trace, and of all, as written."""
    written = rows[rows["reading"] == TEXT]
    parts = {str(trace): part for trace, part in written.groupby("trace", sort=False)}
    table = []
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
            table.append(row)
    return pd.DataFrame(table)


def by_trace(values: Any) -> list[tables.Floats]:
    """Return the values of each trace."""
    return [of.to_numpy() for _, of in values.groupby("trace", sort=False)]


def changes(rows: pd.DataFrame) -> Any:
    """Return how measures change with shutdown, the mean over budgets [%].

    A row for each week, a column for each measure and mechanism.
    """
    runs = rows[rows["mechanism"] != BASELINE]
    runs = runs.set_index(["trace", "week", "mechanism", "budget", "shutdown"])[MEASURES]
    change = runs.xs(True, level="shutdown") / runs.xs(False, level="shutdown") - 1
    return 100 * change.groupby(["trace", "week", "mechanism"], sort=False).mean().unstack()


def table_5_1(rows: pd.DataFrame) -> pd.DataFrame:
    """Return table 5.1: under each reading, and as written of each trace."""
    parts = {str(reading): part for reading, part in rows.groupby("reading", sort=False)}
    if parts[TEXT]["trace"].nunique() > 1:
        parts |= {f"{TEXT}, {name}": of for name, of in parts[TEXT].groupby("trace", sort=False)}
    table = []
    for reading, part in parts.items():
        found = changes(part)
        for measure, mechanism in product(TABLE_5_1, MECHANISMS):
            groups, theirs = by_trace(found[measure, mechanism]), TABLE_5_1[measure][mechanism]
            ours = float(np.mean([values.mean() for values in groups]))
            bounds = tables.interval_of_groups(groups, 1)
            row: dict[str, Any] = {
                "reading": reading,
                "traces": " ".join(dict.fromkeys(part["trace"])),
            }
            row |= {"measure": measure, "mechanism": mechanism, "published %": theirs}
            row |= {"ours %": ours, "interval": bounds}
            row |= {"median %": float(np.median(np.concatenate(groups)))}
            table.append(row | {"the same sign": _same_sign(ours, theirs, bounds)})
    return pd.DataFrame(table)


def _same_sign(ours: float, theirs: float, bounds: str) -> str:
    """Return whether two changes have the same sign: undecided if the interval of ours has 0."""
    if bounds != "-":
        low, high = map(float, bounds.strip("[]").split(","))
        if low <= 0 <= high:
            return "undecided"
    return "yes" if ours * theirs > 0 else "no"


def of_weeks(tasks: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> Any:
    """Return the weeks, and what EASY makes of them."""
    return pd.DataFrame(
        {
            "trace": task["trace"],
            "week": str(task["week"]),
            "jobs": outcome["jobs"],
            "share in use, by the log": outcome["logged"],
            "share in use, EASY": outcome["rows"][0]["utilisation"],
            "AVEbsld, EASY": outcome["rows"][0]["AVEbsld"],
        }
        for task, outcome in zip(tasks, found, strict=True)
        if task["reading"] == TEXT
    )


# --- What the text says ---------------------------------------------------------------------------


class Found(NamedTuple):
    """What was found in some traces: means over traces of means over weeks.

    Attributes
    ----------
    rows : of :func:`rows_of`.
    utilisation, late, energy : rows are budgets, the lowest first, columns mechanisms with and
        without shutdown; ``late`` is AVEbsld.
    change : (measure, mechanism) -> as in table 5.1 [%].
    """

    rows: pd.DataFrame
    utilisation: Any
    late: Any
    energy: Any
    change: Any


def found_in(rows: pd.DataFrame) -> Found:
    """Return what was found in the runs of some traces under a reading."""
    runs = rows[rows["mechanism"] != BASELINE]
    keys = ["mechanism", "shutdown", "budget"]
    means = runs.groupby(["trace", *keys])[MEASURES].mean().groupby(keys).mean()
    wide = means.unstack(["mechanism", "shutdown"]).sort_index(axis=1)
    change = changes(rows).groupby("trace").mean().mean()
    return Found(rows, wide["utilisation"], wide["AVEbsld"], wide["energy"], change)


def statements(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return what the text of chapter 5 says, and whether it is so here.

    Of each reading, or as written of each trace: ``by`` names the column.
    """
    found = {
        str(name): [check(found_in(part)) for *_, check in _STATEMENTS]
        for name, part in rows.groupby(by, sort=False)
    }
    return tables.statements_table(_STATEMENTS, found)


def line(budget: Any) -> Any:
    """Return the black line of figure 5.1 at budgets: 3/7 of the utilisation falls with them."""
    return 3 / 7 * budget + 4 / 7


def _named(setting: Any) -> str:
    return f"{setting[0]}{' with shutdown' if setting[1] else ''}"


def _first(of: Found, name: str, low: float, high: float) -> tables.Finding:
    """Return whether a mechanism has most utilisation, with and without shutdown, at budgets."""
    words, so = [], True
    for budget, row in of.utilisation.loc[low:high].iterrows():
        for shutdown in (False, True):
            ours = row.xs(shutdown, level="shutdown")
            so &= bool(ours[name] >= ours.max())
            which = "all alike" if ours.min() == ours.max() else ours.idxmax()
            words.append(f"{budget:.0%}{' with shutdown' * shutdown}: {which}")
    return ("; ".join(words), so) if words else tables.NOT_SIMULATED


def _above(
    of: Found, low: float, high: float, only: tuple[Any, Any] = (slice(None), slice(None))
) -> tables.Finding:
    """Return whether points are above the line at budgets, of some settings."""
    used = of.utilisation.loc[low:high, only]
    gaps = used.sub(line(used.index.to_numpy()), axis=0).unstack()
    if not len(gaps):
        return tables.NOT_SIMULATED
    below = [f"{_named(key)} at {key[2]:.0%}" for key in gaps[gaps <= 0].index]
    words = f"{len(gaps) - len(below)} of {len(gaps)} points above"
    return words + (f"; below: {', '.join(below)}" if below else ""), not below


def _best_bsld(of: Found) -> tables.Finding:
    best: list[Any] = of.late.loc[:0.95].idxmin(axis=1).tolist()
    others = {_named(one) for one in best} - {_named(("energyBud", True))}
    words = f"at {best.count(('energyBud', True))} of {len(best)} budgets below 100 %"
    return words + (f"; else {', '.join(sorted(others))}" if others else ""), not others


def _comparable(of: Found) -> tables.Finding:
    ratio = of.late.loc[:0.95, ("powercap", False)] / of.late.loc[:0.95, ("energyBud", False)]
    so = bool(0.5 < ratio.min() <= ratio.max() < 2)
    return f"{ratio.min():.2f} to {ratio.max():.2f} times as high", so


def _saves(of: Found) -> tables.Finding:
    less = of.energy.xs(True, axis=1, level=1) < of.energy.xs(False, axis=1, level=1)
    return f"in {less.to_numpy().sum()} of {less.size}", bool(less.to_numpy().all())


def _consumes(of: Found) -> tables.Finding:
    used = of.energy.loc[:0.95].stack("shutdown", future_stack=True)
    so = (used["energyBud"] >= used["reducePC"]) & (used["reducePC"] >= used["powercap"])
    return f"in {so.sum()} of {len(so)}", bool(so.mean() >= items.TREND)


def _like_easy(of: Found) -> tables.Finding:
    rows = of.rows
    full = rows[(rows["budget"] >= 1) & ~rows["shutdown"] & (rows["mechanism"] != BASELINE)]
    if not len(full):
        return tables.NOT_SIMULATED
    return f"{full['same'].sum()} of {len(full)} schedules", bool(full["same"].all())


def _respected(of: Found) -> tables.Finding:
    """Return whether all budgets are kept, also those that no schedule keeps (section 5.4.3)."""
    over = of.rows[of.rows["exceeded_j"] > 0]
    never = int((~over["shutdown"] & (over["budget"] < IDLE)).sum())
    words = f"exceeded in {len(over)} of {len(of.rows)} runs"
    if never:
        words += f"; in {never} of them idle processors alone use more"
    return words, not len(over)


def _changed(of: Found, measure: str, test: Callable[[Any], bool]) -> tables.Finding:
    """Return whether something is so of what table 5.1 has of a measure."""
    ours = of.change[measure]
    return tables.listed(ours, "{:+.1f} %"), bool(test(ours))


_BUD = ("energyBud", slice(None))
_LOW = ("reducePC", slice(True, True))
_TEXT = "table 5.1, text"
#: The item, what is said, how it is published, what finds ours.
_STATEMENTS: tuple[tuple[str, str, str, Callable[[Found], tables.Finding]], ...] = (
    ("section 5.3", "under an unbounded budget the schedule is EASY's", "so", _like_easy),
    ("section 5.3", "the budget is strictly respected", "so", _respected),
    ("figure 5.1", "energyBud has the most utilisation under high budgets (80 and 90 %)", "so",
     partial(_first, name="energyBud", low=0.75, high=0.95)),
    ("figure 5.1", "reducePC has the most utilisation under low budgets (50 % and less)", "so",
     partial(_first, name="reducePC", low=0.0, high=0.5)),
    ("figure 5.1", "under 90 % the utilisation of all is above 3/7 budget + 4/7", "so",
     partial(_above, low=0.85, high=0.95)),
    ("figure 5.1", "under 80 % the utilisation of energyBud is above 3/7 budget + 4/7", "so",
     partial(_above, low=0.75, high=0.85, only=_BUD)),
    ("figure 5.1", "under low budgets that of reducePC with shutdown is above 3/7 budget + 4/7",
     "so", partial(_above, low=0.0, high=0.5, only=_LOW)),
    ("figure 5.2", "energyBud with shutdown has the lowest AVEbsld", "of all", _best_bsld),
    ("figure 5.2", "without shutdown powercap's AVEbsld is comparable to energyBud's", "so",
     _comparable),
    ("figure 5.3", "with shutdown less energy is consumed", "so", _saves),
    ("figure 5.3", "energyBud consumes more than reducePC, and that more than powercap", "so",
     _consumes),
    (_TEXT, "shutdown lowers powercap's energy", "so",
     partial(_changed, measure="energy", test=lambda of: of["powercap"] < 0)),
    (_TEXT, "shutdown lowers the energy of energyBud and reducePC less than that", "so",
     partial(_changed, measure="energy",
             test=lambda of: of["powercap"] < of.drop("powercap").min() < 0)),
    (_TEXT, "shutdown lets energyBud and reducePC start more jobs", "so",
     partial(_changed, measure="jobs started", test=lambda of: of.drop("powercap").min() > 0)),
    (_TEXT, "shutdown lets energyBud start as many more jobs as reducePC", "1.66 and 1.67 %",
     partial(_changed, measure="jobs started",
             test=lambda of: abs(of["energyBud"] / of["reducePC"] - 1) <= items.CLOSE)),
    (_TEXT, "shutdown improves energyBud's utilisation far more than reducePC's",
     "2.05 and 1.22 %",
     partial(_changed, measure="utilisation",
             test=lambda of: of["energyBud"] >= _FAR * of["reducePC"])),
    (_TEXT, "shutdown improves energyBud's AVEbsld far more than reducePC's",
     "-9.83 and +1.91 %",
     partial(_changed, measure="AVEbsld",
             test=lambda of: of["energyBud"] <= _FAR * min(of["reducePC"], 0))),
)  # fmt: skip
#: How many times as much is far more: the published gains in utilisation are 1.7 times apart.
_FAR = 1.5


# --- The pictures of the study of energy budgets --------------------------------------------------

_COLOURS = dict(zip(MECHANISMS, (canvas.BLUE, canvas.VERMILLION, canvas.GREEN), strict=True))
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
    rows = rows_of(tasks, found)
    written = rows[rows["reading"] == TEXT]
    words = [(name, reading.meaning) for name, reading in READINGS.items()]
    made = {
        "statements": statements(rows, "reading"),
        "5.1": table_5_1(rows),
        "figures": figures(rows),
        "weeks": of_weeks(tasks, found),
        "readings": pd.DataFrame(words, columns=["reading", "meaning"]),
    }
    if written["trace"].nunique() > 1:
        made["statements-by-trace"] = statements(written, "trace")
    of, traces = found_in(written), ", ".join(dict.fromkeys(written["trace"]))
    shown = dict(zip(FIGURES, (of.utilisation, of.late, of.energy), strict=True))
    pictures = {
        f"Figure {figure}: {label}": folder.picture(
            draw(shown[measured], measured, traces), f"figure-{figure}.png"
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
    """Judge the signs under the first reading, by intervals; those under others are told."""
    table = stored.table("table-5.1", "reading", "measure", "mechanism", "the same sign")
    how = {"yes": "held", "no": "contradicted", "undecided": "undecided"}
    rows = table[table["reading"] == TEXT]
    names = rows["measure"] + " of " + rows["mechanism"]
    found = items.of_intervals(dict(zip(names, rows["the same sign"].map(how), strict=True)))
    words = [
        f"{name}: {(part['the same sign'] == 'yes').sum()} of {len(part)} held"
        for name, part in table.groupby("reading", sort=False)
        if name in READINGS and name != TEXT
    ]
    told = found.why.replace("sentences", "published signs")
    return items.Verdict(found.verdict, f"{told}; other readings: {', '.join(words)}")


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
    **{item: _of_traces(items.said(item)) for item in dict.fromkeys(one[0] for one in _STATEMENTS)},
}
