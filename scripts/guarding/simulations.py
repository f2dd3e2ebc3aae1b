"""Single simulations: rules on machines of each kind, named schedulers, dispatchers, models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guarding import inputs
from guarding.facts import facts_of
from guarding.inputs import rules_of
from hpcgym import load_workload, simulate

Row = dict[str, str]
Arguments = dict[str, Any]


def simulated(workload: Any, scheduler: Any = "easy", **arguments: Any) -> dict[str, Any]:
    """Return what is hashed of a simulation."""
    return facts_of(simulate(workload, scheduler, **arguments))


def plain_on(row: Row) -> tuple[Any, Any]:
    """Return jobs, and the pool or the nodes for them."""
    workload = inputs.plain(row["workload"])
    pool = inputs.POOLS.get(row["machine"])
    return workload, pool(workload.processors) if pool else inputs.NODES[row["machine"]]


def limited_machine(row: Row) -> tuple[Any, Any, list[Any]]:
    """Return workload, machine and limits of a row."""
    cluster = inputs.switching(inputs.LIMITED[row["machine"]], row["shutdown"])
    workload = inputs.limited(row["workload"], cluster.processors)
    return workload, cluster, inputs.limits_of(row["limits"], cluster, workload)


def _plain(row: Row) -> dict[str, Any]:
    workload, cluster = plain_on(row)
    return simulated(workload, cluster=cluster, **rules_of(row, workload))


def _generated(row: Row) -> dict[str, Any]:
    source = row["workload"]
    cluster = "eurora" if source.startswith("eurora") else "kit-forhlr-ii"
    allocation = row["allocation"]
    return simulated(
        load_workload(source), row["scheduler"], cluster=cluster, allocation=allocation
    )


def _failing(row: Row) -> dict[str, Any]:
    workload, cluster = plain_on(row)
    failures = inputs.FAILURES[row["failures"]](cluster)
    rules = rules_of(row, workload)
    result: Any = simulate(workload, "easy", cluster=cluster, failures=failures, **rules)
    return {**facts_of(result), "lost": list(result.lost[1:])}


def _limited(row: Row) -> dict[str, Any]:
    workload, cluster, limits = limited_machine(row)
    return simulated(workload, cluster=cluster, limits=limits, **rules_of(row, workload))


def _shared(row: Row) -> dict[str, Any]:
    files = row["speedups"] in inputs.READERS
    cluster = (inputs.WITH_FILES if files else inputs.SHARED)[row["machine"]]
    speedups = (inputs.READERS if files else inputs.HEATMAPS)[row["speedups"]]
    workload = inputs.coded(row["workload"], cluster.processors)
    return simulated(workload, cluster=cluster, speedups=speedups, **rules_of(row, workload))


# --- Named schedulers, and each rule alone, on a machine of each kind -----------------------------


def _extract() -> tuple[Any, Arguments]:
    trace = simulate(inputs.plain("users"), "easy").as_workload()
    return trace.extract(int(trace.submit_time[len(trace) // 2])), {}


def _pool(workload: str, machine: str) -> tuple[Any, Arguments]:
    jobs, cluster = plain_on({"workload": workload, "machine": machine})
    return jobs, {"cluster": cluster}


def _under(workload: str, machine: str, limits: str, shutdown: str = "never") -> Any:
    row = {"workload": workload, "machine": machine, "limits": limits, "shutdown": shutdown}
    jobs, cluster, kept = limited_machine(row)
    return jobs, {"cluster": cluster, "limits": kept}


def _coded(workload: str, machine: str) -> tuple[Any, Arguments]:
    cluster = inputs.SHARED[machine]
    jobs = inputs.coded(workload, cluster.processors)
    return jobs, {"cluster": cluster, "speedups": inputs.HEATMAPS["measured"]}


def _in_a_row() -> tuple[Any, Arguments]:
    jobs, given = _pool("cores", "equal")
    return jobs, {**given, "allocation": "contiguous"}


def _off_nodes() -> tuple[Any, Arguments]:
    jobs, given = _under("gaps", "slow", "no-limits", "30")
    return jobs, {"cluster": given["cluster"]}


#: Jobs and machine of each kind.
_SETTINGS: dict[str, Callable[[], tuple[Any, Arguments]]] = {
    "pool": lambda: _pool("users", "pool"),
    "pool-ties": lambda: _pool("ties-too", "pool"),
    "no-jobs": lambda: (inputs.plain("ties").take(slice(0, 0)), {}),
    "off": lambda: _pool("overruns", "off"),
    "single-cores": lambda: _pool("wide", "single-cores"),
    "units": lambda: _pool("resources", "mixed"),
    "units-powered": lambda: _pool("cores-ties", "powered"),
    "in-a-row": _in_a_row,
    "no-limits": lambda: _under("minutes", "slow", "no-limits"),
    "caps": lambda: _under("minutes", "curie", "caps"),
    "budgets": lambda: _under("measured", "taurus", "budgets"),
    "off-nodes": _off_nodes,
    "shared": lambda: _coded("spelt", "8x2x8"),
    "extract": _extract,
}
#: What else a rule, or a value of one, needs.
_BESIDE: dict[str, Row] = {
    "correction": {"estimate": "given"},
    "predicted-again": {"estimate": "user-ratio"},
    "fair_share": {"policy": "fairshare", "backfill_order": "energy-fairshare"},
    "candidate_estimate": {"relax": "3000"},
    "policy_estimate": {"policy": "saf", "backfill_order": "spf"},
    "threshold": {"policy": "laf"},
    "partners": {"allocation": "half-socket"},
    "pairs_above": {"allocation": "half-socket"},
    "pair_estimate": {"allocation": "half-socket"},
}


def _named(row: Row) -> dict[str, Any]:
    workload, arguments = _SETTINGS[row["setting"]]()
    return simulated(workload, row["scheduler"], **arguments)


def _alone(row: Row) -> dict[str, Any]:
    workload, arguments = _SETTINGS[row["setting"]]()
    (rule,) = {*row} - {"setting"}
    beside = _BESIDE.get(row[rule]) or _BESIDE.get(rule, {})
    rules = rules_of({**beside, rule: row[rule]}, workload)
    return simulated(workload, **{**arguments, **rules})


# --- Dispatchers ----------------------------------------------------------------------------------


def small_first(view: Any) -> Any:
    """Start the least expected core seconds first; nobody waits for more than an hour."""
    area = view.duration * view.units * view.per_unit[:, 0]
    order = sorted(range(len(area)), key=lambda place: (view.wait[place] < 3600, area[place]))
    return view.in_order(order)


def planned(view: Any) -> list[int]:
    """Start what a plan by submission starts now."""
    plan = view.plan(list(range(len(view.job))))
    return [place for place, start in enumerate(plan.start.tolist()) if start <= view.time]


def on_last_nodes(view: Any) -> list[Any]:
    """Start the first job that fits, on the nodes of the highest numbers."""
    for place, fits in enumerate(view.fits().tolist()):
        if fits:
            left, nodes = int(view.units[place]), []
            for node in reversed(range(len(view.free))):
                demand = view.per_unit[place]
                room = int((view.free[node][demand > 0] // demand[demand > 0]).min())
                nodes += [node] * min(room, left)
                left -= min(room, left)
            return [(place, nodes)]
    return []


_OWN = {"small-first": small_first, "planned": planned, "on-last-nodes": on_last_nodes}


def _dispatched(row: Row) -> dict[str, Any]:
    workload = inputs.plain(row["workload"])
    cluster = inputs.NODES.get(row["machine"])
    dispatcher: Any = _OWN.get(row["dispatcher"], row["dispatcher"])
    return simulated(workload, dispatcher, cluster=cluster, **rules_of(row, workload))


def _solved(row: Row) -> dict[str, Any]:
    """Simulate a dispatcher that solves a model, with work that is counted and so repeats."""
    name = "cores" if row["machine"] == "equal" else "resources"
    workload = inputs.plain(name).take(slice(0, 16))
    cluster = inputs.NODES[row["machine"]]
    return simulated(workload, row["dispatcher"], cluster=cluster, estimate="clairvoyant")


GROUPS: dict[str, Callable[[Row], Any]] = {
    "pool": _plain,
    "units": _plain,
    "generated": _generated,
    "failing": _failing,
    "limited": _limited,
    "shared": _shared,
    "shared-files": _shared,
    "dispatcher": _dispatched,
    "model": _solved,
    "named": _named,
    "rule": _alone,
}
