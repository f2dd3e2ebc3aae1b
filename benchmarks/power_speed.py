"""Measure what power costs: the books beside plain EASY, and machines under caps and budgets.

    python benchmarks/power_speed.py --repeat 20

What is timed is hpcgym.simulate(), and the books named beside it, in seconds of the processor, so
that other programs matter less. Times are the least of some runs, in turn; compiling comes before.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hpcgym import Cluster, Result, Workload, load_workload, simulate
from hpcgym.cluster import NodeGroup, find_cluster
from hpcgym.scheduler.limits import EnergyBudget, PowerCap

Run = Callable[[], object]
DAY = 86_400  # s


def main() -> None:
    """Print tables: nanoseconds a job with and without books, seconds under limits."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=20, help="runs of each, default 20")
    parser.add_argument(
        "--limits-repeat", type=int, default=3, help="runs of each under limits, default 3"
    )
    given = parser.parse_args()
    accounting(given.repeat)
    for name, source in (
        ("curie", "lublin:jobs=20000,processors=5040,load=10,seed=1"),
        ("taurus", "lublin:jobs=20000,processors=192,load=0.8,seed=1"),
    ):
        under_limits(name, load_workload(source), given.limits_repeat)


# --- Books --------------------------------------------------------------------------------------


def accounting(repeat: int) -> None:
    """Print what books add to plain EASY on one trace, on nodes and on a pool."""
    kth = load_workload("KTH-SP2", "glesser")
    plain = find_cluster("kth-sp2")
    power = find_cluster("taurus").groups[0].power
    nodes = Cluster(groups=(NodeGroup("node", 100, {"core": 1}, power),))
    pool = Cluster(100)
    cases: dict[str, tuple[Cluster, dict[str, Any], Callable[[Result], object] | None]] = {
        "pool": (pool, {}, None),
        "pool, energies by state and job": (pool, {}, by_job),
        "nodes": (plain, {}, None),
        "nodes with power": (nodes, {}, None),
        "nodes with power, energies by state": (nodes, {}, by_state),
        "nodes with power, energies by state and job": (nodes, {}, by_job),
        "nodes with power, the same and power over time": (nodes, {}, everything),
        "limits=[]": (nodes, {"limits": []}, None),
        "limits=[], energies by state and job": (nodes, {"limits": []}, by_job),
    }
    runs = {
        name: once(kth, cluster, rules, reads) for name, (cluster, rules, reads) in cases.items()
    }
    best = in_turn(runs, repeat)
    print(
        f"KTH-SP2, {len(kth):,} jobs, 100 processors or nodes of one core; EASY, best of {repeat}"
    )
    for name, seconds in best.items():
        beside = seconds / best["pool" if "pool" in name else "nodes"]
        print(f"{name:50} {1e9 * seconds / len(kth):9,.0f} ns a job  x {beside:.2f}")
    print()


def by_state(result: Result) -> object:
    """Work out the energies by state."""
    return result.books.by_state


def by_job(result: Result) -> tuple[object, ...]:
    """Work out what jobs are charged too."""
    return result.books.by_state, result.books.by_job()


def everything(result: Result) -> object:
    """Work out the power over time too."""
    return *by_job(result), result.books.watts()


# --- Limits -------------------------------------------------------------------------------------


def under_limits(name: str, jobs: Workload, repeat: int) -> None:
    """Print how long a machine takes under a cap and under a budget, by each rule."""
    machine = find_cluster(name)
    first, last = int(jobs.submit_time[0]), int(jobs.submit_time[-1])
    middle = (first + last) // 2
    half = (last - first) // 8
    window = (middle - half, middle + half)
    cap = PowerCap.of(machine, 0.6, window[0], end=window[1])
    sudden = PowerCap.of(
        machine, 0.6, window[0], end=window[1], announced=window[0] - 3600, kills=True
    )
    cases: dict[str, dict[str, Any]] = {"whole nodes, no limit": {"limits": []}}
    for rule in ("none", "shut", "dvfs", "mix"):
        cases[f"cap, {rule}"] = {"limits": [cap], "power": rule}
    cases["cap of an hour's notice that kills, mix"] = {"limits": [sudden], "power": "mix"}
    for rule in ("powercap", "reduce-pc", "energy-bud"):
        for shutdown in (False, True):
            budget = EnergyBudget.of(machine, 0.6, *window, shutdown=shutdown)
            what = f"budget, {rule}{', idle nodes off' if shutdown else ''}"
            cases[what] = {"limits": [budget], "power": rule}
    best = in_turn({what: once(jobs, machine, rules) for what, rules in cases.items()}, repeat)
    widths = np.ceil(jobs.requested_processors / machine.groups[0].resources["core"])
    print(
        f"{name}: {machine.nodes:,} nodes, {len(jobs):,} jobs of {widths.mean():.0f} nodes on"
        f" average in {(last - first) / DAY:.1f} days; cap or budget of 60 % for a quarter of that;"
        f" best of {repeat}"
    )
    for what, seconds in best.items():
        result = simulate(jobs, cluster=machine, **cases[what])
        queue = result.metrics["mean_queue_length"]
        print(
            f"{what:50} {seconds:8.2f} s  {len(jobs) / seconds:12,.0f} jobs/s"
            f"  mean queue {queue:7,.0f}"
        )
    print()


# --- Time ---------------------------------------------------------------------------------------


def once(
    jobs: Workload,
    machine: Cluster,
    rules: dict[str, Any],
    reads: Callable[[Result], object] | None = None,
) -> Run:
    """Return a simulation, after which some of its books are read."""

    def run() -> object:
        result = simulate(jobs, cluster=machine, **rules)
        return None if reads is None else reads(result)

    return run


def in_turn(runs: dict[str, Run], repeat: int) -> dict[str, float]:
    """Return the least time of each [s]; the runs take turns, after one that is not timed."""
    best = dict.fromkeys(runs, np.inf)
    for turn in range(repeat + 1):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            if turn:
                best[name] = min(best[name], time.process_time() - begin)
    return best


if __name__ == "__main__":
    main()
