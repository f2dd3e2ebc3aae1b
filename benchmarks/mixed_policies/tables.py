"""The paper's tables, ours beside its own, as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.mixed_policies.grid import THREE
from hpcgym.benchmarks.mixed_policies.optimum import Optimum
from hpcgym.benchmarks.mixed_policies.published import (
    JOBS,
    TABLE_2,
    TABLE_7,
    TABLES_3_TO_6,
    THRESHOLDS,
)
from hpcgym.benchmarks.mixed_policies.search import SEARCHES
from hpcgym.benchmarks.mixed_policies.study import PURE, Study
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

#: Name of a search -> its arrays for each budget, that of the least first.
Found = Mapping[str, Sequence[Mapping[str, Any]]]

#: What of w* a search may be away from it and still count as there.
NEAR = 0.01
_ROUNDING = 1e-9


def jobs(study: Study) -> pd.DataFrame:
    """Table 1: how many jobs, how long and how large."""
    import pandas as pd

    parts = {"after cleaning": [study.workload], "in the weeks": list(study.weeks.values())}
    rows: list[dict[str, Any]] = []
    for name, workloads in parts.items():
        run = np.concatenate([part.run_time for part in workloads])
        size = np.concatenate([part.requested_processors for part in workloads])
        rows.append(_row(name, len(run), run.mean(), size.mean()))
    if study.trace in JOBS:
        rows.append(_row("paper, table 1", *JOBS[study.trace]))
    return pd.DataFrame(rows)


def _row(name: str, number: int, run_time: float, size: float) -> dict[str, Any]:
    return {
        "jobs of": name,
        "number": number,
        "mean run time (s)": float(run_time),
        "mean processors": float(size),
    }


def weekly(
    study: Study, optimum: Optimum | None = None, searched: Found | None = None
) -> pd.DataFrame:
    """Return the mean BSLD of everything on each week (the figures' numbers).

    Of the searches those with the least budget.
    """
    import pandas as pd

    table = pd.DataFrame(study.pure(study.weeks).T, columns=list(PURE))
    table.insert(0, "week", list(study.weeks))
    table.insert(1, "jobs", [len(part) for part in study.weeks.values()])
    if optimum is not None:
        _add_optimum(table, optimum)
    for name, found in (searched or {}).items():
        table[name] = found[0]["bsld"]
    return table


def monthly(study: Study, optimum: Optimum) -> pd.DataFrame:
    """Return the mean BSLD of everything on each month (figure 15's numbers)."""
    import pandas as pd

    table = pd.DataFrame(study.pure(study.months).T, columns=list(PURE))
    table.insert(0, "month", list(study.months))
    table.insert(1, "jobs", [len(part) for part in study.months.values()])
    _add_optimum(table, optimum)
    return table


def _add_optimum(table: pd.DataFrame, optimum: Optimum) -> None:
    """Add what all vectors told."""
    table["w*"] = optimum.best
    table["w*_train"] = optimum.train
    table["w_greedy"] = optimum.greedy
    table["w_greedy, first"] = optimum.greedy_first
    for place, name in enumerate(THREE):
        table[f"w*: {name}"] = optimum.weights[:, place]
    table["w*: share of vectors"] = optimum.ties
    table["below SAF: share of vectors"] = optimum.below_saf


def split(study: Study, optimum: Optimum | None = None) -> pd.DataFrame:
    """Table 2: sums of weekly mean BSLD over the weeks of training and of testing.

    Rows are in the order of our training sums. Gains are relative to FCFS, in percent. In the first
    week, which has none before it, w_greedy is FCFS.
    """
    table = _with_greedy(weekly(study, optimum))
    names = [*PURE]
    if optimum is not None:
        names = ["w*", "w*_train", "w_greedy", *names]
    published = {} if study.quick else TABLE_2.get(study.trace, {})
    columns = {}
    for place, (half, chosen) in enumerate((("train", study.train), ("test", study.test))):
        rows = table[table["week"].isin(chosen)]
        ours = {name: float(rows[name].sum()) for name in names}
        columns[half] = ours
        columns[f"{half}: gain %"] = gains(ours)
        if published:
            paper = {name: values[place] for name, values in published.items()}
            columns[f"{half}: paper"] = paper
            columns[f"{half}: paper's gain %"] = gains(paper)
            columns[f"{half}: ours / paper"] = {
                name: value / paper[name] for name, value in ours.items() if name in paper
            }
    return _by_name(columns, "train")


def _with_greedy(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with FCFS where there is nothing for w_greedy to have learned from."""
    if "w_greedy" not in table:
        return table
    return table.assign(w_greedy=table["w_greedy"].fillna(table["fcfs"]))


def half_of_months(study: Study) -> tuple[list[int], list[int]]:
    """Return the months of training, the first ten or the first half, and of testing."""
    numbers = list(study.months)
    half = min(10, len(numbers) // 2)
    return numbers[:half], numbers[half:]


def months(study: Study, optimum: Optimum) -> pd.DataFrame:
    """Section 11: sums of monthly mean BSLD over the months of training and of testing."""
    table = _with_greedy(monthly(study, optimum))
    columns = {}
    for half, chosen in zip(("train", "test"), half_of_months(study), strict=True):
        rows = table[table["month"].isin(chosen)]
        names = ["w*", "w*_train", "w_greedy", *PURE]
        columns[half] = {name: float(rows[name].sum()) for name in names}
        columns[f"{half}: gain %"] = gains(columns[half])
    return _by_name(columns, "train")


def thresholds(study: Study) -> pd.DataFrame:
    """Tables 3 to 6: sums of weekly mean BSLD over all weeks, with and without a threshold.

    The paper's columns are each in rising order beside names in the order of the first: the value
    of FCFS, which no threshold changes, is in the row of SEXP in table 3 and of LRF in table 6. So
    with a threshold only the value of FCFS is known by name, and the others are compared by place.
    """
    import pandas as pd

    published = {} if study.quick else TABLES_3_TO_6.get(study.trace, {})
    rows = []
    for column, threshold in enumerate(THRESHOLDS):
        sums = study.pure(study.weeks, threshold).sum(axis=1)
        ours = dict(zip(PURE, sums.tolist(), strict=True))
        gained = gains(ours)
        paper = {name: values[column] for name, values in published.items()}
        fcfs = published["fcfs"][0] if published else np.nan
        reference = paper
        if paper and threshold is not None:
            reference = _in_places(ours, paper, fcfs)
        for place, name in enumerate(sorted(ours, key=ours.__getitem__), start=1):
            row = {
                "threshold (s)": "none" if threshold is None else f"{threshold:,}",
                "place": place,
                "policy": name,
                "ours": ours[name],
                "gain %": gained[name],
            }
            if paper:
                value = reference[name]
                row["paper"] = value
                row["paper's gain %"] = 100 * (1 - value / fcfs)
                row["ours / paper"] = ours[name] / value
            rows.append(row)
    return pd.DataFrame(rows)


def longest(study: Study, log: Workload) -> pd.DataFrame:
    """Table 7: the jobs with the longest run times; empty where the paper has no such table.

    Parameters
    ----------
    study : of the trace.
    log : the trace as logged, with nothing cleaned: most of these jobs ran for longer than they
        requested, and the cleaning of section 5.1's weeks drops them.
    """
    import pandas as pd

    printed = TABLE_7.get(study.trace, ())
    order = np.argsort(-log.run_time, kind="stable")[: len(printed)]
    kept = {*study.workload.job_number.tolist()}
    rows = []
    for place, theirs in zip(order.tolist(), printed, strict=False):
        columns = (log.job_number, log.submit_time, log.run_time, log.requested_processors)
        ours = tuple(int(column[place]) for column in columns)
        rows.append(
            {
                "job": str(ours[0]),
                "submit time (s)": ours[1],
                "run time (s)": ours[2],
                "processors": ours[3],
                "as in the paper": "yes" if ours == theirs else "no",
                "requested time (s)": int(log.requested_time[place]),
                "kept by cleaning": "yes" if ours[0] in kept else "no",
            }
        )
    return pd.DataFrame(rows)


def _in_places(
    ours: Mapping[str, float], paper: Mapping[str, float], fcfs: float
) -> dict[str, float]:
    """Return the paper's values by our names: that of FCFS, then the least for the least."""
    values = sorted(paper.values())
    values.remove(fcfs)
    others = sorted(ours.keys() - {"fcfs"}, key=ours.__getitem__)
    return {"fcfs": fcfs, **dict(zip(others, values, strict=True))}


def gains(sums: Mapping[str, float]) -> dict[str, float]:
    """Return by how many percent each sum is below that of FCFS."""
    return {name: 100 * (1 - value / sums["fcfs"]) for name, value in sums.items()}


def searches(optimum: Optimum, found: Found) -> pd.DataFrame:
    """Section 8.1.2: XNES against w* of three features, over all weeks, by evaluations of a week.

    The paper says that "for most weeks" both "give the same result", and for few others the search
    a slightly better one. Three shares of weeks tell how many: those at w* or below, those at most
    1 % above it, and those within 1 % of it either way, whose result is the same.
    """
    import pandas as pd

    rows = []
    for name, budgets in found.items():
        for one in budgets:
            bsld = one["bsld"]
            ratio = bsld / optimum.best
            there = reached(bsld, optimum.best)
            above = (1 + NEAR) * (1 + _ROUNDING)
            same = (ratio <= above) & (ratio >= (1 - NEAR) / (1 + _ROUNDING))
            rows.append(
                {
                    "search": name,
                    "features": SEARCHES[name],
                    "evaluations a week": int(one["evaluations"]),
                    "sum": float(bsld.sum()),
                    "sum of w*": float(optimum.best.sum()),
                    "weeks": len(bsld),
                    "weeks at w* or below": int(there.sum()),
                    "share of weeks at w* or below": float(there.mean()),
                    f"share at most {NEAR} above w*": float((ratio <= above).mean()),
                    f"share within {NEAR} of w*, either way": float(same.mean()),
                    "largest ratio to w*": float(ratio.max()),
                    "mean ratio to w*": float(ratio.mean()),
                    "weeks above w*": " ".join(map(str, optimum.numbers[~there].tolist())),
                }
            )
    return pd.DataFrame(rows)


def reached(bsld: Any, best: Any) -> Any:
    """Return where a search is at w* or below, but for rounding."""
    return bsld <= best * (1 + _ROUNDING)


def order_agreement(ours: Mapping[str, float], paper: Mapping[str, float]) -> tuple[int, int]:
    """Return how many pairs of policies have the same order in both, and the number of pairs."""
    pairs = list(combinations([name for name in ours if name in paper], 2))
    same = sum((ours[a] < ours[b]) == (paper[a] < paper[b]) for a, b in pairs)
    return same, len(pairs)


def _by_name(columns: Mapping[str, Mapping[str, float]], order: str) -> pd.DataFrame:
    """Return a table with a row for each name, sorted by one of the columns."""
    import pandas as pd

    table = pd.DataFrame(columns).sort_values(order)
    table.index.name = "policy"
    return table.reset_index()
