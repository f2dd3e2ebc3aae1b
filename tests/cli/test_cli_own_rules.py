"""Policies and dispatchers of the user's own, by ``module:name``, in single simulations."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import JOBS, as_json, run, succeed

CODE = """
import numpy as np
import hpcgym

def smallest(view):
    return -view.requested * view.processors

def fails(view):
    return view.time // 0

FAILS = hpcgym.Scheduler(policy=fails)
BY_AREA = hpcgym.Scheduler(policy=smallest, backfill_order="spf")

class Counting:
    def __init__(self):
        self.calls = 0

    def __call__(self, view):
        self.calls += 1
        assert self.calls < 500, "it has run before"
        return view.in_order(np.argsort(view.requested, kind="stable"))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the current folder, with a module of rules in it."""
    (tmp_path / "cli_own_rules.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    yield tmp_path
    sys.modules.pop("cli_own_rules", None)


def _rows(found: Any) -> dict[str, float]:
    return {row["scheduler"]["name"]: row["mean_bsld"] for row in found["results"]}


def test_a_function_is_a_policy(here: Path) -> None:
    own = as_json("simulate", JOBS, "--policy", "cli_own_rules:smallest")
    known = as_json("simulate", JOBS, "--policy", "saf")
    assert own["mean_bsld"] == known["mean_bsld"]
    found = as_json("compare", JOBS, "--policy", "saf", "--policy", "cli_own_rules:smallest")
    rows = _rows(found)
    assert rows["cli_own_rules:smallest"] == rows["saf"]


def test_several_are_joined_by_commas(here: Path) -> None:
    (here / "more_own_rules.py").write_text(CODE)
    asked = "cli_own_rules:smallest,more_own_rules:smallest,saf"
    try:
        rows = _rows(as_json("compare", JOBS, "--policy", asked))
    finally:
        sys.modules.pop("more_own_rules", None)
    assert list(rows) == asked.split(",")
    assert len({*rows.values()}) == 1
    said = run("simulate", JOBS, "--policy", asked).stderr
    assert f"{asked} are several policies: hpcgym compare --policy {asked}" in said


def test_a_class_is_a_dispatcher_made_anew_for_each_row(here: Path) -> None:
    own = as_json("simulate", JOBS, "--scheduler", "cli_own_rules:Counting")
    names = ("--scheduler", "fcfs,cli_own_rules:Counting")
    found = as_json("compare", JOBS, *names, "--correction", "requested,kill")
    rows = _rows(found)
    for correction in ("requested", "kill"):
        assert rows[f"cli_own_rules:Counting, correction={correction}"] == own["mean_bsld"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--scheduler", "cli_own_rulez:A"), "there is no module 'cli_own_rulez' in the folder"),
        (("--policy", "cli_own_rules:smalest"), "did you mean 'smallest'?"),
        (("--scheduler", "cli_own_rules:Counting", "--threshold", "5h"), "--threshold"),
    ],
)
def test_mistakes_name_what_was_given(here: Path, given: tuple[str, ...], said: str) -> None:
    done = run("simulate", JOBS, *given)
    assert done.exit_code == 1
    assert given[1] in done.stderr
    assert said in done.stderr


def test_a_file_makes_nobody_run_its_code(here: Path) -> None:
    succeed("simulate", JOBS, "--policy", "cli_own_rules:smallest", "--output", "a.csv")
    (here / "cli_own_rules.py").write_text("raise AssertionError('it was run')")
    sys.modules.pop("cli_own_rules")
    done = run("verify", "a.csv")
    assert done.exit_code == 1
    assert "code of its maker, cli_own_rules:smallest, which is not run here" in done.stdout


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (("simulate", JOBS, "--policy", "cli_own_rules:fails"), "policy"),
        (("simulate", JOBS, "--scheduler", "cli_own_rules:fails"), "dispatcher"),
        (("compare", JOBS, "--scheduler", "easy,cli_own_rules:fails"), "dispatcher"),
        (("explain", JOBS, "--job", "3", "--policy", "cli_own_rules:fails"), "policy"),
    ],
)
def test_what_own_code_raises_is_one_line(here: Path, given: tuple[str, ...], rule: str) -> None:
    done = run(*given)
    assert done.exit_code == 1
    said = f"{rule} cli_own_rules:fails failed: ZeroDivisionError: "
    assert said in done.stderr
    assert done.stderr.rstrip().endswith("(cli_own_rules.py, line 9)")
    assert "Traceback" not in done.stderr


def test_an_evaluation_says_where_own_code_fails(here: Path) -> None:
    own = "cli_own_rules:FAILS"
    done = run("evaluate", own, "--workload", JOBS, "--budget", "0", "--number", "1", "--jobs", 50)
    assert done.exit_code == 1
    told = "cli_own_rules:FAILS failed on 1 of 1 slices: ZeroDivisionError"
    (line,) = (line for line in done.stderr.splitlines() if line.startswith(told))
    assert line.endswith("(cli_own_rules.py, line 9)")


def test_a_scheduler_is_named_as_in_evaluations(here: Path) -> None:
    rows = _rows(as_json("compare", JOBS, "--scheduler", "saf,cli_own_rules:BY_AREA"))
    assert rows["cli_own_rules:BY_AREA"] == rows["saf"]
    own = as_json("simulate", JOBS, "--scheduler", "cli_own_rules:BY_AREA", "--threshold", "5h")
    known = as_json("simulate", JOBS, "--scheduler", "saf:threshold=5h")
    assert own["mean_bsld"] == known["mean_bsld"]
