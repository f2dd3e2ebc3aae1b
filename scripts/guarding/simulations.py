"""Cases of single simulations: rules on machines of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from guarding import library, machines, values, workloads
from guarding.matrix import Group, Row, cases_of, pairwise, product

POLICIES = (*values.PURE, *values.BY_USAGE, *list(values.WEIGHTS)[:-1])
SOME_POLICIES = (
    "fcfs", "lcfs", "spf", "saf", "lqf", "sexp", "wfp3", "unicef", "f1", "weights", "mapping",
    "fairshare", "mixed-usage",
)  # fmt: skip
ORDERS = ("fcfs", "sjbf", "spf", "laf", "lexp", "wfp3", "f3", "weights-too")
BACKFILL = ("easy", "none", "conservative")
CORRECTIONS = ("requested", "incremental", "recursive-doubling", "predicted-again", "kill")
POLICY_ESTIMATES = (
    "requested", "clairvoyant", "given-too", "ave2", "user-ratio", "typical-ratio", "e-loss",
    "longest",
)  # fmt: skip
RULES = (
    "policy", "backfill", "backfill_order", "estimate", "correction", "threshold", "hold", "passes",
    "policy_estimate", "allocation", "fair_share", "power",
    "partners", "pairs_above",
)  # fmt: skip


def groups() -> Iterator[Group]:
    """Yield all cases of single simulations."""
    for group in (_pools, _units, _failing, _limited, _shared, _dispatchers):
        yield from group()


def simulated(workload: Any, scheduler: Any = "easy", **arguments: Any) -> dict[str, Any]:
    """Return what is hashed of a simulation."""
    return library.facts_of(library.simulate(workload, scheduler, **arguments))


def _looks_at_usage(row: Row) -> bool:
    orders = row.get("backfill", "easy") == "easy" and row.get("backfill_order") in values.USAGE
    return row.get("policy") in values.USAGE or orders


def apart(row: Row) -> bool:
    """Tell whether the rules of a row do not go together, whatever the machine."""
    estimate = row.get("estimate", "requested")
    if row.get("correction") == "predicted-again" and estimate in values.KNOWN:
        return True
    learned = estimate in values.LEARNED or row.get("policy_estimate") in POLICY_ESTIMATES[3:]
    return learned and _looks_at_usage(row)


# --- Pools of processors --------------------------------------------------------------------------


def _pools() -> Iterator[Group]:
    factors = {
        "workload": tuple(workloads.PLAIN),
        "machine": tuple(machines.POOLS),
        "policy": POLICIES,
        "backfill": BACKFILL,
        "backfill_order": (*ORDERS, "fairshare", "fs+efs"),
        "estimate": tuple(values.ESTIMATES),
        "correction": CORRECTIONS,
        "threshold": tuple(values.THRESHOLDS),
        "passes": ("per-timestamp", "per-event"),
        "policy_estimate": POLICY_ESTIMATES,
        "fair_share": tuple(values.SHARES),
        "allocation": ("first-fit", "best-fit", "random:3"),
    }

    def excluded(row: Row) -> bool:
        machine = row.get("machine", "pool")
        off = machine.startswith("off")
        strict = row.get("passes") == "per-event" or row.get("backfill") == "conservative"
        nodes = machine in ("single-cores", "few-cores")
        filled = row.get("allocation", "first-fit") != "first-fit"
        return apart(row) or (off and strict) or (filled and "machine" in row and not nodes)

    yield cases_of("pool", factors, pairwise(factors, excluded), _on_pool)


def _on_pool(row: Row) -> dict[str, Any]:
    workload = workloads.plain(row["workload"])
    cluster = machines.POOLS[row["machine"]](workload.processors)
    return simulated(workload, cluster=cluster, **values.rules_of(row, RULES, workload))


# --- Nodes ----------------------------------------------------------------------------------------


def _units() -> Iterator[Group]:
    factors = {
        "workload": tuple(workloads.UNITS),
        "machine": tuple(machines.NODES),
        "allocation": ("first-fit", "best-fit", "worst-fit", "random", "random:7"),
        "policy": SOME_POLICIES,
        "backfill": BACKFILL,
        "backfill_order": (*ORDERS, "fs+efs"),
        "estimate": tuple(values.ESTIMATES),
        "correction": CORRECTIONS,
        "threshold": tuple(values.THRESHOLDS),
        "policy_estimate": POLICY_ESTIMATES,
        "fair_share": ("usual", "day", "groups"),
    }

    def excluded(row: Row) -> bool:
        resources = row.get("workload", "").startswith("resources")
        return apart(row) or (resources and row.get("machine") == "equal")

    yield cases_of("units", factors, pairwise(factors, excluded), _on_nodes)
    generated = {
        "workload": ("eurora:jobs=250,load=2,seed=1", "kit:jobs=60,load=1.2,seed=2"),
        "scheduler": ("easy", "conservative", "saf", "sdprb", "prb", "easy++"),
        "allocation": ("first-fit", "best-fit", "worst-fit"),
    }
    yield cases_of("generated", generated, product(generated), _generated)


def _on_nodes(row: Row) -> dict[str, Any]:
    workload = workloads.plain(row["workload"])
    cluster = machines.NODES[row["machine"]]
    return simulated(workload, cluster=cluster, **values.rules_of(row, RULES, workload))


def _generated(row: Row) -> dict[str, Any]:
    source = row["workload"]
    cluster = "eurora" if source.startswith("eurora") else "kit-forhlr-ii"
    allocation = row["allocation"]
    return simulated(library.load(source), row["scheduler"], cluster=cluster, allocation=allocation)


def _failing() -> Iterator[Group]:
    factors = {
        "workload": tuple(workloads.UNITS),
        "machine": tuple(machines.NODES),
        "failures": tuple(machines.FAILURES),
        "allocation": ("first-fit", "best-fit", "worst-fit", "random:7"),
        "policy": [policy for policy in SOME_POLICIES if policy not in values.BY_USAGE],
        "backfill": ("easy", "none", "conservative"),
        "backfill_order": ORDERS,
        "estimate": ("requested", "clairvoyant", "given", "ave2", "e-loss"),
        "correction": CORRECTIONS,
        "threshold": tuple(values.THRESHOLDS),
    }

    def excluded(row: Row) -> bool:
        resources = row.get("workload", "").startswith("resources")
        return apart(row) or (resources and row.get("machine") == "equal")

    yield cases_of("failing", factors, pairwise(factors, excluded), _on_failing_nodes)


def _on_failing_nodes(row: Row) -> dict[str, Any]:
    workload = workloads.plain(row["workload"])
    cluster = machines.NODES[row["machine"]]
    failures = machines.FAILURES[row["failures"]](cluster)
    rules = values.rules_of(row, RULES, workload)
    result = library.simulate(workload, "easy", cluster=cluster, failures=failures, **rules)
    return {**library.facts_of(result), "lost": list(result.lost[1:])}


# --- Limits of power and energy -------------------------------------------------------------------

LIMITED_FACTORS = {
    "workload": tuple(workloads.LIMITED),
    "machine": tuple(machines.LIMITED),
    "limits": tuple(machines.LIMITS),
    "power": ("none", "shut", "dvfs", "mix", "powercap", "reduce-pc", "energy-bud"),
    "shutdown": ("never", "0", "40"),
    "allocation": ("first-fit", "contiguous"),
}


def _limited() -> Iterator[Group]:
    factors = {
        **LIMITED_FACTORS,
        "policy": ("fcfs", "lcfs", "spf", "saf", "lqf", "sexp", "wfp3", "f1", "weights"),
        "backfill": ("easy", "none"),
        "backfill_order": ORDERS[:5],
        "estimate": (
            "requested", "clairvoyant", "given", "ave2", "user-ratio", "typical-ratio", "e-loss",
            "longest",
        ),
        "correction": CORRECTIONS,
        "threshold": ("none", "0", "100", "7200"),
        "policy_estimate": ("requested", "clairvoyant", "user-ratio"),
    }  # fmt: skip

    def excluded(row: Row) -> bool:
        # under a cap without end the widest job could never start
        for_ever = row.get("limits") == "cap-for-ever" and row.get("workload", "halves") != "halves"
        return for_ever or apart(row)

    yield cases_of("limited", factors, pairwise(factors, excluded, rounds=3), _under_limits)


def limited_machine(row: Row) -> tuple[Any, Any, list[Any]]:
    """Return workload, machine and limits of a row."""
    cluster = machines.switching(machines.LIMITED[row["machine"]], row["shutdown"])
    workload = workloads.limited(row["workload"], cluster.processors)
    return workload, cluster, machines.limits_of(row["limits"], cluster, workload)


def _under_limits(row: Row) -> dict[str, Any]:
    workload, cluster, limits = limited_machine(row)
    rules = values.rules_of(row, RULES, workload)
    return simulated(workload, cluster=cluster, limits=limits, **rules)


# --- Nodes that jobs share ------------------------------------------------------------------------


def _shared() -> Iterator[Group]:
    factors = {
        "workload": tuple(workloads.CODED),
        "machine": tuple(machines.SHARED),
        "speedups": tuple(machines.HEATMAPS),
        "allocation": ("half-socket", "compact", "spread", "part:2", "part:3", "part:4"),
        "partners": ("best", "fill", "first"),
        "pairs_above": ("none", "0.9", "1", "1.1"),
        "pair_estimate": tuple(machines.PAIRS),
        "policy": (
            "fcfs", "sjf", "lpf", "lqf", "saf", "sexp", "wfp3", "weights", *values.BY_PASS,
            "pass-weights",
        ),
        "backfill": ("easy", "none", "fill", "conservative"),
        "backfill_order": ORDERS[:5],
        "estimate": ("requested", "double-requested", "clairvoyant"),
        "correction": ("requested", "incremental", "recursive-doubling", "kill"),
        "threshold": ("none", "0", "7200"),
    }  # fmt: skip

    def excluded(row: Row) -> bool:
        by_pass = row.get("policy") in (*values.BY_PASS, "pass-weights")
        alone = row.get("allocation", "compact") in ("compact", "spread")
        parts = row.get("allocation", "part:2").removeprefix("part:")
        cores = {"6x1x4": 4, "5x2x6": 6}.get(row.get("machine", ""), 8)
        return (
            (row.get("backfill") == "conservative" and "allocation" in row and parts != "compact")
            or (by_pass and row.get("threshold", "none") != "none")
            or (by_pass and row.get("backfill") == "conservative")
            or (alone and row.get("pairs_above", "none") != "none" and "allocation" in row)
            or (parts.isdigit() and int(parts) > cores)
        )

    yield cases_of("shared", factors, pairwise(factors, excluded, rounds=3), _sharing)
    factors |= {"machine": tuple(machines.WITH_FILES), "speedups": tuple(machines.READERS)}
    yield cases_of("shared-files", factors, pairwise(factors, excluded), _sharing_files)


def _sharing(row: Row) -> dict[str, Any]:
    return _shared_on(machines.SHARED, machines.HEATMAPS, row)


def _sharing_files(row: Row) -> dict[str, Any]:
    return _shared_on(machines.WITH_FILES, machines.READERS, row)


def _shared_on(
    clusters: Mapping[str, Any], heatmaps: Mapping[str, Any], row: Row
) -> dict[str, Any]:
    cluster = clusters[row["machine"]]
    workload = workloads.coded(row["workload"], cluster.processors)
    rules = values.rules_of(row, RULES, workload)
    pairs = machines.PAIRS[row["pair_estimate"]]()
    speedups = heatmaps[row["speedups"]]
    return simulated(workload, cluster=cluster, speedups=speedups, pair_estimate=pairs, **rules)


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


MODELS = (
    "cph-0", "cph-1", "cph-2", "cph-3", "cp-0", "cp-1", "cp-2", "cp-3", "hcp19", "pcp19", "pcp20"
)  # fmt: skip
OWN: dict[str, Callable[[Any], Any]] = {
    "small-first": small_first,
    "planned": planned,
    "on-last-nodes": on_last_nodes,
}


def _dispatchers() -> Iterator[Group]:
    lists = ("fcfs-list", "sjf-list", "ljf-list", "prb", "sdprb")
    factors = {
        "dispatcher": (*lists, *OWN),
        "workload": (*workloads.UNITS, "users", "overruns"),
        "machine": (*machines.NODES, "pool"),
        "allocation": ("first-fit", "best-fit", "worst-fit", "random"),
        "estimate": tuple(values.ESTIMATES),
        "correction": ("-", *CORRECTIONS, "next-second"),
    }

    def excluded(row: Row) -> bool:
        workload, machine = row.get("workload", ""), row.get("machine")
        plain = workload in workloads.PLAIN
        pool, nodes = machine == "pool", machine in machines.NODES
        return (
            apart(row)
            or (workload.startswith("resources") and machine == "equal")
            or (plain and nodes)
            or (pool and row.get("allocation", "first-fit") != "first-fit")
        )

    yield cases_of("dispatcher", factors, pairwise(factors, excluded), _dispatched)
    models = {
        "dispatcher": MODELS,
        "machine": ("mixed", "equal"),
    }
    yield cases_of("model", models, product(models), _solved)


def _dispatched(row: Row) -> dict[str, Any]:
    workload = workloads.plain(row["workload"])
    cluster = machines.NODES.get(row["machine"])
    rules = values.rules_of(row, ("allocation", "estimate", "correction"), workload)
    return simulated(
        workload, OWN.get(row["dispatcher"], row["dispatcher"]), cluster=cluster, **rules
    )


def _solved(row: Row) -> dict[str, Any]:
    """Simulate a dispatcher that solves a model, with work that is counted and so repeats."""
    name = "cores" if row["machine"] == "equal" else "resources"
    workload = workloads.plain(name).take(slice(0, 16))
    cluster = machines.NODES[row["machine"]]
    return simulated(workload, row["dispatcher"], cluster=cluster, estimate="clairvoyant")
