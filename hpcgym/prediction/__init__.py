"""Running-time estimates, and what happens when a job outlives its estimate."""

from hpcgym.prediction.estimates import CORRECTIONS, ESTIMATES, Predictor
from hpcgym.prediction.features import JOB_FACTS, JOB_FEATURES
from hpcgym.prediction.heuristics import DataDriven
from hpcgym.prediction.regression import Regression

__all__ = [
    "CORRECTIONS",
    "ESTIMATES",
    "JOB_FACTS",
    "JOB_FEATURES",
    "DataDriven",
    "Predictor",
    "Regression",
]
