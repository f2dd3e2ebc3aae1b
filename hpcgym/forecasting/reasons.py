"""On what a start depends: how long running jobs go on, over the same futures."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.forecasting.run_times import Floats
from hpcgym.workload.columns import MISSING, Ints

if TYPE_CHECKING:
    import pandas as pd

#: With this chance, at most, some job is named though the start depends on none.
CHANCE = 0.01


def correlations(run_times: Ints, starts: Floats) -> Floats:
    """Return rank correlations of run times with starts, (n_running, n_starts).

    Spearman's (American Journal of Psychology, 1904): Pearson's of ranks, of which equal values
    have the mean. So it does not matter how long a wait is, and a start that never comes is the
    latest. 0 where one of both is the same in all futures.

    Parameters
    ----------
    run_times : (n_futures, n_running) [s].
    starts : (n_futures, n_starts) [s]; inf: never.
    """
    ran, started = _ranks(run_times), _ranks(starts)
    correlation: Floats = ran.T @ started
    return correlation


def _ranks(values: Ints | Floats) -> Floats:
    """Return ranks in each column, of mean 0 and length 1; 0 where all are equal."""
    import pandas as pd

    ranks = pd.DataFrame(values).rank().to_numpy(np.float64)
    ranks = ranks - ranks.mean(axis=0)
    length = np.sqrt((ranks**2).sum(axis=0))
    scaled: Floats = ranks / np.where(length > 0, length, 1)
    return scaled


def least_told(futures: int, jobs: int) -> float:
    """Return the correlation from which on it is no chance that it is the greatest of some jobs.

    Without any dependence, those of n futures are nearly normal with the deviation 1 / sqrt(n - 1)
    (Kendall, Rank Correlation Methods, 1948, chapter 5); Bonferroni's bound is over the jobs.
    """
    if futures < 2 or jobs < 1:
        return 1.0
    return min(NormalDist().inv_cdf(1 - CHANCE / jobs) / math.sqrt(futures - 1), 1.0)


def sentence_of(reason: pd.Series[Any]) -> str:
    """Return what a row of :meth:`Forecast.reasons` says in words; "": of no running job."""
    if reason.on == MISSING:
        return ""
    return (
        f"its start depends most on job {reason.on:.0f}, which usually ends at"
        f" {reason.share:.0%} of its request (rank correlation {reason.correlation:.2f})"
    )
