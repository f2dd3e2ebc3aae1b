"""Each named scheduler and each value of each rule, alone, on a machine of each kind.

Much of it is refused. That is hashed too: what is refused now and runs later is told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from guarding import library, machines, values, workloads
from guarding.matrix import Group, Row, cases_of
from guarding.simulations import RULES, simulated

NAMES = (
    "fcfs", "easy", "conservative", "easy-sjbf", "easy++", "easy-e-loss", "saf-typical",
    "saf-typical-80h", "saf-typical-20h-hold", "aged", "aged-safe",
    *values.PURE[1:], *values.BY_USAGE,
    "easy-co", "sjf-co", "ljf-co", "largest-co", "popularity-co", "filler-co", "sjf-filler-co",
    "popularity-filler-co", "easy-spread",
    "fcfs-list", "sjf-list", "ljf-list", "prb", "sdprb",
)  # fmt: skip

Arguments = dict[str, Any]


def _plain(workload: str, machine: str = "pool") -> tuple[Any, Arguments]:
    jobs = workloads.plain(workload)
    return jobs, {"cluster": machines.POOLS[machine](jobs.processors)}


def _units(workload: str, machine: str, **others: Any) -> tuple[Any, Arguments]:
    return workloads.plain(workload), {"cluster": machines.NODES[machine], **others}


def _limits(workload: str, machine: str, limits: str) -> tuple[Any, Arguments]:
    cluster = machines.LIMITED[machine]
    jobs = workloads.limited(workload, cluster.processors)
    return jobs, {"cluster": cluster, "limits": machines.limits_of(limits, cluster, jobs)}


def _off_nodes() -> tuple[Any, Arguments]:
    cluster = machines.switching(machines.LIMITED["slow"], "30")
    return workloads.limited("gaps", cluster.processors), {"cluster": cluster}


def _shared(workload: str, machine: str) -> tuple[Any, Arguments]:
    cluster = machines.SHARED[machine]
    jobs = workloads.coded(workload, cluster.processors)
    return jobs, {"cluster": cluster, "speedups": machines.HEATMAPS["measured"]}


def _extract() -> tuple[Any, Arguments]:
    trace = library.simulate(workloads.plain("users"), "easy").as_workload()
    return trace.extract(_middle(trace)), {}


def _middle(workload: Any) -> int:
    """Return a time at which half of the jobs have been submitted [s]."""
    return int(workload.submit_time[len(workload) // 2])


def _none() -> tuple[Any, Arguments]:
    return workloads.plain("ties").take(slice(0, 0)), {}


#: Jobs and machine of each kind.
SETTINGS: dict[str, Callable[[], tuple[Any, Arguments]]] = {
    "pool": lambda: _plain("users"),
    "pool-ties": lambda: _plain("ties-too"),
    "no-jobs": _none,
    "off": lambda: _plain("overruns", "off"),
    "single-cores": lambda: _plain("wide", "single-cores"),
    "units": lambda: _units("resources", "mixed"),
    "units-powered": lambda: _units("cores-ties", "powered"),
    "in-a-row": lambda: _units("cores", "equal", allocation="contiguous"),
    "no-limits": lambda: _limits("minutes", "slow", "no-limits"),
    "caps": lambda: _limits("minutes", "curie", "caps"),
    "budgets": lambda: _limits("measured", "taurus", "budgets"),
    "off-nodes": _off_nodes,
    "shared": lambda: _shared("spelt", "8x2x8"),
    "extract": _extract,
}

#: Each value that is not the usual one, with what else it needs.
ALONE: dict[str, tuple[str, ...]] = {
    "policy": ("lcfs", "weights", "weights-too", "mapping", "pass-weights", *values.MIXED_USAGE),
    "backfill": ("none", "until-shadow", "depth:3", "slurm", "conservative", "fill"),
    "backfill_order": ("sjbf", "laf", "wfp3", "weights", "fairshare", "filler"),
    "estimate": tuple(values.ESTIMATES)[1:],
    "correction": ("incremental", "recursive-doubling", "predicted-again", "kill", "next-second"),
    "threshold": tuple(values.THRESHOLDS)[1:],
    "hold": tuple(values.HOLDS)[1:],
    "passes": ("per-event",),
    "policy_estimate": ("clairvoyant", "given-too", *list(values.ESTIMATES)[3:10], "longest"),
    "allocation": (
        "first-fit", "best-fit", "worst-fit", "random", "random:7", "balanced", "weighted",
        "hybrid", "contiguous",
        "compact", "spread", "half-socket", "part:3",
    ),
    "fair_share": tuple(values.SHARES)[1:],
    "power": ("none", "shut", "dvfs", "mix", "powercap", "reduce-pc", "energy-bud"),
    "partners": ("best", "first"),
    "pairs_above": ("1",),
    "pair_estimate": ("learned", "believed"),
}  # fmt: skip
_BESIDE: dict[str, Row] = {
    "correction": {"estimate": "given"},
    "predicted-again": {"estimate": "user-ratio"},
    "fair_share": {"policy": "fairshare", "backfill_order": "energy-fairshare"},
    "policy_estimate": {"policy": "saf", "backfill_order": "spf"},
    "threshold": {"policy": "laf"},
    "partners": {"allocation": "half-socket"},
    "pairs_above": {"allocation": "half-socket"},
    "pair_estimate": {"allocation": "half-socket"},
}


def groups() -> Iterator[Group]:
    """Yield each named scheduler, and each rule alone, on all machines."""
    named = {"setting": tuple(SETTINGS), "scheduler": NAMES}
    rows = ({"setting": s, "scheduler": name} for s in SETTINGS for name in NAMES)
    factors = {key: ("", *names) for key, names in named.items()}  # nothing is usual
    yield cases_of("named", factors, rows, _named)
    for rule, given in ALONE.items():
        for value in given:
            rows = ({"setting": setting, rule: value} for setting in SETTINGS)
            factors = {"setting": ("", *SETTINGS), rule: ("", *given)}
            yield cases_of("rule", factors, rows, _alone)


def _named(row: Row) -> dict[str, Any]:
    workload, arguments = SETTINGS[row["setting"]]()
    return simulated(workload, row["scheduler"], **arguments)


def _alone(row: Row) -> dict[str, Any]:
    workload, arguments = SETTINGS[row["setting"]]()
    rule, value = next((key, given) for key, given in row.items() if key != "setting")
    beside = _BESIDE.get(value) or _BESIDE.get(rule, {})
    rules = values.rules_of({**beside, rule: value}, RULES, workload)
    if rule == "pair_estimate":
        rules[rule] = machines.PAIRS[value]()
    return simulated(workload, **{**arguments, **rules})
