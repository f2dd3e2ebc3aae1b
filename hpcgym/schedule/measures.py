"""Measures of a schedule that matter to a site, and metrics of a part of it: some jobs, a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcgym.schedule.metrics import compute_metrics, is_of_jobs, weighted_wait
from hpcgym.schedule.result import Result
from hpcgym.units import HOUR_S, WEEK_S

# --- Measures of a schedule that matter to a site -------------------------------------------------


#: Measure -> what it is. The less, the better.
MEASURES = {
    "mean_bsld": "mean bounded slowdown, of 10 s",
    "weekly_bsld": "geometric mean, over the weeks, of the mean bounded slowdown of their jobs",
    "mean_wait_h": "mean wait [h]",
    "p99_wait_h": "99th percentile of waits [h]",
    "max_wait_h": "longest wait [h]",
    "area_weighted_wait_h": "mean wait, weighted by processors x run time [h]",
    "users_p90_wait_h": "90th percentile, over the users, of the mean wait of their jobs [h]",
}


def measures(result: Result, jobs: NDArray[np.bool_]) -> dict[str, float]:
    """Return each of :data:`MEASURES` of some jobs of a schedule; nan without jobs.

    Parameters
    ----------
    jobs : (n_jobs,) bool, the jobs that count.
    """
    wait, bsld = result.wait / HOUR_S, result.bsld
    if not jobs.any():
        return dict.fromkeys(MEASURES, float("nan"))
    users = mean_by_user(wait, result.workload.user_id, jobs)
    processors = result.workload.requested_processors
    return {
        "mean_bsld": float(bsld[jobs].mean()),
        "weekly_bsld": _weekly(weekly_sums(result, jobs)),
        "mean_wait_h": float(wait[jobs].mean()),
        "p99_wait_h": float(np.percentile(wait[jobs], 99)),
        "max_wait_h": float(wait[jobs].max()),
        "area_weighted_wait_h": weighted_wait(processors[jobs], result.run_time[jobs], wait[jobs]),
        "users_p90_wait_h": float(np.percentile(users, 90)),
    }


def weekly_sums(
    result: Result,
    jobs: NDArray[np.bool_],
    n_weeks: int = 1,
    since_first_submit: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Return sums over the jobs of each week, (n_weeks or more if there are more, 3).

    They are the number of the jobs, their bounded slowdowns, and their waits [h]. A job belongs to
    the week of its submission; weeks count from the first submission of the log.
    ``since_first_submit``: (n_jobs,) [s], if not those of this schedule.
    """
    since = result.workload.since_first_submit if since_first_submit is None else since_first_submit
    week = since[jobs] // WEEK_S
    columns = np.ones(len(jobs)), result.bsld, result.wait / HOUR_S
    return np.stack([np.bincount(week, c[jobs], minlength=n_weeks) for c in columns], axis=1)


def _weekly(sums: NDArray[np.float64]) -> float:
    """Return the geometric mean of the means of weeks with jobs."""
    number, bsld, _ = sums[sums[:, 0] > 0].T
    return float(np.exp(np.log(bsld / number).mean()))


def mean_by_user(
    values: NDArray[np.float64], user: NDArray[np.int64], jobs: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the mean over each user's jobs, for users with any of these jobs."""
    users, number = np.unique(user[jobs], return_inverse=True)
    sums = np.bincount(number, values[jobs], minlength=len(users))
    means: NDArray[np.float64] = sums / np.bincount(number, minlength=len(users))
    return means


# --- Metrics of a part of a schedule: some of its jobs, up to a time ------------------------------


def over_at(start: NDArray[np.int64], first: int, stop: int, end: int | None) -> int:
    """Return when the last job of some rows has started, or ``end`` if that is not before it [s].

    ``start``: start times, -1 of jobs that have not started.
    """
    starts = start[first:stop]
    last = int(starts.max())
    if end is not None and (last > end or (starts < 0).any()):
        return end
    return last


def metrics_within(
    result: Result, first: int, stop: int, end: int | None
) -> dict[str, float | int]:
    """Return metrics of some jobs of a schedule that is cut off at a time.

    Jobs that wait then are charged what they have waited so far: they count as if they started at
    that second.

    Parameters
    ----------
    result : of a pool, or of nodes without limits; jobs that have not started have start -1.
    first, stop : the rows of the jobs that count, the last exclusive; of an extract not those that
        ran when it began.
    end : [s]; None: never. Where all jobs that count start before it, it is the last such start.

    Returns
    -------
    metrics : those of jobs of :data:`hpcgym.schedule.metrics.METRICS`, of the jobs that count;
        ``utilization`` of the machine from the first submission of these jobs to the end, by all
        jobs; ``unserved_jobs``, those up to row ``stop``, also before ``first``, that wait at the
        end; ``longest_wait_s``, the longest that any of these has waited by then. Metrics without a
        value are nan.
    """
    submit, start = result.workload.submit_time, result.start
    begin, last = _interval(result, first, stop, end)
    begun = (start >= 0) & (start <= last)
    unserved = int(np.count_nonzero(~begun[:stop] & (submit[:stop] <= last)))
    metrics = compute_metrics(result_within(result, first, stop, end), is_of_jobs)
    metrics["utilization"] = _utilization(result.runs, begin, last)
    metrics["unserved_jobs"] = unserved
    waits = np.where(begun, start, last)[:stop] - submit[:stop]
    metrics["longest_wait_s"] = int(waits[result.decided[:stop]].max(initial=0))
    return metrics


def result_within(result: Result, first: int, stop: int, end: int | None) -> Result:
    """Return a schedule of the jobs alone that count, as :func:`metrics_within` has them."""
    submit, start = result.workload.submit_time, result.start
    _, last = _interval(result, first, stop, end)
    begun = (start >= 0) & (start <= last)
    chosen = (submit <= last) & result.decided
    chosen[:first] = chosen[stop:] = False
    rows = np.flatnonzero(chosen)
    return Result(
        replace(result.workload, initial=None).take(rows),
        result.cluster,
        result.scheduler,
        start=np.where(begun, start, last)[rows],
        run_time=result.run_time[rows],
        predicted_run_time=result.predicted_run_time[rows],
        reserved_start=result.reserved_start[rows],
        backfilled=result.backfilled[rows],
        suspended=None if result.suspended is None else (result.suspended * begun)[rows],
        outside=result.outside,
    )


def _interval(result: Result, first: int, stop: int, end: int | None) -> tuple[int, int]:
    """Return when the jobs that count begin to come, and when all is over [s].

    Where none counts, as may be of those that are known of an episode, that is when it begins.
    """
    if first >= stop:
        return result.begin, result.begin
    begin = max(int(result.workload.submit_time[first]), result.begin)
    return begin, max(over_at(result.start, first, stop, end), begin)


def _utilization(result: Result, begin: int, end: int) -> float:
    """Return the share of the machine's processor seconds that jobs have in an interval.

    Jobs that have not started have start -1.
    """
    if end <= begin:
        return float("nan")
    run = np.minimum(result.start + result.run_time, end) - np.maximum(result.start, begin)
    busy = np.where(result.start >= 0, np.maximum(run, 0), 0) * result.workload.requested_processors
    return float(busy.sum()) / (result.cluster.processors * (end - begin))
