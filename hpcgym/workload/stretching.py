"""The same jobs, more or less crowded."""

from __future__ import annotations

import math

import numpy as np

from hpcgym.errors import HpcgymError, WorkloadError, is_number
from hpcgym.workload.model import Workload

_LATEST = 2**53  # [s] as of all times in a workload


def stretched(workload: Workload, factor: float) -> Workload:
    """Return a workload with the times between submissions multiplied by a factor.

    The first job is submitted when it was, and times are rounded down to seconds. By a factor of
    0.8 the offered load is a quarter higher.

    Raises
    ------
    HpcgymError : a factor that is no number above 0, or moves a job beyond the times of a log.
    WorkloadError : an extract, which begins with the state of a machine.
    """
    if not is_number(factor) or not 0 < factor < math.inf:
        raise HpcgymError(f"factor must be a number above 0, not {factor!r}")
    if workload.initial is not None:
        raise WorkloadError(
            f"{workload.name} is an extract, and what ran before it cannot be stretched: stretch"
            " the log, and cut the extract out of it"
        )
    if not len(workload):
        return workload
    first = int(workload.submit_time[0])
    later = (workload.submit_time - first) * float(factor)
    if later[-1] > _LATEST - first:
        raise HpcgymError(
            f"stretched by {factor:g} the last job of {workload.name} comes {later[-1]:g} s after"
            " the first, later than times of a log can be"
        )
    return workload.with_columns(submit_time=first + later.astype(np.int64))
