"""Names from files are printable, on one line, and of bounded length, wherever they are shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym.cluster import Cluster, Level, NodeGroup, Partition
from hpcgym.cluster.slurm import read_slurm_conf
from hpcgym.cluster.slurm.qos import read_qos
from hpcgym.errors import HpcgymError
from hpcgym.explore.document import indexed, write_index
from hpcgym.files.recorded import write_beside
from hpcgym.naming import MOST_NAME, name_problem, printable
from hpcgym.speedups import Heatmap
from hpcgym.sweep.experiment import load_experiment
from hpcgym.workload.io.swf_header import names_of

RED = "\x1b[31msaf\x1b[0m"
LONG = "x" * 5000
JOB = "1 0 -1 10 1 -1 -1 1 10 -1 1 7 -1 -1 -1 -1 -1 -1\n"


@pytest.mark.parametrize("name", [RED, "saf\neasy", "saf\u202e", " saf", "saf\xa0", "", LONG, 7])
def test_a_name_that_would_not_be_shown_as_it_is_is_none(name: Any) -> None:
    assert name_problem(name)


@pytest.mark.parametrize("name", ["saf", "Größe 数", "[bold]saf[/]", "x" * MOST_NAME])
def test_other_names_stay_as_they_are(name: str) -> None:
    assert name_problem(name) == ""
    assert printable(name) == name


def test_long_names_of_a_log_are_cut_and_stay_apart() -> None:
    one, two = printable(f"{LONG}1"), printable(f"{LONG}2")
    assert one != two
    assert len(one) == len(two) == MOST_NAME
    assert one.startswith("x" * 150)
    assert printable("al\x1b[31mice\n") == "al?[31mice?"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.swf", f"; MaxProcs: 4\n; User: 7 {RED}{LONG}\n{JOB}"),
        ("log.csv", f"submit_time,run_time,requested_processors,user\n0,10,1,{LONG}\n"),
        (
            "log.txt",
            "JobID|JobIDRaw|User|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS\n"
            f"1|1|{RED}{LONG}|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|10|1|1\n",
        ),
    ],
)
def test_users_of_a_log_have_names_that_can_be_shown(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    jobs = hpcgym.load_workload(path, processors=4)
    (called,) = names_of(jobs, "user_id").values()
    assert called.isprintable()
    assert len(called) == MOST_NAME


def test_a_log_is_called_by_what_can_be_shown_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / f"{RED}.swf"
    path.write_text(f"; MaxProcs: 4\n{JOB}")
    assert hpcgym.load_workload(path).name == "?[31msaf?[0m"


GROUP = NodeGroup("n", 2, {"core": 4})


@pytest.mark.parametrize(
    "make",
    [
        lambda name: Cluster(processors=4, name=name),
        lambda name: Cluster(processors=4, queues={name: 1}),
        lambda name: Cluster(groups=(NodeGroup(name, 2, {"core": 4}),)),
        lambda name: Partition(name, (0,)),
        lambda name: Level(name, 2, 1.0),
        lambda name: Heatmap((name,), np.ones((1, 1))),
    ],
)
def test_machines_and_codes_are_called_by_what_can_be_shown(make: Callable[[str], Any]) -> None:
    assert make("saf")
    for name in (RED, "saf\neasy"):
        with pytest.raises(HpcgymError, match=r"printable|is no name"):
            make(name)


def test_files_of_slurm_have_no_escape_codes(tmp_path: Path) -> None:
    conf, qos = tmp_path / "slurm.conf", tmp_path / "qos.txt"
    conf.write_text(f"NodeName=n1 CPUs=4\nPartitionName={RED} Nodes=n1\n")
    with pytest.raises(HpcgymError, match=r"slurm.conf, line 2: .* cannot be printed"):
        read_slurm_conf(conf)
    qos.write_text(f"Name|Priority\n{RED}|1\n")
    with pytest.raises(HpcgymError, match=r"qos.txt, line 2: .* cannot be printed"):
        read_qos(qos)


def test_schedulers_of_an_experiment_are_called_by_what_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(
        'workloads = [{workload = "KTH-SP2"}]\nschedulers = [{name = "a\\u001b[31m"}]\n'
    )
    with pytest.raises(HpcgymError, match=r"schedulers\[0\].name must be printable"):
        load_experiment(path)


def test_an_index_of_files_shows_records_of_others_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("job_number\n1\n")
    record = {
        "hpcgym": "1", "date": RED, "command": None, "files": {}, "workloads": [{"name": RED}],
        "schedules": [{"name": f"saf\u202e{LONG}"}],
    }  # fmt: skip
    write_beside(tmp_path / "a.csv", record)
    page = tmp_path / "index.html"
    write_index(indexed(tmp_path, page), page, "index")
    text = page.read_text()
    assert "saf" in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert LONG not in text
