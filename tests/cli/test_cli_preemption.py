"""Preemption on the command line: what-ifs, what is written, and what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from hpcgym.cli import app

pytestmark = pytest.mark.slow

LOG = (
    "JobID|User|Partition|QOS|State|Submit|Start|Elapsed|Timelimit|AllocCPUS\n"
    "1|ann|batch|low|COMPLETED|2024-03-01T12:00:00|2024-03-01T12:00:00|01:00:00|02:00:00|64\n"
    "2|bob|debug|high|COMPLETED|2024-03-01T12:10:00|2024-03-01T13:00:00|00:20:00|00:30:00|32\n"
)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "jobs.txt"
    path.write_text(LOG)
    return str(path)


@pytest.mark.parametrize("preemption", ["partition:debug>batch", "qos:high>low"])
def test_a_schedule(log: str, tmp_path: Path, preemption: str) -> None:
    """By hand: job 2 stops job 1, which begins anew once it has ended."""
    table = tmp_path / "jobs.csv"
    asked = ["simulate", log, "--processors", "64", "--preemption", preemption]
    done = CliRunner().invoke(app, [*asked, "--output", str(table)])
    assert done.exit_code == 0, done.output
    jobs = pd.read_csv(table)
    assert jobs["start_time"].tolist() == [1800, 600]
    assert jobs["restarts"].tolist() == [1, 0]
    assert jobs["lost_core_seconds"].tolist() == [600 * 64, 0]


def test_an_explanation_says_who_stopped_a_job(log: str) -> None:
    asked = ["explain", log, "--processors", "64", "--preemption", "qos:high>low", "--job", "1"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "stopped 10 min after it came, for job 2, when it had run for 10 min" in done.stdout
    (stop,) = json.loads(CliRunner().invoke(app, [*asked, "--format", "json"]).stdout)["stops"]
    assert (stop["how"], stop["began"], stop["stopped"]) == ("requeued", 0, 600)
    assert (stop["jobs"], stop["nodes"]) == ([2], [])


def test_with_and_without(log: str) -> None:
    asked = ["compare", log, "--processors", "64", "--scheduler", "easy", "--format", "json"]
    given = ["none", "partition:debug>batch", "partition:debug>batch,cancel"]
    done = CliRunner().invoke(app, asked + [x for one in given for x in ("--preemption", one)])
    assert done.exit_code == 0, done.output
    metrics = json.loads(done.stdout)["results"]
    assert [one["max_wait_s"] for one in metrics] == [3000, 1800, 0]
    assert [one.get("lost_runs") for one in metrics] == [None, 1, 0]
    assert [one.get("cancelled_jobs") for one in metrics] == [None, None, 1]


def test_jobs_are_not_suspended(log: str) -> None:
    asked = ["simulate", log, "--processors", "64", "--preemption", "qos:high>low,suspended"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 1
    assert (
        "unknown mode 'suspended'; did you mean 'suspend'? known are requeue, cancel, suspend"
        in done.output
    )
