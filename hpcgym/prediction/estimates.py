"""The named estimates of running times and the corrections of estimates that were too short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

#: Name -> what a job's running time is taken to be when it is submitted.
ESTIMATES = {
    "requested": "the requested time",
    "clairvoyant": "the actual run time, which no real scheduler knows",
    "ave2": "the mean of the user's last two ended jobs, at most the requested time "
    "(Tsafrir et al. 2007; document 004, section 7.2.2)",
}

#: Name -> what is predicted once a job has run as long as predicted (document 004, section 7.4.2).
CORRECTIONS = {
    "requested": "the requested time",
    "incremental": "the first prediction + 1 min, 5 min, 15 min, 30 min, 1 h, ... 100 h in turn, "
    "at most the requested time",
    "recursive-doubling": "twice the running time so far",
}

CORRECTION_CODES = {
    "requested": state.TO_REQUESTED,
    "incremental": state.INCREMENTAL,
    "recursive-doubling": state.DOUBLING,
}


def predicted_run_times(
    estimate: str | NDArray[Any], run_time: NDArray[np.int64], workload: Workload
) -> NDArray[np.int64] | None:
    """Return the predictions that are known beforehand, None if they arise in the simulation.

    Parameters
    ----------
    estimate : a name of ESTIMATES, or predictions of shape (n_jobs,) in seconds; they are rounded
        down to whole seconds, at least 1.
    run_time : (n_jobs,) int64 [s], the actual run times.

    Raises
    ------
    HpcgymError : an unknown name, or an array of another shape or without numbers.
    """
    if isinstance(estimate, str):
        if estimate not in ESTIMATES:
            raise HpcgymError(
                f"unknown estimate {estimate!r}; known are {', '.join(ESTIMATES)}, or an array"
            )
        known = {"requested": workload.requested_time, "clairvoyant": run_time}
        return known.get(estimate)
    given = np.asarray(estimate)
    if given.shape != run_time.shape:
        raise HpcgymError(f"estimate has shape {given.shape}, the workload {len(run_time)} jobs")
    if given.dtype.kind not in "iuf" or not np.isfinite(given).all():
        raise HpcgymError("estimate must hold finite numbers of seconds")
    return np.clip(given, 1, state.LATEST_TIME).astype(np.int64)
