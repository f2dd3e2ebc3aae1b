"""How much faster a job runs on more processors: models of speedups, relative to its logged width.

A log tells of one width and one run time. What a job would do on others is a model: by Downey, "A
model for speedup of parallel programs", UCB/CSD-97-933, 1997; by Amdahl, AFIPS 1967; or that all of
it is parallel. The numbers in :data:`SPEEDUPS` are assumptions, for a log cannot tell them: with
Downey's model of high variance a job has twice as much parallelism as it asked for, by Amdahl's law
a twentieth of its run time on one processor is serial.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Average parallelism of a job, by the processors that it asked for, and its coefficient of
#: variance: from 1 on Downey's model is that of high variance.
PARALLELISM, SIGMA = 2.0, 1.0
#: Share of the run time on one processor that is serial.
SERIAL = 0.05


def downey(processors: Any, parallelism: Any, sigma: float = SIGMA) -> Floats:
    """Return the speedup on some processors over one, by Downey's model.

    Parameters
    ----------
    processors : of a job, at least 1.
    parallelism : its average parallelism A, at least 1.
    sigma : the coefficient of variance of its parallelism, at least 0.

    Returns
    -------
    speedup : from 1 to A. Downey 1997, section 2: equations for sigma up to 1 and from 1 on.
    """
    n, a = np.asarray(processors, np.float64), np.asarray(parallelism, np.float64)
    if sigma >= 1:
        rising = n * a * (sigma + 1) / (sigma * (n + a - 1) + a)
        return np.where(n <= a + a * sigma - sigma, rising, a)
    rising = a * n / (a + sigma / 2 * (n - 1))
    slower = a * n / (sigma * (a - 0.5) + n * (1 - sigma / 2))
    return np.where(n <= a, rising, np.where(n <= 2 * a - 1, slower, a))


def amdahl(processors: Any, serial: float = SERIAL) -> Floats:
    """Return the speedup on some processors over one, by Amdahl's law; ``serial``: a share."""
    n: Floats = np.asarray(processors, np.float64)
    speedup: Floats = 1 / (serial + (1 - serial) / n)
    return speedup


#: Name -> function of the processors that jobs asked for, and of others, (n_jobs,) each. It returns
#: how many times as long they run on the others, (n_jobs,).
SPEEDUPS: dict[str, Callable[[Any, Any], Floats]] = {
    "downey": lambda logged, other: (
        downey(logged, PARALLELISM * logged) / downey(other, PARALLELISM * logged)
    ),
    "amdahl": lambda logged, other: amdahl(logged) / amdahl(other),
    "linear": lambda logged, other: np.asarray(logged / other, np.float64),
}
