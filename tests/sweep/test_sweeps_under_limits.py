"""Experiments under limits of power and energy: what is simulated, refused and gone on with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mistakes import assert_told
from typer.testing import CliRunner

from hpcgym import load_workload, simulate
from hpcgym.cli import app
from hpcgym.cluster import find_cluster
from hpcgym.cluster.power_plans import greatest_w
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.sweep import read_table, run_experiment
from hpcgym.sweep.manifest import Tasks
from hpcgym.sweep.run import read_manifest
from hpcgym.workload import shuffled

JOBS = "lublin:jobs=30,processors=192,seed=1,load=1.3"
EXPERIMENT = f"""
schedulers = ["easy", {{ name = "shut", power = "shut" }}]
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
workload = "{JOBS}"
name = "small"
cluster = "machine.toml"

[[workloads]]
workload = "{JOBS}"
name = "taurus"
cluster = "taurus"
"""
MACHINE = """
[[group]]
name = "node"
nodes = 24
core = 8
[group.power]
idle_w = 90
busy_w = 310
"""
ENOUGH = f"""
schedulers = ["easy"]
[[limits]]
name = "a"
cap = "watts=9000"
[[workloads]]
workload = "{JOBS}"
cluster = "taurus"
"""

PLAIN = f'schedulers = ["easy"]\n[[workloads]]\nworkload = "{JOBS}"\n'


def write(folder: Path) -> Path:
    """Write the experiment and its machine into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "machine.toml").write_text(MACHINE)
    (folder / "limited.toml").write_text(EXPERIMENT)
    return folder / "limited.toml"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the experiment, with its sweep; nobody changes it."""
    folder = tmp_path_factory.mktemp("limited")
    run_experiment(write(folder / "here"), folder / "sweep", "serial")
    return folder


def test_the_table_has_what_simulate_gives(done: Path) -> None:
    table = read_table(done / "sweep")
    assert list(table.columns) == [
        "workload", "limits", "slice", "seed", "shuffle", "scheduler",
        "jobs", "mean_bsld", "cap_exceeded_s", "energy_j",
    ]  # fmt: skip
    assert len(table) == 2 * 3 * 2 * 2
    for name, machine in (("small", done / "here" / "machine.toml"), ("taurus", "taurus")):
        cluster = find_cluster(machine)
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
        jobs = load_workload(JOBS, cluster=cluster)
        for row in table[table["workload"] == name].to_dict("records"):
            power = "shut" if row["scheduler"] == "shut" else "none"
            found = simulate(
                shuffled(jobs, row["shuffle"]), cluster=cluster, limits=limits[row["limits"]],
                power=power,
            ).metrics  # fmt: skip
            for metric in ("jobs", "mean_bsld", "energy_j"):
                assert row[metric] == found[metric]
            if row["limits"] == "none":
                assert row["cap_exceeded_s"] != row["cap_exceeded_s"]  # nan
            else:
                assert row["cap_exceeded_s"] == found["cap_exceeded_s"]
    values = table.groupby(["workload", "limits", "scheduler"])["mean_bsld"].mean()
    assert values.nunique() > 4  # limits and rules tell


def test_a_dispatcher_keeps_the_limits_too(tmp_path: Path) -> None:
    text = under("dispatcher = 'sdprb'").replace("9000", "2500")
    (tmp_path / "few.toml").write_text(text)
    run_experiment(tmp_path / "few.toml", tmp_path / "sweep", "serial")
    (value,) = read_table(tmp_path / "sweep")["mean_bsld"]
    jobs, cap = load_workload(JOBS, cluster=find_cluster("taurus")), PowerCap(2500)
    metrics = simulate(jobs, "sdprb", cluster="taurus", limits=[cap]).metrics
    assert value == metrics["mean_bsld"]
    assert value != simulate(jobs, "sdprb", cluster="taurus", limits=[]).metrics["mean_bsld"]


def test_the_manifest_has_the_limits(done: Path, tmp_path: Path) -> None:
    manifest = read_manifest(done / "sweep")
    assert manifest["limits"] == [
        {"name": "none", "cap": [], "budget": []},
        {"name": "cap", "cap": ["percent=70,start=20000,end=60000,kills"], "budget": []},
        {
            "name": "both",
            "cap": ["watts=3000,end=9000", "percent=90,start=9000,end=20000"],
            "budget": ["percent=70,start=20000,end=60000,period=60"],
        },
    ]
    tasks = Tasks(manifest)
    assert len(tasks) == len([*tasks]) == 24
    assert "machine.toml" in manifest["inputs_sha256"]
    path = tmp_path / "plain.toml"
    path.write_text('schedulers = ["easy"]\n[[workloads]]\nworkload = "lublin:jobs=9"\n')
    run_experiment(path, tmp_path / "sweep", "serial")
    plain = read_manifest(tmp_path / "sweep")
    (task,) = Tasks(plain)
    assert "limits" not in plain
    assert {"limits", "cap", "budget"}.isdisjoint(task)


def test_a_job_that_can_never_start_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "never.toml"
    path.write_text(
        ENOUGH.replace("[[limits]]", '[[limits]]\nname = "low"\ncap = "percent=40"\n[[limits]]')
    )
    summary = run_experiment(path, tmp_path / "sweep", "serial")
    assert (summary.done, summary.failed) == (1, 1)
    shown = CliRunner().invoke(app, ["sweep", "status", str(tmp_path / "sweep")]).stdout
    assert re.search(r"failed: lublin\S+ · low · whole · easy: .*can never start under", shown)


# --- The file -------------------------------------------------------------------------------------


def limited(text: str) -> str:
    """An experiment with this in its set of limits, in place of a cap."""
    return ENOUGH.replace('cap = "watts=9000"', text)


def under(rules: str) -> str:
    """An experiment with a scheduler that has these rules."""
    return ENOUGH.replace('"easy"', f'{{ name = "b", {rules} }}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"limits = 3\n{PLAIN}", "limits must be a list, each entry a table, not 3"),
        (limited("caps = 'watts=1'"), "unknown key of limits[0] 'caps'; did you mean 'cap'"),
        (ENOUGH.replace('name = "a"', ""), "limits[0].name must say what these limits are called"),
        (ENOUGH.replace('"a"', "3"), "limits[0].name must say what these limits are called"),
        (limited("cap = 3"), "limits[0].cap must be a text, such as 'percent=60,start=0,end=3600'"),
        (limited("budget = [3]"), "limits[0].budget must be a text"),
        (limited("cap = 'wats=1'"), "unknown limits[0].cap: key 'wats'; did you mean 'watts'"),
        (limited("cap = 'watts=1,follow=price'"), "unknown limits[0].cap: key 'follow'"),
        (limited("cap = 'watts=1,percent=1'"), "limits[0].cap watts=1,percent=1: it needs either"),
        (limited("cap = 'watts=1,watts=2'"), "limits[0].cap watts=1,watts=2: watts is there twice"),
        (limited("cap = 'watts=-1'"), "limits[0].cap watts=-1: cap: watts must be a number of at"),
        (limited("budget = 'joules=1,start=0'"), "limits[0].budget joules=1,start=0: it needs sta"),
        (
            limited("budget = ['joules=1,start=0,end=9', 'joules=1,start=8,end=10']"),
            "limits[0]: limits: two budgets hold at 8 s",
        ),
        (f"{ENOUGH}[[limits]]\nname = 'a'", "limits: 'a' is there twice"),
        (f"speedups = 'generated'\n{ENOUGH}", "limits and speedups do not go together: powers are"),
        (ENOUGH.replace('cluster = "taurus"', ""), "workloads[0].cluster is missing: limits are"),
        (ENOUGH.replace("taurus", "4x2x2"), "workloads[0].cluster: limits need the power of nodes"),
        (
            f"{ENOUGH}[[workloads]]\nworkload = '{JOBS}'\nname = 'c'\ncluster = 'eurora'",
            "workloads[1].cluster: limits need nodes that are all alike",
        ),
        (
            under("backfill = 'conservative'"),
            "schedulers[0]: backfill='conservative' and limits of power and energy do not go toget",
        ),
        (under("passes = 'per-event'"), "schedulers[0]: passes='per-event' and limits of power"),
        (under("allocation = 'best-fit'"), "schedulers[0]: allocation: with nodes of their own"),
        (
            under("power = 'shut'").replace("watts=9000", "watts=1"),
            "schedulers[0] under limits[0] on workloads[0]: a cap of 1 W: with all nodes off",
        ),
        (
            ENOUGH.replace('cap = "watts=9000"', 'budget = "joules=1,start=0,end=1,off_as_idle"'),
            "schedulers[0] under limits[0] on workloads[0]: budget: off_as_idle is about nodes",
        ),
        (
            PLAIN.replace('"easy"', '{ name = "b", power = "mix" }'),
            "schedulers[0]: power='mix' needs limits: caps or budgets",
        ),
        (f"metrics = ['budget_exceeded_j']\n{ENOUGH}", "unknown metrics[0] 'budget_exceeded_j'"),
    ],
)
def test_a_mistake_is_named_before_anything_runs(text: str, message: str, tmp_path: Path) -> None:
    assert_told(text, message, tmp_path)
