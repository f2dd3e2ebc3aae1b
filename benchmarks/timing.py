"""What measurements of speed share: the least seconds of runs, memory, the machine."""

from __future__ import annotations

import math
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from hpcgym import Result, __version__
from hpcgym.benchmarks.coscheduling.speed import machine_name
from hpcgym.processors import threads_here

Clock = Callable[[], float]


class Figures(NamedTuple):
    """What a section has measured: what it is of, and its rows, whose keys are the headings."""

    title: str
    rows: list[dict[str, Any]]


def spent(call: Callable[[], object], clock: Clock = time.perf_counter) -> Callable[[], float]:
    """Return what makes a call and returns the seconds that it took, by a clock."""

    def run() -> float:
        begin = clock()
        call()
        return clock() - begin

    return run


def best(call: Callable[[], object], repeat: int, clock: Clock = time.perf_counter) -> float:
    """Return the least seconds of some calls by a clock, after one that is not timed."""
    return in_turn({"": spent(call, clock)}, repeat)[""]


def in_turn(runs: Mapping[str, Callable[[], float]], repeat: int) -> dict[str, float]:
    """Return the least seconds of each; runs take turns, after one that does not count."""
    turns = [[run() for run in runs.values()] for _ in range(repeat + 1)]
    return dict(zip(runs, map(min, zip(*turns[1:], strict=True)), strict=True))


def rates(seconds: float, jobs: int) -> dict[str, float]:
    """Return what is shown of the time of a simulation."""
    return {"s": seconds, "ns a job": 1e9 * seconds / jobs, "jobs a second": round(jobs / seconds)}


def which_schedule(result: Result) -> dict[str, float]:
    """Return which schedule it was, and how long its queues."""
    names = {"mean_bsld": "mean BSLD", "mean_queue_length": "mean queue"}
    return {name: float(result.metrics[metric]) for metric, name in names.items()}


def simulated(
    what: str,
    runs: Mapping[str, Callable[[], Result]],
    repeat: int,
    clock: Clock = time.perf_counter,
    **beside: Any,
) -> list[dict[str, Any]]:
    """Return a row for each simulation, called ``what``: its time, and which schedule it was."""
    least = in_turn({name: spent(run, clock) for name, run in runs.items()}, repeat)
    results = {name: run() for name, run in runs.items()}
    return [
        {**beside, what: name, **rates(least[name], len(result.workload)), **which_schedule(result)}
        for name, result in results.items()
    ]


def memory(field: str) -> float:
    """Return this process's resident memory (VmRSS) or its peak (VmHWM) [bytes]; nan off Linux.

    The peak that getrusage tells would do on other systems, but on Linux it begins with that of
    the process that started this one.
    """
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
    return math.nan


def forget_peak() -> None:
    """Let VmHWM begin anew; where that is not allowed, memory of loading counts as simulation's."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        print("the peak of memory cannot be reset here", file=sys.stderr)


def machine() -> dict[str, str | int]:
    """Return what the figures depend on besides the program."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    return {
        "cpu": machine_name(),
        "cores": os.cpu_count() or 0,
        "threads": threads_here(),
        "load average of the last minute": f"{load:.1f}",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "hpcgym": __version__,
    }
