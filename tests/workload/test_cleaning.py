"""Cleaning, what records of a log tell beside its jobs, and what SWF cannot hold."""

import warnings

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from mistakes import mistakes_of

from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.names import SWF_COLUMNS
from hpcgym.workload import (
    Workload,
    clean,
    load_workload,
    read_swf,
)
from hpcgym.workload.cleaning import RECIPES, filter_names, most_busy
from hpcgym.workload.model import REORDERED


def make(processors=8, **columns):
    return Workload.from_columns(columns, processors=processors, name="log")


#: One job for each thing that can be wrong, and two good ones.
COLUMNS = {
    "job_number": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    "submit_time": [-1, 0, 1, 2, 3, 4, 5, 6, 7],
    "run_time": [9, 9, 0, 9, 9, 9, 90, 9, 9],
    "requested_time": [9, 10, 9, -1, 9, 9, 60, 9, 10],
    "requested_processors": [1, 2, 1, 1, 0, 9, 4, -1, 8],
    "allocated_processors": [1, -1, 1, 1, -1, 1, 4, 3, 8],
}


def test_glesser():
    cleaned = clean(make(**COLUMNS), "glesser")
    assert cleaned.job_number.tolist() == [2, 7, 8, 9]
    assert cleaned.run_time.tolist() == [9, 60, 9, 9]
    assert cleaned.killed.tolist() == [False, True, False, False]
    assert cleaned.requested_processors.tolist() == [2, 4, 3, 8]
    assert cleaned.allocated_processors.tolist() == [2, 4, 3, 8]
    assert cleaned.cleaning == {
        "repaired: requested_processors taken from allocated_processors": 1,
        "repaired: allocated_processors taken from requested_processors": 1,
        "dropped: submitted before time 0": 1,
        "dropped: no run time": 1,
        "dropped: no requested time": 1,
        "dropped: no processors": 1,
        "dropped: more processors than the machine": 1,
        "repaired: run_time cut at requested_time": 1,
    }


def test_that_no_job_tells_allocated_processors_is_no_repair():
    columns = {c: values for c, values in COLUMNS.items() if c != "allocated_processors"}
    reason = "repaired: allocated_processors taken from requested_processors"
    cleaned = clean(make(**columns), "glesser")
    assert cleaned.allocated_processors.tolist() == cleaned.requested_processors.tolist()
    assert (cleaned.allocated_processors > 0).all()
    assert reason not in cleaned.cleaning
    unknown = clean(make(**columns, allocated_processors=[0, -1] * 4 + [0]), "fill-processors")
    assert unknown.cleaning == {}
    filled = clean(make(**columns, allocated_processors=[-1] * 8 + [8]), "fill-processors")
    assert filled.cleaning == {reason: 6}


def test_legrand_drops_what_glesser_cuts():
    cleaned = clean(make(**COLUMNS), "legrand")
    assert cleaned.job_number.tolist() == [2, 8, 9]
    assert cleaned.cleaning["dropped: ran longer than requested"] == 1
    assert not cleaned.killed.any()


def test_default_takes_the_run_time_for_a_missing_request():
    cleaned = clean(make(**COLUMNS))
    assert cleaned.job_number.tolist() == [2, 4, 7, 8, 9]
    assert cleaned.requested_time.tolist() == [10, 9, 60, 9, 10]
    assert cleaned.cleaning["repaired: requested_time taken from run_time"] == 1


def test_unfinished_jobs_stay_where_they_are_asked_for():
    """The first has not ended, the second was cancelled, the third took no time."""
    columns = {
        "submit_time": [0, 1, 2, 3],
        "run_time": [-1, -1, 0, 5],
        "status": [-1, 5, -1, 1],
        "requested_time": [9] * 4,
        "requested_processors": [1] * 4,
        "job_number": [1, 2, 3, 4],
    }
    jobs = make(**{name: np.array(values) for name, values in columns.items()})
    assert clean(jobs, "unfinished").job_number.tolist() == [1, 4]
    assert clean(jobs, "unfinished").cleaning == {"dropped: did not run": 2} | {
        reason: n for reason, n in clean(jobs).cleaning.items() if "repaired" in reason
    }
    assert clean(jobs).job_number.tolist() == [4]


def test_every_job_is_kept_or_counted_as_dropped():
    rng = np.random.default_rng(0)
    columns = {c: rng.integers(-2, 12, 2000) for c in COLUMNS}
    columns["submit_time"].sort()
    for recipe, filters in RECIPES.items():
        assert filter_names(recipe) == filters
        cleaned = clean(make(**columns), recipe)
        dropped = [n for reason, n in cleaned.cleaning.items() if reason.startswith("dropped: ")]
        assert len(cleaned) + sum(dropped) == 2000
        assert clean(cleaned, recipe) is cleaned  # a second time there is nothing more
    more = "drop-partial-executions+request-from-run-time"
    assert filter_names(f"{more}+glesser") == RECIPES["default"]


def test_filters_compose_in_order():
    workload = make(**COLUMNS)
    both = "drop-no-run-time+drop-overrun"
    for recipe in (both, f" {both.replace('+', ' + ')} ", both.split("+")):
        assert clean(workload, recipe).job_number.tolist() == [1, 2, 4, 5, 6, 8, 9]
    asked = clean(workload, "drop-no-requested-time+request-from-run-time")
    assert 4 not in asked.job_number
    assert clean(workload, "none") is clean(workload, ()) is workload
    assert workload.run_time.tolist() == COLUMNS["run_time"]


def test_processors_decide_what_is_too_large():
    assert clean(make(**COLUMNS), "glesser", processors=3).job_number.tolist() == [2, 8]
    larger = clean(make(**COLUMNS), "glesser", processors=9)
    assert larger.processors == 9
    assert 6 in larger.job_number


def test_nothing_left_says_why_and_what_to_try():
    workload = make(submit_time=[0, 1], run_time=[5, 5], requested_processors=[1, 1])
    assert len(clean(workload)) == 2


def test_published_counts(trace):
    kth = read_swf(trace("KTH-SP2-1996-2.swf.gz"))
    sdsc = read_swf(trace("SDSC-SP2-1998-4.2-cln.swf.gz"))
    assert len(clean(kth, "glesser")) == 28_481
    assert len(clean(sdsc, "glesser")) == 53_999
    legrand = clean(sdsc, "legrand")
    assert len(legrand) == 49_865
    assert legrand.run_time.mean() == pytest.approx(6_324.24, abs=0.01)


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
    for recipe in ("glesser", "legrand"):  # of published values
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


def test_parts_without_a_number_stay():
    columns = {"submit_time": [0, 1], "run_time": [5, 5], "requested_processors": [1, 1]}
    workload = Workload.from_columns({**columns, "status": [1, 2]}, processors=4)
    for numbers, left in (([-1, -1], 2), ([6, 6], 1), ([6, 7], 2)):
        assert len(clean(workload.with_columns(job_number=numbers))) == left


# --- What is not simulated ------------------------------------------------------------------------


def test_what_is_ignored_is_said_in_a_line_each(tmp_path):
    lines = [line(k, k, 0, 9, 1, partition=k % 3, preceding_job=k - 1) for k in range(1, 9)]
    with pytest.warns(WorkloadWarning) as caught:
        workload = load_workload(log(tmp_path, *lines))
    said = [str(warning.message) for warning in caught]
    assert len(said) == 2
    assert said[0].startswith("log: 7 jobs follow others (preceding_job, think_time)")
    assert said[1].startswith("log: its jobs ran in 3 partitions")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_workload(workload)  # it has been said
        load_workload(log(tmp_path, line(1, 0, 0, 9, 1, partition=7), line(2, 0, 0, 9, 1)))


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
        path = log(tmp_path, *lines, header="; MaxProcs: 128\n")
        assert load_workload(path).processors == 128
        assert load_workload(log(tmp_path, *lines, header=""), processors=120).processors == 120


def test_parts_are_busy_where_the_whole_is_not_known_to_run(tmp_path):
    parts = [line(1, 0, 0, 30, 8, status=2), line(1, 0, 30, 30, 8, status=3)]
    for lines, size in (
        ([line(1, 0, 0, 60, 8), *parts], 8),  # not beside the whole
        ([line(1, 0, 0, -1, 8), *parts, line(2, 10, 0, 30, 8)], 16),
    ):
        with pytest.warns(WorkloadWarning, match=f" {size} processors"):
            assert load_workload(log(tmp_path, *lines, header="")).processors == size


test_mistakes = mistakes_of(globals(), errors=WorkloadError)
