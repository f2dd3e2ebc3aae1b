"""``hpcgym suite``."""

from __future__ import annotations

import csv
import io
import shutil

import numpy as np
import pytest
from commands import as_json, run, succeed


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two submissions of the small tasks."""
    folder = tmp_path_factory.mktemp("made")
    for agent in ("easy", "saf"):
        succeed("suite", "run", "--agent", agent, "--tasks", "mini", "--output", folder / agent)
    return folder


def test_the_list_says_what_is_here():
    rows = {row["task"]: row for row in as_json("suite", "list")}
    assert rows["mini-select"]["frozen"]
    assert rows["mini-select"]["here"]
    assert rows["mini-select"]["environment"] == "JobSelection-v1"
    assert not rows["hpc2n-order"]["frozen"]
    assert rows["hpc2n-order"]["digest"] is None
    assert "mini-weights" in succeed("suite", "list").stdout


def test_a_run_says_the_mean_of_each_task(made):
    result = succeed("suite", "run", "--agent", "saf", "--tasks", "mini-order", "--output",
                     made / "saf")  # fmt: skip
    assert "has 1 of these tasks already" in result.stderr
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == [
        "mini-select", "mini-order", "mini-weights",
    ]  # fmt: skip
    assert "over 12 slices" in result.stdout


def test_a_submission_that_was_changed_has_no_score(made, tmp_path):
    wrong = tmp_path / "wrong"
    shutil.copytree(made / "easy", wrong)
    arrays = dict(np.load(wrong / "schedules.npz"))
    arrays["mini-order/0/0/start"][-1] += 1
    np.savez_compressed(wrong / "schedules.npz", **arrays)
    result = run("suite", "report", made / "saf", wrong)
    assert result.exit_code == 1
    assert "easy: mini-order is not verified: window 0000, seed 0: " in result.stderr
    (row,) = (line for line in result.stdout.splitlines() if line.startswith("easy"))
    assert row.split()[1] == "-"


@pytest.mark.slow
def test_reports_in_each_form(made):
    folders = (made / "easy", made / "saf")
    result = succeed("suite", "report", *folders)
    assert "hpcgym-suite-v1 · 3 tasks" in result.stdout
    assert "3 of 3" in result.stdout
    assert "verified: proved possible for these jobs" in result.stdout.splitlines()[-1]
    facts = as_json("suite", "report", *folders)
    assert [row["agent"] for row in facts["agents"]] == ["saf", "easy"]
    assert len(facts["by_task"]) == 6
    text = succeed("suite", "report", *folders, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["task"] for row in rows].count("all") == 2
    assert len(rows) == 8
    latex = succeed("suite", "report", *folders, "--format", "latex").stdout
    assert latex.startswith(r"\begin{tabular}")
