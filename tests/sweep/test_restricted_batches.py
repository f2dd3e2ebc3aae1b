"""Batches under quotas and around windows: the schedules of the oracles, and of ``simulate``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, assume, given, settings
from drawing import strategies as st
from node_strategies import machines, node_schedulers, workloads_for
from quota_strategies import fitted, shared_quotas, with_queues
from restrictions import DRAWN
from strategies import WEIGHTS, schedulers, workloads
from worth import worth

import hpcgym
from hpcgym.cluster import Cluster, NodeGroup, find_cluster
from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning
from hpcgym.reference.jobs import jobs_of, node_jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.continued import continued
from hpcgym.simulation.nodes import needs_on, single_cores
from hpcgym.sweep import BatchSimulator
from hpcgym.sweep.batch import METRICS
from hpcgym.workload.model import Workload

pytestmark = [*DRAWN, pytest.mark.slow]
VECTORS = st.lists(st.tuples(*[WEIGHTS] * 6).filter(any), min_size=1, max_size=3)
#: Times one after the other.
TIMES = st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 3000)), max_size=3).map(
    lambda gaps: [
        (sum(map(sum, gaps[:k])) + gap, sum(map(sum, gaps[:k])) + gap + length)
        for k, (gap, length) in enumerate(gaps)
    ]
)
ENGINE = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=200)
NAMES = list(METRICS)


def known(rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules that go with batches and quotas."""
    rules = fitted(rules)
    if rules["backfill"] == "conservative":
        rules["backfill"] = "easy"
    if not isinstance(rules["estimate"], str):
        rules["estimate"] = "ave2"
    if rules["correction"] == "kill":
        rules["correction"] = "incremental"
    return rules


def same(found: Any, jobs: list[Any], processors: int) -> None:
    assert dict(zip(NAMES, found.tolist(), strict=True)) == pytest.approx(
        worth(jobs, processors), rel=1e-12
    )


@settings(ENGINE)
@given(st.data(), workloads(), VECTORS)
def test_pools(data: st.DataObject, first: Workload, vectors: list[Any]) -> None:
    most = first.processors
    others = data.draw(st.lists(workloads(max_processors=most), max_size=2))
    parts = [
        with_queues(Workload.from_columns(dict(part.columns), processors=most), [1, 2])
        for part in [first, *others]
    ]
    rules = known(data.draw(schedulers(first)))
    text, quotas = data.draw(shared_quotas(parts))
    windows: list[tuple[int, int, int]] = []
    if data.draw(st.booleans()):
        rules["estimate"] = "requested"  # never too short
        widths = st.integers(1, most)
        windows = [(begin, end, data.draw(widths)) for begin, end in data.draw(TIMES)]
    closed = "; ".join(f"{a}/{b}:processors={w}" for a, b, w in windows) or None
    scheduler = Scheduler(**{**rules, "policy": "fcfs", "quota": text, "maintenance": closed})
    batch = BatchSimulator(parts, WEIGHTED_FEATURES, scheduler)
    values = batch.run(vectors, NAMES)
    assert (values == batch.run(vectors, NAMES, threads=1)).all()
    for v, vector in enumerate(vectors):
        own = {**rules, "policy": vector}
        for s, part in enumerate(parts):
            slow = {"quotas": quotas[s], "windows": windows}
            same(values[v, s], simulate_pool(jobs_of(part), most, **slow, **own), most)


@settings(ENGINE)
@given(st.data(), machines(), VECTORS)
def test_nodes(data: st.DataObject, cluster: Any, vectors: list[Any]) -> None:
    drawn = data.draw(st.lists(workloads_for(cluster), min_size=1, max_size=3))
    parts = [with_queues(part, [1, 2]) for part in drawn]
    alone = [single_cores(needs_on(part, cluster)) for part in parts]
    rules = known(data.draw(node_schedulers(parts[0])))
    text, quotas = data.draw(shared_quotas(parts))
    windows: list[tuple[int, int, list[int]]] = []
    if data.draw(st.booleans()):
        rules["estimate"] = "requested"  # never too short
        some = st.lists(st.integers(0, cluster.nodes - 1), min_size=1, unique=True).map(sorted)
        windows = [(begin, end, data.draw(some)) for begin, end in data.draw(TIMES)]
    closed = "; ".join(f"{a}/{b}:nodes={','.join(map(str, of))}" for a, b, of in windows)
    assume(all(alone) == any(alone) or windows)
    scheduler = Scheduler(
        **{**rules, "policy": "fcfs", "quota": text, "maintenance": closed or None}
    )
    values = BatchSimulator(parts, WEIGHTED_FEATURES, scheduler, cluster=cluster).run(
        vectors, NAMES, threads=1
    )
    for v, vector in enumerate(vectors):
        own = {**rules, "policy": vector}
        for s, part in enumerate(parts):
            jobs = simulate_nodes(
                node_jobs_of(part, cluster.resources),
                cluster.capacity.tolist(),
                quotas=quotas[s],
                windows=windows,
                **own,
            )
            same(values[v, s], jobs, cluster.processors)


@pytest.fixture(scope="module")
def slices() -> list[Workload]:
    trace = hpcgym.load_workload("lublin:jobs=1500,processors=64,seed=5,load=1.1")
    return [trace.take(slice(k, k + 300), name=f"part {k}") for k in range(0, 1500, 300)]


@pytest.mark.parametrize("learned", [{}, {"estimate": "e-loss", "policy_estimate": "user-ratio"}])
@pytest.mark.parametrize("cluster", [None, "8x2x4"])
@pytest.mark.parametrize("features", [WEIGHTED_FEATURES, ("fairshare", "wait")])
def test_metrics_are_those_of_simulate(
    slices: list[Workload], learned: dict[str, str], cluster: str | None, features: Any
) -> None:
    """Also of machines whose jobs ask for single cores, and of times of a window in some slices."""
    begin = int(slices[2].submit_time[20])
    closed = None if learned else f"{begin}/{begin + 90_000}"
    rules = Scheduler(quota="user:jobs=3; group:jobs=6", maintenance=closed, **learned)
    machine = None if cluster is None else find_cluster(cluster)
    batch = BatchSimulator(slices, features, rules, cluster=machine)
    vectors = np.random.default_rng(3).uniform(-1, 1, (5, len(features)))
    values = batch.run(vectors, NAMES, threads=2)
    assert (values == batch.run(vectors, NAMES, threads=1)).all()
    for v, vector in enumerate(vectors):
        policy = dict(zip(features, vector, strict=True))
        for s in (0, 2, 4):
            result = hpcgym.simulate(slices[s], rules.but(policy=policy), cluster=machine)
            hpcgym.validate_schedule(result)
            expected = [result.metrics[name] for name in NAMES]
            assert values[v, s].tolist() == pytest.approx(expected, rel=1e-12)


def test_windows_of_nodes_are_those_of_simulate() -> None:
    """Jobs with GPUs on nodes that differ; another week has another clock of its own."""
    trace = hpcgym.load_workload("eurora:jobs=1200,seed=1,load=2")
    cluster = find_cluster("eurora")
    parts = [trace.take(slice(k, k + 300), name=f"part {k}") for k in (0, 400, 900)]
    begin = int(parts[1].submit_time[20])
    closed = f"{begin}/{begin + 40_000}:nodes=0-20; {begin + 90_000}/{begin + 99_000}"
    for allocation in ("first-fit", "balanced", "random"):
        rules = Scheduler(quota="user:jobs=5", maintenance=closed, allocation=allocation)
        batch = BatchSimulator(parts, ("area", "wait"), rules, cluster=cluster)
        values = batch.run([[-1.0, 0.0], [-0.5, 0.5]], NAMES)
        assert (values == batch.run([[-1.0, 0.0], [-0.5, 0.5]], NAMES, threads=1)).all()
        for v, (area, wait) in enumerate([(-1.0, 0.0), (-0.5, 0.5)]):
            for s, part in enumerate(parts):
                own = rules.but(policy={"area": area, "wait": wait})
                result = hpcgym.simulate(part, own, cluster=cluster)
                hpcgym.validate_schedule(result)
                expected = [result.metrics[name] for name in NAMES]
                assert values[v, s].tolist() == pytest.approx(expected, rel=1e-12)


def test_slices_need_not_be_alike() -> None:
    """One asks for single cores alone: it is simulated on a pool, as by itself."""
    cluster = Cluster(groups=(NodeGroup("thin", 4, {"core": 4}),))
    single = hpcgym.load_workload("lublin:jobs=20,processors=16,seed=1")
    columns = {**single.columns, "requested_processors": [4] * 20}
    units = Workload.from_columns(columns, processors=16, per_unit={"core": [4] * 20})
    rules, vectors = Scheduler(quota="user:jobs=3"), [[1, 0, 0, 0, 0, 0], [0, 0, 1, -1, 0, 0]]
    alone, both = (
        [BatchSimulator(parts, scheduler=rules, cluster=cluster).run(vectors) for parts in some]
        for some in ([[units], [single]], [[units, single]])
    )
    assert (np.concatenate(alone, axis=1) == both[0]).all()


def test_by_hand() -> None:
    """Three jobs of 10 s of one user: two at once, and none from 15 s to 20 s."""
    jobs = Workload.from_columns(
        {
            "submit_time": [0, 0, 0],
            "run_time": [10] * 3,
            "requested_time": [10] * 3,
            "requested_processors": [2] * 3,
            "user_id": [1] * 3,
        },
        processors=8,
    )
    for quota, maintenance, makespan in (
        ("user:jobs=2", None, 20),
        ("user:jobs=1", None, 30),
        ("user:jobs=2", "15/20", 30),
        (None, "5/20:processors=3", 20),
        (None, "5/20:processors=1", 10),
        (None, "5/20:processors=5", 30),
    ):
        rules = Scheduler(quota=quota, maintenance=maintenance)
        assert BatchSimulator([jobs], ["area"], rules).run([[1.0]], "makespan_s") == makespan


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"quota": "all:processors=1"}, WorkloadError, "more than the quota all:processors=1"),
        ({"maintenance": "0/10:nodes=0"}, HpcgymError, "a pool of processors has no nodes"),
        ({"maintenance": "0/10", "estimate": "ave2"}, HpcgymError, "may be too short"),
        ({"maintenance": "0/10", "hold": 0.1}, HpcgymError, "hold and maintenance="),
    ],
)
def test_what_a_batch_does_not_keep(
    slices: list[Workload], rules: dict[str, Any], error: type[HpcgymError], message: str
) -> None:
    with pytest.raises(error, match=message):
        BatchSimulator(slices, scheduler=Scheduler(**rules))


@pytest.mark.parametrize("cluster", [None, "8x2x4"])
def test_extracts_are_those_of_simulate(slices: list[Workload], cluster: str | None) -> None:
    """Jobs that run at the beginning count, and run on into windows."""
    parts = [
        hpcgym.simulate(one).as_workload().extract(int(one.submit_time[200])) for one in slices[:2]
    ]
    begin = int(parts[0].submit_time[20])
    closed = f"{begin}/{begin + 90_000}"
    rules = Scheduler(quota="user:jobs=2; group:jobs=6", maintenance=closed)
    machine = None if cluster is None else find_cluster(cluster)
    vectors = np.random.default_rng(3).uniform(-1, 1, (5, len(WEIGHTED_FEATURES)))
    batch = BatchSimulator([parts[0], slices[3], parts[1]], scheduler=rules, cluster=machine)
    values = batch.run(vectors, NAMES)
    for v, vector in enumerate(vectors):
        policy = dict(zip(WEIGHTED_FEATURES, vector, strict=True))
        for s, part in ((0, parts[0]), (2, parts[1])):
            result = hpcgym.simulate(part, rules.but(policy=policy), cluster=machine)
            hpcgym.validate_schedule(result)
            expected = [result.metrics[name] for name in NAMES]
            assert values[v, s].tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("closes", [False, True])
def test_extracts_on_nodes_are_those_of_simulate(closes: bool) -> None:
    """The jobs that run at the beginning have their nodes, and run on into windows."""
    trace, cluster = hpcgym.load_workload("eurora:jobs=600,seed=1,load=2"), find_cluster("eurora")
    result = hpcgym.simulate(trace, "easy", cluster=cluster)
    begins = [int(trace.submit_time[k]) for k in (300, 450)]
    parts = [continued(result, begin, None) for begin in begins]
    parts.insert(1, trace.take(slice(0, 100), name="from an empty machine"))
    closed = [
        f"{begins[0]}/{begins[0] + 3000}:nodes=0-39",
        f"{begins[0] + 1000}/{begins[1]}:nodes=40-63",
        f"{begins[1] + 600}/{begins[1] + 7200}:nodes=8-50",
    ]
    rules = Scheduler(quota="user:jobs=5", maintenance="; ".join(closed) if closes else None)
    values = BatchSimulator(parts, ("area", "wait"), rules, cluster=cluster).run(
        [[-1.0, 0.0], [-1.0, 50.0]], NAMES
    )
    for v, policy in enumerate(({"area": -1.0}, {"area": -1.0, "wait": 50.0})):
        for s, part in enumerate(parts):
            found = hpcgym.simulate(part, rules.but(policy=policy), cluster=cluster)
            hpcgym.validate_schedule(found)
            expected = [found.metrics[name] for name in NAMES]
            assert values[v, s].tolist() == pytest.approx(expected, rel=1e-12)


def test_what_no_slice_has_is_told_once(slices: list[Workload]) -> None:
    """A window of one slice is no mistake of the others; a quota of nobody is one."""
    begin = int(slices[2].submit_time[20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BatchSimulator(slices, scheduler=Scheduler(maintenance=f"{begin}/{begin + 60}"))
    with pytest.warns(WorkloadWarning) as told:
        BatchSimulator(slices, scheduler=Scheduler(quota="queue=77:jobs=1", maintenance="1/2"))
    texts = [str(one.message) for one in told]
    assert "part 0 to part 1200: no job falls under these quotas: queue=77:jobs=1" in texts
    assert sum("no window is between" in text for text in texts) == 1
