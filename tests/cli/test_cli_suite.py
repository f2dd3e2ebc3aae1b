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
    """Two submissions of small tasks."""
    folder = tmp_path_factory.mktemp("made")
    for agent in ("easy", "saf"):
        succeed(
            "suite",
            "run",
            "--agent",
            agent,
            "--tasks",
            "mini-order,mini-weights",
            "--output",
            folder / agent,
        )
    return folder


def test_the_list_says_what_is_here():
    rows = {row["task"]: row for row in as_json("suite", "list")}
    assert rows["mini-select"]["here"] == "1 of 1"
    assert rows["mini-select"]["environment"] == "JobSelection-v2"
    assert not rows["mini-select"]["scored"]
    assert rows["zero-shot"]["training"][0].startswith("lublin:")
    assert set(rows["order"]["digests"]) == {
        "KTH-SP2", "SDSC-SP2", "CTC-SP2", "HPC2N", "SDSC-BLUE", "CEA-Curie",
    }  # fmt: skip
    assert "mini-weights" in succeed("suite", "list").stdout


def test_a_run_says_the_mean_of_each_log(made):
    result = succeed("suite", "run", "--agent", "saf", "--tasks", "mini-order", "--output",
                     made / "saf")  # fmt: skip
    assert "has all of this already" in result.stderr
    assert [line.split(": mean BSLD")[0] for line in result.stdout.splitlines()] == [
        "mini-order, mini", "mini-weights, mini",
    ]  # fmt: skip


def test_a_submission_that_was_changed_has_no_score(made, tmp_path):
    wrong = tmp_path / "wrong"
    shutil.copytree(made / "easy", wrong)
    path = wrong / "schedules" / "mini-order" / "mini" / "0.npz"
    wait = np.load(path)["0/wait"]
    wait[-1] += 1
    np.savez_compressed(path, **{"0/wait": wait})
    result = run("suite", "report", made / "saf", wrong)
    assert result.exit_code == 1
    assert "easy: mini-order on mini is not verified: seed 0: " in result.stderr
    row = next(line for line in result.stdout.splitlines() if line.startswith("easy"))
    assert row.split()[1] == "-"


def test_reports_in_each_form(made):
    folders = (made / "easy", made / "saf")
    result = succeed("suite", "report", *folders)
    assert result.stdout.startswith("hpcgym-suite-v3")
    assert "verified: proved possible for these jobs" in result.stdout.splitlines()[-1]
    facts = as_json("suite", "report", *folders)
    assert facts["provenance"]["command"][:2] == ["suite", "report"]
    assert [row["agent"] for row in facts["agents"] if row["task"] == "mini-order"] == [
        "saf", "easy",
    ]  # fmt: skip
    text = succeed("suite", "report", *folders, "--by", "log", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["log"] for row in rows} == {"mini"}
    assert len(rows) == len(facts["by_log"]) == 4
    latex = succeed("suite", "report", *folders, "--format", "latex").stdout
    assert r"\begin{tabular}" in latex
