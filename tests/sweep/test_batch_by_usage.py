"""Batches under orders by what users have used: the schedules of the oracle, and of `simulate`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, assume, given, settings
from drawing import strategies as st
from extract_strategies import parts_of, recorded
from node_strategies import machines, workloads_for
from share_strategies import BUSY_W, SHARES, accounts, cases, fitting, heeded, with_power
from strategies import workloads
from worth import worth

import hpcgym
from hpcgym.cluster import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.policies import FEATURES, USER_FEATURES, FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.sweep import BatchSimulator
from hpcgym.sweep.batch import METRICS
from hpcgym.workload.model import Workload

pytestmark = pytest.mark.slow

ENGINE = settings(deadline=None, suppress_health_check=list(HealthCheck))
#: In another order than the table of features, usage in the middle.
NAMES = ("wait", "fairshare", "requested", "energy_fairshare", "processors")
#: What a policy by one name is as weights.
ALONE = {"fcfs": {"wait": 1.0}, "fairshare": {"fairshare": 1.0}}
ALONE["energy-fairshare"] = {"energy_fairshare": 1.0}


def vector_of(policy: Any) -> list[float]:
    weights = policy if isinstance(policy, dict) else ALONE[policy]
    return [weights.get(name, 0.0) for name in NAMES]


def policy_of(vector: list[float]) -> Any:
    return dict(zip(NAMES, vector, strict=True)) if any(vector) else "fcfs"


def metrics_of(jobs: Workload, cluster: Cluster, **rules: Any) -> list[float]:
    metrics = hpcgym.simulate(jobs, cluster=cluster, **heeded(rules)).metrics
    return [metrics[name] for name in METRICS]


VECTORS = st.tuples(
    *[st.sampled_from([0.0, 0.01, -0.01])],
    *[st.sampled_from([0.0, 1.0, -0.5, 100.0])],
    *[st.sampled_from([0.0, 0.0, -0.25])],
    *[st.sampled_from([0.0, 0.0, 1.0])],
    *[st.sampled_from([0.0, -0.25])],
).map(list)


@settings(ENGINE, max_examples=300)
@given(cases(), VECTORS, st.booleans())
def test_metrics_are_those_of_the_oracle(
    case: tuple[Workload, dict[str, Any], dict[str, Any]], other: list[float], twice: bool
) -> None:
    """Also of a vector that follows another, and of a slice of the same jobs twice."""
    workload, ours, theirs = case
    assume(ours["policy"] != "fs+efs" and ours["backfill"] != "conservative")
    if not isinstance(ours["estimate"], str):
        ours["estimate"] = theirs["estimate"] = "ave2"
    rules = {name: rule for name, rule in ours.items() if name != "policy"}
    cluster = Cluster(workload.processors, busy_power_w=BUSY_W)
    batch = BatchSimulator([workload] * (1 + twice), NAMES, Scheduler(**rules), cluster=cluster)
    mine = vector_of(ours["policy"])
    values = batch.run([mine, other, mine], list(METRICS), threads=1)
    jobs = simulate_pool(jobs_of(workload), workload.processors, **theirs)
    for v, s in ((0, 0), (2, 0), (2, int(twice))):
        found = dict(zip(METRICS, values[v, s].tolist(), strict=True))
        assert found == pytest.approx(worth(jobs, workload.processors), rel=1e-12)
    same = metrics_of(workload, cluster, **rules | {"policy": policy_of(other)})
    assert values[1, -1].tolist() == pytest.approx(same, rel=1e-12)


ORDERS = st.sampled_from(
    ["fcfs", "sjbf", "fairshare", "energy-fairshare", "fs+efs", {"fairshare": 1, "wait": 0.01}]
)
ESTIMATES = st.sampled_from(["requested", "clairvoyant", "ave2", "typical-ratio", "e-loss"])


@st.composite
def rules_on(draw: st.DrawFn, jobs: Workload) -> dict[str, Any]:
    fair, _ = draw(accounts(jobs))
    return {
        "backfill": draw(st.sampled_from(["easy", "easy", "none"])),
        "backfill_order": draw(fitting(ORDERS, fair)),
        "estimate": draw(ESTIMATES),
        "policy_estimate": draw(ESTIMATES),
        "correction": draw(st.sampled_from(["requested", "incremental"])),
        "threshold": draw(st.sampled_from([None, None, 5, 2000])),
        "fair_share": fair,
    }


@settings(ENGINE, max_examples=150)
@given(st.data(), machines(), st.lists(VECTORS, min_size=2, max_size=3))
def test_on_nodes_they_are_those_of_simulate(
    data: st.DataObject, cluster: Cluster, vectors: list[list[float]]
) -> None:
    """Each slice has the shares of its own users; run times are learned beside."""
    jobs = workloads_for(cluster).flatmap(with_power)
    parts = data.draw(st.lists(jobs, min_size=1, max_size=3))
    rules = data.draw(rules_on(parts[0]))
    batch = BatchSimulator(parts, NAMES, Scheduler(**rules), cluster=cluster)
    values = batch.run(vectors, list(METRICS), threads=1)
    for v, vector in enumerate(vectors):
        for s, part in enumerate(parts):
            same = metrics_of(part, cluster, **rules | {"policy": policy_of(vector)})
            assert values[v, s].tolist() == pytest.approx(same, rel=1e-12)


@settings(ENGINE, max_examples=150)
@given(st.data(), workloads().flatmap(with_power), st.lists(VECTORS, min_size=2, max_size=2))
def test_extracts_begin_with_what_was_used(
    data: st.DataObject, workload: Workload, vectors: list[list[float]]
) -> None:
    rules = data.draw(rules_on(workload))
    rules["passes"] = data.draw(st.sampled_from(["per-timestamp", "per-event"]))
    workload = recorded(data, workload)
    part, *_ = parts_of(data, workload, rules)
    if part is None:
        return
    cluster, parts = Cluster(workload.processors), [workload, part, workload]
    batch = BatchSimulator(parts, NAMES, Scheduler(**rules), cluster=cluster)
    values = batch.run(vectors, list(METRICS), threads=1)
    for v, vector in enumerate(vectors):
        for s, one in enumerate(parts):
            same = metrics_of(one, cluster, **rules | {"policy": policy_of(vector)})
            assert values[v, s].tolist() == pytest.approx(same, rel=1e-12, nan_ok=True)


def long_trace() -> list[Workload]:
    """Slices in which jobs of many users wait."""
    trace = hpcgym.load_workload("lublin:jobs=1200,processors=64,seed=5,load=1.2")
    users = np.random.default_rng(0).zipf(1.6, 1200) % 23
    trace = trace.with_columns(user_id=users)
    return [trace.take(slice(k, k + 400), name=f"part {k}") for k in range(0, 1200, 400)]


def test_threads_change_nothing() -> None:
    fair = FairShare(86_400, shares={1: 5.0, 99: 2.0})
    rules = Scheduler(backfill_order="fairshare", fair_share=fair)
    features = (*USER_FEATURES, "wait", "area")
    batch = BatchSimulator(long_trace(), features, rules)
    vectors = np.random.default_rng(3).uniform(-1, 1, (9, 4)) * [1, 1, 1e-5, 1e-6]
    vectors[4] = [1, 0, 0, 0]
    alone = batch.run(vectors, threads=1)
    assert (alone == batch.run(vectors, threads=2)).all()
    assert (alone == batch.run(vectors, threads=1)).all()
    assert len(np.unique(alone)) > 20
    for v, s in ((0, 0), (4, 1), (8, 2)):
        policy = dict(zip(features, vectors[v].tolist(), strict=True))
        result = hpcgym.simulate(long_trace()[s], rules.but(policy=policy))
        assert alone[v, s] == pytest.approx(result.metrics["mean_bsld"], rel=1e-12)


def test_the_usual_features_under_an_order_by_usage() -> None:
    """All features, none by usage, whose scores the second order has its own beside."""
    rules = Scheduler(backfill_order="fs+efs", fair_share=FairShare(3600, shares=SHARES[2]))
    batch = BatchSimulator(long_trace(), tuple(FEATURES), rules)
    vector = np.random.default_rng(1).uniform(-1, 1, len(FEATURES))
    values = batch.run([vector], threads=1)
    for s, part in enumerate(long_trace()):
        policy = dict(zip(FEATURES, vector.tolist(), strict=True))
        same = hpcgym.simulate(part, rules.but(policy=policy)).metrics["mean_bsld"]
        assert values[0, s] == pytest.approx(same, rel=1e-12)


def test_energy_without_power_is_said() -> None:
    dark = Cluster(64, busy_power_w=0.0)
    for features, order in ((["energy_fairshare"], "fcfs"), (["area"], "fs+efs")):
        with pytest.raises(HpcgymError, match="without power there is no energy to share"):
            BatchSimulator(long_trace(), features, Scheduler(backfill_order=order), cluster=dark)
    BatchSimulator(long_trace(), ["fairshare"], cluster=dark)
