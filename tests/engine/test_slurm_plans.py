"""Plans of ``backfill="slurm"``: joined ends, rounded reservations, nodes of Slurm's table."""

from __future__ import annotations

import numpy as np
import pytest
from test_against_oracle import assert_same
from test_nodes_against_oracle import assert_same as assert_same_on_nodes

from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.workload.model import Workload


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
