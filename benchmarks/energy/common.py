"""What the studies of energy share: what a machine uses from one time to another."""

from __future__ import annotations

from hpcgym.machine.power_plans import idle_w
from hpcgym.schedule.result import Result


def energy_within(result: Result, begin: int, end: int) -> float:
    """Return the energy from ``begin`` up to ``end`` [J].

    By the books of the schedule; before its first submission and after its last end all nodes are
    on and idle.
    """
    books = result.books
    inside = max(min(end, int(books.time[-1])) - max(begin, int(books.time[0])), 0)
    return books.joules(begin, end) + idle_w(result.cluster) * (end - begin - inside)
