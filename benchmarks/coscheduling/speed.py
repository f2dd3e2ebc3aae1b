"""How many days are simulated in an hour, by the document's sizes of jobs and machines."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym import Cluster, Heatmap, Workload, generate_speedups, simulate
from hpcgym.benchmarks.coscheduling.items import DAYS_AN_HOUR
from hpcgym.machine import NodeGroup
from hpcgym.units import DAY_S
from hpcgym.workload import Code, generate_code_jobs

SCHEDULERS = ("fcfs", "easy", "easy-co")
#: Cores of a node: 2 x 16 as on Grvingt. The document does not print them.
NODE = 32
#: Processes and shortest and longest run times [s] of the NAS codes on Grvingt, in NASx10.
PROCESSES, RUN_S = (32, 64, 128), (486.0, 4540.0)
CODES = 16
REPETITIONS = 50  # "50 repetitions per experiment"


def tasks_of(quick: bool, machine: str) -> list[dict[str, Any]]:
    """Return the tasks."""
    repeats = 2 if quick else REPETITIONS
    sizes = dict.fromkeys((jobs, cores) for _, jobs, cores in DAYS_AN_HOUR)
    return [
        {"jobs": jobs, "cores": cores, "repeats": repeats, "scheduler": name, "machine": machine}
        for (jobs, cores), name in product(sizes, SCHEDULERS)
        if not quick or jobs * cores <= 10**6
    ]


def measure(task: Mapping[str, Any]) -> dict[str, float]:
    """Time simulations of jobs on nodes that they may share, after one that is not timed.

    Parameters
    ----------
    task : "scheduler"; "jobs" and "cores"; "repeats", sets of jobs, one of each seed.

    Returns
    -------
    outcome : "days", simulated in all repeats; "cpu_s", seconds of the processor that
        :func:`hpcgym.simulate` took for that.
    """
    speedups, cluster = generate_speedups(CODES), machine_of(task["cores"])
    workloads = [set_of(task["jobs"], speedups, seed) for seed in range(task["repeats"])]
    days = cpu_s = 0.0
    simulate(workloads[0], task["scheduler"], cluster=cluster, speedups=speedups)
    for jobs in workloads:
        begin = time.process_time()
        result = simulate(jobs, task["scheduler"], cluster=cluster, speedups=speedups)
        cpu_s += time.process_time() - begin
        days += float(result.metrics["makespan_s"]) / DAY_S
    return {"days": days, "cpu_s": cpu_s}


def set_of(jobs: int, speedups: Heatmap, seed: int) -> Workload:
    """Return a set of jobs, all submitted at once, of codes as those measured on Grvingt."""
    random = np.random.default_rng([seed, 4])
    low, high = np.log(RUN_S)
    times = np.exp(random.uniform(low, high, len(speedups))).tolist()
    codes = [Code(*of) for of in zip(speedups.codes, cycle(PROCESSES), times, strict=False)]
    return generate_code_jobs(codes, jobs, seed=seed)


def machine_of(cores: int, node: int = NODE) -> Cluster:
    """Return a machine of so many cores, in nodes of two sockets."""
    return Cluster(groups=(NodeGroup("node", cores // node, {"core": node}, sockets=2),))


def machine_name() -> str:
    """Return what the processor of this computer is called."""
    lines: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
