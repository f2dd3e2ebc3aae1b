"""Cases of more than one simulation: extracts, what is learned, batches, look-ahead, sweeps."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from guarding import library, machines, values, workloads
from guarding.matrix import Group, Row, cases_of, pairwise, product
from guarding.simulations import LIMITED_FACTORS, RULES, limited_machine, simulated


def groups() -> Iterator[Group]:
    """Yield all of them."""
    for group in (_extracts, _learned, _batches, _looking_ahead, _sweeps, _bills, _boards):
        yield from group()


# --- Extracts -------------------------------------------------------------------------------------

_MACHINES = ("pool", "few-cores", "mixed", "powered")
_SCHEDULERS = (
    "easy", "fcfs", "conservative", "easy-sjbf", "easy++", "saf", "wfp3", "fairshare", "fs+efs",
    "prb", "sjf-list",
)  # fmt: skip


def _extracts() -> Iterator[Group]:
    factors = {
        "kind": ("continued", "extract"),
        "machine": _MACHINES,
        "workload": ("users", "overruns", "queue", "resources", "resources-ties"),
        "before": (*_SCHEDULERS[:9],),
        "after": _SCHEDULERS,
        "passes": ("per-timestamp", "per-event"),
        "part": ("middle", "late", "window"),
        "correction": ("-", "incremental", "recursive-doubling", "kill"),
    }

    def excluded(row: Row) -> bool:
        nodes = row.get("machine") in machines.NODES
        plain = row.get("workload") in workloads.PLAIN
        pool = row.get("machine") in ("pool", "few-cores")
        units = row.get("workload", "users") not in workloads.PLAIN
        asked = row.get("after") in ("prb", "sjf-list")
        each = row.get("passes") == "per-event"
        return (nodes and plain) or (pool and units) or (each and (nodes or asked))

    yield cases_of("extract", factors, pairwise(factors, excluded, rounds=2), _extracted)


def _extracted(row: Row) -> dict[str, Any]:
    workload = workloads.plain(row["workload"])
    made = machines.POOLS.get(row["machine"])
    cluster = made(workload.processors) if made else machines.NODES[row["machine"]]
    rules = values.rules_of(row, ("passes", "correction"), workload)
    usual = {"cluster": cluster, **rules}
    before = library.simulate(workload, row["before"], **usual)
    submit = workload.submit_time
    place = {"middle": 0.5, "late": 0.9, "window": 0.3}[row["part"]]
    begin = max(int(submit[int(place * len(submit))]), int(submit[0]) + 1)
    end = int(submit[int(0.6 * len(submit))]) + 1 if row["part"] == "window" else None
    if row["kind"] == "continued":
        part = library.continued(before, begin, end)
    else:
        part = before.as_workload().extract(begin, end)
    initial = part.initial
    assert initial is not None
    facts = {"submit": part.submit_time, "wait": part.wait_time, "past": len(initial.past)}
    return {**facts, "running": initial.running, **simulated(part, row["after"], **usual)}


# --- What is learned ------------------------------------------------------------------------------


def _learned() -> Iterator[Group]:
    factors = {
        "estimate": tuple(name for name in values.ESTIMATES if name not in values.KNOWN),
        "rule": ("estimate", "policy_estimate"),
        "part": ("chained", "before"),
    }
    yield cases_of("learned", factors, product(factors), _going_on)


def _going_on(row: Row) -> dict[str, Any]:
    """Simulate the first half of a workload, then the second with what was learned in the first."""
    jobs = workloads.plain("users")
    half = len(jobs) // 2
    rules = {row["rule"]: values.ESTIMATES[row["estimate"]](jobs), "policy": "saf"}
    first, rest = jobs.take(slice(0, half)), jobs.take(slice(half, None))
    if row["part"] == "before":
        time = int(first.submit_time[-1])
        learned = library.learn_before(first, "easy-sjbf", time, **library.renamed(rules))
        return simulated(rest, "easy-sjbf", learned=learned, **rules)
    known = library.simulate(first, "easy-sjbf", **rules)
    again = simulated(rest, "easy-sjbf", learned=known.learned, **rules)
    return {"first": known.start, **again}


# --- Batches --------------------------------------------------------------------------------------


def _batches() -> Iterator[Group]:
    factors = {
        "features": ("six", "three", "all", "formulas"),
        "policy_estimate": ("requested", "clairvoyant", "user-ratio", "typical-ratio", "e-loss"),
        "estimate": ("requested", "ave2", "double-requested", "user-ratio", "quantile"),
        "correction": ("requested", "incremental", "recursive-doubling", "predicted-again"),
        "backfill": ("easy", "none"),
        "backfill_order": ("spf", "fcfs", "sjbf", "wfp3"),
        "passes": ("per-timestamp", "per-event"),
        "threshold": ("none", "100"),
        "threads": ("1", "all"),
        "vectors": ("shared", "own"),
        "machine": ("pool", "larger", "single-cores"),
    }

    def excluded(row: Row) -> bool:
        learned = row.get("estimate", "ave2") not in values.KNOWN
        return row.get("correction") == "predicted-again" and not learned

    yield cases_of("batch", factors, pairwise(factors, excluded, rounds=2), _batch)
    usual = {factor: known[0] for factor, known in factors.items()}
    for rule, given in _REFUSED.items():
        listed = {**factors, rule: (usual.get(rule, "-"), *given)}
        rows = ({**usual, rule: value} for value in given)
        yield cases_of("batch", listed, rows, _batch)
    grids = {
        "workload": ("ties", "lublin", "wide"),
        "metric": ("mean_bsld", "max_wait_s"),
        "points": ("5", "6"),
    }
    yield cases_of("cover", grids, product(grids), _covered)


#: What batches refuse, or refused.
_REFUSED = {
    "correction": ("kill", "next-second"),
    "backfill": ("conservative", "fill"),
    "backfill_order": ("fairshare",),
    "estimate": ("longest", "data-driven", "given"),
    "machine": ("off", "few-cores"),
    "allocation": ("best-fit", "contiguous", "half-socket"),
}
_FEATURES = {
    "six": ("processors", "requested", "wait", "ratio", "expansion", "area"),
    "three": ("area", "wait", "processors"),
    "all": ("processors", "requested", "wait", "ratio", "expansion", "area", "unicef", "f1", "f2",
            "f3", "f4"),
    "formulas": ("f1", "unicef", "wait", "f4"),
}  # fmt: skip


def _batch(row: Row) -> dict[str, Any]:
    slices = [workloads.spelt(seed, 40 + seed, 8, unit=60, users=3) for seed in (1, 2, 3)]
    rules = values.rules_of(row, RULES, slices[0])
    batch = library.BatchSimulator(
        slices,
        _FEATURES[row["features"]],
        library.Scheduler(**library.renamed(rules)),
        cluster=machines.POOLS[row["machine"]](8),
        tau=20,
    )
    rng = np.random.default_rng(5)
    shape = (6, 3) if row["vectors"] == "own" else (6,)
    weights = rng.integers(-3, 4, size=(*shape, len(batch.features))) / 8
    names = ("mean_bsld", "max_bsld", "rms_bsld", "mean_slowdown", "mean_wait_s", "max_wait_s",
             "mean_response_s", "max_response_s", "makespan_s", "utilization")  # fmt: skip
    metrics = [library.RENAMED.get(name, name) for name in names]
    threads = 1 if row["threads"] == "1" else None
    found = batch.run(weights, metrics, threads=threads)
    return {name: found[:, :, place] for place, name in enumerate(names)}


def _covered(row: Row) -> dict[str, Any]:
    jobs = workloads.plain(row["workload"])
    points = np.linspace(-1.0, 1.0, int(row["points"]))
    steps = np.arange(1 - len(points), len(points), 2)
    cube = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(-1, 3)
    cube //= np.maximum(np.gcd.reduce(cube, axis=1, keepdims=True), 1)
    vectors = cube / np.maximum(np.abs(cube).sum(axis=1, keepdims=True), 1)
    batch = library.BatchSimulator([jobs], ("processors", "requested", "wait"))
    values = batch.run(vectors, row["metric"], threads=1)[:, 0]
    shape = (len(points),) * 3
    return {"values": values.reshape(shape), "weights": vectors[values.argmin()], "points": points}


# --- Look-ahead -----------------------------------------------------------------------------------


def _looking_ahead() -> Iterator[Group]:
    factors = {
        "estimate": ("learned", "user-ratio", "requested", "clairvoyant"),
        "portfolio": ("pure", "own"),
        "workload": ("users", "ties", "overruns"),
        "rule": ("easy", "fcfs", "easy++", "per-event", "recursive-doubling"),
        "machine": ("pool", "single-cores"),
    }
    yield cases_of("lookahead", factors, pairwise(factors), _ahead)


def _ahead(row: Row) -> dict[str, Any]:
    own = ["f2", values.WEIGHTS["weights"], "saf", values.WEIGHTS["mapping"]]
    portfolio = {} if row["portfolio"] == "pure" else {"portfolio": own}
    jobs = workloads.plain(row["workload"])
    rules: dict[str, dict[str, Any]] = {
        "per-event": {"passes": "per-event"},
        "recursive-doubling": {"correction": "recursive-doubling", "estimate": "ave2"},
    }
    scheduler = None if row["rule"] in rules else row["rule"]
    agent = library.Lookahead(**portfolio, estimate=row["estimate"], tau=30)
    result = agent.run(
        jobs,
        scheduler,
        cluster=machines.POOLS[row["machine"]](jobs.processors),
        **library.renamed(rules.get(row["rule"], {})),
    )
    return library.facts_of(result)


# --- Sweeps ---------------------------------------------------------------------------------------

_EXPERIMENTS = {
    "pool": """
schedulers = ["easy", "saf", "conservative", { name = "late", scheduler = "saf", threshold = 3600 },
  { name = "own", policy = { area = -1, wait = 20 }, backfill_order = "spf" }]
seeds = [0, 1]
[[workloads]]
workload = "lublin:jobs=80,processors=32,load=1,seed={seed}"
""",
    "weeks": """
schedulers = ["easy++", "fairshare",
  { name = "f", scheduler = "fs+efs", fair_share = "half_life_s=900" }]
metrics = ["jobs", "mean_bsld", "max_wait_s", "energy_j"]
[[workloads]]
workload = "lublin:jobs=4000,processors=64,load=0.9,seed=1"
slices = "weeks"
""",
    "nodes": """
schedulers = ["easy", "conservative",
  { name = "best", scheduler = "easy", allocation = "best-fit" }]
[[workloads]]
workload = "eurora:jobs=60,load=1.3,seed=1"
cluster = "eurora"
""",
    "dispatcher": """
schedulers = ["prb"]
[[workloads]]
workload = "eurora:jobs=20,load=1.3,seed=1"
cluster = "eurora"
""",
    "shared": """
schedulers = ["easy", "easy-co", "filler-co",
  { name = "l", scheduler = "sjf-co", pair_estimate = "learned" }]
speedups = ["generated:codes=4,mean=1.1", "generated:codes=4,mean=1.2"]
shuffles = 2
[[workloads]]
workload = "codes:speedups=generated:codes=4,processes=24,jobs=40,seed=0"
cluster = "8x2x8"
[[workloads]]
workload = "lublin:jobs=40,processors=64,load=0.9"
cluster = "8x2x8"
codes = 7
""",
}


def _sweeps() -> Iterator[Group]:
    factors = {"experiment": ("", *_EXPERIMENTS)}
    rows = ({"experiment": name} for name in _EXPERIMENTS)
    yield cases_of("sweep", factors, rows, _swept)


def _swept(row: Row) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file, made = Path(folder) / "guarded.toml", Path(folder) / "guarded.sweep"
        file.write_text(_EXPERIMENTS[row["experiment"]].lstrip())
        library.run_experiment(file, made, executor="serial")
        table = library.read_table(made)
        return {"rows": len(table), "table": table}


# --- Carbon and prices ----------------------------------------------------------------------------


def _bills() -> Iterator[Group]:
    factors = {key: LIMITED_FACTORS[key] for key in ("machine", "workload", "limits", "power")}
    factors |= {"shutdown": ("never", "40"), "allocation": ("first-fit",)}
    chosen = {"limits": ("no-limits", "cap", "budget-off"), "power": ("none", "mix")}
    factors |= chosen
    yield cases_of("bill", factors, pairwise(factors), _billed)


def _billed(row: Row) -> dict[str, Any]:
    workload, cluster, limits = limited_machine(row)
    result = library.simulate(workload, cluster=cluster, limits=limits, power=row["power"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "grid.csv"
        file.write_text("time_s,carbon_g_per_kwh\n0,56.5\n30000,61\n60000,20.25\n")
        found = library.bill(result, library.read_signal(file, repeat="day"))
    return {"total": found.total, "overhead": found.overhead, "by_user": found.by_user}


# --- Leaderboards ---------------------------------------------------------------------------------

_CODES = "codes:speedups=generated:codes=16,jobs=160,processes=96,processors=768,seed=0"
_BOARDS: dict[str, dict[str, Any]] = {
    "pool": {"policies": ["wfp3", "easy++", "0.1,-0.2,0,0,0,0.7"]},
    "none": {"policies": ["sjf-list"], "backfill": "none"},
    "learns": {"policies": ["saf-typical", "easy-e-loss"], "estimate": "user-ratio"},
    "ordering": {"policies": ["sexp", "lookahead"], "env": "MixedPolicy"},
    "caps": {"policies": ["dvfs+saf", "mix"], "env": "PowerCap"},
    "budgets": {"policies": ["reduce-pc+saf", "energy-bud"], "env": "EnergyBudget"},
    "pairs": {"policies": ["greedy-pairs", "popularity-co"], "env": "CoSchedule"},
}


def _boards() -> Iterator[Group]:
    factors = {"board": ("", *_BOARDS)}
    rows = ({"board": name} for name in _BOARDS)
    yield cases_of("evaluate", factors, rows, _evaluated)


def _evaluated(row: Row) -> dict[str, Any]:
    given = dict(_BOARDS[row["board"]])
    if "env" in given:
        given["env"] = library.ENVIRONMENTS[given["env"]]
    workload = "lublin:jobs=240,processors=32,seed=0,load=1"
    if row["board"] == "pairs":
        workload = _CODES
    board = library.evaluate(
        given.pop("policies"), workload, jobs=30, n=2, budget=15, resamples=50,
        **library.renamed(given),
    )  # fmt: skip
    table = board.table
    return {"names": json.dumps([str(name) for name in table.index]), "table": table}
