"""The rules that are compared: every order with every threshold, hold and way to backfill."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from hpcgym.baselines import SCHEDULERS
from hpcgym.schedule.measures import HOUR
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.rules import Scheduler

#: Name -> orders of the queue and of backfilling, and the run times that they look at.
ORDERS: dict[str, Scheduler] = {
    **{name: SCHEDULERS[name] for name in ("easy", "easy-sjbf", "easy++")},
    "easy, typical": Scheduler(backfill_order="spf", policy_estimate="typical-ratio"),
    **{name: SCHEDULERS[name] for name in ("saf", "saf-typical")},
}
#: Orders in which waiting counts as a power: their numbers were found by a search over the early
#: halves of six logs, so they are shown beside the others, combined with nothing, and not chosen.
AGED = {name: SCHEDULERS[name] for name in ("aged", "aged-safe")}
#: Hours after which a job goes to the head of the queue; None: never.
THRESHOLDS_H = (None, 20, 40, 80, 160)
#: Parts of the machine that long jobs hold back.
SHARES = (0.0, 0.05, 0.1, 0.14, 0.2)
BACKFILL = ("easy", "until-shadow")

#: Those of the table that says what is known already: the order, and the threshold [h].
NAMED = (
    ("easy", None),
    ("easy++", None),
    ("saf", None),
    ("saf", 80),
    ("saf-typical", None),
    ("saf-typical", 80),
    *((name, None) for name in AGED),
)
REFERENCE = "easy"


class Rule(NamedTuple):
    """One of them."""

    order: str
    threshold_h: int | None = None
    share: float = 0.0
    backfill: str = "easy"

    @property
    def name(self) -> str:
        """What tables call it."""
        parts = [self.order]
        if self.threshold_h is not None:
            parts.append(f"threshold {self.threshold_h} h")
        if self.share:
            parts.append(f"hold {self.share:g}")
        if self.backfill != "easy":
            parts.append("until shadow")
        return ", ".join(parts)

    @property
    def scheduler(self) -> Scheduler:
        """What :func:`hpcgym.simulate` takes."""
        order = {**ORDERS, **AGED}[self.order]
        by = "requested" if order.policy_estimate == "requested" else "both"
        return order.but(
            threshold=None if self.threshold_h is None else self.threshold_h * HOUR,
            hold=Hold(self.share, by=by) if self.share else order.hold,
            backfill=self.backfill,
        )


def all_rules() -> list[Rule]:
    """Return all combinations."""
    return _combined(ORDERS, THRESHOLDS_H, SHARES)


def named_rules() -> list[Rule]:
    """Return those of the table that says what is known already."""
    return [Rule(*each) for each in NAMED]


def quick_rules() -> list[Rule]:
    """Return a few, to see how the study looks."""
    return _combined(("easy", "saf"), (None, 80), (0.0, 0.1))


def _combined(
    orders: Iterable[str], thresholds_h: Iterable[int | None], shares: Iterable[float]
) -> list[Rule]:
    """Return the combinations; the oldest first needs no threshold."""
    rules = [Rule(*each) for each in product(orders, thresholds_h, shares, BACKFILL)]
    return [
        rule for rule in rules if rule.threshold_h is None or ORDERS[rule.order].policy != "fcfs"
    ]
