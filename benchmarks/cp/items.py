"""What both documents print of results, and their items with their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hpcgym.benchmarks.studies import items

# --- What is published ----------------------------------------------------------------------------

INFINITE = float("inf")


class Times(NamedTuple):
    """A row of table 1 or 2 of Galleguillos et al. 2020.

    Attributes
    ----------
    dispatch_ms : average CPU time of a dispatching decision [ms]; infinite: the run did not end.
    total_s : time of the whole simulation [s].
    """

    dispatch_ms: float
    total_s: float


#: Machine of the study -> (dispatcher, duration) -> what these tables print.
TIMES = {
    machine: {
        (name, letter): Times(*of) if of else Times(INFINITE, INFINITE)
        for letter, by in rows.items()
        for name, of in by.items()
    }
    for machine, rows in items.published_values(__file__)["times"].items()
}

#: Galleguillos 2020, figure 6: on each instance the ratio of variables, PCP'20 to PCP'19, is below.
VARIABLES_BELOW = 0.1

#: Figure 7: between these is the ratio of dispatching times on almost all instances.
SECONDS_BETWEEN = (0.01, 1.0)


class Statement(NamedTuple):
    """What the text of Remediani 2017 says of two runs in one of its figures.

    Attributes
    ----------
    item : the figure.
    section : where it says so.
    measure : "slowdown", "wait" or "queue", a part of its box, and maybe a class of jobs.
    first, second : a dispatcher and a duration each; "prb D, all" is of another class.
    relation : "below", "about" or "at most".
    """

    item: str
    section: str
    measure: str
    first: str
    relation: str
    second: str

    def __str__(self) -> str:
        return f"{self.measure}: {self.first} {self.relation} {self.second}"


#: All that sections 3.3 and 5.2 to 5.4 of Remediani 2017 say of figures 3.3 to 5.11. Slowdowns are
#: of the jobs that waited, which are those of the figures, and a box is taken by its upper quartile
#: where the text does not name its median or mean; waits are means over all jobs, as their trend.
STATEMENTS = tuple(Statement(*cells) for cells in items.csv_cells(__file__, "statements.csv")[1:])

#: Within which share of the second both are about the same: the document names none.
ABOUT = 0.1
#: A first that is less than this share below the second is not below it.
LEAST = 0.01

#: Student's t, 97.5 %, of 1 to 20 degrees of freedom.
_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160),
    *(2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
FEWEST_SEEDS = 3


def ratio_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of two measures, paired by seed.

    It is that of the mean of its logarithms, by Student's t. Seeds on which one is 0 or none are
    left out, but where both are 0 they are equal; nan of fewer than :data:`FEWEST_SEEDS`.
    """
    pairs = np.array([first, second], np.float64)
    pairs[:, (pairs == 0).all(axis=0)] = 1.0
    a, b = pairs[:, ((pairs > 0) & np.isfinite(pairs)).all(axis=0)]
    if len(a) < FEWEST_SEEDS:
        return float("nan"), float("nan")
    logs = np.log(a / b)
    t = _T[min(len(logs), len(_T) + 1) - 2]
    half = t * float(logs.std(ddof=1)) / float(np.sqrt(len(logs)))
    return float(np.exp(logs.mean() - half)), float(np.exp(logs.mean() + half))


def judge_ratio(low: float, high: float, relation: str) -> str:
    """Return whether a sentence is ``held``, ``contradicted`` or ``undecided`` by an interval.

    "below" holds if all of it is below 1, and is contradicted if all of it is above 1 - LEAST.
    "about" holds if it lies within ABOUT of 1, and is contradicted if it lies beyond. "at most"
    holds if it is below 1 + LEAST, and is contradicted if it is above 1.
    """
    most, least = 1 + ABOUT, 1 / (1 + ABOUT)
    if relation == "below":
        holds, fails = high < 1, low > 1 - LEAST
    elif relation == "about":
        holds, fails = least < low and high < most, low > most or high < least
    else:
        holds, fails = high < 1 + LEAST, low > 1
    return "held" if holds else "contradicted" if fails else "undecided"


# --- Verdicts -------------------------------------------------------------------------------------

#: Whose runs a sentence is judged by: the first of these that has both.
OF_EURORA = ("eurora", "eurora-cph", "eurora-cp")


def _text(stored: items.Stored, figure: str) -> items.Verdict:
    """Judge what the text says of a figure, by the first machine that has the runs."""
    found: dict[str, str] = {}
    for machine in OF_EURORA:
        if stored.has(f"{machine}/table-statements.csv"):
            table = stored.table(f"{machine}/table-statements", "item", "Remediani 2017 says", "so")
            rows = table[(table["item"] == figure) & table["so"].notna()]
            pairs = zip(rows["Remediani 2017 says"], rows["so"], strict=True)
            found = {**dict(pairs), **found}
    verdict, why = items.of_intervals(found)
    said = {str(one) for one in STATEMENTS if one.item == figure}
    if silent := len(said - found.keys()):
        why += f"; {silent} more are of runs or jobs that there are too few of here"
    return items.Verdict(verdict, why)


def _of_figure(figure: str) -> items.Judge:
    return lambda stored: _text(stored, figure)


def _times(machine: str) -> items.Judge:
    """Judge the order of the dispatchers' times."""

    def judge(stored: items.Stored) -> items.Verdict:
        table = stored.table(f"{machine}/table-times", "run", "dispatch (ms)")
        ours = table.set_index("run")["dispatch (ms)"]
        so = {}
        for one, other in _pairs(machine):
            mine = [ours.get(" ".join(key), np.nan) for key in (one, other)]
            if np.isfinite(mine).all():
                so[f"{' '.join(one)} below {other[0]}"] = bool(mine[0] < mine[1])
        return items.of_sentences(so)

    return judge


def _pairs(machine: str) -> Iterator[tuple[Any, Any]]:
    """Yield the runs of which the first has published times below the second's."""
    published = TIMES[machine]
    for one, of_one in published.items():
        for other, of_other in published.items():
            if one[1] == other[1] and of_one.dispatch_ms < of_other.dispatch_ms < INFINITE:
                yield one, other


def _stops(stored: items.Stored) -> items.Verdict:
    """Section 5.1: PCP'19 does not finish on KIT."""
    table = stored.table("kit-forhlr-ii/table-as-published", "ours", "published")
    same = int((table["ours"] == table["published"]).sum())
    return items.of_count(same, len(table), "runs of pcp19:as=published stop dispatching")


def _qualities(machine: str, relation: str) -> items.Judge:
    """Judge what section 5 says of HCP'19's slowdowns and waits beside PCP'20's."""

    def judge(stored: items.Stored) -> items.Verdict:
        table = stored.table(f"{machine}/table-qualities", "measure", "low", "high")
        so = {
            f"{words}: hcp19 {relation} pcp20": judge_ratio(low, high, relation)
            for words, low, high in zip(table["measure"], table["low"], table["high"], strict=True)
            if np.isfinite([low, high]).all()
        }
        return items.of_intervals(so)

    return judge


def _ratio(column: str, words: str) -> items.Judge:
    """Judge a share of instances whose ratio is as published."""

    def judge(stored: items.Stored) -> items.Verdict:
        rows = stored.table("table-sizes", "machine", "number", column)
        rows = rows[rows["machine"] == "eurora-later"]
        number = rows["number"].to_numpy()
        within = round(float((rows[column].to_numpy() * number).sum()))
        return items.of_count(within, int(number.sum()), words)

    return judge


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    **{figure: _of_figure(figure) for figure in dict.fromkeys(one.item for one in STATEMENTS)},
    "table 1": _times("kit-forhlr-ii"),
    "section 5.1": _stops,
    "figure 4": _qualities("kit-forhlr-ii", "at most"),
    "table 2": _times("eurora-later"),
    "figure 5": _qualities("eurora-later", "about"),
    "figure 6": _ratio(f"as published: share below {VARIABLES_BELOW}", "instances below 0.1"),
    "figure 7": _ratio(
        "seconds: share within {:g} to {:g}".format(*SECONDS_BETWEEN),
        "instances between 0.01 and 1",
    ),
    "section 5.3, quality": _ratio("objective: share at 1", "instances of equal objectives"),
}
