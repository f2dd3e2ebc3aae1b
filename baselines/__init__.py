"""References that do not learn; imported as ``hpcgym.baselines``.

Users measure their own schedulers against these.
"""

from hpcgym.baselines.schedulers import SCHEDULERS, find_scheduler

__all__ = ["SCHEDULERS", "find_scheduler"]
