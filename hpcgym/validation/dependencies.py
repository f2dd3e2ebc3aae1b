"""Proofs that jobs come after those that they follow, and when jobs are due."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.scheduler.quotas import bound_submissions
from hpcgym.validation.schedules import cases

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.workload.model import Workload

Ints = NDArray[np.int64]

_AT_ANY_TIME = -(2**62)  # [s] in place of when a job is due, where that is not known


def check_dependencies(result: Result) -> list[str]:
    """Find jobs that are submitted before those have ended that they follow, or too late.

    Worked out job by job. When each is due is known from the jobs as they were given, if no two
    have the same number. Where a number stands twice, as of a job that was requeued, the schedule
    does not say which row was followed: then its first end counts, and it is only proved that no
    job comes too early. Where the given jobs are not known, it is proved of think times that the
    log tells, in closed loop, that no job comes too late. Quotas of submitted jobs may let jobs
    come later than they are due.
    """
    due, exact, _ = _due(result)
    submit = result.workload.submit_time
    if bound_submissions(result.scheduler.quotas):
        exact = np.zeros_like(exact)
    return [
        *cases(
            submit < due, "job {} is submitted at {} s, and may not be before {} s", submit, due
        ),
        *cases(
            exact & (submit > due),
            "job {} is submitted at {} s, and should be at {} s",
            submit,
            due,
        ),
    ]


def ended_by(result: Result) -> Ints:
    """Return the first whole second at which each job has ended, (n_jobs,)."""
    shared = result.coschedule
    return result.end if shared is None else -(-shared.end_ticks // shared.ticks)


def due_times(result: Result) -> tuple[Ints, Ints]:
    """Return when each job is to be submitted [s], and its place in the log, both (n_jobs,).

    The place is -1 where either is not known.
    """
    due, exact, rows = _due(result)
    numbers = result.workload.job_number.tolist()
    place = np.array([rows.get(number, -1) for number in numbers], np.int64)
    return due, np.where(exact, place, -1)


def _due(result: Result) -> tuple[Ints, NDArray[np.bool_], dict[int, int]]:
    """Return when each job is due, whether just then; and places in the log by number, if known."""
    workload, given = result.workload, result.given
    ends: dict[int, list[int]] = {}
    over = ended_by(result)
    for row, number in enumerate(workload.job_number.tolist()):
        ends.setdefault(number, []).append(int(over[row]))
    once = all(number > 0 and len(found) == 1 for number, found in ends.items())
    rows: dict[int, int] = {}
    if given is not None and once:
        rows = {number: row for row, number in enumerate(given.job_number.tolist())}
    closed = result.scheduler.dependencies == "closed-loop"
    n = len(workload)
    follows = result.scheduler.dependencies != "none"
    due, exact = np.full(n, _AT_ANY_TIME), np.zeros(n, np.bool_)
    for row, named in enumerate(_named(workload)):
        others = [number for number in named if number in ends and follows]
        number, think = int(workload.job_number[row]), int(workload.think_time[row])
        if not others:
            due[row] = (
                given.submit_time[rows[number]] if given is not None and rows else _AT_ANY_TIME
            )
            exact[row] = bool(rows)
            continue
        last = max(min(ends[other]) for other in others)
        if given is not None and rows:
            own = rows[number]
            if closed and think < 0:
                think = _between(given, own, [rows[other] for other in others])
            earliest = -1 if closed else int(given.submit_time[own])
            due[row], exact[row] = max(last + max(think, 0), earliest), True
        else:
            due[row] = last + max(think, 0)
            exact[row] = closed and think >= 0 and all(len(ends[other]) == 1 for other in others)
    return due, exact, rows


def _named(workload: Workload) -> list[list[int]]:
    """Return the numbers of the jobs that each job follows, whether they are there or not."""
    more: dict[int, list[int]] = {}
    if workload.more_preceding is not None:
        for number, other in workload.more_preceding.tolist():
            more.setdefault(number, []).append(other)
    columns = zip(workload.job_number.tolist(), workload.preceding_job.tolist(), strict=True)
    return [
        [other for other in (first, *more.get(number, ())) if other > 0]
        for number, first in columns
    ]


def _between(given: Workload, own: int, others: list[int]) -> int:
    """Return how long the user of a job thought in the log, as far as it tells [s]."""
    ended = []
    for other in others:
        if given.wait_time[other] < 0:
            return 0
        columns = (given.submit_time, given.wait_time, given.run_time)
        ended.append(sum(int(column[other]) for column in columns))
    return max(int(given.submit_time[own]) - max(ended), 0)
