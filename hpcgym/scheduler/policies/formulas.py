"""The formulas of job features, of columns of jobs or of one job.

Each takes something with the attributes ``requested`` [s] (or the run time that stands for it),
``processors`` and ``since_first`` [s], the submit time counted from the first submission of the
whole log: columns, (n_jobs,) float64, or numbers where it is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def processors(jobs: Any) -> Any:
    """Return q."""
    return jobs.processors


def requested(jobs: Any) -> Any:
    """Return p [s]."""
    return jobs.requested


def ratio(jobs: Any) -> Any:
    """Return p / q [s]."""
    return jobs.requested / jobs.processors


def one(jobs: Any) -> Any:
    """Return 1."""
    return jobs.requested * 0.0 + 1.0


def area(jobs: Any) -> Any:
    """Return p q [processor seconds]."""
    return jobs.requested * jobs.processors


# that of the first job is 0, where the published formulas have no value


def f1(jobs: Any) -> Any:
    """Return log10(p) q + 870 log10(s), s the seconds since the first submission."""
    since = np.log10(np.maximum(jobs.since_first, 1.0))
    return np.log10(jobs.requested) * jobs.processors + 870.0 * since


def f2(jobs: Any) -> Any:
    """Return sqrt(p) q + 25,600 log10(s), s the seconds since the first submission."""
    since = np.log10(np.maximum(jobs.since_first, 1.0))
    return np.sqrt(jobs.requested) * jobs.processors + 25_600.0 * since


def f3(jobs: Any) -> Any:
    """Return p q + 6,860,000 log10(s), s the seconds since the first submission."""
    since = np.log10(np.maximum(jobs.since_first, 1.0))
    return jobs.requested * jobs.processors + 6_860_000.0 * since


def f4(jobs: Any) -> Any:
    """Return p sqrt(q) + 530,000 log10(s), s the seconds since the first submission."""
    since = np.log10(np.maximum(jobs.since_first, 1.0))
    return jobs.requested * np.sqrt(jobs.processors) + 530_000.0 * since


def serial_patience(jobs: Any) -> Any:
    """Return log2(q) p [s]."""
    # log2 of one processor is 0: a serial job that has waited at all comes before all others
    return np.maximum(np.log2(jobs.processors) * jobs.requested, 1e-200)
