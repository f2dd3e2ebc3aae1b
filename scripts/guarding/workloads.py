"""Small workloads: spelt out by numpy, so that they stay, and those of the library's generators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from guarding import library

ASKED = ("same", "half", "double", "ten", "odd", "hour", "day")  # requested for run times


def spelt(
    seed: int,
    jobs: int,
    processors: int,
    *,
    unit: int = 1,
    gaps: Sequence[int] = (0, 0, 0, 1, 2, 3),
    sizes: Sequence[int] | None = None,
    lengths: Sequence[int] = tuple(range(1, 13)),
    asked: Sequence[str] = ASKED,
    users: int = 2,
    begin: int = 0,
    **others: Any,
) -> Any:
    """Return jobs whose columns are drawn from lists, times in multiples of a unit [s]."""
    rng = np.random.default_rng(seed)

    def drawn(values: Sequence[int]) -> np.ndarray:
        return np.array(values)[rng.integers(len(values), size=jobs)]

    some = (1, 1, 2, 3, processors, (processors + 1) // 2)
    run = drawn(lengths) * unit
    kinds = np.array(asked)[rng.integers(len(asked), size=jobs)]
    columns = {
        "submit_time": begin + np.cumsum(drawn(gaps)) * unit,
        "requested_processors": drawn(some if sizes is None else sizes),
        "run_time": run,
        "requested_time": np.array(
            [_requested(kind, int(length)) for kind, length in zip(kinds, run, strict=True)]
        ),
        "user_id": rng.integers(users, size=jobs) - (rng.integers(9, size=jobs) == 0),
        "group_id": rng.integers(3, size=jobs),
        "executable": rng.integers(1, 6, size=jobs),
        "queue": rng.integers(1, 3, size=jobs),
        "job_number": np.arange(1, jobs + 1),
    }
    columns["user_id"] = np.maximum(columns["user_id"], -1)
    return library.workload_of({**columns, **others}, processors)


def _requested(kind: str, run: int) -> int:
    """Return the requested time [s] of a job that runs so long."""
    amounts = {
        "same": run,
        "half": max(run // 2, 1),
        "double": 2 * run,
        "ten": 10 * run,
        "odd": run + 7,
        "hour": 3600,
        "day": 40_000,
    }
    return amounts[kind]


#: Seconds, minutes and hours: the corrections add minutes, and usage is forgotten in days.
PLAIN: dict[str, Callable[[], Any]] = {
    "ties": lambda: spelt(1, 60, 8),
    "ties-too": lambda: spelt(2, 70, 5, gaps=(0, 0, 1)),
    "overruns": lambda: spelt(3, 60, 12, unit=60, asked=("half", "half", "same", "ten", "odd")),
    "wide": lambda: spelt(4, 50, 16, unit=20, sizes=(16, 16, 8, 9, 1, 2)),
    "queue": lambda: spelt(5, 220, 16, unit=60, gaps=(0, 0, 0, 1), lengths=(1, 2, 8, 30)),
    "users": lambda: spelt(6, 120, 24, unit=1800, users=12, gaps=(0, 1, 1, 2)),
    "late": lambda: spelt(7, 40, 6, unit=600, gaps=(0, 0, 1, 5, 50, 500), begin=1000),
    "exact": lambda: spelt(8, 60, 10, unit=7, asked=("same",)),
    "one": lambda: spelt(9, 1, 4),
    "measured": lambda: measured(10, 80, 12, unit=600, users=6),
    "many-run": lambda: spelt(11, 260, 160, unit=600, gaps=(0, 0, 0, 1), sizes=(1, 1, 1, 2, 3, 40)),
    "lublin": lambda: library.load("lublin:jobs=120,processors=32,seed=0,load=1.1"),
    "lublin-too": lambda: library.load("lublin:jobs=120,processors=64,seed=1,load=0.9,users=8"),
    "esp": lambda: library.load("light-esp:processors=60,users=3,spread=0.3,seed=1"),
}


def measured(seed: int, jobs: int, processors: int, **others: Any) -> Any:
    """Return jobs of which the power and the slowdown of some are known."""
    rng = np.random.default_rng(seed + 100)
    power = np.array([-1.0, -1.0, 0.0, 5.0, 13.25, 20.0])[rng.integers(6, size=jobs)]
    slowdown = np.array([-1.0, -1.0, 1.0, 1.1, 1.5, 3.0])[rng.integers(6, size=jobs)]
    return spelt(seed, jobs, processors, power_w=power, slowdown=slowdown, **others)


def in_units(
    seed: int, jobs: int, processors: int, cores: int, resources: bool, unit: int = 60
) -> Any:
    """Return jobs of units of up to so many cores; with memory and accelerators, if told.

    The power of some is known where there are no other resources.
    """
    rng = np.random.default_rng(seed + 200)
    core = rng.integers(1, cores + 1, size=jobs)
    units = np.minimum(rng.integers(1, 6, size=jobs), np.maximum(processors // (3 * core), 1))
    per_unit = {"core": core}
    if resources:
        per_unit["mem"] = rng.integers(0, 4, size=jobs) * 2
        per_unit["gpu"] = (rng.integers(5, size=jobs) == 0).astype(np.int64)
        units = np.where(per_unit["gpu"] > 0, np.minimum(units, 3), units)
    plain = spelt(seed, jobs, processors, unit=unit, users=4, sizes=(1,))
    columns = {
        name: plain.columns[name]
        for name in ("submit_time", "run_time", "requested_time", "user_id", "executable", "queue")
    }
    columns["requested_processors"] = units * core
    if not resources:
        columns["power_w"] = np.array([-1, -1, -1, 4.5, 30])[rng.integers(5, size=jobs)]
    header = {"Queue": ["1 short", "2 long"]}
    return library.workload_of(columns, processors, units=units, per_unit=per_unit, header=header)


#: Jobs that ask for units; those with other resources than cores are for machines that have them.
UNITS: dict[str, Callable[[], Any]] = {
    "cores": lambda: in_units(11, 60, 28, 4, False),
    "cores-ties": lambda: in_units(12, 70, 28, 3, False, unit=1),
    "resources": lambda: in_units(13, 60, 28, 4, True),
    "resources-ties": lambda: in_units(14, 70, 28, 4, True, unit=1),
    "resources-queue": lambda: in_units(15, 160, 28, 2, True, unit=600),
}

#: Jobs for machines whose nodes have a power, as many processors as these have.
LIMITED: dict[str, Callable[[int], Any]] = {
    "minutes": lambda m: spelt(21, 50, m, unit=60, sizes=_sizes(m), lengths=(1, 3, 8, 20)),
    "seconds": lambda m: spelt(22, 60, m, unit=1, sizes=_sizes(m)),
    "overruns": lambda m: spelt(23, 50, m, unit=60, sizes=_sizes(m), asked=("half", "odd", "ten")),
    "measured": lambda m: measured(24, 50, m, unit=60, sizes=_sizes(m), lengths=(1, 3, 8, 20)),
    "gaps": lambda m: spelt(25, 40, m, unit=30, sizes=_sizes(m), gaps=(0, 0, 1, 2, 20, 90)),
    "halves": lambda m: measured(27, 60, m, unit=60, sizes=_sizes(m)[:-1]),
    "queue": lambda m: measured(26, 140, m, unit=60, sizes=_sizes(m), gaps=(0, 0, 1)),
}


def _sizes(processors: int) -> tuple[int, ...]:
    """Return sizes from one processor to the whole machine."""
    return (1, processors // 8, processors // 8, processors // 4, processors // 2, processors)


CODES = ("stream", "dense", "sparse", "io")

#: Jobs of known codes, for machines with as many processors.
CODED: dict[str, Callable[[int], Any]] = {
    "spelt": lambda m: _coded(31, 50, m, unit=60, lengths=(1, 3, 8, 20)),
    "seconds": lambda m: _coded(32, 60, m),
    "overruns": lambda m: _coded(33, 40, m, unit=60, asked=("half", "same")),
    "queue": lambda m: _coded(34, 140, m, unit=600, gaps=(0, 0, 1), asked=("same", "double")),
    "generated": lambda m: _renamed(
        library.load(
            f"codes:speedups=generated:codes=4,processes={max(m // 6, 1)},processors={m},"
            "jobs=50,arrivals=poisson,interval=300,seed=3"
        )
    ),
    "assigned": lambda m: library.shuffled(
        library.assign_codes(library.load(f"lublin:jobs=50,processors={m},seed=2"), CODES, seed=1),
        seed=4,
    ),
}


def _coded(seed: int, jobs: int, processors: int, **others: Any) -> Any:
    """Return spelt jobs with codes."""
    rng = np.random.default_rng(seed + 300)
    names = [CODES[code] for code in rng.integers(len(CODES), size=jobs)]
    sizes = (1, 2, processors // 8, processors // 4, processors // 2)
    return library.with_codes(spelt(seed, jobs, processors, sizes=sizes, **others), names)


def _renamed(workload: Any) -> Any:
    """Return jobs of generated codes with the codes of the guard."""
    return library.with_codes(workload, [CODES[code % 4] for code in workload.executable.tolist()])


@cache
def plain(name: str) -> Any:
    """Return a workload of ``PLAIN`` or ``UNITS``, made once."""
    return {**PLAIN, **UNITS}[name]()


@cache
def limited(name: str, processors: int) -> Any:
    """Return a workload of ``LIMITED``, made once."""
    return LIMITED[name](processors)


@cache
def coded(name: str, processors: int) -> Any:
    """Return a workload of ``CODED``, made once."""
    return CODED[name](processors)
