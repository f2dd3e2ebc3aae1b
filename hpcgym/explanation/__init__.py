"""Why a job of a schedule waited."""

from hpcgym.explanation.explain import Explanation, explain

__all__ = ["Explanation", "explain"]
