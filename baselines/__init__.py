"""References that do not learn; imported as ``hpcgym.baselines``.

Users measure their own schedulers against these: :data:`SCHEDULERS` are simulated, and
:func:`find_baseline` returns policies that act in environments, as agents do.
"""

from hpcgym.baselines.policies import BASELINES, Baseline, find_baseline
from hpcgym.baselines.schedulers import SCHEDULERS, find_scheduler

__all__ = ["BASELINES", "SCHEDULERS", "Baseline", "find_baseline", "find_scheduler"]
