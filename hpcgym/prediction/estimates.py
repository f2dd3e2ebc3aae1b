"""The named estimates of running times and the corrections of estimates that were too short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.errors import HpcgymError, unknown

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


def check_estimate(estimate: Any) -> str | NDArray[Any]:
    """Return an estimate as a known name or an array that nobody can change, (n_jobs,).

    Raises
    ------
    HpcgymError : an unknown name, or predictions that are no list of finite numbers.
    """
    if isinstance(estimate, str):
        if estimate not in ESTIMATES:
            raise HpcgymError(unknown("estimate", estimate, ESTIMATES, "an array of seconds"))
        return estimate
    try:
        given = np.asarray(estimate)
    except ValueError:  # lists of unequal length
        given = np.asarray(None)
    if given.ndim != 1:
        raise HpcgymError("estimate must be a name or an array of one number of seconds a job")
    if given.dtype.kind not in "iuf" or not np.isfinite(given).all():
        raise HpcgymError("estimate must hold finite numbers of seconds")
    if (given < 0).any():
        raise HpcgymError("estimate must not hold negative times; give the requested time instead")
    if given.flags.writeable:
        given = given.copy()
        given.flags.writeable = False
    return given


def predicted_run_times(
    estimate: str | NDArray[Any], run_time: NDArray[np.int64], workload: Workload
) -> NDArray[np.int64] | None:
    """Return the predictions that are known beforehand, None if they arise in the simulation.

    Parameters
    ----------
    estimate : as :func:`check_estimate` returns it; predictions, shape (n_jobs,) in seconds, are
        rounded down to whole seconds, at least 1.
    run_time : (n_jobs,) int64 [s], the actual run times.

    Raises
    ------
    HpcgymError : an array of another shape.
    """
    if isinstance(estimate, str):
        known = {"requested": workload.requested_time, "clairvoyant": run_time}
        return known.get(estimate)
    if estimate.shape != run_time.shape:
        raise HpcgymError(
            f"estimate has {len(estimate):,} predictions, the workload {len(run_time):,} jobs"
        )
    # exact: no time is beyond 2**53, the whole numbers that float64 holds
    seconds = np.clip(estimate.astype(np.float64), 1, state.LATEST_TIME)
    return seconds.astype(np.int64)
