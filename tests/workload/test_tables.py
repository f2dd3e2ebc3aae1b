"""Tables of jobs: CSV, JSON, Parquet and data frames; their names, dates, units and faults."""

from __future__ import annotations

import gzip
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drawing import given, settings
from drawing import strategies as st
from mistakes import mistakes_of, why_not

from hpcgym import load_workload
from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.machine import Cluster
from hpcgym.names import JOB_COLUMNS
from hpcgym.workload import Workload, from_pandas, read_swf, read_table, write_table
from hpcgym.workload.columns import kind_of
from hpcgym.workload.model import REORDERED
from hpcgym.workload.partitions import expected_waits

pytestmark = pytest.mark.filterwarnings("ignore:.*does not say how large its machine was")

LARGE = "dropped: line with a number too large"
FRACTION = "dropped: line with a fraction where only whole numbers make sense"
TEXT = "dropped: line with text in a numeric field"


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"submit_time": [0, 3, 5], "run_time": [10, 20, 30], **columns})


def read(folder: Path, content: Any, *, name: str = "jobs.csv", **options: Any) -> Workload:
    """Read what a file holds: a text, bytes, or what is written as JSON."""
    path = folder / name
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, **options)


def as_text(frame: pd.DataFrame, name: str) -> str:
    text = frame.to_csv(index=False) if "csv" in name else frame.to_json(orient="records")
    assert isinstance(text, str)
    return text


# --- Values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "Int64", "int64[pyarrow]", "object"])
def test_missing_values_become_minus_one_and_are_counted(dtype: str) -> None:
    run_time = pd.Series([10, None, 30], dtype=dtype)
    cpu = [1, np.nan, 2.5]
    workload = from_pandas(frame(run_time=run_time, average_cpu_time=cpu), processors=8, name="me")
    assert workload.run_time.tolist() == [10, -1, 30]
    assert workload.average_cpu_time.tolist() == [1, -1, 2.5]
    assert (workload.user_id == -1).all()  # a column that is not there
    assert (workload.name, workload.processors) == ("me", 8)
    assert workload.cleaning == {
        "repaired: missing run_time set to -1": 1,
        "repaired: missing average_cpu_time set to -1": 1,
    }


def test_jobs_without_numbers_get_those_of_their_rows() -> None:
    columns = {"submit_time": [5, 0, 3], "run_time": [1.5, "x", 2.49]}
    workload = from_pandas(frame(**columns), errors="skip", processors=8)
    assert workload.job_number.tolist() == [3, 1]
    assert workload.run_time.tolist() == [2, 2]
    assert workload.cleaning == {
        REORDERED: 1,
        TEXT: 1,
        "repaired: run_time rounded to a whole number": 2,
    }
    numbered = from_pandas(frame(job_number=[7, None, 9]), processors=8)
    assert numbered.job_number.tolist() == [7, -1, 9]


def with_value(column: str, value: str) -> list[dict[str, Any]]:
    """Return four rows of jobs, of which the third has this in a column."""
    good = {"submit_time": 0, "run_time": 60, "requested_processors": 2, "user_id": 1}
    units = {"units": 1, "core": 2} if column in ("core", "gpu", "mem") else {}
    usual = {column: 1 if column != "preceding_job" else "1 2", **good, **units}
    return [usual, usual, {**usual, column: value}, usual]


def in_csv(rows: list[dict[str, Any]]) -> str:
    return "\n".join(",".join(map(str, row)) for row in [[*rows[0]], *(r.values() for r in rows)])


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("submit_time", ["inf", "1e999", "-9007199254740994"], LARGE),
        ("run_time", ["-inf", "9007199254740993"], LARGE),
        ("user_id", ["9" * 23, "9223372036854775808", "1e19"], LARGE),
        ("requested_processors", ["2.5"], FRACTION),
        ("run_time", ["True", "10:x"], TEXT),
        ("submit_time", ["x"], TEXT),
        ("preceding_job", ["1 0", "1 2.5"], TEXT),
        ("slowdown", ["0.8"], "dropped: line with slowdown out of its limits"),
        ("killed", ["2"], "dropped: line with killed out of its limits"),
        ("core", ["-1"], "dropped: line with core out of its limits"),
        ("gpu", ["0.5"], FRACTION),
        ("mem", ["16G"], TEXT),
        ("requested_memory", ["16 GB"], TEXT),
    ],
)
@pytest.mark.parametrize("form", ["csv", "json", "frame"])
def test_a_wrong_row_is_skipped_and_counted(
    tmp_path: Path, form: str, column: str, values: list[str], reason: str
) -> None:
    for rows in (with_value(column, value) for value in values):
        if form == "frame":
            workload = from_pandas(pd.DataFrame(rows), processors=4, errors="skip")
        else:
            content = in_csv(rows) if form == "csv" else rows
            workload = read(tmp_path, content, name=f"jobs.{form}", processors=4, errors="skip")
        assert workload.job_number.tolist() == [1, 2, 4]
        assert workload.cleaning == {reason: 1}


@settings(max_examples=200)
@given(
    column=st.sampled_from(
        [*(c for c in JOB_COLUMNS if c != "requested_processors"), "units", "core", "gpu"]
    ),
    beyond=st.integers(-2, 2),
    low=st.booleans(),
)
def test_a_column_holds_what_it_can(column: str, beyond: int, low: bool) -> None:
    """The least and the most of each column, and its neighbours, as tables and workloads see them.

    In whole numbers; a DataFrame of integers keeps them exact.
    """
    kind = kind_of(column)
    bound = kind.lowest if low else kind.highest
    value = int(np.clip(bound, -1e6, 1e6) if np.isinf(bound) else bound) + beyond
    if not -(2**63) <= value < 2**63:
        return
    table = {"submit_time": [0], "units": [1], "core": [1], "gpu": [1], column: [value]}
    columns = {name: values for name, values in table.items() if name in JOB_COLUMNS}
    units = {"units": table["units"], "per_unit": {name: table[name] for name in ("core", "gpu")}}
    for make in (
        lambda: from_pandas(pd.DataFrame(table), processors=4),
        lambda: Workload.from_columns(columns, processors=4, **units),
    ):
        if kind.lowest <= value <= kind.highest or (value == -1 and kind.unknown):
            workload = make()
            held: Any = {**workload.columns, "units": workload.units, **workload.per_unit}[column]
            assert (held.tolist(), workload.cleaning) == ([value], {})
        else:
            assert re.search(rf"column '?{column}'?.* is {value}", why_not(make))


def test_a_row_with_two_faults_counts_once() -> None:
    faulty = pd.DataFrame({"submit_time": [0, np.inf], "run_time": [1, 2], "user_id": [1, 2.5]})
    assert from_pandas(faulty, processors=1, errors="skip").cleaning == {LARGE: 1}


def test_truths_are_no_numbers() -> None:
    mixed = frame(run_time=pd.Series([5, True, np.True_], dtype=object))
    skipped = from_pandas(mixed, processors=1, errors="skip")
    assert (skipped.run_time.tolist(), skipped.cleaning) == ([5], {TEXT: 2})


# --- Columns --------------------------------------------------------------------------------------


def test_names_in_place_of_numbers_are_numbered_and_kept() -> None:
    for names in (["bob", None, "alice"], pd.Categorical(["bob", None, "alice"])):
        workload = from_pandas(frame(user_id=names, queue=["2", 7, "x"]), processors=8)
        assert workload.user_id.tolist() == [1, -1, 2]
        assert workload.queue.tolist() == [1, 2, 3]
        assert workload.header == {"User": ["1 bob", "2 alice"], "Queue": ["1 2", "2 7", "3 x"]}
        assert workload.cleaning == {"repaired: missing user_id set to -1": 1}
    alone = from_pandas(frame(code=["mg", " ", "cg "]), processors=8)
    assert (alone.executable.tolist(), alone.header) == ([1, -1, 2], {"Code": ["1 mg", "2 cg"]})


def test_dates_durations_and_names(tmp_path: Path) -> None:
    text = (
        "submit_time,run_time,requested_time,user_id,partition_name\n"
        "2024-03-31 01:30:00,1-00:00:01,02:00:00,bob,long\n"
        "2024-03-31T03:30:00,10:05.4,600,alice,\n"
        "2024-03-31T00:00:00Z,7,, bob,short\n"
    )
    workload = read(tmp_path, text, processors=8, tz="Europe/Berlin")  # where no clock showed 2 h
    assert workload.submit_time.tolist() == [0, 1800, 5400]
    assert workload.run_time.tolist() == [7, 86_401, 605]
    assert workload.requested_time.tolist() == [-1, 7200, 600]
    assert workload.header == {
        "UnixStartTime": ["1711843200"],
        "TimeZoneString": ["Europe/Berlin"],
        "User": ["1 bob", "2 alice"],
        "Partition": ["1 long", "2 short"],
    }
    untold = read(tmp_path, text, processors=8)
    assert untold.submit_time.tolist() == [0, 5400, 12_600]
    assert untold.header["Note"] == ["times without a time zone, taken for UTC"]
    dates = pd.to_datetime(["2024-01-01", "2024-01-02", None])
    assert from_pandas(frame(submit_time=dates), processors=8).submit_time.tolist() == [
        -1,
        0,
        86400,
    ]


def test_machine_size_is_that_of_the_largest_job() -> None:
    jobs = frame(requested_processors=[1, 4, 2], allocated_processors=[1, 5, 2])
    assert from_pandas(jobs).processors == 5
    assert from_pandas(jobs, processors=64).processors == 64
    assert from_pandas(jobs.assign(wait_time=0)).processors == 8  # all run at once


def test_a_job_larger_than_any_machine_is_dropped_not_the_machine(tmp_path: Path) -> None:
    """Nobody told the size: it was taken to be that of the job, and no simulation could have it."""
    large = 99_999_999_999
    (tmp_path / "jobs.csv").write_text(
        f"submit_time,run_time,requested_processors\n0,60,2\n0,60,{large}\n"
    )
    rest = " -1" * 10
    lines = [f"{k} 0 0 60 {size} -1 -1 {size}{rest}\n" for k, size in ((1, 2), (2, large))]
    (tmp_path / "jobs.swf").write_text("".join(lines))
    for file, plain in (("jobs.csv", read_table), ("jobs.swf", read_swf)):
        with pytest.warns(WorkloadWarning, match="does not say how large its machine was"):
            assert len(plain(tmp_path / file)) == 2
        workload = load_workload(tmp_path / file)
        assert workload.processors == 2
        assert workload.cleaning["dropped: more processors than the machine"] == 1


# --- Lines of CSV ---------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv(tmp_path: Path, end: str) -> None:
    text = end.join(["\ufeffsubmit_time, run_time", "0, 10", "", "3, 20", "5,"])
    workload = read(tmp_path, text, processors=8)
    assert workload.run_time.tolist() == [10, 20, -1]
    assert workload.name == "jobs.csv"
    assert workload.cleaning == {"repaired: missing run_time set to -1": 1}


def test_csv_lines_that_are_skipped_are_counted(tmp_path: Path) -> None:
    text = "submit_time,run_time\n0,1\n1,2,3\n2,x\n3,4,5,6\n,\n4,5\n5\n   \n\n , \n6,\n"
    workload = read(tmp_path, text, errors="skip", processors=8)
    assert workload.submit_time.tolist() == [0, 4, 6]
    assert workload.cleaning == {
        "dropped: line with too few fields": 1,
        "dropped: line without any value": 2,
        "repaired: missing run_time set to -1": 1,
        TEXT: 1,
        "dropped: line with too many fields": 2,
    }
    quoted = 'submit_time,"run_time"\n"0","1"\n"2\n",\n\n3,4\n'
    assert read(tmp_path, quoted, processors=8).run_time.tolist() == [1, -1, 4]


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A file of Parquet in which a job comes at no finite time."""
    pytest.importorskip("pyarrow")
    path = tmp_path / "jobs.parquet"
    frame(submit_time=[0, np.inf, 2]).to_parquet(path)
    return path


def test_a_row_of_parquet_is_skipped(endless: Path) -> None:
    assert len(read_table(endless, processors=4, errors="skip")) == 2


# --- Units, resources and queues ------------------------------------------------------------------


def test_blanks_of_units(tmp_path: Path) -> None:
    text = "submit_time,requested_processors,units,core,gpu\n0,8,2,,1\n1,,,,\n2,,3,2,\n3,5,,,2\n"
    workload = read(tmp_path, text)
    assert workload.units is not None
    assert workload.units.tolist() == [2, 1, 3, 1]
    assert workload.per_unit["core"].tolist() == [4, 1, 2, 5]
    assert workload.per_unit["gpu"].tolist() == [1, 0, 0, 2]
    assert workload.requested_processors.tolist() == [8, 1, 6, 5]
    assert workload.processors == 8


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.json"])
def test_memory_with_its_unit(tmp_path: Path, name: str) -> None:
    memory = ["16 GB", "2tb", "500", None, "1.5 GB", "7MB"]
    text = as_text(pd.DataFrame({"submit_time": range(6), "core": 1, "mem": memory}), name)
    mem = read(tmp_path, text, name=name).per_unit["mem"].tolist()
    assert mem == [16_000, 2_000_000, 500, 0, 1_500, 7]


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.json", "frame", "category"])
def test_queues_of_the_machine_are_found_by_their_names(tmp_path: Path, name: str) -> None:
    machine = Cluster(8, queues={"Long": 9, "debug": 1, "idle": 2})
    table = pd.DataFrame({
        "submit_time": [0, 1, 2, 3], "run_time": 5, "requested_time": 5, "requested_processors": 1,
        "queue": ["long", "debug", None, "Long"],
    })  # fmt: skip
    source: Any = table.astype({"queue": "category"}) if name == "category" else table
    if name.startswith("jobs"):
        source = tmp_path / name
        source.write_text(as_text(table, name))
    workload = load_workload(source, cluster=machine)
    assert workload.queue.tolist() == [1, 2, -1, 3]
    assert workload.header["Queue"] == ["1 long", "2 debug", "3 Long"]
    assert expected_waits(workload, machine.queues).tolist() == [9, 1, 9, 9]
    numbered = load_workload(table.assign(queue=[2, 1, 2, 2]), cluster=machine)
    assert "Queue" not in numbered.header
    with pytest.warns(WorkloadWarning, match="in tables, write names"):
        assert expected_waits(numbered, machine.queues).tolist() == [9, 9, 9, 9]


# --- JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["jobs.json", "jobs.json.gz"])
def test_json_with_the_machine(tmp_path: Path, name: str) -> None:
    jobs = [
        {"submit_time": 0, "run_time": 9, "queue": "debug", "units": 2, "core": 4, "gpu": 1},
        {"submit_time": 1, "run_time": 9, "queue": "long", "core": 3, "mem": 500},
    ]
    content = json.dumps({"processors": 32, "jobs": jobs})
    packed = gzip.compress(content.encode()) if name.endswith("gz") else content
    workload = read(tmp_path, packed, name=name)
    assert (workload.name, workload.processors) == (name, 32)
    assert workload.queue.tolist() == [1, 2]
    assert workload.units is not None
    assert workload.units.tolist() == [2, 1]
    assert workload.per_unit["gpu"].tolist() == [1, 0]
    assert workload.per_unit["mem"].tolist() == [0, 500]
    assert workload.header == {"MaxProcs": ["32"], "Queue": ["1 debug", "2 long"]}
    assert read_table(tmp_path / name, processors=16).processors == 16


def test_a_job_without_a_limit(tmp_path: Path) -> None:
    """It is never expected to end, and so is not known to end when it does."""
    year = 365 * 86_400
    path = tmp_path / "jobs.csv"
    path.write_text("submit_time,run_time,requested_time\n0,9,UNLIMITED\n1,9,inf\n2,9,1-00:00:00\n")
    assert load_workload(path, "none", processors=1).requested_time.tolist() == [year, year, 86_400]
    frame = pd.DataFrame({"submit_time": [0, 1], "requested_time": [math.inf, 60.0]})
    assert from_pandas(frame, processors=1).requested_time.tolist() == [year, 60]


test_mistakes = mistakes_of(
    globals(), sys, write_table, errors=WorkloadError, fixtures=("endless", "monkeypatch")
)
