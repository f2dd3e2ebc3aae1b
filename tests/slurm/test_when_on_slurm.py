"""``hpcgym when`` beside a Slurm, of programs that answer as one did."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fake_slurm import NOW, ZERO, fake_slurm

from hpcgym.cli import app

PATH = os.environ["PATH"]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = fake_slurm(tmp_path / "slurm")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{PATH}")
    monkeypatch.setenv("LOGNAME", "eve")
    return folder


def when(*words: str) -> Result:
    return CliRunner().invoke(app, ["when", "--futures", "8", *words])


def rows(*words: str) -> list[dict[str, object]]:
    shown = when(*words, "--format", "json")
    assert shown.exit_code == 0, shown.output
    rows = json.loads(shown.stdout)
    return rows if isinstance(rows, list) else rows["rows"]


def test_my_waiting_jobs_are_shown(slurm: Path) -> None:
    (mine,) = rows()
    assert (mine["job"], mine["user"], mine["processors"]) == (3, "eve", 24)
    assert mine["time_s"] == NOW
    assert mine["slurm_s"] == ZERO + 3600
    assert NOW < mine["p50_s"] <= ZERO + 7300  # type: ignore[operator]
    assert [row["job"] for row in rows("--user", "bob")] == [2]
    shown = when("--user", "zoe").stdout
    assert "no job of zoe waits; --user NAME shows another's" in shown
    assert "3 jobs left out: JobArrayTaskLimit, JobHeldUser" in shown
    assert "1 job known that ended: --past" in shown


def test_a_job_a_script_and_a_new_one(slurm: Path, tmp_path: Path) -> None:
    shown = when("2", "--by", "1d").stdout
    assert "job 2 starts in" in shown
    assert "Slurm plans it in 58 min" in shown
    assert "by 1d: 100%" in shown
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -n 4 -t 30 -p b\n")
    # on the fourth node, which is free, ahead of the head: at the next backfill pass
    assert rows(str(script))[0]["p50_s"] == NOW + 20
    assert rows("-n", "4", "-t", "30")[0]["p50_s"] == NOW + 20


def test_who_is_new_to_a_slurm_is_nobody_known(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "zoe")
    assert rows("-n", "4", "-t", "30")[0]["p50_s"] == NOW + 20
    assert "no job of zoe is known: as if it were of nobody known" in when("-n4", "-t30").stdout
    assert "user 'zoe'" in when("-n", "4", "-t", "30", "--user", "zoe").stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["7"], "job 7 does not wait for room: JobHeldUser"),
        (["4_2"], "job 4_2 does not wait for room: JobArrayTaskLimit"),
        (["1"], "job 1 runs"),
        (["99"], "job 99 is not in the queue"),
        (["--at", "7d"], "give --log and --at, or neither"),
        (["--log", "KTH-SP2", "--at", "84d", "--past", "x.txt"], "it is of Slurm"),
    ],
)
def test_what_cannot_be_said_is_one_line(slurm: Path, words: list[str], why: str) -> None:
    shown = when(*words)
    assert shown.exit_code != 0
    assert why in " ".join(shown.stderr.split())


def test_a_slurm_that_is_down_is_one_line(slurm: Path) -> None:
    fake_slurm(slurm, squeue="#! echo Unable to contact slurm controller >&2; exit 1")
    shown = when()
    assert shown.exit_code == 1
    assert (
        shown.stderr.strip()
        .splitlines()[-1]
        .endswith(
            "squeue failed: Unable to contact slurm controller;"
            " where there is no Slurm give --log and --at"
        )
    )
