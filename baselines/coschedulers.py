"""The co-schedulers of ELiSE, "Examples of implemented (co-)Schedulers", by name.

Each is an order of the queue over the same core: jobs take half of each socket, on nodes in use
before idle ones, and there beside those with whom they are fastest. The document names them and
says in a line what they do; formulas are ours
(:data:`hpcgym.scheduler.policies.index.PASS_POLICIES`).
"""

from __future__ import annotations

from hpcgym.scheduler.rules import Scheduler

_HALF = Scheduler(allocation="half-socket")

#: Name -> scheduler, for :func:`hpcgym.simulate` with ``speedups``.
COSCHEDULERS: dict[str, Scheduler] = {
    # in order of arrival, with EASY's reservation for the first that waits
    "easy-co": _HALF,
    # the shortest, longest, largest of the queue first
    "sjf-co": _HALF.but(policy="sjf", backfill_order="sjf"),
    "ljf-co": _HALF.but(policy="lpf", backfill_order="lpf"),
    "largest-co": _HALF.but(policy="lqf", backfill_order="lqf"),
    # those that gain with most others first
    "popularity-co": _HALF.but(policy="popularity"),
    # what fits best into what is free, whoever waits
    "filler-co": _HALF.but(policy="filler", backfill="fill"),
    # two factors
    "sjf-filler-co": _HALF.but(policy="sjf-filler", backfill="fill"),
    "popularity-filler-co": _HALF.but(policy="popularity-filler", backfill="fill"),
    # spread and alone: what sharing adds, and what spreading does
    "easy-spread": _HALF.but(allocation="spread"),
}
