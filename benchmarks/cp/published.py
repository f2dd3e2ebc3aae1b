"""What both documents print of results, and their items with their verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hpcgym.benchmarks.studies import items

# --- What is published ----------------------------------------------------------------------------

INFINITE = float("inf")


@dataclass(frozen=True)
class Times:
    """A row of table 1 or 2 of Galleguillos et al. 2020.

    Attributes
    ----------
    dispatch_ms : average CPU time of a dispatching decision [ms]; infinite: the run did not end.
    total_s : time of the whole simulation [s].
    """

    dispatch_ms: float
    total_s: float


#: Machine -> (dispatcher, duration) -> what tables 1 and 2 of Galleguillos et al. 2020 print.
TIMES = {
    machine: {
        (name, letter): Times(*of) if of else Times(INFINITE, INFINITE)
        for letter, by in rows.items()
        for name, of in by.items()
    }
    for machine, rows in items.published_values(__file__)["times"].items()
}

#: Galleguillos et al. 2020, section 4: how many jobs the logs behind these tables have.
JOBS = {"kit-forhlr-ii": 114_355, "eurora": 400_000}

#: How many months they are of: June 2016 to January 2018 (Galleguillos 2020, section 4), and
#: March 2014 to August 2015 (Remediani 2017, section 3.1.1).
MONTHS = {"kit-forhlr-ii": 20, "eurora": 18}

#: Galleguillos 2020, figure 6: on each instance the ratio of variables, PCP'20 to PCP'19, is below.
VARIABLES_BELOW = 0.1

#: Figure 7: between these is the ratio of dispatching times on almost all instances.
SECONDS_BETWEEN = (0.01, 1.0)


class Statement(NamedTuple):
    """What the text of Remediani 2017 says of two runs in one of its figures.

    Attributes
    ----------
    first, second : a dispatcher and a duration each.
    measure : a column of our tables; its mean, or of a box the upper quartile.
    section : where it says so.
    about : it says that both are about the same; else that the first is below the second.
    later : it was added here once results were known.
    """

    first: str
    second: str
    measure: str
    section: str
    about: bool = False
    later: bool = False


#: Remediani 2017, chapters 3 and 5: what its text says of the figures.
STATEMENTS = tuple(
    Statement(first, second, measure, section, bool(about), bool(later))
    for first, second, measure, section, about, later in items.csv_cells(
        __file__, "statements.csv"
    )[1:]
)

#: Within which share of the second both are about the same: the document names none. It was chosen
#: before these statements were looked at.
ABOUT = 0.1


# --- Items of Remediani 2017 and Galleguillos 2020, and their verdicts ----------------------------


#: Jobs of all seeds below which a run is so short that hardly any of them waits.
FEWEST_JOBS = 500


def _check_length(stored: items.Stored, machine: str) -> None:
    """Raise a NotThereError for runs that ``--days`` has made too short to be compared."""
    jobs = stored.table(f"{machine}/runs", "shapes.all.jobs")["shapes.all.jobs"].min()
    if jobs < FEWEST_JOBS:
        raise items.NotThereError(f"{jobs:.0f} jobs of {machine} are too few to compare")


def _text(sections: tuple[str, ...], *measures: str) -> items.Judge:
    """Judge what the text says of a figure: rows of the statements by section and measure.

    Those that were added once results were known are not counted, where there are others.
    """

    def judge(stored: items.Stored) -> items.Verdict:
        _check_length(stored, "eurora")
        table = stored.table(
            "eurora/table-statements", "Remediani 2017 says", "section", "added", "ours"
        )
        measure = table["Remediani 2017 says"].str.partition(":")[0]
        rows = table[table["section"].astype(str).isin(sections) & measure.isin(measures)]
        before = rows[rows["added"].isna()]
        rows = before if len(before) else rows
        pairs = zip(rows["Remediani 2017 says"], rows["ours"], strict=True)
        return items.of_sentences({str(words): ours == "so" for words, ours in pairs})

    return judge


def _times(machine: str) -> items.Judge:
    """Judge the order of the dispatchers' times, and which do not come to an end."""

    def judge(stored: items.Stored) -> items.Verdict:
        _check_length(stored, machine)
        table = stored.table(f"{machine}/table-times", "run", "dispatch (ms)")
        table = table.set_index("run")["dispatch (ms)"]
        ours = {key: table.get(" ".join(key), np.nan) for key in TIMES[machine]}
        so = {}
        for first, one in TIMES[machine].items():
            for second, other in TIMES[machine].items():
                mine = ours[first], ours[second]
                apart = one.dispatch_ms < other.dispatch_ms < float("inf")
                if first[1] == second[1] and apart and np.isfinite(mine).all():
                    so[f"{' '.join(first)} below {second[0]}"] = bool(mine[0] < mine[1])
        return items.of_sentences(so)

    return judge


def _stops(stored: items.Stored) -> items.Verdict:
    """Section 5.1: PCP'19 does not finish on KIT; table of PCP'19 as published."""
    table = stored.table("kit-forhlr-ii/table-as-published", "ours", "published")
    same = int((table["ours"] == table["published"]).sum())
    return items.of_count(same, len(table), "runs of PCP'19 without a hint stop dispatching")


def _qualities(machine: str, durations: tuple[str, ...], sentences: str) -> items.Judge:
    """Judge what section 5 says of slowdowns: on KIT HCP'19 is slightly better, on Eurora alike."""

    def judge(stored: items.Stored) -> items.Verdict:
        _check_length(stored, machine)
        mean = stored.table(f"{machine}/table-slowdown", "run", "mean").set_index("run")["mean"]
        so = {}
        for duration in durations:
            names = [f"{one} {duration}" for one in ("hcp19", "pcp20")]
            if not {*names} <= {*mean.index}:
                continue
            heuristic, model = (float(mean[name]) for name in names)
            if sentences == "comparable":
                so[f"hcp19 and pcp20 within a quarter, {duration}"] = (
                    abs(model / heuristic - 1) < 0.25
                )
            else:
                so[f"hcp19 at or below pcp20, {duration}"] = heuristic <= 1.01 * model
        return items.of_sentences(so)

    return judge


def _ratio(column: str, words: str) -> items.Judge:
    """Judge a share of instances whose ratio is as published."""

    def judge(stored: items.Stored) -> items.Verdict:
        table = stored.table("table-sizes", "machine", "number", column)
        rows = table[table["machine"] == "eurora"]
        if not len(rows):
            raise items.NotThereError("nothing of eurora")
        shares = rows[column].to_numpy()
        number = rows["number"].to_numpy()
        within = round(float((shares * number).sum()))
        return items.of_count(within, int(number.sum()), words)

    return judge


_CLASSES = tuple(f"slowdown, {name}" for name in ("short", "medium", "long"))

#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "figure 3.3": _text(("3.3.1", "3.3.3"), "slowdown", "box of slowdown"),
    "figure 3.4": items.of_picture("eurora/classes.png"),
    "figure 3.5": _text(("3.3.3",), "box of queue"),
    "figure 5.1": _text(("5.2.1",), "slowdown"),
    "figure 5.2": _text(("5.2.1",), *_CLASSES),
    "figure 5.3": _text(("5.2.2",), "queue"),
    "figure 5.4": _text(("5.2.3",), "wait"),
    "figure 5.5": _text(("5.3.1",), "slowdown"),
    "figure 5.6": _text(("5.3.1",), *_CLASSES),
    "figure 5.7": _text(("5.3.2",), "queue"),
    "figure 5.8": _text(("5.3.3",), "wait"),
    "figure 5.9": _text(("5.4.1",), "slowdown"),
    "figure 5.10": _text(("5.4.2",), "queue"),
    "figure 5.11": _text(("5.4.3",), "wait"),
    "table 1": _times("kit-forhlr-ii"),
    "section 5.1": _stops,
    "figure 4": _qualities("kit-forhlr-ii", ("L2", "R"), "better"),
    "table 2": _times("eurora"),
    "figure 5": _qualities("eurora", ("D", "R"), "comparable"),
    "figure 6": _ratio(f"as published: share below {VARIABLES_BELOW}", "instances below 0.1"),
    "figure 7": _ratio(
        "seconds: share within {:g} to {:g}".format(*SECONDS_BETWEEN),
        "instances between 0.01 and 1",
    ),
    "section 5.3, quality": _ratio("objective: share at 1", "instances of equal objectives"),
}
