"""What both documents print and say of results, and how it is judged by runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hpcgym.benchmarks.studies import items

# --- What is published ----------------------------------------------------------------------------

#: Galleguillos 2020, tables 1 and 2: machine of the study -> duration -> dispatcher -> average CPU
#: time of a dispatching decision [ms] and time of the whole simulation [s]; (): it did not end.
TIMES = items.published_values(__file__)["times"]

#: Galleguillos 2020, figure 6: on each instance the ratio of variables, PCP'20 to PCP'19, is below.
VARIABLES_BELOW = 0.1

#: Figure 7: between these is the ratio of dispatching times on almost all instances.
SECONDS_BETWEEN = (0.01, 1.0)


class Statement(NamedTuple):
    """What a text says of two runs.

    Attributes
    ----------
    item : the figure or table that it is of.
    section : where it says so.
    measure : a class of jobs, if not all count, and a part of its box: see :func:`column_of`.
    first, second : a dispatcher and a duration each; "prb D, all" is of another class of jobs.
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

    @property
    def pair(self) -> tuple[tuple[str, str], ...]:
        """Of both runs the name, and the measure."""
        run, _, of_class = self.second.partition(", ")
        measure = self.measure.partition(", ")[0]
        other = f"{measure}, {of_class}" if of_class else self.measure
        return (self.first, self.measure), (run, other)


#: All that sections 3.3 and 5.2 to 5.5 of Remediani 2017 say of pairs of runs, and sections 5.1 and
#: 5.2 of Galleguillos et al. 2020. Remediani's slowdowns are of the jobs that waited, as in the
#: figures; a box is taken by its upper quartile where the text names no other part; waits are means
#: over all jobs, as their trend.
STATEMENTS = tuple(Statement(*cells) for cells in items.csv_cells(__file__, "statements.csv")[1:])

#: Machines of Remediani's runs: a statement is judged by the first that has both.
OF_EURORA = ("eurora", "eurora-cph", "eurora-cp")
_OTHERS = {"table 1": "kit-forhlr-ii", "figure 4": "kit-forhlr-ii"}
_OTHERS |= {"table 2": "eurora-later", "figure 5": "eurora-later"}


def machines_of(item: str) -> tuple[str, ...]:
    """Return the machines by whose runs an item is judged."""
    return (_OTHERS[item],) if item in _OTHERS else OF_EURORA


#: What a measure is of -> where it is in an outcome, of a class of jobs.
_WHERE = {
    "slowdown": "shapes.{}.slowed",
    "slowdown (all jobs)": "shapes.{}.slowdown",
    "wait": "shapes.{}.wait",
    "wait (jobs that waited)": "shapes.{}.waited",
}


def column_of(measure: str) -> str:
    """Return where a measure such as "slowdown q3, long" is in an outcome of a run."""
    what, _, name = measure.partition(", ")
    kind, part = what.rsplit(" ", 1)
    return f"{_WHERE.get(kind, kind).format(name or 'all')}.{part}"


# --- Statements by intervals ----------------------------------------------------------------------

#: Within which share of the second both are about the same: the documents name none.
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
    half = _T[min(len(logs), len(_T) + 1) - 2] * logs.std(ddof=1) / np.sqrt(len(logs))
    return float(np.exp(logs.mean() - half)), float(np.exp(logs.mean() + half))


def judge_ratio(low: float, high: float, relation: str) -> str:
    """Return whether a statement is ``held``, ``contradicted`` or ``undecided`` by an interval.

    "below" holds if all of it is below 1, and is contradicted if all of it is above 1 - LEAST.
    "about" holds if it lies within ABOUT of 1, and is contradicted if it lies beyond. "at most"
    holds if it is below 1 + LEAST, and is contradicted if it is above 1.
    """
    most, least = 1 + ABOUT, 1 / (1 + ABOUT)
    holds, fails = {
        "below": (high < 1, low > 1 - LEAST),
        "about": (least < low and high < most, low > most or high < least),
        "at most": (high < 1 + LEAST, low > 1),
    }[relation]
    return "held" if holds else "contradicted" if fails else "undecided"


# --- Verdicts -------------------------------------------------------------------------------------


def _statements_of(item: str) -> items.Judge:
    """Judge all statements of an item, each by the first machine that has its runs."""

    def judge(stored: items.Stored) -> items.Verdict:
        said = {str(statement) for statement in STATEMENTS if statement.item == item}
        so_far: dict[str, str] = {}
        jobs: list[str] = []
        names = {name: f"{name}/table-statements" for name in machines_of(item)}
        for _, table in stored.each(names, "item", "what is said", "jobs", "so"):
            new = table["what is said"].isin(said - so_far.keys())
            rows = table[new & (table["item"] == item) & table["so"].notna()]
            jobs += rows["jobs"].unique().tolist()
            so_far |= dict(zip(rows["what is said"], rows["so"], strict=True))
        if not so_far:
            raise items.NotThereError("no two runs on three seeds")
        verdict, why = items.of_intervals(so_far, "comparisons of runs")
        silent = len(said - so_far.keys())
        why += f"; {silent} more have no runs here, or jobs on too few seeds" if silent else ""
        return items.Verdict(verdict, f"{why}; jobs: {', '.join(jobs)}")

    return judge


def _stops(stored: items.Stored) -> items.Verdict:
    """Section 5.1: PCP'19 does not finish on KIT; fewer jobs may not come to where it stops."""
    table = stored.table("kit-forhlr-ii/table-as-published", "ours", "published", "jobs")
    same = int((table["ours"] == table["published"]).sum())
    more = f"of {table['jobs'].mean():,.0f} jobs each, where the log has 114,355"
    what = "runs of pcp19:as=published stop dispatching"
    verdict, why = items.of_count(same, len(table), what, more)
    return items.Verdict("trend" if verdict == "trend" else "undecided", why)


def _ratio(column: str, words: str, why: str = "") -> items.Judge:
    """Judge a share of instances whose ratio is as published; what is published of all or most."""

    def judge(stored: items.Stored) -> items.Verdict:
        rows: Any = stored.table("table-sizes", "machine", "number", column)
        rows = rows[rows["machine"] == "eurora-later"]
        within = round(float((rows[column] * rows["number"]).sum()))
        more = f"states of {' and '.join(rows['instances of'])}, seed 1; there 624,564" + why
        return items.of_count(within, int(rows["number"].sum()), words, more)

    return judge


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    **{
        item: _statements_of(item)
        for item in dict.fromkeys(statement.item for statement in STATEMENTS)
    },
    "section 5.1": _stops,
    "figure 6": _ratio(
        f"as published: share below {VARIABLES_BELOW}",
        "instances with a ratio below 0.1",
        "; by the paper's formulas it grows with a job's units, of which many jobs here have more",
    ),
    "figure 7": _ratio(
        "seconds: share within {:g} to {:g}".format(*SECONDS_BETWEEN),
        "instances with a ratio between 0.01 and 1",
    ),
    "section 5.3, quality": _ratio("objective: share at 1", "instances with equal objectives"),
}
