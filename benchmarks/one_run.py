"""Simulate one workload with one scheduler in a process of its own: time and memory, as JSON."""

import time

BEGIN = time.perf_counter()  # before the imports: they are measured too

import argparse  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from statistics import median  # noqa: E402
from typing import Any  # noqa: E402

import hpcgym  # noqa: E402


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", help="file, archive name or generator, as hpcgym simulate")
    parser.add_argument("scheduler", help="name of a scheduler, as hpcgym simulate --scheduler")
    parser.add_argument("--clean", default="glesser", help="cleaning recipe (%(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="timed runs, at most (%(default)s)")
    parser.add_argument(
        "--budget", type=float, default=2.0, help="[s] no further run after this (%(default)s)"
    )
    given = parser.parse_args()
    try:
        print(json.dumps(measure(**vars(given))))
    except hpcgym.HpcgymError as error:
        sys.exit(f"{parser.prog}: {error}")


def measure(
    workload: str, scheduler: str, clean: str, repeat: int, budget: float
) -> dict[str, Any]:
    """Return the times [s] and the memory [bytes] of loading and simulating a workload."""
    from hpcgym.simulation.run import simulate

    facts: dict[str, Any] = {"import_s": time.perf_counter() - BEGIN}
    small = hpcgym.load_workload("lublin:jobs=100,processors=64", clean)
    facts["first_call_s"], _ = timed(simulate, small, scheduler)
    facts["load_s"], jobs = timed(hpcgym.load_workload, workload, clean)
    loading_peak, resident = memory("VmHWM"), memory("VmRSS")
    forget_peak()
    times: list[float] = []
    while not times or (len(times) < repeat and sum(times) < budget):
        result: Any = None  # two results at once would count twice
        seconds, result = timed(simulate, jobs, scheduler)
        times.append(seconds)
        if len(times) == 1:
            peak = memory("VmHWM")
    metrics = result.metrics
    return facts | {
        "jobs": len(jobs),
        "processors": jobs.processors,
        "min_s": min(times),
        "median_s": median(times),
        "repeats": len(times),
        "cpu_s": time.process_time(),
        "simulation_bytes": peak - resident,
        "peak_bytes": max(peak, loading_peak),
        "peak_with_metrics_bytes": max(memory("VmHWM"), loading_peak),
        **{name: metrics[name] for name in ("mean_bsld", "mean_queue_length", "max_queue_length")},
    }


def timed(function: Any, *arguments: Any) -> tuple[float, Any]:
    """Return how long a call took [s], and its value."""
    begin = time.perf_counter()
    value = function(*arguments)
    return time.perf_counter() - begin, value


def memory(field: str) -> float:
    """Return this process's resident memory (VmRSS) or its peak (VmHWM) [bytes]; nan off Linux.

    The peak that getrusage tells would do on other systems, but on Linux it begins with that of
    the process that started this one.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def forget_peak() -> None:
    """Let VmHWM begin anew; where that is not allowed, memory of loading counts as simulation's."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        print("one_run: the peak of memory cannot be reset here", file=sys.stderr)


if __name__ == "__main__":
    main()
