"""What cases are made of, by the names of their values: jobs, machines, limits, rules.

Jobs are spelt out by numpy, so that they stay, or are those of the library's generators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from hpcgym import Cluster, Heatmap, Workload, generate_speedups, load_workload
from hpcgym.machine import Failures, Level, NodeGroup, NodePower, find_cluster
from hpcgym.machine.power_plans import greatest_w, idle_w
from hpcgym.machine.speedups import LearnedSpeedups, PairRegression
from hpcgym.scheduler.estimates import DataDriven, Regression
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.policies.networks import INPUTS, Network
from hpcgym.workload import assign_codes, shuffled, with_codes

# --- Jobs -----------------------------------------------------------------------------------------


def spelt(
    seed: int,
    jobs: int,
    processors: int,
    *,
    unit: int = 1,
    gaps: Sequence[int] = (0, 0, 0, 1, 2, 3),
    sizes: Sequence[int] | None = None,
    lengths: Sequence[int] = tuple(range(1, 13)),
    asked: Sequence[str] = (),
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
    kinds = np.array(asked or tuple(_ASKED))[rng.integers(len(asked or _ASKED), size=jobs)]
    columns = {
        "submit_time": begin + np.cumsum(drawn(gaps)) * unit,
        "requested_processors": drawn(some if sizes is None else sizes),
        "run_time": run,
        "requested_time": np.array([_ASKED[k](int(r)) for k, r in zip(kinds, run, strict=True)]),
        "user_id": rng.integers(users, size=jobs) - (rng.integers(9, size=jobs) == 0),
        "group_id": rng.integers(3, size=jobs),
        "executable": rng.integers(1, 6, size=jobs),
        "queue": rng.integers(1, 3, size=jobs),
        "job_number": np.arange(1, jobs + 1),
    }
    columns["user_id"] = np.maximum(columns["user_id"], -1)
    return _made({**columns, **others}, processors)


def _made(columns: Mapping[str, Any], processors: int, **others: Any) -> Workload:
    return Workload.from_columns(columns, processors=processors, name="guarded", **others)


#: What is requested for a run time [s].
_ASKED: dict[str, Callable[[int], int]] = {
    "same": lambda run: run,
    "half": lambda run: max(run // 2, 1),
    "double": lambda run: 2 * run,
    "ten": lambda run: 10 * run,
    "odd": lambda run: run + 7,
    "hour": lambda run: 3600,
    "day": lambda run: 40_000,
}


#: Seconds, minutes and hours: the corrections add minutes, and usage is forgotten in days.
_PLAIN: dict[str, Callable[[], Any]] = {
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
    "lublin": lambda: load_workload("lublin:jobs=120,processors=32,seed=0,load=1.1"),
    "lublin-too": lambda: load_workload("lublin:jobs=120,processors=64,seed=1,load=0.9,users=8"),
    "esp": lambda: load_workload("light-esp:processors=60,users=3,spread=0.3,seed=1"),
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
    return _made(columns, processors, units=units, per_unit=per_unit, header=header)


#: Jobs that ask for units; those with other resources than cores are for machines that have them.
_IN_UNITS: dict[str, Callable[[], Any]] = {
    "cores": lambda: in_units(11, 60, 28, 4, False),
    "cores-ties": lambda: in_units(12, 70, 28, 3, False, unit=1),
    "resources": lambda: in_units(13, 60, 28, 4, True),
    "resources-ties": lambda: in_units(14, 70, 28, 4, True, unit=1),
    "resources-queue": lambda: in_units(15, 160, 28, 2, True, unit=600),
}

#: Jobs for machines whose nodes have a power, as many processors as these have.
_FOR_LIMITED: dict[str, Callable[[int], Any]] = {
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
_CODED: dict[str, Callable[[int], Any]] = {
    "spelt": lambda m: _coded(31, 50, m, unit=60, lengths=(1, 3, 8, 20)),
    "seconds": lambda m: _coded(32, 60, m),
    "overruns": lambda m: _coded(33, 40, m, unit=60, asked=("half", "same")),
    "queue": lambda m: _coded(34, 140, m, unit=600, gaps=(0, 0, 1), asked=("same", "double")),
    "generated": lambda m: _renamed(
        load_workload(
            f"codes:speedups=generated:codes=4,processes={max(m // 6, 1)},processors={m},"
            "jobs=50,arrivals=poisson,interval=300,seed=3"
        )
    ),
    "assigned": lambda m: shuffled(
        assign_codes(load_workload(f"lublin:jobs=50,processors={m},seed=2"), CODES, seed=1),
        seed=4,
    ),
}


def _coded(seed: int, jobs: int, processors: int, **others: Any) -> Any:
    """Return spelt jobs with codes."""
    rng = np.random.default_rng(seed + 300)
    names = [CODES[code] for code in rng.integers(len(CODES), size=jobs)]
    sizes = (1, 2, processors // 8, processors // 4, processors // 2)
    return with_codes(spelt(seed, jobs, processors, sizes=sizes, **others), names)


def _renamed(workload: Any) -> Any:
    """Return jobs of generated codes with the codes of the guard."""
    return with_codes(workload, [CODES[code % 4] for code in workload.executable.tolist()])


@cache
def plain(name: str) -> Any:
    """Return jobs for a pool or for nodes, made once."""
    return {**_PLAIN, **_IN_UNITS}[name]()


@cache
def limited(name: str, processors: int) -> Any:
    """Return jobs for a machine whose nodes have a power, made once."""
    return _FOR_LIMITED[name](processors)


@cache
def coded(name: str, processors: int) -> Any:
    """Return jobs of known codes, made once."""
    return _CODED[name](processors)


# --- Machines -------------------------------------------------------------------------------------


def single_cores(processors: int) -> Any:
    """Return as many nodes of one core."""
    return Cluster(groups=(NodeGroup("node", processors, {"core": 1}),))


def few_cores(processors: int) -> Any:
    """Return nodes of one, two and four cores that together have so many."""
    fours, rest = divmod(processors, 4)
    counts = {"four": (fours, 4), "two": (rest // 2, 2), "one": (rest % 2, 1)}
    groups = [NodeGroup(name, n, {"core": core}) for name, (n, core) in counts.items() if n]
    return Cluster(groups=tuple(groups))


#: Machines for jobs that ask for processors only; a function of how many there are.
POOLS: dict[str, Callable[[int], Any]] = {
    "pool": Cluster,
    "off-at-once": lambda m: Cluster(m, shutdown_after_s=0),
    "off": lambda m: Cluster(
        m, shutdown_after_s=30, shutdown_time_s=7, boot_time_s=20, idle_power_w=50, off_power_w=3
    ),
    "off-slow": lambda m: Cluster(
        m,
        shutdown_after_s=600,
        shutdown_time_s=60,
        boot_time_s=300,
        shutdown_power_w=90,
        boot_power_w=400,
    ),
    "larger": lambda m: Cluster(m + 3, busy_power_w=200),
    "single-cores": single_cores,
    "few-cores": few_cores,
}

_MIXED = Cluster(
    groups=(
        NodeGroup("thin", 3, {"core": 4, "mem": 8}),
        NodeGroup("gpu", 2, {"core": 4, "mem": 16, "gpu": 2}),
        NodeGroup("fat", 1, {"core": 8, "mem": 32, "gpu": 1}),
    ),
    queues={"short": 600, "long": 7200},
    name="mixed",
)
_NODE_W = NodePower(60, 150.5, 7, shutdown_time_s=5, boot_time_s=30, boot_w=120)
#: Machines for jobs that ask for units.
NODES: dict[str, Any] = {
    "mixed": _MIXED,
    "equal": Cluster(groups=(NodeGroup("node", 7, {"core": 4}),)),
    "powered": Cluster(
        groups=(
            NodeGroup("thin", 5, {"core": 4, "mem": 16, "gpu": 1}, _NODE_W),
            NodeGroup("fat", 1, {"core": 8, "mem": 32, "gpu": 2}),
        ),
        levels=(Level("chassis", 2, 25), Level("rack", 2, 40.5)),
    ),
}


def _often(cluster: Any, every: int, lasts: int, together: bool) -> Any:
    """Return failures of nodes, one after the other or all of them together."""
    n = cluster.nodes
    time = np.arange(12 * n) // (n if together else 1) * every + every // 2
    return Failures(np.arange(12 * n) % n, time, time + lasts)


#: When the nodes of such a machine fail; a function of the machine.
FAILURES: dict[str, Callable[[Any], Any]] = {
    "never": lambda cluster: Failures(*np.zeros((3, 0), np.int64)),
    "one-by-one": lambda cluster: _often(cluster, 40, 100, False),
    "all": lambda cluster: _often(cluster, 1800, 600, True),
    "ties": lambda cluster: _often(cluster, 2, 2, True),
}


def _cut(name: str, nodes: int, cores: int, levels: tuple[tuple[str, int, float], ...] = ()) -> Any:
    """Return some nodes with the power of those of a ready-made machine."""
    power = find_cluster(name).groups[0].power
    return Cluster(
        groups=(NodeGroup(name, nodes, {"core": cores}, power),),
        levels=tuple(Level(*level) for level in levels),
    )


_SLOW = NodePower(
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
    "slow": Cluster(groups=(NodeGroup("node", 8, {"core": 2}, _SLOW),)),
}


def switching(cluster: Any, after: str) -> Any:
    """Return a machine whose idle nodes are switched off after so many seconds; "never" too."""
    return cluster if after == "never" else replace(cluster, shutdown_after_s=int(after))


def _between(cluster: Any, share: float) -> float:
    """Return a power between that of the idle machine and the greatest [W]."""
    idle = idle_w(cluster)
    return idle + share * (greatest_w(cluster) - idle)


def _cap(cluster: Any, share: float, start: int, end: int | None, **others: Any) -> Any:
    return PowerCap(_between(cluster, share), start, end, **others)


def _budget(cluster: Any, share: float, start: int, end: int, **others: Any) -> Any:
    """Return a budget for a period, as a share of what is used with all nodes busy."""
    return EnergyBudget.of(cluster, share, start, end, **others)


#: Limits of a machine, its jobs being submitted from ``a`` up to ``z`` [s].
LIMITS: dict[str, Callable[[Any, int, int], list[Any]]] = {
    "no-limits": lambda c, a, z: [],
    "cap": lambda c, a, z: [_cap(c, 0.4, a + (z - a) // 4, a + (z - a) // 2)],
    "low-cap": lambda c, a, z: [_cap(c, 0.1, a + (z - a) // 5, z)],
    "share-cap": lambda c, a, z: [PowerCap.of(c, 0.6, start=a, end=z + 1)],
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
        _budget(c, 0.8, a + (z - a) // 2 + 1, z + 2, shutdown=True, free_node_w=80),
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
    "8x2x8": find_cluster("8x2x8"),
    "6x1x4": find_cluster("6x1x4"),
    "5x2x6": Cluster(groups=(NodeGroup("n", 5, {"core": 12}, _NODE_W, sockets=2),)),
}
#: The same with a file system that jobs share; speedups of codes that use it are in READERS.
WITH_FILES: dict[str, Any] = {
    name: replace(SHARED[name], io_bandwidth_gb_s=gb_s)
    for name, gb_s in (("8x2x8", 0.5), ("6x1x4", 0.05), ("5x2x6", 2))
}


def _speedups(seed: int, mean: float, spread: float) -> Any:
    """Return generated speedups of the guard's codes."""
    generated = generate_speedups(len(CODES), mean, spread, seed)
    return Heatmap(CODES, generated.speedup, generated.alone)


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
    "measured": Heatmap(CODES, np.array(_MEASURED, dtype=float)),
}
READERS: dict[str, Any] = {
    "readers": replace(
        _speedups(5, 1.1, 0.2), io_share=[0.5, 0.1, 0, 0.9], io_demand_mb_s=[10, 50, 0, 2.5]
    ),
    "alike": replace(HEATMAPS["measured"], io_share=[0.25] * 4, io_demand_mb_s=[20] * 4),
}


class KnowingMore(PairRegression):
    """A regression that knows the instructions a cycle of each code."""

    def predict_one(self, x: Mapping[str, float]) -> float:
        """Return the prediction, with what else is known of the pair."""
        return super().predict_one(_with_ipc(x))

    def learn_one(self, x: Mapping[str, float], y: float) -> None:
        """Learn of the pair, with what else is known of it."""
        super().learn_one(_with_ipc(x), y)


def _with_ipc(x: Mapping[str, float]) -> dict[str, float]:
    pairs = (name.split("=") for name in x if "=" in name)
    return {**x, **{f"{role} ipc": CODES.index(code) / 2 for role, code in pairs}}


PAIRS: dict[str, Callable[[], Any]] = {
    "known": lambda: "known",
    "learned": lambda: "learned",
    "believed": lambda: HEATMAPS["spread"],
    "learner": lambda: LearnedSpeedups(CODES, KnowingMore()),
}


# --- Rules ----------------------------------------------------------------------------------------

#: Policies that have no name.
WEIGHTS: dict[str, Any] = {
    "weights": (0.1, -0.2, 0.0, 0.0, 0.0, 0.7),
    "weights-too": (-1.0, 1 / 3, 20.0, 0.5, -0.1, 0.0),
    "weights-wait": (0.0, 0.0, 1.0, 0.0, -600.0, 0.0),
    "mapping": {"area": -1.0, "wait": 50.0, "f1": -0.5},
    "mapping-unicef": {"unicef": 3.0, "expansion": 0.25, "f2": -1e-3},
    "mixed-usage": {"fairshare": 1.0, "wait": 1e-5},
    "mixed-energy": {"energy_fairshare": 0.5, "fairshare": 0.25, "requested": -1e-4},
    "pass-weights": {"fit": 0.5, "shortness": 1.0, "popularity": -0.25},
}
#: Orders that look at the state; that no name is left out a test says.
OF_STATE: dict[str, str] = {
    "by-free": "-(0.5-2.4*free)*log(processors)",
    "by-room": "(fits and leaves<0.25)*1e9+wait*(1-free_1h)-queued%3*area",
    "by-user": "-last_run*user_waiting-(mean_run-spread_run)*user_running-known_runs",
    "by-hour": "(hour%2<1)*wait-(weekday+1)*area*(behind>=0)",
    "by-size": "tanh(wait/60-4)-processors/machine_size*free",
}


def _network(inputs: Sequence[str], units: int) -> Network:
    """Return a network of these inputs whose numbers are a sequence that goes up and down."""
    n = len(inputs)
    waves = np.array([k * 37 % 64 - 32 for k in range((2 + n) * units + n)]) / 32
    skip, hidden, bias, output = np.split(waves, np.cumsum([n, n * units, units]))
    shaped = hidden.reshape(units, n)
    return Network(tuple(inputs), np.full(n, 3.0), np.full(n, 2.0), skip, shaped, bias, output)


#: Orders by networks.
NETWORKS: dict[str, Network] = {
    "network": _network([*(text for text, *_ in INPUTS), "user_running", "in_use(processors)"], 9),
    "network-too": _network(["log(requested)", "expansion", "free*log(wait+1)", "queue"], 4),
    "network-alone": _network(["area/100", "wait/10"], 0),
}


class Longest:
    """The longest run time of the user so far, whatever was predicted before."""

    def __init__(self) -> None:
        self.longest: dict[int, float] = {}

    def predict_one(self, x: Mapping[str, Any]) -> float:
        """Return a prediction [s]."""
        known = self.longest.get(x["user"], float(x["requested"]))
        return max(known, float(x.get("elapsed", 0)))

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        """Learn how long a job has run."""
        self.longest[x["user"]] = max(y, self.longest.get(x["user"], 0))


class Odd:
    """Predictions that are negative, no numbers, or far too long, in turns."""

    def __init__(self) -> None:
        self.ended = 0

    def predict_one(self, x: Mapping[str, Any]) -> float:
        """Return a prediction [s]."""
        return (-float(x["requested"]) / 2, float("nan"), 1e12, 0.0)[self.ended % 4]

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        """Count the jobs that have ended."""
        self.ended += 1


def _given(workload: Any, seed: int) -> Any:
    """Return a given prediction for each job: too short, right, too long, beyond the request."""
    factors = np.array([0, 1, 5, 10, 10, 20, 70])
    chosen = factors[np.random.default_rng(seed).integers(len(factors), size=len(workload))]
    return workload.run_time * chosen // 10


_QUANTILE = "regression:over=absolute,under=absolute,over_scale=0.2,under_scale=0.8"
_FEW = "regression:over=absolute,under=exponential,under_scale=0.001,l2=0,features=requested+ave2"
#: Estimates of run times that have no name; a function of the workload.
_ESTIMATES: dict[str, Callable[[Any], Any]] = {
    "quantile": lambda workload: f"{_QUANTILE},weight=wide,threshold=30",
    "few-features": lambda workload: f"{_FEW},weight=small,degree=1",
    "loss": lambda workload: Regression("absolute", "squared", weight="long", eta=100.0),
    "given": lambda workload: _given(workload, 1),
    "given-too": lambda workload: _given(workload, 2),
    "longest": lambda workload: Longest(),
    "odd": lambda workload: Odd(),
    "own-data-driven": lambda workload: DataDriven(),
}


def estimate_of(name: str, workload: Any) -> Any:
    """Return an estimate of run times."""
    return _ESTIMATES[name](workload) if name in _ESTIMATES else name


#: The rules of a scheduler, each with those of its values that have no name of the library.
_RULES: dict[str, Mapping[str, Any]] = {
    **{
        name: {} for name in ("backfill", "correction", "passes", "allocation", "power", "partners")
    },
    "policy": WEIGHTS | OF_STATE | NETWORKS,
    "backfill_order": WEIGHTS | OF_STATE | NETWORKS,
    "fair_share": {
        "usual": None,
        "for-ever": "half_life_s=inf",
        "day": "half_life_s=86400,damping=0.5",
        "minutes": "half_life_s=60",
        "users": FairShare(half_life_s=7200, shares={1: 2, 0: 0.5}),
        "by-period": "half_life_s=7200,formula=fair-tree,period_s=300",
        "groups": FairShare(half_life_s=36_000, accounts="group", shares={"group:1": 3}),
        "tree": FairShare(
            damping=2.0,
            shares={"physics": 3, 2: 5},
            accounts={0: "physics", 1: "physics", 2: "biology", "physics": "science"},
        ),
    },
    "threshold": {"none": None, "0": 0, "100": 100, "7200": 7200, "half-day": 43_200.5},
    "hold": {
        "0.2": 0.2,
        "both": {"share": 0.3, "from_s": 600, "factor": 20, "erode_s": 7200, "by": "both"},
    },
    "maintenance": {"whole": "30/90", "part": "30/90:processors=3"},
    "quota": {},
    "pairs_above": {"none": None, "0.9": 0.9, "1": 1, "1.1": 1.1},
}


def rules_of(row: Mapping[str, str], workload: Any) -> dict[str, Any]:
    """Return the rules in a row, as ``simulate`` takes them; "-" stands for one that is not given.

    Parameters
    ----------
    row : factor -> name of its value.
    workload : whose run times are estimated.
    """
    rules: dict[str, Any] = {}
    for name, given in row.items():
        if name in ("estimate", "policy_estimate", "candidate_estimate"):
            rules[name] = estimate_of(given, workload)
        elif name == "pair_estimate":
            rules[name] = PAIRS[given]()
        elif name in _RULES and given != "-":
            rules[name] = _RULES[name].get(given, given)
    return rules
