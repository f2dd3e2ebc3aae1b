"""Small machines of each kind, limits of power and energy for them, and speedups of codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from guarding import library
from guarding.workloads import CODES


def pool(processors: int, **others: Any) -> Any:
    """Return a pool of processors."""
    return library.Cluster(processors, **others)


def single_cores(processors: int) -> Any:
    """Return as many nodes of one core."""
    return library.Cluster(groups=(library.NodeGroup("node", processors, {"core": 1}),))


def few_cores(processors: int) -> Any:
    """Return nodes of one, two and four cores that together have so many."""
    fours, rest = divmod(processors, 4)
    counts = {"four": (fours, 4), "two": (rest // 2, 2), "one": (rest % 2, 1)}
    groups = [library.NodeGroup(name, n, {"core": core}) for name, (n, core) in counts.items() if n]
    return library.Cluster(groups=tuple(groups))


#: Machines for jobs that ask for processors only; a function of how many there are.
POOLS: dict[str, Callable[[int], Any]] = {
    "pool": pool,
    "off-at-once": lambda m: pool(m, shutdown_after_s=0),
    "off": lambda m: pool(
        m, shutdown_after_s=30, shutdown_time_s=7, boot_time_s=20, idle_power_w=50, off_power_w=3
    ),
    "off-slow": lambda m: pool(
        m,
        shutdown_after_s=600,
        shutdown_time_s=60,
        boot_time_s=300,
        shutdown_power_w=90,
        boot_power_w=400,
    ),
    "larger": lambda m: pool(m + 3, busy_power_w=200),
    "single-cores": single_cores,
    "few-cores": few_cores,
}

MIXED = library.Cluster(
    groups=(
        library.NodeGroup("thin", 3, {"core": 4, "mem": 8}),
        library.NodeGroup("gpu", 2, {"core": 4, "mem": 16, "gpu": 2}),
        library.NodeGroup("fat", 1, {"core": 8, "mem": 32, "gpu": 1}),
    ),
    queues={"short": 600, "long": 7200},
    name="mixed",
)
_NODE_W = library.NodePower(60, 150.5, 7, shutdown_time_s=5, boot_time_s=30, boot_w=120)
#: Machines for jobs that ask for units.
NODES: dict[str, Any] = {
    "mixed": MIXED,
    "equal": library.Cluster(groups=(library.NodeGroup("node", 7, {"core": 4}),)),
    "powered": library.Cluster(
        groups=(
            library.NodeGroup("thin", 5, {"core": 4, "mem": 16, "gpu": 1}, _NODE_W),
            library.NodeGroup("fat", 1, {"core": 8, "mem": 32, "gpu": 2}),
        ),
        levels=(library.Level("chassis", 2, 25), library.Level("rack", 2, 40.5)),
    ),
}


def _often(cluster: Any, every: int, lasts: int, together: bool) -> Any:
    """Return failures of nodes, one after the other or all of them together."""
    n = cluster.nodes
    time = np.arange(12 * n) // (n if together else 1) * every + every // 2
    return library.Failures(np.arange(12 * n) % n, time, time + lasts)


#: When the nodes of such a machine fail; a function of the machine.
FAILURES: dict[str, Callable[[Any], Any]] = {
    "never": lambda cluster: library.Failures(*np.zeros((3, 0), np.int64)),
    "one-by-one": lambda cluster: _often(cluster, 40, 100, False),
    "all": lambda cluster: _often(cluster, 1800, 600, True),
    "ties": lambda cluster: _often(cluster, 2, 2, True),
}


def _cut(name: str, nodes: int, cores: int, levels: tuple[tuple[str, int, float], ...] = ()) -> Any:
    """Return some nodes with the power of those of a ready-made machine."""
    power = library.find_cluster(name).groups[0].power
    return library.Cluster(
        groups=(library.NodeGroup(name, nodes, {"core": cores}, power),),
        levels=tuple(library.Level(*level) for level in levels),
    )


_SLOW = library.NodePower(
    20.25,
    (31, 60, 93.7),
    2.5,
    frequency_ghz=(1.0, 1.6, 2.0),
    slowdown=(2.5, 1.2, 1),
    shutdown_time_s=7,
    boot_time_s=20,
    shutdown_w=35,
    boot_w=80,
)
#: Machines whose nodes are alike and have a power.
LIMITED: dict[str, Any] = {
    "taurus": _cut("taurus", 8, 12),
    "curie": _cut("curie", 12, 4, (("chassis", 3, 248), ("rack", 2, 900))),
    "slow": library.Cluster(groups=(library.NodeGroup("node", 8, {"core": 2}, _SLOW),)),
}


def switching(cluster: Any, after: str) -> Any:
    """Return a machine whose idle nodes are switched off after so many seconds; "never" too."""
    return cluster if after == "never" else replace(cluster, shutdown_after_s=int(after))


def _between(cluster: Any, share: float) -> float:
    """Return a power between that of the idle machine and the greatest [W]."""
    idle = library.idle_w(cluster)
    return idle + share * (library.greatest_w(cluster) - idle)


def _cap(cluster: Any, share: float, start: int, end: int | None, **others: Any) -> Any:
    return library.PowerCap(_between(cluster, share), start, end, **others)


def _budget(cluster: Any, share: float, start: int, end: int, **others: Any) -> Any:
    """Return a budget for a period, as a share of what is used with all nodes busy."""
    return library.EnergyBudget.of(cluster, share, start, end, **others)


#: Limits of a machine, its jobs being submitted from ``a`` up to ``z`` [s].
LIMITS: dict[str, Callable[[Any, int, int], list[Any]]] = {
    "no-limits": lambda c, a, z: [],
    "cap": lambda c, a, z: [_cap(c, 0.4, a + (z - a) // 4, a + (z - a) // 2)],
    "low-cap": lambda c, a, z: [_cap(c, 0.1, a + (z - a) // 5, z)],
    "share-cap": lambda c, a, z: [library.PowerCap.of(c, 0.6, start=a, end=z + 1)],
    "cap-for-ever": lambda c, a, z: [_cap(c, 0.7, a + (z - a) // 2, None)],
    "killing-cap": lambda c, a, z: [
        _cap(c, 0.3, a + (z - a) // 3, z, announced=a + (z - a) // 3, kills=True)
    ],
    "late-cap": lambda c, a, z: [
        _cap(c, 0.5, a + (z - a) // 3, z, announced=a + (z - a) // 2),
    ],
    "caps": lambda c, a, z: [
        _cap(c, 0.6, a, a + (z - a) // 2),
        _cap(c, 0.2, a + (z - a) // 3, a + 2 * (z - a) // 3, announced=a + (z - a) // 4),
        _cap(c, 0.4, z, 2 * z - a + 1),
    ],
    "budget": lambda c, a, z: [_budget(c, 0.7, a, z + 1, period=_period(a, z))],
    "tight-budget": lambda c, a, z: [_budget(c, 0.5, a + 1, 2 * z - a + 2, period=7)],
    "budget-off": lambda c, a, z: [_budget(c, 0.5, a, z + 1, period=97, shutdown=True)],
    "budgets": lambda c, a, z: [
        _budget(c, 0.6, a, a + (z - a) // 2 + 1, period=_period(a, z)),
        _budget(c, 0.8, a + (z - a) // 2 + 1, z + 2, shutdown=True),
    ],
    "cap-and-budget": lambda c, a, z: [
        _cap(c, 0.4, a + (z - a) // 4, a + (z - a) // 2),
        _budget(c, 0.6, a, z + 1, period=_period(a, z)),
    ],
}


def _period(a: int, z: int) -> int:
    """Return the seconds between two looks at a meter."""
    return max((z - a) // 20, 1)


def limits_of(name: str, cluster: Any, workload: Any) -> list[Any]:
    """Return the limits of a name for some jobs."""
    first, last = int(workload.submit_time[0]), int(workload.submit_time[-1])
    return LIMITS[name](cluster, first, max(last, first + 20))


#: Machines whose nodes jobs share: nodes x sockets x cores, and with a power.
SHARED: dict[str, Any] = {
    "8x2x8": library.find_cluster("8x2x8"),
    "6x1x4": library.find_cluster("6x1x4"),
    "5x2x6": library.Cluster(groups=(library.NodeGroup("n", 5, {"core": 12}, _NODE_W, sockets=2),)),
}
#: The same with a file system that jobs share; speedups of codes that use it are in READERS.
WITH_FILES: dict[str, Any] = {
    name: replace(SHARED[name], io_bandwidth_gb_s=gb_s)
    for name, gb_s in (("8x2x8", 0.5), ("6x1x4", 0.05), ("5x2x6", 2))
}


def _speedups(seed: int, mean: float, spread: float) -> Any:
    """Return generated speedups of the guard's codes."""
    found = library.generate_speedups(len(CODES), mean, spread, seed)
    return library.Heatmap(CODES, found.speedup, found.alone)


_MEASURED = [
    [1.04, 0.94, 1.07, None],
    [1.25, 1.0, 1.31, 0.7],
    [0.97, 0.85, None, 1.5],
    [1.125, 1.5, 0.75, 0.6],
]
#: Speedups, and what a scheduler may take for them.
HEATMAPS: dict[str, Any] = {
    "generated": _speedups(0, 1.1, 0.1),
    "spread": _speedups(3, 1.0, 0.3),
    "measured": library.Heatmap(CODES, np.array(_MEASURED, dtype=float)),
}
READERS: dict[str, Any] = {
    "readers": replace(
        _speedups(5, 1.1, 0.2), io_share=[0.5, 0.1, 0, 0.9], io_demand_mb_s=[10, 50, 0, 2.5]
    ),
    "alike": replace(HEATMAPS["measured"], io_share=[0.25] * 4, io_demand_mb_s=[20] * 4),
}
PAIRS: dict[str, Callable[[], Any]] = {
    "known": lambda: "known",
    "learned": lambda: "learned",
    "believed": lambda: HEATMAPS["spread"],
    "learner": lambda: library.LearnedSpeedups(
        CODES, features={code: {"ipc": place / 2} for place, code in enumerate(CODES)}
    ),
}
