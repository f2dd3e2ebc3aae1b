"""In what order jobs are served: index policies, and mixed ones as weights over job features."""

from hpcgym.scheduler.policies.fair_share import FairShare
from hpcgym.scheduler.policies.features import FEATURES, USER_FEATURES, WEIGHTED_FEATURES, Feature
from hpcgym.scheduler.policies.index import (
    POLICIES,
    IndexPolicy,
    Ranking,
    rank,
    usual_backfill_order,
)

__all__ = [
    "FEATURES",
    "POLICIES",
    "USER_FEATURES",
    "WEIGHTED_FEATURES",
    "FairShare",
    "Feature",
    "IndexPolicy",
    "Ranking",
    "rank",
    "usual_backfill_order",
]
