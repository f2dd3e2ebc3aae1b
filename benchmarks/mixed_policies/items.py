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
MAPPED = {"SDSC-SP2": {70, 71, 72, 73}}

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
#: "rare": less; "many": a tenth or more. "a significant margin": at least 10 %.
EQUAL, SLIGHT, COMPARABLE, FAR, CLEAR, MANY = 0.01, 0.05, 0.1, 0.25, 0.1, 0.1
#: Section 7.1, "average BSLD ... very close to 0": FCFS less than 10 above w*; "much higher": more.
QUIET = 10.0
#: Section 7.1, "approximately 2.5 times", "3 times": within a fifth.
ABOUT = 0.2

_OTHER_RULES = (
    "by rules that are not the text's, and were found by fitting the sums of KTH-SP2 and SDSC-SP2:"
    " 60 s in the bounded slowdown, where the text has 10 s, and all jobs, where the text removes"
    " those that start in one week and finish in another"
)


def _stored(
    stored: items.Stored, trace: str, name: str, *columns: str, reading: str = "numbers"
) -> Any:
    return stored.table(f"{trace}-{reading}/{name}", *columns)


def _each(stored: items.Stored, name: str, *columns: str) -> Any:
    """Return the traces that have a table, each with it."""
    return stored.each({trace: f"{trace}-numbers/{name}" for trace in THRESHOLD_TABLE}, *columns)


def _weekly(stored: items.Stored, trace: str, *columns: str) -> Any:
    """Return the mean BSLD of each week, by number; "best" is of the pure policies."""
    table = _stored(stored, trace, "weekly", "week", "saf").set_index("week")
    if missing := {*columns} - {*table}:
        raise items.NotThereError(f"not all was tried: no {', '.join(sorted(missing))}")
    pure = [name for name in TABLES_3_TO_6[trace] if name in table]
    return table.assign(best=table[pure].min(axis=1))


def _halves(stored: items.Stored, trace: str) -> Any:
    """Return the sums of training and testing, by policy."""
    table = _stored(stored, trace, "split", "policy", "train", "test").set_index("policy")
    if "w*" not in table.index:
        raise items.NotThereError("not all vectors were tried")
    return table


def _gridded(trace: str, judge: items.Judge) -> items.Judge:
    """Return a judge that says of which grid results are, if not of the paper's."""

    def noted(stored: items.Stored) -> items.Verdict:
        grid = _stored(stored, trace, "grid", "values of a weight")
        points = int(grid["values of a weight"].iloc[0])
        cut = f"each weight has {points} values, where the paper has 100"
        return judge(stored).noted("" if points == 100 else cut)

    return noted


# --- Tables ---------------------------------------------------------------------------------------


def _table_1(stored: items.Stored) -> items.Verdict:
    """Section 5.1: "we ignore the first period", which is taken to be the first week."""
    rows = {trace: table.set_index("jobs of") for trace, table in _each(stored, "jobs", "jobs of")}
    ours = [value for table in rows.values() for value in table.loc["without week 0"]]
    printed = [value for trace in rows for value in JOBS[trace]]
    return items.of_values(ours, printed, 1, "numbers and means").noted(
        "the text ignores 'the first period' of each log; that it is the first week, and that jobs"
        " that ran for longer than they requested are dropped, was found by fitting these numbers;"
        " without the last week too, which the text does not say, KTH-SP2 and CTC-SP2 come nearer"
    )


def _table_2(stored: items.Stored) -> items.Verdict:
    table, printed = _halves(stored, "SDSC-SP2"), pd.DataFrame(TABLE_2["SDSC-SP2"]).T
    ours = table.loc[printed.index, ["train", "test"]].to_numpy().T.ravel()
    return items.of_values(ours, printed.to_numpy().T.ravel(), 0.01, "sums").noted(_OTHER_RULES)


def _tables_3_to_6(trace: str, stored: items.Stored) -> items.Verdict:
    """Judge the sums by both readings; FCFS, which nothing else touches, must be by the text's."""
    ours, text = (
        _stored(stored, trace, "thresholds", "threshold (s)", "policy", reading=reading)
        for reading in ("numbers", "text")
    )
    mine, printed = items.columns_of(ours, "ours", "paper")
    found = items.of_values(mine, printed, 0.01, "sums")
    ratio = text["ours"] / text["paper"]
    fcfs = float(ratio[(text["policy"] == "fcfs") & (text["threshold (s)"] == "none")].iloc[0])
    place = (
        "the paper sorts each column by itself, so with a threshold the smallest printed sum stands"
        " beside our smallest, and so on, whichever policy has it"
    )
    by_text = f"{ratio.min():.2f} to {ratio.max():.2f} times the printed sums"
    if abs(fcfs - 1) <= items.CLOSE:
        return found.noted(_OTHER_RULES, f"by the text's rules we have {by_text}", place)
    return items.Verdict(
        items.CONTRADICTION,
        f"the printed sums do not follow from the text's rules, by which we have {by_text}, and"
        f" {fcfs:.2f} times that of FCFS, which no other rule affects",
    ).noted(f"{_OTHER_RULES}, we have: {found.why}", place)


def _table_7(stored: items.Stored) -> items.Verdict:
    table = _stored(stored, "SDSC-SP2", "longest", "as in the paper")
    same = int((table["as in the paper"] == "yes").sum())
    if same < 10:
        return items.of_count(same, 10, "jobs equal in all four columns")
    return items.Verdict("exact", f"{same} of 10 jobs equal in all four columns")


# --- Sentences on sums ----------------------------------------------------------------------------


def _figure_1(stored: items.Stored) -> items.Verdict:
    """Section 6.1: SAF has the least sum, then come SPF and LEXP, FCFS is among the worst."""
    so, against = {}, []
    for trace, table in _each(stored, "thresholds", "threshold (s)", "policy", "ours"):
        rows = table[table["threshold (s)"] == f"{THRESHOLDS[1]:,}"]
        order = rows.sort_values("ours")["policy"].tolist()
        so[f"{trace}: SAF is best"] = order[0] == "saf"
        so[f"{trace}: SPF is second and LEXP third"] = order[1:3] == ["spf", "lexp"]
        so[f"{trace}: FCFS is one of the worst six"] = "fcfs" in order[6:]
        if list(TABLES_3_TO_6[trace])[1:3] != ["spf", "lexp"]:
            against.append(trace)
    more = f"in the paper's own tables other policies are second or third on {', '.join(against)}"
    return items.of_sentences(so).noted(more if against else "")


def _mixed_sentences(trace: str, stored: items.Stored) -> dict[str, bool]:
    """Return section 9: w* is far below all; w*_train and SAF are comparable in testing."""
    test = _halves(stored, trace)["test"]
    pure = test.drop(["w*", "w*_train", "w_greedy"])
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
    so: dict[str, bool] = {}
    for trace, table in _each(stored, "months", "policy", "test"):
        test = table.set_index("policy")["test"]
        others = float(test["w*"] / test.drop("w*").min() - 1)
        apart = float(test["w*_train"] / test["saf"] - 1)
        so[f"{trace}: w* is far below all others ({others:+.0%})"] = others <= -FAR
        so[f"{trace}: w*_train is comparable to SAF ({apart:+.0%})"] = abs(apart) <= COMPARABLE
    if not so:
        raise items.NotThereError("no months")
    tables = [table.set_index("of") for _, table in _each(stored, "grid", "of")]
    points = {int(of.loc["months", "values of a weight"]) for of in tables if "months" in of.index}
    values = " or ".join(map(str, sorted(points)))
    return items.of_sentences(so).noted(
        f"sums over the months of testing, {len(so) // 2} of {len(THRESHOLD_TABLE)} logs, each"
        f" weight with {values} values; the paper says neither how long a month is nor how many"
        " values its weights have"
    )


def _figure_5(stored: items.Stored) -> items.Verdict:
    """Section 8.1.2: XNES finds w* in most weeks, six features change little; both ways."""
    weekly = _weekly(stored, "SDSC-SP2", "w*", "xnes3", "xnes6")
    three, six = weekly["xnes3"] / weekly["w*"], weekly["xnes6"] / weekly["xnes3"]
    same, alike = ((abs(ratio - 1) <= EQUAL).mean() for ratio in (three, six))
    sums = weekly[["w*", "xnes3", "xnes6"]].sum()
    apart, less = sums["xnes3"] / sums["w*"] - 1, sums["xnes6"] / sums["xnes3"] - 1
    return items.of_sentences(
        {
            f"xnes3 and w* give the same result in most weeks ({same:.0%})": bool(same > 0.5),
            f"their sums differ little ({apart:+.1%})": bool(abs(apart) <= SLIGHT),
            f"xnes6 and xnes3 are equal in most weeks ({alike:.0%})": bool(alike > 0.5),
            f"xnes6 is better in the sum, and by little ({less:+.1%})": bool(-SLIGHT <= less < 0),
        }
    ).noted("the paper does not print how many evaluations XNES has, nor its other settings")


# --- Sentences on named weeks of SDSC-SP2 ---------------------------------------------------------

Row = Mapping[str, float]


class Named(NamedTuple):
    """Weeks of which the text says how policies are to each other.

    Attributes
    ----------
    words : what is said.
    weeks : by number.
    holds : whether a week's row of mean BSLD says so; "drawn" is the best of what figure 3 has
        beside w*.
    """

    words: str
    weeks: tuple[int, ...]
    holds: Callable[[Row], bool]

    def found(self, table: Any) -> dict[str, bool]:
        """Return each week of a sentence as one: what is said, and whether it holds."""
        rows: dict[int, Any] = {week: table.loc[week].to_dict() for week in self.weeks}
        return {f"week {week}: {self.words}": self.holds(row) for week, row in rows.items()}


def _below(one: str, other: str, share: float = 0.0) -> Callable[[Row], bool]:
    """Return whether a policy is below another, at least by a share of it."""
    return lambda row: bool(row[one] < (1 - share) * row[other])


def _times(number: float, one: str, other: str) -> Callable[[Row], bool]:
    return lambda row: abs(row[one] / row[other] / number - 1) <= ABOUT


#: Sections 6.2 and 7.1: what the numbers of weeks were chosen by, so that no verdict counts them.
#: Of the first nine weeks of the log only one can be the paper's week 1 if all of these hold.
NOT_SAF = Named("another pure policy is clearly better", (38, 44, 56, 85),
                _below("best", "saf", CLEAR))  # fmt: skip
BUSY = (
    Named("no or a small difference", (43, 92, 94), lambda row: row["fcfs"] - row["w*"] < QUIET),
    Named("FCFS is far above w*", (64, 73, 79, 100), lambda row: row["fcfs"] - row["w*"] > QUIET),
)
#: Sections 7.1 and 7.2.
NAMED = (
    Named("w* is clearly better than all drawn", (64, 73, 79, 100), _below("w*", "drawn", CLEAR)),
    Named("w* is 2.5 times below SAF", (73,), _times(2.5, "saf", "w*")),
    Named("w* is 3 times below FCFS", (73,), _times(3.0, "fcfs", "w*")),
    Named("SAF is the best pure policy", (73,), lambda row: row["saf"] == row["best"]),
    Named("SAF is below w*_train", (34, 52, 68, 81, 82), _below("saf", "w*_train")),
    Named("w*_train is below SAF", (73, 79, 85), _below("w*_train", "saf")),
    Named("w_greedy is below SAF", (56, 83, 89), _below("w_greedy", "saf")),
    Named("w_greedy is above SAF", (20, 55), _below("saf", "w_greedy")),
)


def _not_counted(table: Any, *named: Named) -> str:
    """Return what is said of weeks by which their numbers were chosen."""
    so = {words: holds for one in named for words, holds in one.found(table).items()}
    weeks = sorted(week for one in named for week in one.weeks)
    return (
        f"not counted are the sentences on weeks {', '.join(map(str, weeks))}, of which"
        f" {sum(so.values())} of {len(so)} hold: the paper does not say where its week 1 is, and we"
        " have numbered the weeks so that these hold"
    )


def _figure_2(stored: items.Stored) -> items.Verdict:
    """Section 6.2: SAF is best or near it in most weeks, and clearly not in many."""
    table = _weekly(stored, "SDSC-SP2")
    near = float((table["saf"] <= (1 + SLIGHT) * table["best"]).mean())
    clear = float((table["best"] < (1 - CLEAR) * table["saf"]).mean())
    so = {
        f"SAF is best or very close, within {SLIGHT:.0%}, in most weeks ({near:.0%})": near > 0.5,
        f"another pure policy is clearly better in many weeks ({clear:.0%})": clear >= MANY,
    }
    return items.of_sentences(so).noted(_not_counted(table, NOT_SAF))


def _figure_3(stored: items.Stored) -> items.Verdict:
    """Sections 7.1, 7.2 and 9: sums of both halves, and weeks that are named."""
    so, split = _mixed_sentences("SDSC-SP2", stored), _halves(stored, "SDSC-SP2")
    table = _weekly(stored, "SDSC-SP2", "w*", "w*_train", "w_greedy")
    table["drawn"] = table[["fcfs", "saf", "w*_train", "w_greedy"]].min(axis=1)
    quiet = float((table["fcfs"] - table["w*"] < QUIET).mean())
    so[f"around half of the weeks are quiet ({quiet:.0%})"] = 0.4 <= quiet <= 0.6
    learned = split.loc["w*_train"] / split.loc["saf"] - 1
    gain, loss = float(learned["train"]), float(learned["test"])
    so[f"in training w*_train is slightly below SAF ({gain:+.1%})"] = -SLIGHT <= gain < 0
    so[f"in testing w*_train is not below SAF ({loss:+.1%})"] = loss >= 0
    for half, sums in split[["train", "test"]].items():
        so[f"{half}: w_greedy is above SAF and w*_train"] = bool(
            sums["w_greedy"] > max(sums["saf"], sums["w*_train"])
        )
    so["w*_train is far from w* in training"] = bool(
        split.loc["w*", "train"] <= (1 - FAR) * split.loc["w*_train", "train"]
    )
    for named in NAMED:
        so |= named.found(table)
    return items.of_sentences(so).noted(_not_counted(table, *BUSY))


def _figure_4(stored: items.Stored) -> items.Verdict:
    """Section 7.3: "the half where q >= 0 have a lower BSLD"; a week's best vector in the next."""
    lower, upper = "mean, q < 0", "mean, q > 0"
    weeks = _weekly(stored, "SDSC-SP2", lower, upper, "w*", "w_greedy")
    drawn = weeks.loc[sorted(MAPPED["SDSC-SP2"])]
    apart = drawn[upper] / drawn[lower] - 1
    better, told = int((apart < 0).sum()), ", ".join(f"{one:+.2%}" for one in apart)
    ratio = float(weeks.loc[73, "w_greedy"] / weeks.loc[73, "w*"])
    worse = sum(table["lqf"][0] > table["sqf"][0] for table in TABLES_3_TO_6.values())
    return items.of_sentences(
        {
            f"the half q >= 0 has the lower BSLD in weeks 70 to 73 ({told})": better == len(apart),
            f"that of week 72 is poor in week 73 ({ratio:.1f} times w*)": ratio > 1 / (1 - FAR),
        }
    ).noted(
        "by the sign of section 4.3, where FCFS is +1 of the waiting time, that half ends in LQF,"
        f" which the paper's tables have above SQF in {worse} of {len(TABLES_3_TO_6)}; with the"
        f" sign turned round the sentence holds in {len(apart) - better} of {len(apart)} weeks"
    )


# --- All of them ----------------------------------------------------------------------------------

#: Trace -> its figures: SAF by week, mixed policies by week, searches. The text has sentences on
#: the first and third of SDSC-SP2 alone.
_FIGURES = {"SDSC-BLUE": (6, 7, 8), "CTC-SP2": (9, 10, 11), "KTH-SP2": (12, 13, 14)}

#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 1": _table_1,
    "table 2": _gridded("SDSC-SP2", _table_2),
    **{f"table {number}": partial(_tables_3_to_6, of) for of, number in THRESHOLD_TABLE.items()},
    "table 7": _table_7,
    "figure 1": _figure_1,
    "figure 2": _figure_2,
    "figure 3": _gridded("SDSC-SP2", _figure_3),
    "figure 4": _gridded("SDSC-SP2", _figure_4),
    "figure 5": _gridded("SDSC-SP2", _figure_5),
    "figure 15": _months,
}
for _trace, (_saf, _weeks, _searches) in _FIGURES.items():
    JUDGES[f"figure {_saf}"] = items.of_picture(f"{_trace}-numbers/saf.png")
    JUDGES[f"figure {_weeks}"] = _gridded(_trace, partial(_mixed, _trace))
    JUDGES[f"figure {_searches}"] = items.of_picture(f"{_trace}-numbers/searches.png")
