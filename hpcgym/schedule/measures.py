"""What a site would feel of a schedule: waits and slowdowns, over all jobs and by week."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.schedule.result import Result
from hpcgym.workload.slicing import WEEK_S

HOUR = 3600

#: Measure -> what it is. The less, the better.
MEASURES = {
    "mean_bsld": "mean bounded slowdown, of 10 s",
    "weekly_bsld": "geometric mean, over the weeks, of the mean bounded slowdown of their jobs",
    "mean_wait_h": "mean wait [h]",
    "p99_wait_h": "99th percentile of waits [h]",
    "max_wait_h": "longest wait [h]",
    "users_p90_wait_h": "90th percentile, over the users, of the mean wait of their jobs [h]",
}


def measures(result: Result, jobs: NDArray[np.bool_]) -> dict[str, float]:
    """Return each of :data:`MEASURES` of some jobs of a schedule; nan of no job.

    Parameters
    ----------
    jobs : (n_jobs,) which ones.
    """
    wait, bsld = result.wait / HOUR, result.bsld
    if not jobs.any():
        return dict.fromkeys(MEASURES, float("nan"))
    users = mean_by_user(wait, result.workload.user_id, jobs)
    return {
        "mean_bsld": float(bsld[jobs].mean()),
        "weekly_bsld": _weekly(weekly_sums(result, jobs)),
        "mean_wait_h": float(wait[jobs].mean()),
        "p99_wait_h": float(np.percentile(wait[jobs], 99)),
        "max_wait_h": float(wait[jobs].max()),
        "users_p90_wait_h": float(np.percentile(users, 90)),
    }


def weekly_sums(result: Result, jobs: NDArray[np.bool_], n_weeks: int = 1) -> NDArray[np.float64]:
    """Return sums over the jobs of each week, (n_weeks or more if there are more, 3).

    They are the number of the jobs, their bounded slowdowns, and their waits [h]. A job belongs to
    the week of its submission; weeks count from the first submission of the log.
    """
    week = result.workload.since_first_submit[jobs] // WEEK_S
    columns = np.ones(len(jobs)), result.bsld, result.wait / HOUR
    return np.stack([np.bincount(week, c[jobs], minlength=n_weeks) for c in columns], axis=1)


def _weekly(sums: NDArray[np.float64]) -> float:
    """Return the geometric mean of the means of weeks with jobs."""
    number, bsld, _ = sums[sums[:, 0] > 0].T
    return float(np.exp(np.log(bsld / number).mean()))


def mean_by_user(
    values: NDArray[np.float64], user: NDArray[np.int64], jobs: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the mean over the jobs of each user who has any of them."""
    users, number = np.unique(user[jobs], return_inverse=True)
    sums = np.bincount(number, values[jobs], minlength=len(users))
    means: NDArray[np.float64] = sums / np.bincount(number, minlength=len(users))
    return means
