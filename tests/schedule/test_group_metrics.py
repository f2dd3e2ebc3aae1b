"""Metrics of classes of jobs and of users: those of their jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hpcgym import Workload, load_workload, simulate
from hpcgym.schedule.groups import group_metrics, metrics_by
from hpcgym.schedule.measures import weekly_sums

JOBS = "lublin:jobs=1500,processors=32,load=0.3,seed=1"


def test_metrics_of_groups_are_those_of_their_jobs() -> None:
    result = simulate(load_workload(JOBS), "easy", threshold=3600)
    classes, users = metrics_by(result, "class"), metrics_by(result, "user", ["max_wait_s"])
    assert list(classes) == ["short", "medium", "long"]
    jobs = result.jobs
    for name, low, high in (("short", 0, 600), ("medium", 600, 7200), ("long", 7200, 1e18)):
        part = jobs[(jobs["run_time"] >= low) & (jobs["run_time"] < high)]
        assert classes[name]["jobs"] == len(part)
        assert classes[name]["mean_bsld"] == pytest.approx(result.metrics[f"mean_bsld_{name}"])
        assert classes[name]["p99_wait_s"] == pytest.approx(np.percentile(part["wait_time"], 99))
        assert classes[name]["starved_share"] == pytest.approx((part["wait_time"] > 3600).mean())
    assert "utilization" not in classes["short"]
    assert set(classes["short"]) == {
        name for name, metric in group_metrics().items() if name in result.metrics or not metric.of
    }
    longest = jobs.groupby("user_id")["wait_time"].max()
    assert {name: metrics["max_wait_s"] for name, metrics in users.items()} == {
        f"user {number}": value for number, value in longest.items()
    }
    assert sum(metrics["jobs"] for metrics in users.values()) == len(jobs)


def test_users_of_one_name_stay_apart() -> None:
    workload = load_workload(JOBS)
    same = replace(workload, header={"User": ["1 alice", "2 alice", "3 bob"]})
    by_user = metrics_by(simulate(same, "easy"), "user", ["mean_bsld"])
    assert sum(metrics["jobs"] for metrics in by_user.values()) == len(workload)
    assert {"alice (1)", "alice (2)", "bob"} <= {*by_user}


def test_suspensions_are_of_groups_too() -> None:
    workload = load_workload("lublin:jobs=300,processors=16,load=1.2,seed=3")
    queues = workload.with_columns(queue=1 + (workload.run_time < 600))
    result = simulate(queues, preemption="queue:2>batch,suspend", backfill="none")
    by_user = metrics_by(result, "user", ["suspensions", "mean_suspended_s"])
    assert (
        sum(metrics["suspensions"] for metrics in by_user.values())
        == result.metrics["suspensions"]
        > 0
    )
    total = sum(metrics["jobs"] * metrics["mean_suspended_s"] for metrics in by_user.values())
    assert total == pytest.approx(result.suspended.sum())


def test_classes_without_jobs_have_no_value() -> None:
    workload = load_workload(JOBS)
    brief = workload.take(np.flatnonzero(workload.run_time < 600))
    by_class = metrics_by(simulate(brief, "easy"), "class", ["mean_bsld", "backfilled_share"])
    assert by_class["long"]["jobs"] == 0
    assert np.isnan([by_class["long"]["mean_bsld"], by_class["long"]["backfilled_share"]]).all()


def test_weeks_count_from_the_first_submission() -> None:
    """Two jobs in the first week, six days apart, and one in the next; the clock begins midweek."""
    day = 86400
    columns = {"submit_time": [4 * day, 10 * day, 11 * day], "run_time": [10, 10, 10]}
    columns |= {"requested_time": [10] * 3, "requested_processors": [1] * 3}
    jobs = Workload.from_columns(columns, processors=3, first_submit_s=4 * day)
    sums = weekly_sums(simulate(jobs, "easy"), np.ones(3, np.bool_))
    assert sums[:, 0].tolist() == [2, 1]
