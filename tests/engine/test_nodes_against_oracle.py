"""The engine's schedules on nodes equal those of the oracle, which shares no code with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from node_strategies import (
    ALLOCATIONS,
    node_cases,
    node_schedulers,
    slow_jobs_and_nodes,
)
from strategies import cases, workloads

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.workload.model import Workload


def units_by_node(result: Any) -> list[dict[int, int]]:
    """Return of each job node -> units on it."""
    first, node, units = result.allocation.first, result.allocation.node, result.allocation.units
    assert first.shape == (len(result.start) + 1,)
    assert (first.dtype, node.dtype, units.dtype) == (np.int64, np.int32, np.int32)
    parts = [slice(*ends) for ends in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)]
    return [dict(zip(node[at].tolist(), units[at].tolist(), strict=True)) for at in parts]


def assert_same(cluster: Cluster, workload: Workload, rules: dict[str, Any]) -> None:
    """Simulate with both and compare all that the oracle records."""
    result = hpcgym.simulate(workload, cluster=cluster, **rules)
    jobs, capacity = slow_jobs_and_nodes(cluster, workload)
    expected = simulate_nodes(jobs, capacity, **rules)
    assert result.start.tolist() == [job.start for job in expected]
    assert units_by_node(result) == [dict(job.nodes) for job in expected]
    assert result.end.tolist() == [job.end for job in expected]
    assert result.killed.tolist() == [job.killed for job in expected]
    assert result.predicted_run_time.tolist() == [job.predicted for job in expected]
    assert result.backfilled.tolist() == [job.backfilled for job in expected]
    assert result.reserved_start.tolist() == [job.reserved_start for job in expected]
    hpcgym.validate_schedule(result)


@pytest.mark.parametrize("backfill", ["none", "easy", "until-shadow", "conservative"])
@settings(max_examples=80)
@given(case=cases())
def test_one_core_a_node_is_the_pool(backfill: str, case: tuple[Workload, dict[str, Any]]) -> None:
    """A workload without units, on as many nodes of one core: the pool's schedule exactly."""
    workload, rules = case
    for order in ("policy", "backfill_order"):
        if not isinstance(rules[order], str) and not any(rules[order]):
            rules[order] = "fcfs"
    rules |= {"backfill": backfill, "passes": "per-timestamp"}
    if backfill == "conservative":
        rules["hold"] = None
    nodes = Cluster(groups=(NodeGroup("all", workload.processors, {"core": 1}),))
    pool = hpcgym.simulate(workload, **rules)
    for allocation in ALLOCATIONS:
        result = hpcgym.simulate(workload, cluster=nodes, allocation=allocation, **rules)
        assert result.start.tolist() == pool.start.tolist()
        assert result.reserved_start.tolist() == pool.reserved_start.tolist()
        assert result.backfilled.tolist() == pool.backfilled.tolist()
    del rules["passes"]
    assert_same(nodes, workload, {**rules, "allocation": "best-fit"})


def crowd(seed: int, jobs: int) -> tuple[Cluster, Workload]:
    """A burst of submissions on an Eurora in small, which makes long queues."""
    groups = (
        NodeGroup("gpu", 4, {"core": 16, "mem": 16, "gpu": 2}),
        NodeGroup("mic", 4, {"core": 16, "mem": 16, "mic": 2}),
    )
    random = np.random.default_rng(seed)
    run = np.ceil(random.lognormal(5, 1.5, jobs)).astype(np.int64)
    units = np.minimum(random.geometric(0.5, jobs), 4)
    core = random.choice([1, 2, 4, 8, 16], jobs)
    kind = random.integers(0, 4, jobs)
    columns = {
        "submit_time": np.sort(random.integers(0, 3 * jobs, jobs)),
        "run_time": run,
        "requested_time": np.ceil(run * random.choice([0.5, 1, 1, 2, 10], jobs)).astype(np.int64),
        "requested_processors": units * core,
        "user_id": random.integers(1, 5, jobs),
    }
    per_unit = {
        "core": core,
        "mem": random.integers(0, 17, jobs),
        "gpu": np.where(kind == 0, random.integers(1, 3, jobs), 0),
        "mic": np.where(kind == 1, random.integers(1, 3, jobs), 0),
    }
    cluster = Cluster(groups=groups)
    workload = Workload.from_columns(
        columns, processors=128, name=f"crowd {seed}", units=units, per_unit=per_unit
    )
    return cluster, workload


@settings(max_examples=6)
@given(st.data(), st.integers(0, 10**6))
def test_long_queues(data: st.DataObject, seed: int) -> None:
    """Many queued and running jobs: the ordered lists split and join their blocks."""
    cluster, workload = crowd(seed, jobs=80)
    assert_same(cluster, workload, data.draw(node_schedulers(workload)))


@settings(max_examples=100)
@given(node_cases())
def test_random_nodes_are_valid_and_the_same_again(
    case: tuple[Cluster, Workload, dict[str, Any]],
) -> None:
    cluster, workload, rules = case
    first, second, other = (
        hpcgym.simulate(workload, cluster=cluster, **{**rules, "allocation": allocation})
        for allocation in ("random:7", "random:7", "random")
    )
    assert first.start.tolist() == second.start.tolist()
    assert units_by_node(first) == units_by_node(second)
    for result in (first, other):
        hpcgym.validate_schedule(result)


def test_random_nodes_differ_by_seed() -> None:
    cluster, workload = crowd(3, jobs=80)
    drawn = [
        units_by_node(hpcgym.simulate(workload, cluster=cluster, allocation=f"random:{seed}"))
        for seed in range(4)
    ]
    assert all(drawn[0] != other for other in drawn[1:])


def test_a_job_that_failed_may_fit_after_another_has_started() -> None:
    """As in `test_reference_nodes.py`: a start may make room for a job that waited before."""
    columns = {
        "submit_time": [0, 0, 1, 1, 2, 3],
        "run_time": [9, 9, 5, 99, 3, 1],
        "requested_time": [9, 9, 5, 99, 3, 1],
    }
    units, core = [1, 1, 2, 2, 1, 1], [1, 2, 2, 1, 1, 4]
    columns["requested_processors"] = [a * b for a, b in zip(units, core, strict=True)]
    workload = Workload.from_columns(columns, processors=6, units=units, per_unit={"core": core})
    groups = (NodeGroup("small", 1, {"core": 2}), NodeGroup("large", 1, {"core": 4}))
    for order, start in (("fcfs", [0, 0, 9, 3, 2, 102]), ("sjbf", [0, 0, 9, 2, 2, 101])):
        rules = {"backfill": "easy", "backfill_order": order}
        result = hpcgym.simulate(workload, cluster=Cluster(groups=groups), **rules)
        assert result.start.tolist() == start
        assert_same(Cluster(groups=groups), workload, rules)


@settings(max_examples=40)
@given(st.data(), workloads(max_jobs=20))
def test_memory_of_a_log_in_kilobytes(data: st.DataObject, workload: Workload) -> None:
    """A workload without units: a core for each processor, with the memory of the log."""
    n, rules = len(workload), data.draw(node_schedulers(workload))
    memory = st.sampled_from([-1, 0, 1, 1_000, 1_001, 1_999, 4_000])
    kilobytes = data.draw(st.lists(memory, min_size=n, max_size=n))
    cores = max(workload.processors // 2, 1)
    nodes = NodeGroup("all", -(-workload.processors // cores), {"core": cores, "mem": 4 * cores})
    assert_same(Cluster(groups=(nodes,)), workload.with_columns(requested_memory=kilobytes), rules)
