"""The same log with submissions moved a little, and means over such jitters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcgym.schedule.measures import MEASURES
from hpcgym.workload.model import Workload
from hpcgym.workload.slicing import WEEK_S

JITTER_S = 600  # submissions are up to so much later, each by itself


def varied(workload: Workload, start_week: int, seed: int) -> Workload:
    """Return a log from a week on, counted from its first job, with jittered submissions.

    Seed 0 jitters nothing.
    """
    later = workload.submit_time >= workload.submit_time[0] + start_week * WEEK_S
    part = workload.take(later) if start_week else workload
    return jittered(part, seed)[0]


def jittered(workload: Workload, seed: int) -> tuple[Workload, NDArray[np.int64]]:
    """Return a log with jittered submissions, and which of its jobs each was, (n_jobs,).

    Seed 0 jitters nothing.
    """
    if seed == 0:
        return workload, np.arange(len(workload))
    moved = np.random.default_rng(seed).integers(0, JITTER_S + 1, len(workload))
    submit = workload.submit_time + moved
    order = np.argsort(submit, kind="stable")
    return workload.take(order).with_columns(submit_time=submit[order]), order


def weeks_of(workload: Workload) -> int:
    """Return how many weeks a log has, whatever the jitter of its submissions."""
    return int((workload.since_first_submit[-1] + JITTER_S) // WEEK_S) + 1


def mean_over_jitters(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of measures over jitters, (n_rules, n_measures).

    That of ``weekly_bsld`` is a geometric one, as it is over weeks.

    Parameters
    ----------
    values : (n_rules, n_seeds, n_measures) :data:`hpcgym.schedule.measures.MEASURES`.
    """
    means: NDArray[np.float64] = values.mean(axis=1)
    weekly = list(MEASURES).index("weekly_bsld")
    means[:, weekly] = np.exp(np.log(values[:, :, weekly]).mean(axis=1))
    return means
