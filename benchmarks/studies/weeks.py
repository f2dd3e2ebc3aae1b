"""Weeks of a trace as what schedulers are compared on: cut at several times, with intervals.

A week's mean bounded slowdown depends on few jobs: moving one of them changes the rest of a crowded
week. So each trace is cut into weeks at several times of the week; a value is the mean over these
cuts, and intervals are those of paired resamples of weeks, the cuts of a week together; of fewer
than five weeks there are none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.naming import WEEK_S
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import learn_before, simulate
from hpcgym.study import Leaderboard
from hpcgym.study.intervals import FEWEST, how_often
from hpcgym.workload.extracts import slices
from hpcgym.workload.model import Workload

Floats = NDArray[np.float64]

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


def weekly_slowdowns(
    weeks: Mapping[int, Workload], scheduler: Scheduler, fresh: bool = False
) -> list[float]:
    """Return the mean bounded slowdown of each week, each from an empty machine.

    What is learned of run times in one week is known in the next, unless ``fresh``.
    """
    found, learned = [], None
    for number, week in weeks.items():
        found.append(float(simulate(week, scheduler, learned=learned).bsld.mean()))
        if not fresh:
            end = (number + 1) * WEEK_S
            learned = learn_before(week, scheduler, end, learned=learned)
    return found


def shifts(number: int) -> list[int]:
    """Return that many times of the week to cut at [s]."""
    return [k * WEEK_S // number for k in range(number)]


def board_of(
    numbers: Sequence[Sequence[int]], found: Mapping[str, Sequence[Floats]]
) -> Leaderboard:
    """Return a leaderboard with a row for each week, the mean over the cuts that have it.

    Parameters
    ----------
    numbers : of the weeks of each cut.
    found : scheduler -> values of the weeks of each cut.
    """
    columns = {}
    for name, values in found.items():
        cuts = [pd.Series(v, list(weeks)) for weeks, v in zip(numbers, values, strict=True)]
        columns[name] = pd.concat(cuts, axis=1).mean(axis=1)
    by_slice = pd.DataFrame(columns).sort_index()
    return Leaderboard({"mean_bsld": by_slice}, dict.fromkeys(found))


def table_of(board: Leaderboard, reference: str, best: str | None = None) -> pd.DataFrame:
    """Return sums over the weeks, and differences to one of the rows with intervals.

    Over all weeks, and over the second half: the cuts of the week in the middle reach back into
    the first. With a ``best`` row also the share of the gap between it and the reference that each
    row closes, over all weeks.
    """
    weeks = board.by_slice
    late = Leaderboard({"mean_bsld": weeks.iloc[len(weeks) // 2 + 1 :]}, board.schedulers)
    rows = []
    for name in weeks:
        row: dict[str, Any] = {"policy": name}
        for part, what in ((board, "all weeks"), (late, "second half")):
            n = len(part.by_slice)
            mean, low, high = (n * x for x in part.difference(str(name), reference))
            row[what] = float(part.by_slice[name].sum())
            ends = "" if np.isnan(low) else f" [{low:+.0f}, {high:+.0f}]"
            row[f"against {reference.upper()}, {what}"] = f"{mean:+.0f}{ends}"
        if best is not None:
            row["gap closed"] = _share(weeks, str(name), reference, best)
        rows.append(row)
    return pd.DataFrame(rows)


def _share(weeks: pd.DataFrame, name: str, reference: str, best: str) -> str:
    """Return the share of a gap that a row closes, with the interval of resamples of weeks."""
    gained = (weeks[reference] - weeks[name]).to_numpy()
    gap = (weeks[reference] - weeks[best]).to_numpy()
    n = len(weeks)
    if n < FEWEST:
        return f"{gained.sum() / gap.sum():.2f}"
    times = how_often(n, 2000, seed=0)
    low, high = np.percentile((times @ gained) / (times @ gap), [2.5, 97.5])
    return f"{gained.sum() / gap.sum():.2f} [{low:.2f}, {high:.2f}]"
