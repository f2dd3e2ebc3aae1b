"""Jobs that follow others: which, and how long their users think meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload


def followed(workload: Workload) -> NDArray[np.int64]:
    """Return the row of the job that each job follows, (n_jobs,); -1 if there is none.

    Of several rows with that number, as of a job that was requeued, the last.
    """
    number, wanted = workload.job_number, workload.preceding_job
    order = np.argsort(number, kind="stable")
    place = np.searchsorted(number[order], wanted, "right") - 1
    found = order[np.maximum(place, 0)] if len(order) else place
    known = (wanted > 0) & (place >= 0)
    known[known] = number[found[known]] == wanted[known]
    return np.where(known, found, -1).astype(np.int64)


def think_times(
    workload: Workload, other: NDArray[np.int64], dependencies: str
) -> NDArray[np.int64]:
    """Return how long after the end of the other each job is submitted at least, (n_jobs,) [s].

    That is its ``think_time``. Where the log does not tell that, it is 0; but "closed-loop" takes
    what lies in the log between the end of the other and the submission, if it tells that.

    Parameters
    ----------
    other : of :func:`followed`.
    dependencies : a name of :data:`hpcgym.scheduler.rules.DEPENDENCIES`.
    """
    think = np.maximum(workload.think_time, 0)
    if dependencies == "closed-loop":
        waited, told = workload.wait_time[other], workload.think_time >= 0
        ended = workload.submit_time[other] + waited + workload.run_time[other]
        between = np.maximum(workload.submit_time - ended, 0)
        think = np.where(told | (waited < 0), think, between)
    return np.where(other >= 0, think, 0).astype(np.int64)
