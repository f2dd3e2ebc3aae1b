"""What Legrand et al. 2018 prints of results, and its items with their verdicts."""

from __future__ import annotations

from typing import Any

from hpcgym.benchmarks.studies import items

# --- What the paper prints. These numbers are only shown beside ours ------------------------------

_PRINTED = items.published_values(__file__)

#: Section 7.2.1: weeks of training and testing; section 9.3 halves the weeks of other traces.
SPLIT = {"SDSC-SP2": ((28, 64), (65, 100))}

#: Section 7.3: the weeks of figure 4.
MAPPED = {"SDSC-SP2": (70, 71, 72, 73)}

#: Table 1: jobs, their mean run time [s] and mean number of processors.
JOBS = {
    "KTH-SP2": (27_670, 8_579, 8),
    "CTC-SP2": (68_687, 9_807, 10),
    "SDSC-SP2": (49_809, 6_318, 12),
    "SDSC-BLUE": (208_716, 3_184, 40),
}

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


# --- The items of Legrand 2018, and what makes their verdicts -------------------------------------

TRACES = ("SDSC-SP2", "SDSC-BLUE", "CTC-SP2", "KTH-SP2")
#: The reading whose folder is looked at: the paper's numbers come out by it.
_READING = "numbers"


def _place(trace: str, name: str) -> str:
    return f"{trace}-{_READING}/{name}"


def _places(name: str) -> dict[str, str]:
    return {trace: _place(trace, name) for trace in TRACES}


def _tables_3_to_6(trace: str) -> items.Judge:
    """Judge the sums with and without thresholds by their ratios to the paper's."""

    def judge(stored: items.Stored) -> items.Verdict:
        table = stored.table(_place(trace, "thresholds"))
        ours, paper = items.columns_of(table, "ours", "paper")
        return items.of_values(ours, paper, 0.01, "sums")

    return judge


def _table_1(stored: items.Stored) -> items.Verdict:
    ours: list[float] = []
    printed: list[float] = []
    for trace, table in stored.each(_places("jobs"), "jobs of"):
        ours += table.set_index("jobs of").loc["after cleaning"].tolist()
        printed += JOBS[trace]
    return items.of_values(ours, printed, 1, "numbers and means")


def _table_2(stored: items.Stored) -> items.Verdict:
    table = stored.table(_place("SDSC-SP2", "split"), "policy", "train", "test")
    table = table.set_index("policy")
    if "w*" not in table.index:
        raise items.NotThereError("not all vectors were tried")
    names = TABLE_2["SDSC-SP2"]
    ours = [table.loc[name, half] for half in ("train", "test") for name in names]
    printed = [names[name][place] for place in (0, 1) for name in names]
    return items.of_values(ours, printed, 0.01, "sums")


def _table_7(stored: items.Stored) -> items.Verdict:
    table = stored.table(_place("SDSC-SP2", "longest"), "as in the paper")
    same = (table["as in the paper"] == "yes").sum()
    words = f"{same} of 10 jobs equal in all four columns"
    return (
        items.Verdict("exact", words) if same == 10 else items.of_count(int(same), 10, "jobs equal")
    )


def _figure_1(stored: items.Stored) -> items.Verdict:
    """Section 6.1: SAF has the least sum, SPF and LEXP are among the best, FCFS is among worse."""
    so = {}
    columns = ("threshold (s)", "policy", "ours")
    for trace, table in stored.each(_places("thresholds"), *columns):
        rows = table[table["threshold (s)"] == f"{THRESHOLDS[1]:,}"]
        order = rows.sort_values("ours")["policy"].tolist()
        so[f"{trace}: SAF is best"] = order[0] == "saf"
        so[f"{trace}: SPF and LEXP are of the best five"] = {"spf", "lexp"} <= {*order[:5]}
        so[f"{trace}: FCFS is of the worst six"] = "fcfs" in order[6:]
    if not so:
        raise items.NotThereError("no thresholds")
    return items.of_sentences(so)


def _mixed_sentences(trace: str, stored: items.Stored) -> dict[str, bool]:
    """Return sections 7 and 9: w* is far below all; w*_train and SAF are comparable in testing."""
    test = stored.table(_place(trace, "split"), "policy", "test").set_index("policy")["test"]
    if "w*" not in test:
        raise items.NotThereError("not all vectors were tried")
    pure = test.drop(["w*", "w*_train", "w_greedy"])
    return {
        "w* is below 3/4 of the best pure policy": bool(test["w*"] < 0.75 * pure.min()),
        "w*_train is best or second of those that are known before": bool(
            (pure < test["w*_train"]).sum() <= 1
        ),
        "w_greedy is above w*_train": bool(test["w_greedy"] > test["w*_train"]),
    }


def _mixed(trace: str) -> items.Judge:
    return lambda stored: items.of_sentences(_mixed_sentences(trace, stored))


def _searches(trace: str) -> items.Judge:
    """Sections 8.1.2 and 9: XNES finds w* in most weeks, and six features change little."""

    def judge(stored: items.Stored) -> items.Verdict:
        share = "share at most 0.01 above w*"
        table = stored.table(_place(trace, "searches"), "search", share, "sum")
        last = table.groupby("search").last()
        near = last.loc["xnes3", share]
        sums = last["sum"]
        return items.of_sentences(
            {
                f"xnes3 is at w* in most weeks ({near:.0%} within 1 %)": bool(near > 0.5),
                "xnes6 is below xnes3": bool(sums["xnes6"] < sums["xnes3"]),
                "by less than 10 %": bool(sums["xnes6"] > 0.9 * sums["xnes3"]),
            }
        )

    return judge


#: Weeks of SDSC-SP2 in which another pure policy is clearly better than SAF (section 6.2), and how
#: many times w* is below SAF and FCFS in week 73 (section 7.1).
_NOT_SAF = (38, 44, 56, 85)
_WEEK_73 = {"saf": 2.5, "fcfs": 3.0}


def _weekly(stored: items.Stored, *columns: str, covered: bool = True) -> Any:
    """Return the weeks of SDSC-SP2 by number; with what all vectors have told, or any."""
    place = _place("SDSC-SP2", "weekly")
    if covered and "w*" not in stored.table(place):
        raise items.NotThereError("not all vectors were tried")
    return stored.table(place, "week", *columns).set_index("week")


def _figure_2(stored: items.Stored) -> items.Verdict:
    """Section 6.2: SAF is best or near it in most weeks, and clearly not in those it names."""
    table = _weekly(stored, "saf", covered=False)
    pure = table[[name for name in TABLES_3_TO_6["SDSC-SP2"] if name in table]]
    ratio = table["saf"] / pure.min(axis=1)
    near = float((ratio <= 1.05).mean())
    so = {f"SAF is within 5 % of the best in most weeks ({near:.0%})": near > 0.5}
    for week in _NOT_SAF:
        so[f"not in week {week} ({ratio[week]:.2f} times)"] = bool(ratio[week] > 1.05)
    return items.of_sentences(so)


def _figure_3(stored: items.Stored) -> items.Verdict:
    """Sections 7.1 and 7.2: as of other traces, and week 73."""
    found = _mixed_sentences("SDSC-SP2", stored)
    week = _weekly(stored, *_WEEK_73).loc[73]
    for name, printed in _WEEK_73.items():
        ratio = float(week[name] / week["w*"])
        words = f"week 73: w* is about {printed:g} times below {name.upper()} ({ratio:.1f})"
        found[words] = abs(ratio / printed - 1) < 0.2
    return items.of_sentences(found)


def _figure_4(stored: items.Stored) -> items.Verdict:
    """Section 7.3: q >= 0 is the better half; the optimum of week 72 is poor in week 73."""
    better, worse = "mean BSLD, q > 0", "mean BSLD, q < 0"
    units = stored.table(_place("SDSC-SP2", "units"), "unit of times", better, worse)
    units = units.set_index("unit of times").loc["second"]
    week = _weekly(stored, "w_greedy").loc[73]
    ratio = float(week["w_greedy"] / week["w*"])
    return items.of_sentences(
        {
            "vectors with q > 0 are better on average": bool(units[better] < units[worse]),
            f"that of week 72 is poor in week 73 ({ratio:.1f} times w*)": ratio > 1.5,
        }
    )


def _months(stored: items.Stored) -> items.Verdict:
    """Section 11: w* outperforms by a large margin, w*_train and SAF are comparable."""
    so = {}
    for trace, table in stored.each(_places("months"), "policy", "test"):
        test = table.set_index("policy")["test"]
        pure = test.drop(["w*", "w*_train", "w_greedy"])
        so[f"{trace}: w* is below 3/4 of the best pure policy"] = bool(
            test["w*"] < 0.75 * pure.min()
        )
        so[f"{trace}: w*_train is within a quarter of SAF"] = bool(
            abs(test["w*_train"] / test["saf"] - 1) < 0.25
        )
    if not so:
        raise items.NotThereError("no months")
    return items.of_sentences(so)


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
        found[f"figure {saf}"] = (
            _figure_2 if named else items.of_picture(f"{_place(trace, 'saf')}.png")
        )
        found[f"figure {weeks}"] = _figure_3 if named else _mixed(trace)
        found[f"figure {searches}"] = _searches(trace)
    return found


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 1": _table_1,
    "figure 1": _figure_1,
    "table 2": _table_2,
    "figure 4": _figure_4,
    **_figures(),
    **{f"table {number}": _tables_3_to_6(trace) for trace, number in THRESHOLD_TABLE.items()},
    "table 7": _table_7,
    "figure 15": _months,
}
