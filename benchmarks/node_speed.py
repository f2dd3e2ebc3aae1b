"""Measure simulations on nodes: time a job beside that of a pool, and on a large machine.

    python benchmarks/node_speed.py --repeat 20

Times are the best of some runs, in turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from hpcgym import Cluster, Scheduler, Workload, load_workload
from hpcgym.cluster import NodeGroup, find_cluster
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.nodes import as_on_pool, assign_nodes, needs_on, nodes_for

Run = Callable[[], float]  # seconds of one simulation
SLURM = Scheduler(backfill="slurm")


def main() -> None:
    """Print a table of nanoseconds a job."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=20, help="runs of each, default 20")
    repeat = parser.parse_args().repeat
    kth = load_workload("KTH-SP2", "glesser")
    one_core = find_cluster("kth-sp2")
    table = {
        "KTH-SP2, pool of 100 processors": (len(kth), pool(kth)),
        "KTH-SP2, 100 nodes x 1 core, first fit": (
            len(kth),
            on_nodes(kth, one_core, Scheduler()),
        ),
        "the same, single cores treated as any units": (
            len(kth),
            on_nodes(kth, one_core, Scheduler(), general=True),
        ),
        "the same under Slurm's rules": (len(kth), on_nodes(kth, one_core, SLURM)),
    }
    thin = Cluster(groups=(NodeGroup("thin", 1152, {"core": 20, "mem": 64_000}),))
    for name, source in (
        ("100,000 jobs of single cores", "lublin:jobs=100000,processors=23040,seed=1"),
        ("100,000 jobs of whole nodes and parts", "kit:jobs=100000,seed=1"),
    ):
        jobs = load_workload(source)
        jobs = fitting_on(jobs, thin)
        for allocation in ("first-fit", "best-fit"):
            label = f"1,152 x 20 cores, {name}, {allocation}"
            table[label] = (len(jobs), on_nodes(jobs, thin, Scheduler(allocation=allocation)))
    small = Cluster(groups=(NodeGroup("thin", 96, {"core": 128}),))
    full = load_workload("lublin:jobs=10000,processors=12288,load=1.2,seed=1")
    table["96 x 128 cores, 10,000 jobs at load 1.2, Slurm's rules"] = (
        len(full),
        on_nodes(full, small, SLURM),
    )
    some = Cluster(groups=(NodeGroup("thin", 96, {"core": 20, "mem": 64_000}),))
    crowd = fitting_on(load_workload("kit:jobs=1000,seed=3"), some)
    for name in ("easy", "conservative"):
        table[f"96 x 20 cores, {len(crowd):,} jobs of whole nodes and parts, {name}"] = (
            len(crowd),
            on_nodes(crowd, some, Scheduler(backfill=name)),
        )
    best = dict.fromkeys(table, np.inf)
    # those that take seconds by themselves: behind them the system clears memory for the next
    slow = [name for name in table if "Slurm" in name or "conservative" in name]
    for names in ([name for name in table if name not in slow], slow):
        for _ in range(repeat):
            for name in names:
                best[name] = min(best[name], table[name][1]())
    reference = best["KTH-SP2, pool of 100 processors"] / len(kth)
    for name, (n, _) in table.items():
        each = best[name] / n
        print(
            f"{name:70} {1e9 * each:9,.0f} ns  {1 / each:12,.0f} jobs/s  x {each / reference:.2f}"
        )


def fitting_on(jobs: Workload, cluster: Cluster) -> Workload:
    """Return the jobs that fit the machine."""
    from hpcgym.workload import fitting

    if jobs.units is None:
        return jobs
    kept = {name: v for name, v in jobs.per_unit.items() if name in cluster.resources}
    plain = ~np.any([v > 0 for name, v in jobs.per_unit.items() if name not in kept], axis=0)
    return fitting(
        jobs.take(np.broadcast_to(plain, len(jobs))), cluster.resources, cluster.capacity
    )


def pool(jobs: Workload) -> Run:
    """Return a simulation of plain EASY on a pool."""
    cluster = Cluster(jobs.processors)

    def run() -> float:
        simulation = new_simulation(jobs, Scheduler(), cluster)
        begin = time.perf_counter()
        simulation.drive()
        return time.perf_counter() - begin

    return run


def on_nodes(jobs: Workload, cluster: Cluster, scheduler: Scheduler, general: bool = False) -> Run:
    """Return a simulation on nodes, as ``simulate`` does it or by the ``general`` way."""
    needs = needs_on(jobs, cluster)
    alike = as_on_pool(needs, scheduler) and not general

    def run() -> float:
        nodes = None if alike else nodes_for(jobs, needs, cluster, scheduler)
        simulation = new_simulation(jobs, scheduler, cluster, nodes)
        begin = time.perf_counter()
        simulation.drive()
        if alike:
            assign_nodes(simulation.schedule(), needs, cluster, scheduler)
        return time.perf_counter() - begin

    run()
    return run


if __name__ == "__main__":
    main()
