"""How much longer jobs take at the frequencies that they run at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.power import unslowed
from hpcgym.cluster.powers import Floats
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


def full_speed_times(result: Result) -> NDArray[np.int64]:
    """Return how long jobs would have taken at the highest frequency, (n_jobs,) [s], rounded down.

    Raises
    ------
    HpcgymError : see :func:`job_slowdowns`.
    """
    return unslowed(result.run_time, job_slowdowns(result))


def job_slowdowns(result: Result) -> Floats:
    """Return the completion time of each job over that at the highest frequency, (n_jobs,).

    A job's own slowdown at the lowest level, the workload's column ``slowdown``, comes before that
    of its nodes. On nodes of several groups a job is as slow as on the slowest.

    Raises
    ------
    HpcgymError : frequencies of jobs on a machine whose nodes nobody tells.
    """
    factors = np.ones(len(result.start))
    if result.frequency is None:
        return factors
    own = result.workload.slowdown
    if result.cluster.groups and result.allocation is None:
        raise HpcgymError("frequency: the schedule does not tell who has which nodes")
    for number, group in enumerate(result.cluster.groups):
        assert result.allocation is not None
        if group.power is None or group.power.levels == 1:
            continue
        first, node, _ = result.allocation
        job = np.repeat(np.arange(len(factors)), np.diff(first))
        here = np.zeros(len(factors), np.bool_)
        here[job[result.cluster.group_of[node] == number]] = True
        level = np.minimum(result.frequency[here], group.power.levels - 1)
        slow = group.power.slowdowns_of(own[here])[np.arange(len(level)), level]
        factors[here] = np.maximum(factors[here], slow)
    return factors
