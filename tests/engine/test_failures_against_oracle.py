"""Schedules on nodes that fail equal those of the slow simulator, which shares no code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from failure_strategies import Failure, failures_for, table_of
from node_strategies import node_cases, node_schedulers

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.reference.failures import Lost, simulate_failures
from hpcgym.reference.jobs import Job, node_jobs_of
from hpcgym.workload.model import Workload


def units_by_node(first: Any, node: Any, units: Any) -> list[dict[int, int]]:
    """Return of each job, or run, node -> units on it."""
    parts = [slice(*ends) for ends in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)]
    return [dict(zip(node[at].tolist(), units[at].tolist(), strict=True)) for at in parts]


def assert_same(
    cluster: Cluster, workload: Workload, rules: dict[str, Any], failures: list[Failure]
) -> Any:
    """Simulate with both, compare all that the slow one records, and prove it."""
    result = hpcgym.simulate(workload, cluster=cluster, failures=table_of(failures), **rules)
    jobs = node_jobs_of(workload, cluster.resources)
    expected, lost = simulate_failures(jobs, cluster.capacity.tolist(), failures, **rules)
    return compared(result, expected, lost)


def compared(result: Any, expected: list[Job], lost: list[Lost]) -> Any:
    """Compare all that the slow one records, of the jobs of a result; prove it."""
    assert result.start.tolist() == [job.start for job in expected]
    assert units_by_node(*result.allocation) == [dict(job.nodes) for job in expected]
    assert result.end.tolist() == [job.end for job in expected]
    assert result.killed.tolist() == [job.killed for job in expected]
    assert result.predicted_run_time.tolist() == [job.predicted for job in expected]
    assert result.backfilled.tolist() == [job.backfilled for job in expected]
    assert result.reserved_start.tolist() == [job.reserved_start for job in expected]
    mine = result.lost
    held = units_by_node(mine.first, mine.node, mine.units)
    times = (mine.job.tolist(), mine.start.tolist(), mine.end.tolist())
    assert list(zip(*times, held, strict=True)) == sorted(lost, key=lambda run: run[:3])
    assert result.restarts.tolist() == [
        sum(run[0] == row for run in lost) for row in range(len(expected))
    ]
    hpcgym.validate_schedule(result)
    return result


@settings(max_examples=100)
@given(st.data(), node_cases())
def test_random_nodes_are_valid_and_the_same_again(data: st.DataObject, case: Any) -> None:
    cluster, workload, rules = case
    failures = table_of(data.draw(failures_for(cluster, workload)))
    first, second = (
        hpcgym.simulate(
            workload, cluster=cluster, failures=failures, **{**rules, "allocation": "random:7"}
        )
        for _ in range(2)
    )
    assert first.start.tolist() == second.start.tolist()
    hpcgym.validate_schedule(first)


@pytest.mark.slow
@settings(max_examples=2)
@given(st.data(), st.integers(0, 10**6))
def test_long_queues(data: st.DataObject, seed: int) -> None:
    """Many queued and running jobs: jobs go back into the middle of lists of several blocks."""
    random = np.random.default_rng(seed)
    n, nodes = 200, 30
    columns = {
        "submit_time": np.sort(random.integers(0, n, n)),
        "run_time": random.integers(1, 150, n),
        "requested_processors": random.integers(1, 5, n),
        "user_id": random.integers(1, 5, n),
    }
    columns["requested_time"] = columns["run_time"] * random.choice([1, 1, 2, 5], n)
    cluster = Cluster(groups=(NodeGroup("a", nodes, {"core": 4}),))
    workload = Workload.from_columns(columns, processors=4 * nodes, name=f"crowd {seed}")
    rules = data.draw(node_schedulers(workload))
    failures = [
        (node, time, time + int(random.integers(1, 100)))
        for node in range(nodes)
        for time in range(int(random.integers(1, 200)), 500, 200)
    ]
    assert_same(cluster, workload, rules, failures)


@pytest.mark.parametrize("order", ["sqf", "spf", "sjbf"])
def test_a_job_comes_back_before_equal_ones_that_were_submitted_later(order: str) -> None:
    """One node of a hundred: the jobs on it are equal to many in the queue, of several blocks."""
    n = 150
    columns = {
        "submit_time": [0] * n,
        "run_time": [5] * n,
        "requested_time": [5] * n,
        "requested_processors": [2] * n,
    }
    workload = Workload.from_columns(columns, processors=4)
    cluster = Cluster(groups=(NodeGroup("a", 2, {"core": 2}),))
    rules = {"policy": "fcfs" if order == "sjbf" else order, "backfill": "easy"}
    rules["backfill_order"] = order
    result = assert_same(cluster, workload, rules, [(0, 2, 3), (1, 8, 20), (0, 8, 10)])
    assert result.start.tolist()[:3] == [3, 0, 10]


@pytest.mark.parametrize("order", ["sqf", "spf", "sjbf", "fcfs"])
def test_a_job_is_backfilled_again_before_equal_ones_that_came_later(order: str) -> None:
    """It ran before the head, job 1, and was submitted before job 3, which waits."""
    columns = {
        "submit_time": [0, 1, 1, 2],
        "run_time": [100, 5, 9, 9],
        "requested_time": [100, 5, 9, 9],
        "requested_processors": [2, 4, 2, 2],
    }
    workload = Workload.from_columns(columns, processors=4)
    cluster = Cluster(groups=(NodeGroup("a", 2, {"core": 2}),))
    rules = {"backfill": "easy", "backfill_order": order}
    result = assert_same(cluster, workload, rules, [(1, 3, 4)])
    assert result.start.tolist() == [0, 100, 4, 13]


def test_priorities_by_usage_are_those_of_a_repair() -> None:
    """By hand: by 1000 s what user 1 has used is forgotten, and job 1 has waited for longer."""
    columns = {
        "submit_time": [0, 5, 9],
        "run_time": [10, 100, 100],
        "requested_time": [10, 100, 100],
        "requested_processors": [1, 1, 1],
        "user_id": [1, 1, 2],
    }
    jobs = Workload.from_columns(columns, processors=1)
    node = Cluster(groups=(NodeGroup("a", 1, {"core": 1}),))
    rules = {"policy": {"fairshare": 1, "wait": 0.01}, "fair_share": {"half_life_s": 20}}
    down = table_of([(0, 10, 1000)])
    result = hpcgym.simulate(jobs, cluster=node, failures=down, **rules)
    assert result.start.tolist() == [0, 1000, 1100]
