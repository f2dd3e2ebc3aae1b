"""What is shown of long work where nobody watches a terminal."""

from __future__ import annotations

import pytest

from hpcgym import progress


def test_long_work_is_told_of_in_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each half minute; nothing of what is done before the first."""
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.counting("evaluating", 1000) as step:
        for number in range(100):
            step(f"vector {number}")
            now += 1
    lines = capsys.readouterr().err.splitlines()
    left = {30: "16 min", 60: "16 min", 90: "15 min"}
    assert lines == [f"{k} of 1,000, about {left[k]} left: vector {k}" for k in left]


def test_the_rest_takes_as_long_as_what_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """50 a second from 100 on: at 1,600 the other 1,400 take 28 s."""
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.measuring("looking") as show:
        for done in (100, 1600):
            show(done, 3000)
            now += 30
    assert capsys.readouterr().err.splitlines() == ["looking: 1,600 of 3,000, about 28 s left"]
