"""The two ways to read the paper, and the weeks and months of a trace under each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hpcgym.benchmarks.studies.weeks import WEEKS
from hpcgym.errors import WorkloadError, check_choice
from hpcgym.workload.extracts import MONTH_S, WEEK_S, slices
from hpcgym.workload.model import Workload

#: The cleaning recipe of both readings.
RECIPE = "legrand"


@dataclass(frozen=True)
class Reading:
    """How the paper is read where its text and its numbers disagree.

    Attributes
    ----------
    name : "text" or "numbers".
    meaning : for people.
    tau_s : run times below it count as it in bounded slowdowns, seconds.
    drops_crossing : whether jobs that logged a start and an end in different periods are dropped.
    first_week : number, counted from the trace's time 0, of the paper's week 1.
    """

    name: str
    meaning: str
    tau_s: int
    drops_crossing: bool
    first_week: int


READINGS = {
    "text": Reading(
        "text",
        "as the paper says: bounded slowdown with 10 s; jobs that logged a start in one week and an"
        " end in another are dropped; the paper's week 1 is the second of the trace",
        tau_s=10,
        drops_crossing=True,
        first_week=1,
    ),
    "numbers": Reading(
        "numbers",
        "as the paper's numbers come out: bounded slowdown with 60 s; no job is dropped at the ends"
        " of weeks; the paper's week 1 is the fourth of its traces (of any other the second)",
        tau_s=60,
        drops_crossing=False,
        first_week=3,
    ),
}


def find_reading(name: str) -> Reading:
    """Return a reading by name.

    Raises
    ------
    HpcgymError : an unknown name.
    """
    check_choice("reading", name, READINGS)
    return READINGS[name]


def weeks(workload: Workload, reading: Reading, number: int | None) -> dict[int, Workload]:
    """Return the weeks from number 1 to ``number``, or to the last that has jobs.

    In the paper's numbers, if it has this trace; of others week 1 is the second from time 0.
    """
    first = reading.first_week if workload.name in WEEKS else 1
    found = _periods(workload, reading, WEEK_S, first, "week")
    return {week: part for week, part in found.items() if number is None or week <= number}


def months(workload: Workload, reading: Reading) -> dict[int, Workload]:
    """Return the months of 30 days from the second of the trace on, which is number 1.

    A trace that ends before has none.
    """
    return _periods(workload, reading, MONTH_S, 1, "month")


def _periods(
    workload: Workload, reading: Reading, period_s: int, first: int, label: str
) -> dict[int, Workload]:
    """Return the periods that have jobs, the one numbered ``first`` from time 0 as number 1."""
    if reading.drops_crossing:
        try:
            parts = slices(workload, period_s, first=first, label=label, origin_s=0)
        except WorkloadError:  # no job in any of them
            return {}
        return {int(part.name.rpartition(" ")[2]) - first + 1: part for part in parts}
    period = workload.submit_time // period_s
    found = {}
    for number in np.unique(period[period >= first]).tolist():
        begin, end = np.searchsorted(period, [number, number + 1]).tolist()
        name = f"{workload.name} {label} {number}"
        found[number - first + 1] = workload.take(slice(begin, end), name=name)
    return found
