"""Dispatchers: what they see at a scheduling pass, and how they are asked."""

from hpcgym.dispatching.view import PassView, Plan
from hpcgym.engine.nodes import BEST_FIT, FIRST_FIT

__all__ = ["BEST_FIT", "FIRST_FIT", "PassView", "Plan"]
