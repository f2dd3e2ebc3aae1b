"""Preemption on the command line: what-ifs, what is written, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from commands import as_json, succeed

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
    succeed(*asked, "--output", table)
    jobs = pd.read_csv(table)
    assert jobs["start_time"].tolist() == [1800, 600]
    assert jobs["restarts"].tolist() == [1, 0]
    assert jobs["lost_core_seconds"].tolist() == [600 * 64, 0]


def test_an_explanation_says_who_stopped_a_job(log: str) -> None:
    asked = ["explain", log, "--processors", "64", "--preemption", "qos:high>low", "--job", "1"]
    text = succeed(*asked).stdout
    assert "stopped 10 min after it came, for job 2, when it had run for 10 min" in text
    (stop,) = as_json(*asked)["stops"]
    assert (stop["how"], stop["began"], stop["stopped"]) == ("requeued", 0, 600)
    assert (stop["jobs"], stop["nodes"]) == ([2], [])


def test_with_and_without(log: str) -> None:
    asked = ["compare", log, "--processors", "64", "--scheduler", "easy"]
    given = ["none", "partition:debug>batch", "partition:debug>batch,cancel"]
    metrics = as_json(*asked, *(x for one in given for x in ("--preemption", one)))["results"]
    assert [one["max_wait_s"] for one in metrics] == [3000, 1800, 0]
    assert [one.get("lost_runs") for one in metrics] == [None, 1, 0]
    assert [one.get("cancelled_jobs") for one in metrics] == [None, None, 1]
