"""Plans of ``backfill="slurm"``: joined ends, rounded reservations, nodes of Slurm's table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import costly, given, settings
from drawing import strategies as st
from node_strategies import node_cases, partitioned_cases
from strategies import SLURM, plans, schedulers, workloads
from test_against_oracle import assert_same
from test_nodes_against_oracle import assert_same as assert_same_on_nodes

from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.workload.model import Workload


@settings(max_examples=300)
@given(workloads(), st.data(), SLURM)
def test_random_cases(workload: Workload, data: st.DataObject, backfill: str) -> None:
    assert_the_same(workload, data, backfill)


@settings(max_examples=60)
@given(workloads(brief=True), st.data(), plans(1, 7))
def test_passes_in_each_second(workload: Workload, data: st.DataObject, backfill: str) -> None:
    assert_the_same(workload, data, backfill)


def assert_the_same(workload: Workload, data: st.DataObject, backfill: str) -> None:
    rules = data.draw(schedulers(workload))
    for order in ("policy", "backfill_order"):
        if not isinstance(rules[order], str) and not any(rules[order]):
            rules[order] = "fcfs"
    assert_same(workload, {**rules, "backfill": backfill, "passes": "per-timestamp", "hold": None})


@costly
@settings(max_examples=150)
@given(node_cases(), SLURM)
def test_random_cases_on_nodes(
    case: tuple[Cluster, Workload, dict[str, Any]], backfill: str
) -> None:
    cluster, workload, rules = case
    assert_same_on_nodes(cluster, workload, {**rules, "backfill": backfill, "hold": None})


@costly
@settings(max_examples=100)
@given(partitioned_cases(), SLURM)
@pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions")
def test_random_cases_with_partitions(
    case: tuple[Cluster, Workload, dict[str, Any]], backfill: str
) -> None:
    cluster, workload, rules = case
    assert_same_on_nodes(cluster, workload, {**rules, "backfill": backfill, "hold": None})


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "backfill",
    ["slurm:bf_interval=30+bf_max_job_test=70", "slurm:bf_interval=11+bf_job_part_count_reserve=3"],
)
def test_long_queues(seed: int, backfill: str) -> None:
    """More jobs wait than a block of the queue holds: those behind count too."""
    rng, n = np.random.default_rng(seed), 150
    run = rng.integers(1, 400, n)
    columns = {
        "submit_time": np.sort(rng.integers(0, 600, n)),
        "run_time": run,
        "requested_time": run * rng.integers(1, 6, n),
        "requested_processors": np.where(rng.random(n) < 0.4, 1, rng.integers(1, 33, n)),
    }
    workload = Workload.from_columns(columns, processors=32)
    rules = {"policy": "fcfs", "backfill": backfill, "backfill_order": "fcfs"}
    rules |= {"estimate": "requested", "correction": "requested", "threshold": None}
    assert_same(workload, {**rules, "passes": "per-timestamp", "hold": None})
    cluster = Cluster(groups=(NodeGroup("n", 8, {"core": 4}),))
    assert_same_on_nodes(cluster, workload, {**rules, "allocation": "first-fit", "hold": None})
