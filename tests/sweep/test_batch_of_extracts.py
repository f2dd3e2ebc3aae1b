"""Batches of extracts: each simulation begins with the same jobs that run and wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, assume, given, settings
from drawing import strategies as st
from extract_strategies import parts_of, recorded
from node_strategies import machines, node_schedulers, workloads_for
from strategies import WEIGHTS, schedulers, workloads
from worth import worth

import hpcgym
from hpcgym.cluster import Cluster
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.reference.events import CannotRunError
from hpcgym.reference.jobs import jobs_of, node_jobs_of
from hpcgym.reference.nodes import NoRoomError, simulate_nodes
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.policies import FEATURES, WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.sweep import BatchSimulator
from hpcgym.sweep.batch import METRICS
from hpcgym.workload.model import Workload

pytestmark = pytest.mark.slow

VECTORS = st.tuples(*[WEIGHTS] * 6).filter(any)
ENGINE = settings(deadline=None, suppress_health_check=list(HealthCheck))


def rules_for(data: st.DataObject, workload: Workload, some: Any = schedulers) -> dict[str, Any]:
    """The rules of a scheduler that a batch simulates, for an extract."""
    rules = data.draw(some(workload))
    if not isinstance(rules["estimate"], str):
        rules["estimate"] = "ave2"
    if not isinstance(rules["backfill_order"], str) and not any(rules["backfill_order"]):
        rules["backfill_order"] = "sjbf"
    return rules | {"policy": "fcfs"}


@settings(ENGINE, max_examples=300)
@given(st.data(), workloads(), st.lists(VECTORS, min_size=1, max_size=3))
def test_metrics_are_those_of_the_oracle(
    data: st.DataObject, workload: Workload, vectors: list[Any]
) -> None:
    workload = recorded(data, workload)
    rules = rules_for(data, workload)
    part, _, begin, end = parts_of(data, workload, rules)
    if part is None:
        return
    slices = [part, workload] if data.draw(st.booleans()) else [part]
    batch = BatchSimulator(slices, WEIGHTED_FEATURES, Scheduler(**rules))
    values = batch.run(vectors, list(METRICS), threads=1)
    for v, vector in enumerate(vectors):
        theirs = rules | {"policy": vector}
        jobs = simulate_pool(jobs_of(workload), workload.processors, **theirs, begin=begin, end=end)
        found = dict(zip(METRICS, values[v, 0].tolist(), strict=True))
        assert found == pytest.approx(worth(jobs, workload.processors, begin), nan_ok=True)
        for whole in slices[1:]:
            jobs = simulate_pool(jobs_of(whole), whole.processors, **theirs)
            found = dict(zip(METRICS, values[v, 1].tolist(), strict=True))
            assert found == pytest.approx(worth(jobs, whole.processors))


@settings(ENGINE, max_examples=300)
@given(st.data(), machines(), st.lists(VECTORS, min_size=1, max_size=3))
def test_so_they_are_on_nodes(data: st.DataObject, cluster: Cluster, vectors: list[Any]) -> None:
    workload = recorded(data, data.draw(workloads_for(cluster)))
    rules = rules_for(data, workload, node_schedulers)
    part, _, begin, _ = parts_of(data, workload, rules, last=False)
    if part is None:
        return
    slices = [workload, part] if data.draw(st.booleans()) else [part]
    jobs, capacity = node_jobs_of(workload, cluster.resources), cluster.capacity.tolist()
    for v, vector in enumerate(vectors):
        theirs = rules | {"policy": vector}
        try:
            expected = simulate_nodes(jobs, capacity, **theirs, begin=begin)
        except (NoRoomError, CannotRunError):
            with pytest.raises(WorkloadError, match=r"finds no room on the nodes|cannot run still"):
                BatchSimulator(slices, WEIGHTED_FEATURES, Scheduler(**rules), cluster=cluster)
            return
        try:
            batch = BatchSimulator(slices, WEIGHTED_FEATURES, Scheduler(**rules), cluster=cluster)
        except HpcgymError as error:  # one of two slices may have jobs of single cores alone
            assume("put such slices into batches of their own" not in str(error))
            raise
        values = batch.run(vectors, list(METRICS), threads=1)
        found = dict(zip(METRICS, values[v, -1].tolist(), strict=True))
        assert found == pytest.approx(worth(expected, cluster.processors, begin), nan_ok=True)
        if len(slices) > 1:
            expected = simulate_nodes(jobs, capacity, **theirs)
            found = dict(zip(METRICS, values[v, 0].tolist(), strict=True))
            assert found == pytest.approx(worth(expected, cluster.processors))


@settings(ENGINE, max_examples=100)
@given(st.data(), machines(), VECTORS)
def test_running_jobs_keep_their_nodes(
    data: st.DataObject, cluster: Cluster, vector: tuple[float, ...]
) -> None:
    """Of a simulation it is known where they are, and weights take over with these nodes."""
    workload = data.draw(workloads_for(cluster))
    rules = rules_for(data, workload, node_schedulers)
    assume(rules["correction"] != "kill")  # a job that runs may be one that had been killed by then
    long = hpcgym.simulate(workload, "easy", cluster=cluster, allocation="worst-fit")
    begin = data.draw(st.sampled_from(sorted({*long.start.tolist(), *long.end.tolist()})))
    part = hpcgym.continued(long, begin)
    batch = BatchSimulator([part], WEIGHTED_FEATURES, Scheduler(**rules), cluster=cluster)
    values = batch.run([vector], list(METRICS), threads=1)
    metrics = hpcgym.simulate(part, cluster=cluster, **rules | {"policy": vector}).metrics
    expected = [metrics[name] for name in METRICS]
    assert values[0, 0].tolist() == pytest.approx(expected, rel=1e-12, nan_ok=True)


LEARNED = ["requested", "ave3", "typical-ratio", "e-loss", "user-ratio"]


@settings(ENGINE, max_examples=200)
@given(
    st.data(),
    workloads(),
    *[st.sampled_from(LEARNED)] * 2,
    st.lists(WEIGHTS, min_size=len(FEATURES), max_size=len(FEATURES)).filter(any),
)
def test_what_has_been_learned_is_what_simulate_learns(
    data: st.DataObject,
    workload: Workload,
    estimate: str,
    policy_estimate: str,
    vector: list[float],
) -> None:
    workload = recorded(data, workload)
    rules = rules_for(data, workload)
    rules |= {"estimate": estimate, "policy_estimate": policy_estimate}
    if estimate in LEARNED[2:]:
        corrections = ["predicted-again", "incremental"]
        rules["correction"] = data.draw(st.sampled_from(corrections))
    slices = [
        part for _ in range(2) for part in parts_of(data, workload, rules)[:1] if part is not None
    ]
    if not slices:
        return
    batch = BatchSimulator(slices, tuple(FEATURES), Scheduler(**rules))
    values = batch.run([vector, vector], list(METRICS), threads=1)
    assert np.array_equal(values[0], values[1], equal_nan=True)
    policy = dict(zip(FEATURES, vector, strict=True))
    for s, part in enumerate(slices):
        metrics = hpcgym.simulate(part, **rules | {"policy": policy}).metrics
        expected = [metrics[name] for name in METRICS]
        assert values[0, s].tolist() == pytest.approx(expected, rel=1e-12, nan_ok=True)


def log() -> Workload:
    """The log of a machine that was busy."""
    jobs = hpcgym.load_workload("lublin:jobs=1500,processors=64,seed=5,load=1.2")
    return hpcgym.simulate(jobs, "easy").as_workload()


def test_threads_change_nothing() -> None:
    trace = log()
    times = np.quantile(trace.submit_time, [0.2, 0.5, 0.8]).astype(int).tolist()
    slices = [trace.extract(time, time + 50_000) for time in times]
    rules = Scheduler(estimate="e-loss", policy_estimate="user-ratio", backfill_order="lexp")
    batch = BatchSimulator(slices, scheduler=rules)
    vectors = np.random.default_rng(3).uniform(-1, 1, (7, 6))
    alone = batch.run(vectors, threads=1)
    assert (alone == batch.run(vectors, threads=2)).all()
    for v, s in ((0, 0), (6, 2)):
        result = hpcgym.simulate(slices[s], rules.but(policy=tuple(vectors[v])))
        assert alone[v, s] == pytest.approx(result.metrics["mean_bsld"], rel=1e-12)


def test_weights_take_over_from_the_scheduler_of_a_simulation() -> None:
    jobs = hpcgym.load_workload("lublin:jobs=400,processors=64,seed=2,load=1.2")
    long = hpcgym.simulate(jobs, "easy")
    part = hpcgym.continued(long, int(np.median(jobs.submit_time)))
    values = BatchSimulator([part], ["area", "wait"], "easy").run([[-1, 0], [0, 1]], "mean_wait_s")
    for value, policy in zip(values[:, 0], ({"area": -1.0}, {"wait": 1.0}), strict=True):
        result = hpcgym.simulate(part, "easy", policy=policy)
        assert value == pytest.approx(result.metrics["mean_wait_s"], rel=1e-12)
