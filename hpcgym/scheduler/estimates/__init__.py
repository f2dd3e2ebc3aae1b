"""Running-time estimates, and what happens when a job outlives its estimate."""

from hpcgym.scheduler.estimates.by_name import (
    CORRECTIONS,
    ESTIMATES,
    JOB_FACTS,
    JOB_FEATURES,
    NAME,
    REQUEST,
    DataDriven,
    Predictor,
    Regression,
)

__all__ = [
    "CORRECTIONS",
    "ESTIMATES",
    "JOB_FACTS",
    "JOB_FEATURES",
    "NAME",
    "REQUEST",
    "DataDriven",
    "Predictor",
    "Regression",
]
