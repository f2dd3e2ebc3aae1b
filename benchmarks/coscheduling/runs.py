"""Simulations of the study: sets of jobs under EASY and all co-schedulers, as tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.cluster.files import find_cluster
from hpcgym.cluster.pool import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.schedule.result import Result
from hpcgym.simulation.run import simulate
from hpcgym.speedups import Heatmap, find_speedups, generate_speedups
from hpcgym.workload import Code, generate_code_jobs
from hpcgym.workload.model import Workload

REFERENCE = "easy"
SCHEDULERS = (REFERENCE, *COSCHEDULERS)

#: What stands in a task for the file of measured speedups, wherever that lies.
MEASURED = "measured"
#: Of measured run times, which are tens of seconds and are rounded up to whole ones: as NASx10.
LONGER = 10

_DRAWS = 2_000  # choices of codes, of which that with the nearest mean is taken


def measure(task: Mapping[str, Any], measured: str | None) -> dict[str, Any]:
    """Simulate shuffles of a set of jobs under EASY and all co-schedulers.

    Parameters
    ----------
    task : "speedups", :data:`MEASURED` or what :func:`find_speedups` takes, and "digest" of them;
        "codes", names of those that jobs run, or None: all; "chosen", how many are chosen for
        "mean", or None; "alike", whether all pairs have the mean speedup; "alone", a rate or None;
        "processes" and "run_s" of codes whose speedups do not tell them, and whether they are
        "rising" with the code's mean speedup; "seed" of what is drawn;
        "jobs"; "arrivals"; "cluster"; "rules" of co-schedulers; "shuffles", seeds; "files", what
        :func:`with_files` takes, or None.
    measured : the file of measured speedups, if a task is of them.

    Returns
    -------
    outcome : "mean_pair", the mean speedup of all pairs; "rows", of :func:`amounts` with "shuffle"
        and "scheduler".

    Raises
    ------
    HpcgymError : speedups that cannot be read here, or are others.
    """
    speedups = speedups_of(task, measured)
    cluster = find_cluster(task["cluster"])
    if task["files"] is not None:
        speedups, cluster = with_files(task, speedups, cluster)
    rows = []
    for shuffle in task["shuffles"]:
        jobs = jobs_of(task, speedups, cluster.processors, shuffle)
        for name in SCHEDULERS:
            rules = {} if name == REFERENCE else task["rules"]
            result = simulate(jobs, name, cluster=cluster, speedups=speedups, **rules)
            rows.append({"shuffle": shuffle, "scheduler": name, **amounts(result)})
    return {"mean_pair": float(speedups.filled.mean()), "rows": rows}


def amounts(result: Result) -> dict[str, float | None]:
    """Return what is compared of a schedule.

    Returns
    -------
    amounts : "makespan_s"; "job_speedup", mean over jobs; "slowed", share of jobs; "wait_s" and
        "bsld", means; "utilisation", of :func:`utilisation`; "congestion" of files, 1 without any.
    """
    metrics = result.metrics
    return {
        "makespan_s": float(metrics["makespan_s"]),
        "job_speedup": float(metrics["mean_job_speedup"]),
        "slowed": float(metrics["slowed_share"]),
        "wait_s": float(metrics["mean_wait_s"]),
        "bsld": float(metrics["mean_bsld"]),
        "utilisation": utilisation(result),
        "congestion": float(metrics.get("io_congestion", 1.0)),
    }


def utilisation(result: Result) -> float | None:
    """Return the share of cores in use until the last job starts; None if all start at once.

    ELiSE, "Metrics": "the percentage of the system that is in use until the waiting queue is
    empty". Cores are in use if a process runs there.
    """
    begin, until = float(result.workload.submit_time.min()), float(result.start.max())
    if until <= begin:
        return None
    inside = np.minimum(result.end, until) - np.minimum(result.start, until)
    busy = float((result.workload.requested_processors * inside).sum())
    return busy / (result.cluster.processors * (until - begin))


# --- Speedups and jobs ----------------------------------------------------------------------------


def speedups_of(task: Mapping[str, Any], measured: str | None) -> Heatmap:
    """Return the speedups of a task; see :func:`measure`."""
    source = task["speedups"]
    if source == MEASURED:
        if measured is None:
            raise HpcgymError("a task is of measured speedups, and there is no file of them")
        source = measured
    speedups = find_speedups(source)
    if speedups.digest != task["digest"]:
        raise HpcgymError(f"{speedups.source} has other speedups than where the study was begun")
    if task["codes"] is not None:
        speedups = speedups.take(task["codes"])
    if task["chosen"] is not None:
        speedups = chosen(speedups, task["chosen"], task["mean"], task["seed"])
    if task["alike"]:
        mean = float(speedups.filled.mean())
        pairs = np.full(speedups.speedup.shape, mean)
        speedups = replace(speedups, speedup=pairs, alone=np.full(len(speedups), mean))
    if task["alone"] is not None:
        speedups = replace(speedups, alone=np.full(len(speedups), float(task["alone"])))
    return speedups


def with_files(
    task: Mapping[str, Any], speedups: Heatmap, cluster: Cluster
) -> tuple[Heatmap, Cluster]:
    """Return codes that read and write, and a machine with a bandwidth.

    "files" of the task: "share", least and greatest of the codes' time, those between evenly, in an
    order drawn by "seed"; "demand_mb_s" of each core meanwhile; "bandwidth", over what all cores of
    the machine ask for together.
    """
    files = task["files"]
    order = np.random.default_rng([task["seed"], 4]).permutation(len(speedups))
    least, greatest = files["share"]
    share = np.linspace(least, greatest, len(speedups))[order]
    demand = np.where(share > 0, files["demand_mb_s"], 0.0)
    speedups = replace(speedups, io_share=share, io_demand_mb_s=demand)
    all_gb_s = cluster.processors * files["demand_mb_s"] / 1000
    return speedups, replace(cluster, io_bandwidth_gb_s=files["bandwidth"] * all_gb_s)


def chosen(speedups: Heatmap, number: int, mean: float, seed: int) -> Heatmap:
    """Return that many codes, whose mean speedup is the nearest to ``mean`` of 2,000 draws.

    What a code does alone is the greatest of what it does beside those chosen.
    """
    random = np.random.default_rng([seed, 3])
    best, found = np.inf, np.arange(number)
    for _ in range(_DRAWS):
        rows = np.sort(random.choice(len(speedups), number, replace=False))
        away = abs(speedups.filled[np.ix_(rows, rows)].mean() - mean)
        if away < best:
            best, found = away, rows
    taken = speedups.take([speedups.codes[row] for row in found.tolist()])
    return replace(taken, alone=np.full(number, np.nan))


def jobs_of(task: Mapping[str, Any], speedups: Heatmap, processors: int, shuffle: int) -> Workload:
    """Return a shuffle of the jobs of a task: each code equally often."""
    codes = codes_of(task, speedups)
    together = processors / np.mean([code.processes for code in codes])  # jobs at a time
    interval_s = float(np.mean([code.compact_s for code in codes])) / int(together)
    at_once = task["arrivals"] == "at-once"
    return generate_code_jobs(
        codes,
        task["jobs"],
        processors=processors,
        seed=shuffle,
        mix="shuffle",
        arrivals=task["arrivals"],
        interval_s=None if at_once else interval_s,
    )


def codes_of(task: Mapping[str, Any], speedups: Heatmap) -> list[Code]:
    """Return the codes of a task; what their speedups do not tell is drawn, or as the task says."""
    if task["run_s"] is None:
        known = zip(
            speedups.codes, speedups.processes.tolist(), speedups.compact_s.tolist(), strict=True
        )
        return [Code(name, processes, LONGER * time) for name, processes, time in known]
    low, high = np.log(task["run_s"])
    times = np.exp(np.random.default_rng([task["seed"], 2]).uniform(low, high, len(speedups)))
    if task["rising"]:
        rank = speedups.filled.mean(axis=1).argsort().argsort()
        times = np.sort(times)[rank]
    names = zip(speedups.codes, times.tolist(), strict=True)
    return [Code(name, task["processes"], time) for name, time in names]


def generated(codes: int, mean: float, spread: float, seed: int) -> tuple[str, str]:
    """Return a text that stands for generated speedups, and their digest."""
    speedups = generate_speedups(codes, mean, spread, seed)
    return speedups.source, speedups.digest
