"""Why a job of a schedule waited, and what all waiting is due to."""

from hpcgym.explanation.explain import GROUPS, Explanation, explain, waits, waits_by

__all__ = ["GROUPS", "Explanation", "explain", "waits", "waits_by"]
