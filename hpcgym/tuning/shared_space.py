"""The rules that are searched where jobs share nodes, in place of those of a pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.coschedulers import COSCHEDULERS
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.allocations import check_allocation_name
from hpcgym.scheduler.policies.features import PASS_FEATURES
from hpcgym.scheduler.policies.index import PASS_POLICIES, POLICIES
from hpcgym.scheduler.rules import PARTNERS
from hpcgym.simulation.prepare import COSCHEDULED
from hpcgym.tuning.space import (
    ORDERS,
    WEIGHTS,
    Numbers,
    Rules,
    bounds_of,
    clipped_to,
    named_weights,
    several,
    threshold_of,
)
from hpcgym.workload.model import Workload

#: What may be added to an order of the queue and a choice of nodes.
LEVERS = ("threshold", "pairs_above")
#: Ways to back-fill that are searched.
BACKFILL = ("none", "easy", "fill")

#: From and to what ``pairs_above`` goes, and where it begins: who gains, who gains by a tenth.
_ABOVE = (0.8, 1.4)
_ABOVE_STARTS = ((1.0 - _ABOVE[0]) / (_ABOVE[1] - _ABOVE[0]), 0.5)
_THRESHOLD_START = 0.55  # about 32 hours
#: Weights to begin with, of what is between -1 and 1 for all jobs.
_STARTS: tuple[dict[str, float], ...] = (
    {"fit": 1.0},
    {"fit": 1.0, "shortness": 1.0},
    {"popularity": 1.0, "shortness": 1.0},
)


class SharedArm(NamedTuple):
    """A combination of named rules; numbers are searched for each by itself."""

    allocation: str
    order: str
    backfill: str
    backfill_order: str
    partners: str
    threshold: bool
    pairs_above: bool

    def __str__(self) -> str:
        words = [self.allocation, self.order, f"{self.backfill} backfilling"]
        if self.backfill == "easy":
            words.append(f"in order {self.backfill_order}")
        if shares(self.allocation):
            words.append(f"{self.partners} partners")
        return ", ".join([*words, *(lever for lever in LEVERS if getattr(self, lever))])


@dataclass(frozen=True)
class SharedSpace:
    """Which rules of jobs that share nodes are searched.

    Attributes
    ----------
    orders : of the queue: names of :data:`hpcgym.scheduler.policies.POLICIES` or
        :data:`hpcgym.scheduler.policies.index.PASS_POLICIES`, and "weights": a weighted sum of fit,
        popularity and shortness, whose weights are searched.
    backfilling : names of :data:`BACKFILL`.
    backfill_orders : names of :data:`hpcgym.tuning.space.ORDERS`.
    allocations : "compact", "spread", "half-socket" or "part:K".
    partners : names of :data:`hpcgym.scheduler.rules.PARTNERS`.
    levers : what of :data:`LEVERS` may be added.

    Raises
    ------
    HpcgymError : an unknown name, the same twice, or none where one is needed.
    """

    orders: Sequence[str] = (
        "fcfs", "sjf", "saf", "filler", "popularity", "sjf-filler", "popularity-filler", WEIGHTS,
    )  # fmt: skip
    backfilling: Sequence[str] = ("easy", "fill")
    backfill_orders: Sequence[str] = ORDERS
    allocations: Sequence[str] = ("half-socket", "compact")
    partners: Sequence[str] = tuple(PARTNERS)
    levers: Sequence[str] = LEVERS

    references: ClassVar[tuple[str, ...]] = (*COSCHEDULERS, "easy")
    #: Part of the rules -> the rules of EASY that stand in its place.
    parts: ClassVar[dict[str, Rules]] = {
        "order": {"policy": "fcfs"},
        "way to back-fill": {"backfill": "easy"},
        "order of back-filling": {"backfill_order": "fcfs"},
        "threshold": {"threshold": None},
        "choice of partners": {"partners": "fill"},
        "bound on pairs": {"pairs_above": None},
        "shared nodes": {"allocation": "compact", "partners": "fill", "pairs_above": None},
    }

    def __post_init__(self) -> None:
        for name, known in (
            ("orders", (*POLICIES, *PASS_POLICIES, WEIGHTS)),
            ("backfilling", BACKFILL),
            ("backfill_orders", ORDERS),
            ("allocations", None),
            ("partners", tuple(PARTNERS)),
            ("levers", LEVERS),
        ):
            found = several(name, getattr(self, name), known)
            object.__setattr__(self, name, found)
            if not found and name != "levers":
                raise HpcgymError(f"{name}: there must be at least one")
        for allocation in self.allocations:
            check_allocation_name(allocation)
            if allocation.partition(":")[0] not in COSCHEDULED:
                raise HpcgymError(
                    "allocations: where jobs share nodes they are compact, spread, half-socket or"
                    f" part:K, not {allocation!r}"
                )

    def arms(self) -> list[SharedArm]:
        """Return all combinations that differ; a rule that does not matter in one is its usual."""
        found: dict[SharedArm, None] = {}
        switches = [(False, True) if lever in self.levers else (False,) for lever in LEVERS]
        for arm in map(
            SharedArm._make,
            product(
                self.allocations, self.orders, self.backfilling, self.backfill_orders,
                self.partners, *switches,
            ),
        ):  # fmt: skip
            by_pass = arm.order == WEIGHTS or arm.order in PASS_POLICIES
            if by_pass and arm.backfill_order == "same":
                arm = arm._replace(backfill_order="fcfs")  # such orders are of the queue alone
            if arm.backfill != "easy":
                arm = arm._replace(backfill_order="fcfs")
            if arm.order == arm.backfill_order:
                arm = arm._replace(backfill_order="same")
            if by_pass or arm.order == "fcfs":
                arm = arm._replace(threshold=False)
            if not shares(arm.allocation):
                arm = arm._replace(partners="fill", pairs_above=False)
            found[arm] = None
        return list(found)

    def units(self, slices: Sequence[Workload]) -> Numbers:
        """Return what weights are divided by, (3,): 1, for all jobs have features up to 1."""
        return np.ones(len(PASS_FEATURES))

    def n_weights(self, arm: SharedArm) -> int:
        """Return how many weights an arm has."""
        return len(PASS_FEATURES) if arm.order == WEIGHTS else 0

    def numbers(self, arm: SharedArm) -> int:
        """Return how many numbers an arm has: weights, a threshold, a bound on pairs.

        CMA-ES knows no single number: one alone has another beside it that says nothing.
        """
        number = self.n_weights(arm) + int(arm.threshold) + int(arm.pairs_above)
        return 2 if number == 1 else number

    def bounds(self, arm: SharedArm) -> NDArray[np.float64]:
        """Return the least and the greatest of each number, (n_numbers, 2)."""
        return bounds_of(self.n_weights(arm), self.numbers(arm))

    def starts(self, arm: SharedArm) -> list[Numbers]:
        """Return numbers to begin with: simple weights, and who may be paired."""
        weights: list[list[float]] = [[]]
        if arm.order == WEIGHTS:
            weights = [[one.get(name, 0.0) for name in PASS_FEATURES] for one in _STARTS]
        threshold = [_THRESHOLD_START] if arm.threshold else []
        found = []
        for above in _ABOVE_STARTS if arm.pairs_above else (None,):
            levers = threshold + ([] if above is None else [above])
            for one in weights:
                numbers = np.full(self.numbers(arm), 0.5)
                numbers[: len(one) + len(levers)] = [*one, *levers]
                found.append(numbers)
        return found

    def rules(self, arm: SharedArm, numbers: Numbers, units: Numbers) -> Rules:
        """Return the rules of a scheduler, as JSON can hold them.

        Parameters
        ----------
        numbers : within :meth:`bounds`; what is outside is put to the nearer end.
        units : of :meth:`units`.
        """
        n = self.n_weights(arm)
        clipped = clipped_to(bounds_of(n, self.numbers(arm)), numbers)
        rest = iter(clipped[n:].tolist())
        order: Any = arm.order
        if n:
            order = named_weights(tuple(PASS_FEATURES), clipped[:n] / units) or {"fit": 1.0}
        rules: Rules = {
            "allocation": arm.allocation,
            "policy": order,
            "backfill": arm.backfill,
            "backfill_order": order if arm.backfill_order == "same" else arm.backfill_order,
            "partners": arm.partners,
        }
        if arm.threshold:
            rules["threshold"] = threshold_of(next(rest))
        if arm.pairs_above:
            rules["pairs_above"] = round(_ABOVE[0] + (_ABOVE[1] - _ABOVE[0]) * next(rest), 3)
        return rules

    def parts_of(self, rules: Rules) -> int:
        """Return of how many parts rules are: weights, and what is not as EASY has it."""
        policy, second = rules["policy"], rules["backfill_order"]
        parts: int = (
            (len(policy) if isinstance(policy, dict) else int(policy != "fcfs"))
            + int(second not in ("fcfs", "spf", policy))
            + int(rules["backfill"] != "easy")
            + int(rules["allocation"] != "compact")
            + int(rules["partners"] != "fill")
            + sum(lever in rules for lever in LEVERS)
        )
        return parts


def shares(allocation: str) -> bool:
    """Return whether jobs share nodes with an allocation."""
    return allocation.partition(":")[0] in ("half-socket", "part")
