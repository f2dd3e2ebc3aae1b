"""The metrics of a schedule: one definition of each, used by rewards, tables and tests alike."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.schedule.result import Result
    from hpcgym.workload.model import Workload

TAU_S = 10  # [s] run times below this count as this in the bounded slowdown

#: Classes of jobs by their run time [s]: name -> (from, below).
LENGTH_CLASSES = {"short": (0, 600), "medium": (600, 7200), "long": (7200, 2**62)}


def check_tau(tau: float) -> float:
    """Return what short run times count as [s], checked.

    Raises
    ------
    HpcgymError : no number above 0.
    """
    if not isinstance(tau, int | float | np.number) or not 0 < tau < np.inf:
        raise HpcgymError(f"tau must be a number of seconds above 0, not {tau!r}")
    return float(tau)


def bsld(
    wait: NDArray[np.int64],
    run: NDArray[np.int64],
    tau: float = TAU_S,
    full_speed: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Return the bounded slowdown of each job: max((wait + run) / max(full_speed, tau), 1).

    Document 002, equation 1; document 004, section 7.4.3: there no job is slowed down, and
    ``full_speed`` is ``run``.

    Parameters
    ----------
    wait, run : (n_jobs,) [s] waiting and run times.
    tau : [s] run times below this count as this.
    full_speed : (n_jobs,) [s] run times at the highest frequency; None: as they are.
    """
    length = run if full_speed is None else full_speed
    return np.maximum((wait + run) / np.maximum(length, tau), 1.0)


def slowdown(wait: NDArray[np.int64], run: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the slowdown of each job: (wait + run) / run, (n_jobs,)."""
    return (wait + run) / run


def queue_length(result: Result) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of waiting jobs over time.

    Returns
    -------
    times : (n_times,) int64 [s], strictly increasing; each value holds from its time to the next.
    lengths : (n_times,) int64; the last is 0.
    """
    seen = result.from_begin
    ones = np.ones(len(seen.start), np.int64)
    return _steps(seen.workload.submit_time, seen.start, ones)


def processors_in_use(result: Result) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of busy processors over time, as :func:`queue_length` does."""
    seen = result.from_begin
    return _steps(seen.start, seen.end, seen.workload.requested_processors)


def _steps(
    begin: NDArray[np.int64], end: NDArray[np.int64], amount: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the step function that is the sum of ``amount`` over [begin, end) of all jobs."""
    moments = np.concatenate([begin, end])
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    totals = np.cumsum(np.concatenate([amount, -amount])[order])
    last = np.flatnonzero(np.diff(moments, append=moments[-1:] + 1))  # of all changes at a time
    return moments[last], totals[last]


#: Metrics that schedules have under caps, and under budgets.
OF_LIMITS = ("cap_exceeded_s", "budget_exceeded_j")


def watts_given(cluster: Cluster | None, workload: Workload) -> bool:
    """Tell whether somebody gave powers: of the machine, None: a usual pool, or of any job."""
    power_w = workload.columns.get("power_w")
    of_jobs = power_w is not None and bool((power_w >= 0).any())
    return of_jobs or (cluster is not None and cluster.watts_given)


def needs_watts(name: str) -> bool:
    """Tell whether a metric is an energy by powers."""
    return name.startswith("energy_")


def told_metrics(result: Result) -> dict[str, float | int]:
    """Return the metrics that tables, pages and files have: no energies unless watts were given."""
    told = watts_given(result.cluster, result.workload)
    return {name: value for name, value in result.metrics.items() if told or not needs_watts(name)}


def compute_metrics(result: Result) -> dict[str, float | int]:
    """Return all metrics of a schedule by name.

    Names end in their unit: ``_s`` seconds, ``_j`` joules. With n jobs, m processors and the
    makespan C = last end - first submission:

    - ``mean_``, ``max_``, ``median_``, ``p95_``, ``p99_bsld``; ``rms_bsld``, the root of the mean
      square; ``mean_bsld_short``, ``_medium``, ``_long`` by run time (below 10 min, below 2 h, the
      rest; nan without such jobs): see :func:`bsld`.
    - ``mean_slowdown``; ``mean_wait_s``, ``max_wait_s``; ``mean_response_s``, ``max_response_s``
      (wait + run).
    - ``utilization``: sum of processors x run time / (m C).
    - ``makespan_s``: C. ``mean_queue_length``: waiting jobs, averaged over C;
      ``max_queue_length``.
    - ``backfilled_share``: of jobs that started before a job that came earlier in the queue;
      ``starved_share``: of jobs that waited longer than the scheduler's threshold, 0 without one.
    - where jobs share nodes, ``mean_job_speedup``, run time of compact jobs over that which it
      took (document 003); ``slowed_share``, of jobs for which it is below 1; ``compact_share``, of
      jobs that are compact, as the rules say or because they are too wide; ``throughput_per_h``,
      jobs over C in hours. The bounded slowdown divides by compact run times there.
    - ``killed_jobs``: cut at their requested time, or killed for a cap.
    - ``energy_busy_j``, ``energy_idle_j``, ``energy_off_j``, ``energy_switching_j``: of processors
      that are busy, idle, off, and being switched off or on; of nodes, where these have a power of
      their own, see :mod:`hpcgym.schedule.books`, and where something stands above nodes
      ``energy_components_j`` of it. ``energy_j``: their sum, the integral of power over C.
      Where nobody gave powers, each processor draws those of a node of document 004, table 4.2:
      :func:`told_metrics` leaves such energies out.
    - ``cap_exceeded_s``, under caps: how long the power was above one that held and was known;
      ``budget_exceeded_j``, under budgets: what was used beyond them.

    Of an extract n are the jobs that the schedule started, and their waiting counts from their
    submission. Where jobs run or wait at its beginning, C begins there; machine and queue are what
    they are from then on, with the jobs that run.

    Without jobs counts, makespan and energies are 0 and all else is nan.
    """
    jobs = result.decided
    n = int(np.count_nonzero(jobs))
    wait, run = result.wait[jobs], result.run_time[jobs]
    metrics: dict[str, float | int] = {"jobs": n}
    values = result.bsld[jobs] if n else np.full(1, np.nan)
    metrics["mean_bsld"] = float(values.mean())
    metrics["max_bsld"] = float(values.max())
    metrics["rms_bsld"] = float(np.sqrt(np.mean(values * values)))
    for name, share in (("median", 50), ("p95", 95), ("p99", 99)):
        metrics[f"{name}_bsld"] = float(np.percentile(values, share))
    for name, (low, high) in LENGTH_CLASSES.items():
        of_class = values[(run >= low) & (run < high)] if n else values[:0]
        metrics[f"mean_bsld_{name}"] = float(of_class.mean()) if of_class.size else np.nan
    metrics["mean_slowdown"] = float(slowdown(wait, run).mean()) if n else np.nan
    for name, times in (("wait", wait), ("response", wait + run)):
        metrics[f"mean_{name}_s"] = float(times.mean()) if n else np.nan
        metrics[f"max_{name}_s"] = times.max().item() if n else np.nan
    if n and result.coschedule is not None:
        metrics |= _of_shared_nodes(result)
    return metrics | _machine_metrics(result.from_begin) | _counts(result, n) | _of_limits(result)


def _longest_queue(result: Result) -> int:
    """Return the greatest number of waiting jobs: some submission reaches it."""
    submits, starts = result.workload.submit_time, np.sort(result.start)
    longest = 0
    for first in range(0, submits.size, 1_000_000):
        times = submits[first : first + 1_000_000]
        waiting = np.searchsorted(submits, times, "right") - np.searchsorted(starts, times, "right")
        longest = max(longest, int(waiting.max()))
    return longest


def _machine_metrics(result: Result) -> dict[str, float | int]:
    """Return the metrics of the machine over the makespan."""
    if not len(result.start):
        return _WITHOUT_JOBS.copy()
    cluster = result.cluster
    span = (result.end.max() - result.workload.submit_time.min()).item()
    if span == 0:  # all that there is of an extract ends as it begins
        return _WITHOUT_JOBS.copy()
    busy = _sum_of_products(result.workload.requested_processors, result.run_time)
    capacity = cluster.processors * span
    if result.keeps_books:
        energies = books_energies_j(result)
    else:
        seconds = result.idle_seconds or {"idle": capacity - busy}
        energies = energies_j(cluster, {"busy": busy, **seconds})
    return {
        "utilization": busy / capacity,
        "makespan_s": span,
        "mean_queue_length": float(result.wait.sum(dtype=np.float64)) / span,
        "max_queue_length": _longest_queue(result),
        **energies,
        "energy_j": sum(energies.values()),
    }


def energies_j(cluster: Cluster, seconds: Mapping[str, float]) -> dict[str, float]:
    """Return the energy of processors by what they do [J], from processor seconds by the same."""
    off, on = seconds.get("switching_off", 0), seconds.get("switching_on", 0)
    return {
        "energy_busy_j": seconds["busy"] * cluster.busy_power_w,
        "energy_idle_j": seconds["idle"] * cluster.idle_power_w,
        "energy_off_j": seconds.get("off", 0) * cluster.off_power_w,
        "energy_switching_j": off * cluster.shutdown_w + on * cluster.boot_w,
    }


def books_energies_j(result: Result) -> dict[str, float]:
    """Return the energy by what nodes do, and of components where the machine has any [J]."""
    states = result.books.by_state
    busy = [joules for name, joules in states.items() if name.startswith("busy")]
    energies = {
        "energy_busy_j": sum(busy),
        "energy_idle_j": states["idle"],
        "energy_off_j": states["off"],
        "energy_switching_j": states["switching_off"] + states["switching_on"],
    }
    if result.cluster.levels:
        energies["energy_components_j"] = states["components"]
    return energies


def _of_limits(result: Result) -> dict[str, float | int]:
    """Return by how much limits were exceeded: by the idle machine, or by what ran before."""
    limits: tuple[Any, ...] = result.limits or ()
    caps = [limit for limit in limits if hasattr(limit, "watts")]
    budgets = [limit for limit in limits if hasattr(limit, "joules")]
    metrics: dict[str, float | int] = {}
    if not caps and not budgets:
        return metrics
    books = result.books
    if caps:
        metrics["cap_exceeded_s"] = _exceeded_s(caps, books.time, books.total_w)
    if budgets:
        excess = 0.0
        for budget in budgets:
            used = books.joules(budget.start, budget.end)
            if used > budget.joules * (1 + _ROUNDING):
                excess += used - budget.joules
        metrics["budget_exceeded_j"] = excess
    return metrics


def _exceeded_s(caps: list[Any], times: NDArray[np.int64], watts: NDArray[np.float64]) -> int:
    """Return how long the power is above any cap that is known [s]; each second counts once."""
    windows = [
        (max(cap.start, cap.announced or 0), times[-1] if cap.end is None else cap.end)
        for cap in caps
    ]
    moments = np.concatenate([times, np.clip(np.ravel(windows), times[0], times[-1])])
    cuts = np.unique(moments)
    here = watts[np.searchsorted(times, cuts[:-1], "right") - 1]
    above = np.zeros(len(here), np.bool_)
    for cap, (begin, end) in zip(caps, windows, strict=True):
        inside = (cuts[:-1] >= begin) & (cuts[:-1] < end)
        above |= inside & (here > cap.watts * (1 + _ROUNDING))
    return int(np.diff(cuts)[above].sum())


_ROUNDING = 1e-12  # of sums of powers

_WITHOUT_JOBS: dict[str, float | int] = {
    "utilization": np.nan,
    "makespan_s": 0,
    "mean_queue_length": np.nan,
    "max_queue_length": 0,
    "energy_busy_j": 0.0,
    "energy_idle_j": 0.0,
    "energy_off_j": 0.0,
    "energy_switching_j": 0.0,
    "energy_j": 0.0,
}


def _of_shared_nodes(result: Result) -> dict[str, float | int]:
    """Return how jobs did that may have shared nodes."""
    speedup, found = result.job_speedup, result.coschedule
    assert found is not None
    span = result.end.max() - result.workload.submit_time.min()
    return {
        "mean_job_speedup": float(speedup.mean()),
        "slowed_share": float((speedup < 1 - _ROUNDING_OF_TICKS).mean()),
        "compact_share": float((found.shape == 0).mean()),
        "throughput_per_h": len(speedup) / float(span) * 3600,
    }


_ROUNDING_OF_TICKS = 1e-9


def _sum_of_products(processors: NDArray[np.int64], run: NDArray[Any]) -> float:
    """Return the processor seconds of all jobs, of whole run times exactly."""
    if run.dtype != np.int64:
        return float(np.dot(processors, run))
    if np.dot(processors.astype(np.float64), run.astype(np.float64)) < 2.0**62:
        return int(np.dot(processors, run))
    # no int64 holds them, but Python's integers do
    total: int = sum(map(operator.mul, processors.tolist(), run.tolist()))
    return total


def _counts(result: Result, n: int) -> dict[str, float | int]:
    """Return the shares and counts of the ``n`` jobs that something happened to."""
    jobs, threshold = result.decided, result.scheduler.threshold
    starved = 0 if threshold is None else int((result.wait[jobs] > threshold).sum())
    return {
        "backfilled_share": int(result.backfilled[jobs].sum()) / max(n, 1),
        "starved_share": starved / max(n, 1),
        "killed_jobs": int(result.killed[jobs].sum()),
    }
