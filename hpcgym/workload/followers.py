"""Which jobs follow which, and how long after these they are submitted.

A job follows the one of its ``preceding_job``, and those that ``more_preceding`` of the workload
has beside it. Both are by number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.workload.model import Ints, Workload


class Following(NamedTuple):
    """Which jobs follow which, by rows of the workload.

    Attributes
    ----------
    job : (n_pairs,) int64, rising: a job that follows another; it is there once for each of them.
    other : (n_pairs,) int64: the other.
    missing : (n_jobs,) bool: jobs that follow one that is not there.
    """

    job: Ints
    other: Ints
    missing: NDArray[np.bool_]


def followed(workload: Workload) -> Following:
    """Return which jobs follow which.

    Of several rows with the number of the other, as of a job that was requeued, the last is meant.
    """
    number, wanted = workload.job_number, workload.preceding_job
    order = np.argsort(number, kind="stable")
    ordered = number[order]
    job = np.flatnonzero(wanted > 0)
    wanted = wanted[job]
    if workload.more_preceding is not None:
        mine, others = workload.more_preceding.T
        first = np.searchsorted(ordered, mine)
        rows = np.searchsorted(ordered, mine, "right") - first
        place = np.repeat(first - (np.cumsum(rows) - rows), rows) + np.arange(rows.sum())
        job = np.concatenate([job, order[place]])
        wanted = np.concatenate([wanted, np.repeat(others, rows)])
    place = np.searchsorted(ordered, wanted, "right") - 1
    there = place >= 0
    there[there] = ordered[place[there]] == wanted[there]
    missing = np.zeros(len(number), np.bool_)
    missing[job[~there]] = True
    n = max(len(number), 1)
    found = np.unique(job[there] * n + order[place[there]])  # each pair once, as one number
    return Following(*np.divmod(found, n), missing)


def think_times(workload: Workload, following: Following, dependencies: str) -> Ints:
    """Return how long after the end of the last other each job is submitted, (n_jobs,) [s].

    That is its ``think_time``. Where the log does not tell that, it is 0; but "closed-loop" takes
    what lies in the log between the end of the last other and the submission, if it tells that.

    Parameters
    ----------
    following : of :func:`followed`.
    dependencies : a name of :data:`hpcgym.scheduler.rules.DEPENDENCIES`.
    """
    job, other, _ = following
    think = np.maximum(workload.think_time, 0)
    if dependencies == "closed-loop":
        waited, told = workload.wait_time[other], workload.think_time >= 0
        ended = np.full(len(think), np.iinfo(np.int64).min // 2)
        np.maximum.at(ended, job, workload.submit_time[other] + waited + workload.run_time[other])
        unknown = np.zeros(len(think), np.bool_)
        unknown[job[waited < 0]] = True
        between = np.maximum(workload.submit_time - ended, 0)
        think = np.where(told | unknown, think, between)
    follows = np.zeros(len(think), np.bool_)
    follows[job] = True
    return np.where(follows, think, 0).astype(np.int64)
