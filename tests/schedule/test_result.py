"""What a simulation returns: arrays that nobody can change, a table, a workload, a file."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of

import hpcgym
from hpcgym.explore import show
from hpcgym.names import JOB_COLUMNS
from hpcgym.schedule.result import Result
from hpcgym.scheduler.rules import Scheduler
from hpcgym.words import shown
from hpcgym.workload.columns import TIME_COLUMNS

DTYPES = {
    "start": np.int64,
    "end": np.int64,
    "wait": np.int64,
    "run_time": np.int64,
    "predicted_run_time": np.int64,
    "reserved_start": np.int64,
    "bsld": np.float64,
    "backfilled": np.bool_,
    "killed": np.bool_,
}


@pytest.fixture(scope="module")
def result() -> Result:
    """Job 1 blocks the queue, job 2 is backfilled, job 3 is killed, job 4 was killed in the log."""
    more: dict[str, Any] = {"job_number": [11, 12, 13, 14, 15], "user_id": [1, 1, 2, 3, 3]}
    more |= {"name": "five", "killed": np.array([False, False, False, False, True])}
    workload = few_jobs(
        4, [0, 1, 2, 10, 300], [50, 50, 20, 60, 5], [3, 4, 1, 2, 1], [50, 60, 20, 30, 5], **more
    )
    return hpcgym.simulate(workload, "easy")


def test_the_schedule(result: Result) -> None:
    assert result.start.tolist() == [0, 50, 2, 100, 300]
    assert result.end.tolist() == [50, 100, 22, 130, 305]
    assert result.wait.tolist() == [0, 49, 0, 90, 0]
    assert result.run_time.tolist() == [50, 50, 20, 30, 5]
    assert result.predicted_run_time.tolist() == [50, 60, 20, 30, 5]
    # job 3 heads the queue from 50 s on, and job 1 is then predicted to end at 110 s
    assert result.reserved_start.tolist() == [-1, 50, -1, 110, -1]
    assert result.backfilled.tolist() == [False, False, True, False, False]
    assert result.killed.tolist() == [False, False, False, True, True]
    assert result.bsld.tolist() == [1.0, 99 / 50, 1.0, 4.0, 1.0]


def test_arrays_are_read_only_and_stand_in_a_table(result: Result) -> None:
    jobs = result.jobs
    assert jobs is result.jobs
    assert list(jobs.columns) == [
        *("job_number", "user_id", "requested_processors", "submit_time", "start_time", "end_time"),
        *("wait_time", "run_time", "requested_time", "predicted_run_time", "reserved_start"),
        *("bsld", "backfilled", "killed"),
    ]
    for name, dtype in DTYPES.items():
        array = getattr(result, name)
        assert (array.shape, array.dtype) == ((5,), dtype)
        assert not array.flags.writeable
        column = {"start": "start_time", "end": "end_time", "wait": "wait_time"}.get(name, name)
        assert jobs[column].dtype == dtype
        assert jobs[column].tolist() == array.tolist()
    again = hpcgym.simulate(result.workload, "easy")
    again.jobs.loc[0, "start_time"] = 999
    assert again.start[0] == 0


@pytest.mark.parametrize(
    "rules", [{}, {"cluster": "2x2x8"}, {"quota": "user:jobs=2"}, {"of an extract": True}], ids=str
)
def test_a_result_that_nobody_keeps_is_gone_at_once(rules: dict[str, Any]) -> None:
    """Not when garbage is collected: schedules of large machines have gigabytes of cells."""
    workload = hpcgym.load_workload("lublin:jobs=100,processors=32,seed=1")
    if rules.pop("of an extract", False):
        recorded = hpcgym.simulate(workload).as_workload()
        workload = recorded.extract(int(recorded.submit_time[50]))
    result = hpcgym.simulate(workload, **rules)
    for asked in ("metrics", "jobs", "power", "books", "energy"):
        getattr(result, asked)
    assert result.energy.by_job is not None
    known = weakref.ref(result)
    gc.disable()
    try:
        del result
        assert known() is None
    finally:
        gc.enable()


def test_the_table_and_the_workload_of_a_schedule_have_one_word_for_one_thing(
    result: Result,
) -> None:
    workload, jobs = result.as_workload(), result.jobs
    shared = [name for name in JOB_COLUMNS if name in jobs]
    assert {*TIME_COLUMNS, "requested_processors"} - {"think_time"} <= {*shared}
    for name in shared:
        assert jobs[name].tolist() == workload.columns[name].tolist(), name


def test_jobs_have_the_numbers_and_names_that_they_are_told_apart_by() -> None:
    more: dict[str, Any] = {"user_id": [1, 1, 2], "group_id": [-1, 7, 8], "queue": [2, 2, 1]}
    workload = few_jobs(8, [0, 1, 2], [5, 5, 5], [1, 2, 3], **more)
    named = replace(workload, header={"Group": ["7 bio"], "Queue": ["1 day", "2 night"]})
    jobs = hpcgym.simulate(named).jobs
    apart = ["user_id", "group_id", "group", "queue", "queue_name", "requested_processors"]
    assert list(jobs.columns)[1:7] == apart
    assert jobs["group_id"].tolist() == [-1, 7, 8]
    assert jobs["group"].tolist() == ["unknown group", "bio", "group 8"]
    assert jobs.groupby("queue_name").size().to_dict() == {"day": 1, "night": 2}
    assert list(hpcgym.simulate(workload).jobs.columns)[1:4] == ["user_id", "group_id", "queue"]
    units = {"units": [2, 1], "per_unit": {"core": [3, 4]}}
    jobs = hpcgym.simulate(few_jobs(8, [0, 1], [5, 5], [6, 4], **units)).jobs
    assert list(jobs.columns)[2:5] == ["requested_processors", "units", "submit_time"]
    assert jobs["units"].tolist() == [2, 1]


def test_what_later_rooms_do_as_methods(result: Result) -> None:
    waited = result.explain(12)
    assert (waited.job, str(waited)) == (12, str(hpcgym.explain(result, 12)))
    assert result.explain(12, most=0).others["delay"].isna().all()
    frame = result.show(height=300)
    assert "height:300px" in frame._repr_html_()
    assert frame.page == show(result).page


@pytest.mark.parametrize("file", ["schedule.swf", "schedule.swf.gz"])
def test_the_schedule_as_a_file(result: Result, file: str, tmp_path: Path) -> None:
    path = tmp_path / file
    result.to_swf(path)
    read = hpcgym.load_workload(str(path), clean="none")
    assert read.processors == 4
    assert read.job_number.tolist() == [11, 12, 13, 14, 15]
    assert read.submit_time.tolist() == [0, 1, 2, 10, 300]
    assert read.wait_time.tolist() == result.wait.tolist()
    assert read.run_time.tolist() == result.run_time.tolist()
    assert read.allocated_processors.tolist() == [3, 4, 1, 2, 1]
    assert read.requested_time.tolist() == [50, 60, 20, 30, 5]
    # simulating what was simulated gives the same schedule
    assert hpcgym.simulate(read, "easy").start.tolist() == result.start.tolist()


LOG = {
    "Version": ["2"],
    "Computer": ["IBM SP2"],
    "Installation": ["KTH\nLindstedt street"],
    "MaxJobs": ["28490"],
    "MaxRecords": ["28490"],
    "Preemption": ["Yes"],
    "UnixStartTime": ["843480031"],
    "TimeZoneString": ["Europe/Stockholm"],
    "EndTime": ["Fri Aug 29 10:55:01 CEST 1997"],
    "MaxNodes": ["100"],
    "MaxProcs": ["100"],
    "Queues": ["short jobs go first"],
    "Queue": ["0 interactive", "1 batch"],
    "Scheduler": ["Maui"],
    "Note": ["uses the EASY scheduler", "another\nof two lines"],
    "": ["free text"],
}


def test_the_header_of_a_schedule_says_what_made_it(result: Result, tmp_path: Path) -> None:
    workload = replace(result.workload, header=LOG)
    rules = Scheduler("saf", backfill_order="spf", threshold=60)
    hpcgym.simulate(workload, rules, cluster=hpcgym.Cluster(6)).to_swf(tmp_path / "a.swf")
    lines = [line for line in (tmp_path / "a.swf").read_text().splitlines() if line[:1] == ";"]
    facts = dict(line[2:].split(": ", 1) for line in lines if not line.startswith("; Note: "))
    assert facts == {
        "Version": "2.2",
        "MaxJobs": "5",
        "MaxRecords": "5",
        "Preemption": "No",
        "MaxProcs": "6",
        "UnixStartTime": "843480031",
        "TimeZoneString": "Europe/Stockholm",
        "Queue": "1 batch",  # the last of two
    }
    notes = [line.removeprefix("; Note: ") for line in lines if line.startswith("; Note: ")]
    ours = [line for line in notes if not line.startswith("original log: ")]
    assert any(f"hpcgym {hpcgym.__version__} simulated" in line for line in ours)
    (scheduler_line,) = (line for line in ours if line.startswith("scheduler: "))
    given = dict(part.split("=") for part in scheduler_line.removeprefix("scheduler: ").split(", "))
    expected = {rule: value for rule, value in rules.describe().items() if value is not None}
    assert given == {rule: str(value) for rule, value in expected.items()}
    # what the log says is there, and nowhere as if it were of this schedule
    for key in ("Computer", "Installation", "EndTime", "Queues", "Scheduler", "Note", ""):
        for line in "\n".join(LOG[key]).splitlines():
            same_lines = [text for text in lines if line in text]
            assert same_lines == [f"; Note: original log: {key}: {line}" if key else same_lines[0]]
            assert same_lines[0].startswith("; Note: original log: ")
    read = hpcgym.load_workload(str(tmp_path / "a.swf"), clean="none")
    assert read.processors == 6
    assert read.header["Queue"] == LOG["Queue"]
    assert read.header["UnixStartTime"] == LOG["UnixStartTime"]
    assert "IBM SP2" not in " ".join(read.header.get("Computer", []))


def test_the_header_of_a_schedule_on_nodes(result: Result) -> None:
    workload = replace(result.workload, header=LOG)
    made = hpcgym.simulate(workload, cluster="2x1x3").as_workload()
    assert (made.header["MaxNodes"], made.header["MaxProcs"]) == (["2"], ["6"])
    assert made.processors == 6
    assert any("2x1x3, 2 nodes with 6 cores" in line for line in made.header["Note"])


def test_a_workload_of_its_own_and_a_short_text(result: Result) -> None:
    assert result.as_workload().name == "five"
    assert result.workload.wait_time.tolist() == [-1] * 5
    assert repr(result).startswith("Result(Workload('five', 5 jobs, 4 processors), Scheduler(")
    first, metrics_line = str(result).splitlines()
    assert first == repr(result)
    assert metrics_line.startswith(f"mean_bsld {shown(result.metrics.mean_bsld)}, p95_bsld ")
    assert f", mean_wait_s {shown(result.metrics.mean_wait_s)}, " in metrics_line


test_mistakes = mistakes_of(globals(), errors=AttributeError, fixtures=("result",))
