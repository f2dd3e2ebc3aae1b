"""Dispatchers: what they see at a scheduling pass, and how they are asked."""

from hpcgym.engine.machines.nodes.filling import BEST_FIT, FIRST_FIT
from hpcgym.scheduler.dispatchers.view import PassView, Plan

__all__ = ["BEST_FIT", "FIRST_FIT", "PassView", "Plan"]
