"""Tables of jobs: CSV, JSON, Parquet and data frames."""

import gzip
import json
import pickle
import re
import sys

import numpy as np
import pandas as pd
import pytest

from hpcgym import load_workload, simulate
from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.workload import Workload, from_pandas, read_swf, read_table, write_table
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import REORDERED


def frame(**columns):
    return pd.DataFrame({"submit_time": [0, 3, 5], "run_time": [10, 20, 30], **columns})


def read(tmp_path, text, *, name="jobs.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path, processors=options.pop("processors", 8), **options)


def test_missing_columns_become_minus_one():
    workload = from_pandas(frame(average_cpu_time=[1.5, 2.5, 3.5]), processors=8, name="mine")
    assert workload.run_time.tolist() == [10, 20, 30]
    assert workload.average_cpu_time.tolist() == [1.5, 2.5, 3.5]
    assert (workload.user_id == -1).all()
    assert (workload.name, workload.processors, workload.cleaning) == ("mine", 8, {})


def test_jobs_without_numbers_get_those_of_their_rows():
    workload = from_pandas(
        frame(submit_time=[5, 0, 3], run_time=[1, "x", 2]), errors="skip", processors=8
    )
    assert workload.job_number.tolist() == [3, 1]
    assert workload.cleaning[REORDERED] == 1
    numbered = from_pandas(frame(job_number=[7, None, 9]), processors=8)
    assert numbered.job_number.tolist() == [7, -1, 9]


@pytest.mark.parametrize("dtype", ["float64", "Int64", "int64[pyarrow]", "object"])
def test_missing_values_become_minus_one_and_are_counted(dtype):
    run_time = pd.Series([10, None, 30], dtype=dtype)
    workload = from_pandas(frame(run_time=run_time, average_cpu_time=[1, np.nan, 2]), processors=8)
    assert workload.run_time.tolist() == [10, -1, 30]
    assert workload.average_cpu_time.tolist() == [1, -1, 2]
    assert workload.cleaning == {
        "repaired: missing run_time set to -1": 1,
        "repaired: missing average_cpu_time set to -1": 1,
    }


def test_large_numbers_stay_exact():
    workload = from_pandas(frame(user_id=pd.Series([1, 2, 2**63 - 1], dtype="Int64")), processors=8)
    assert workload.user_id.tolist() == [1, 2, 2**63 - 1]


def test_decimals_are_rounded_and_counted():
    workload = from_pandas(frame(run_time=[1.5, 2.49, -1.0]), processors=8)
    assert workload.run_time.tolist() == [2, 2, -1]
    assert workload.cleaning == {"repaired: run_time rounded to a whole number": 2}


def test_names_in_place_of_numbers_are_numbered_and_kept():
    for names in (["bob", None, "alice"], pd.Categorical(["bob", None, "alice"])):
        workload = from_pandas(frame(user_id=names, queue=["2", 7, "x"]), processors=8)
        assert workload.user_id.tolist() == [1, -1, 2]
        assert workload.queue.tolist() == [1, 2, 3]
        assert workload.header == {"User": ["1 bob", "2 alice"], "Queue": ["1 2", "2 7", "3 x"]}
        assert workload.cleaning == {"repaired: missing user_id set to -1": 1}


def test_dates_and_durations(tmp_path):
    text = (
        "submit_time,run_time,requested_time,user_id,partition_name\n"
        "2024-03-31 01:30:00,1-00:00:01,02:00:00,bob,long\n"
        "2024-03-31T03:30:00,10:05.4,600,alice,\n"
        "2024-03-31T00:00:00Z,7,,bob,short\n"
    )
    told = read(tmp_path, text, tz="Europe/Berlin")  # where the hour from 2 on was left out
    assert told.submit_time.tolist() == [0, 1800, 5400]
    assert told.run_time.tolist() == [7, 86_401, 605]
    assert told.requested_time.tolist() == [-1, 7200, 600]
    assert told.header == {
        "UnixStartTime": ["1711843200"],
        "TimeZoneString": ["Europe/Berlin"],
        "User": ["1 bob", "2 alice"],
        "Partition": ["1 long", "2 short"],
    }
    untold = read(tmp_path, text)
    assert untold.submit_time.tolist() == [0, 5400, 12_600]
    assert untold.header["Note"] == ["times without a time zone, taken for UTC"]
    dates = pd.to_datetime(["2024-01-01", "2024-01-02", None])
    assert from_pandas(frame(submit_time=dates), processors=8).submit_time.tolist() == [
        -1,
        0,
        86400,
    ]


def test_any_name_is_read_as_it_was_written(tmp_path):
    names = ["NA", "null", "007", "a, b", 'say "x"', "None", "nan", "1e5", "é", "-1", "#x", "True"]
    lines = [f"{number} {name}" for number, name in enumerate(names)]
    original = Workload.from_columns(
        {"submit_time": range(12), "user_id": range(12), "partition": [*range(11), -1]},
        processors=8,
        header={"User": lines, "Partition": lines},
    )
    for ending in ("csv", "json", "parquet", "csv.gz"):
        if ending == "parquet":
            pytest.importorskip("pyarrow")
        write_table(original, tmp_path / f"a.{ending}")
        again = read_table(tmp_path / f"a.{ending}", processors=8)
        assert again.header["User"] == lines
        assert again.header["Partition"] == lines[:-1]
        assert again.user_id.tolist() == list(range(12))
    # the rest of a line with names is as it was
    text = "submit_time,run_time,user\n0,NA,x\n\n1,5\n"
    with pytest.raises(WorkloadError, match="line 4 has 2 fields, and line 1"):
        read(tmp_path, text)
    assert read(tmp_path, text, errors="skip").run_time.tolist() == [-1]


def test_times_that_are_none(tmp_path):
    for text, problem in {
        "submit_time\n2024-01-01\n5\n": "line 3: column submit_time is '5 .no date.', not a number",
        "submit_time,run_time\n0,00:10:00\n1,10:x\n": "line 3: column run_time is '10:x', not a",
        "submit_time\n2024-13-01\n": "line 2: column submit_time is '2024-13-01', not a number",
    }.items():
        with pytest.raises(WorkloadError, match=problem):
            read(tmp_path, text)
    skipped = read(tmp_path, "submit_time\n2024-01-01\n5\n", errors="skip")
    assert skipped.cleaning == {"dropped: line with text in a numeric field": 1}


def test_machine_size_is_that_of_the_largest_job():
    jobs = frame(requested_processors=[1, 4, 2], allocated_processors=[1, 5, 2])
    assert from_pandas(jobs).processors == 5
    assert from_pandas(jobs, processors=64).processors == 64
    with pytest.raises(WorkloadError, match=r"workload: .*; give processors="):
        from_pandas(frame())


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"processors": [1, 2, 3]}, "'processors'; did you mean 'requested_processors'?"),
        (
            {name: [1, 2, 3] for name in ("start_time", "end_time", "wait_time", "bsld")},
            "workload is a schedule that hpcgym wrote, not a log",
        ),
        (  # of an earlier version
            {name: [1, 2, 3] for name in ("submit", "start", "end", "wait", "bsld")},
            "workload is a schedule that hpcgym wrote, not a log",
        ),
        ({"run_tim": [1, 2, 3]}, "workload has an unknown column 'run_tim'; did you mean 'run_ti"),
        ({"zzz": [1, 2, 3]}, "workload has an unknown column 'zzz'; SWF has job_number"),
        (
            {"start": [1, 2, 3], "cpus": [1, 2, 3], "job_id": [1, 2, 3]},
            r"unknown columns: 'start' \(write wait_time and run_time .*\); 'cpus' \(did you mean"
            r" 'requested_processors'\?\); 'job_id' \(did you mean 'job_number'\?\)$",
        ),
        ({"run_time": ["1", "2x", "3"]}, "row 1: column run_time is '2x', not a number$"),
        ({"user_id": ["alice", "b\tb", "c"]}, r"workload, row 1: 'b\\tb' is no name of a user"),
        ({"user": ["alice", "bob", "eve"], "user_id": [1, 1, 2]}, "row 1: user_id 1 is 'bob' here"),
        ({"user_id": [True, "x", 3]}, "workload, row 0: column user_id is 'True', not a number"),
        ({"user_id": [1, 2.5, 3]}, "workload, row 1: column user_id is 2.5, not a whole number"),
        ({"run_time": [1, np.inf, 3]}, "workload, row 1: column run_time is inf, no finite number"),
        ({"run_time": pd.to_datetime(["2020-01-01"] * 3)}, "run_time holds datetime64"),
        (
            {"submit_time": [1, 2, 2**54]},
            r"row 2: column submit_time is 18014398509481984, beyond 2\^53 s$",
        ),
    ],
)
def test_tables_that_make_no_workload(columns, problem):
    with pytest.raises(WorkloadError, match=problem):
        from_pandas(frame(**columns), processors=8)


def test_frames_without_jobs_or_submit_times():
    with pytest.raises(WorkloadError, match="workload holds no job"):
        from_pandas(frame()[:0], processors=8)
    with pytest.raises(WorkloadError, match="workload lacks the column 'submit_time'"):
        from_pandas(frame().drop(columns="submit_time"), processors=8)
    double = pd.concat([frame(), frame()], axis=1)
    with pytest.raises(WorkloadError, match="workload has the column 'submit_time' twice"):
        from_pandas(double, processors=8)
    with pytest.raises(WorkloadError, match="errors must be"):
        from_pandas(frame(), processors=8, errors="coerce")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv(tmp_path, end):
    text = end.join(["\ufeffsubmit_time, run_time", "0, 10", "", "3, 20", "5,"])
    workload = read(tmp_path, text)
    assert workload.run_time.tolist() == [10, 20, -1]
    assert workload.name == "jobs"
    assert workload.cleaning == {"repaired: missing run_time set to -1": 1}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("submit_time\n", "holds no job"),
        ("submit_time,run_time\n0,1\n\n2,x\n", "line 4: column run_time is 'x', not a number"),
        ("submit_time,user_id\n0,1\n2,1.5\n", "line 3: column user_id is 1.5, not a whole number"),
        ("submit_time,run_time\n0,1\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        ("submit_time,run_time\n0,1\n\n2,3\n4", "line 5 has 1 fields, and line 1"),
        ("submit_time,run_time,user_id\n0,1,1\n3,5\r4,5,6\n", "line 3 has 2 fields, and line 1"),
        ("submit_time\n0,1\n1,2\n", "line 2 has more fields than line 1"),
        ("submit_time;run_time\n0;1\n", "';' between its columns; write commas"),
        ("0,1\n1,2\n", "unknown columns: '0'"),
        (b"\x89PNG\xff\xfe" * 99, "is binary|unknown column"),
    ],
)
def test_csv_files_that_make_no_workload(tmp_path, text, problem):
    with pytest.raises(WorkloadError, match=rf"jobs\.csv.*({problem})"):
        read(tmp_path, text)


def test_csv_lines_that_are_skipped_are_counted(tmp_path):
    text = "submit_time,run_time\n0,1\n1,2,3\n2,x\n3,4,5,6\n4,5\n5\n   \n6,\n"
    workload = read(tmp_path, text, errors="skip")
    assert workload.submit_time.tolist() == [0, 4, 6]
    assert workload.cleaning == {
        "dropped: line with too few fields": 1,
        "repaired: missing run_time set to -1": 1,
        "dropped: line with text in a numeric field": 1,
        "dropped: line with too many fields": 2,
    }


def test_lines_of_quoted_fields_are_not_too_short(tmp_path):
    text = 'submit_time,"run_time"\n"0","1"\n"2\n",\n\n3,4\n'
    workload = read(tmp_path, text)
    assert workload.run_time.tolist() == [1, -1, 4]


def test_damaged_and_missing_files(tmp_path):
    packed = gzip.compress(b"submit_time\n" + b"5\n" * 9999)
    with pytest.raises(WorkloadError, match="truncated gzip"):
        read(tmp_path, packed[:-9], name="jobs.csv.gz")
    with pytest.raises(WorkloadError, match="damaged gzip"):
        read(tmp_path, packed[:-8] + bytes(8), name="jobs.csv.gz")
    # its content tells whether a file is packed, not its name
    assert len(read(tmp_path, "submit_time\n5\n", name="jobs.csv.gz")) == 1
    assert len(read(tmp_path, packed, name="jobs.csv")) == 9999
    with pytest.raises(WorkloadError, match="no such file"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(WorkloadError, match="is a folder"):
        read_table(tmp_path / "folder.csv")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".json"])
def test_jobs_cut_by_cleaning_stay_marked_in_tables(tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"log{ending}"
    table = frame(requested_time=[10, 15, 20], requested_processors=[1, 1, 1])
    cut = load_workload(table, processors=8)
    assert cut.killed.tolist() == [False, True, True]
    write_table(cut, path)
    again = load_workload(path, processors=8)
    assert again.killed.tolist() == [False, True, True]
    for metrics in (simulate(cut).metrics, simulate(again).metrics):
        assert metrics["killed_jobs"] == 2


def test_what_killed_may_be(tmp_path):
    marked = read(tmp_path, "submit_time,killed\n5,1\n3,\n4,0\n")
    assert marked.submit_time.tolist() == [3, 4, 5]
    assert marked.killed.tolist() == [False, False, True]
    with pytest.raises(WorkloadError, match=r"line 3: column killed is 2, but .* from 0 to 1$"):
        read(tmp_path, "submit_time,killed\n5,1\n3,2\n")
    skipped = read(tmp_path, "submit_time,killed\n5,1\n3,2\n", errors="skip")
    assert skipped.cleaning == {"dropped: line with killed out of its limits": 1}


def test_writing_elsewhere(tmp_path):
    workload = from_pandas(frame(), processors=8)
    with pytest.raises(WorkloadError, match="a table's name ends in"):
        write_table(workload, tmp_path / "log.xlsx")
    with pytest.raises(WorkloadError, match="cannot be written"):
        write_table(workload, tmp_path / "none" / "log.csv")


def test_parquet_without_its_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(WorkloadError, match=r"pip install '\.\[parquet\]'"):
        read(tmp_path, "", name="jobs.parquet")
    with pytest.raises(WorkloadError, match=r"pip install '\.\[parquet\]'"):
        write_table(from_pandas(frame(), processors=8), tmp_path / "log.parquet")


@pytest.mark.parametrize(
    ("column", "known"), [("power_w", [100.5, -1.0, 0.0]), ("slowdown", [1.63, -1.0, 1.0])]
)
def test_what_is_measured_of_jobs_is_kept(tmp_path, column, known):
    """Unlike SWF, tables have columns of mean watts on each processor and of slowdowns."""
    columns = {"submit_time": [0, 5, 9], "run_time": [1, 2, 3], "requested_processors": [1, 4, 1]}
    workload = Workload.from_columns({**columns, column: known}, processors=4)
    assert getattr(workload, column).tolist() == known
    assert getattr(workload, column).dtype == np.float64
    again = [
        workload.with_columns(run_time=[9, 9, 9]),
        pickle.loads(pickle.dumps(workload)),
        from_pandas(workload.to_pandas(), processors=4),
    ]
    for name in ("jobs.csv", "jobs.json"):
        write_table(workload, tmp_path / name)
        again.append(read_table(tmp_path / name))
    assert [getattr(one, column).tolist() for one in again] == [known] * len(again)
    assert getattr(workload.take(slice(0, 2)), column).tolist() == known[:2]
    file = tmp_path / "blank.csv"
    file.write_text(f"submit_time,{column},requested_processors\n0,3.25,1\n1,,1\n")
    blank = read_table(file)
    assert getattr(blank, column).tolist() == [3.25, -1.0]
    assert blank.cleaning[f"repaired: missing {column} set to -1"] == 1
    assert column not in workload.with_columns(**{column: [-1, -1, -1]}).to_pandas()
    other = workload.with_columns(**{column: [1, 1, 1]})
    assert fingerprint([workload]) != fingerprint([other])


@pytest.mark.parametrize(
    ("column", "value"),
    [("power_w", -2.0), ("power_w", np.nan), ("power_w", np.inf), ("slowdown", 0.99),
     ("slowdown", 0.0), ("slowdown", 1000.5), ("slowdown", np.nan)],
)  # fmt: skip
def test_what_cannot_be_measured(column, value):
    with pytest.raises(WorkloadError, match=column):
        Workload.from_columns({"submit_time": [0], column: [value]}, processors=1)


LARGE = "dropped: line with a number too large"
FRACTION = "dropped: line with a fraction where only whole numbers make sense"
TEXT = "dropped: line with text in a numeric field"
GOOD = {"submit_time": 0, "run_time": 60, "requested_processors": 2, "user_id": 1}

BAD = [
    ("submit_time", "inf", "is inf, no finite number", LARGE),
    ("submit_time", "1e999", "is inf, no finite number", LARGE),
    ("run_time", "-inf", "is -inf, no finite number", LARGE),
    ("run_time", "9007199254740993", "is 9007199254740993, beyond 2.53 s", LARGE),
    ("submit_time", "-9007199254740994", "is -9007199254740994, beyond 2.53 s", LARGE),
    ("user_id", "9" * 23, "is 9{23}, beyond 2.63", LARGE),
    ("user_id", "9223372036854775808", "is 9223372036854775808, beyond 2.63", LARGE),
    ("user_id", "1e19", "is 1e.19, beyond 2.63", LARGE),
    ("requested_processors", "2.5", "is 2.5, not a whole number", FRACTION),
    ("run_time", "True", "is 'True', not a number", TEXT),
]


def table(tmp_path, column, value):
    rows = [GOOD, GOOD, {**GOOD, column: value}, GOOD]
    path = tmp_path / "jobs.csv"
    lines = [",".join(GOOD), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("column", "value", "problem", "reason"), BAD)
def test_a_row_is_named_or_skipped_and_counted(tmp_path, column, value, problem, reason):
    path = table(tmp_path, column, value)
    where = re.escape(f"{path}, line 4: column {column} ")
    with pytest.raises(WorkloadError, match=f"^{where}{problem}$"):
        read_table(path, processors=4)
    workload = read_table(path, processors=4, errors="skip")
    assert workload.job_number.tolist() == [1, 2, 4]
    assert workload.user_id.tolist() == [1, 1, 1]
    assert workload.cleaning == {reason: 1}


def test_a_column_holds_what_it_can(tmp_path):
    for column, value in (
        ("run_time", 2**53),
        ("run_time", -(2**53)),
        ("user_id", 2**63 - 1),
        ("user_id", 1 - 2**63),
    ):
        workload = read_table(table(tmp_path, column, value), processors=4)
        assert value in workload.columns[column].tolist()
        assert workload.cleaning == {}


def test_what_is_measured_is_skipped_too(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "submit_time,power_w,slowdown,average_cpu_time\n0,1,1,1\n1,-2,1,1\n2,1,0.8,1\n3,1,1,inf\n"
        "4,,-1,\n"
    )
    with pytest.raises(WorkloadError, match=r"line 3: column power_w is -2.*, but must be at leas"):
        read_table(path, processors=4)
    workload = read_table(path, processors=4, errors="skip")
    assert workload.submit_time.tolist() == [0, 4]
    assert workload.power_w.tolist() == [1, -1]
    dropped = {r: n for r, n in workload.cleaning.items() if r.startswith("dropped")}
    assert dropped == {
        "dropped: line with power_w out of its limits": 1,
        "dropped: line with slowdown out of its limits": 1,
        LARGE: 1,
    }


def test_a_row_with_two_faults_counts_once():
    frame = pd.DataFrame({"submit_time": [0, np.inf], "run_time": [1, 2], "user_id": [1, 2.5]})
    workload = from_pandas(frame, processors=1, errors="skip")
    assert workload.cleaning == {LARGE: 1}


@pytest.mark.parametrize("dtype", ["bool", "boolean", "object", "category"])
def test_truths_are_no_numbers(dtype):
    truths = pd.Series([True, False, True], dtype=dtype)
    frame = pd.DataFrame({"submit_time": [0, 1, 2], "run_time": truths})
    with pytest.raises(WorkloadError, match="row 0: column run_time is 'True', not a number"):
        from_pandas(frame, processors=1)
    with pytest.raises(WorkloadError, match="holds no job: 3 line with text"):
        from_pandas(frame, processors=1, errors="skip")
    mixed = frame.assign(run_time=pd.Series([5, True, np.True_], dtype=object))
    skipped = from_pandas(mixed, processors=1, errors="skip")
    assert (skipped.run_time.tolist(), skipped.cleaning) == ([5], {TEXT: 2})


def test_json_and_parquet_name_the_row_too(tmp_path):
    jobs = [GOOD, {**GOOD, "user_id": 1.5}, GOOD]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    with pytest.raises(WorkloadError, match=r"jobs\.json, job 2: column user_id is 1\.5, not a wh"):
        read_table(tmp_path / "jobs.json", processors=4)
    assert len(read_table(tmp_path / "jobs.json", processors=4, errors="skip")) == 2
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame([GOOD, {**GOOD, "submit_time": np.inf}, GOOD])
    frame.to_parquet(tmp_path / "jobs.parquet")
    with pytest.raises(WorkloadError, match=r"jobs\.parquet, row 1: column submit_time is inf"):
        read_table(tmp_path / "jobs.parquet", processors=4)
    assert len(read_table(tmp_path / "jobs.parquet", processors=4, errors="skip")) == 2


def test_a_job_larger_than_any_machine_is_dropped_not_the_machine(tmp_path):
    """Nobody told the size: it was taken to be that of the job, and no simulation could have it."""
    path = table(tmp_path, "requested_processors", 99_999_999_999)
    fields = ["-1"] * 18
    lines = []
    for number, size in enumerate((2, 99_999_999_999), 1):
        fields[:5], fields[7] = [str(number), "0", "0", "60", str(size)], str(size)
        lines.append(" ".join(fields))
    swf = tmp_path / "jobs.swf"
    swf.write_text("\n".join(lines) + "\n")
    for file, read in ((path, read_table), (swf, read_swf)):
        with pytest.warns(WorkloadWarning, match="does not say how large its machine was"):
            assert len(read(file)) > 1
        with pytest.warns(WorkloadWarning):
            workload = load_workload(file)
        assert workload.processors in (2, 6)  # at once: three jobs of two in the table
        assert workload.cleaning["dropped: more processors than the machine"] == 1
    assert workload.processors == 2


def test_a_line_without_any_value_is_counted_and_a_blank_one_is_not(tmp_path):
    path = tmp_path / "jobs.csv"
    text = 'submit_time,run_time,user_id\n0,1,1\n,,\n\n  \n , , \n"","",\n2,x,1\n\n'
    path.write_text(text.replace("x", "3"))
    workload = read_table(path, processors=1)
    assert workload.submit_time.tolist() == [0, 2]
    assert workload.cleaning == {"dropped: line without any value": 3}
    path.write_text(text)
    with pytest.raises(WorkloadError, match="line 8: column run_time is 'x'"):
        read_table(path, processors=1)
