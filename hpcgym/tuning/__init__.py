"""Tuning a scheduler on one's own log: searched on early weeks, judged on later ones."""

from __future__ import annotations

from hpcgym.tuning.bounds import USUAL_BOUNDS, Bound
from hpcgym.tuning.shared_space import SharedSpace
from hpcgym.tuning.space import Space
from hpcgym.tuning.tune import Plan, tune
from hpcgym.tuning.tuned import Tuned

__all__ = ["USUAL_BOUNDS", "Bound", "Plan", "SharedSpace", "Space", "Tuned", "tune"]
