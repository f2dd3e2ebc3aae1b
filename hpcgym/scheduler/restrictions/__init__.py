"""Restrictions on when jobs may run: quotas, windows and preemption, a file each."""

from hpcgym.scheduler.restrictions.preemption import MODES, SUCH, Preemption, by_tier
from hpcgym.scheduler.restrictions.quotas import (
    COLUMNS,
    JOB,
    MOST_BOUND,
    OR,
    Quota,
    alternatives,
    are_budgets,
    bind_jobs,
    bound_submissions,
    of_tables,
    weigh_time,
)
from hpcgym.scheduler.restrictions.windows import (
    Window,
    read_windows,
    second_of,
    tells_reservations,
)

__all__ = [
    "COLUMNS",
    "JOB",
    "MODES",
    "MOST_BOUND",
    "OR",
    "SUCH",
    "Preemption",
    "Quota",
    "Window",
    "alternatives",
    "are_budgets",
    "bind_jobs",
    "bound_submissions",
    "by_tier",
    "of_tables",
    "read_windows",
    "second_of",
    "tells_reservations",
    "weigh_time",
]
