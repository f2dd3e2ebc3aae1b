"""Leaderboards: policies, agents and references on the same unseen slices of a workload."""

from hpcgym.evaluation.leaderboard import Leaderboard
from hpcgym.evaluation.online import prequential
from hpcgym.evaluation.regret import Prequential
from hpcgym.evaluation.run import evaluate
from hpcgym.evaluation.shuffles import compare_shuffles

__all__ = ["Leaderboard", "Prequential", "compare_shuffles", "evaluate", "prequential"]
