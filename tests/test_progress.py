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
    told = capsys.readouterr().err.splitlines()
    assert told == [f"{k} of 1,000: vector {k}" for k in (30, 60, 90)]
