"""Weeks of a trace as what schedulers are compared on, each from an empty machine."""

from __future__ import annotations

from collections.abc import Mapping

from hpcgym.naming import WEEK_S
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import learn_before, simulate
from hpcgym.workload.extracts import slices
from hpcgym.workload.model import Workload

#: Legrand et al. 2018, section 6.1: how many consecutive weeks of a trace.
WEEKS = {"KTH-SP2": 45, "CTC-SP2": 45, "SDSC-SP2": 100, "SDSC-BLUE": 100}


def cut_weeks(workload: Workload, shift_s: int) -> dict[int, Workload]:
    """Return the weeks of a trace by number, each submission put ``shift_s`` later.

    Weeks count from time 0 of the trace's clock, as in Legrand et al. 2018.
    """
    moved = workload.with_columns(submit_time=workload.submit_time + shift_s)
    last = WEEKS.get(workload.name, 10**9)
    weeks = slices(moved, WEEK_S, label="week", origin_s=0)
    parts = {int(week.name.split()[-1]): week for week in weeks}
    return {number: part for number, part in parts.items() if number <= last}


def weekly_slowdowns(weeks: Mapping[int, Workload], scheduler: Scheduler) -> list[float]:
    """Return the mean bounded slowdown of each week, each from an empty machine.

    What is learned of run times in one week is known in the next.
    """
    found, learned = [], None
    for number, week in weeks.items():
        found.append(float(simulate(week, scheduler, learned=learned).bsld.mean()))
        learned = learn_before(week, scheduler, (number + 1) * WEEK_S, learned=learned)
    return found
