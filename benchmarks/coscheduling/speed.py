"""How many days are simulated in an hour: the document's sizes of jobs and machines, and logs."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym.benchmarks.coscheduling.items import DAYS_AN_HOUR, TRACE_NODES
from hpcgym.machine.pool import Cluster
from hpcgym.machine.speedups import Heatmap, generate_speedups
from hpcgym.naming import DAY_S
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
REPETITIONS = 50  # "50 repetitions per experiment"
#: How a job of p processors of a log is put on nodes: on p cores, or on p whole nodes.
SHAPES = ("p processes", "p nodes")


def tasks_of(quick: bool, machine: str) -> list[dict[str, Any]]:
    """Return the tasks; a log that is not at hand has none."""
    tasks: list[dict[str, Any]] = [
        {"jobs": jobs, "cores": cores, "repeats": 2 if quick else REPETITIONS}
        for jobs, by_cores in DAYS_AN_HOUR.items()
        for cores in by_cores
        if not quick or jobs * cores <= 10**6
    ]
    logs = [] if quick else [name for name in TRACE_NODES if find(name) is not None]
    tasks += [{"trace": name, "shape": of, "repeats": 3} for name in logs for of in SHAPES]
    return [task | {"scheduler": name, "machine": machine} for task in tasks for name in SCHEDULERS]


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
        nodes, ppn = TRACE_NODES[task["trace"]]
        workloads = [trace_jobs(task["trace"], task["shape"], speedups, nodes, ppn)]
        workloads *= task["repeats"]
        cluster = machine_of(nodes * ppn, ppn)
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


def trace_jobs(trace: str, shape: str, speedups: Heatmap, nodes: int, ppn: int) -> Workload:
    """Return the jobs of a log with codes drawn for them; see :data:`SHAPES`."""
    jobs = assign_codes(load_workload(trace), speedups.codes, seed=0)
    if shape == "p processes":
        return jobs
    wide = {
        name: ppn * jobs.columns[name] for name in ("requested_processors", "allocated_processors")
    }
    return Workload.from_columns(
        {**jobs.columns, **wide}, header=jobs.header, processors=ppn * nodes, name=jobs.name
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
