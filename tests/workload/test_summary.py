"""What a log is like, and what is odd of it; names of users in tables."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcgym import load_workload, simulate
from hpcgym.cli.output import write_jobs
from hpcgym.errors import WorkloadWarning
from hpcgym.report.canvas import palette_of
from hpcgym.workload import Workload, write_swf
from hpcgym.workload.cleaning import clean
from hpcgym.workload.summary import oddities, summary, warn_of_doubts

JOBS = {
    "job_number": [1, 2, 3, 4],
    # Monday 1 January 2024, 23 h and 0 h in Berlin: 22 h and 23 h in UTC
    "submit_time": [0, 3600, 3600, 7200],
    "wait_time": [0, 0, 900, -1],
    "run_time": [3600, 1800, 900, 100],
    "requested_time": [3600, 3600, 9000, 200],
    "requested_processors": [8, 1, 3, 2],
    "status": [1, 0, 1, 5],
    "user_id": [1, 2, 2, 3],
}


HEADER = {
    "UnixStartTime": ["1704060000"],
    "TimeZoneString": ["Europe/Berlin"],
    "User": ["1 ann", "2 bob"],
}


def workload(**changes: Any) -> Workload:
    header = changes.pop("header", HEADER)
    return Workload.from_columns({**JOBS, **changes}, processors=8, name="log", header=header)


def test_the_summary_of_four_jobs() -> None:
    facts = summary(workload())
    area = 8 * 3600 + 1800 + 3 * 900 + 200
    assert (facts["jobs"], facts["processors"], facts["days"]) == (4, 8, 7200 / 86_400)
    assert facts["load"] == pytest.approx(area / (8 * 7200))
    assert facts["begin"] == "2023-12-31T23:00:00+01:00"
    assert facts["arrivals"]["hours"] == [2, 1, *[0] * 21, 1]
    assert facts["arrivals"]["weekdays"]["Monday"] == 3
    assert facts["arrivals"]["weekdays"]["Sunday"] == 1
    assert facts["run_time_s"]["median"] == 1350
    assert facts["wait_s"] == {"mean": 300, "median": 0, "p95": pytest.approx(810), "max": 900}
    assert facts["widths"]["powers_of_2"] == 0.75
    assert [(width["processors"], width["jobs"]) for width in facts["widths"]["classes"]] == [
        ("1", 0.25),
        ("2 to 8", 0.75),
    ]
    assert facts["estimates"]["mean_accuracy"] == pytest.approx((1 + 0.5 + 0.1 + 0.5) / 4)
    assert facts["estimates"]["exact"] == 0.25
    assert facts["status"] == {"completed": 2, "failed": 1, "cancelled": 1}
    assert facts["users"]["number"] == 3
    first = facts["users"]["first"]
    assert [(user["name"], user["jobs"]) for user in first] == [
        ("ann", 1),
        ("bob", 2),
        ("user 3", 1),
    ]
    assert first[0]["area"] == pytest.approx(8 * 3600 / area)
    assert facts["queues"] == {"number": 0, "first": []}


def test_what_is_odd_of_a_log() -> None:
    assert oddities(workload(wait_time=[0, 0, 900, 0]), workload()) == []
    raw = workload(
        wait_time=[0, 0, -500, 0],
        requested_time=JOBS["run_time"],
        requested_processors=[8, 4, 6, 2],
        header={},
    )
    cleaned = raw.counted({"dropped: no run time": 3, "not used: Reason": 4})
    lines = " / ".join(oddities(cleaned, raw))
    for part in (
        "75 % of the jobs were dropped: no run time",
        "100 % of the requested times are the run times",
        "1 job started before being submitted: negative waits",
        "25 % of the jobs have no start in the log",
        "it has no date of its beginning",
    ):
        assert part in lines
    busy = workload(wait_time=[0, 0, 0, 0], submit_time=[0, 5, 5, 5])
    assert "its jobs had 14 processors at once, more than the 8" in oddities(busy, busy)[0]


def test_what_was_done_to_many_jobs_is_one_warning() -> None:
    raw = workload()
    cleaned = raw.counted({"dropped: no run time": 1, "repaired: a": 3, "repaired: b": 2})
    cleaned = cleaned.counted({"repaired: requested_time made up": 1})
    with pytest.warns(WorkloadWarning) as caught:
        warn_of_doubts(cleaned, raw)
    (message,) = [warning.message for warning in caught]
    assert isinstance(message, WorkloadWarning)
    assert str(message) == "log: 25 % of the jobs were dropped: no run time; 3 more such remarks"
    assert message.details == tuple(
        f"{share} % of the jobs were {reason}"
        for share, reason in (
            (25, "dropped: no run time"),
            (25, "repaired: requested_time made up"),
            (75, "repaired: a"),
            (50, "repaired: b"),
        )
    )


def test_names_are_in_tables_and_schedules(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(workload(wait_time=[0, 0, 900, 0]), path)
    log = load_workload(path)
    result = simulate(log, "easy")
    assert result.jobs["user"].tolist() == ["ann", "bob", "bob", "user 3"]
    assert "user" not in simulate(workload(header={}), "easy").jobs
    assert result.energy.by_user["user"].tolist() == ["ann", "bob", "user 3"]
    assert result.energy.by_user["jobs"].tolist() == [1, 2, 1]
    assert [name.split()[0] for name in palette_of(result).meaning] == ["ann", "bob", "user"]
    write_jobs(result, tmp_path / "schedule.csv", {})
    with (tmp_path / "schedule.csv").open() as table:
        first = next(csv.DictReader(table))
    assert (first["user_id"], first["user"]) == ("1", "ann")


def test_hours_are_those_of_the_zone_on_each_day() -> None:
    """An hour in winter is another one in summer."""
    summer = 182 * 86_400
    jobs = workload(submit_time=[0, 0, summer, summer])
    hours = summary(jobs)["arrivals"]["hours"]
    assert np.flatnonzero(hours).tolist() == [0, 23]


def test_a_thin_head_is_told(tmp_path: Path) -> None:
    """Of the first week the log has only what had not ended at its end, as sacct -S selects."""
    week = 604_800
    rng = np.random.default_rng(0)
    submit = np.sort(rng.integers(0, 4 * week, 4000))
    wait, run = rng.integers(0, 3600, 4000), rng.exponential(20_000, 4000).astype(np.int64)
    whole = {
        "submit_time": submit,
        "wait_time": wait,
        "run_time": run,
        "requested_time": run + 1,
        "requested_processors": np.ones(4000, np.int64),
    }
    selected = {name: column[submit + wait + run >= week] for name, column in whole.items()}
    full, cut = (
        Workload.from_columns(columns, processors=4000, name="log", header=HEADER)
        for columns in (whole, selected)
    )
    assert oddities(full, full) == []
    (oddity,) = oddities(cut, cut)
    early = np.count_nonzero(cut.submit_time < week)
    begin = int(oddity.partition("--from ")[2].partition(" ")[0])
    assert week <= begin < week + 3600  # one ends every ten minutes
    assert f" have {np.count_nonzero(cut.submit_time < begin)} jobs, none of which ended" in oddity
    assert early < 50
    assert cut.extract(begin).initial is not None
    assert oddities(cut.take(slice(early, None)), cut) == []


def test_runs_that_were_ended_at_their_limit_are_no_doubt() -> None:
    """A scheduler takes up to a minute for it: such cuts are counted, and nobody is warned."""
    for over, warned in ((60, False), (61, True)):
        limit = np.array([3600, 3600, 900, 200])
        raw = workload(run_time=limit + over, requested_time=limit)
        cut = clean(raw)
        assert cut.cleaning == {"repaired: run_time cut at requested_time": 4}
        lines = oddities(cut, raw)
        assert any("cut at requested_time" in line for line in lines) == warned
