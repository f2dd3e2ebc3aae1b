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
    tells that.
    """
    workload = result.workload
    last: dict[int, int] = {}
    for row, number in enumerate(workload.job_number.tolist()):
        if last.get(number, -1) < 0 or result.end[row] >= result.end[last[number]]:
            last[number] = row
    n = len(workload)
    due, exact = np.full(n, -1), np.zeros(n, np.bool_)
    for row, number in enumerate(workload.preceding_job.tolist()):
        if number > 0 and number in last:
            think = int(workload.think_time[row])
            due[row] = result.end[last[number]] + max(think, 0)
            exact[row] = think >= 0 and result.scheduler.dependencies == "closed-loop"
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
