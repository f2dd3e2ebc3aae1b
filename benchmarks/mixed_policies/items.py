"""What Legrand et al. 2018 prints of results, and its items with their verdicts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

from hpcgym.benchmarks.studies import items
from hpcgym.benchmarks.studies.items import Frames
from hpcgym.benchmarks.studies.tables import filled, rows_about

# --- What the paper prints. These numbers are only shown beside ours ------------------------------

_PRINTED = items.published_values(__file__)

#: Table 1: jobs, their mean run time [s] and mean number of processors.
JOBS: dict[str, tuple[int, int, int]] = _PRINTED["table 1"]

#: Section 7.3: the weeks of figure 4.
MAPPED = {"SDSC-SP2": {70, 71, 72, 73}}

#: Section 10: the thresholds [s] of the columns of tables 3 to 6; None is without.
THRESHOLDS = (None, 200_000, 72_000)

#: Which table compares thresholds on a trace.
THRESHOLD_TABLE = {"SDSC-SP2": 3, "SDSC-BLUE": 4, "KTH-SP2": 5, "CTC-SP2": 6}

#: Table 2: sum of the weekly mean BSLD over the weeks of training and of testing.
TABLE_2: dict[str, dict[str, tuple[float, float]]] = _PRINTED["table 2"]

#: Tables 3 to 6: sums over all weeks, a column for each of THRESHOLDS. Each column is in rising
#: order, and the policies are in the order of the first: see ``run.thresholds``.
TABLES_3_TO_6: dict[str, dict[str, tuple[float, float, float]]] = _PRINTED["tables 3 to 6"]

#: Table 7: the jobs of SDSC-SP2 with the longest run times: number, submit time [s], run time [s],
#: processors.
TABLE_7: dict[str, tuple[tuple[int, ...], ...]] = {
    trace: tuple(rows.values()) for trace, rows in _PRINTED["table 7"].items()
}

# --- What words of the paper are taken to mean ----------------------------------------------------

# Sentences of the paper are rows of sentences.csv. "The same result", "perform equally" are within
# 1 %. "Slightly", "marginal", "minor", "very close" are within 5 %. "Comparable" is within 10 %; in
# table 2, of which it is said, the two are 8 % apart. "Far better", "by a large margin": at least a
# quarter below. "A significant margin", "clearly": at least 10 %. "Most": more than half; "few" and
# "rare": less; "many": a tenth or more. Section 7.1, "average BSLD ... very close to 0": FCFS less
# than 10 above w*; "much higher": more. There "approximately 2.5 times" and "3 times" are within a
# fifth. In expressions w* is w.

#: Section 7.1: FCFS is less than that above w* in a quiet week.
QUIET = 10.0

_NOTES = items.notes_of(__file__)


def _stored(
    stored: items.Stored, trace: str, name: str, *columns: str, reading: str = "numbers"
) -> Any:
    return stored.table(f"{trace}-{reading}/{name}", *columns)


def _each(stored: items.Stored, name: str, *columns: str) -> Any:
    """Return the traces that have a table, each with it."""
    return stored.each({trace: f"{trace}-numbers/{name}" for trace in THRESHOLD_TABLE}, *columns)


def _weekly(stored: items.Stored, trace: str, *columns: str) -> Any:
    """Return the mean BSLD of each week by the names of sentences; "best" is of pure policies."""
    table = _stored(stored, trace, "weekly", "week", "saf")
    if missing := {*columns} - {*table}:
        raise items.NotThereError(f"not all was tried: no {', '.join(sorted(missing))}")
    pure = [name for name in TABLES_3_TO_6[trace] if name in table]
    return table.assign(best=table[pure].min(axis=1)).rename(columns=_plain)


def _plain(name: str) -> str:
    """Return what a policy is called in expressions."""
    return name.replace("w*", "w")


def _halves(stored: items.Stored, trace: str) -> Any:
    """Return the sums of training and testing, by policy."""
    table = _stored(stored, trace, "split", "policy", "train", "test").set_index("policy")
    if "w*" not in table.index:
        raise items.NotThereError("not all vectors were tried")
    return table.rename(_plain)


def _grid(trace: str) -> Callable[[items.Stored], str]:
    """Return what says which grid results are of, if not of the paper's."""

    def note(stored: items.Stored) -> str:
        grid = _stored(stored, trace, "grid", "values of a weight")
        points = int(grid["values of a weight"].iloc[0])
        return "" if points == 100 else _NOTES["coarse"].format(points=points)

    return note


# --- Tables ---------------------------------------------------------------------------------------


def _table_1(stored: items.Stored) -> items.Verdict:
    """Section 5.1: "we ignore the first period", which is taken to be the first week."""
    rows = {trace: table.set_index("jobs of") for trace, table in _each(stored, "jobs", "jobs of")}
    ours = [value for table in rows.values() for value in table.loc["without week 0"]]
    printed = [value for trace in rows for value in JOBS[trace]]
    return items.of_values(ours, printed, 1, "numbers and means").noted(_NOTES["first_period"])


def _table_2(stored: items.Stored) -> items.Verdict:
    table = _halves(stored, "SDSC-SP2")
    printed = pd.DataFrame(TABLE_2["SDSC-SP2"]).T.rename(_plain)
    ours = table.loc[printed.index, ["train", "test"]].to_numpy().T.ravel()
    verdict = items.of_values(ours, printed.to_numpy().T.ravel(), 0.01, "sums")
    return verdict.noted(_NOTES["other_rules"])


def _tables_3_to_6(trace: str, stored: items.Stored) -> items.Verdict:
    """Judge the sums by both readings; FCFS, which nothing else touches, must be by the text's."""
    ours, text = (
        _stored(stored, trace, "thresholds", "threshold (s)", "policy", reading=reading)
        for reading in ("numbers", "text")
    )
    mine, printed = items.columns_of(ours, "ours", "paper")
    verdict = items.of_values(mine, printed, 0.01, "sums")
    ratio = text["ours"] / text["paper"]
    fcfs = float(ratio[(text["policy"] == "fcfs") & (text["threshold (s)"] == "none")].iloc[0])
    by_text = f"{ratio.min():.2f} to {ratio.max():.2f} times the printed sums"
    rules, places = _NOTES["other_rules"], _NOTES["places"]
    if abs(fcfs - 1) <= items.CLOSE:
        return verdict.noted(rules, _NOTES["by_text"].format(by_text=by_text), places)
    why = _NOTES["contradiction"].format(by_text=by_text, fcfs=fcfs)
    against = items.Verdict(items.CONTRADICTION, why)
    return against.noted(f"{rules}, we have: {verdict.why}", places)


def _table_7(stored: items.Stored) -> items.Verdict:
    table = _stored(stored, "SDSC-SP2", "longest", "as in the paper")
    same = int((table["as in the paper"] == "yes").sum())
    if same < 10:
        return items.of_count(same, 10, "jobs equal in all four columns")
    return items.Verdict("exact", f"{same} of 10 jobs equal in all four columns")


# --- What sentences are about ---------------------------------------------------------------------


def _places(stored: items.Stored) -> Frames:
    """Section 6.1: the places of the policies, 1 for the least sum, of one trace after another."""
    for trace, table in _each(stored, "thresholds", "threshold (s)", "policy", "ours"):
        rows = table[table["threshold (s)"] == f"{THRESHOLDS[1]:,}"].set_index("policy")
        sums = rows["ours"].reindex([*TABLES_3_TO_6[trace]])
        yield {"places": pd.DataFrame([{"trace": trace, **sums.rank(method="first")}])}


def _other_places(stored: items.Stored) -> str:
    """Say where the paper's own tables are not as section 6.1 says."""
    traces = [trace for trace, _ in _each(stored, "thresholds")]
    against = [name for name in traces if list(TABLES_3_TO_6[name])[1:3] != ["spf", "lexp"]]
    return _NOTES["other_places"].format(traces=", ".join(against)) if against else ""


def _in_testing(trace: str, stored: items.Stored) -> Frames:
    """Section 9: w* is far below all; w*_train and SAF are comparable in testing."""
    test = _halves(stored, trace)["test"]
    pure = test.drop(["w", "w_train", "w_greedy"])
    better = (pure < test["w_train"]).sum() + (test["w_greedy"] < test["w_train"])
    apart = float(test["w_train"] / test["saf"] - 1)
    row = {"w": test["w"], "pure": pure.min(), "better": better, "apart": apart}
    yield {"testing": pd.DataFrame([row])}


def _months(stored: items.Stored) -> Frames:
    """Section 11: w* outperforms by a large margin, w*_train and SAF are comparable."""
    for trace, table in _each(stored, "months", "policy", "test"):
        test = table.set_index("policy")["test"]
        others, apart = test["w*"] / test.drop("w*").min(), test["w*_train"] / test["saf"]
        row = {"trace": trace, "others": others - 1, "apart": apart - 1}
        yield {"testing": pd.DataFrame([row])}


def _grids_of_months(stored: items.Stored) -> str:
    """Say which months they are of."""
    tables = [table.set_index("of") for _, table in _each(stored, "grid", "of")]
    points = {int(of.loc["months", "values of a weight"]) for of in tables if "months" in of.index}
    values, number = " or ".join(map(str, sorted(points))), len([*_each(stored, "months")])
    return _NOTES["months"].format(number=number, logs=len(THRESHOLD_TABLE), values=values)


def _searches(stored: items.Stored) -> Frames:
    """Section 8.1.2: XNES finds w* in most weeks, six features change little; both ways."""
    weekly = _weekly(stored, "SDSC-SP2", "w*", "xnes3", "xnes6")
    w, three, six = weekly[["w", "xnes3", "xnes6"]].sum()
    sums = pd.DataFrame([{"apart": three / w - 1, "less": six / three - 1}])
    yield {"weeks": weekly, "sums": sums}


def _saf(stored: items.Stored) -> Frames:
    """Section 6.2: SAF is best or near it in most weeks, and clearly not in many."""
    yield {"weeks": _weekly(stored, "SDSC-SP2")}


def _other_threshold(stored: items.Stored) -> str:
    """Section 6.2: "very close" has no number; say what follows from another one."""
    (of,) = _saf(stored)
    said = items.csv_rows(__file__, "sentences.csv", ["figure 2, other threshold"])
    (words, holds), *_ = filled(said, of).items()
    return _NOTES["threshold"].format(words=words, most="most" if holds else "not most either")


def _mixed(stored: items.Stored) -> Frames:
    """Sections 7.1, 7.2 and 9: sums of both halves, and weeks that are named."""
    (testing,) = _in_testing("SDSC-SP2", stored)
    weeks = _weekly(stored, "SDSC-SP2", "w*", "w*_train", "w_greedy")
    weeks["drawn"] = weeks[["fcfs", "saf", "w_train", "w_greedy"]].min(axis=1)
    halves = _halves(stored, "SDSC-SP2")[["train", "test"]].T
    gain, loss = (halves["w_train"] / halves["saf"] - 1).tolist()
    quiet = (weeks["fcfs"] - weeks["w"] < QUIET).mean()
    sums = pd.DataFrame([{"quiet": quiet, "gain": gain, "loss": loss}])
    named = {"weeks": weeks, "sums": sums, "halves": halves.rename_axis("half").reset_index()}
    yield {**testing, **named}


def _not_counted(item: str, frames: Callable[[items.Stored], Frames]) -> Any:
    """Return what tells of weeks by which their numbers were chosen, so that no verdict has them.

    Sections 6.2 and 7.1. Of the first nine weeks of the log only one can be the paper's week 1 if
    all of these sentences hold.
    """

    def note(stored: items.Stored) -> str:
        said = items.csv_rows(__file__, "sentences.csv", [f"{item}, not counted"])
        (of,) = frames(stored)
        so = filled(said, of)
        weeks = sorted(week for sentence in said for week in rows_about(sentence, of)["week"])
        counts = {"weeks": ", ".join(map(str, weeks)), "holds": sum(so.values()), "number": len(so)}
        return _NOTES["not_counted"].format(**counts)

    return note


def _spaces(stored: items.Stored) -> Frames:
    """Section 7.3: "the half where q >= 0 have a lower BSLD"; a week's best vector in the next."""
    weeks = _weekly(stored, "SDSC-SP2", *_LOWER_UPPER, "w*", "w_greedy").set_index("week")
    drawn = weeks.loc[sorted(MAPPED["SDSC-SP2"]), [*_LOWER_UPPER]]
    apart = drawn[_LOWER_UPPER[1]] / drawn[_LOWER_UPPER[0]] - 1
    row: dict[str, Any] = {"better": (apart < 0).sum(), "number": len(apart)}
    row["told"] = ", ".join(f"{change:+.2%}" for change in apart)
    row["ratio"] = weeks.loc[73, "w_greedy"] / weeks.loc[73, "w"]
    yield {"drawn": pd.DataFrame([row])}


_LOWER_UPPER = "mean, q < 0", "mean, q > 0"


def _sign(stored: items.Stored) -> str:
    """Say what the paper's own tables have of the two halves of figure 4."""
    ((better, number),) = (of["drawn"][["better", "number"]].iloc[0] for of in _spaces(stored))
    worse = sum(table["lqf"][0] > table["sqf"][0] for table in TABLES_3_TO_6.values())
    counts = {"worse": worse, "tables": len(TABLES_3_TO_6), "number": number}
    return _NOTES["sign"].format(**counts, holds=number - better)


# --- All of them ----------------------------------------------------------------------------------

#: Trace -> its figures: SAF by week, mixed policies by week, searches. The text has sentences on
#: the first and third of SDSC-SP2 alone.
_FIGURES = {"SDSC-BLUE": (6, 7, 8), "CTC-SP2": (9, 10, 11), "KTH-SP2": (12, 13, 14)}
_GRID = _grid("SDSC-SP2")

_said, _noted = partial(items.by_sentences, __file__), items.noted

#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 1": _table_1,
    "table 2": _noted(_table_2, _GRID),
    **{f"table {number}": partial(_tables_3_to_6, of) for of, number in THRESHOLD_TABLE.items()},
    "table 7": _table_7,
    "figure 1": _noted(_said(["figure 1"], _places), _other_places),
    "figure 2": _noted(_said(["figure 2"], _saf), _other_threshold, _not_counted("figure 2", _saf)),
    "figure 3": _noted(
        _said(["section 9", "figure 3"], _mixed), _not_counted("figure 3", _mixed), _GRID
    ),
    "figure 4": _noted(_said(["figure 4"], _spaces), _sign, _GRID),
    "figure 5": _noted(_said(["figure 5"], _searches), _NOTES["settings"], _GRID),
    "figure 15": _noted(_said(["figure 15"], _months), _grids_of_months),
}
for _trace, (_best, _weeks, _found) in _FIGURES.items():
    JUDGES[f"figure {_best}"] = items.of_picture(f"{_trace}-numbers/saf.png")
    _judge = _said(["section 9"], partial(_in_testing, _trace))
    JUDGES[f"figure {_weeks}"] = _noted(_judge, _grid(_trace))
    JUDGES[f"figure {_found}"] = items.of_picture(f"{_trace}-numbers/searches.png")
