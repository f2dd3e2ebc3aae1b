"""How many days are simulated in an hour: the document's sizes of jobs and machines, and logs."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym.benchmarks.coscheduling.published import DAYS_AN_HOUR, REPETITIONS, TRACE_JOBS, TRACES
from hpcgym.machine.pool import Cluster
from hpcgym.machine.speedups import Heatmap, generate_speedups
from hpcgym.naming import DAY_S, HOUR_S
from hpcgym.simulation.run import simulate
from hpcgym.workload import Code, assign_codes, generate_code_jobs, load_workload
from hpcgym.workload.archive import find
from hpcgym.workload.model import Workload

SCHEDULERS = ("fcfs", "easy", "easy-co")
#: Cores of a node: 2 x 16 as on Grvingt. The document does not print them.
NODE = 32
#: Processes and shortest and longest run times [s] of the NAS codes on Grvingt, in NASx10.
PROCESSES, RUN_S = (32, 64, 128), (486.0, 4540.0)
CODES = 16
TRACE = "SDSC-SP2"
TRACE_NODES, PPN = 128, 64  # "128 nodes, 64 ppn"
#: How a job of the trace of p processors is put on these nodes.
SHAPES = {
    "p processes": "64 to a node",
    "64 p processes": "a node for each processor of the log",
}


def tasks_of(quick: bool, machine: str) -> list[dict[str, Any]]:
    """Return the tasks; a trace that is not at hand has none."""
    repeats = 2 if quick else REPETITIONS
    tasks: list[dict[str, Any]] = [
        {"jobs": jobs, "cores": cores, "scheduler": name, "repeats": repeats, "machine": machine}
        for jobs, by_cores in DAYS_AN_HOUR.items()
        for cores in by_cores
        for name in SCHEDULERS
        if not quick or jobs * cores <= 10**6
    ]
    if not quick and find(TRACE) is not None:
        tasks += [
            {"trace": TRACE, "shape": shape, "scheduler": name, "repeats": 3, "machine": machine}
            for shape in SHAPES
            for name in SCHEDULERS
        ]
    return tasks


def measure(task: Mapping[str, Any]) -> dict[str, Any]:
    """Time simulations of jobs on nodes that they may share, after one that is not timed.

    Parameters
    ----------
    task : "scheduler"; "repeats"; "jobs" and "cores" of a generated set, one of each seed, or
        "trace" and "shape", of :data:`SHAPES`, the same each time.

    Returns
    -------
    outcome : "jobs"; "days", simulated in all repeats; "cpu_s", seconds of the processor that
        :func:`hpcgym.simulate` took for that.
    """
    speedups = generate_speedups(CODES)
    if "trace" in task:
        jobs = trace_jobs(task["trace"], task["shape"], speedups)
        workloads = [jobs] * task["repeats"]
        cluster = machine_of(TRACE_NODES * PPN, PPN)
    else:
        workloads = [set_of(task["jobs"], speedups, seed) for seed in range(task["repeats"])]
        cluster = machine_of(task["cores"], NODE)
    days = cpu_s = 0.0
    simulate(workloads[0], task["scheduler"], cluster=cluster, speedups=speedups)
    for jobs in workloads:
        begin = time.process_time()
        result = simulate(jobs, task["scheduler"], cluster=cluster, speedups=speedups)
        cpu_s += time.process_time() - begin
        days += float(result.metrics["makespan_s"]) / DAY_S
    return {"jobs": len(workloads[0]), "days": days, "cpu_s": cpu_s}


def set_of(jobs: int, speedups: Heatmap, seed: int) -> Workload:
    """Return a set of jobs, all submitted at once, of codes as those measured on Grvingt."""
    random = np.random.default_rng([seed, 4])
    low, high = np.log(RUN_S)
    times = np.exp(random.uniform(low, high, len(speedups))).tolist()
    sizes = [PROCESSES[place % len(PROCESSES)] for place in range(len(speedups))]
    codes = [Code(*of) for of in zip(speedups.codes, sizes, times, strict=True)]
    return generate_code_jobs(codes, jobs, seed=seed)


def trace_jobs(trace: str, shape: str, speedups: Heatmap) -> Workload:
    """Return the jobs of a log with codes drawn for them; see :data:`SHAPES`."""
    jobs = assign_codes(load_workload(trace), speedups.codes, seed=0)
    if shape == "p processes":
        return jobs
    wide = {
        name: PPN * jobs.columns[name] for name in ("requested_processors", "allocated_processors")
    }
    return Workload.from_columns(
        {**jobs.columns, **wide}, header=jobs.header, processors=PPN * TRACE_NODES, name=jobs.name
    )


def machine_of(cores: int, node: int) -> Cluster:
    """Return a machine of so many cores, in nodes of two sockets."""
    from hpcgym.machine import NodeGroup

    group = NodeGroup("node", cores // node, {"core": node}, sockets=2)
    return Cluster(groups=(group,))


def machine_name() -> str:
    """Return what the processor of this computer is called."""
    try:
        lines: Iterable[str] = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


# --- Tables ---------------------------------------------------------------------------------------

Outcomes = Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]


def synthetic(outcomes: Outcomes) -> pd.DataFrame:
    """Return simulated days an hour of generated sets, beside the published."""
    rows = []
    for task, outcome in outcomes:
        if "trace" in task:
            continue
        published = DAYS_AN_HOUR[task["jobs"]][task["cores"]]
        row: dict[str, Any] = {
            "jobs": task["jobs"],
            "cores": task["cores"],
            "scheduler": task["scheduler"],
            "published days/h": published if task["scheduler"] in ("fcfs", "easy") else np.nan,
        }
        rows.append(row | _speeds(outcome, row["published days/h"], task["repeats"]))
    return pd.DataFrame(rows)


def traces(outcomes: Outcomes) -> pd.DataFrame:
    """Return simulated days an hour of the document's logs, beside the published."""
    rows: list[dict[str, Any]] = []
    for task, outcome in outcomes:
        if "trace" in task:
            published = TRACES[task["trace"]].get(task["scheduler"], np.nan)
            row = {
                "trace": task["trace"],
                "jobs": outcome["jobs"],
                "published jobs": TRACE_JOBS[task["trace"]],
                "a job of p processors": task["shape"],
                "scheduler": task["scheduler"],
                "published days/h": published,
            }
            rows.append(row | _speeds(outcome, published, task["repeats"]))
    return pd.DataFrame(rows)


def _speeds(outcome: Mapping[str, Any], published: float, repeats: int) -> dict[str, Any]:
    ours = outcome["days"] / (outcome["cpu_s"] / HOUR_S)
    return {
        "ours days/h": ours,
        "times as fast": ours / published,
        "simulated days": outcome["days"] / repeats,
        "ms a run": 1e3 * outcome["cpu_s"] / repeats,
        "jobs a second": int(outcome["jobs"] * repeats / outcome["cpu_s"]),
    }
