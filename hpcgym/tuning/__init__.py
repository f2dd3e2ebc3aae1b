"""Tuning a scheduler on one's own log: searched on early weeks, judged on later ones."""

from __future__ import annotations

from hpcgym.tuning.space import SharedSpace, Space
from hpcgym.tuning.trials import USUAL_BOUNDS, Bound
from hpcgym.tuning.tune import Plan, Tuned, tune

__all__ = ["USUAL_BOUNDS", "Bound", "Plan", "SharedSpace", "Space", "Tuned", "tune"]
