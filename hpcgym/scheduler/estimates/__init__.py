"""Running-time estimates, and what happens when a job outlives its estimate."""

from hpcgym.scheduler.estimates.by_name import CORRECTIONS, ESTIMATES, Predictor
from hpcgym.scheduler.estimates.features import JOB_FACTS, JOB_FEATURES
from hpcgym.scheduler.estimates.heuristics import DataDriven
from hpcgym.scheduler.estimates.regression import Regression

__all__ = [
    "CORRECTIONS",
    "ESTIMATES",
    "JOB_FACTS",
    "JOB_FEATURES",
    "DataDriven",
    "Predictor",
    "Regression",
]
