"""Sweeps of schedulers with quotas, maintenance windows and jobs that follow others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mistakes import assert_told

import hpcgym
from hpcgym.cluster import Failures
from hpcgym.sweep import load_experiment, read_table, resume, run_experiment
from hpcgym.sweep.run import read_manifest
from hpcgym.workload import write_swf
from hpcgym.workload.model import Workload

JOBS = "lublin:jobs=150,processors=32,load=1.1,seed=2"
OF_USERS, WINDOWS = "user:jobs=2; all:processors=32", "5000/90000:processors=16"
NODES = "4000/50000:nodes=0-1"
SCHEDULERS = f"""
[[schedulers]]
name = "quota"
scheduler = "saf"
quota = "{OF_USERS}"
[[schedulers]]
name = "both"
quota = "user:jobs=2"
maintenance = "MAINTENANCE"
[[schedulers]]
name = "follow"
backfill = "depth:3"
dependencies = "closed-loop"
"""


def followers(workload: Workload) -> Workload:
    """Return the jobs, each third one after the one before it."""
    numbers = workload.job_number.tolist()
    before = [numbers[row - 1] if row % 3 == 2 else -1 for row in range(len(numbers))]
    return workload.with_columns(preceding_job=before, think_time=[60] * len(numbers))


@pytest.mark.parametrize("cluster", ["", "4x2x4"])
@pytest.mark.filterwarnings("ignore:.*EASY's reservation is of nodes by name")
@pytest.mark.filterwarnings("ignore:.*jobs follow others")
def test_each_simulation_is_that_of_simulate(cluster: str, tmp_path: Path) -> None:
    jobs = followers(hpcgym.load_workload(JOBS))
    write_swf(jobs, tmp_path / "jobs.swf")
    windows = NODES if cluster else WINDOWS
    machine = f'cluster = "{cluster}"' if cluster else ""
    text = SCHEDULERS.replace("MAINTENANCE", windows)
    path = tmp_path / "kept.toml"
    path.write_text(
        f'metrics = ["mean_wait_s", "makespan_s"]\n{text}\n'
        f'[[workloads]]\nworkload = "jobs.swf"\n{machine}\n'
    )
    run_experiment(path, tmp_path / "sweep", "serial")
    table = read_table(tmp_path / "sweep").set_index("scheduler")
    given = hpcgym.load_workload(tmp_path / "jobs.swf")
    rules = {
        "quota": {"policy": "saf", "backfill_order": "spf", "quota": OF_USERS},
        "both": {"quota": "user:jobs=2", "maintenance": windows},
        "follow": {"backfill": "depth:3", "dependencies": "closed-loop"},
    }
    waits = set()
    for name, own in rules.items():
        result = hpcgym.simulate(given, cluster=cluster or None, **own)
        hpcgym.validate_schedule(result)
        for metric in ("mean_wait_s", "makespan_s"):
            assert table.loc[name, metric] == result.metrics[metric]
        waits.add(result.metrics["mean_wait_s"])
    assert len(waits) == 3


def test_files_are_beside_the_experiment_and_the_manifest_has_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "qos.txt").write_text("Name|MaxJobsPU\nnormal|\nday|2\n")
    outages = Failures(np.array([0, 1]), np.array([5, 5]), np.array([15, 15]))
    outages.write(folder / "outages.csv")
    path = folder / "files.toml"
    path.write_text(
        "[[schedulers]]\nname = 'a'\nquota = 'qos.txt'\n"
        "[[schedulers]]\nname = 'b'\nmaintenance = 'outages.csv'\n"
        f"[[workloads]]\nworkload = '{JOBS}'\ncluster = '4x2x4'\n"
    )
    monkeypatch.chdir(tmp_path)  # not where the experiment is
    found = load_experiment("here/files.toml").schedulers
    assert found["a"].describe()["quota"] == "queue=day/user:jobs=2"
    assert found["b"].describe()["maintenance"] == "5/15:nodes=0-1"
    with pytest.warns():  # no job of the generator is in that queue
        run_experiment("here/files.toml", "sweep", "serial")
    rules = read_manifest(tmp_path / "sweep")["schedulers"]
    assert rules["a"]["quota"] == "queue=day/user:jobs=2"
    assert rules["b"]["maintenance"] == "5/15:nodes=0-1"
    (folder / "qos.txt").unlink()  # its text is kept
    assert resume(tmp_path / "sweep", "serial").done == 2


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("quota = 'user'", "schedulers[0].quota: quota 'user' is neither a file nor a quota"),
        ("quota = 3", "schedulers[0].quota: quota must be a text such as 'user:jobs=10', not 3"),
        ("quota = 'user:nodes=1'", "schedulers[0].quota: quota 'user:nodes=1': 'nodes=1' is no"),
        ("maintenance = 'soon'", "schedulers[0].maintenance: window 'soon' is neither a file nor"),
        ("dependencies = 'all'", "schedulers[0]: unknown dependencies 'all'"),
        (
            "quota = 'user:jobs=1'\ndispatcher = 'prb'",
            "schedulers[0]: quota does not go with the dispatcher prb",
        ),
    ],
)
def test_a_mistake_is_named_by_its_key(rule: str, message: str, tmp_path: Path) -> None:
    jobs = f"[[workloads]]\nworkload = '{JOBS}'\n"
    assert_told(f"[[schedulers]]\nname = 'own'\n{rule}\n{jobs}", message, tmp_path)
