"""Leaderboards: policies, agents and references on the same unseen slices of a workload."""

from hpcgym.evaluation.figures import average_ranks, draw_profiles, draw_ranks
from hpcgym.evaluation.intervals import summary
from hpcgym.evaluation.leaderboard import Leaderboard
from hpcgym.evaluation.online import Prequential, prequential
from hpcgym.evaluation.run import evaluate

__all__ = [
    "Leaderboard",
    "Prequential",
    "average_ranks",
    "draw_profiles",
    "draw_ranks",
    "evaluate",
    "prequential",
    "summary",
]
