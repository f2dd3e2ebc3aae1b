"""The same jobs, more or less crowded."""

from __future__ import annotations

import math

import numpy as np

from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.workload.model import Workload


def stretched(workload: Workload, factor: float) -> Workload:
    """Return a workload with the times between submissions multiplied by a factor.

    The first job is submitted when it was, and times are rounded down to seconds. By a factor of
    0.8 the offered load is a quarter higher.

    Raises
    ------
    HpcgymError : a factor that is not above 0, or not finite.
    WorkloadError : an extract, which begins with the state of a machine.
    """
    if not 0 < factor < math.inf:
        raise HpcgymError(f"factor must be above 0 and finite, not {factor!r}")
    if workload.initial is not None:
        raise WorkloadError(
            f"{workload.name} is an extract, and what ran before it cannot be stretched: stretch"
            " the log, and cut the extract out of it"
        )
    submit = workload.submit_time
    later = ((submit - submit[0]) * factor).astype(np.int64)
    return workload.with_columns(submit_time=submit[0] + later)
