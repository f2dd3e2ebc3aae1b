"""What a schedule gains over EASY's, week by week of one replay, and whether it lets jobs starve.

Both schedules are of the same jobs, from the first job of a log to the last: a week that is
simulated alone drains at its end, which flatters schedulers that let wide jobs wait.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.schedule.measures import measures, weekly_sums
from hpcgym.schedule.result import Result

Floats = NDArray[np.float64]

#: Weeks with fewer jobs do not count: their means say little.
FEWEST_JOBS = 20
#: The gate: a schedule's longest wait, and area-weighted wait, may be so many times EASY's.
MOST = 2.0
#: [h] A longest wait of up to this passes the gate, whatever EASY's is.
FLOOR_H = 72.0


class Felt(NamedTuple):
    """The slowdowns and waits of some jobs of a schedule.

    Attributes
    ----------
    jobs : (n_weeks,) int64, how many of the jobs were submitted in each week; weeks count from the
        first submission of the log.
    bsld : (n_weeks,) float64, mean bounded slowdown of these; nan without jobs.
    longest_wait_h, area_weighted_wait_h : [h] of all of the jobs; the second as of
        :func:`hpcgym.schedule.metrics.weighted_wait`.
    """

    jobs: NDArray[np.int64]
    bsld: Floats
    longest_wait_h: float
    area_weighted_wait_h: float


class Gain(NamedTuple):
    """What a schedule gains on EASY's of the same jobs.

    Attributes
    ----------
    weeks : (n,) float64, log(EASY's / its mean bounded slowdown) of each week that counts.
    broken : what breaks the gate, in words; () if it is kept.
    """

    weeks: Floats
    broken: tuple[str, ...]

    @property
    def counted(self) -> Floats:
        """(n,) float64: the weeks, or EASY's own gain of 0 in each where the gate is broken."""
        return np.zeros_like(self.weeks) if self.broken else self.weeks

    @property
    def score(self) -> float:
        """The mean over the weeks that count; nan of none."""
        return float(self.counted.mean()) if len(self.weeks) else float("nan")


def felt(result: Result, jobs: NDArray[np.bool_]) -> Felt:
    """Return what some jobs of a schedule felt; the schedule is that of the whole log.

    Parameters
    ----------
    jobs : (n_jobs,) which ones, at least one, such as those submitted in the second half.

    Raises
    ------
    HpcgymError : none of them.
    """
    if not jobs.any():
        raise HpcgymError("jobs: no job has a wait that could be told")
    number, bsld, _ = weekly_sums(result, jobs).T
    means = np.divide(bsld, number, out=np.full(len(number), np.nan), where=number > 0)
    waits = measures(result, jobs)
    return Felt(number.astype(np.int64), means, waits["max_wait_h"], waits["area_weighted_wait_h"])


def times(ours: float, theirs: float) -> float:
    """Return how many times another wait ours is: where that is 0, 0 if ours is, and else inf."""
    return ours / theirs if theirs > 0 else float("inf") if ours > 0 else 0.0


def used(easy: Felt, ours: Felt) -> tuple[float, float]:
    """Return what share of the gate the longest and the area-weighted wait use, see :func:`times`.

    The gate is kept by up to 1 of both: by a longest wait of twice EASY's, or :data:`FLOOR_H`, and
    an area-weighted wait of twice EASY's.
    """
    return times(ours[2], _most(easy)[0]), times(ours[3], _most(easy)[1])


def _most(easy: Felt) -> tuple[float, float]:
    """Return the longest and the area-weighted wait [h] that keep the gate."""
    return max(MOST * easy.longest_wait_h, FLOOR_H), MOST * easy.area_weighted_wait_h


def gain(easy: Felt, ours: Felt) -> Gain:
    """Return what a schedule gains on EASY's of the same jobs.

    A week counts if :data:`FEWEST_JOBS` jobs were submitted in it. The gate is of :func:`used`.

    Raises
    ------
    HpcgymError : these are not the same jobs.
    """
    if not np.array_equal(easy.jobs, ours.jobs):
        raise HpcgymError("two schedules are compared week by week only if they have the same jobs")
    counts = easy.jobs >= FEWEST_JOBS
    weeks = np.log(easy.bsld[counts] / ours.bsld[counts])
    names = "longest wait", "area-weighted wait"
    broken = [
        f"{name} {value:,.1f} h, at most {most:,.1f} h"
        for name, value, most, share in zip(
            names, ours[2:], _most(easy), used(easy, ours), strict=True
        )
        if share > 1
    ]
    return Gain(weeks, tuple(broken))
