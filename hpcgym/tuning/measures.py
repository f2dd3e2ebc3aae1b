"""What a site would feel of a schedule, and the same log with submissions moved a little."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.schedule.result import Result
from hpcgym.workload.model import Workload
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

JITTER_S = 600  # submissions are up to so much later, each by itself


def varied(workload: Workload, start_week: int, seed: int) -> Workload:
    """Return a log from a week on, counted from its first job, with jittered submissions.

    Seed 0 jitters nothing.
    """
    later = workload.submit_time >= workload.submit_time[0] + start_week * WEEK_S
    part = workload.take(later) if start_week else workload
    return jittered(part, seed)[0]


def jittered(workload: Workload, seed: int) -> tuple[Workload, NDArray[np.int64]]:
    """Return a log with jittered submissions, and which of its jobs each was, (n_jobs,).

    Seed 0 jitters nothing.
    """
    if seed == 0:
        return workload, np.arange(len(workload))
    moved = np.random.default_rng(seed).integers(0, JITTER_S + 1, len(workload))
    submit = workload.submit_time + moved
    order = np.argsort(submit, kind="stable")
    return workload.take(order).with_columns(submit_time=submit[order]), order


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


def weeks_of(workload: Workload) -> int:
    """Return how many weeks a log has, whatever the jitter of its submissions."""
    return int((workload.since_first_submit[-1] + JITTER_S) // WEEK_S) + 1


def mean_over_jitters(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of measures over jitters, (n_rules, n_measures).

    That of ``weekly_bsld`` is a geometric one, as it is over weeks.

    Parameters
    ----------
    values : (n_rules, n_seeds, n_measures) :data:`MEASURES`.
    """
    means: NDArray[np.float64] = values.mean(axis=1)
    weekly = list(MEASURES).index("weekly_bsld")
    means[:, weekly] = np.exp(np.log(values[:, :, weekly]).mean(axis=1))
    return means


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
