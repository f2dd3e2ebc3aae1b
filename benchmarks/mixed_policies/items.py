"""What Legrand et al. 2018 prints of results, and its items with their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from hpcgym.benchmarks.studies import items

# --- What the paper prints. These numbers are only shown beside ours ------------------------------

_PRINTED = items.published_values(__file__)

#: Table 1: jobs, their mean run time [s] and mean number of processors.
JOBS: dict[str, tuple[int, int, int]] = _PRINTED["table 1"]

#: Section 7.3: the weeks of figure 4.
MAPPED = {"SDSC-SP2": (70, 71, 72, 73)}

#: Section 10: the thresholds [s] of the columns of tables 3 to 6; None is without.
THRESHOLDS = (None, 200_000, 72_000)

#: Which table compares thresholds on a trace.
THRESHOLD_TABLE = {"SDSC-SP2": 3, "SDSC-BLUE": 4, "KTH-SP2": 5, "CTC-SP2": 6}

#: Table 2: sum of the weekly mean BSLD over the weeks of training and of testing.
TABLE_2: dict[str, dict[str, tuple[float, float]]] = _PRINTED["table 2"]

#: Tables 3 to 6: sums over all weeks, a column for each of THRESHOLDS. Each column is in rising
#: order, and the policies are in the order of the first: see ``tables.thresholds``.
TABLES_3_TO_6: dict[str, dict[str, tuple[float, float, float]]] = _PRINTED["tables 3 to 6"]

#: Table 7: the jobs of SDSC-SP2 with the longest run times: number, submit time [s], run time [s],
#: processors.
TABLE_7: dict[str, tuple[tuple[int, ...], ...]] = {
    trace: tuple(rows.values()) for trace, rows in _PRINTED["table 7"].items()
}

# --- What words of the paper are taken to mean ----------------------------------------------------

#: "the same result", "perform equally": within 1 %. "slightly", "marginal", "minor", "very close":
#: within 5 %. "comparable": within 10 %; in table 2, of which it is said, the two are 8 % apart.
#: "far better", "by a large margin": at least a quarter below. "most": more than half; "few" and
#: "rare": less. "a significant margin": at least 10 %.
EQUAL, SLIGHT, COMPARABLE, FAR, CLEAR = 0.01, 0.05, 0.1, 0.25, 0.1
#: Section 7.1, "average BSLD ... very close to 0": FCFS less than 10 above w*; "much higher": more.
QUIET = 10.0
#: Section 7.1, "approximately 2.5 times", "3 times": within a fifth.
ABOUT = 0.2

TRACES = tuple(THRESHOLD_TABLE)
#: The reading whose folder is looked at: the paper's numbers come out by it.
_READING = "numbers"
#: Why that reading is no plain success, for those items whose numbers need it.
_AGAINST = (
    "under the reading *numbers*, which contradicts the text (60 s for 10 s in the bounded"
    " slowdown, no job dropped at the ends of weeks)"
)
_LEARNED = ("w*", "w*_train", "w_greedy")


def _place(trace: str, name: str, reading: str = _READING) -> str:
    return f"{trace}-{reading}/{name}"


def _places(name: str) -> dict[str, str]:
    return {trace: _place(trace, name) for trace in TRACES}


def _points(stored: items.Stored, trace: str) -> str:
    """Return of which grid results are, if not of the paper's."""
    table = stored.table(_place(trace, "grid"), "values of a weight")
    points = int(table["values of a weight"].iloc[0])
    return "" if points == 100 else f"; of {points} values a weight, where the paper has 100"


def _noted(judge: items.Judge, note: Callable[[items.Stored], str]) -> items.Judge:
    """Return a judge that says more of why."""

    def noted(stored: items.Stored) -> items.Verdict:
        found = judge(stored)
        return items.Verdict(found.verdict, found.why + note(stored))

    return noted


# --- Tables ---------------------------------------------------------------------------------------


def _table_1(stored: items.Stored) -> items.Verdict:
    """Judge by the reading that was found: the first week dropped, of short logs the last too."""
    ours: list[float] = []
    printed: list[float] = []
    for trace, table in stored.each(_places("jobs"), "jobs of"):
        of = "without week 0" if trace.startswith("SDSC") else "without week 0 and the last"
        ours += table.set_index("jobs of").loc[of].tolist()
        printed += JOBS[trace]
    found = items.of_values(ours, printed, 1, "numbers and means")
    more = "; week 0 dropped, as the text says, and of KTH-SP2 and CTC-SP2 the last week too"
    return items.Verdict(found.verdict, found.why + more)


def _table_2(stored: items.Stored) -> items.Verdict:
    table = stored.table(_place("SDSC-SP2", "split"), "policy", "train", "test")
    table = table.set_index("policy")
    if "w*" not in table.index:
        raise items.NotThereError("not all vectors were tried")
    names = TABLE_2["SDSC-SP2"]
    ours = [table.loc[name, half] for half in ("train", "test") for name in names]
    printed = [names[name][place] for place in (0, 1) for name in names]
    found = items.of_values(ours, printed, 0.01, "sums")
    return items.Verdict(found.verdict, f"{found.why}; {_AGAINST}")


def _tables_3_to_6(trace: str, stored: items.Stored) -> items.Verdict:
    """Judge the sums with and without thresholds by their ratios to the paper's."""
    table = stored.table(_place(trace, "thresholds"))
    ours, paper = items.columns_of(table, "ours", "paper")
    found = items.of_values(ours, paper, 0.01, "sums")
    why = f"{found.why}; with a threshold by place; {_AGAINST}"
    if stored.has(f"{_place(trace, 'thresholds', 'text')}.csv"):
        text = stored.table(_place(trace, "thresholds", "text"))
        ratio = text["ours"] / text["paper"]
        why += f", whose own reading gives {ratio.min():.2f} to {ratio.max():.2f} times the sums"
    return items.Verdict(found.verdict, why)


def _table_7(stored: items.Stored) -> items.Verdict:
    table = stored.table(_place("SDSC-SP2", "longest"), "as in the paper")
    same = int((table["as in the paper"] == "yes").sum())
    if same < 10:
        return items.of_count(same, 10, "jobs equal in all four columns")
    return items.Verdict("exact", f"{same} of 10 jobs equal in all four columns")


# --- Sentences on sums ----------------------------------------------------------------------------


def _figure_1(stored: items.Stored) -> items.Verdict:
    """Section 6.1: SAF has the least sum, then come SPF and LEXP, FCFS is among the worst."""
    so, against = {}, []
    columns = ("threshold (s)", "policy", "ours")
    for trace, table in stored.each(_places("thresholds"), *columns):
        rows = table[table["threshold (s)"] == f"{THRESHOLDS[1]:,}"]
        order = rows.sort_values("ours")["policy"].tolist()
        paper = sorted(TABLES_3_TO_6[trace], key=lambda name: TABLES_3_TO_6[trace][name][0])
        so[f"{trace}: SAF is best"] = order[0] == "saf"
        so[f"{trace}: then SPF and LEXP"] = order[1:3] == ["spf", "lexp"]
        so[f"{trace}: FCFS is of the worst six"] = "fcfs" in order[6:]
        if paper[1:3] != ["spf", "lexp"]:
            against.append(trace)
    found = items.of_sentences(so)
    if not against:
        return found
    more = f"; then SPF and LEXP is not so either in the paper's tables of {', '.join(against)}"
    return items.Verdict(found.verdict, found.why + more)


def _mixed_sentences(trace: str, stored: items.Stored) -> dict[str, bool]:
    """Return section 9: w* is far below all; w*_train and SAF are comparable in testing."""
    test = stored.table(_place(trace, "split"), "policy", "test").set_index("policy")["test"]
    if "w*" not in test:
        raise items.NotThereError("not all vectors were tried")
    pure = test.drop(list(_LEARNED))
    apart = float(test["w*_train"] / test["saf"] - 1)
    return {
        "w* is far below the best pure policy": bool(test["w*"] <= (1 - FAR) * pure.min()),
        "w*_train is best or second of those that are known before": bool(
            (pure < test["w*_train"]).sum() + (test["w_greedy"] < test["w*_train"]) <= 1
        ),
        f"w*_train is comparable to SAF in testing ({apart:+.0%})": abs(apart) <= COMPARABLE,
    }


def _mixed(trace: str, stored: items.Stored) -> items.Verdict:
    return items.of_sentences(_mixed_sentences(trace, stored))


def _months(stored: items.Stored) -> items.Verdict:
    """Section 11: w* outperforms by a large margin, w*_train and SAF are comparable."""
    so = {}
    for trace, table in stored.each(_places("months"), "policy", "test"):
        test = table.set_index("policy")["test"]
        others = test.drop("w*").min()
        apart = float(test["w*_train"] / test["saf"] - 1)
        so[f"{trace}: w* is far below all others"] = bool(test["w*"] <= (1 - FAR) * others)
        so[f"{trace}: w*_train is comparable to SAF ({apart:+.0%})"] = abs(apart) <= COMPARABLE
    if not so:
        raise items.NotThereError("no months")
    found = items.of_sentences(so)
    tried = [table[table["of"] == "months"] for _, table in stored.each(_places("grid"), "of")]
    grids = [int(of["values of a weight"].iloc[0]) for of in tried if len(of)]
    more = f"of {len(so) // 2} of {len(TRACES)} logs, {min(grids)} to {max(grids)} values a weight"
    return items.Verdict(found.verdict, f"{found.why}; {more}")


def _searches(trace: str, stored: items.Stored) -> items.Verdict:
    """Sections 8.1.2 and 9: XNES finds w* in most weeks, six features change little; both ways."""
    weekly = stored.table(_place(trace, "weekly"))
    if "xnes3" not in weekly or "w*" not in weekly:
        raise items.NotThereError("nothing was searched")
    three, six = weekly["xnes3"] / weekly["w*"], weekly["xnes6"] / weekly["xnes3"]
    same, alike = ((abs(ratio - 1) <= EQUAL).mean() for ratio in (three, six))
    sums = weekly[["w*", "xnes3", "xnes6"]].sum()
    apart, less = sums["xnes3"] / sums["w*"] - 1, sums["xnes6"] / sums["xnes3"] - 1
    found = items.of_sentences(
        {
            f"xnes3 and w* give the same result in most weeks ({same:.0%})": bool(same > 0.5),
            f"their sums differ little ({apart:+.1%})": bool(abs(apart) <= SLIGHT),
            f"xnes6 and xnes3 are equal in most weeks ({alike:.0%})": bool(alike > 0.5),
            f"xnes6 is better in the sum, and by little ({less:+.1%})": bool(-SLIGHT <= less < 0),
        }
    )
    scaled = weekly["xnes6, scaled"].sum() / weekly["xnes3, scaled"].sum() - 1
    more = (
        f"; with weights scaled by features xnes6 is {scaled:+.1%}; XNES' settings are not printed"
    )
    return items.Verdict(found.verdict, found.why + more)


# --- Sentences on named weeks of SDSC-SP2 ---------------------------------------------------------


class Named(NamedTuple):
    """Weeks of which the text says how two policies are to each other.

    Attributes
    ----------
    words : what is said.
    weeks : by number.
    holds : whether a week's row of mean BSLD says so.
    """

    words: str
    weeks: tuple[int, ...]
    holds: Callable[[Mapping[str, float]], bool]


def _below(one: str, other: str, share: float = 0.0) -> Callable[[Mapping[str, float]], bool]:
    """Return whether a policy is below another, at least by a share of it."""
    return lambda row: bool(row[one] < (1 - share) * row[other])


def _times(number: float, one: str, other: str) -> Callable[[Mapping[str, float]], bool]:
    return lambda row: abs(row[one] / row[other] / number - 1) <= ABOUT


#: Section 6.2.
NOT_SAF = Named("another pure policy is clearly better", (38, 44, 56, 85),
                _below("best", "saf", CLEAR))  # fmt: skip
#: Sections 7.1 and 7.2.
NAMED = (
    Named("no or a small difference", (43, 92, 94), lambda row: row["fcfs"] - row["w*"] < QUIET),
    Named("FCFS is far above w*", (64, 73, 79, 100), lambda row: row["fcfs"] - row["w*"] > QUIET),
    Named("w* is clearly better than all drawn", (64, 73, 79, 100), _below("w*", "drawn", CLEAR)),
    Named("w* is 2.5 times below SAF", (73,), _times(2.5, "saf", "w*")),
    Named("w* is 3 times below FCFS", (73,), _times(3.0, "fcfs", "w*")),
    Named("SAF is the best pure policy", (73,), lambda row: row["saf"] == row["best"]),
    Named("SAF is below w*_train", (34, 52, 68, 81, 82), _below("saf", "w*_train")),
    Named("w*_train is below SAF", (73, 79, 85), _below("w*_train", "saf")),
    Named("w_greedy is below SAF", (56, 83, 89), _below("w_greedy", "saf")),
    Named("w_greedy is above SAF", (20, 55), _below("saf", "w_greedy")),
)


def _weekly(stored: items.Stored, covered: bool = True) -> pd.DataFrame:
    """Return the weeks of SDSC-SP2 by number, with the "best" pure policy.

    "drawn" is the best of what figure 3 has beside w*: section 7.1 has two pure policies alone.
    """
    table: pd.DataFrame = stored.table(_place("SDSC-SP2", "weekly"), "week", "saf")
    table = table.set_index("week")
    pure = [name for name in TABLES_3_TO_6["SDSC-SP2"] if name in table]
    table["best"] = table[pure].min(axis=1)
    if covered:
        if "w*" not in table:
            raise items.NotThereError("not all vectors were tried")
        table["drawn"] = table[["fcfs", "saf", "w*_train", "w_greedy"]].min(axis=1)
    return table


def _of_weeks(table: pd.DataFrame, named: Named) -> dict[str, bool]:
    """Return each week of a sentence as one: what is said, and whether it holds."""
    rows: dict[int, Any] = {week: table.loc[week].to_dict() for week in named.weeks}
    return {f"week {week}: {named.words}": named.holds(row) for week, row in rows.items()}


def _figure_2(stored: items.Stored) -> items.Verdict:
    """Section 6.2: SAF is best or near it in most weeks, and clearly not in those it names."""
    table = _weekly(stored, covered=False)
    near = float((table["saf"] <= (1 + SLIGHT) * table["best"]).mean())
    so = {f"SAF is best or very close in most weeks ({near:.0%})": near > 0.5}
    return items.of_sentences(so | _of_weeks(table, NOT_SAF))


def _figure_3(stored: items.Stored) -> items.Verdict:
    """Sections 7.1 and 7.2: sums of both halves, and all weeks that are named."""
    so = _mixed_sentences("SDSC-SP2", stored)
    table = _weekly(stored)
    quiet = float((table["fcfs"] - table["w*"] < QUIET).mean())
    so[f"around half of the weeks are quiet ({quiet:.0%})"] = 0.4 <= quiet <= 0.6
    split = stored.table(_place("SDSC-SP2", "split"), "policy", "train", "test").set_index("policy")
    gain = float(split.loc["w*_train", "train"] / split.loc["saf", "train"] - 1)
    so[f"in training w*_train is below SAF, by little ({gain:+.0%})"] = -COMPARABLE <= gain < 0
    for half in ("train", "test"):
        sums = split[half]
        so[f"{half}: w_greedy is above SAF and w*_train"] = bool(
            sums["w_greedy"] > max(sums["saf"], sums["w*_train"])
        )
    so["w*_train is far from w* in training"] = bool(
        split.loc["w*", "train"] <= (1 - FAR) * split.loc["w*_train", "train"]
    )
    for named in NAMED:
        so |= _of_weeks(table, named)
    return items.of_sentences(so)


def _figure_4(stored: items.Stored) -> items.Verdict:
    """Section 7.3: "q >= 0 have a lower BSLD"; that half ends in LQF, the other in SQF.

    By section 4.3 a large score is served first, as FCFS is a weight of +1 of the wait. Then what
    is said contradicts tables 3 to 6.
    """
    lower, upper = "mean, q < 0", "mean, q > 0"
    weeks = stored.table(_place("SDSC-SP2", "weekly"), "week").set_index("week")
    if lower not in weeks:
        raise items.NotThereError("not all vectors were tried")
    drawn = weeks.loc[list(MAPPED["SDSC-SP2"])]
    printed = [sum(table["lqf"][0] > table["sqf"][0] for table in TABLES_3_TO_6.values())]
    worse = int((drawn[upper] > drawn[lower]).sum())
    ratio = float(weeks.loc[73, "w_greedy"] / weeks.loc[73, "w*"])
    poor = {f"that of week 72 is poor in week 73 ({ratio:.1f} times w*)": ratio > 1 / (1 - FAR)}
    better = {f"q >= 0 is the better half in {4 - worse} of weeks 70 to 73": worse == 0}
    if printed[0] < len(TABLES_3_TO_6) or worse == 0:
        return items.of_sentences(better | poor)
    return items.Verdict(
        items.CONTRADICTION,
        "q >= 0 is said to be the better half; by section 4.3's sign it ends in LQF, which is worse"
        f" than SQF in {printed[0]} of {len(TABLES_3_TO_6)} tables; here it is the worse half in"
        f" {worse} of weeks 70 to 73; {items.of_sentences(poor).why}",
    )


# --- All of them ----------------------------------------------------------------------------------

#: Trace -> its figures: SAF by week, mixed policies by week, searches.
_FIGURES = {
    "SDSC-SP2": (2, 3, 5),
    "SDSC-BLUE": (6, 7, 8),
    "CTC-SP2": (9, 10, 11),
    "KTH-SP2": (12, 13, 14),
}


def _figures() -> dict[str, items.Judge]:
    found: dict[str, items.Judge] = {}
    for trace, (saf, weeks, searches) in _FIGURES.items():
        named = trace == "SDSC-SP2"  # of which the text names weeks
        noted = partial(_noted, note=partial(_points, trace=trace))
        picture = items.of_picture(f"{_place(trace, 'saf')}.png")
        found[f"figure {saf}"] = _figure_2 if named else picture
        found[f"figure {weeks}"] = noted(_figure_3 if named else partial(_mixed, trace))
        found[f"figure {searches}"] = noted(partial(_searches, trace))
    return found


_SDSC = partial(_noted, note=partial(_points, trace="SDSC-SP2"))
#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 1": _table_1,
    "figure 1": _figure_1,
    "table 2": _SDSC(_table_2),
    "figure 4": _SDSC(_figure_4),
    **_figures(),
    **{
        f"table {number}": partial(_tables_3_to_6, trace)
        for trace, number in THRESHOLD_TABLE.items()
    },
    "table 7": _table_7,
    "figure 15": _months,
}
