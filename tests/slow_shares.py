"""Orders by usage of the reference; what rounding alone decides is no case."""

from __future__ import annotations

from decimal import getcontext

from drawing import assume

from hpcgym.reference.shares import DIGITS, Accounts, ByUsage

getcontext().prec = DIGITS.prec

__all__ = ["Accounts", "SlowOrder"]


class SlowOrder(ByUsage):
    """Leaves out cases in which the engine may round otherwise."""

    def doubt(self) -> None:
        assume(False)
