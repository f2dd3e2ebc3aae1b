"""Leaderboards: policies, agents and references on the same unseen slices of a workload."""

from hpcgym.evaluation.leaderboard import Leaderboard
from hpcgym.evaluation.online import prequential
from hpcgym.evaluation.profiles import draw_profiles
from hpcgym.evaluation.ranks import average_ranks, draw_ranks
from hpcgym.evaluation.regret import Prequential
from hpcgym.evaluation.run import evaluate
from hpcgym.evaluation.shuffles import compare_shuffles
from hpcgym.evaluation.summary import summary

__all__ = [
    "Leaderboard",
    "Prequential",
    "average_ranks",
    "compare_shuffles",
    "draw_profiles",
    "draw_ranks",
    "evaluate",
    "prequential",
    "summary",
]
