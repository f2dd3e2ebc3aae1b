"""The configurations of the campaign, the simulation of one on one trace, and predictions."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym import Scheduler, Workload, simulate
from hpcgym.benchmarks.studies.harness import load_jobs, same_jobs
from hpcgym.benchmarks.studies.store import Store
from hpcgym.scheduler.estimates import Regression
from hpcgym.simulation.run import predict_recorded
from hpcgym.workload.fingerprint import given_digest

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


class Configuration(NamedTuple):
    """A heuristic triple: what predicts, what corrects, and in which order jobs are backfilled.

    Attributes
    ----------
    order : "fcfs" or "sjbf".
    correction : a name of ``hpcgym.scheduler.estimates.CORRECTIONS``.
    estimate : a name of ``hpcgym.scheduler.estimates.ESTIMATES``, or a regression as text.
    """

    order: str
    correction: str
    estimate: str

    def __str__(self) -> str:
        words = [self.estimate, self.correction, self.order.upper()]
        return "; ".join(words[::2] if self.estimate in UNCORRECTED else words)

    @property
    def learned(self) -> bool:
        """Whether a regression predicts."""
        return self.estimate.startswith("regression")

    @property
    def scheduler(self) -> Scheduler:
        """The rules: EASY with a pass after each event, as published."""
        return Scheduler(
            backfill_order=self.order,
            estimate=self.estimate,
            correction=self.correction,
            passes="per-event",
        )


def loss(over: str, under: str, weight: str = "1", **more: Any) -> str:
    """Return the regression with a loss as text; its other numbers are the campaign's."""
    return str(Regression(over=over, under=under, weight=weight, **more))


def _variants(given: tuple[str, str, str], scales: tuple[float, ...] = (1.0,)) -> list[str]:
    """Return a loss with all published thresholds, and with some scales of either branch."""
    return [
        loss(*given, threshold=threshold, over_scale=over, under_scale=under)
        for threshold, over, under in product(THRESHOLDS, scales, scales)
    ]


def _learned(losses: list[str], corrections: tuple[str, ...]) -> list[Configuration]:
    """Return the configurations of some losses."""
    return [
        Configuration(o, c, learned_loss)
        for learned_loss, c, o in product(losses, corrections, ORDERS)
    ]


_LOSSES = [*product(BRANCHES, BRANCHES, WEIGHTS)]

#: Equation 7.3, and the loss of ordinary regression.
E_LOSS, SQUARED = loss("squared", "absolute", "large"), loss("squared", "squared")

#: The 12 configurations whose predictor learns nothing but AVE2's two run times.
WITHOUT_LEARNING = [
    *(
        Configuration(order, "requested", estimate)
        for estimate, order in product(UNCORRECTED, ORDERS)
    ),
    *_learned(["ave2"], CORRECTIONS),
]
#: The thesis's: 120 more, which learn (table 7.5).
THESIS = [*WITHOUT_LEARNING, *_learned([loss(*settings) for settings in _LOSSES], CORRECTIONS)]
#: Those that learn, with each threshold: table 7.6 is over these.
WITH_THRESHOLDS = _learned(
    [text for settings in _LOSSES for text in _variants(settings)], CORRECTIONS
)
#: The triple that the thesis recommends, with all thresholds and scales.
VARIANTS = [
    Configuration("sjbf", "incremental", variant)
    for variant in _variants(("squared", "absolute", "large"), SCALES)
]
#: What the thesis's tables need.
USUAL = [*dict.fromkeys([*THESIS, *WITH_THRESHOLDS, *VARIANTS])]
#: A small cut of the thesis's.
QUICK = [
    *WITHOUT_LEARNING,
    *_learned(
        [loss(*settings) for settings in product(BRANCHES, BRANCHES, ("1", "large"))],
        CORRECTIONS[:2],
    ),
]

#: The configurations that tables and figures name.
EASY = Configuration("fcfs", "requested", "requested")
EASY_PLUS_PLUS = Configuration("sjbf", "incremental", "ave2")
E_LOSS_TRIPLE = Configuration("sjbf", "incremental", E_LOSS)
E_LOSS_REQUESTED = Configuration("sjbf", "requested", E_LOSS)
CLAIRVOYANT = {order: Configuration(order, "requested", "clairvoyant") for order in ORDERS}
NAMES = {
    str(EASY): "EASY",
    str(EASY_PLUS_PLUS): "EASY++",
    str(E_LOSS_TRIPLE): "E-Loss, incremental, SJBF",
    str(E_LOSS_REQUESTED): "E-Loss, requested, SJBF",
    str(Configuration("sjbf", "requested", "ave2")): "AVE2, requested, SJBF",
    **{
        str(configuration): f"clairvoyant, {order.upper()}"
        for order, configuration in CLAIRVOYANT.items()
    },
}

# --- The simulations of the campaign, one configuration on one trace each -------------------------

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
    workload = load_jobs(source, clean="glesser")
    if jobs is None or jobs >= len(workload):
        return workload
    # by another name: nothing published is of these jobs
    return workload.take(slice(0, jobs), name=f"{workload.name}, first {jobs:,} jobs")


def simulate_one(task: dict[str, Any]) -> dict[str, Any]:
    """Simulate one configuration.

    Parameters
    ----------
    task : "source" of a trace, "first_jobs" (None: all), "jobs_sha256" (their hash), and "rules",
        the fields of a :class:`Configuration`.

    Returns
    -------
    outcome : metrics of the schedule; ``tail_share``, what a thousandth of the jobs has of the sum
        of bounded slowdowns.

    Raises
    ------
    HpcgymError : the trace cannot be read here, or has other jobs.
    """
    workload = same_jobs(load_trace, task["jobs_sha256"], task["source"], task["first_jobs"])
    result = simulate(workload, Configuration(*task["rules"]).scheduler)
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


# --- Predictions at submission --------------------------------------------------------------------

#: Name of a prediction -> the configuration in whose simulation it is made.
PREDICTIONS = {
    "requested": Configuration("sjbf", "requested", "requested"),
    "AVE2": EASY_PLUS_PLUS,
    "squared loss": Configuration("sjbf", "incremental", SQUARED),
    "E-Loss": E_LOSS_TRIPLE,
}
#: What they learn from: the jobs that had ended by the log, or in the simulation.
LOGGED, SIMULATED = "ends of the log", "simulated ends"


def predictions_of(workload: Workload, store: Store) -> dict[tuple[str, str], NDArray[np.int64]]:
    """Return the predictions at submission.

    Returns
    -------
    (:data:`LOGGED` or :data:`SIMULATED`, name of a prediction) -> (n_jobs,) [s].
    """

    def compute() -> dict[str, Any]:
        made = {}
        for name, prediction in PREDICTIONS.items():
            made[f"{LOGGED}:{name}"] = predict_recorded(workload, prediction.estimate)
            made[f"{SIMULATED}:{name}"] = simulate(
                workload, prediction.scheduler
            ).predicted_run_time
        return made

    jobs = {"jobs": given_digest(workload)}
    arrays = store.step(f"{workload.name}-predictions", jobs, compute)
    return {tuple(name.split(":")): of for name, of in arrays.items()}  # type: ignore[misc]
