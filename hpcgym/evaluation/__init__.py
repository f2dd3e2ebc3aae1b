"""Leaderboards: policies, agents and references on the same unseen slices of a workload."""

from hpcgym.evaluation.leaderboard import Leaderboard
from hpcgym.evaluation.run import evaluate

__all__ = ["Leaderboard", "evaluate"]
