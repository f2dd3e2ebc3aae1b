"""The simulations of the campaign, one configuration on one trace each: tasks of a sweep."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.prediction.configurations import configuration_of, scheduler_of
from hpcgym.benchmarks.studies.logs import load_jobs
from hpcgym.benchmarks.studies.spread import check_same_jobs
from hpcgym.schedule.result import Result
from hpcgym.simulation.run import simulate
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

#: The cleaning recipe of the thesis.
RECIPE = "glesser"

_METRICS = ("jobs", "mean_bsld", "max_bsld", "rms_bsld", "mean_response_s", "max_response_s")


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


def simulate_one(task: dict[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    """Simulate one configuration.

    Parameters
    ----------
    task : "trace", "first_jobs" (None: all), "jobs_sha256" (their hash), "rules" (see
        :meth:`configurations.Configuration.words`), "eta" and "l2"; and "code", a hash of the
        sources, which makes another task of it after an edit.
    sources : name of a trace -> what it is loaded from.

    Returns
    -------
    outcome : metrics of the schedule; of the predictions at submission ``mae_s`` [s],
        ``mean_e_loss`` (equation 7.3) and ``too_short_share``; ``seconds`` of computing.

    Raises
    ------
    HpcgymError : the trace cannot be read here, or has other jobs.
    """
    workload = _loaded(sources[task["trace"]], task["first_jobs"], task["jobs_sha256"])
    rules = scheduler_of(configuration_of(task["rules"]), task["eta"], task["l2"])
    began = time.perf_counter()
    result = simulate(workload, rules)
    seconds = time.perf_counter() - began
    metrics = {name: result.metrics[name] for name in _METRICS}
    return {**metrics, **errors_of(result), "seconds": seconds}


@lru_cache(maxsize=4)
def _loaded(source: str, first_jobs: int | None, jobs: str) -> Workload:
    """Return a trace; each worker reads it once for many tasks."""
    workload = load_trace(source, first_jobs)
    check_same_jobs(source, fingerprint([workload]), jobs)
    return workload


def errors_of(result: Result) -> dict[str, float]:
    """Return how far a simulation's predictions were from the run times."""
    run, predicted = result.run_time, result.predicted_run_time
    error = (predicted - run).astype(np.float64)
    return {
        "mae_s": float(np.abs(error).mean()),
        "mean_e_loss": float(e_loss(predicted, run, result.workload.requested_processors).mean()),
        "too_short_share": float((error < 0).mean()),
    }


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
