"""Measure simulations in which jobs share nodes: jobs a second, growth with jobs, a whole log.

    python benchmarks/coscheduling_speed.py --repeat 10

What is timed is hpcgym.simulate(), in seconds of the processor, so that other programs matter less.
Times are the least of some runs, in turn; compiling comes before, and is told apart.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Mapping

import numpy as np

from hpcgym import Cluster, Heatmap, Workload, generate_speedups, simulate
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.benchmarks.coscheduling.speed import (
    SHAPES,
    TRACE,
    machine_name,
    machine_of,
    trace_jobs,
)
from hpcgym.workload import Code, generate_code_jobs
from hpcgym.workload.archive import find

Run = Callable[[], object]

SCHEDULERS = ("fcfs", "easy", "conservative", *COSCHEDULERS)
NODES, CORES = 100, 48
JOBS = 5_000
GROWTH = (1_250, 2_500, 5_000, 10_000, 20_000, 40_000)
PROCESSES = (24, 64, 128, 256)
#: Of what the machine can do under a scheduler, with the mean speedup of pairs where jobs share.
LOAD = 0.9


def main() -> None:
    """Print tables: jobs a second, how time grows, seconds of a log."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=10, help="runs of each, default 10")
    given = parser.parse_args()
    print(f"{machine_name()}, Python {platform.python_version()}")
    speedups = generate_speedups()
    cluster = machine_of(NODES * CORES, CORES)
    jobs_a_second(speedups, cluster, given.repeat)
    growth(speedups, cluster, given.repeat)
    if find(TRACE) is not None:
        log(speedups, given.repeat)


def jobs_of(speedups: Heatmap, jobs: int, load_of: str | None) -> Workload:
    """Return jobs of codes: all at time 0, or at random, 0.9 of what a scheduler can do."""
    random = np.random.default_rng(0)
    times = random.uniform(600, 7200, len(speedups)).tolist()
    sizes = [PROCESSES[place % len(PROCESSES)] for place in range(len(speedups))]
    codes = [Code(*of) for of in zip(speedups.codes, sizes, times, strict=True)]
    interval_s = None
    if load_of is not None:
        each = [node_seconds(code, load_of, speedups) for code in codes]
        interval_s = float(np.mean(each)) / (LOAD * NODES)
    return generate_code_jobs(
        codes,
        jobs,
        processors=NODES * CORES,
        mix="shuffle",
        arrivals="at-once" if load_of is None else "poisson",
        interval_s=interval_s,
    )


def node_seconds(code: Code, name: str, speedups: Heatmap) -> float:
    """Return what a job takes of the machine, a half of a node counting half."""
    if name not in COSCHEDULERS:
        return -(-code.processes // CORES) * code.compact_s
    halves = -(-code.processes // (CORES // 2))
    if COSCHEDULERS[name].allocation == "spread":
        return halves * code.compact_s / float(speedups.alone[speedups.place(code.name)])
    return halves / 2 * code.compact_s / speedups.mean_speedup


def jobs_a_second(speedups: Heatmap, cluster: Cluster, repeat: int) -> None:
    """Print jobs a second of all schedulers, with long queues and short ones."""
    print(f"{JOBS:,} jobs, {NODES} nodes of {CORES} cores; best of {repeat}")
    for what, at_once in (("all submitted at once", True), (f"load {LOAD}", False)):
        jobs = {name: jobs_of(speedups, JOBS, None if at_once else name) for name in SCHEDULERS}
        best = in_turn(
            {name: once(jobs[name], name, speedups, cluster) for name in SCHEDULERS},
            repeat,
            {"conservative": 1} if at_once else {},
        )
        print(what)
        for name, seconds in best.items():
            result = simulate(jobs[name], name, cluster=cluster, speedups=speedups)
            queue = result.metrics["mean_queue_length"]
            print(
                f"  {name:22} {1e3 * seconds:10,.1f} ms {JOBS / seconds:12,.0f} jobs/s"
                f"  mean queue {queue:7,.1f}"
            )
    print()


def growth(speedups: Heatmap, cluster: Cluster, repeat: int) -> None:
    """Print milliseconds by number of jobs at a stable queue, and the exponent of a power law."""
    print(f"ms by jobs, load {LOAD}; exponent from 5,000 on; n log n would have 1.10")
    print(f"  {'':22}" + "".join(f"{n:>10,}" for n in GROWTH) + "  exponent")
    best: dict[str, list[float]] = {name: [] for name in SCHEDULERS}
    for n in GROWTH:
        found = in_turn(
            {
                name: once(jobs_of(speedups, n, name), name, speedups, cluster)
                for name in SCHEDULERS
            },
            repeat,
        )
        for name, seconds in found.items():
            best[name].append(seconds)
    for name, times in best.items():
        exponent = np.polyfit(np.log(GROWTH[-4:]), np.log(times[-4:]), 1)[0]
        print(f"  {name:22}" + "".join(f"{1e3 * s:10,.1f}" for s in times) + f"{exponent:10.2f}")
    print()


def log(speedups: Heatmap, repeat: int) -> None:
    """Print seconds of two years of a log, its jobs with codes drawn at random."""
    cluster = machine_of(128 * 64, 64)
    for shape, meaning in SHAPES.items():
        jobs = trace_jobs(TRACE, shape, speedups)
        print(f"{TRACE}, {len(jobs):,} jobs of {shape}: {meaning}, 128 nodes of 64 cores")
        names = ("fcfs", "easy", "easy-co", "filler-co", "popularity-co")
        best = in_turn({n: once(jobs, n, speedups, cluster) for n in names}, min(repeat, 3))
        for name, seconds in best.items():
            print(f"  {name:22} {seconds:8.3f} s {len(jobs) / seconds:12,.0f} jobs/s")
    print()


# --- Time ---------------------------------------------------------------------------------------


def once(jobs: Workload, name: str, speedups: Heatmap, cluster: Cluster) -> Run:
    """Return a simulation."""
    return lambda: simulate(jobs, name, cluster=cluster, speedups=speedups)


def in_turn(
    runs: Mapping[str, Run], repeat: int, fewer: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Return the least time of each [s]; the runs take turns, after one that is not timed."""
    best = dict.fromkeys(runs, np.inf)
    for turn in range(repeat + 1):
        for name, run in runs.items():
            if turn <= (fewer or {}).get(name, repeat):
                begin = time.process_time()
                run()
                if turn:
                    best[name] = min(best[name], time.process_time() - begin)
    return best


if __name__ == "__main__":
    main()
