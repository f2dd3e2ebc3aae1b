"""Dispatchers: what they see at a scheduling pass, and how they are called."""

from hpcgym.scheduler.allocations import BEST_FIT, FIRST_FIT
from hpcgym.scheduler.dispatchers.view import NodePlan, PassView

__all__ = ["BEST_FIT", "FIRST_FIT", "NodePlan", "PassView"]
