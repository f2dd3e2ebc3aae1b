"""The command line on machines whose nodes fail."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpcgym import load_workload, simulate
from hpcgym.cli import app
from hpcgym.cluster import failures_of, find_cluster

pytestmark = pytest.mark.slow

JOBS = "lublin:jobs=200,processors=192,seed=1,load=1.3"
COMMAND = ("simulate", JOBS, "--cluster", "taurus")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "failures.csv"
    failures_of(find_cluster("taurus"), 10**6, mtbf=2e5, repair=7200, seed=1).write(path)
    return path


def test_an_explanation_says_which_node_failed(file: Path) -> None:
    result = simulate(load_workload(JOBS), cluster="taurus", failures=file)
    job = int(result.workload.job_number[result.restarts.argmax()])
    words = ("explain", JOBS, "--cluster", "taurus", "--failures", str(file), "--job", str(job))
    shown = CliRunner().invoke(app, [*words, "--format", "json"])
    assert shown.exit_code == 0, shown.output
    stops = json.loads(shown.stdout)["stops"]
    assert len(stops) == result.restarts.max() > 0
    assert all(one["nodes"] and one["how"] == "failed" for one in stops)


def test_failures_of_a_file(file: Path, tmp_path: Path) -> None:
    table, schedule = file, tmp_path / "jobs.csv"
    words = ("--failures", str(table), "--format", "json", "--output", str(schedule))
    shown = CliRunner().invoke(app, [*COMMAND, *words])
    assert shown.exit_code == 0, shown.output
    result = simulate(load_workload(JOBS), cluster="taurus", failures=table)
    told = json.loads(shown.stdout)
    assert told["lost_runs"] == result.restarts.sum() > 0
    assert told["lost_core_seconds"] == result.lost_core_seconds.sum()
    with schedule.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [int(row["restarts"]) for row in rows] == result.restarts.tolist()


def test_the_table_shows_what_was_lost(file: Path) -> None:
    shown = CliRunner().invoke(app, [*COMMAND, "--failures", str(file)])
    assert shown.exit_code == 0, shown.output
    assert "lost core time" in shown.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--failures", "nowhere.csv"), "nowhere.csv"),
        (("--failures", "FILE", "--cap", "percent=80"), "do not go together"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(file: Path, words: tuple[str, ...], told: str) -> None:
    given = [str(file) if word == "FILE" else word for word in words]
    shown = CliRunner().invoke(app, [*COMMAND, *given])
    assert shown.exit_code != 0
    assert told in " ".join(shown.stderr.split())
