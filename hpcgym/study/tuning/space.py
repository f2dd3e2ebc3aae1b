"""The rules that are searched: of a pool or nodes, and of nodes that jobs share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.search import features_of
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.errors import HpcgymError, check_choice, check_each_once
from hpcgym.scheduler.allocations import COSCHEDULED, check_allocation_name
from hpcgym.scheduler.backfilling import BackfillRule
from hpcgym.scheduler.estimates.by_name import check_estimate, learns
from hpcgym.scheduler.policies.features import PASS_FEATURES, spread
from hpcgym.scheduler.policies.index import PASS_POLICIES, POLICIES
from hpcgym.scheduler.rules import PARTNERS
from hpcgym.workload.model import Workload

Numbers = NDArray[np.float64]  # (n_numbers,), weights within -1 and 1, others within 0 and 1
Rules = dict[str, Any]  # of a scheduler, by the names of its attributes

#: Orders of backfilling; "same" is the order of the queue.
ORDERS = ("fcfs", "spf", "saf", "same")
#: The order that is a weighted sum of features, whose weights are searched.
WEIGHTS = "weights"

#: The range of a number between 0 and 1 of its coordinate, on a logarithmic scale.
_THRESHOLD_S = (3_600.0, 2_000_000.0)
_FROM_S = (600.0, 36_000.0)
_ERODE_S = (3_600.0, 115_200.0)
#: The same for a share, and for ``pairs_above``, on a linear scale.
_SHARE = (0.01, 0.4)
_ABOVE = (0.8, 1.4)

_DIGITS = 4  # of weights: those that are written are those that were simulated

#: Rules that may be added to an order, in the order of their numbers -> how many numbers each has,
#: and by how many parts rules with it are larger.
_LEVERS = {"threshold": (1, 1), "hold": (3, 2), "pairs_above": (1, 1)}

#: Rules of EASY, beside its order; each rule that differs counts as a part.
_OF_EASY = {
    "backfill": "easy",
    "policy_estimate": "requested",
    "estimate": "requested",
    "allocation": "compact",
    "partners": "fill",
}


class Arm(NamedTuple):
    """A combination of named rules; numbers are searched for each by itself.

    Where jobs have nodes of their own there is no ``allocation``, and there are no ``partners``.
    """

    allocation: str
    order: str
    policy_estimate: str
    estimate: str
    backfill: str
    backfill_order: str
    partners: str
    threshold: bool
    hold: bool
    pairs_above: bool


@dataclass(frozen=True)
class Space:
    """Which rules are searched.

    Attributes
    ----------
    orders : of the queue: names of :data:`hpcgym.scheduler.policies.POLICIES`, and "weights".
    features : features that "weights" weighs: as for :class:`hpcgym.agents.xnes.Xnes`, or names
        with commas.
    estimates : run times that orders and backfilling may use, names of
        :data:`hpcgym.scheduler.estimates.ESTIMATES`.
    backfilling : "none", "easy", "until-shadow", "depth:K" and "conservative".
    backfill_orders : names of :data:`ORDERS`.
    levers : rules that may be added to an order: "threshold", "hold".

    Raises
    ------
    HpcgymError : an unknown name, the same twice, or none where one is needed.
    """

    orders: Sequence[str] = ("fcfs", "saf", "spf", "wfp3", "f1", WEIGHTS)
    features: str | Sequence[str] = "xnes6"
    estimates: Sequence[str] = ("requested", "ave2", "typical-ratio")
    backfilling: Sequence[str] = ("easy", "until-shadow")
    backfill_orders: Sequence[str] = ORDERS
    levers: Sequence[str] = ("threshold", "hold")

    #: Schedulers with which the tuned one is compared, "easy" the last.
    references: ClassVar[tuple[str, ...]] = ("saf", "easy")
    #: Part of the rules -> the rules of EASY that replace it.
    parts: ClassVar[dict[str, Rules]] = {
        "order": {"policy": "fcfs"},
        "run times of the order": {"policy_estimate": "requested"},
        "run times of backfilling": {"estimate": "requested", "correction": None},
        "way to backfill": {"backfill": "easy"},
        "order of backfilling": {"backfill_order": "fcfs"},
        "threshold": {"threshold": None},
        "hold": {"hold": None},
    }
    #: Attribute -> known names; None: the parser checks them.
    _known: ClassVar[dict[str, Sequence[str] | None]] = {
        "orders": (*POLICIES, WEIGHTS),
        "estimates": None,
        "backfilling": None,
        "backfill_orders": ORDERS,
        "levers": ("threshold", "hold"),
    }
    #: Weights to begin with, in units of each feature's spread between jobs; ``_usual`` is the
    #: feature that is weighed if all weights are 0.
    _begin: ClassVar[Sequence[dict[str, float]]] = (
        {"area": -1.0},
        {"area": -0.7, "wait": 0.3},
        {"expansion": 1.0},
    )
    _usual: ClassVar[str] = "wait"
    #: Where the numbers of levers begin; thresholds at about 32 and 83 hours. ``_idle``: the number
    #: of a lever that is off.
    _middles: ClassVar[dict[str, list[list[float]]]] = {
        "threshold": [[0.55], [0.7]],
        "hold": [[0.6, 0.6, 0.6]],
    }
    _idle: ClassVar[float] = 0.6

    def __post_init__(self) -> None:
        settle = object.__setattr__
        for name, known in self._known.items():
            values = several(name, getattr(self, name), known)
            if not values and name != "levers":
                raise HpcgymError(f"{name}: there must be at least one")
            settle(self, name, values)
        ways = [str(BackfillRule.parse(way, "backfilling")) for way in self.backfilling]
        settle(self, "backfilling", several("backfilling", ways))
        for estimate in self.estimates:
            check_estimate(estimate, "estimates")
        if not self.shared:
            settle(self, "features", features_of(self.features))

    @property
    def shared(self) -> bool:
        """Whether jobs share nodes."""
        return isinstance(self, SharedSpace)

    def arms(self) -> list[Arm]:
        """Return all combinations that differ; a rule that does not matter in one is its usual."""
        on = [(False, True) if lever in self.levers else (False,) for lever in _LEVERS]
        nowhere: Sequence[str] = ("",)
        allocations = getattr(self, "allocations", nowhere)
        named = (self.orders, self.estimates, self.estimates, self.backfilling)
        partners = getattr(self, "partners", nowhere)
        every = product(allocations, *named, self.backfill_orders, partners, *on)
        settled = (self._settled(Arm(*values)) for values in every)
        return [*dict.fromkeys(arm for arm in settled if arm is not None)]

    def _settled(self, arm: Arm) -> Arm | None:
        """Return an arm with usual values of rules that do not matter; None if it is invalid."""
        reserve = BackfillRule.parse(arm.backfill)
        by_pass = arm.order in PASS_POLICIES or (arm.order == WEIGHTS and self.shared)
        if reserve.kind == "none":
            arm = arm._replace(estimate="requested")
        # orders that look at the pass are of the queue alone
        if not reserve.sweeps or (by_pass and arm.backfill_order == "same"):
            arm = arm._replace(backfill_order="fcfs")
        if arm.order == arm.backfill_order:
            arm = arm._replace(backfill_order="same")
        if arm.order == "fcfs" or by_pass:
            arm = arm._replace(threshold=False)
        if arm.order == "fcfs" and arm.backfill_order in ("fcfs", "same") and not arm.hold:
            arm = arm._replace(policy_estimate="requested")
        if self.shared and not shares(arm.allocation):
            arm = arm._replace(partners="fill", pairs_above=False)
        return None if arm.hold and reserve.conservative else arm

    def n_weights(self, arm: Arm) -> int:
        """Return how many weights an arm has."""
        return len(self.features) if arm.order == WEIGHTS else 0

    def numbers(self, arm: Arm) -> int:
        """Return how many numbers an arm has.

        CMA-ES knows no single number: one alone has another beside it that says nothing.
        """
        number = self.n_weights(arm)
        number += sum(n for lever, (n, _) in _LEVERS.items() if getattr(arm, lever))
        return 2 if number == 1 else number

    def bounds(self, arm: Arm) -> NDArray[np.float64]:
        """Return the least and the greatest of each number, (n_numbers, 2)."""
        bounds = np.tile([0.0, 1.0], (self.numbers(arm), 1))
        bounds[: self.n_weights(arm), 0] = -1.0
        return bounds

    def starts(self, arm: Arm) -> list[Numbers]:
        """Return numbers to begin with: simple weights, and levers."""
        n, features = self.n_weights(arm), self.features
        weights: list[list[float]] = [[]]
        if n:
            simple = [start for start in self._begin if start.keys() <= {*features}]
            simple = simple or [{name: sign} for name in features for sign in (1.0, -1.0)]
            weights = [[start.get(name, 0.0) for name in features] for start in simple]
        levers = [self._middles[lever] for lever in _LEVERS if getattr(arm, lever)]
        ways = [sum(some, [*start]) for some in product(*levers) for start in weights]
        return [np.array([*way, self._idle][: self.numbers(arm)]) for way in ways]

    def units(self, slices: Sequence[Workload]) -> Numbers:
        """Return the units of weights, (n_features,): the spreads of features.

        See :func:`hpcgym.scheduler.policies.features.spread`.
        """
        return spread(slices, self.features)

    def rules(self, arm: Arm, numbers: Numbers, units: Numbers) -> Rules:
        """Return the rules of a scheduler, as JSON can hold them.

        Parameters
        ----------
        numbers : within :meth:`bounds`; numbers outside are moved to the nearer end.
        units : of :meth:`units`.
        """
        n = self.n_weights(arm)
        clipped = np.clip(numbers, *self.bounds(arm).T)
        rest: Iterator[float] = iter(clipped[n:].tolist())
        order: Any = arm.order
        if n:
            weights = named_weights(self.features, clipped[:n] / units)
            order = weights or {self._usual: 1.0}
        second = arm.backfill_order
        rules: Rules = {name: getattr(arm, name) for name in _OF_EASY if getattr(arm, name)}
        rules |= {"policy": order, "backfill_order": order if second == "same" else second}
        if learns(arm.estimate):
            rules["correction"] = "incremental"
        if arm.threshold:  # whole minutes, from an hour to 23 days
            rules["threshold"] = 60 * round(_by_factor(_THRESHOLD_S, next(rest)) / 60)
        if arm.hold:
            rules["hold"] = {
                "share": round(_by_difference(_SHARE, next(rest)), 3),
                "from_s": round(_by_factor(_FROM_S, next(rest))),
                "erode_s": round(_by_factor(_ERODE_S, next(rest))),
                "by": "requested" if arm.policy_estimate == "requested" else "both",
            }
        if arm.pairs_above:
            rules["pairs_above"] = round(_by_difference(_ABOVE, next(rest)), 3)
        return rules

    def parts_of(self, rules: Rules) -> int:
        """Return the number of parts of rules: their weights, and rules that differ from EASY."""
        policy, second = rules["policy"], rules["backfill_order"]
        parts: int = len(policy) if isinstance(policy, dict) else policy != "fcfs"
        parts += second not in ("fcfs", "spf", policy)
        parts += sum(rules.get(name, usual) != usual for name, usual in _OF_EASY.items())
        return parts + sum(n for lever, (_, n) in _LEVERS.items() if lever in rules)


@dataclass(frozen=True)
class SharedSpace(Space):
    """Which rules of jobs that share nodes are searched.

    Attributes
    ----------
    orders : of the queue: names of :data:`hpcgym.scheduler.policies.POLICIES` or
        :data:`hpcgym.scheduler.policies.index.PASS_POLICIES`, and "weights": a weighted sum of fit,
        popularity and shortness, whose weights are searched.
    backfilling : "none", "easy" and "fill".
    backfill_orders : names of :data:`hpcgym.study.tuning.space.ORDERS`.
    levers : what may be added: "threshold", "pairs_above".
    allocations : "compact", "spread", "half-socket" or "part:K".
    partners : names of :data:`hpcgym.scheduler.rules.PARTNERS`.

    Raises
    ------
    HpcgymError : an unknown name, the same twice, or none where one is needed.
    """

    orders: Sequence[str] = (
        "fcfs", "sjf", "saf", "filler", "popularity", "sjf-filler", "popularity-filler", WEIGHTS,
    )  # fmt: skip
    features: Sequence[str] = field(default=tuple(PASS_FEATURES), init=False)
    estimates: Sequence[str] = field(default=("requested",), init=False)
    backfilling: Sequence[str] = ("easy", "fill")
    levers: Sequence[str] = ("threshold", "pairs_above")
    allocations: Sequence[str] = ("half-socket", "compact")
    partners: Sequence[str] = tuple(PARTNERS)

    references: ClassVar[tuple[str, ...]] = (*COSCHEDULERS, "easy")
    parts: ClassVar[dict[str, Rules]] = {
        "order": {"policy": "fcfs"},
        "way to backfill": {"backfill": "easy"},
        "order of backfilling": {"backfill_order": "fcfs"},
        "threshold": {"threshold": None},
        "choice of partners": {"partners": "fill"},
        "bound on pairs": {"pairs_above": None},
        "shared nodes": {"allocation": "compact", "partners": "fill", "pairs_above": None},
    }
    _known: ClassVar[dict[str, Sequence[str] | None]] = {
        "orders": (*POLICIES, *PASS_POLICIES, WEIGHTS),
        "backfilling": ("none", "easy", "fill"),
        "backfill_orders": ORDERS,
        "levers": ("threshold", "pairs_above"),
        "allocations": None,
        "partners": tuple(PARTNERS),
    }
    #: Of features that are between -1 and 1 for all jobs.
    _begin: ClassVar[Sequence[dict[str, float]]] = (
        {"fit": 1.0},
        {"fit": 1.0, "shortness": 1.0},
        {"popularity": 1.0, "shortness": 1.0},
    )
    _usual: ClassVar[str] = "fit"
    #: Bounds on pairs begin with pairs that gain, and pairs that gain by a tenth.
    _middles: ClassVar[dict[str, list[list[float]]]] = {
        "threshold": [[0.55]],
        "pairs_above": [[(1.0 - _ABOVE[0]) / (_ABOVE[1] - _ABOVE[0])], [0.5]],
    }
    _idle: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for allocation in self.allocations:
            check_allocation_name(allocation)
            if allocation.partition(":")[0] not in COSCHEDULED:
                raise HpcgymError(
                    "allocations: where jobs share nodes they are compact, spread, half-socket or"
                    f" part:K, not {allocation!r}"
                )

    def units(self, slices: Sequence[Workload]) -> Numbers:
        """Return the units of weights, (3,): 1, for features of all jobs are at most 1."""
        return np.ones(len(PASS_FEATURES))


def shares(allocation: str) -> bool:
    """Return whether jobs share nodes with an allocation."""
    return allocation.partition(":")[0] in ("half-socket", "part")


def named_weights(features: Sequence[str], weights: Numbers) -> dict[str, float]:
    """Return weights by name, the largest as 1; none where all are 0."""
    largest = np.abs(weights).max()
    if largest == 0:
        return {}
    rounded = [float(f"{weight:.{_DIGITS}g}") for weight in weights / largest]
    return {name: weight for name, weight in zip(features, rounded, strict=True) if weight != 0}


def _by_factor(ends: tuple[float, float], place: float) -> float:
    """Return the number at a place, 0 to 1, between two ends on a logarithmic scale."""
    return float(ends[0] * (ends[1] / ends[0]) ** place)


def _by_difference(ends: tuple[float, float], place: float) -> float:
    """Return the number at a place, 0 to 1, between two ends on a linear scale."""
    return ends[0] + (ends[1] - ends[0]) * place


def several(name: str, given: Any, known: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return names, checked."""
    names = tuple(part.strip() for part in given.split(",")) if isinstance(given, str) else given
    check_each_once(name, tuple(names))
    if known is not None:
        for name_given in names:
            check_choice(name, name_given, known)
    return tuple(names)
