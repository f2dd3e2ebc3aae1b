"""Batches on machines of nodes: the schedules of the slow simulator, and of ``simulate``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, assume, given, settings
from drawing import strategies as st
from node_strategies import ALLOCATIONS, machines, node_schedulers, workloads_for
from strategies import WEIGHTS
from worth import worth

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.reference.jobs import node_jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.scheduler.policies import FEATURES, WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.nodes import needs_on, single_cores
from hpcgym.sweep import BatchSimulator
from hpcgym.sweep.batch import METRICS
from hpcgym.workload.model import Workload

pytestmark = pytest.mark.slow

VECTORS = st.tuples(*[WEIGHTS] * 6).filter(any)
ENGINE = settings(deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def batches(draw: st.DrawFn) -> tuple[Cluster, list[Workload], dict[str, Any]]:
    """A machine, one to three slices for it, and the rules of a scheduler."""
    cluster = draw(machines())
    parts = draw(st.lists(workloads_for(cluster), min_size=1, max_size=3))
    rules = draw(node_schedulers(parts[0]))
    if not isinstance(rules["estimate"], str):
        rules["estimate"] = "ave2"
    if rules["backfill"].startswith(("depth:", "slurm")):  # all ask for single cores, or none
        alone = [single_cores(needs_on(part, cluster)) for part in parts]
        assume(all(alone) == any(alone))
    return cluster, parts, rules


@settings(ENGINE, max_examples=300)
@given(batches(), st.lists(VECTORS, min_size=1, max_size=3))
def test_metrics_are_those_of_the_oracle(
    case: tuple[Cluster, list[Workload], dict[str, Any]], vectors: list[Any]
) -> None:
    cluster, parts, rules = case
    scheduler = Scheduler(**{**rules, "policy": "fcfs"})
    batch = BatchSimulator(parts, WEIGHTED_FEATURES, scheduler, cluster=cluster)
    values = batch.run(vectors, list(METRICS), threads=1)
    for v, vector in enumerate(vectors):
        for s, part in enumerate(parts):
            jobs = simulate_nodes(
                node_jobs_of(part, cluster.resources),
                cluster.capacity.tolist(),
                **{**rules, "policy": vector},
            )
            found = dict(zip(METRICS, values[v, s].tolist(), strict=True))
            assert found == pytest.approx(worth(jobs, cluster.processors), rel=1e-12)


@settings(ENGINE, max_examples=100)
@given(
    batches(),
    *[st.sampled_from(["ave3", "typical-ratio", "e-loss", "clairvoyant"])] * 2,
    st.sampled_from([*ALLOCATIONS, "random:3"]),
    st.lists(WEIGHTS, min_size=len(FEATURES), max_size=len(FEATURES)).filter(any),
)
def test_predictions_and_nodes_are_those_of_simulate(
    case: tuple[Cluster, list[Workload], dict[str, Any]],
    estimate: str,
    policy_estimate: str,
    allocation: str,
    vector: list[float],
) -> None:
    cluster, parts, rules = case
    rules |= {"policy": "fcfs", "estimate": estimate, "policy_estimate": policy_estimate}
    rules |= {"allocation": allocation}
    batch = BatchSimulator(parts, tuple(FEATURES), Scheduler(**rules), cluster=cluster)
    values = batch.run([vector, vector], list(METRICS), threads=1)  # each begins anew
    assert (values[0] == values[1]).all()
    rules["policy"] = dict(zip(FEATURES, vector, strict=True))
    for s, part in enumerate(parts):
        metrics = hpcgym.simulate(part, cluster=cluster, **rules).metrics
        expected = [metrics[name] for name in METRICS]
        assert values[0, s].tolist() == pytest.approx(expected, rel=1e-12)


NODES = Cluster(groups=(NodeGroup("a", 16, {"core": 4, "mem": 8}),))


def slices(count: int = 3) -> list[Workload]:
    """Slices of a trace whose units need two cores, or one and memory."""
    trace = hpcgym.load_workload("lublin:jobs=900,processors=64,seed=5,load=1.1")
    units = np.maximum(trace.requested_processors // 2, 1)
    core = np.where(trace.requested_processors > 1, 2, 1)
    trace = Workload.from_columns(
        {name: c for name, c in trace.columns.items() if name != "requested_processors"},
        processors=64,
        units=units,
        per_unit={"core": core, "mem": 1 + np.arange(len(trace)) % 4},
    )
    return [trace.take(slice(k, k + 300), name=f"part {k}") for k in range(0, 300 * count, 300)]


def test_threads_change_nothing() -> None:
    # the order of submission, for the usual one of weights makes more schedules alike
    rules = Scheduler(
        allocation="random:1", estimate="ave2", correction="incremental", backfill_order="fcfs"
    )
    batch = BatchSimulator(slices(), scheduler=rules, cluster=NODES)
    vectors = np.random.default_rng(3).uniform(-1, 1, (9, 6))
    alone = batch.run(vectors, threads=1)
    assert (alone == batch.run(vectors, threads=2)).all()
    assert (alone == batch.run(vectors, threads=1)).all()
    assert len(np.unique(alone)) > 20
    for v, s in ((0, 0), (8, 2)):
        result = hpcgym.simulate(slices()[s], rules.but(policy=tuple(vectors[v])), cluster=NODES)
        assert alone[v, s] == pytest.approx(result.metrics["mean_bsld"], rel=1e-12)


def test_slurm_reserves_nodes_in_long_slices() -> None:
    """There are more reservations, and nodes, than in the cases that are drawn."""
    cluster = Cluster(groups=(NodeGroup("n", 70, {"core": 2}),))
    trace = hpcgym.load_workload("lublin:jobs=600,processors=140,seed=5,load=1.3")
    parts = [trace.take(slice(k, k + 300)) for k in (0, 300)]
    rules = Scheduler(backfill="slurm:bf_interval=300")
    batch = BatchSimulator(parts, scheduler=rules, cluster=cluster)
    vectors = np.random.default_rng(3).uniform(-1, 1, (3, 6))
    values = batch.run(vectors, threads=2)
    for v, vector in enumerate(vectors):
        for s, part in enumerate(parts):
            result = hpcgym.simulate(part, rules.but(policy=tuple(vector)), cluster=cluster)
            assert values[v, s] == pytest.approx(result.metrics["mean_bsld"], rel=1e-12)


def test_single_cores_beside_others_are_what_they_are_alone() -> None:
    plain = hpcgym.load_workload("lublin:jobs=200,processors=64,seed=1,load=1.2")
    vectors = np.random.default_rng(4).uniform(-1, 1, (4, 6))
    beside = BatchSimulator([plain, slices(1)[0]], cluster=NODES).run(vectors, threads=1)
    assert (beside[:, 0] == BatchSimulator([plain]).run(vectors, threads=1)[:, 0]).all()


def test_what_it_does_not_simulate() -> None:
    with pytest.raises(HpcgymError, match="passes='per-event' and a machine of nodes"):
        BatchSimulator(slices(), scheduler=Scheduler(passes="per-event"), cluster=NODES)
    small = Cluster(groups=(NodeGroup("a", 64, {"core": 1, "mem": 8}),))
    with pytest.raises(WorkloadError, match=r"^part 0: job 2 .* the empty machine holds 0"):
        BatchSimulator(slices(), cluster=small)
