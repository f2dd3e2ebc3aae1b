"""In what order jobs are served: index policies, and mixed ones as weights over job features."""

from hpcgym.policy.features import FEATURES, WEIGHTED_FEATURES, Feature
from hpcgym.policy.index import POLICIES, IndexPolicy, Ranking, rank

__all__ = [
    "FEATURES",
    "POLICIES",
    "WEIGHTED_FEATURES",
    "Feature",
    "IndexPolicy",
    "Ranking",
    "rank",
]
