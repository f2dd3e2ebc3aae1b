"""The rules that are searched: of a pool or nodes, and of nodes that jobs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.search import features_of
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.errors import HpcgymError, check_choice, check_each_once
from hpcgym.scheduler.allocations import check_allocation_name
from hpcgym.scheduler.backfilling import Backfill
from hpcgym.scheduler.estimates.by_name import check_estimate, learns
from hpcgym.scheduler.policies.features import PASS_FEATURES, spread
from hpcgym.scheduler.policies.index import PASS_POLICIES, POLICIES
from hpcgym.scheduler.rules import PARTNERS
from hpcgym.simulation.prepare import COSCHEDULED
from hpcgym.workload.model import Workload

# --- The rules that are searched ------------------------------------------------------------------

Numbers = NDArray[np.float64]  # (n_numbers,), weights within -1 and 1, others within 0 and 1
Rules = dict[str, Any]  # of a scheduler, by the names of its attributes

#: What may be added to an order of the queue.
LEVERS = ("threshold", "hold")
#: Ways to back-fill that may be searched, beside depth:K.
BACKFILL = ("none", "easy", "until-shadow", "conservative")
#: Orders of back-filling; "same" is the order of the queue.
ORDERS = ("fcfs", "spf", "saf", "same")

#: From and to what a number goes as it goes from 0 to 1, by the same factor for each step.
_THRESHOLD_S = (3_600.0, 2_000_000.0)
_FROM_S = (600.0, 36_000.0)
_ERODE_S = (3_600.0, 115_200.0)
#: The same of a share, by the same difference.
_SHARE = (0.01, 0.4)

#: The order that is a weighted sum of features, whose weights are searched.
WEIGHTS = "weights"
#: Weights to begin with, in units of what each differs between jobs.
_STARTS: tuple[dict[str, float], ...] = (
    {"area": -1.0},
    {"area": -0.7, "wait": 0.3},
    {"expansion": 1.0},
)
#: Where levers begin, between 0 and 1; thresholds at about 32 and 83 hours.
_MIDDLE = 0.6
_THRESHOLDS = (0.55, 0.7)
_DIGITS = 4  # of weights: those that are written are those that were simulated


#: What may be added to an order, in the order of its numbers -> how many it has, and in how many
#: parts rules with it are more than without.
_NUMBERS = {"threshold": (1, 1), "hold": (3, 2), "pairs_above": (1, 1)}

#: Rules of EASY, beside its order; each that is another is a part more.
_OF_EASY = {
    "backfill": "easy",
    "policy_estimate": "requested",
    "estimate": "requested",
    "allocation": "compact",
    "partners": "fill",
}


class _Arms:
    """What a search goes through: combinations of named rules, ``arms``, each with numbers.

    Numbers are weights, if the order has some, then those of levers.
    """

    levers: Sequence[str]
    features: Any  # whose weights are searched
    references: ClassVar[tuple[str, ...]]  # whom what is found is compared with, "easy" the last
    parts: ClassVar[dict[str, Rules]]  # part of the rules -> what EASY has in its place
    _arm: ClassVar[Any]  # a named tuple
    _lists: ClassVar[dict[str, Sequence[str] | None]]  # what is named -> what is known
    _levers: ClassVar[tuple[str, ...]]
    _begin: ClassVar[Sequence[dict[str, float]]]  # weights to begin with
    _usual: ClassVar[str]  # what is weighed if all weights are 0

    def _check_lists(self) -> None:
        """Check the names that are combined, and keep them as tuples."""
        for name, known in {**self._lists, "levers": self._levers}.items():
            found = several(name, getattr(self, name), known)
            object.__setattr__(self, name, found)
            if not found and name != "levers":
                raise HpcgymError(f"{name}: there must be at least one")

    def _combined(self) -> list[Sequence[Any]]:
        """Return what the named rules of arms may be, in their order."""
        raise NotImplementedError

    def _settled(self, arm: Any) -> Any:
        """Return an arm in which rules that do not matter are the usual; None of what is no arm."""
        raise NotImplementedError

    def _lever_starts(self, arm: Any, number: int) -> list[list[float]]:
        """Return numbers of levers to begin with."""
        raise NotImplementedError

    def arms(self) -> list[Any]:
        """Return all combinations that differ; a rule that does not matter in one is its usual."""
        on = [(False, True) if lever in self.levers else (False,) for lever in self._levers]
        every = product(*self._combined(), *on)
        settled = (self._settled(self._arm(*values)) for values in every)
        return [*dict.fromkeys(arm for arm in settled if arm is not None)]

    def n_weights(self, arm: Any) -> int:
        """Return how many weights an arm has."""
        return len(self.features) if arm.order == WEIGHTS else 0

    def numbers(self, arm: Any) -> int:
        """Return how many numbers an arm has.

        CMA-ES knows no single number: one alone has another beside it that says nothing.
        """
        of_levers = sum(n for lever, (n, _) in _NUMBERS.items() if getattr(arm, lever, False))
        return 2 if self.n_weights(arm) + of_levers == 1 else self.n_weights(arm) + of_levers

    def bounds(self, arm: Any) -> NDArray[np.float64]:
        """Return the least and the greatest of each number, (n_numbers, 2)."""
        bounds = np.tile([0.0, 1.0], (self.numbers(arm), 1))
        bounds[: self.n_weights(arm), 0] = -1.0
        return bounds

    def starts(self, arm: Any) -> list[Numbers]:
        """Return numbers to begin with: simple weights, and levers."""
        n, features = self.n_weights(arm), self.features
        weights: list[list[float]] = [[]]
        if n:
            simple = [one for one in self._begin if one.keys() <= {*features}]
            simple = simple or [{name: sign} for name in features for sign in (1.0, -1.0)]
            weights = [[one.get(name, 0.0) for name in features] for one in simple]
        levers = self._lever_starts(arm, self.numbers(arm) - n)
        return [np.array([*one, *more]) for more in levers for one in weights]

    def rules(self, arm: Any, numbers: Numbers, units: Numbers) -> Rules:
        """Return the rules of a scheduler, as JSON can hold them.

        Parameters
        ----------
        numbers : within :meth:`bounds`; what is outside is put to the nearer end.
        units : of :meth:`units`.
        """
        n = self.n_weights(arm)
        clipped = np.clip(numbers, *self.bounds(arm).T)
        rest = iter(clipped[n:].tolist())
        order: Any = arm.order
        if n:
            weights = named_weights(self.features, clipped[:n] / units)
            order = weights or {self._usual: 1.0}
        second = str(arm.backfill_order)
        rules: Rules = {name: str(getattr(arm, name)) for name in _OF_EASY if hasattr(arm, name)}
        rules |= {"policy": order, "backfill_order": order if second == "same" else second}
        if learns(rules.get("estimate", "requested")):
            rules["correction"] = "incremental"
        if arm.threshold:
            rules["threshold"] = threshold_of(next(rest))
        if getattr(arm, "hold", False):
            low, high = _SHARE
            rules["hold"] = {
                "share": round(low + (high - low) * next(rest), 3),
                "from_s": round(_between(_FROM_S, next(rest))),
                "erode_s": round(_between(_ERODE_S, next(rest))),
                "by": "requested" if arm.policy_estimate == "requested" else "both",
            }
        if getattr(arm, "pairs_above", False):
            rules["pairs_above"] = round(_ABOVE[0] + (_ABOVE[1] - _ABOVE[0]) * next(rest), 3)
        return rules

    def parts_of(self, rules: Rules) -> int:
        """Return of how many parts rules are: weights, and what is not as EASY has it."""
        policy, second = rules["policy"], rules["backfill_order"]
        parts: int = len(policy) if isinstance(policy, dict) else policy != "fcfs"
        parts += second not in ("fcfs", "spf", policy)
        parts += sum(rules.get(name, usual) != usual for name, usual in _OF_EASY.items())
        return parts + sum(n for lever, (_, n) in _NUMBERS.items() if lever in rules)


class Arm(NamedTuple):
    """A combination of named rules; numbers are searched for each by itself."""

    order: str
    policy_estimate: str
    estimate: str
    backfill: Backfill
    backfill_order: str
    threshold: bool
    hold: bool

    def __str__(self) -> str:
        words = [self.order]
        if self.policy_estimate != "requested":
            words.append(f"by {self.policy_estimate}")
        words.append(f"{self.backfill} backfilling")
        if self.backfill.sweeps:
            words.append(f"in order {self.backfill_order}")
        if self.estimate != "requested":
            words.append(f"reckoning with {self.estimate}")
        return ", ".join([*words, *(lever for lever in LEVERS if getattr(self, lever))])


@dataclass(frozen=True)
class Space(_Arms):
    """Which rules are searched.

    Attributes
    ----------
    orders : of the queue: names of :data:`hpcgym.scheduler.policies.POLICIES`, and "weights".
    features : what is weighed: as for :class:`hpcgym.agents.xnes.Xnes`, or names with commas.
    estimates : run times that orders and back-filling may reckon with, names of
        :data:`hpcgym.scheduler.estimates.ESTIMATES`.
    backfilling : names of :data:`BACKFILL`, and "depth:K".
    backfill_orders : names of :data:`ORDERS`.
    levers : what of :data:`LEVERS` may be added.

    Raises
    ------
    HpcgymError : an unknown name, the same twice, or none where one is needed.
    """

    orders: Sequence[str] = ("fcfs", "saf", "spf", "wfp3", "f1", WEIGHTS)
    features: str | Sequence[str] = "xnes6"
    estimates: Sequence[str] = ("requested", "ave2", "typical-ratio")
    backfilling: Sequence[str] = ("easy", "until-shadow")
    backfill_orders: Sequence[str] = ORDERS
    levers: Sequence[str] = LEVERS

    _arm, _begin, _usual, _levers = Arm, _STARTS, "wait", LEVERS
    _lists: ClassVar[dict[str, Sequence[str] | None]] = {
        "orders": (*POLICIES, WEIGHTS),
        "estimates": None,
        "backfilling": None,
        "backfill_orders": ORDERS,
    }
    references: ClassVar[tuple[str, ...]] = ("saf", "easy")
    #: Part of the rules -> the rules of EASY that stand in its place.
    parts: ClassVar[dict[str, Rules]] = {
        "order": {"policy": "fcfs"},
        "run times of the order": {"policy_estimate": "requested"},
        "run times of back-filling": {"estimate": "requested", "correction": None},
        "way to back-fill": {"backfill": "easy"},
        "order of back-filling": {"backfill_order": "fcfs"},
        "threshold": {"threshold": None},
        "hold": {"hold": None},
    }

    def __post_init__(self) -> None:
        settle = object.__setattr__
        settle(self, "features", features_of(self.features))
        ways = several("backfilling", self.backfilling)
        settle(self, "backfilling", tuple(str(Backfill.parse(way, "backfilling")) for way in ways))
        self._check_lists()
        for estimate in self.estimates:
            check_estimate(estimate, "estimates")

    def _combined(self) -> list[Sequence[Any]]:
        ways = [Backfill.parse(way) for way in self.backfilling]
        return [self.orders, self.estimates, self.estimates, ways, self.backfill_orders]

    def _settled(self, arm: Arm) -> Arm | None:
        if arm.backfill.kind == "none":
            arm = arm._replace(estimate="requested")
        if not arm.backfill.sweeps:
            arm = arm._replace(backfill_order="fcfs")
        if arm.order == arm.backfill_order:
            arm = arm._replace(backfill_order="same")
        if arm.order == "fcfs":
            arm = arm._replace(threshold=False)
        if arm.order == "fcfs" and arm.backfill_order in ("fcfs", "same") and not arm.hold:
            arm = arm._replace(policy_estimate="requested")
        return None if arm.hold and arm.backfill.depth not in (0, 1) else arm

    def units(self, slices: Sequence[Workload]) -> Numbers:
        """Return what weights are divided by, (n_features,): what features differ by.

        See :func:`hpcgym.scheduler.policies.features.spread`.
        """
        return spread(slices, self.features)

    def _lever_starts(self, arm: Arm, number: int) -> list[list[float]]:
        rest = [_MIDDLE] * (number - 1)
        return [[first, *rest][:number] for first in (_THRESHOLDS if arm.threshold else (_MIDDLE,))]


def threshold_of(place: float) -> int:
    """Return a threshold [s], whole minutes, so far on the way from an hour to 23 days."""
    return 60 * round(_between(_THRESHOLD_S, place) / 60)


def named_weights(features: Sequence[str], weights: Numbers) -> dict[str, float]:
    """Return weights by name, the largest as 1; none where all are 0."""
    largest = np.abs(weights).max()
    if largest == 0:
        return {}
    rounded = [float(f"{weight:.{_DIGITS}g}") for weight in weights / largest]
    return {name: weight for name, weight in zip(features, rounded, strict=True) if weight != 0}


def _between(ends: tuple[float, float], place: float) -> float:
    """Return what is so far on the way between two ends, by the same factor for each step."""
    return float(ends[0] * (ends[1] / ends[0]) ** place)


def several(name: str, given: Any, known: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return names, checked."""
    names = tuple(part.strip() for part in given.split(",")) if isinstance(given, str) else given
    found = tuple(names)
    check_each_once(name, found)
    if known is not None:
        for one in found:
            check_choice(name, one, known)
    return found


# --- The rules that are searched where jobs share nodes -------------------------------------------

#: What may be added to an order of the queue and a choice of nodes.
SHARED_LEVERS = ("threshold", "pairs_above")
#: Ways to back-fill that are searched.
SHARED_BACKFILL = ("none", "easy", "fill")

#: From and to what ``pairs_above`` goes, and where it begins: who gains, who gains by a tenth.
_ABOVE = (0.8, 1.4)
_ABOVE_STARTS = ((1.0 - _ABOVE[0]) / (_ABOVE[1] - _ABOVE[0]), 0.5)
_THRESHOLD_START = 0.55  # about 32 hours
#: Weights to begin with, of what is between -1 and 1 for all jobs.
_SHARED_STARTS: tuple[dict[str, float], ...] = (
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
        return ", ".join([*words, *(lever for lever in SHARED_LEVERS if getattr(self, lever))])


@dataclass(frozen=True)
class SharedSpace(_Arms):
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
    levers: Sequence[str] = SHARED_LEVERS

    features = tuple(PASS_FEATURES)
    _arm, _begin, _usual, _levers = SharedArm, _SHARED_STARTS, "fit", SHARED_LEVERS
    _lists: ClassVar[dict[str, Sequence[str] | None]] = {
        "orders": (*POLICIES, *PASS_POLICIES, WEIGHTS),
        "backfilling": SHARED_BACKFILL,
        "backfill_orders": ORDERS,
        "allocations": None,
        "partners": tuple(PARTNERS),
    }
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
        self._check_lists()
        for allocation in self.allocations:
            check_allocation_name(allocation)
            if allocation.partition(":")[0] not in COSCHEDULED:
                raise HpcgymError(
                    "allocations: where jobs share nodes they are compact, spread, half-socket or"
                    f" part:K, not {allocation!r}"
                )

    def _combined(self) -> list[Sequence[Any]]:
        second = self.backfill_orders, self.partners
        return [self.allocations, self.orders, self.backfilling, *second]

    def _settled(self, arm: SharedArm) -> SharedArm:
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
        return arm

    def units(self, slices: Sequence[Workload]) -> Numbers:
        """Return what weights are divided by, (3,): 1, for all jobs have features up to 1."""
        return np.ones(len(PASS_FEATURES))

    def _lever_starts(self, arm: SharedArm, number: int) -> list[list[float]]:
        threshold = [_THRESHOLD_START] if arm.threshold else []
        above = [[one] for one in _ABOVE_STARTS] if arm.pairs_above else [[]]
        return [[*threshold, *one, 0.5, 0.5][:number] for one in above]


def shares(allocation: str) -> bool:
    """Return whether jobs share nodes with an allocation."""
    return allocation.partition(":")[0] in ("half-socket", "part")


Searchable = Space | SharedSpace
