"""Orders by usage of the reference; what rounding alone decides is no case."""

from __future__ import annotations

from decimal import getcontext
from typing import Any

from drawing import assume

from hpcgym.reference.shares import DIGITS, Accounts, ByUsage

getcontext().prec = DIGITS.prec

__all__ = ["Accounts", "SlowOrder"]


class SlowOrder(ByUsage):
    """Leaves out cases in which the engine may round otherwise."""

    def begin(self, simulation: Any) -> None:
        super().begin(simulation)
        self.summed: dict[Any, Any] = {}  # who has had each score, at each time

    def doubt(self) -> None:
        assume(False)

    def score(self, job: Any, now: int) -> float:
        """Return it; sums of other thirds, say, that are equal may differ in doubles."""
        found = super().score(job, now)
        if self.accounts.in_a_tree and not isinstance(self.kind, str):
            other = self.summed.setdefault((now, found), job)
            if other.user != job.user and self.parts(other, now) != self.parts(job, now):
                self.doubt()
        return found

    def parts(self, job: Any, now: int) -> Any:
        """Return what a score is the sum of."""
        places = [self.place(what, job.user, now) for what in ("cpu", "energy")]
        return (*places, self.rest(job, now))
