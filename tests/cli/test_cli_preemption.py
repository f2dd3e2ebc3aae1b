"""Preemption on the command line: what-ifs, what is written, and what cannot be."""

from __future__ import annotations

from pathlib import Path

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


def test_an_explanation_says_who_stopped_a_job(log: str) -> None:
    asked = ["explain", log, "--processors", "64", "--preemption", "qos:high>low", "--job", "1"]
    text = succeed(*asked).stdout
    assert "stopped 10 min after it came, for job 2, when it had run for 10 min" in text
    (stop,) = as_json(*asked)["stops"]
    assert (stop["how"], stop["began"], stop["stopped"]) == ("requeued", 0, 600)
    assert (stop["jobs"], stop["nodes"]) == ([2], [])
