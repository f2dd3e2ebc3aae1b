"""The simulations: one rule on one log each, from several weeks on, with jittered submissions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.frontier.rules import Rule
from hpcgym.benchmarks.studies.logs import load_jobs
from hpcgym.benchmarks.studies.spread import check_same_jobs
from hpcgym.schedule.measures import HOUR, measures
from hpcgym.schedule.result import Result
from hpcgym.simulation.run import simulate
from hpcgym.tuning.trials import varied
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

#: Part of a log -> whether a submission belongs to it, by the share of the log's time before it.
PARTS = {"whole": (0.0, 1.0), "early": (0.0, 0.5), "late": (0.5, 1.0)}
#: Bounds of the classes of jobs, the upper ones included: run times [h], parts of the machine.
RUN_TIMES_H = {"below 1 h": (0, 1), "1 to 6 h": (1, 6), "above 6 h": (6, np.inf)}
WIDTHS = {"up to 1/16": (0, 1 / 16), "up to 1/4": (1 / 16, 1 / 4), "above 1/4": (1 / 4, 1)}


def load_log(source: str, recipe: str, first_jobs: int | None = None) -> Workload:
    """Return a log, cleaned by a recipe; only its first jobs, if that many are named."""
    workload = load_jobs(source, clean=recipe)
    if first_jobs is not None:
        workload = workload.take(slice(0, first_jobs))
    return workload.take(slice(None), name=f"{workload.name} {recipe}")


def simulate_rule(task: dict[str, Any], sources: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Simulate one rule on all variants of a log.

    Parameters
    ----------
    task : "log"; "first_jobs" (None: all) and "jobs_sha256", their hash; "rule", the fields of a
        :class:`Rule`; "variants", pairs of the first week and the seed of jitter; and "code", a
        hash of the sources, which makes another task of it after an edit.
    sources : name of a log -> what it is loaded from, and the recipe.

    Returns
    -------
    "rows" : for each variant and part of :data:`PARTS` what :func:`measures_by_class` returns, with
        "start_week", "seed" and "part".

    Raises
    ------
    HpcgymError : the log cannot be read here, or has other jobs.
    """
    workload = _loaded(*sources[task["log"]], task["first_jobs"], task["jobs_sha256"])
    scheduler = Rule(*task["rule"]).scheduler
    first, last = int(workload.submit_time[0]), int(workload.submit_time[-1])
    rows = []
    for start_week, seed in task["variants"]:
        result = simulate(varied(workload, start_week, seed), scheduler)
        when = (result.workload.submit_time - first) / (last - first)
        for part, (low, high) in PARTS.items():
            jobs = (when >= low) & ((when < high) | (high == 1.0))
            row = {"start_week": start_week, "seed": seed, "part": part}
            rows.append({**row, **measures_by_class(result, jobs)})
    return {"rows": rows}


@lru_cache(maxsize=4)
def _loaded(source: str, recipe: str, first_jobs: int | None, jobs: str) -> Workload:
    """Return a log; each worker reads it once for many tasks."""
    workload = load_log(source, recipe, first_jobs)
    check_same_jobs(source, fingerprint([workload]), jobs)
    return workload


def measures_by_class(result: Result, jobs: NDArray[np.bool_]) -> dict[str, float]:
    """Return what a site would feel of some jobs of a schedule.

    Parameters
    ----------
    jobs : (n_jobs,) which ones.

    Returns
    -------
    What :func:`hpcgym.schedule.measures.measures` tells; the utilisation of the whole schedule; and
    mean bounded slowdown and mean wait for each class of run times and of widths, nan without such
    jobs.
    """
    found = measures(result, jobs) | {"utilization": float(result.metrics["utilization"])}
    share = result.workload.requested_processors / result.cluster.processors
    wait = result.wait / HOUR
    for values, classes in ((result.run_time / HOUR, RUN_TIMES_H), (share, WIDTHS)):
        for name, (low, high) in classes.items():
            those = jobs & (values > low) & (values <= high)
            found[f"mean_bsld, {name}"] = _mean(result.bsld[those])
            found[f"mean_wait_h, {name}"] = _mean(wait[those])
    return found


def _mean(values: NDArray[np.float64]) -> float:
    """Return a mean, nan of nothing."""
    return float(values.mean()) if values.size else float("nan")
