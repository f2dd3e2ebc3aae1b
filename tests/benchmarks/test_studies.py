"""What the published studies share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpcgym.benchmarks.studies.markdown import (
    check_writable,
    folder_name,
    table_text,
    write_csv,
    write_text,
)
from hpcgym.benchmarks.studies.pictures import save_picture
from hpcgym.benchmarks.studies.progress import no_progress
from hpcgym.benchmarks.studies.spread import run_all
from hpcgym.errors import HpcgymError
from hpcgym.report.canvas import new_figure


def test_tables_are_for_people() -> None:
    table = pd.DataFrame(
        {
            "what": ["a|b", None],
            "configurations": [1200, 3],
            "ours": [1234.567, np.nan],
            "ours / paper": [1.23456, 1.0],
            "gain %": [12.34, -0.06],
        }
    )
    assert table_text(table).splitlines() == [
        "| what | configurations | ours | ours / paper | gain % |",
        "|---|---:|---:|---:|---:|",
        "| a\\|b | 1,200 | 1,234.57 | 1.235 | +12.3 |",
        "|  | 3 |  | 1.000 | -0.1 |",
    ]


def test_files_have_all_digits_and_safe_names(tmp_path: Path) -> None:
    write_csv(pd.DataFrame({"x": [1 / 3]}), tmp_path / folder_name("a, b/c") / "t.csv")
    assert (tmp_path / "a__b_c" / "t.csv").read_text() == f"x\n{1 / 3!r}\n"


def test_what_cannot_be_written_is_said() -> None:
    for write in (
        lambda path: write_csv(pd.DataFrame({"x": [1]}), path),
        lambda path: save_picture(new_figure(1, 1), path),
        check_writable,
    ):
        with pytest.raises(HpcgymError, match="/dev/null/x"):
            write(Path("/dev/null/x/y"))


def test_a_report_stays_until_another_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study" / "report.md"
    check_writable(path)
    assert list(tmp_path.rglob("*")) == [path.parent]
    write_text("whole", path)
    check_writable(path)

    def torn(path: Path, text: str) -> None:
        with path.open("w") as file:
            file.write(text[:1])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", torn)
    with pytest.raises(KeyboardInterrupt):
        write_text("another", path)
    assert [(one, one.read_text()) for one in path.parent.iterdir()] == [(path, "whole")]


def half(task: dict[str, Any]) -> dict[str, Any]:
    if task["x"] % 2:
        raise ValueError("odd")
    return {"half": task["x"] // 2}


def test_a_task_that_fails_is_an_error_and_the_others_are_kept(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    def note(what: str, done: int, total: int) -> None:
        told.append((what, done, total))

    given: Any = {"of": "halves", "what": "halving", "progress": note}
    tasks = [{"x": x} for x in (2, 4, 5)]
    with pytest.raises(HpcgymError, match="1 of 3 halves failed"):
        run_all(half, tasks, tmp_path, "serial", None, **given)
    assert told[0] == ("halving", 0, 3)
    again = run_all(
        half, tasks[:2], tmp_path, "serial", None, of="halves", what="", progress=no_progress
    )
    assert (again.done, again.new) == (2, 0)
