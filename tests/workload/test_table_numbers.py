"""What columns of tables cannot hold: named by row, or skipped and counted, as lines of SWF are."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.workload import from_pandas, load_workload, read_swf, read_table

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
    with pytest.raises(WorkloadError, match="holds no job: 3 dropped: line with text"):
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
