"""Which jobs may come: blocks of past weeks, at the same time of the week.

A block is what was submitted in the week after one moment some weeks ago, or a day more, moved to
now: so nights, weekends, and the habits of users to send many jobs at once are in it. Where load
has changed since then, jobs are left out or doubled at random, until what the block asks for is
what came lately.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcgym.forecasting.run_times import RunTimes
from hpcgym.units import DAY_S, WEEK_S
from hpcgym.workload.columns import Ints
from hpcgym.workload.model import Workload

#: How many weeks back blocks begin at most.
WEEKS = 8
#: For how long jobs come in a future [s].
HORIZON_S = WEEK_S
#: The load of so long before now [s] is what blocks are scaled to, by at most these factors.
RECENT_S, LEAST, MOST = 2 * WEEK_S, 0.5, 2.0
#: Jobs that came so long before now, and later, are looked at [s].
LOOKS_BACK_S = (WEEKS + 2) * WEEK_S


class Block(NamedTuple):
    """Jobs to come in some futures.

    Attributes
    ----------
    rows : (n,) of the known jobs; one may stand there twice.
    submit : (n,) int64 [s] when each is submitted, rising.
    """

    rows: Ints
    submit: Ints


#: The block of a future in which no jobs come.
NOBODY = Block(np.zeros(0, np.int64), np.zeros(0, np.int64))


class Arrivals:
    """Jobs that may come, by those that came before.

    Parameters
    ----------
    jobs : submitted up to now, in that order, with requested times.
    run_time : (n_jobs,) [s] for how long each ran, or may run.
    """

    def __init__(self, jobs: Workload, run_time: Ints) -> None:
        self._submit = jobs.submit_time
        area = jobs.requested_processors * run_time.astype(np.float64)
        self._area = np.concatenate([[0.0], np.cumsum(area)])

    def sample(self, time: int, number: int, rng: np.random.Generator) -> list[Block]:
        """Draw blocks of jobs that come from a time [s] on; none if nobody had come before."""
        first = int(self._submit[0]) if len(self._submit) else time
        weeks = min(max((time - first - HORIZON_S) // WEEK_S, 1), WEEKS)
        recent = self._load(max(time - RECENT_S, first), time)
        blocks = []
        for _ in range(number):
            shift = WEEK_S * int(rng.integers(1, weeks + 1)) + DAY_S * int(rng.integers(0, 2))
            begin, end = time - shift, min(time - shift + HORIZON_S, time)
            a, b = self._submit.searchsorted([begin, end]).tolist()
            load = self._load(max(begin, first), end)
            factor = min(max(recent / load, LEAST), MOST) if load > 0 else 1.0
            times = np.floor(factor + rng.random(b - a)).astype(np.int64)
            rows = np.repeat(np.arange(a, b), times)
            blocks.append(Block(rows, self._submit[rows] + shift))
        return blocks

    def _load(self, begin: int, end: int) -> float:
        """Return what jobs of a time asked for, in processors."""
        a, b = self._submit.searchsorted([begin, end]).tolist()
        return float(self._area[b] - self._area[a]) / max(end - begin, 1)


def supposed_run_time(jobs: Workload, start: Ints, time: int, run_times: RunTimes) -> Ints:
    """Return for how long jobs ran, or typically run if they have not ended, (n_jobs,) [s].

    Parameters
    ----------
    jobs : with -1 as the run time of those that have not ended.
    start : (n_jobs,) [s] when they started, -1 of those that wait.
    time : [s] at which this is all known.
    """
    elapsed = np.where(start >= 0, time - start, 0)
    guess = np.maximum(
        (run_times.typical_ratio(time) * jobs.requested_time).astype(np.int64), elapsed
    )
    run = np.where(jobs.run_time >= 1, jobs.run_time, guess)
    seconds: Ints = np.clip(run, 1, np.maximum(jobs.requested_time, 1))
    return seconds
