"""Batches of jobs that follow others, or stop them: the schedules of the oracles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, assume, costly, given, settings
from drawing import strategies as st
from node_strategies import machines, node_schedulers, workloads_for
from preemption_strategies import CLOSE, crowded, preemptions
from quota_strategies import fitted, shared_quotas, with_queues
from restrictions import DRAWN
from strategies import schedulers, workloads
from submission_strategies import chains
from submission_strategies import fitted as fitted_to_chains
from worth import worth

import hpcgym
from hpcgym.cluster import find_cluster
from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning
from hpcgym.reference.jobs import jobs_of, node_jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.policies import WEIGHTED_FEATURES, FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.nodes import needs_on, single_cores
from hpcgym.sweep import BatchSimulator
from hpcgym.sweep.batch import METRICS
from hpcgym.workload.model import Workload

pytestmark = [*DRAWN, pytest.mark.slow]
ENGINE = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=150)
NAMES = list(METRICS)
PLAIN = st.sampled_from([0, 0, 0, 1, -1, 3, 0.5])
#: Weights of which some have waiting for nothing, some waiting alone, and some have ties.
VECTORS = st.lists(
    st.one_of(st.tuples(*[PLAIN] * 6).filter(any), st.just((0, 0, 1, 0, 0, 0))), min_size=1,
    max_size=3,
).map(lambda vectors: [v if v[2] >= 0 or any((*v[:2], *v[3:])) else (0, 0, 1, 0, 0, 0)
                       for v in vectors])  # fmt: skip


def known(rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules that go with batches."""
    changes = {}
    if rules["backfill"] == "conservative":
        changes["backfill"] = "easy"
    if not isinstance(rules["estimate"], str):
        changes["estimate"] = "requested"
    if rules["correction"] == "kill":
        changes["correction"] = "incremental"
    return {**rules, **changes, "policy": "fcfs"}


def assert_worth(found: Any, jobs: list[Any], processors: int, lost: int = 0) -> None:
    expected = worth(jobs, processors, lost=lost)
    assert dict(zip(NAMES, found.tolist(), strict=True)) == pytest.approx(expected, rel=1e-12)


def bounds(data: st.DataObject, parts: list[Workload]) -> tuple[str | None, list[Any]]:
    """Draw a bound on the submitted jobs of a user, or none, as a text and as the oracle has it."""
    most = data.draw(st.sampled_from([None, 1, 2]))
    if most is None:
        return None, [[] for _ in parts]
    return f"user:submitted={most}", [[(part.user_id.tolist(), most)] for part in parts]


def followers(data: st.DataObject, parts: list[Workload]) -> tuple[list[Any], str, list[Any]]:
    """Let jobs of each part follow others, by one rule."""
    drawn, rule = [], None
    for part in parts:
        made = data.draw(chains(part).filter(lambda one, rule=rule: rule in (None, one[1])))
        rule = made[1]
        drawn.append(made)
    assert rule is not None
    return [one[0] for one in drawn], rule, [one[2] for one in drawn]


@settings(ENGINE)
@given(st.data(), workloads(), VECTORS)
def test_followers_on_pools(data: st.DataObject, first: Workload, vectors: list[Any]) -> None:
    most = first.processors
    others = data.draw(st.lists(workloads(max_processors=most), max_size=1))
    same_size = [Workload.from_columns(dict(part.columns), processors=most) for part in others]
    parts, rule, follows = followers(data, [first, *same_size])
    rules = known(fitted_to_chains(data.draw(schedulers(first))))
    quota, places = bounds(data, parts)
    scheduler = Scheduler(**rules, dependencies=rule, quota=quota)
    batch = BatchSimulator(parts, WEIGHTED_FEATURES, scheduler)
    values = batch.run(vectors, NAMES)
    assert (values == batch.run(vectors, NAMES, threads=1)).all()
    for v, vector in enumerate(vectors):
        own = {**rules, "policy": vector}
        for s, part in enumerate(parts):
            slow = {"follows": follows[s], "places": places[s]}
            assert_worth(values[v, s], simulate_pool(jobs_of(part), most, **slow, **own), most)


def slices_for(data: st.DataObject, cluster: Any) -> list[Workload]:
    """Slices that a batch takes together: all ask for single cores alone, or none does."""
    drawn = data.draw(st.lists(workloads_for(cluster), min_size=1, max_size=2))
    alone = [single_cores(needs_on(part, cluster)) for part in drawn]
    assume(all(alone) == any(alone))
    return drawn


@settings(ENGINE)
@given(st.data(), machines(), VECTORS)
def test_followers_on_nodes(data: st.DataObject, cluster: Any, vectors: list[Any]) -> None:
    drawn = slices_for(data, cluster)
    parts, rule, follows = followers(data, drawn)
    rules = known(fitted_to_chains(data.draw(node_schedulers(parts[0]))))
    scheduler = Scheduler(**rules, dependencies=rule)
    values = BatchSimulator(parts, WEIGHTED_FEATURES, scheduler, cluster=cluster).run(
        vectors, NAMES, threads=1
    )
    for v, vector in enumerate(vectors):
        own = {**rules, "policy": vector}
        for s, part in enumerate(parts):
            jobs = node_jobs_of(part, cluster.resources)
            capacity = cluster.capacity.tolist()
            slow = simulate_nodes(jobs, capacity, follows=follows[s], **own)
            assert_worth(values[v, s], slow, cluster.processors)


def stoppers(
    data: st.DataObject, parts: list[Workload]
) -> tuple[list[Workload], str, list[tuple[Any, ...]]]:
    """Let jobs of two queues stop others by one rule, as a text and as the oracle has it."""
    queues = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))
    close = data.draw(CLOSE)
    parts = [crowded(with_queues(part, queues), close) for part in parts]
    text, (_, *rule) = data.draw(preemptions(parts[0]))
    return parts, text, [([str(q) for q in part.queue.tolist()], *rule) for part in parts]


def window(
    data: st.DataObject, preemption: str, parts: list[Workload]
) -> tuple[str | None, list[tuple[int, int, int]]]:
    """Close the whole machine for a time, or never, as a text and as the oracle has it."""
    begin = data.draw(st.sampled_from([None, *sorted({*parts[0].submit_time.tolist()})]))
    if begin is None or preemption.endswith("suspend"):
        return None, []
    begin += data.draw(st.sampled_from([0, 1, 5, 40]))
    end = begin + data.draw(st.sampled_from([1, 7, 300]))
    return f"{begin}/{end}", [(begin, end, parts[0].processors)]


def lost_seconds(lost: list[Any], part: Workload, mode: str) -> int:
    """Return the processor seconds of lost runs; those of suspended jobs are not lost."""
    width = part.requested_processors.tolist()
    return sum((run[2] - run[1]) * width[run[0]] for run in lost) if mode == "requeue" else 0


@settings(ENGINE)
@given(st.data(), workloads(), VECTORS)
def test_stoppers_on_pools(data: st.DataObject, first: Workload, vectors: list[Any]) -> None:
    most = first.processors
    others = data.draw(st.lists(workloads(max_processors=most), max_size=1))
    same_size = [Workload.from_columns(dict(part.columns), processors=most) for part in others]
    parts, text, slow = stoppers(data, [first, *same_size])
    rules = known(fitted(data.draw(schedulers(first))))
    quota, quotas = data.draw(st.one_of(st.just((None, [[]] * len(parts))), shared_quotas(parts)))
    closed, windows = window(data, text, parts)
    rules = rules | ({"estimate": "requested"} if closed else {})
    more = {"preemption": text, "quota": quota, "maintenance": closed}
    batch = BatchSimulator(parts, WEIGHTED_FEATURES, Scheduler(**rules, **more))
    values = batch.run(vectors, NAMES)
    assert (values == batch.run(vectors, NAMES, threads=1)).all()
    for v, vector in enumerate(vectors):
        own = {**rules, "policy": vector}
        for s, part in enumerate(parts):
            lost: list[Any] = []
            stops = {"preemption": slow[s], "lost": lost}
            stops |= {"quotas": quotas[s], "windows": windows}
            jobs = simulate_pool(jobs_of(part), most, **stops, **own)
            assert_worth(values[v, s], jobs, most, lost_seconds(lost, part, slow[s][2]))


@costly
@settings(ENGINE)
@given(st.data(), machines(), VECTORS)
def test_stoppers_on_nodes(data: st.DataObject, cluster: Any, vectors: list[Any]) -> None:
    drawn = slices_for(data, cluster)
    parts, text, slow = stoppers(data, drawn)
    rules = known(fitted(data.draw(node_schedulers(parts[0]))))
    quota, quotas = data.draw(st.one_of(st.just((None, [[]] * len(parts))), shared_quotas(parts)))
    closed, windows = window(data, text, parts)
    rules = rules | ({"estimate": "requested"} if closed else {})
    scheduler = Scheduler(**rules, preemption=text, quota=quota, maintenance=closed)
    windows = [(begin, end, range(cluster.nodes)) for begin, end, _ in windows]
    values = BatchSimulator(parts, WEIGHTED_FEATURES, scheduler, cluster=cluster).run(
        vectors, NAMES, threads=1
    )
    for v, vector in enumerate(vectors):
        own = {**rules, "policy": vector}
        for s, part in enumerate(parts):
            lost: list[Any] = []
            stops = {"preemption": slow[s], "lost": lost}
            stops |= {"quotas": quotas[s], "windows": windows}
            jobs = node_jobs_of(part, cluster.resources)
            done = simulate_nodes(jobs, cluster.capacity.tolist(), **stops, **own)
            wasted = lost_seconds(lost, part, slow[s][2])
            assert_worth(values[v, s], done, cluster.processors, wasted)


def many() -> list[Workload]:
    """Return slices of which some jobs follow others, of three queues, with equal jobs."""
    trace = hpcgym.load_workload("lublin:jobs=900,processors=64,seed=5,load=1.3")
    n, rng = len(trace), np.random.default_rng(0)
    rows = np.arange(n)
    before = rows - rng.integers(1, 6, n)
    follows = (before >= 0) & (rng.random(n) < 0.5)
    trace = trace.with_columns(
        job_number=rows + 1,
        preceding_job=np.where(follows, before + 1, -1),
        think_time=rng.integers(-1, 500, n),
        queue=2 + rows % 3,
    )
    return [trace.take(slice(k, k + 300), name=f"part {k}") for k in (0, 300, 600)]


@pytest.mark.parametrize(
    "rules",
    [
        {"dependencies": "after", "quota": "user:jobs=9"},
        {"dependencies": "closed-loop", "maintenance": "30000/90000"},
        {"dependencies": "after", "quota": "all:submitted=30"},
        {"quota": "all:submitted=30"},
        {"preemption": "queue:2>3>4"},
        {"preemption": "queue:2>3>4,cancel", "quota": "queue:jobs=9"},
        {"preemption": "queue:2>3>4,suspend"},
        {"preemption": "queue:2>3>4", "dependencies": "after"},
        {"backfill": "depth:5"},
        {"backfill": "slurm:bf_interval=300+bf_max_job_test=20"},
        {"backfill": "slurm", "quota": "user:jobs=9"},
    ],
)
@pytest.mark.parametrize("cluster", [None, "8x2x4"])
@pytest.mark.parametrize("order", ["fcfs", "sjbf", "saf"])
def test_metrics_are_those_of_simulate(rules: dict[str, str], cluster: Any, order: str) -> None:
    """Also of longer queues; of vectors with waiting, without, and of waiting alone."""
    slices, features = many(), ("area", "wait", "requested")
    if cluster is not None and "maintenance" in rules:
        rules = {**rules, "maintenance": "30000/90000:nodes=0-3"}
    machine = None if cluster is None else find_cluster(cluster)
    scheduler = Scheduler(backfill_order=order, **rules)
    vectors = [(-1.0, 0, 0), (0, 2, 0), (-1, 5, 0), (0, 0, -1), (0, 0, 0)]
    values = BatchSimulator(slices, features, scheduler, cluster=machine).run(vectors, NAMES)
    for v, vector in enumerate(vectors):
        policy: Any = {name: w for name, w in zip(features, vector, strict=True) if w} or "fcfs"
        for s, part in enumerate(slices):
            result = hpcgym.simulate(part, scheduler.but(policy=policy), cluster=machine)
            expected = [result.metrics[name] for name in NAMES]
            assert values[v, s].tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "more",
    [
        {"preemption": "queue:2>3>4,requeue"},
        {"preemption": "queue:2>3>4,cancel"},
        {"preemption": "queue:2>3>4,suspend"},
        {"dependencies": "after"},
        {"quota": "all:submitted=30"},
    ],
    ids=str,
)
@pytest.mark.parametrize("cluster", [None, "8x2x4"])
@pytest.mark.parametrize("formula", ["classic", "fair-tree"])
def test_users_are_charged(more: dict[str, str], cluster: Any, formula: str) -> None:
    """As in simulate, in either order, and of more runs than the list of them holds at first."""
    slices, features = many(), ("fairshare", "wait", "requested")
    slices = [part.with_columns(user_id=np.arange(len(part)) * 7 % 11 % 5) for part in slices]
    machine = None if cluster is None else find_cluster(cluster)
    fair = FairShare(half_life_s=40_000, formula=formula)
    rules: dict[str, Any] = {"fair_share": fair, **more}
    vectors = [(1e6, 0, 0), (1e6, 5, -1), (0, 1, 0)]
    for second in ("fcfs", "fairshare"):
        scheduler = Scheduler(backfill_order=second, **rules)
        batch = BatchSimulator(slices, features, scheduler, cluster=machine)
        values = batch.run(vectors, NAMES)
        for v, vector in enumerate(vectors):
            policy = {name: w for name, w in zip(features, vector, strict=True) if w}
            for s, part in enumerate(slices):
                result = hpcgym.simulate(part, scheduler.but(policy=policy), cluster=machine)
                expected = [result.metrics[name] for name in NAMES]
                assert values[v, s].tolist() == pytest.approx(expected, rel=1e-12)


def test_what_is_wrong_is_said_of_the_slice() -> None:
    slices = many()
    with pytest.warns(WorkloadWarning, match=r"part 0 to part 600: \d+ jobs follow jobs that are"):
        BatchSimulator(slices, scheduler=Scheduler(dependencies="after"))
    with pytest.raises(HpcgymError, match="feature 'f3' looks at when the log says that jobs are"):
        BatchSimulator(slices, ["area", "f3"], Scheduler(dependencies="after"))
    circle = slices[1].preceding_job.copy()
    circle[:2] = slices[1].job_number[[1, 0]]
    parts = [slices[0], slices[1].with_columns(preceding_job=circle)]
    with pytest.raises(WorkloadError, match=r"part 300: job 301 follows a job that follows itself"):
        BatchSimulator(parts, scheduler=Scheduler(dependencies="after"))
    with pytest.warns(WorkloadWarning, match="part 0 to part 600: preemption .* there is no job"):
        BatchSimulator(slices, scheduler=Scheduler(preemption="queue:2>3;2>7"))
    alone = [replace(slices[0], name="alone")]
    with pytest.warns(WorkloadWarning, match="alone: preemption queue:7>8: no job may stop"):
        BatchSimulator(alone, scheduler=Scheduler(preemption="queue:7>8"))
