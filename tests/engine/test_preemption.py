"""Preemption: the engine's schedules equal those of the slow simulators; by hand; what is told."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import costly, given, settings
from drawing import strategies as st
from extract_strategies import parts_of, recorded, usable
from node_strategies import node_cases, partitioned_cases, slow_jobs_and_nodes
from predictors import Crooked
from preemption_strategies import CLOSE, crowded, preemptions
from quota_strategies import fitted, quotas, with_queues
from share_strategies import BUSY_W, accounts
from share_strategies import cases as cases_by_usage
from slow_expressions import general
from slow_shares import SlowOrder
from strategies import cases
from submission_strategies import chains
from submission_strategies import fitted as fitted_to_chains
from test_windows import apart, times, windows_on
from test_windows import fitted as around_windows

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.errors import HpcgymError, HpcgymWarning, WorkloadWarning
from hpcgym.reference.expressions import ByExpression
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.preemption import Preemption
from hpcgym.validation.validate import ScheduleError
from hpcgym.workload.model import Workload

QUEUES = st.lists(st.integers(1, 4), min_size=2, max_size=6)
TWO = ("estimate", "policy_estimate")


def assert_same(result: Any, expected: list[Any], lost: list[Any]) -> None:
    """Compare all that the slow simulator records, and prove the schedule."""
    assert result.start.tolist() == [job.start for job in expected]
    assert result.end.tolist() == [job.end for job in expected]
    assert result.backfilled.tolist() == [job.backfilled for job in expected]
    assert result.reserved_start.tolist() == [job.reserved_start for job in expected]
    assert result.predicted_run_time.tolist() == [job.predicted for job in expected]
    mine = result.interrupted
    assert mine is not None
    if result.suspended is not None:
        assert result.lost is None
        assert result.suspended.tolist() == [job.paused for job in expected]
        assert result.wait.tolist() == [job.start + job.paused - job.submit for job in expected]
    runs = list(zip(mine.job.tolist(), mine.start.tolist(), mine.end.tolist(), strict=True))
    assert runs == sorted(run[:3] for run in lost)
    if result.allocation is not None:
        held = [dict(zip(*rows, strict=True)) for rows in cells_of(mine)]
        assert held == [run[3] for run in sorted(lost, key=lambda run: run[:3])]
        mine = [dict(zip(*rows, strict=True)) for rows in cells_of(result.allocation)]
        assert mine == [dict(job.nodes) for job in expected]
    hpcgym.validate_schedule(result)


def assert_same_moved(result: Any, expected: list[Any], lost: list[Any]) -> None:
    """Do so where jobs come in another order than they stand in the log."""
    came = sorted(expected, key=lambda job: (job.submit, job.number))
    assert result.workload.submit_time.tolist() == [job.submit for job in came]
    rows = {job.number: row for row, job in enumerate(came)}
    assert_same(result, came, [(rows[run[0]], *run[1:]) for run in lost])
    assert "dependencies" in hpcgym.validate_schedule(result)


def cells_of(held: Any) -> list[tuple[list[int], list[int]]]:
    """Return the nodes and units of each job, or run."""
    parts = [slice(*ends) for ends in pairwise(held.first.tolist())]
    return [(held.node[part].tolist(), held.units[part].tolist()) for part in parts]


@settings(max_examples=300)
@given(st.data(), cases(), QUEUES)
@pytest.mark.filterwarnings("ignore:.*no job may stop another")
def test_pools(data: st.DataObject, case: tuple[Workload, Any], queues: list[int]) -> None:
    workload, rules = with_queues(case[0], queues), fitted(case[1])
    workload = crowded(workload, data.draw(CLOSE))
    text, slow = data.draw(preemptions(workload))
    lost: list[Any] = []
    result = hpcgym.simulate(workload, preemption=text, **rules)
    expected = simulate_pool(
        jobs_of(workload), workload.processors, preemption=slow, lost=lost, **rules
    )
    assert_same(result, expected, lost)


@settings(max_examples=200)
@given(st.data(), cases(), QUEUES)
@pytest.mark.filterwarnings("ignore:.*no job may stop another")
@pytest.mark.filterwarnings("ignore:.*there is no job of")
def test_extracts(data: st.DataObject, case: tuple[Workload, Any], queues: list[int]) -> None:
    """Jobs that run at the beginning are stopped, too."""
    crowd = crowded(with_queues(case[0], queues), data.draw(CLOSE))
    workload = recorded(data, crowd)
    part, rules, begin, end = parts_of(data, workload, usable(fitted(case[1])))
    if part is None:
        return
    text, slow = data.draw(preemptions(workload))
    lost: list[Any] = []
    result = hpcgym.simulate(part, preemption=text, **rules)
    expected = simulate_pool(
        jobs_of(workload), workload.processors, preemption=slow, lost=lost, **rules,
        begin=begin, end=end,
    )  # fmt: skip
    cut = [job for job in expected if job.start >= 0 and job.end - job.start < job.actual]
    decided = [job for job in expected if job.end > begin or job in cut]  # or cancelled at once
    rows = {job.number: row for row, job in enumerate(decided)}
    assert_same(result, decided, [(rows[run[0]], *run[1:]) for run in lost])


@pytest.mark.slow
@costly
@settings(max_examples=300)
@given(st.data(), st.one_of(node_cases(), partitioned_cases()), QUEUES)
@pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions")
@pytest.mark.filterwarnings("ignore:with preemption EASY's reservation is of nodes by name")
@pytest.mark.filterwarnings("ignore:.*no job may stop another")
def test_nodes(data: st.DataObject, case: tuple[Cluster, Workload, Any], queues: list[int]) -> None:
    cluster, workload, rules = case[0], with_queues(case[1], queues), fitted(case[2])
    workload = crowded(workload, data.draw(CLOSE))
    text, slow = data.draw(preemptions(workload))
    lost: list[Any] = []
    result = hpcgym.simulate(workload, cluster=cluster, preemption=text, **rules)
    jobs, capacity = slow_jobs_and_nodes(cluster, workload)
    expected = simulate_nodes(jobs, capacity, preemption=slow, lost=lost, **rules)
    assert_same(result, expected, lost)


@costly
@settings(max_examples=300)
@given(st.data(), cases(), QUEUES)
@pytest.mark.filterwarnings("ignore:.*no job may stop another", "ignore:.*no window is between")
@pytest.mark.filterwarnings("ignore:.*there is no job of")
def test_pools_under_quotas_and_windows(
    data: st.DataObject, case: tuple[Workload, Any], queues: list[int]
) -> None:
    workload = crowded(with_queues(case[0], queues), data.draw(CLOSE))
    rules, most = around_windows(fitted(case[1]), workload), workload.processors
    text, slow = data.draw(preemptions(workload))
    quota, quotas_slow = data.draw(st.one_of(st.just((None, [])), quotas(workload)))
    windows = []
    if slow[2] != "suspend":
        widths = st.one_of(st.just(most), st.integers(1, most))
        drawn = [(*span, {0: data.draw(widths)}) for span in data.draw(times(workload))]
        windows = [(begin, end, takes[0]) for begin, end, takes in apart(drawn, {0: most})]
    texts = [f"{a}/{b}" + ("" if w == most else f":processors={w}") for a, b, w in windows]
    lost: list[Any] = []
    result = hpcgym.simulate(
        workload, preemption=text, quota=quota, maintenance="; ".join(texts) or None, **rules
    )
    expected = simulate_pool(
        jobs_of(workload), most, preemption=slow, lost=lost, quotas=quotas_slow, windows=windows,
        **rules,
    )  # fmt: skip
    assert_same(result, expected, lost)


@pytest.mark.slow
@costly
@settings(max_examples=300)
@given(st.data(), st.one_of(node_cases(), partitioned_cases()), QUEUES)
@pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions")
@pytest.mark.filterwarnings("ignore:with preemption EASY's reservation is of nodes by name")
@pytest.mark.filterwarnings("ignore:.*no job may stop another", "ignore:.*no window is between")
@pytest.mark.filterwarnings("ignore:.*there is no job of")
def test_nodes_under_quotas_and_windows(
    data: st.DataObject, case: tuple[Cluster, Workload, Any], queues: list[int]
) -> None:
    cluster = case[0]
    workload = crowded(with_queues(case[1], queues), data.draw(CLOSE))
    rules = around_windows(fitted(case[2]), workload)
    text, slow = data.draw(preemptions(workload))
    quota, quotas_slow = data.draw(st.one_of(st.just((None, [])), quotas(workload)))
    windows, texts = windows_on(data, cluster, workload) if slow[2] != "suspend" else ([], [])
    lost: list[Any] = []
    result = hpcgym.simulate(
        workload, cluster=cluster, preemption=text, quota=quota,
        maintenance="; ".join(texts) or None, **rules,
    )  # fmt: skip
    jobs, capacity = slow_jobs_and_nodes(cluster, workload)
    expected = simulate_nodes(
        jobs, capacity, preemption=slow, lost=lost, quotas=quotas_slow, windows=windows, **rules
    )
    assert_same(result, expected, lost)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.data(), cases(), QUEUES, general(), general())
@pytest.mark.filterwarnings("ignore:.*no job may stop another")
@pytest.mark.filterwarnings("ignore:.*there is no job of")
def test_orders_that_are_worked_out_anew(
    data: st.DataObject, case: tuple[Workload, Any], queues: list[int], one: str, two: str
) -> None:  # fmt: skip
    """A job that is stopped has the score of that pass."""
    workload = crowded(with_queues(case[0], queues), data.draw(CLOSE))
    rules = {**fitted(case[1]), "policy": one, "backfill_order": two}
    text, slow = data.draw(preemptions(workload))
    lost: list[Any] = []
    own = {"policy": ByExpression(one, workload), "backfill_order": ByExpression(two, workload)}
    result = hpcgym.simulate(workload, preemption=text, **rules)
    expected = simulate_pool(
        jobs_of(workload), workload.processors, preemption=slow, lost=lost, **{**rules, **own}
    )
    assert_same(result, expected, lost)


@settings(max_examples=100)
@given(st.data(), cases(), QUEUES)
@pytest.mark.filterwarnings("ignore:.*no job may stop another", "ignore:.*there is no job of")
def test_predictors_in_python(
    data: st.DataObject, case: tuple[Workload, Any], queues: list[int]
) -> None:
    """A run that is stopped teaches nothing, and a suspended one has run for its pieces alone."""
    workload, rules = with_queues(case[0], queues), fitted(case[1])
    workload = crowded(workload, data.draw(CLOSE))
    text, slow = data.draw(preemptions(workload))
    for rule in data.draw(st.sampled_from([["estimate"], ["policy_estimate"], [*TWO]])):
        rules[rule] = Crooked(None, TWO.index(rule))
    if not isinstance(rules["estimate"], str | list):
        again = ["requested", "incremental", "predicted-again"]
        rules["correction"] = data.draw(st.sampled_from(again))
    lost: list[Any] = []
    result = hpcgym.simulate(workload, preemption=text, **rules)
    expected = simulate_pool(
        jobs_of(workload), workload.processors, preemption=slow, lost=lost, **rules
    )
    assert_same(result, expected, lost)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data(), cases_by_usage(), QUEUES)
@pytest.mark.filterwarnings("ignore:.*no job may stop another")
@pytest.mark.filterwarnings(
    "ignore:.*there is no job of", "ignore:.*no job falls under these quotas"
)
@pytest.mark.filterwarnings("ignore:.*fair share")
def test_orders_by_usage(data: st.DataObject, case: Any, queues: list[int]) -> None:
    """Users are charged for a run that others end at the first pass after, and not before."""
    workload = crowded(with_queues(case[0], queues), data.draw(CLOSE))
    ours, theirs = fitted(case[1]), fitted(case[2])
    text, slow = data.draw(preemptions(workload))
    quota, quotas_slow = data.draw(st.one_of(st.just((None, [])), quotas(workload)))
    cluster = Cluster(workload.processors, busy_power_w=BUSY_W)
    lost: list[Any] = []
    result = hpcgym.simulate(workload, cluster=cluster, preemption=text, quota=quota, **ours)
    expected = simulate_pool(
        jobs_of(workload), workload.processors, preemption=slow, lost=lost, quotas=quotas_slow,
        **theirs,
    )  # fmt: skip
    assert_same(result, expected, lost)


def told_of(slow: Any) -> bool:
    """Whether a preemption goes with jobs that follow others: none of these is cancelled."""
    return slow[2] != "cancel"


@costly
@settings(max_examples=200)
@given(st.data(), cases(), QUEUES)
@pytest.mark.filterwarnings("ignore:.*no job may stop another", "ignore:.*there is no job of")
@pytest.mark.filterwarnings("ignore:.*no job follows another")
def test_jobs_that_follow_others(
    data: st.DataObject, case: tuple[Workload, Any], queues: list[int]
) -> None:
    workload = crowded(with_queues(case[0], queues), data.draw(CLOSE))
    workload, dependencies, follows = data.draw(chains(workload))
    rules = fitted_to_chains(fitted(case[1]))
    text, slow = data.draw(preemptions(workload).filter(lambda drawn: told_of(drawn[1])))
    lost: list[Any] = []
    result = hpcgym.simulate(workload, preemption=text, dependencies=dependencies, **rules)
    expected = simulate_pool(
        jobs_of(workload), workload.processors, preemption=slow, lost=lost, follows=follows, **rules
    )
    assert_same_moved(result, expected, lost)


@pytest.mark.slow
@costly
@settings(max_examples=200)
@given(st.data(), st.one_of(node_cases(), partitioned_cases()), QUEUES)
@pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions")
@pytest.mark.filterwarnings("ignore:with preemption EASY's reservation is of nodes by name")
@pytest.mark.filterwarnings("ignore:.*no job may stop another", "ignore:.*there is no job of")
@pytest.mark.filterwarnings("ignore:.*no job follows another")
def test_jobs_that_follow_others_on_nodes(
    data: st.DataObject, case: tuple[Cluster, Workload, Any], queues: list[int]
) -> None:
    cluster = case[0]
    workload = crowded(with_queues(case[1], queues), data.draw(CLOSE))
    workload, dependencies, follows = data.draw(chains(workload))
    rules = fitted_to_chains(fitted(case[2]))
    text, slow = data.draw(preemptions(workload).filter(lambda drawn: told_of(drawn[1])))
    lost: list[Any] = []
    result = hpcgym.simulate(
        workload, cluster=cluster, preemption=text, dependencies=dependencies, **rules
    )
    jobs, capacity = slow_jobs_and_nodes(cluster, workload)
    expected = simulate_nodes(jobs, capacity, preemption=slow, lost=lost, follows=follows, **rules)
    assert_same_moved(result, expected, lost)


@pytest.mark.slow
@costly
@settings(max_examples=200)
@given(st.data(), st.one_of(node_cases(), partitioned_cases()), QUEUES)
@pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions")
@pytest.mark.filterwarnings("ignore:with preemption EASY's reservation is of nodes by name")
@pytest.mark.filterwarnings("ignore:.*no job may stop another")
@pytest.mark.filterwarnings("ignore:.*fair share")
def test_orders_by_usage_on_nodes(
    data: st.DataObject, case: tuple[Cluster, Workload, Any], queues: list[int]
) -> None:
    cluster = case[0]
    workload = crowded(with_queues(case[1], queues), data.draw(CLOSE))
    text, slow = data.draw(preemptions(workload))
    fair, theirs = data.draw(accounts(workload))
    order = {"policy": "fairshare", "backfill_order": "fairshare"}
    rules = {**fitted(case[2]), **order}
    lost: list[Any] = []
    result = hpcgym.simulate(workload, cluster=cluster, preemption=text, fair_share=fair, **rules)
    jobs, capacity = slow_jobs_and_nodes(cluster, workload)
    rules |= dict.fromkeys(order, SlowOrder("cpu", theirs, [], 1.0))
    expected = simulate_nodes(jobs, capacity, preemption=slow, lost=lost, **rules)
    assert_same(result, expected, lost)


@settings(max_examples=60)
@given(cases())
@pytest.mark.filterwarnings("ignore:.*no job may stop another")
def test_nobody_to_stop_changes_nothing(case: tuple[Workload, Any]) -> None:
    workload, rules = with_queues(case[0], [1]), fitted(case[1])
    rules["passes"] = "per-timestamp"  # else there would be more passes
    result = hpcgym.simulate(workload, preemption="queue:8>1", **rules)
    plain = hpcgym.simulate(workload, **rules)
    for name in ("start", "reserved_start", "backfilled"):
        assert getattr(result, name).tolist() == getattr(plain, name).tolist()


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
    assert_same(result, expected, lost)
    assert result.interrupted is not None
    assert len(result.interrupted.job) > 300


def urgent(**columns: list[int]) -> Workload:
    """Return jobs of 10 s of queue 1 on 4 processors, and one of queue 2 that comes at 2 s."""
    given = {
        "submit_time": [0, 0, 1, 2],
        "run_time": [10, 10, 10, 5],
        "requested_time": [10, 10, 10, 5],
        "requested_processors": [1, 2, 1, 3],
        "queue": [1, 1, 1, 2],
    }
    return Workload.from_columns({**given, **columns}, processors=4)


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
    columns = {
        "submit_time": [0, 0, 10, 20, 20],
        "run_time": [100, 500, 50, 10, 5],
        "requested_time": [100, 500, 50, 10, 5],
        "requested_processors": [4, 2, 2, 3, 2],
        "queue": [1, 3, 2, 2, 2],
    }
    jobs = Workload.from_columns(columns, processors=6)
    for backfill in ("none", "easy", "depth:3", "slurm"):
        result = hpcgym.simulate(jobs, preemption="queue:2>1,suspend", backfill=backfill)
        lost: list[Any] = []
        expected = simulate_pool(
            jobs_of(jobs), 6, backfill=backfill, lost=lost,
            preemption=([1, 3, 2, 2, 2], {(2, 1)}, "suspend"),
        )  # fmt: skip
        assert_same(result, expected, lost)
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
    jobs = Workload.from_columns(
        {
            "submit_time": [0, 0, 5, 6, 6],
            "run_time": [10, 4, 5, 5, 5],
            "requested_time": [10, 4, 5, 5, 5],
            "requested_processors": [3, 1, 4, 4, 4],
            "user_id": [1, 2, 3, 1, 2],
            "queue": [1, 1, 2, 1, 1],
        },
        processors=4,
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
    columns = {
        "submit_time": [0, 3, 4],
        "run_time": [10, 5, 5],
        "requested_time": [10, 5, 5],
        "requested_processors": [2, 2, 1],
        "queue": [1, 2, 2],
    }
    jobs = Workload.from_columns(
        columns, processors=2, units=[1, 1, 1], per_unit={"core": [2, 2, 1], "mem": [5, 3, 4]}
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
    columns = {
        "submit_time": [0, 10, 100, 515],
        "run_time": [1000, 500, 1000, 60],
        "requested_time": [1000, 500, 1000, 60],
        "requested_processors": [8, 4, 3, 1],
        "queue": [1, 2, 1, 1],
    }
    jobs = Workload.from_columns(columns, processors=10)
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
    columns = {
        "submit_time": [0, 1, 2],
        "run_time": [10, 10, 5],
        "requested_time": [10, 10, 5],
        "requested_processors": [2, 2, 2],
        "queue": [1, 2, 3],
    }
    jobs = Workload.from_columns(columns, processors=4)
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
    columns = {
        "submit_time": [0, 0, 1, 2],
        "run_time": [10, 20, 5, 5],
        "requested_time": [10, 20, 5, 5],
        "requested_processors": [1, 3, 4, 2],
        "queue": [2, 1, 2, 2],
    }
    jobs = Workload.from_columns(columns, processors=4)
    result = hpcgym.simulate(jobs, preemption="queue:2>1", backfill="none")
    assert result.start.tolist() == [0, 20, 10, 15]
    assert result.restarts.tolist() == [0, 1, 0, 0]


@pytest.mark.slow
def test_on_nodes_only_what_is_in_the_way_is_stopped() -> None:
    """By hand: job 2 needs the gpu of node 1, on which job 1 is, and job 0 on node 0 goes on."""
    cluster = Cluster(
        groups=(NodeGroup("a", 1, {"core": 2}), NodeGroup("b", 1, {"core": 2, "gpu": 1}))
    )
    columns = {
        "submit_time": [0, 0, 3],
        "run_time": [10, 10, 4],
        "requested_time": [10, 10, 4],
        "requested_processors": [2, 2, 1],
        "queue": [1, 1, 2],
    }
    jobs = Workload.from_columns(
        columns, processors=4, units=[2, 2, 1], per_unit={"core": [1, 1, 1], "gpu": [0, 0, 1]}
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
    columns = {
        "submit_time": [0, 3],
        "run_time": [10, 4],
        "requested_time": [10, 4],
        "requested_processors": [5_000, 5_000],
        "queue": [1, 2],
    }
    jobs = Workload.from_columns(columns, processors=5_000)
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


def test_names_of_the_log() -> None:
    jobs = replace(urgent(), header={"Queue": ["1 low", "2 high"]})
    assert hpcgym.simulate(jobs, preemption="qos:high>low").restarts.sum() == 2
    with pytest.warns(WorkloadWarning) as told:
        hpcgym.simulate(jobs, preemption="qos:hihg>low")
    texts = [str(one.message) for one in told]
    assert any("nothing is called 'hihg' in queue; did you mean 'high'?" in one for one in texts)
    assert "workload: preemption qos:hihg>low: no job may stop another" in texts
    with pytest.warns(WorkloadWarning, match="qos:high>low;gold>low: there is no job of gold$"):
        hpcgym.simulate(jobs, preemption="qos:high>low;gold>low")


NAMES = st.sampled_from(["1", "a b", "x-y", "high", "é"])


@given(st.sets(st.tuples(NAMES, NAMES).filter(lambda pair: pair[0] < pair[1]), min_size=1))
def test_as_text_and_back(pairs: set[tuple[str, str]]) -> None:
    for mode in ("requeue", "cancel", "suspend"):
        rule = Preemption("partition", tuple(sorted(pairs)), mode)
        assert Preemption.parse(str(rule)) == rule
        times = rule.stopped if mode != "suspend" else ()
        for some in (times, times[:1]):
            exempt = Preemption("partition", rule.pairs, mode, tuple((one, 60) for one in some))
            assert Preemption.parse(str(exempt)) == exempt
        assert all(rule.levels[one] > rule.levels[other] for one, other in pairs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queue", "preemption 'queue' is neither a file nor a rule such as 'partition:"),
        ("queue:1", "neither a file nor a rule"),
        ("queue:1>2;qos:2>3", "one column is for all names, queue: '2' stands with another, qos"),
        ("queue:1>2;3", "'3' does not say who stops whom"),
        ("queues:1>2", "unknown column 'queues'"),
        ("queue:1>2,suspended", "unknown mode 'suspended'; did you mean 'suspend'"),
        ("queue:1>2;2>1", "jobs could stop each other in a circle"),
        ("queue:1>1", "jobs could stop each other in a circle"),
        ("queue:1>", "a name is missing"),
        ("queue:1>2,suspend,exempt=60", "exempt goes with requeue and cancel; with suspend Slurm"),
        ("queue:1>2,exempt=1=60", "exempt: nobody may stop jobs of '1'"),
        ("queue:1>2,exempt=2=60;2=70", "exempt: '2' is there twice"),
        ("queue:1>2,exempt=0", "exempt: seconds must be a whole number from 1 to 1,000,000,000"),
        ("queue:1>2,exempt=1h", "exempt: seconds must be a whole number from 1 to 1,000,000,000"),
        ("qos.txt", "qos.txt: no such file"),
        ("../qos", "../qos: no such file"),
        (7, "preemption must be a text such as"),
    ],
)
def test_what_is_no_preemption_is_one_line(text: Any, message: str) -> None:
    with pytest.raises(HpcgymError) as error:
        hpcgym.simulate(urgent(), preemption=text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_column_may_be_said_again() -> None:
    assert Preemption.parse("queue:1>2;queue:2>3") == Preemption.parse("queue:1>2;2>3")


def test_a_file_of_qos(tmp_path: Path) -> None:
    file = tmp_path / "qos.txt"
    rows = ["low|0|00:00:00||cluster", "high|9|00:00:00|low,free|cluster", "free|0|00:05:00||"]
    file.write_text("\n".join(["Name|Priority|GraceTime|Preempt|PreemptMode", *rows]) + "\n")
    with pytest.warns(HpcgymWarning, match=r"not followed by preemption: free: GraceTime$"):
        scheduler = hpcgym.Scheduler(preemption=str(file))
    assert scheduler.preemption == "qos:high>low;high>free"
    assert hpcgym.Scheduler(preemption=scheduler.preempts) == scheduler
    file.write_text("Name|Preempt|PreemptMode\na|b|\nb||cancel\n")
    assert hpcgym.Scheduler(preemption=str(file)).preemption == "qos:a>b,cancel"
    file.write_text("Name|Preempt|PreemptMode\na|b|\nb||gang,suspend\n")
    assert hpcgym.Scheduler(preemption=str(file)).preemption == "qos:a>b,suspend"
    file.write_text("Name|Preempt|PreemptMode\na|b,c|\nb||cancel\nc||OFF\n")
    assert hpcgym.Scheduler(preemption=str(file)).preemption == "qos:a>b,cancel"
    times = "Name|Preempt|PreemptMode|PreemptExemptTime\na|b,c|{0}|\nb||{0}|00:01:00\nc||{0}|\n"
    file.write_text(times.format("cancel"))
    assert hpcgym.Scheduler(preemption=str(file)).preemption == "qos:a>b;a>c,cancel,exempt=b=60"
    file.write_text(times.format("suspend"))
    assert hpcgym.Scheduler(preemption=str(file)).preemption == "qos:a>b;a>c,suspend"
    file.write_text("Name|Preempt|MaxJobsPU|MaxWall|GrpTRES\na|b|3||cpu=4\nb|||1-00:00:00|\n")
    with pytest.warns(HpcgymWarning, match="by preemption: a: MaxJobsPU, a: GrpTRES, b: MaxWall$"):
        hpcgym.Scheduler(preemption=str(file))
    for text, told in (
        ("Name|Preempt|PreemptMode\na|b,c|\nb||cancel\nc||requeue\n", "several ways, cancel, req"),
        ("Name|Preempt|PreemptMode\na|b,c|\nb||cancel\nc||cluster\n", "ways, cancel, requeue"),
        ("Name|Preempt|PreemptMode\na|b|\nb||gang\n", "unknown mode 'gang'"),
        ("Name|Preempt|PreemptMode\na|b|\nb||off\n", "the PreemptMode of all is OFF"),
        ("Name|Preempt\na|\n", "no QOS may stop another"),
    ):
        file.write_text(text)
        with pytest.raises(HpcgymError, match=told):
            hpcgym.Scheduler(preemption=str(file))
