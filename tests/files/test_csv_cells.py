"""Names of logs in CSV: no formulas of a spreadsheet, and the same names when they are read."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drawing import given, strategies

from hpcgym import agents
from hpcgym.files.tables import csv_frame, csv_rows, write_csv_frame
from hpcgym.files.writing import csv_cell, csv_text, of_csv_cell
from hpcgym.machine.speedups import Heatmap, read_speedups, write_speedups
from hpcgym.workload import from_pandas, load_workload, write_table

#: What is written of a text that a spreadsheet would compute.
COMPUTED = {
    "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0",
    '=HYPERLINK("http://x","a")': '\'=HYPERLINK("http://x","a")',
    "+1+2": "'+1+2",
    "@SUM(1)": "'@SUM(1)",
    "-2+3": "'-2+3",
    "-cmd": "'-cmd",
    "\t=1": "'\t=1",
    "\r=1": "'\r=1",
    "\uff1d1": "'\uff1d1",
    "'=1": "''=1",
    "''@x": "'''@x",
}
#: What is written as it is.
PLAIN = ("ann", "o'neil", "'ann", "-", "-5", "-0.5", "-1e-05", "-1.5E+300", "-inf", "a=1", "")


@pytest.mark.parametrize(("text", "cell"), [*COMPUTED.items(), *zip(PLAIN, PLAIN, strict=True)])
def test_a_cell_is_no_formula_and_is_read_as_it_was(text: str, cell: str) -> None:
    assert csv_cell(text) == cell
    assert of_csv_cell(cell) == text


@given(strategies.lists(strategies.sampled_from("'=+-@5a\t"), max_size=6))
def test_each_text_is_read_as_it_was(letters: list[str]) -> None:
    text = "".join(letters)
    cell = csv_cell(text)
    assert of_csv_cell(cell) == text
    assert cell[:1] not in ("=", "+", "@", "\t")


@pytest.mark.parametrize("value", [-5, -0.5, np.float64(-1.5), True, None, -(2**60)])
def test_numbers_stay_numbers(value: Any) -> None:
    assert csv_cell(value) is value


def test_rows_of_results(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(csv_text([{"user": "=1+1", "=gain": -0.25}, {"user": "+x"}]))
    assert path.read_text() == "user,'=gain\n'=1+1,-0.25\n'+x,\n"
    assert [row for _, row in csv_rows(path, "CSV")] == [
        ["user", "=gain"], ["=1+1", "-0.25"], ["+x", ""],
    ]  # fmt: skip


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    table = pd.DataFrame({"user": ["=1+1", None, "ann"], "x": [-1.5, 2.0, -3.0], "=n": [-1, 2, 3]})
    before = table.copy()
    with path.open("w") as file:
        write_csv_frame(table, file)
    assert path.read_text() == "user,x,'=n\n'=1+1,-1.5,-1\n,2.0,2\nann,-3.0,3\n"
    pd.testing.assert_frame_equal(table, before)
    pd.testing.assert_frame_equal(csv_frame(path), table)
    out = io.StringIO()
    write_csv_frame(table[:1].set_index("user"), out, index=True)
    assert out.getvalue() == "user,x,'=n\n'=1+1,-1.5,-1\n"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_jobs_have_the_names_that_they_had(ending: str, tmp_path: Path) -> None:
    names = [name for name in COMPUTED if name.isprintable()]
    frame = pd.DataFrame({"submit_time": range(len(names)), "run_time": 5, "requested_time": 9})
    frame = frame.assign(requested_processors=1, user=names, code=names[::-1], queue_name=names)
    jobs = from_pandas(frame, processors=4)
    write_table(jobs, tmp_path / f"jobs{ending}")
    again = load_workload(tmp_path / f"jobs{ending}", "none", processors=4)
    assert [line.partition(" ")[2] for line in again.header["User"]] == names
    assert again.header == jobs.header
    if ending == ".csv":
        with (tmp_path / "jobs.csv").open(newline="") as file:
            users = [row["user"] for row in csv.DictReader(file)]
        assert users == [COMPUTED[name] for name in names]


def test_speedups_have_the_codes_that_they_had(tmp_path: Path) -> None:
    codes = ("=1+1", "'@a", "lu")
    write_speedups(Heatmap(codes, np.full((3, 3), 1.25)), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().splitlines()[1].startswith("'=1+1,")
    assert read_speedups(tmp_path / "a.csv").codes == codes


def test_numbers_of_a_training_stay_what_they_are(tmp_path: Path) -> None:
    past = [{"steps": "5", "gain": "-0.1"}]
    log = agents.practice.csv_log(tmp_path / "a.csv", past)
    log(10, {"gain": float("nan"), "loss": np.float64(-1e-05)})
    assert (tmp_path / "a.csv").read_text() == "steps,gain,loss\n5,-0.1,\n10,nan,-1e-05\n"
