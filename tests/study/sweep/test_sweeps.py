"""Each row of the table of a sweep is what ``simulate`` gives on the same jobs and machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sweep_rules

from hpcgym import generate_speedups, load_workload, simulate, validate_schedule
from hpcgym.machine import find_cluster
from hpcgym.machine.power_plans import greatest_w
from hpcgym.machine.speedups import read_speedups
from hpcgym.schedule.groups import metrics_by
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.study import read_table, run_experiment
from hpcgym.workload import Workload, assign_codes, shuffled, write_swf

Row = Mapping[str, Any]
#: Users of this log have jobs that follow others, and its clock is that of windows.
LOG = "lublin:jobs=150,processors=32,load=1.1,seed=2"
NODES = '[[group]]\nname = "node"\nnodes = 24\ncore = 8\n[group.power]\nidle_w = 90\nbusy_w = 310\n'


def swept(text: str, folder: Path, executor: str = "serial") -> pd.DataFrame:
    (folder / "made.toml").write_text(text)
    summary = run_experiment(folder / "made.toml", folder / "made.sweep", executor)
    table = read_table(folder / "made.sweep")
    assert (summary.done, summary.failed) == (len(table), 0)
    return table


def assert_simulated(table: pd.DataFrame, simulated: Callable[[Row], Result], *keys: str) -> None:
    """Each row has the metrics of what is simulated for it, behind the columns ``keys``."""
    assert list(table.columns[: len(keys)]) == [*keys]
    assert table.columns[len(keys) - 1] == "scheduler"
    kept = [name for name in table.columns[len(keys) :] if name != "makespan_improvement"]
    assert kept
    for row in table.to_dict("records"):
        metrics = simulated(row).metrics
        for name in kept:
            expected = metrics.get(name, math.nan)
            assert row[name] == expected or (row[name] != row[name] and expected != expected), name


def test_weeks_and_seeds(experiment: Path, reference: Path) -> None:
    trace = load_workload(experiment.parent / "data" / "small.swf.gz", "legrand")
    weeks = {f"week {week.name.split()[-1]}": week for week in trace.weeks()}
    rules: dict[str, Any] = {"policy": "saf", "backfill_order": "spf", "threshold": 72_000}

    def simulated(row: Row) -> Result:
        text = f"lublin:jobs=120,processors=16,load=0.9,seed={row['seed']}"
        generated = row["workload"] == "generated"
        jobs = load_workload(text) if generated else weeks[row["slice"]]
        return simulate(jobs, **(rules if row["scheduler"] == "saf-20h" else {}))

    table = read_table(reference)
    assert len(table) == 8
    assert_simulated(table, simulated, "workload", "slice", "seed", "scheduler")


#: Rules as an experiment has them, and as ``simulate`` takes them.
RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "easy": ("", {}),
    "prb": ("", {"scheduler": "prb"}),
    "saf-typical-20h-hold": ("", {"scheduler": "saf-typical-20h-hold"}),
    "saf:hold=0.3,from_s=60": ("", {"scheduler": "saf", "hold": {"share": 0.3, "from_s": 60}}),
    "six": ("policy = [0.1, -0.2, 0, 0, 0, 0.7]", {"policy": (0.1, -0.2, 0, 0, 0, 0.7)}),
    "two": (
        "scheduler = 'saf', policy = { area = -1, wait = 20 }",
        {"policy": {"area": -1, "wait": 20}, "backfill_order": "spf"},
    ),
    "number": ("hold = 0.3", {"hold": 0.3}),
    "infinity": (  # which JSON does not know
        "hold = { share = 0.3, erode_s = inf, by = 'both' }",
        {"hold": {"share": 0.3, "erode_s": math.inf, "by": "both"}},
    ),
    "quota": (
        "scheduler = 'saf', quota = 'user:jobs=2; all:processors=32'",
        {"scheduler": "saf", "quota": "user:jobs=2; all:processors=32"},
    ),
    "window": (
        "quota = 'user:jobs=2', maintenance = '5000/90000:processors=16'",
        {"quota": "user:jobs=2", "maintenance": "5000/90000:processors=16"},
    ),
    "follow": (
        "backfill = 'depth:3', dependencies = 'closed-loop'",
        {"backfill": "depth:3", "dependencies": "closed-loop"},
    ),
    "late": (
        "dispatcher = 'prb', dispatch_time = 7.5",
        {"scheduler": "prb", "dispatch_time": 7.5},
    ),
    "turns": ("dispatcher = 'sweep_rules:Turns'", {"scheduler": sweep_rules.Turns}),
    "scored": ("policy = 'sweep_rules:score'", {"policy": "spf"}),
}
METRICS = ["mean_bsld", "mean_wait_s", "makespan_s", "mean_dispatch_s"]


def schedulers(*names: str) -> str:
    rules_of = ((name, RULES[name][0]) for name in names)
    made = [f"{{ name = '{name}', {rules} }}" if rules else f"'{name}'" for name, rules in rules_of]
    return f"schedulers = [{', '.join(made)}]\n"


def followers() -> Workload:
    """Return the log's jobs, each third one after the one before it."""
    jobs = load_workload(LOG)
    rows = np.arange(len(jobs))
    before = np.where(rows % 3 == 2, jobs.job_number[rows - 1], -1)
    return jobs.with_columns(preceding_job=before, think_time=[60] * len(jobs))


@pytest.mark.parametrize("executor", ["serial", "processes"])
@pytest.mark.filterwarnings("ignore:.*jobs follow others")
def test_rules(executor: str, tmp_path: Path) -> None:
    write_swf(followers(), tmp_path / "jobs.swf")
    (tmp_path / "sweep_rules.py").symlink_to(sweep_rules.__file__)
    text = f"{schedulers(*RULES)}metrics = {METRICS}\n"
    for name in ("once", "again"):  # what a rule has learned is forgotten between simulations
        text += f"[[workloads]]\nworkload = 'jobs.swf'\nname = '{name}'\n"
    jobs = load_workload(tmp_path / "jobs.swf")

    def simulated(row: Row) -> Result:
        rules = dict(RULES[row["scheduler"]][1])
        scheduler = rules.pop("scheduler", "easy")
        made = scheduler() if isinstance(scheduler, type) else scheduler
        result = simulate(jobs, made, **rules)
        validate_schedule(result)
        return result

    table = swept(text, tmp_path, executor)
    assert table["mean_bsld"].nunique() >= len(RULES) - 2
    assert_simulated(table, simulated, "workload", "slice", "seed", "scheduler")


@pytest.mark.filterwarnings("ignore:.*EASY's reservation is of named nodes")
def test_nodes_and_shuffles(tmp_path: Path) -> None:
    rules: dict[str, Any] = {
        "quota": {"quota": "user:jobs=2"},
        "window": {"quota": "user:jobs=2", "maintenance": "4000/50000:nodes=0-1"},
        "worst": {"allocation": "worst-fit", "backfill": "depth:3"},
    }
    for name, own in rules.items():
        lines = "\n".join(f"{key} = {value!r}" for key, value in own.items())
        rules[name] = lines, own
    text = "shuffles = [3, 1]\nmetrics = ['mean_bsld', 'makespan_s']\n"
    text += "".join(
        f"[[schedulers]]\nname = '{name}'\n{lines}\n" for name, (lines, _) in rules.items()
    )
    text += f"[[workloads]]\nworkload = '{LOG}'\ncluster = '4x2x4'\n"
    jobs = load_workload(LOG, cluster="4x2x4")

    def simulated(row: Row) -> Result:
        own = rules[row["scheduler"]][1]
        return simulate(shuffled(jobs, row["shuffle"]), cluster="4x2x4", **own)

    table = swept(text, tmp_path)
    assert table["shuffle"].tolist() == [3, 3, 3, 1, 1, 1]
    assert_simulated(table, simulated, "workload", "slice", "seed", "shuffle", "scheduler")


def test_nodes_that_jobs_share(shared: Path) -> None:
    here, table = shared / "here", read_table(shared / "sweep")
    codes = load_workload(f"codes:speedups={here / 'pairs.json'},jobs=40,seed=1")
    log = load_workload("lublin:jobs=3000,processors=128,load=0.5")
    weeks = assign_codes(log, generate_speedups(4).codes, seed=7).weeks()
    jobs = {"codes": (codes, here / "small.toml"), "weeks": (weeks[0], "16x2x4")}
    strict = {"pairs_above": 1.0, "pair_estimate": read_speedups(here / "false.csv")}
    pairs = {"pairs.json": here / "pairs.json"}

    def simulated(row: Row) -> Result:
        part, machine = jobs[row["workload"]]
        name, rules = row["scheduler"], {}
        if name == "strict":
            name, rules = "filler-co", strict
        named = pairs.get(row["speedups"], row["speedups"])
        part = shuffled(part, row["shuffle"])
        return simulate(part, name, cluster=machine, speedups=named, **rules)

    keys = ["workload", "speedups", "slice", "seed", "shuffle", "scheduler"]
    assert len(table) == 2 * 2 * 2 * 3
    assert_simulated(table, simulated, *keys)
    assert list(table)[-1] == "makespan_improvement"
    for _, rows in table.groupby(["workload", "speedups", "slice", "shuffle"]):
        easy, *others = rows.to_dict("records")
        assert easy["makespan_improvement"] == 0
        for row in others:
            assert row["makespan_improvement"] == easy["makespan_s"] / row["makespan_s"] - 1
    assert table["makespan_improvement"].any()


def test_limits(tmp_path: Path) -> None:
    """Also with a dispatcher; what no limit of a set has is missing there."""
    (tmp_path / "machine.toml").write_text(NODES)
    text = f"""
    schedulers = ["easy", {{ name = "shut", power = "shut" }}, "sdprb"]
    metrics = ["jobs", "mean_bsld", "cap_exceeded_s", "energy_j"]
    shuffles = [0, 5]
    [[limits]]
    name = "none"
    [[limits]]
    name = "cap"
    cap = "percent=70,start=20000,end=60000,kills"
    [[limits]]
    name = "both"
    cap = ["watts=3000,end=9000", "percent=90,start=9000,end=20000"]
    budget = ["percent=70,start=20000,end=60000,period=60"]
    [[workloads]]
    workload = "{JOBS_OF_NODES}"
    name = "small"
    cluster = "machine.toml"
    [[workloads]]
    workload = "{JOBS_OF_NODES}"
    name = "taurus"
    cluster = "taurus"
    """

    def simulated(row: Row) -> Result:
        small = row["workload"] == "small"
        cluster = find_cluster(tmp_path / "machine.toml" if small else "taurus")
        full = greatest_w(cluster)
        limits: dict[str, list[Any]] = {
            "none": [],
            "cap": [PowerCap(0.7 * full, 20_000, 60_000, kills=True)],
            "both": [
                PowerCap(3000.0, 0, 9000),
                PowerCap(0.9 * full, 9000, 20_000),
                EnergyBudget(0.7 * full * 40_000, 20_000, 60_000, 60),
            ],
        }
        jobs = shuffled(load_workload(JOBS_OF_NODES, cluster=cluster), row["shuffle"])
        rules = {"power": "shut"} if row["scheduler"] == "shut" else {}
        name = "sdprb" if row["scheduler"] == "sdprb" else "easy"
        return simulate(jobs, name, cluster=cluster, limits=limits[row["limits"]], **rules)

    table = swept(text, tmp_path)
    assert len(table) == 2 * 3 * 2 * 3
    assert table.groupby(["workload", "limits", "scheduler"])["mean_bsld"].mean().nunique() > 6
    assert table["cap_exceeded_s"].isna().sum() == len(table) / 3
    keys = ["workload", "limits", "slice", "seed", "shuffle", "scheduler"]
    assert_simulated(table, simulated, *keys)


JOBS_OF_NODES = "lublin:jobs=30,processors=192,seed=1,load=1.3"


def test_all_metrics_are_kept_without_names(tmp_path: Path) -> None:
    table = swept(f"schedulers = ['easy']\n[[workloads]]\nworkload = '{LOG}'\n", tmp_path)
    metrics = simulate(load_workload(LOG)).metrics
    kept = [name for name in metrics if not name.startswith("energy_")]  # nobody gave watts
    assert list(table)[4:] == kept
    assert_simulated(
        table, lambda _: simulate(load_workload(LOG)), "workload", "slice", "seed", "scheduler"
    )


def test_classes_and_users(groups: Path) -> None:
    """A row for each of each simulation, with the metrics of its jobs."""
    plain, weeks = read_table(groups), load_workload(groups.parent / "small.swf").weeks()
    assert "jobs" not in plain
    for by in ("class", "user"):
        table = read_table(groups, by)
        keys = ["workload", "slice", "seed", by, "scheduler"]
        assert list(table) == [*keys, "jobs", "mean_bsld", "mean_wait_s"]
        rows = table.set_index(["slice", "scheduler", by])
        for number, week in enumerate(weeks, 1):
            for scheduler in ("easy", "saf"):
                by_group = metrics_by(simulate(week, scheduler), by, ["mean_bsld", "mean_wait_s"])
                for group, metrics in by_group.items():
                    row = rows.loc[(f"week {number}", scheduler, group), list(metrics)]
                    assert row.to_dict() == pytest.approx(metrics, abs=0, nan_ok=True)
    assert len(read_table(groups, "class")) == 3 * len(plain)


def test_dates_are_of_the_zone_that_an_experiment_names(tmp_path: Path) -> None:
    lines = ["JobIDRaw|Submit|Start|End|Timelimit|NCPUS|State"]
    lines += [
        f"{job}|2024-03-31T{at}:00|2024-03-31T{at}:30|2024-03-31T{at}:40|02:00:00|4|COMPLETED"
        for job, at in ((1, "01:00"), (2, "03:00"))  # clocks go on by an hour between
    ]
    (tmp_path / "dump.txt").write_text("\n".join(lines) + "\n")
    text = "schedulers = ['easy']\n" + "".join(
        f"[[workloads]]\nworkload = 'dump.txt'\nname = '{zone}'\nprocessors = 4\ntz = '{zone}'\n"
        for zone in ("UTC", "Europe/Berlin")
    )
    assert swept(text, tmp_path)["makespan_s"].tolist() == [7210, 3610]
