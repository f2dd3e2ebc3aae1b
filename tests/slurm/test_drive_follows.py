"""A queue that is driven by the policy under which the futures of its Slurm are best."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_slurm import NOW, ZERO, fake_slurm

from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.cli import app
from hpcgym.drive.driving import order_rules
from hpcgym.forecasting.state import SlurmStates
from hpcgym.slurm.programs import SlurmPrograms
from hpcgym.twin import following
from hpcgym.twin.following import Follower
from hpcgym.twin.policies import OTHERS, UnderPolicy

RULES = find_scheduler("easy:backfill=slurm:bf_window=10080")
#: The whole machine runs a job; a long job for all of it came first, then short ones for a node.
LONG = f"9|9|32|24:00:00|{ZERO - 900}|9|0|eve|(null)|(null)|all|PD|N/A|N/A||Priority"
SHORT = "\n".join(
    f"{k}|{k}|8|10:00|{ZERO - 800 + k}|5|0|bob|(null)|(null)|all|PD|N/A|N/A||Priority"
    for k in range(20, 32)
)
BUSY = f"101|101|32|1:00:00|{ZERO}|1|0|bob|(null)|(null)|all|R|{ZERO}|{ZERO + 3600}|n[1-4]|None"
TOLD = "\n".join([BUSY, LONG, SHORT, ""])


def for_drive() -> str:
    """What squeue says of the waiting jobs as drive asks it."""
    rows = [line.split("|") for line in TOLD.splitlines()[1:]]
    return "".join("|".join([row[0], row[2], *row[3:11]]) + "\n" for row in rows)


def busy_slurm(folder: Path) -> Path:
    """A Slurm whose squeue answers drive and twin, each as it asks."""
    (folder / "a").write_text(TOLD)
    (folder / "b").write_text(for_drive())
    says = f'#!case "$*" in *%N*) cat {folder}/a;; *) cat {folder}/b;; esac'
    made: Path = fake_slurm(folder / "slurm", squeue=says, scontrol=f"#!cat >> {folder}/said")
    return made


def follower(folder: Path, told: list[str], **more: Any) -> Follower:
    states = SlurmStates(SlurmPrograms(folder))
    return Follower(states, RULES, find_scheduler("fcfs"), 0, told.append, futures=8, **more)


def test_a_policy_that_is_better_in_nearly_all_futures_is_followed(tmp_path: Path) -> None:
    told: list[str] = []
    made = follower(busy_slurm(tmp_path), told)
    chosen = made.choose()
    assert chosen is not None
    best = made.last[0]
    assert best.policy == chosen.describe()["policy"] != "fcfs"
    assert best.less_p10 > 0
    assert told[0].startswith(f"{best.policy} in place of fcfs: jobs wait ")
    assert chosen.describe()["backfill"] == RULES.describe()["backfill"]
    assert made.choose() is None  # it is the present one now
    assert next(row for row in made.last if row.policy == best.policy).less_p50 == 0


@pytest.mark.parametrize("less", [(0.0, 9.0), (-1.0, 9.0), (5.0, 9.0)])
def test_another_policy_must_be_better_in_nine_of_ten_futures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, less: tuple[float, float]
) -> None:
    rows = [UnderPolicy("saf", 10, less[0], less[1], 20), UnderPolicy("fcfs", 12, 0, 0, 0)]
    monkeypatch.setattr(following, "under_policies", lambda *_: rows)
    chosen = follower(busy_slurm(tmp_path), []).choose()
    assert (chosen is not None) == (less[0] > 0)


def test_what_slurm_does_not_answer_changes_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    folder = busy_slurm(tmp_path)
    made = follower(folder, told)
    fake_slurm(folder, squeue="#!exit 1")
    assert made.choose() is None
    assert told[0].startswith("no futures: ")


def test_drive_may_follow_each_of_these_policies() -> None:
    for name in OTHERS:
        assert order_rules(RULES.but(policy=name)).describe()["policy"] == name


def test_drive_follows_the_best_policy_and_by_itself_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = busy_slurm(tmp_path)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    sleep = time.sleep

    def asks_no_more(seconds: float) -> None:
        if seconds >= 1:  # shorter ones are of waiting for a program's end
            raise KeyboardInterrupt
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", asks_no_more)
    monkeypatch.setattr(time, "time", lambda: NOW)
    log = tmp_path / "drive.jsonl"
    first: list[dict[str, Any]] = []
    for more in ([], ["--follow", "1h"]):
        command = ["drive", "--policy", "fcfs", "--log", str(log), "--force", *more]
        shown = CliRunner().invoke(app, command)
        assert shown.exit_code == 130, shown.output
        first.append(json.loads(log.read_text().splitlines()[0])["set"])
    assert " in place of fcfs: " in shown.stderr
    alone, followed = first
    assert max(alone, key=alone.__getitem__) == "9"  # it came first
    assert min(followed, key=followed.__getitem__) == "9"  # and is the longest
