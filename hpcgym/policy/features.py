"""The job features that policies weigh, each a line of one table.

A feature is known when a job is submitted, but for the time that the job waits: its value is
``static + wait / patience``. All look at the requested time, which the scheduler knows, never at
the actual run time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

Column = NDArray[np.float64]  # (n_jobs,)


class JobColumns:
    """What features are computed from: columns of a workload, (n_jobs,) float64, when asked for."""

    def __init__(self, workload: Workload):
        self._workload = workload

    @cached_property
    def submit(self) -> Column:
        """Submit time [s]."""
        return self._workload.submit_time.astype(np.float64)

    @cached_property
    def requested(self) -> Column:
        """Requested time [s]."""
        return self._workload.requested_time.astype(np.float64)

    @cached_property
    def processors(self) -> Column:
        """Number of processors requested."""
        return self._workload.requested_processors.astype(np.float64)


@dataclass(frozen=True)
class Feature:
    """A named feature of a waiting job.

    Attributes
    ----------
    meaning : what it is, with its unit.
    source : where its formula comes from.
    static : the part that waiting does not change, (n_jobs,) float64; None means 0.
    patience : seconds of waiting that add 1, (n_jobs,) float64; None: waiting changes nothing.
    """

    meaning: str
    source: str
    static: Callable[[JobColumns], Column] | None = None
    patience: Callable[[JobColumns], Column] | None = None


def _log10_submit(jobs: JobColumns) -> Column:
    # submit times start at 0, where the published formulas have no value
    return np.log10(np.maximum(jobs.submit, 1.0))


def _serial_patience(jobs: JobColumns) -> Column:
    # log2 of one processor is 0: a serial job that has waited at all comes before all others
    return np.maximum(np.log2(jobs.processors) * jobs.requested, 1e-200)


_LEGRAND = "document 002, section 4.1"
_TANG = "Tang et al., Cluster 2009"
_CARASTAN = "Carastan-Santos and de Camargo, SC 2017"

#: Name -> feature. The first six, in this order, are the features of document 002.
FEATURES: dict[str, Feature] = {
    "processors": Feature("requested processors q", _LEGRAND, static=lambda jobs: jobs.processors),
    "requested": Feature("requested time p [s]", _LEGRAND, static=lambda jobs: jobs.requested),
    "wait": Feature("waiting time [s]", _LEGRAND, patience=lambda jobs: np.ones_like(jobs.submit)),
    "ratio": Feature("p / q [s]", _LEGRAND, static=lambda jobs: jobs.requested / jobs.processors),
    "expansion": Feature(
        "expansion factor (wait + p) / p",
        _LEGRAND,
        static=lambda jobs: np.ones_like(jobs.submit),
        patience=lambda jobs: jobs.requested,
    ),
    "area": Feature(
        "p q [processor seconds]", _LEGRAND, static=lambda jobs: jobs.requested * jobs.processors
    ),
    "unicef": Feature("wait / (log2(q) p)", _TANG, patience=_serial_patience),
    "f1": Feature(
        "log10(p) q + 870 log10(submit time)",
        _CARASTAN,
        static=lambda jobs: (
            np.log10(jobs.requested) * jobs.processors + 870.0 * _log10_submit(jobs)
        ),
    ),
    "f2": Feature(
        "sqrt(p) q + 25,600 log10(submit time)",
        _CARASTAN,
        static=lambda jobs: (
            np.sqrt(jobs.requested) * jobs.processors + 25_600.0 * _log10_submit(jobs)
        ),
    ),
    "f3": Feature(
        "p q + 6,860,000 log10(submit time)",
        _CARASTAN,
        static=lambda jobs: jobs.requested * jobs.processors + 6_860_000.0 * _log10_submit(jobs),
    ),
    "f4": Feature(
        "p sqrt(q) + 530,000 log10(submit time)",
        _CARASTAN,
        static=lambda jobs: (
            jobs.requested * np.sqrt(jobs.processors) + 530_000.0 * _log10_submit(jobs)
        ),
    ),
}

#: The features that a vector of six weights is for, in order (document 002, section 4.3).
WEIGHTED_FEATURES = tuple(FEATURES)[:6]
