"""An explanation ends in its time, tries first what had most of the machine, and says the rest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from test_explanation import SMALL, jobs
from typer.testing import CliRunner

import hpcgym
from hpcgym.cli import app
from hpcgym.errors import HpcgymError


def test_without_time_one_job_is_tried_and_the_rest_is_said() -> None:
    """3 had 2 processors for 30 s while 2 waited, 1 had 6 for 40 s: 1 is tried."""
    result = hpcgym.simulate(jobs(*SMALL), "easy")
    told: list[tuple[int, int]] = []
    found = hpcgym.explain(result, 2, seconds=0, progress=lambda *one: told.append(one))
    assert found.others["delay"].dropna().to_dict() == {1: 40}
    assert told == [(0, 2), (1, 2)]
    assert len(found.passes) == 0
    assert found.waited_for == {}
    told = "Why it waited cannot be worked out in 0 s, half of the 0 s that this may take."
    assert told in found.sentences
    assert "1 of them was not tried." in found.sentences


def test_a_time_that_ends_meanwhile_leaves_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each simulation takes a second of 2.5: the last of four jobs is not tried."""
    now = 0.0
    module = sys.modules["hpcgym.explanation.explain"]  # the package has a function of this name
    start = module._start

    def slow(*arguments: Any) -> int:
        nonlocal now
        now += 1
        return start(*arguments)

    monkeypatch.setattr(module, "_start", slow)
    monkeypatch.setattr("hpcgym.explanation.watching.time.monotonic", lambda: now)
    result = hpcgym.simulate(jobs(*((0, k, 50, 50) for k in (1, 2, 3, 4)), (5, 10, 9, 9)), "easy")
    whole = hpcgym.explain(result, 5, seconds=None)
    now = 0.0
    found = result.explain(5, seconds=2.5)
    assert found.others["delay"].notna().to_dict() == {1: False, 2: True, 3: True, 4: True}
    assert found.others["delay"].dropna().equals(whole.others["delay"].loc[[2, 3, 4]])
    assert found.waited_for == whole.waited_for  # the passes took no time


@pytest.mark.parametrize("seconds", [-1, float("nan"), "20", True])
def test_what_is_no_time_is_said(seconds: Any) -> None:
    result = hpcgym.simulate(jobs(*SMALL), "easy")
    with pytest.raises(HpcgymError, match="seconds must be a number of at least 0"):
        hpcgym.explain(result, 2, seconds=seconds)


def test_the_command_says_what_was_not_tried(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    jobs(*SMALL).to_pandas().to_csv(path, index=False)
    given = ["explain", str(path), "--processors", "10", "--job", "2"]
    done = CliRunner().invoke(app, [*given, "--seconds", "0"])
    assert done.exit_code == 0, done.stderr
    assert "1 job could not be tried within 0 s" in done.stderr
    assert "could not be tried" not in CliRunner().invoke(app, given).output
    wrong = CliRunner().invoke(app, ["explain", str(path), "--seconds", "3"])
    assert "--seconds is for one job, with --job" in wrong.stderr
