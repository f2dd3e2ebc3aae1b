"""Cases of more than one simulation: extracts, what is learned, batches, look-ahead, sweeps."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from guarding import inputs
from guarding.facts import facts_of
from guarding.simulations import Row, limited_machine, plain_on, simulated
from hpcgym import continued, simulate
from hpcgym.agents.lookahead import Lookahead
from hpcgym.schedule.signals import bill, read_signal
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.simulation.run import learn_before
from hpcgym.study import evaluate, read_table, run_experiment


def _extracted(row: Row) -> dict[str, Any]:
    workload, cluster = plain_on(row)
    usual = {"cluster": cluster, **inputs.rules_of(row, workload)}
    before = simulate(workload, row["before"], **usual)
    submit = workload.submit_time
    place = {"middle": 0.5, "late": 0.9, "window": 0.3}[row["part"]]
    begin = max(int(submit[int(place * len(submit))]), int(submit[0]) + 1)
    end = int(submit[int(0.6 * len(submit))]) + 1 if row["part"] == "window" else None
    if row["kind"] == "continued":
        part = continued(before, begin, end)
    else:
        part = before.as_workload().extract(begin, end)
    initial = part.initial
    assert initial is not None
    facts = {"submit": part.submit_time, "wait": part.wait_time, "past": len(initial.past)}
    return {**facts, "running": initial.running, **simulated(part, row["after"], **usual)}


# --- What is learned ------------------------------------------------------------------------------


def _going_on(row: Row) -> dict[str, Any]:
    """Simulate the first half of a workload, then the second with what was learned in the first."""
    jobs = inputs.plain("users")
    half = len(jobs) // 2
    rules = {row["rule"]: inputs.estimate_of(row["estimate"], jobs), "policy": "saf"}
    first, rest = jobs.take(slice(0, half)), jobs.take(slice(half, None))
    if row["part"] == "before":
        time = int(first.submit_time[-1])
        learned = learn_before(first, "easy-sjbf", time, **rules)
        return simulated(rest, "easy-sjbf", learned=learned, **rules)
    known = simulate(first, "easy-sjbf", **rules)
    again = simulated(rest, "easy-sjbf", learned=known.learned, **rules)
    return {"first": known.start, **again}


# --- Batches --------------------------------------------------------------------------------------


_FEATURES = {
    "six": ("processors", "requested", "wait", "ratio", "expansion", "area"),
    "three": ("area", "wait", "processors"),
    "all": ("processors", "requested", "wait", "ratio", "expansion", "area", "unicef", "f1", "f2",
            "f3", "f4"),
    "formulas": ("f1", "unicef", "wait", "f4"),
}  # fmt: skip


def _batch(row: Row) -> dict[str, Any]:
    slices = [inputs.spelt(seed, 40 + seed, 8, unit=60, users=3) for seed in (1, 2, 3)]
    rules = inputs.rules_of(row, slices[0])
    batch = BatchSimulator(
        slices,
        _FEATURES[row["features"]],
        Scheduler(**rules),
        cluster=inputs.POOLS[row["machine"]](8),
        tau=20,
    )
    rng = np.random.default_rng(5)
    shape = (6, 3) if row["vectors"] == "own" else (6,)
    weights = rng.integers(-3, 4, size=(*shape, len(batch.features))) / 8
    names = ("mean_bsld", "max_bsld", "rms_bsld", "mean_slowdown", "mean_wait_s", "max_wait_s",
             "mean_response_s", "max_response_s", "makespan_s", "utilization")  # fmt: skip
    threads = 1 if row["threads"] == "1" else None
    values = batch.run(weights, names, threads=threads)
    return {name: values[:, :, place] for place, name in enumerate(names)}


def _covered(row: Row) -> dict[str, Any]:
    jobs = inputs.plain(row["workload"])
    points = np.linspace(-1.0, 1.0, int(row["points"]))
    steps = np.arange(1 - len(points), len(points), 2)
    cube = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(-1, 3)
    cube //= np.maximum(np.gcd.reduce(cube, axis=1, keepdims=True), 1)
    vectors = cube / np.maximum(np.abs(cube).sum(axis=1, keepdims=True), 1)
    batch = BatchSimulator([jobs], ("processors", "requested", "wait"))
    values = batch.run(vectors, row["metric"], threads=1)[:, 0]
    shape = (len(points),) * 3
    return {"values": values.reshape(shape), "weights": vectors[values.argmin()], "points": points}


# --- Look-ahead -----------------------------------------------------------------------------------


def _ahead(row: Row) -> dict[str, Any]:
    own = ["f2", inputs.WEIGHTS["weights"], "saf", inputs.WEIGHTS["mapping"]]
    portfolio = {} if row["portfolio"] == "pure" else {"portfolio": own}
    jobs = inputs.plain(row["workload"])
    rules: dict[str, dict[str, Any]] = {
        "per-event": {"passes": "per-event"},
        "recursive-doubling": {"correction": "recursive-doubling", "estimate": "ave2"},
    }
    scheduler = None if row["rule"] in rules else row["rule"]
    agent = Lookahead(**portfolio, estimate=row["estimate"], tau=30)
    result = agent.run(
        jobs,
        scheduler,
        cluster=inputs.POOLS[row["machine"]](jobs.processors),
        **rules.get(row["rule"], {}),
    )
    return facts_of(result)


# --- Sweeps ---------------------------------------------------------------------------------------

_EXPERIMENT = """\
schedulers = ["easy", "saf", "conservative", { name = "late", scheduler = "saf", threshold = 3600 },
  { name = "own", policy = { area = -1, wait = 20 }, backfill_order = "spf" }]
seeds = [0, 1]
[[workloads]]
workload = "lublin:jobs=80,processors=32,load=1,seed={seed}"
"""


def _swept(row: Row) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file, made = Path(folder) / "guarded.toml", Path(folder) / "guarded.sweep"
        file.write_text(_EXPERIMENT)
        run_experiment(file, made, executor="serial")
        table = read_table(made)
        return {"rows": len(table), "table": table}


# --- Carbon and prices ----------------------------------------------------------------------------


def _billed(row: Row) -> dict[str, Any]:
    workload, cluster, limits = limited_machine(row)
    result = simulate(workload, cluster=cluster, limits=limits, power=row["power"])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "grid.csv"
        file.write_text("time_s,carbon_g_per_kwh\n0,56.5\n30000,61\n60000,20.25\n")
        billed = bill(result, read_signal(file, repeat="day"))
    return {"total": billed.total, "overhead": billed.overhead, "by_user": billed.by_user}


# --- Leaderboards ---------------------------------------------------------------------------------

_BOARDS: dict[str, dict[str, Any]] = {
    "pool": {"policies": ["wfp3", "easy++", "0.1,-0.2,0,0,0,0.7"]},
    "learns": {"policies": ["saf-typical", "easy-e-loss"], "estimate": "user-ratio"},
}


def _evaluated(row: Row) -> dict[str, Any]:
    workload = "lublin:jobs=240,processors=32,seed=0,load=1"
    given = _BOARDS[row["board"]]
    table = evaluate(workload=workload, jobs=30, n=2, budget=15, resamples=50, **given).table
    return {"names": json.dumps([str(name) for name in table.index]), "table": table}


GROUPS: dict[str, Callable[[Row], Any]] = {
    "extract": _extracted,
    "learned": _going_on,
    "batch": _batch,
    "cover": _covered,
    "lookahead": _ahead,
    "sweep": _swept,
    "bill": _billed,
    "evaluate": _evaluated,
}
