"""Policies and dispatchers of the user's own, by ``module:name``, in single simulations."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import JOBS, as_json, digests, line, run, succeed

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

OWN = "cli_own_rules"
SAF = ("simulate", JOBS, "--scheduler", "saf")


@pytest.fixture(autouse=True)
def here(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two modules of rules in the current folder."""
    for name in (OWN, "more_own_rules"):
        (here / f"{name}.py").write_text(CODE)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    yield here
    for name in (OWN, "more_own_rules"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (("simulate", JOBS, "--policy", f"{OWN}:smallest"), 1),
        (("simulate", JOBS, "--scheduler", f"{OWN}:BY_AREA"), 1),
        (("compare", JOBS, "--policy", "saf", "--policy", f"{OWN}:smallest"), 2),
        (("compare", JOBS, "--scheduler", f"saf,{OWN}:BY_AREA"), 2),
        (
            ("compare", JOBS, "--policy", f"{OWN}:smallest", "--policy", "more_own_rules:smallest"),
            2,
        ),
    ],
)
def test_rules_of_ones_own_are_as_known_ones(words: tuple[str, ...], rows: int) -> None:
    assert digests(as_json(*words)) == digests(as_json(*SAF)) * rows


def test_rules_change_a_scheduler_of_ones_own() -> None:
    own = as_json("simulate", JOBS, "--scheduler", f"{OWN}:BY_AREA", "--threshold", "5h")
    assert digests(own) == digests(as_json(*SAF, "--threshold", "5h"))


def test_a_class_is_a_dispatcher_made_anew_for_each_row() -> None:
    own = as_json("simulate", JOBS, "--scheduler", f"{OWN}:Counting")
    names = ("--scheduler", f"{OWN}:Counting", "--correction", "requested", "--correction", "kill")
    found = as_json("compare", JOBS, *names)
    rows = [row["scheduler"]["name"] for row in found["results"]]
    assert rows == [f"{OWN}:Counting, correction={one}" for one in ("requested", "kill")]
    assert [row["mean_bsld"] for row in found["results"]] == [own["mean_bsld"]] * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--scheduler", "cli_own_rulez:A"), "there is no module 'cli_own_rulez' in the folder"),
        (("--policy", f"{OWN}:smalest"), "did you mean 'smallest'?"),
        (("--scheduler", f"{OWN}:Counting", "--threshold", "5h"), "--threshold"),
    ],
)
def test_mistakes_name_what_was_given(words: tuple[str, ...], said: str) -> None:
    done = line("simulate", JOBS, *words)
    assert words[1] in done
    assert said in done


def test_a_file_makes_nobody_run_its_code(here: Path) -> None:
    succeed("simulate", JOBS, "--policy", f"{OWN}:smallest", "--output", "a.csv")
    (here / f"{OWN}.py").write_text("raise AssertionError('it was run')")
    sys.modules.pop(OWN)
    done = run("verify", "a.csv")
    assert done.exit_code == 1
    assert f"code of its maker, {OWN}:smallest, which is not run here" in done.stdout


def test_an_evaluation_says_where_own_code_fails() -> None:
    few: Any = ("--workload", JOBS, "--budget", "0", "--number", "1", "--jobs", 50)
    done = run("evaluate", f"{OWN}:FAILS", *few)
    assert done.exit_code == 1
    told = f"{OWN}:FAILS failed on 1 of 1 slices: ZeroDivisionError"
    (said,) = (one for one in done.stderr.splitlines() if one.startswith(told))
    assert said.endswith(f"({OWN}.py, line 9)")
