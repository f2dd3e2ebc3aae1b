"""Running-time estimates, and what happens when a job outlives its estimate."""

from hpcgym.prediction.estimates import CORRECTIONS, ESTIMATES

__all__ = ["CORRECTIONS", "ESTIMATES"]
