"""Preemption: the engine's schedules equal those of the slow simulators."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

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
from hpcgym.cluster import Cluster
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.reference.orders import ByExpression
from hpcgym.reference.pool import simulate_pool
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
