"""The slowdown of jobs, of arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, is_number

TAU_S = 10  # [s] run times below this count as this in the bounded slowdown


def check_tau(tau: float) -> float:
    """Return what short run times count as [s], checked.

    Raises
    ------
    HpcgymError : no number above 0.
    """
    if not is_number(tau) or not 0 < tau < np.inf:
        raise HpcgymError(f"tau must be a number of seconds above 0, not {tau!r}")
    return float(tau)


def bsld(
    wait: NDArray[np.int64],
    run: NDArray[np.int64],
    tau: float = TAU_S,
    full_speed: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Return the bounded slowdown of each job: max((wait + run) / max(full_speed, tau), 1).

    Legrand et al. 2018, equation 1; Glesser 2016, section 7.4.3: there no job is slowed down, and
    ``full_speed`` is ``run``.

    Parameters
    ----------
    wait, run : (n_jobs,) [s] waiting and run times.
    tau : [s] run times below this count as this.
    full_speed : (n_jobs,) [s] run times at the highest frequency; None: as they are.
    """
    length = run if full_speed is None else full_speed
    return np.maximum((wait + run) / np.maximum(length, tau), 1.0)


def slowdown(wait: NDArray[np.int64], run: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the slowdown of each job: (wait + run) / run, (n_jobs,)."""
    return (wait + run) / run
