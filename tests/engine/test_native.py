"""The native engine and the kernels that it replaces are in the same state after each pass."""

from __future__ import annotations

import pytest
from drawing import given, settings
from drawing import strategies as st
from strategies import SLURM, cases, clusters
from twins import assert_same_after_each_pass

from hpcgym.cluster.pool import Cluster
from hpcgym.simulation.run import scheduler_of
from hpcgym.workload.load import load_workload


@pytest.mark.parametrize("policy", ["fcfs", "saf", "lexp"])
@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
def test_queues_of_many_blocks_with_a_reservation_for_each(policy: str, passes: str) -> None:
    """Only in long queues it is noted who may find an earlier place."""
    rules = {"policy": policy, "passes": passes, "backfill": "conservative"}
    for seed in range(2):
        workload = load_workload(f"lublin:jobs=400,processors=64,load=200,seed={seed}")
        cluster = Cluster(workload.processors)
        for more in ({}, {"estimate": "ave2", "correction": "incremental"}):
            scheduler = scheduler_of("easy", rules | more)
            assert assert_same_after_each_pass(workload, scheduler, cluster, 7)


@settings(max_examples=300)
@given(st.data())
def test_each_pass_on_a_pool(data: st.DataObject) -> None:
    workload, rules = data.draw(cases())
    for name in ("policy", "backfill_order"):
        if not isinstance(rules[name], str) and not any(rules[name]):
            rules[name] = "saf"
    cluster = Cluster(workload.processors)
    if rules["backfill"] == "slurm":
        rules["backfill"] = data.draw(SLURM)
    may_switch = rules["backfill"] in ("none", "easy", "until-shadow")
    if may_switch and rules["passes"] == "per-timestamp" and data.draw(st.booleans()):
        cluster = data.draw(clusters(workload.processors))
        rules |= {"threshold": None, "hold": None}
    scheduler = scheduler_of("easy", rules)
    assert assert_same_after_each_pass(
        workload, scheduler, cluster, data.draw(st.sampled_from([1, 3]))
    )
