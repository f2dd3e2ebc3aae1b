"""Energies are told where somebody gave watts, and nowhere else."""

from __future__ import annotations

import copy
import csv
import io
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from mistakes import mistakes_of

import hpcgym
from hpcgym.cli import app
from hpcgym.machine import Cluster, Level, NodeGroup, NodePower, cluster_toml, read_cluster
from hpcgym.report import metrics_table
from hpcgym.report.tables import rich_metrics
from hpcgym.schedule.metrics import told_metrics, watts_given
from hpcgym.study import read_table, run_experiment
from hpcgym.workload import Workload, load_workload

JOBS = "lublin:jobs=30,processors=16,seed=3"
TRACE = load_workload(JOBS)
#: A pool whose watts are those that a usual one has.
POOL = "processors = 16\nidle_power_w = 117\nbusy_power_w = 358\n"
CORES = NodeGroup("a", 4, {"core": 4})
POWER = NodePower(10.0, (100.0,))
ENERGIES = {f"energy_{what}j" for what in ("", "busy_", "idle_", "off_", "switching_")}


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def succeed(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


@pytest.mark.parametrize(
    ("cluster", "given"),
    [
        (Cluster(16), False),
        (Cluster(16, shutdown_after_s=60, boot_time_s=5), False),
        (Cluster(16, idle_power_w=117.0), True),
        (Cluster(16, busy_power_w=358), True),
        (Cluster(16, off_power_w=14), True),
        (Cluster(16, boot_power_w=1), True),
        (Cluster(groups=(CORES,)), False),
        (Cluster(groups=(CORES,), busy_power_w=5), True),
        (Cluster(groups=(CORES, NodeGroup("b", 1, {"core": 1}, POWER))), True),
        (Cluster(groups=(CORES,), levels=(Level("rack", 2, 30.0),)), True),
    ],
)
def test_a_machine_knows_whether_watts_were_given(
    cluster: Cluster, given: bool, tmp_path: Path
) -> None:
    path = tmp_path / "machine.toml"
    path.write_text(cluster_toml(cluster))
    copies = [replace(cluster, name="other"), copy.deepcopy(cluster), read_cluster(path)]
    for machine in [cluster, *copies, pickle.loads(pickle.dumps(cluster))]:
        assert machine.watts_given is given
        assert machine.idle_power_w == cluster.idle_power_w
    assert replace(cluster, idle_power_w=cluster.idle_power_w + 1).watts_given
    usual, named = Cluster(16), Cluster(16, 117.0, 358.0)  # numbers like others
    assert (usual, hash(usual), repr(usual)) == (named, hash(named), repr(named))


def test_metrics_are_whole_in_python_and_told_where_watts_were_given() -> None:
    usual, given = (hpcgym.simulate(TRACE, cluster=c) for c in (Cluster(16), Cluster(16, 117, 358)))
    assert usual.metrics == given.metrics
    assert set(usual.metrics) >= ENERGIES
    assert set(usual.metrics) - set(told_metrics(usual)) == ENERGIES
    assert told_metrics(given) == given.metrics
    assert not ENERGIES & {*metrics_table(usual)}
    assert {*metrics_table({"given": given, "usual": usual})} >= ENERGIES
    table = metrics_table({"given": given, "usual": usual})
    assert table["energy_j"].isna().tolist() == [False, True]
    titles = [
        [str(cell) for cell in rich_metrics(results).columns[0].cells] for results in (usual, given)
    ]
    assert [any("energy" in text for text in texts) for texts in titles] == [False, True]


def test_measured_jobs_are_watts() -> None:
    power_w = np.full(len(TRACE), -1.0)
    assert not watts_given(Cluster(16), TRACE.with_columns(power_w=power_w))
    power_w[3] = 80.0
    measured: Workload = TRACE.with_columns(power_w=power_w)
    assert watts_given(None, measured)
    assert "energy_j" in told_metrics(hpcgym.simulate(measured))


@pytest.mark.parametrize("given", [False, True])
def test_what_the_commands_print_and_write(given: bool, tmp_path: Path) -> None:
    machine = tmp_path / "pool.toml"
    machine.write_text(POOL)
    where = ["--cluster", str(machine)] if given else []
    two = ["--scheduler", "easy,fcfs"]
    assert ("energy" in succeed("simulate", JOBS, *where)) is given
    for command in (["simulate", JOBS], ["compare", JOBS, *two]):
        text = succeed(*command, *where, "--format", "json")
        entry = json.loads(text)
        assert ("energy_j" in entry.get("results", [entry])[0]) is given
        assert ("energy" in text) is given
        heading = next(csv.reader(io.StringIO(succeed(*command, *where, "--format", "csv"))))
        assert ("energy_j" in heading) is given
        assert any("energy" in column for column in heading) is given


@pytest.mark.slow
@pytest.mark.parametrize("given", [False, True])
def test_the_page(given: bool) -> None:
    pytest.importorskip("matplotlib")
    from hpcgym.explore import page

    cluster = Cluster(16, 117, 358) if given else Cluster(16)
    for results in (
        hpcgym.simulate(TRACE, cluster=cluster),
        {name: hpcgym.simulate(TRACE, name, cluster=cluster) for name in ("easy", "fcfs")},
    ):
        assert ("energy" in page(results, report=True).lower()) is given
    mixed = {"a": hpcgym.simulate(TRACE, cluster=cluster), "b": hpcgym.simulate(TRACE)}
    # the record in the head has what each schedule has by itself
    assert "energy" not in page(mixed, report=True).lower().partition("<body>")[2]


def test_carbon_where_watts_are_given(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(POOL)
    (tmp_path / "grid.csv").write_text("time_s,carbon_g_per_kwh\n0,100\n")
    grid = ["--carbon", str(tmp_path / "grid.csv"), "--format", "json"]
    value = json.loads(succeed("simulate", JOBS, *grid, "--cluster", str(tmp_path / "pool.toml")))
    assert value["carbon_g"] == pytest.approx(100 * value["energy_j"] / 3.6e6)


def test_sweeps(tmp_path: Path) -> None:
    (tmp_path / "pool.toml").write_text(POOL)
    plain = f'[[workloads]]\nworkload = "{JOBS}"\n'
    pool, asks = f'{plain}cluster = "pool.toml"\nname = "b"\n', 'metrics = ["jobs", "energy_j"]\n'

    def swept(name: str, text: str) -> Any:
        (tmp_path / f"{name}.toml").write_text(f'schedulers = ["easy"]\n{text}')
        run_experiment(tmp_path / f"{name}.toml", tmp_path / name, "serial")
        return read_table(tmp_path / name).set_index("workload")

    assert not ENERGIES & {*swept("none", plain)}
    assert "energy" not in succeed("sweep", "table", str(tmp_path / "none"), "--format", "csv")
    table, expected = swept("both", plain + pool), hpcgym.simulate(TRACE).metrics["energy_j"]
    assert table["energy_j"].isna().tolist() == [True, False]
    assert table.loc["b", "energy_j"] == expected
    assert swept("named", asks + pool)["energy_j"].tolist() == [expected]


test_mistakes = mistakes_of(globals())
