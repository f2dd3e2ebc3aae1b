"""Dispatchers: what they see at a scheduling pass, and how they are called."""

from hpcgym.scheduler.allocations import BEST_FIT, FIRST_FIT
from hpcgym.scheduler.dispatchers.view import PassView, Plan

__all__ = ["BEST_FIT", "FIRST_FIT", "PassView", "Plan"]
