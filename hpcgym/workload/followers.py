"""Which jobs follow which others, and how long after their ends they are submitted.

A job follows the job with the number ``preceding_job``, and the further ones that the workload's
``more_preceding`` lists for it by number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.workload.columns import Ints
from hpcgym.workload.model import Workload


class Following(NamedTuple):
    """Which jobs follow which, by rows of the workload.

    Attributes
    ----------
    job : (n_pairs,) int64, ascending: a job that follows another, once for each of the others.
    other : (n_pairs,) int64: the other job.
    missing : (n_jobs,) bool: whether the job follows a job that is not in the workload.
    """

    job: Ints
    other: Ints
    missing: NDArray[np.bool_]


def followed(workload: Workload) -> Following:
    """Return which jobs follow which.

    If several rows have the other job's number, as after a requeue, the last one counts.
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
    pairs = np.unique(job[there] * n + order[place[there]])  # each pair once, as one number
    return Following(*np.divmod(pairs, n), missing)


def think_times(workload: Workload, following: Following, dependencies: str) -> Ints:
    """Return how long after the end of the last other each job is submitted, (n_jobs,) [s].

    It is the job's ``think_time``. If the log does not tell that, it is 0; but "closed-loop" takes
    the time in the log between the end of the last other and the submission, if it is known.

    Parameters
    ----------
    following : of :func:`followed`.
    dependencies : a name of :data:`hpcgym.scheduler.rules.DEPENDENCIES`.
    """
    job, other, _ = following
    think = np.maximum(workload.think_time, 0)
    if dependencies == "closed-loop":
        waited, is_told = workload.wait_time[other], workload.think_time >= 0
        ended = np.full(len(think), np.iinfo(np.int64).min // 2)
        np.maximum.at(ended, job, workload.submit_time[other] + waited + workload.run_time[other])
        unknown = np.zeros(len(think), np.bool_)
        unknown[job[waited < 0]] = True
        between = np.maximum(workload.submit_time - ended, 0)
        think = np.where(is_told | unknown, think, between)
    follows = np.zeros(len(think), np.bool_)
    follows[job] = True
    return np.where(follows, think, 0).astype(np.int64)
