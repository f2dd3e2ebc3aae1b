"""Quotas: who may start, what counts from a start on, and no longer once a job has ended.

A job that would exceed a quota is passed over, as if it did not wait.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit_part
from hpcgym.schedule.records import whole_numbers

SCALARS = whole_numbers("settled")  # how many of the jobs that have ended count no longer


class Quotas(NamedTuple):
    """What may run at once. K quotas, C counts: a quota has one or several."""

    counts: NDArray[np.int64]  # (n_jobs, K) the counts that a job is in, -1: none of the quota
    processors: NDArray[np.int64]  # (n_jobs,)
    left: NDArray[np.int64]  # (C, 2) how many jobs, and processors, may still start
    scalars: NDArray[np.void]  # (1,) SCALARS


@jit_part
def exceeds(quotas, job):
    """Return whether a job would exceed a quota now."""
    for k in range(quotas.counts.shape[1]):
        count = quotas.counts[job, k]
        if count >= 0 and (
            quotas.left[count, 0] < 1 or quotas.left[count, 1] < quotas.processors[job]
        ):
            return True
    return False


@jit_part
def settle(quotas, sim, ended):
    """Let the jobs count no longer that have ended since."""
    while quotas.scalars[0].settled < sim.ended:
        note(quotas, ended[quotas.scalars[0].settled], np.int64(1))
        quotas.scalars[0].settled += 1


@jit_part
def note(quotas, job, sign):
    """Note that a job runs now (sign -1), or no longer (1)."""
    for k in range(quotas.counts.shape[1]):
        count = quotas.counts[job, k]
        if count >= 0:
            quotas.left[count, 0] += sign
            quotas.left[count, 1] += sign * quotas.processors[job]
