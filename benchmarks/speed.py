"""How fast hpcgym simulates, how that grows, and what it costs in memory."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sections import Column, Section, doing, machine, parser_of, show

import hpcgym
from hpcgym.workload.archive import find

EPILOG = """\
sections:
  schedulers  ns a job of each scheduler on WORKLOAD, repeats interleaved
  start       a process from its start to its end
  jobs        how time and memory grow with the number of jobs (load 0.8, 256 processors)
  processors  how time grows with the machine (100,000 jobs, load 0.8)
  load        how time grows with the queue, up to a saturated machine (100,000 jobs)

What is timed is hpcgym.simulate() from the loaded workload to the Result, after a warm-up; not
reading the workload, nor metrics or the DataFrame. Each row of start, jobs, processors and load is
a process of its own, which ends at --limit seconds; larger sizes are then left out.

examples:
  python benchmarks/speed.py
  python benchmarks/speed.py SDSC-SP2 --sections schedulers --repeat 50
  python benchmarks/speed.py --sections jobs --large --format json > jobs.json
"""

#: Name in the tables -> scheduler, other rules.
SCHEDULERS: dict[str, tuple[str, dict[str, Any]]] = {
    "easy": ("easy", {}),
    "easy, per-event": ("easy", {"passes": "per-event"}),
    "easy-sjbf": ("easy-sjbf", {}),
    "easy++": ("easy++", {}),
    "saf": ("saf", {}),
    "lexp": ("lexp", {}),
    "wfp3": ("wfp3", {}),
    "fcfs": ("fcfs", {}),
    "conservative": ("conservative", {}),
    "depth:10": ("easy", {"backfill": "depth:10"}),
    "depth:100": ("easy", {"backfill": "depth:100"}),
    "slurm": ("easy", {"backfill": "slurm:bf_max_job_test=1000"}),
}
FULL: dict[str, Any] = {
    "schedulers": ("easy", "easy-sjbf", "saf", "lexp", "conservative"),
    "jobs": (1_000, 10_000, 100_000, 1_000_000),
    "conservative_jobs": (1_000, 10_000, 100_000, 200_000),
    "processors": (64, 256, 1_024, 4_096, 16_384, 100_000),
    "load": (0.5, 0.8, 1.0, 1.5, 3.0, 10.0),
    "middle": 100_000,
}
QUICK: dict[str, Any] = {
    "schedulers": ("easy", "conservative"),
    "jobs": (100, 1_000),
    "conservative_jobs": (100, 1_000),
    "processors": (64, 1_024),
    "load": (0.5, 1.5),
    "middle": 1_000,
}
LARGE = 10_000_000
NAME = Column("scheduler", "scheduler")
NS = Column("min_ns", "ns a job, min", ",.0f")
MEDIAN_NS = Column("median_ns", "median", ",.0f")
NOTE = Column("note", "")
QUEUES = (
    Column("mean_queue_length", "mean queue", ",.0f"),
    Column("max_queue_length", "longest queue", ",.0f"),
)


def main() -> None:
    """Read the command line and print the sections asked for."""
    given = arguments()
    try:
        given.workload = given.workload or default_workload(given.quick)
        show(SECTIONS, given, machine() | {"workload": given.workload})
    except hpcgym.HpcgymError as error:
        sys.exit(f"speed.py: {error}")


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = parser_of(__doc__, EPILOG, SECTIONS, 30)
    add = parser.add_argument
    add(
        "workload",
        nargs="?",
        metavar="WORKLOAD",
        help="file, archive name or generator; KTH-SP2"
        " if it is on this machine, else a generated workload of that size",
    )
    add("--clean", default="glesser", help="cleaning recipe for WORKLOAD (%(default)s)")
    add("--limit", type=float, default=60, help="[s] for each process (%(default)s)")
    add("--large", action="store_true", help="let jobs go up to 10 million: minutes, 3 GB")
    add("--quick", action="store_true", help="small sizes only: to see that everything works")
    given = parser.parse_args()
    if given.limit <= 0:
        parser.error("--limit must be above 0")
    given.sizes = QUICK if given.quick else FULL
    return given


def default_workload(quick: bool) -> str:
    """Return KTH-SP2 if it is on this machine, else a generated workload of its size."""
    if quick:
        return "lublin:jobs=1000,processors=100,load=0.7"
    if find("KTH-SP2"):
        return "KTH-SP2"
    return "lublin:jobs=28481,processors=100,load=0.7"


def schedulers(given: argparse.Namespace) -> Section:
    """Time each scheduler on one workload, in turn, so that all see the same disturbances."""
    from hpcgym.simulation.run import simulate

    workload = hpcgym.load_workload(given.workload, given.clean)
    calls: dict[str, Callable[[], Any]] = {
        name: partial(simulate, workload, scheduler, **rules)
        for name, (scheduler, rules) in SCHEDULERS.items()
    }
    with doing(f"simulating {workload.name}"):
        times, results = interleaved(calls, given.repeat)
    rows = [
        {
            "scheduler": name,
            "jobs": len(workload),
            **per_job(times[name], len(workload)),
            "jobs_a_second": len(workload) / min(times[name]),
            "mean_bsld": result.metrics["mean_bsld"],
            "mean_queue_length": result.metrics["mean_queue_length"],
        }
        for name, result in results.items()
    ]
    return Section(
        f"{workload.name}: {len(workload):,} jobs, {workload.processors:,} processors,"
        f" best and median of {given.repeat}",
        (
            NAME,
            NS,
            MEDIAN_NS,
            Column("jobs_a_second", "jobs a second", ",.0f"),
            Column("mean_bsld", "mean BSLD", ",.2f"),
            Column("mean_queue_length", "mean queue", ",.1f"),
        ),
        rows,
    )


def interleaved(
    calls: dict[str, Callable[[], Any]], repeat: int, budget_s: float = np.inf
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Call each once to warm up, then in turn up to ``repeat`` times: seconds, and first values."""
    values = {name: call() for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    stop = time.perf_counter() + budget_s
    for done in range(repeat):
        if done and time.perf_counter() > stop:
            break
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return times, values


def per_job(seconds: list[float], jobs: int) -> dict[str, float]:
    """Return the least and the median time a job [ns]."""
    return {"min_ns": min(seconds) / jobs * 1e9, "median_ns": median(seconds) / jobs * 1e9}


def start(given: argparse.Namespace) -> Section:
    """Time whole processes."""
    rows = []
    for name in ("easy", "conservative"):
        begin = time.perf_counter()
        facts = one_run(given, given.workload, name, given.clean)
        rows.append({"scheduler": name, "process_s": time.perf_counter() - begin, **facts})
    return Section(
        "A process from its start to its end [s]",
        (
            NAME,
            Column("process_s", "whole", ".2f"),
            Column("cpu_s", "CPU time", ".2f"),
            Column("import_s", "import", ".2f"),
            Column("first_call_s", "first call", ".2f"),
            Column("load_s", "reading the workload", ".2f"),
        ),
        rows,
    )


def one_run(given: argparse.Namespace, workload: str, scheduler: str, clean: str) -> dict[str, Any]:
    """Simulate in a process of its own; return what it measured, or that it was stopped."""
    command = [sys.executable, str(Path(__file__).with_name("one_run.py"))]
    command += [workload, scheduler, "--clean", clean]
    with doing(f"{scheduler} on {workload}"):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=given.limit)
        except subprocess.TimeoutExpired:
            return {"note": f"stopped after {given.limit:g} s"}
    if done.returncode:
        reason = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        raise hpcgym.HpcgymError(f"{scheduler} on {workload}: {reason[-1]}")
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts | {
        "note": "",
        "min_ns": facts["min_s"] / facts["jobs"] * 1e9,
        "median_ns": facts["median_s"] / facts["jobs"] * 1e9,
        "bytes_a_job": facts["simulation_bytes"] / facts["jobs"],
        "peak_mb": facts["peak_bytes"] / 1e6,
        "peak_with_metrics_mb": facts["peak_with_metrics_bytes"] / 1e6,
    }


def growth(
    given: argparse.Namespace, key: str, sizes: dict[str, tuple[float, ...]], generator: str
) -> list[dict[str, Any]]:
    """Run each growing scheduler on generated workloads of several sizes, up to the time limit."""
    rows = []
    for name, of_scheduler in sizes.items():
        for size in of_scheduler:
            facts = one_run(given, generator.format(size), name, "none")
            rows.append({"scheduler": name, **facts, key: size})
            if facts["note"]:
                break  # larger ones would take longer
    return rows


def jobs(given: argparse.Namespace) -> Section:
    """Let the number of jobs grow."""
    sizes = dict.fromkeys(given.sizes["schedulers"], given.sizes["jobs"])
    sizes["conservative"] = given.sizes["conservative_jobs"]
    if given.large:
        for name in sizes.keys() - {"conservative"}:
            sizes[name] += (LARGE,)
    rows = growth(given, "jobs", sizes, "lublin:jobs={},processors=256,load=0.8")
    for row in rows:
        if row["jobs"] < 100_000:
            row["bytes_a_job"] = None  # less than the rest of the process varies by
    return Section(
        "Growth with jobs: 256 processors, load 0.8; memory while simulating, and of the process",
        (
            NAME,
            Column("jobs", "jobs", ",d"),
            NS,
            *QUEUES,
            Column("min_s", "seconds", ".3f"),
            Column("bytes_a_job", "bytes a job", ",.0f"),
            Column("peak_mb", "peak MB", ",.0f"),
            Column("peak_with_metrics_mb", "with metrics", ",.0f"),
            NOTE,
        ),
        rows,
    )


def growth_by(given: argparse.Namespace, key: str, form: str, generator: str, what: str) -> Section:
    """Let something else than the number of jobs grow, and with it machine or queue."""
    count = given.sizes["middle"]
    sizes = dict.fromkeys(given.sizes["schedulers"], given.sizes[key])
    rows = growth(given, key, sizes, f"lublin:jobs={count},{generator}")
    columns = (NAME, Column(key, key, form), NS, MEDIAN_NS, *QUEUES, NOTE)
    return Section(f"Growth with {key}: {count:,} jobs, {what}", columns, rows)


def processors(given: argparse.Namespace) -> Section:
    """Let the machine grow at equal load."""
    return growth_by(given, "processors", ",d", "processors={},load=0.8", "load 0.8")


def load(given: argparse.Namespace) -> Section:
    """Let the offered load grow, and with it the queue."""
    what = "256 processors; from load 1 on the queue grows"
    return growth_by(given, "load", ".1f", "processors=256,load={}", what)


#: Name -> what measures it; in the order in which they are shown.
SECTIONS: dict[str, Callable[[argparse.Namespace], Section]] = {
    "schedulers": schedulers,
    "start": start,
    "jobs": jobs,
    "processors": processors,
    "load": load,
}

if __name__ == "__main__":
    main()
