"""What the records of a log tell beside its jobs: parts of jobs, the size of the machine."""

import warnings

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st

from hpcgym.errors import WorkloadWarning
from hpcgym.workload import (
    SWF_COLUMNS,
    Workload,
    clean,
    from_pandas,
    load_workload,
    read_swf,
    read_table,
)
from hpcgym.workload.cleaning import RECIPES, most_busy
from hpcgym.workload.model import REORDERED

HEADER = "; MaxProcs: 64\n"


def line(number, submit, wait, run, size, status=1, **others):
    """Return the record of a job, whose request is its run time."""
    fields = {
        **dict.fromkeys(SWF_COLUMNS, -1),
        "job_number": number,
        "submit_time": submit,
        "wait_time": wait,
        "run_time": run,
        "allocated_processors": size,
        "requested_time": run,
        "status": status,
        **others,
    }
    return " ".join(map(str, fields.values())) + "\n"


def log(tmp_path, *lines, header=HEADER):
    path = tmp_path / "log.swf"
    path.write_text(header + "".join(lines))
    return path


# Job 2 ran in three parts, as the format writes it: only the first has a submit time. Job 3 has no
# record of the whole.
SWAPPED = (
    line(1, 0, 0, 100, 4),
    line(2, 10, 5, 60, 4, status=0),
    line(2, 10, 5, 20, 4, status=2),
    line(2, -1, 30, 30, 4, status=2),
    line(2, -1, 40, 10, 4, status=4),
    line(3, 20, 0, 50, 4, status=2),
    line(3, 90, 0, 50, 4, status=3),
    line(4, 30, 0, 50, 4, status=5),
)
REASON = "dropped: partial execution of a job that is there as a whole"


def test_parts_of_a_job_are_dropped_where_the_whole_is_there(tmp_path):
    with pytest.warns(WorkloadWarning, match=r"log: 2 records are partial executions .* its own"):
        cleaned = load_workload(log(tmp_path, *SWAPPED))
    assert cleaned.job_number.tolist() == [1, 2, 3, 4, 3]
    assert cleaned.run_time.tolist() == [100, 60, 50, 50, 50]
    assert cleaned.cleaning == {
        REASON: 3,
        "repaired: requested_processors taken from allocated_processors": 5,
        REORDERED: 3,
    }
    assert cleaned.first_submit_s == 0


def test_recipes_of_published_values_do_not_heed_them(tmp_path):
    for recipe in ("glesser", "legrand"):
        assert "drop-partial-executions" not in RECIPES[recipe]
        with pytest.warns(WorkloadWarning, match="3 records are partial executions"):
            cleaned = load_workload(log(tmp_path, *SWAPPED), clean=recipe)
        assert REASON not in cleaned.cleaning
        assert cleaned.cleaning["dropped: submitted before time 0"] == 2


@pytest.mark.parametrize(
    ("whole", "why"),
    [
        ({"run": -1}, "no run time"),
        ({"size": 65}, "more processors than the machine"),
        ({"submit": -1}, "submitted before time 0"),
    ],
)
def test_parts_stay_where_the_whole_is_dropped_itself(tmp_path, whole, why):
    """Each is a job of its own then: the job would vanish from the log otherwise."""
    fields = {"number": 1, "submit": 0, "wait": 0, "run": 90, "size": 4} | whole
    lines = (
        line(**fields),
        line(1, 0, 0, 40, 4, status=2),
        line(1, 50, 0, 50, 4, status=3),
        line(2, 5, 0, 60, 4),
        line(2, 5, 0, 60, 4, status=3),
    )
    with pytest.warns(WorkloadWarning, match="2 records are partial executions"):
        cleaned = load_workload(log(tmp_path, *lines))
    assert cleaned.job_number.tolist() == [1, 2, 1]
    assert cleaned.run_time.tolist() == [40, 60, 50]
    assert cleaned.cleaning[f"dropped: {why}"] == 1
    assert cleaned.cleaning[REASON] == 1
    # alone, the filter keeps the whole, and before it others have dropped it
    raw = read_swf(log(tmp_path, *lines))
    assert clean(raw, "drop-partial-executions").cleaning[REASON] == 3
    assert clean(raw, "glesser+drop-partial-executions").cleaning[REASON] == 1


def test_parts_are_busy_where_the_whole_is_not_known_to_run(tmp_path):
    whole = line(1, 0, 0, -1, 8)
    parts = [line(1, 0, 0, 30, 8, status=2), line(2, 10, 0, 30, 8), line(1, 40, 0, 9, 8, status=3)]
    with pytest.warns(WorkloadWarning, match="16 processors, the most that it shows busy at once"):
        assert load_workload(log(tmp_path, whole, *parts, header="")).processors == 16


def test_parts_without_a_number_stay():
    columns = {
        "submit_time": [0, 1],
        "run_time": [5, 5],
        "requested_processors": [1, 1],
        "status": [1, 2],
        "job_number": [-1, -1],
    }
    workload = Workload.from_columns(columns, processors=4)
    assert len(clean(workload)) == 2
    numbered = workload.with_columns(job_number=[6, 6])
    assert clean(numbered).cleaning[REASON] == 1
    others = workload.with_columns(job_number=[6, 7])
    assert len(clean(others)) == 2


# --- What is not simulated ------------------------------------------------------------------------


def test_what_is_ignored_is_said_in_a_line_each(tmp_path):
    lines = [line(k, k, 0, 9, 1, partition=k % 3, preceding_job=k - 1) for k in range(1, 9)]
    with pytest.warns(WorkloadWarning) as found:
        workload = load_workload(log(tmp_path, *lines))
    said = [str(warning.message) for warning in found]
    assert len(said) == 2
    assert said[0].startswith("log: 7 jobs follow others (preceding_job, think_time)")
    assert said[1].startswith("log: its jobs ran in 3 partitions")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_workload(workload)  # it has been said


def test_nothing_is_said_of_one_partition_or_none(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_workload(log(tmp_path, line(1, 0, 0, 9, 1, partition=7), line(2, 0, 0, 9, 1)))


@pytest.mark.parametrize(
    "file", ["KTH-SP2-1996-2.swf.gz", "SDSC-SP2-1998-4.2-cln.swf.gz", "lublin_256.swf.gz"]
)
def test_nothing_is_said_of_the_real_traces(trace, file):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        workload = load_workload(trace(file))
    assert not any("partial" in reason for reason in workload.cleaning)


# --- How large the machine was --------------------------------------------------------------------


def busy_slowly(columns):
    """The most processors busy at once, second by second."""
    most = 0
    for now in range(200):
        busy = 0
        for k in range(len(columns["submit_time"])):
            wait, run = columns["wait_time"][k], columns["run_time"][k]
            width = columns["allocated_processors"][k]
            width = columns["requested_processors"][k] if width < 1 else width
            start = columns["submit_time"][k] + wait
            if wait >= 0 and width > 0 and columns["submit_time"][k] >= 0:
                busy += width if start <= now < start + run else 0
        most = max(most, busy)
    return most


JOBS = st.tuples(
    *(st.integers(-1, 60), st.integers(-1, 40), st.integers(-1, 60)),
    *(st.integers(-1, 5), st.integers(-1, 5)),
)


@given(st.lists(JOBS, min_size=1, max_size=12))
def test_what_is_busy_at_once_is_that_of_each_second(jobs):
    names = ("submit_time", "wait_time", "run_time", "allocated_processors", "requested_processors")
    workload = Workload.from_columns(
        {name: list(values) for name, values in zip(names, zip(*jobs, strict=True), strict=True)},
        processors=1,
    )
    columns = {name: workload.columns[name].tolist() for name in names}
    assert most_busy(workload.columns) == busy_slowly(columns)


def test_a_machine_is_as_large_as_its_records_show_it_busy(tmp_path):
    # the second job ends as the fourth starts; of the third nobody knows when it ran
    lines = (
        line(1, 0, 10, 100, 100),
        line(2, 5, 10, 85, 90),
        line(3, 6, -1, 100, 120),
        line(4, 50, 50, 100, 80),
    )
    said = r"to be 190 processors, the most that it shows busy at once \(largest job 120\); proc"
    with pytest.warns(WorkloadWarning, match=said):
        workload = load_workload(log(tmp_path, *lines, header=""))
    assert workload.processors == 190
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = log(tmp_path, *lines, header="; MaxProcs: 128\n")
        assert load_workload(told).processors == 128
        assert load_workload(log(tmp_path, *lines, header=""), processors=120).processors == 120


def test_parts_of_a_job_are_not_busy_beside_the_whole(tmp_path):
    whole = line(1, 0, 0, 60, 8)
    parts = [line(1, 0, 0, 30, 8, status=2), line(1, 0, 30, 30, 8, status=3)]
    with pytest.warns(WorkloadWarning, match="its largest job, 8 processors"):
        assert load_workload(log(tmp_path, whole, *parts, header="")).processors == 8


def test_tables_tell_it_too(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "submit_time": [0, 1, 2],
            "run_time": [10, 10, 10],
            "requested_processors": [3, 4, 4],
            "wait_time": [0, 0, 9],
        }
    )
    said = r"7 processors, the most that it shows busy at once \(largest job 4\)"
    for unknown, size in ((False, 7), (True, 4)):
        jobs = frame.drop(columns="wait_time") if unknown else frame
        text = "its largest job, 4 processors" if unknown else said
        jobs.to_csv(tmp_path / "jobs.csv", index=False)
        jobs.to_json(tmp_path / "jobs.json", orient="records")
        for made in (from_pandas, lambda _: read_table(tmp_path / "jobs.csv")):
            with pytest.warns(WorkloadWarning, match=text):
                assert made(jobs).processors == size
        with pytest.warns(WorkloadWarning, match=text):
            assert read_table(tmp_path / "jobs.json").processors == size


def test_a_simulated_log_is_as_busy_as_its_machine(trace):
    from hpcgym import simulate

    kth = load_workload(trace("KTH-SP2-1996-2.swf.gz")).take(slice(0, 2000))
    recorded = simulate(kth, "easy").as_workload()
    assert most_busy(recorded.columns) == 100
    assert np.all(recorded.requested_processors <= 100)
