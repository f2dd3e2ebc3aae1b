"""The configurations of the campaign: predictor x loss x weight x correction x backfilling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from hpcgym.scheduler.rules import Scheduler

#: Section 7.3.2: the branches of the loss, and the weights of table 7.3 by their names here.
BRANCHES = ("absolute", "squared")
WEIGHTS = ("1", "long", "wide", "small", "large")

#: Section 7.4.2, and the orders of section 7.4.1.
CORRECTIONS = ("requested", "incremental", "recursive-doubling")
ORDERS = ("fcfs", "sjbf")

#: Predictions that are never too short: no correction ever comes to bear.
UNCORRECTED = ("requested", "double-requested", "clairvoyant")

#: What the published campaign has beyond the thesis: branch -> its parameters, and the thresholds.
SCALES = {
    "absolute": (1.0, 100.0, 10_000.0),
    "squared": (1.0, 100.0, 10_000.0),
    "exponential": (1e-5, 1e-4),
}
THRESHOLDS = (0.0, 60.0, 600.0)

#: Learning rate and regularisation of the published campaign.
ETA, L2 = 5000.0, 4e9


@dataclass(frozen=True)
class Loss:
    """What predictions are judged by, as in ``hpcgym.scheduler.estimates.Regression``."""

    over: str
    under: str
    weight: str = "1"
    over_scale: float = 1.0
    under_scale: float = 1.0
    threshold: float = 0.0

    def __str__(self) -> str:
        branches = (("over", self.over, self.over_scale), ("under", self.under, self.under_scale))
        words = [
            f"{side} {branch}" + ("" if scale == 1 else f" x {scale:g}")
            for side, branch, scale in branches
        ]
        if self.threshold:
            words.append(f"from {self.threshold:g} s")
        return ", ".join([*words, f"weight {self.weight}"])

    @property
    def pair(self) -> str:
        """The two branches."""
        return f"over {self.over}, under {self.under}"

    @property
    def of_thesis(self) -> bool:
        """Whether it is one of the thesis's 20: the published campaign has others too."""
        plain = self.over in BRANCHES and self.under in BRANCHES and not self.threshold
        return plain and self.over_scale == self.under_scale == 1


#: Equation 7.3.
E_LOSS = Loss("squared", "absolute", "large")

#: The loss of ordinary regression.
SQUARED = Loss("squared", "squared")


@dataclass(frozen=True)
class Configuration:
    """A heuristic triple: what predicts, what corrects, and in which order jobs are backfilled.

    Attributes
    ----------
    order : "fcfs" or "sjbf".
    correction : a name of ``hpcgym.scheduler.estimates.CORRECTIONS``.
    estimate : a name of ``hpcgym.scheduler.estimates.ESTIMATES``, or the loss that a regression
        learns by.
    """

    order: str
    correction: str
    estimate: str | Loss

    def __str__(self) -> str:
        by = f"regression ({self.estimate})" if self.learned else str(self.estimate)
        words = [by, self.order.upper()]
        return "; ".join(words if self.estimate in UNCORRECTED else [by, self.correction, words[1]])

    @property
    def learned(self) -> bool:
        """Whether a regression predicts."""
        return isinstance(self.estimate, Loss)

    def words(self) -> dict[str, Any]:
        """Return the configuration as plain words and numbers: of a task, or a row of a table."""
        given = {"order": self.order, "correction": self.correction}
        if isinstance(self.estimate, Loss):
            return {**given, "estimate": "regression", **asdict(self.estimate)}
        return {**given, "estimate": self.estimate}


def configuration_of(words: dict[str, Any]) -> Configuration:
    """Return the configuration that :meth:`Configuration.words` is of."""
    rest = dict(words)
    order, correction = rest.pop("order"), rest.pop("correction")
    estimate = rest.pop("estimate")
    return Configuration(order, correction, Loss(**rest) if estimate == "regression" else estimate)


def scheduler_of(configuration: Configuration, eta: float = ETA, l2: float = L2) -> Scheduler:
    """Return the rules of a configuration: EASY with a pass after each event, as published."""
    estimate: Any = configuration.estimate
    if isinstance(estimate, Loss):
        from hpcgym.scheduler.estimates import Regression

        estimate = Regression(**asdict(estimate), eta=eta, l2=l2)
    return Scheduler(
        backfill_order=configuration.order,
        estimate=estimate,
        correction=configuration.correction,
        passes="per-event",
    )


#: The configurations that tables and figures name.
EASY = Configuration("fcfs", "requested", "requested")
EASY_PLUS_PLUS = Configuration("sjbf", "incremental", "ave2")
E_LOSS_TRIPLE = Configuration("sjbf", "incremental", E_LOSS)
CLAIRVOYANT = {order: Configuration(order, "requested", "clairvoyant") for order in ORDERS}


def with_thresholds(configuration: Configuration) -> list[Configuration]:
    """Return a configuration that learns with each of the three published thresholds."""
    loss = configuration.estimate
    assert isinstance(loss, Loss)
    losses = [replace(loss, threshold=threshold) for threshold in THRESHOLDS]
    return [replace(configuration, estimate=one) for one in losses]


def variants(configuration: Configuration) -> list[Configuration]:
    """Return a configuration that learns with all published thresholds and scales, 27 or fewer."""
    found = []
    for one in with_thresholds(configuration):
        assert isinstance(one.estimate, Loss)
        for over, under in product(SCALES[one.estimate.over], SCALES[one.estimate.under]):
            loss = replace(one.estimate, over_scale=over, under_scale=under)
            found.append(replace(one, estimate=loss))
    return found


def without_learning() -> Iterator[Configuration]:
    """Return the 12 configurations whose predictor learns nothing but AVE2's two run times."""
    for estimate, order in product(UNCORRECTED, ORDERS):
        yield Configuration(order, "requested", estimate)
    for correction, order in product(CORRECTIONS, ORDERS):
        yield Configuration(order, correction, "ave2")


def thesis() -> list[Configuration]:
    """Return the thesis's configurations: 120 that learn (table 7.5), and 12 that do not."""
    losses = [Loss(*one) for one in product(BRANCHES, BRANCHES, WEIGHTS)]
    return [*without_learning(), *_learned(losses)]


def published() -> list[Configuration]:
    """Return all that there are published results of: 5,760 that learn, and 12 that do not."""
    sides = [(branch, scale) for branch, scales in SCALES.items() for scale in scales]
    losses = [
        Loss(over, under, weight, over_scale, under_scale, threshold)
        for (over, over_scale), (under, under_scale), threshold, weight in product(
            sides, sides, THRESHOLDS, WEIGHTS
        )
    ]
    return [*without_learning(), *_learned(losses)]


def usual() -> list[Configuration]:
    """Return what the thesis's tables need.

    Its configurations; those that learn with the other thresholds too, which table 7.6 is over; and
    the variants of the triple that it recommends.
    """
    others = [other for one in thesis() if one.learned for other in with_thresholds(one)]
    return list(dict.fromkeys([*thesis(), *others, *variants(E_LOSS_TRIPLE)]))


def quick() -> list[Configuration]:
    """Return a small cut of the thesis's."""
    losses = [Loss(*one) for one in product(BRANCHES, BRANCHES, ("1", "large"))]
    some = [one for one in _learned(losses) if one.correction != "recursive-doubling"]
    return [*without_learning(), *some]


def _learned(losses: list[Loss]) -> list[Configuration]:
    """Return the configurations of some losses."""
    return [
        Configuration(order, correction, loss)
        for loss, correction, order in product(losses, CORRECTIONS, ORDERS)
    ]
