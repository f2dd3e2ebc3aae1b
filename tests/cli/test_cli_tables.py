"""What is printed: tables on terminals of all widths, and in all forms; means."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

import pandas as pd
import pytest

from hpcgym.cli.means import MeansTable, means_of
from hpcgym.cli.tables import Format, Sheet, of_frame, show
from hpcgym.report.cells import Table

NAMES = ("a scheduler with a rather long name", "saf")
NUMBERS = ("1,234,567", "0.0001234", "1.000 to 13.10", "99.99")
ROWS = [[name, *NUMBERS[:3], (NUMBERS[3], name == "saf")] for name in NAMES]
TABLE = Table(("policy", "mean\nwait", "p", "95 %\ninterval", "utilization"), ROWS, title="All")
SHEET = Sheet(["A log", "its jobs"], [TABLE], ["a note"])


class Terminal(io.StringIO):
    """A terminal of some width."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [1, 20, 59, 120])
def test_no_number_is_cut_on_any_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    SHEET.print()
    text = out.getvalue()
    assert "…" not in text
    assert all(text.count(number) == 2 for number in NUMBERS)
    assert text.count("99.99*") == 1
    assert any(line.startswith("saf ") for line in text.splitlines())


@pytest.mark.parametrize("width", [20, 59, 120])
def test_all_words_around_tables_fit_a_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those above, titles, and notes of the second table, too; elsewhere a line stays one."""
    words = [" ".join(["gain: the mean over slices of log(easy / policy) of mean BSLDs;"] * 4)]
    table = Table(("a",), [["1"]], title=words[0])
    sheet = Sheet(words, [table, table], words)
    sheet.print()
    assert capsys.readouterr().out.count(words[0]) == 4
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    sheet.print()
    lines = re.sub("\x1b\\[\\d+m", "", out.getvalue()).splitlines()  # without bold letters
    assert max(map(len, lines)) <= width
    assert " ".join(line.strip() for line in lines).count(words[0]) == 4


def test_each_form_has_the_same_cells(capsys: pytest.CaptureFixture[str]) -> None:
    facts: dict[Format, Any] = {}
    for form in Format:
        show(form, lambda: SHEET, lambda: [{"a": 1.5, "b": None}], lambda: {"a": float("nan")})
        facts[form] = capsys.readouterr()
    assert facts[Format.json].out == '{\n  "a": null\n}\n'
    assert facts[Format.csv].out == "a,b\n1.5,\n"
    assert f"| saf | {' | '.join(NUMBERS[:3])} | **99.99** |" in facts[Format.markdown].out
    assert r"& \textbf{99.99} \\" in facts[Format.latex].out
    assert facts[Format.markdown].err == facts[Format.latex].err == "a note\n"
    lines = [line.rstrip() for line in facts[Format.table].out.splitlines()]
    assert lines[:4] == ["A log", "its jobs", "", "All"]
    assert lines[-1] == "a note"
    page = SHEET.page({"hpcgym": "1", "date": "now", "command": None, "files": {}, "workloads": []})
    assert page.count("99.99 ★") == 1
    assert all(page.count(text) >= 1 for text in (*NUMBERS, "A log", "its jobs", "a note"))


def test_data_have_words_before_numbers() -> None:
    frame = pd.DataFrame({"jobs": [12345, 2], "ratio / easy": [0.5, float("nan")]})
    frame = frame.assign(here=[True, False], name=["a", None], none=None)
    table = of_frame(frame)
    assert (table.headings, table.words) == (["here", "name", "jobs", "ratio / easy"], 2)
    assert table.rows == [["yes", "a", "12,345", "0.500"], ["no", "-", "2", "-"]]


def test_only_means_over_all_jobs_are_the_best() -> None:
    rows = pd.DataFrame(
        {
            "workload": "w",
            "seed": [0, 1, 0, 1, 0],
            "scheduler": ["easy", "easy", "spf", "spf", "saf"],
            "mean_wait_s": [10.0, 10.0, 8.0, 8.0, 5.0],
        }
    )
    sheet = means_of(rows, "", MeansTable(metric=["mean_wait_s"])).sheet
    marked = [(row[1][0], row[2][0], row[3][1]) for row in sheet.tables[0].cells]
    assert marked == [("easy", "2", False), ("spf", "2", True), ("saf", "1 of 2", False)]
    assert any("are means over other jobs" in note for note in sheet.below)


def test_means_of_ratios_say_of_how_many() -> None:
    rows = pd.DataFrame(
        {
            "workload": "w",
            "seed": [0, 1, 0, 1],
            "scheduler": ["easy", "easy", "saf", "saf"],
            "mean_wait_s": [0.0, 10.0, 5.0, 20.0],
        }
    )
    asked = MeansTable(metric=["mean_wait_s"], normalise="easy")
    (shown,) = means_of(rows, "", asked).sheet.tables
    place = shown.heads.index("ratios")
    assert [row[place][0] for row in shown.cells] == ["1", "1"]
    (full,) = means_of(rows.assign(mean_wait_s=1.0), "", asked).sheet.tables
    assert "ratios" not in full.heads
