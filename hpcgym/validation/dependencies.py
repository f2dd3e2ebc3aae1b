"""Proofs that jobs come after those that they follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hpcgym.validation.schedules import cases

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


def check_dependencies(result: Result) -> list[str]:
    """Find jobs that are submitted before those have ended that they follow.

    Worked out job by job. In closed loop a job comes just when its think time is over, if the log
    tells that. Where a number stands twice, as of a job that was requeued, the schedule does not
    say which row was followed: then the first end counts, and no more is proved.
    """
    workload = result.workload
    ends: dict[int, list[int]] = {}
    for row, number in enumerate(workload.job_number.tolist()):
        ends.setdefault(number, []).append(int(result.end[row]))
    more: dict[int, list[int]] = {}
    if workload.more_preceding is not None:
        for number, other in workload.more_preceding.tolist():
            more.setdefault(number, []).append(other)
    n = len(workload)
    due, exact = np.full(n, -1), np.zeros(n, np.bool_)
    for row, first in enumerate(workload.preceding_job.tolist()):
        named = [first, *more.get(int(workload.job_number[row]), ())]
        others = [ends[number] for number in named if number > 0 and number in ends]
        if others:
            think = int(workload.think_time[row])
            due[row] = max(map(min, others)) + max(think, 0)
            known = think >= 0 and all(len(other) == 1 for other in others)
            exact[row] = known and result.scheduler.dependencies == "closed-loop"
    submit = workload.submit_time
    follows = due >= 0
    return [
        *cases(
            follows & (submit < due),
            "job {} is submitted at {} s, and not before {} s, when it may follow another",
            submit,
            due,
        ),
        *cases(
            follows & exact & (submit > due),
            "job {} is submitted at {} s, although its think time is over at {} s",
            submit,
            due,
        ),
    ]
