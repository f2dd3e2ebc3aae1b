"""The configurations of the campaign, and the simulation of one on one trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym import Scheduler, Workload, simulate
from hpcgym.benchmarks.studies.harness import load_jobs, same_jobs
from hpcgym.benchmarks.studies.store import Store
from hpcgym.workload.fingerprint import fingerprint

# --- The configurations of the campaign -----------------------------------------------------------

#: Section 7.3.2: the branches of the loss, and the weights of table 7.3 by their names here.
BRANCHES = ("absolute", "squared")
WEIGHTS = ("1", "long", "wide", "small", "large")

#: Section 7.4.2, and the orders of section 7.4.1.
CORRECTIONS = ("requested", "incremental", "recursive-doubling")
ORDERS = ("fcfs", "sjbf")

#: Predictions that are never too short: no correction ever comes to bear.
UNCORRECTED = ("requested", "double-requested", "clairvoyant")

#: What the published campaign has beyond the thesis: factors of the branches, and thresholds.
SCALES = (1.0, 100.0, 10_000.0)
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


#: The triple that does best over all logs by the authors' own results, and the thesis's.
AVE2_REQUESTED = Configuration("sjbf", "requested", "ave2")
NAMED = {
    "EASY": EASY,
    "EASY++": EASY_PLUS_PLUS,
    "E-Loss, incremental, SJBF": E_LOSS_TRIPLE,
    "E-Loss, requested, SJBF": Configuration("sjbf", "requested", E_LOSS),
    "AVE2, requested, SJBF": AVE2_REQUESTED,
    **{f"clairvoyant, {order.upper()}": one for order, one in CLAIRVOYANT.items()},
}
NAMES = {str(one): name for name, one in NAMED.items()}


def name_of(configuration: Configuration) -> str:
    """Return what pictures and tables call a configuration."""
    return NAMES.get(str(configuration), str(configuration))


def variants(
    configuration: Configuration, scales: tuple[float, ...] = SCALES
) -> list[Configuration]:
    """Return a configuration that learns with all published thresholds and scales."""
    loss = configuration.estimate
    assert isinstance(loss, Loss)
    losses = [
        replace(loss, threshold=threshold, over_scale=over, under_scale=under)
        for threshold, over, under in product(THRESHOLDS, scales, scales)
    ]
    return [replace(configuration, estimate=one) for one in losses]


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


def usual() -> list[Configuration]:
    """Return what the thesis's tables need.

    Its configurations; those that learn with the other thresholds too, which table 7.6 is over; and
    the variants of the triple that it recommends.
    """
    others = [other for one in thesis() if one.learned for other in variants(one, (1.0,))]
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


# --- The simulations of the campaign, one configuration on one trace each -------------------------

#: The cleaning recipe of the thesis.
RECIPE = "glesser"

#: Section 7.5.5: the share of jobs that have extremely high bounded slowdowns.
TAIL = 0.001

#: Metrics that are kept of a schedule.
MEASURES = ("jobs", "mean_bsld", "max_bsld", "mean_response_s", "max_response_s")


def load_trace(source: str, jobs: int | None) -> Workload:
    """Return a trace as the thesis cleaned it.

    Parameters
    ----------
    source : a trace of the archive, a file or a generator.
    jobs : only the first ones; None: all.
    """
    workload = load_jobs(source, clean=RECIPE)
    if jobs is None or jobs >= len(workload):
        return workload
    # by another name: nothing published is of these jobs
    return workload.take(slice(0, jobs), name=f"{workload.name}, first {jobs:,} jobs")


def simulate_one(task: dict[str, Any]) -> dict[str, Any]:
    """Simulate one configuration.

    Parameters
    ----------
    task : "source" of a trace, "first_jobs" (None: all), "jobs_sha256" (their hash), "rules" (see
        :meth:`Configuration.words`), "eta" and "l2".

    Returns
    -------
    outcome : metrics of the schedule; ``tail_share``, what a thousandth of the jobs has of the sum
        of bounded slowdowns.

    Raises
    ------
    HpcgymError : the trace cannot be read here, or has other jobs.
    """
    workload = same_jobs(load_trace, task["jobs_sha256"], task["source"], task["first_jobs"])
    rules = scheduler_of(configuration_of(task["rules"]), task["eta"], task["l2"])
    result = simulate(workload, rules)
    metrics = {name: result.metrics[name] for name in MEASURES}
    return {**metrics, "tail_share": tail_share(result.bsld)}


def tail_share(bsld: NDArray[np.float64]) -> float:
    """Return which share of the sum the highest thousandth of some values has, at least one."""
    most = np.sort(bsld)[-max(round(TAIL * len(bsld)), 1) :]
    return float(most.sum() / bsld.sum())


def e_loss(
    predicted: NDArray[np.int64], run: NDArray[np.int64], processors: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the E-Loss of each job: equation 7.3 of the thesis.

    log(q p) (f - p)^2 where the prediction f is at least the run time p, log(q p) (p - f) where it
    is below.

    Parameters
    ----------
    predicted, run : (n_jobs,) [s].
    processors : (n_jobs,) q.
    """
    error = (predicted - run).astype(np.float64)
    weight = np.log(processors.astype(np.float64) * run)
    return weight * np.where(error >= 0, error * error, -error)


# --- Predictions at submission against run times --------------------------------------------------

#: Name of a prediction -> the configuration in whose simulation it is made.
PREDICTIONS = {
    "requested": Configuration("sjbf", "requested", "requested"),
    "AVE2": EASY_PLUS_PLUS,
    "squared loss": Configuration("sjbf", "incremental", SQUARED),
    "E-Loss": E_LOSS_TRIPLE,
}


def predictions_of(workload: Workload, store: Store) -> dict[str, NDArray[np.int64]]:
    """Return the predictions at submission of some configurations, and the run times.

    Returns
    -------
    Name of a prediction -> (2, n_jobs) [s]: predicted, and actual run times.
    """

    def compute() -> dict[str, Any]:
        results = {name: simulate(workload, scheduler_of(one)) for name, one in PREDICTIONS.items()}
        return {name: [one.predicted_run_time, one.run_time] for name, one in results.items()}

    return store.step(f"{workload.name}-predictions", {"jobs": fingerprint([workload])}, compute)


# --- What came out --------------------------------------------------------------------------------


@dataclass
class Findings:
    """What came out on one trace.

    Attributes
    ----------
    source, workload : what the trace was loaded from; its jobs.
    table : a row for each configuration, by its text: what it is, whether the thesis has it, what
        :func:`simulate_one` returns, and the published value.
    accuracy : predictor -> its predictions at submission and the run times, (2, n_jobs) [s].
    """

    source: str
    workload: Workload
    table: pd.DataFrame
    accuracy: dict[str, Any] = field(default_factory=dict)

    @property
    def trace(self) -> str:
        """The name of the trace."""
        return self.workload.name

    @property
    def of_thesis(self) -> pd.DataFrame:
        """The rows of the table whose configurations are the thesis's."""
        return self.table[self.table["of thesis"]]
