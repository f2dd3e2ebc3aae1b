"""Preemption by hand: who is stopped, what becomes of it, and the proof of both."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs
from preemption_strategies import urgent
from same_results import assert_same

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.policies import FairShare
from hpcgym.validation.validate import ScheduleError
from hpcgym.workload.model import Workload


def assert_proved(result: hpcgym.Result, expected: list[Any], lost: list[Any]) -> None:
    """Compare with what the reference makes of the same jobs, and prove it."""
    assert_same(result, expected, lost)
    hpcgym.validate_schedule(result)


def test_who_is_exempt_is_stopped_later() -> None:
    """By hand: at 5 s, when nothing else happens, job 1 has run for 5 s; job 0 goes on."""
    result = hpcgym.simulate(urgent(), preemption="queue:2>1,exempt=20")
    assert result.start.tolist() == [0, 0, 1, 10]
    result = hpcgym.simulate(
        urgent(requested_processors=[1, 2, 1, 2]), preemption="queue:2>1,exempt=1=5"
    )
    assert result.start.tolist() == [0, 10, 1, 5]
    assert result.restarts.tolist() == [0, 1, 0, 0]
    assert result.lost_core_seconds.tolist() == [0, 10, 0, 0]
    assert "preemption" in hpcgym.validate_schedule(result)
    early = replace(result, scheduler=result.scheduler.but(preemption="queue:2>1,exempt=6"))
    with pytest.raises(ScheduleError, match="job 1 is stopped after 5 s; for 6 s nobody may"):
        hpcgym.validate_schedule(early)


def test_who_has_run_longest_goes_on() -> None:
    """By hand: job 3 needs 3 processors; job 0 goes on, and 1 and 2 begin anew once it has ended.

    At 7 s job 1 starts again, and job 2 too.
    """
    result = hpcgym.simulate(urgent(), preemption="queue:2>1")
    assert result.start.tolist() == [0, 7, 7, 2]
    assert result.end.tolist() == [10, 17, 17, 7]
    assert result.restarts.tolist() == [0, 1, 1, 0]
    assert result.lost_core_seconds.tolist() == [0, 4, 1, 0]
    assert result.wait.tolist() == [0, 7, 6, 0]
    table = result.jobs
    assert table["restarts"].tolist() == [0, 1, 1, 0]
    assert "cancelled" not in table
    metrics = result.metrics
    assert (metrics["lost_runs"], metrics["lost_core_seconds"]) == (2, 5)
    assert metrics["utilization"] == pytest.approx((10 + 4 + 1 + 15 + 20 + 10) / (4 * 17))
    assert "cancelled_jobs" not in metrics


def test_cancelled_jobs_do_not_run_again() -> None:
    result = hpcgym.simulate(urgent(), preemption="queue:2>1,cancel")
    assert result.start.tolist() == [0, 0, 1, 2]
    assert result.end.tolist() == [10, 2, 2, 7]
    assert result.killed.tolist() == result.cancelled.tolist() == [False, True, True, False]
    assert result.jobs["cancelled"].tolist() == [False, True, True, False]
    metrics = result.metrics
    assert (metrics["cancelled_jobs"], metrics["lost_runs"]) == (2, 0)
    assert metrics["lost_core_seconds"] == 5
    hpcgym.validate_schedule(result)


def test_suspended_jobs_go_on_with_what_is_left() -> None:
    """By hand: as above, but jobs 1 and 2 have run for 2 s and 1 s, and go on for 8 s and 9 s."""
    result = hpcgym.simulate(urgent(), preemption="queue:2>1,suspend")
    assert result.start.tolist() == [0, 0, 1, 2]
    assert result.run_time.tolist() == [10, 10, 10, 5]
    assert result.end.tolist() == [10, 15, 16, 7]
    assert result.suspended is not None
    assert result.suspended.tolist() == result.wait.tolist() == [0, 5, 5, 0]
    assert result.bsld.tolist() == [1.0, 1.5, 1.5, 1.0]
    assert not result.killed.any()
    assert result.restarts.tolist() == result.lost_core_seconds.tolist() == [0, 0, 0, 0]
    table = result.jobs
    assert table["suspended"].tolist() == [0, 5, 5, 0]
    assert "restarts" not in table
    metrics = result.metrics
    assert (metrics["suspensions"], metrics["mean_suspended_s"]) == (2, 2.5)
    assert metrics["utilization"] == pytest.approx((10 + 20 + 10 + 15) / (4 * 16))
    assert metrics["mean_queue_length"] == pytest.approx(10 / 16)
    assert "lost_runs" not in metrics
    told = hpcgym.explain(replace(result, workload=numbered(result.workload)), 2)
    line = "Of that it was suspended for 5 s, after its first start."
    assert line in told.sentences
    assert [one["jobs"] for one in told.to_dict()["stops"]] == [[4]]


def numbered(workload: Workload) -> Workload:
    return workload.with_columns(job_number=range(1, len(workload) + 1))


def test_others_do_not_get_what_suspended_jobs_have() -> None:
    """By hand: job 0 has all four processors, job 1 takes one of them, and job 2 gets none.

    When job 1 has ended job 0 goes on, though job 2 waits.
    """
    jobs = urgent(requested_processors=[4, 1, 1, 1], queue=[1, 2, 1, 1], submit_time=[0, 3, 4, 5])
    result = hpcgym.simulate(jobs, preemption="queue:2>1,suspend")
    assert result.start.tolist() == [0, 3, 20, 20]
    assert result.end.tolist() == [20, 13, 30, 25]
    requeued = hpcgym.simulate(jobs, preemption="queue:2>1")
    assert requeued.start.tolist() == [13, 3, 23, 5]  # job 3 is back-filled before 13 s


def test_who_may_stop_a_suspended_job_does_not_get_what_it_has_either_behind_the_first() -> None:
    """By hand: job 2 takes two of the four processors of job 0, and two are free.

    At 20 s job 3 needs three, and has to wait. So job 4, which is behind it in its queue and needs
    two, gets none, though it would end before job 3 can start: it starts when job 3 has ended.
    """
    jobs = few_jobs(
        6, [0, 0, 10, 20, 20], [100, 500, 50, 10, 5], [4, 2, 2, 3, 2], queue=[1, 3, 2, 2, 2]
    )
    for backfill in ("none", "easy", "depth:3", "slurm"):
        result = hpcgym.simulate(jobs, preemption="queue:2>1,suspend", backfill=backfill)
        lost: list[Any] = []
        expected = simulate_pool(
            jobs_of(jobs), 6, backfill=backfill, lost=lost,
            preemption=([1, 3, 2, 2, 2], {(2, 1)}, "suspend"),
        )  # fmt: skip
        assert_proved(result, expected, lost)
        assert result.start.tolist() == [0, 0, 10, 60, 70]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "start"),
    [
        ("requeue", [15, 0, 5, 25, 10]),
        ("cancel", [0, 0, 5, 15, 10]),
        ("suspend", [0, 0, 5, 20, 15]),
    ],
)
def test_users_are_charged_for_runs_that_others_end(mode: str, start: list[int]) -> None:
    """By hand: user 1 has used 15 core s by 5 s, when job 2 stops job 0, and user 2 only 4 core s.

    So job 4 comes before jobs 0 and 3. A suspended job goes on before, and is charged at its end.
    """
    jobs = few_jobs(
        4,
        [0, 0, 5, 6, 6],
        [10, 4, 5, 5, 5],
        [3, 1, 4, 4, 4],
        user_id=[1, 2, 3, 1, 2],
        queue=[1, 1, 2, 1, 1],
    )
    rules: dict[str, Any] = {"policy": "fairshare", "fair_share": FairShare(half_life_s=math.inf)}
    result = hpcgym.simulate(jobs, preemption=f"queue:2>1,{mode}", **rules)
    assert result.start.tolist() == start
    hpcgym.validate_schedule(result)


@pytest.mark.slow
def test_suspended_jobs_keep_memory() -> None:
    """By hand: job 1 takes the cores of job 0 and finds the memory that is left; job 2 does not.

    Job 2 may stop job 0, too, and waits until it has ended.
    """
    cluster = Cluster(groups=(NodeGroup("a", 1, {"core": 2, "mem": 8}),))
    jobs = few_jobs(
        2,
        [0, 3, 4],
        [10, 5, 5],
        [2, 2, 1],
        queue=[1, 2, 2],
        units=[1, 1, 1],
        per_unit={"core": [2, 2, 1], "mem": [5, 3, 4]},
    )
    result = hpcgym.simulate(jobs, cluster=cluster, preemption="queue:2>1,suspend")
    assert result.start.tolist() == [0, 3, 15]
    assert result.end.tolist() == [15, 8, 20]
    hpcgym.validate_schedule(result)
    pieces = result.pieces
    assert pieces is not None
    assert (pieces.node.tolist(), pieces.units.tolist()) == ([0], [1])


def test_suspended_jobs_do_not_make_slurm_look() -> None:
    """By hand: nobody waits in the queue from 100 s on, so the next look is due at 520 s only."""
    jobs = few_jobs(10, [0, 10, 100, 515], [1000, 500, 1000, 60], [8, 4, 3, 1], queue=[1, 2, 1, 1])
    result = hpcgym.simulate(jobs, backfill="slurm", preemption="queue:2>1,suspend")
    assert result.suspended is not None
    assert result.suspended[0] > 0
    hpcgym.validate_schedule(result)


def test_the_proof_adds_up_pieces() -> None:
    result = hpcgym.simulate(urgent(), preemption="queue:2>1,suspend")
    assert {"runs", "preemption", "capacity", "energy"} <= {*hpcgym.validate_schedule(result)}
    assert result.suspended is not None
    assert result.pieces is not None
    pieces = result.pieces
    later = result.suspended + np.array([0, 1, 0, 0])
    for changes, told in (
        ({"suspended": later}, "job 1 is still suspended at 7 s, when it fits"),
        ({"suspended": result.suspended - [0, 1, 0, 0]}, "processors over-used"),
        ({"suspended": result.suspended + np.array([1, 0, 0, 0])}, "job 0 was suspended for 1 s"),
        (
            {"pieces": pieces._replace(start=pieces.start + np.array([0, -1]))},
            "job 2 starts at 1 s, its fir",
        ),
        ({"pieces": None}, "does not tell which runs other jobs ended"),
    ):
        wrong: dict[str, Any] = changes  # type: ignore[assignment]
        with pytest.raises(HpcgymError, match=told):
            hpcgym.validate_schedule(replace(result, **wrong))


def test_a_schedule_with_suspended_jobs_as_a_log(tmp_path: Path) -> None:
    """Its waits have the time in it, so that jobs end when they did, and the header says so."""
    result = hpcgym.simulate(urgent(), preemption="queue:2>1,suspend")
    result.to_swf(tmp_path / "log.swf")
    text = (tmp_path / "log.swf").read_text()
    assert "jobs were suspended 2 times, which is told as a part of their waiting times" in text
    again = hpcgym.load_workload(tmp_path / "log.swf")
    ends = again.submit_time + again.wait_time + again.run_time
    assert ends.tolist() == result.end.tolist()


def test_the_lowest_level_is_stopped_first() -> None:
    """By hand: job 2 may stop both; job 0 is of the lower level, and goes though it ran longer."""
    jobs = few_jobs(4, [0, 1, 2], [10, 10, 5], [2, 2, 2], queue=[1, 2, 3])
    result = hpcgym.simulate(jobs, preemption="queue:3>2>1")
    assert result.start.tolist() == [7, 1, 2]
    assert result.restarts.tolist() == [1, 0, 0]


def test_who_fits_stops_nobody() -> None:
    result = hpcgym.simulate(urgent(requested_processors=[1, 1, 1, 1]), preemption="queue:2>1")
    assert result.start.tolist() == [0, 0, 1, 2]
    assert len(result.lost.job) == 0


def test_who_would_not_fit_even_so_stops_nobody() -> None:
    """By hand: job 0 cannot be stopped, and has one of the four processors that job 3 needs.

    Once it has ended, with job 1, only job 2 is left to be stopped.
    """
    jobs = urgent(requested_processors=[1, 2, 1, 4], queue=[2, 1, 1, 2])
    result = hpcgym.simulate(jobs, preemption="queue:2>1")
    assert result.start.tolist() == [0, 0, 15, 10]
    assert result.lost.job.tolist() == [2]


def test_one_that_cannot_start_bars_the_others_of_its_group() -> None:
    """By hand: job 3 waits for job 0 to end; job 4 of its queue stops nobody before that."""
    jobs = few_jobs(4, [0, 0, 1, 2], [10, 20, 5, 5], [1, 3, 4, 2], queue=[2, 1, 2, 2])
    result = hpcgym.simulate(jobs, preemption="queue:2>1", backfill="none")
    assert result.start.tolist() == [0, 20, 10, 15]
    assert result.restarts.tolist() == [0, 1, 0, 0]


@pytest.mark.slow
def test_on_nodes_only_what_is_in_the_way_is_stopped() -> None:
    """By hand: job 2 needs the gpu of node 1, on which job 1 is, and job 0 on node 0 goes on."""
    cluster = Cluster(
        groups=(NodeGroup("a", 1, {"core": 2}), NodeGroup("b", 1, {"core": 2, "gpu": 1}))
    )
    jobs = few_jobs(
        4,
        [0, 0, 3],
        [10, 10, 4],
        [2, 2, 1],
        queue=[1, 1, 2],
        units=[2, 2, 1],
        per_unit={"core": [1, 1, 1], "gpu": [0, 0, 1]},
    )
    result = hpcgym.simulate(jobs, cluster=cluster, preemption="queue:2>1", backfill="none")
    assert result.start.tolist() == [0, 7, 3]
    assert result.lost.node.tolist() == [1]
    hpcgym.validate_schedule(result)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["requeue", "suspend", "cancel"])
def test_a_job_on_very_many_nodes_is_stopped(mode: str) -> None:
    """Its nodes are many times more than there are jobs."""
    cluster = Cluster(groups=(NodeGroup("n", 5_000, {"core": 1}),))
    jobs = few_jobs(5_000, [0, 3], [10, 4], [5_000, 5_000], queue=[1, 2])
    result = hpcgym.simulate(jobs, cluster=cluster, preemption=f"queue:2>1,{mode}")
    assert result.start[1] == 3
    assert result.end.tolist() == {"requeue": [17, 7], "suspend": [14, 7], "cancel": [3, 7]}[mode]
    stopped = result.lost if mode == "requeue" else result.pieces
    if mode != "cancel":
        assert stopped is not None
        assert np.array_equal(stopped.node, np.arange(5_000))
    hpcgym.validate_schedule(result)


def test_the_proof_looks_by_itself() -> None:
    result = hpcgym.simulate(urgent(), preemption="queue:2>1")
    proved = hpcgym.validate_schedule(result)
    assert {"runs", "preemption", "capacity", "energy"} <= {*proved}
    rules = result.scheduler
    nobody = replace(result, scheduler=rules.but(preemption="queue:1>2"))
    with pytest.raises(HpcgymError, match="job 1 is stopped at 2 s, when no job that may stop it"):
        hpcgym.validate_schedule(nobody)
    cancelling = replace(result, scheduler=rules.but(preemption="queue:2>1,cancel"))
    with pytest.raises(HpcgymError, match="was stopped, and not cancelled"):
        hpcgym.validate_schedule(cancelling)
    lost = result.lost
    later = replace(result, lost=lost._replace(end=lost.end + 1))
    with pytest.raises(HpcgymError, match="processors over-used"):
        hpcgym.validate_schedule(later)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["fcfs", "sqf", "spf", "wfp3"])
@pytest.mark.parametrize("mode", ["requeue", "suspend"])
def test_long_queues(order: str, mode: str) -> None:
    """Many run and wait: the lists have several blocks, and the log is made longer."""
    rows = [(0, 150 + row, 1 + row % 3, 11) for row in range(300)]
    # every 40 s some wide jobs come; in between the others start again
    rows += [(40 * (row // 12), 5 + row % 11, 9, 12 + row % 2) for row in range(12, 240)]
    columns = zip(*sorted(rows, key=lambda row: row[0]), strict=True)
    names = ("submit_time", "run_time", "requested_processors", "queue")
    given: dict[str, Any] = dict(zip(names, map(list, columns), strict=True))
    given["requested_time"] = [2 * run for run in given["run_time"]]
    jobs = Workload.from_columns(given, processors=150)
    queues = [str(queue) for queue in jobs.queue.tolist()]
    rules = {"policy": order, "backfill": "easy", "backfill_order": "sjbf"}
    lost: list[Any] = []
    result = hpcgym.simulate(jobs, preemption=f"queue:13>12>11,{mode}", **rules)
    pairs = {("13", "12"), ("13", "11"), ("12", "11")}
    slow = (queues, pairs, mode)
    expected = simulate_pool(jobs_of(jobs), 150, preemption=slow, lost=lost, **rules)
    assert_proved(result, expected, lost)
    assert result.interrupted is not None
    assert len(result.interrupted.job) > 300


def test_who_stops_others_may_free_more_than_the_suspended_have_been_tried_on() -> None:
    """At 8 s the last job stops the second for one processor, after the first was tried in vain."""
    jobs = few_jobs(8, [0, 0, 4, 8], [6, 12, 10, 15], [1, 4, 4, 1], queue=[2, 3, 1, 2])
    result = hpcgym.simulate(jobs, preemption="queue:1>2;2>3,suspend")
    assert result.start.tolist() == [0, 0, 4, 8]
    assert result.end.tolist() == [16, 18, 14, 23]
    hpcgym.validate_schedule(result)
