"""Weeks and months of evaluations: which jobs are left out, and whether the last is short."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.core.cutting import PERIODS, Episode
from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import WorkloadWarning, warn_caller
from hpcgym.naming import duration
from hpcgym.workload import Workload


def left_out(whole: Workload, part: Episodes, chosen: Sequence[Episode]) -> int:
    """Return how many jobs of the weeks or months that are chosen are in none of the slices.

    These are the jobs that cross the end of their week or month.

    Parameters
    ----------
    whole : the workload that ``part`` was cut from.
    """
    if part.kind not in PERIODS or not part.alone:
        return 0
    submitted = int(np.isin(_periods(whole, part.kind), _numbers(chosen)).sum())
    return submitted - sum(episode.stop - episode.start for episode in chosen)


def warn_of_short_period(whole: Workload, part: Episodes, chosen: Sequence[Episode]) -> None:
    """Say so if the log ends before half of the last of its weeks or months, and that is chosen.

    Warns
    -----
    WorkloadWarning : once.
    """
    if part.kind not in PERIODS:
        return
    length, label = PERIODS[part.kind]
    last = int(_periods(whole, part.kind)[-1])
    told = int(whole.submit_time[-1]) - whole.first_submit_s - last * length
    if last in _numbers(chosen) and 2 * told < length:
        warn_caller(
            f"{whole.name}: the last {label}, {last}, ends after {duration(told)}; it counts as"
            f" much as a whole {label}",
            WorkloadWarning,
        )


def _periods(whole: Workload, kind: str) -> NDArray[np.int64]:
    """Return the number of the week or month that each job was submitted in."""
    return (whole.submit_time - whole.first_submit_s) // PERIODS[kind][0]


def _numbers(chosen: Sequence[Episode]) -> list[int]:
    """Return the numbers of weeks or months."""
    return [int(episode.name.rpartition(" ")[2]) for episode in chosen]
