"""Many weights on many slices at once: the schedules of ``simulate``, which oracles prove."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, assume, given, settings
from drawing import strategies as st
from extract_strategies import parts_of, recorded
from node_strategies import ALLOCATIONS, machines, node_schedulers, workloads_for
from preemption_strategies import CLOSE, crowded, preemptions
from quota_strategies import fitted, shared_quotas, with_queues
from restrictions import DRAWN
from share_strategies import accounts, fitting, heeded, with_power
from strategies import WEIGHTS, schedulers, workloads
from submission_strategies import chains
from submission_strategies import fitted as fitted_to_chains

import hpcgym
from hpcgym.baselines import SCHEDULERS
from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning
from hpcgym.machine import Cluster, NodeGroup, find_cluster
from hpcgym.schedule.metrics import bsld
from hpcgym.scheduler.policies import FEATURES, WEIGHTED_FEATURES, FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.batch import METRICS, BatchSimulator
from hpcgym.simulation.nodes import needs_on, single_cores
from hpcgym.workload.model import Workload

pytestmark = DRAWN
NAMES = list(METRICS)
ENGINE = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=200)
SMALL = hpcgym.load_workload("lublin:jobs=10,processors=32,seed=0").take(slice(0, 9), name="small")
#: Of features in another order than their table has, usage in the middle.
BY_USAGE = ("wait", "fairshare", "requested", "energy_fairshare", "processors")
LEARNED = ["requested", "clairvoyant", "ave2", "ave3", "typical-ratio", "e-loss", "user-ratio"]


def policy_of(features: Any, vector: Any) -> Any:
    return {name: w for name, w in zip(features, vector, strict=True) if w} or "fcfs"


def assert_same(
    parts: list[Workload],
    features: Any,
    rules: dict[str, Any],
    vectors: Any,
    cluster: Cluster | None = None,
) -> None:
    """Metrics are those of ``simulate``, of a vector that follows others too, on any threads."""
    batch = BatchSimulator(parts, features, Scheduler(**rules), cluster=cluster)
    vectors = [*vectors, vectors[0]]
    values = batch.run(vectors, NAMES)
    assert values.shape == (len(vectors), len(parts), len(NAMES))
    alone = batch.run(vectors, NAMES, threads=1)
    assert np.array_equal(values, alone, equal_nan=True)
    assert np.array_equal(values[0], values[-1], equal_nan=True)
    for vector, row in zip(vectors[:-1], values, strict=False):
        own = heeded(rules | {"policy": policy_of(features, vector)})
        for part, found in zip(parts, row, strict=True):
            metrics = hpcgym.simulate(part, cluster=cluster, **own).metrics
            expected = [metrics[name] for name in NAMES]
            assert found.tolist() == pytest.approx(expected, rel=1e-12, nan_ok=True)


# --- What is drawn --------------------------------------------------------------------------------


def vectors_of(data: st.DataObject, features: Any) -> list[Any]:
    some = st.tuples(*[WEIGHTS] * len(features)).filter(any)
    return data.draw(st.lists(some, min_size=1, max_size=3))


def known(rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules that go with batches."""
    if not isinstance(rules["estimate"], str):
        rules["estimate"] = "ave2"
    if not isinstance(rules["backfill_order"], str) and not any(rules["backfill_order"]):
        rules["backfill_order"] = "sjbf"
    return {**rules, "policy": "fcfs"}


def restricted(rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules that go with batches and with jobs that are kept back."""
    if rules["backfill"] == "conservative":
        rules["backfill"] = "easy"
    if rules["correction"] == "kill":
        rules["correction"] = "incremental"
    return known(rules)


def windows(data: st.DataObject, part: Workload) -> str | None:
    """Close the machine for a time, or never."""
    begin = data.draw(st.sampled_from([None, *sorted({*part.submit_time.tolist()})]))
    if begin is None:
        return None
    begin += data.draw(st.sampled_from([0, 1, 5, 40]))
    return f"{begin}/{begin + data.draw(st.sampled_from([1, 7, 300]))}"


def kept_back(
    kind: str, data: st.DataObject, parts: list[Workload], rules: dict[str, Any]
) -> tuple[list[Workload], dict[str, Any]]:
    """Return jobs that are kept back, or stopped, in one of several ways, and the rules of that."""
    rules = rules | {"policy_estimate": data.draw(st.sampled_from(LEARNED))}
    if kind == "plain":
        return parts, known(rules)
    if kind == "followers":
        drawn: list[Any] = []
        for part in parts:
            rule = drawn[0][1] if drawn else None
            alike = chains(part).filter(lambda one, rule=rule: rule in (None, one[1]))
            drawn.append(data.draw(alike))
        bound = data.draw(st.sampled_from([None, "user:submitted=1", "user:submitted=2"]))
        kept = {"dependencies": drawn[0][1], "quota": bound}
        return [one[0] for one in drawn], restricted(fitted_to_chains(rules)) | kept
    if kind == "stoppers":
        queues = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))
        close = data.draw(CLOSE)
        parts = [crowded(with_queues(part, queues), close) for part in parts]
        text, _ = data.draw(preemptions(parts[0]))
        rules = restricted(fitted(rules)) | {"preemption": text}
        closed = None if text.endswith("suspend") else windows(data, parts[0])
    else:
        parts = [with_queues(part, [1, 2]) for part in parts]
        rules, closed = restricted(fitted(rules)), windows(data, parts[0])
    quota, _ = data.draw(st.one_of(st.just((None, None)), shared_quotas(parts)))
    rules |= {"quota": quota, "maintenance": closed}
    return parts, rules | ({"estimate": "requested"} if closed else {})  # never too short


KINDS = pytest.mark.parametrize("kind", ["plain", "followers", "stoppers", "quotas"])


@KINDS
@pytest.mark.parametrize("place", ["pool", pytest.param("nodes", marks=pytest.mark.slow)])
@ENGINE
@given(st.data())
def test_each_kind_of_rules(place: str, kind: str, data: st.DataObject) -> None:
    if place == "pool":
        cluster, first = None, data.draw(workloads())
        others = data.draw(st.lists(workloads(max_processors=first.processors), max_size=2))
        parts = [first, *(replace(part, processors=first.processors) for part in others)]
        rules = data.draw(schedulers(first))
    else:
        cluster = data.draw(machines())
        parts = data.draw(st.lists(workloads_for(cluster), min_size=1, max_size=2))
        alone = [single_cores(needs_on(part, cluster)) for part in parts]
        assume(all(alone) == any(alone))  # else they are in batches of their own
        rules = data.draw(node_schedulers(parts[0]))
    parts, rules = kept_back(kind, data, parts, rules)
    if cluster is not None and kind == "plain":
        rules["allocation"] = data.draw(st.sampled_from([*ALLOCATIONS, "random:3"]))
    vectors = vectors_of(data, WEIGHTED_FEATURES)
    if kind == "followers":  # the last to come first is no order where others say who comes
        assume(not any(vector[2] < 0 and vector.count(0) == 5 for vector in vectors))
    assert_same(parts, WEIGHTED_FEATURES, rules, vectors, cluster)


@pytest.mark.slow
@ENGINE
@given(st.data(), machines(), st.booleans())
def test_orders_by_usage(data: st.DataObject, cluster: Cluster, pool: bool) -> None:
    """Each slice has the shares of its own users; run times are learned beside."""
    jobs = (workloads() if pool else workloads_for(cluster)).flatmap(with_power)
    parts = data.draw(st.lists(jobs, min_size=1, max_size=1 if pool else 3))
    fair, _ = data.draw(accounts(parts[0]))
    orders = st.sampled_from(["fcfs", "sjbf", "fairshare", "energy-fairshare", "fs+efs"])
    rules = {
        "backfill": data.draw(st.sampled_from(["easy", "easy", "none"])),
        "backfill_order": data.draw(fitting(orders, fair)),
        "estimate": data.draw(st.sampled_from(LEARNED)),
        "policy_estimate": data.draw(st.sampled_from(LEARNED)),
        "correction": data.draw(st.sampled_from(["requested", "incremental"])),
        "threshold": data.draw(st.sampled_from([None, None, 5, 2000])),
        "fair_share": fair,
    }
    if pool:
        whole = recorded(data, parts[0])
        part, *_ = parts_of(data, whole, rules)
        assume(part is not None)
        parts, cluster = [whole, part, whole], Cluster(whole.processors)
    assert_same(parts, BY_USAGE, rules, vectors_of(data, BY_USAGE), cluster)


@pytest.mark.slow
@pytest.mark.parametrize("on_nodes", [False, True])
@ENGINE
@given(st.data(), machines())
def test_extracts(on_nodes: bool, data: st.DataObject, cluster: Cluster) -> None:
    """Each begins with the jobs that ran then, and with what had been learned by then."""
    workload = recorded(data, data.draw(workloads_for(cluster) if on_nodes else workloads()))
    rules = known(data.draw((node_schedulers if on_nodes else schedulers)(workload)))
    assume(rules["correction"] != "kill")
    part, rules, *_ = parts_of(data, workload, rules, last=not on_nodes)
    assume(part is not None)
    machine = cluster if on_nodes else None
    try:
        BatchSimulator([part], scheduler=Scheduler(**rules), cluster=machine)
    except WorkloadError:
        with pytest.raises(WorkloadError, match=r"finds no room on the nodes|cannot run still"):
            hpcgym.simulate(part, cluster=machine, **rules)
        return
    vectors = vectors_of(data, WEIGHTED_FEATURES)
    assert_same([part], WEIGHTED_FEATURES, rules, vectors, machine)


@pytest.mark.slow
@ENGINE
@given(st.data(), machines())
def test_running_jobs_keep_their_nodes(data: st.DataObject, cluster: Cluster) -> None:
    """Of a simulation it is known where they are, and weights take over with these nodes."""
    workload = data.draw(workloads_for(cluster))
    rules = known(data.draw(node_schedulers(workload)))
    assume(rules["correction"] != "kill")  # a job that runs may be one that had been killed by then
    long = hpcgym.simulate(workload, "easy", cluster=cluster, allocation="worst-fit")
    begin = data.draw(st.sampled_from(sorted({*long.start.tolist(), *long.end.tolist()})))
    parts, vectors = [hpcgym.continued(long, begin)], vectors_of(data, WEIGHTED_FEATURES)
    assert_same(parts, WEIGHTED_FEATURES, rules, vectors, cluster)


# --- Longer slices --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slices() -> list[Workload]:
    trace = hpcgym.load_workload("lublin:jobs=3000,processors=64,seed=5,load=1.1")
    return [trace.take(slice(k, k + 500), name=f"part {k}") for k in range(0, 3000, 500)]


@pytest.fixture(scope="module")
def moved() -> list[Workload]:
    """Slices of which some jobs follow others, of three queues, with equal jobs."""
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
        user_id=rows * 7 % 11 % 5,
    )
    return [trace.take(slice(k, k + 300), name=f"part {k}") for k in (0, 300, 600)]


def test_all_features(slices: list[Workload]) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.uniform(-1, 1, (4, len(FEATURES))) * (rng.random((4, len(FEATURES))) < 0.6)
    rules = SCHEDULERS["spf"].but(threshold=40_000).given()
    assert_same(slices, tuple(FEATURES), rules, vectors)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules",
    [
        {"dependencies": "after", "quota": "user:jobs=9"},
        {"dependencies": "after", "policy_estimate": "ave2"},
        {"dependencies": "closed-loop", "maintenance": "30000/90000"},
        {"quota": "all:submitted=30"},
        {"preemption": "queue:2>3>4,cancel", "quota": "queue:jobs=9"},
        {"preemption": "queue:2>3>4,suspend"},
        {"preemption": "queue:2>3>4", "dependencies": "after"},
        {"backfill": "depth:5"},
        {"backfill": "slurm:bf_interval=300+bf_max_job_test=20"},
        {"estimate": "e-loss", "policy_estimate": "user-ratio", "quota": "user:jobs=3"},
        {"fair_share": FairShare(40_000), "preemption": "queue:2>3>4"},
        {"fair_share": FairShare(40_000, formula="fair-tree"), "dependencies": "after"},
    ],
    ids=str,
)
@pytest.mark.parametrize("cluster", [None, "8x2x4"])
@pytest.mark.parametrize("order", ["fcfs", "sjbf", "saf"])
def test_long_queues(
    rules: dict[str, Any], cluster: Any, order: str, moved: list[Workload]
) -> None:
    """Of vectors with waiting, without, and of waiting alone."""
    if cluster is not None and "maintenance" in rules:
        rules = {**rules, "maintenance": "30000/90000:nodes=0-3"}
    features = ("fairshare" if "fair_share" in rules else "area", "wait", "requested")
    machine = None if cluster is None else find_cluster(cluster)
    vectors = [(-1.0, 0, 0), (0, 2, 0), (-1, 5, 0), (0, 0, -1), (0, 0, 0)]
    assert_same(moved, features, {**rules, "backfill_order": order}, vectors, machine)


@pytest.mark.slow
@pytest.mark.parametrize("quota", [None, "user:jobs=3"])
def test_single_cores_beside_others_are_what_they_are_alone(quota: str | None) -> None:
    """Who asks for single cores alone is simulated on a pool."""
    cluster = Cluster(groups=(NodeGroup("thin", 4, {"core": 4}),))
    single = hpcgym.load_workload("lublin:jobs=20,processors=16,seed=1")
    columns = {**single.columns, "requested_processors": [4] * 20}
    units = Workload.from_columns(columns, processors=16, per_unit={"core": [4] * 20})
    rules, vectors = Scheduler(quota=quota), [[1, 0, 0, 0, 0, 0], [0, 0, 1, -1, 0, 0]]
    alone, both = (
        [BatchSimulator(parts, scheduler=rules, cluster=cluster).run(vectors) for parts in some]
        for some in ([[units], [single]], [[units, single]])
    )
    assert (np.concatenate(alone, axis=1) == both[0]).all()
    with pytest.raises(HpcgymError, match="passes='per-event' and a machine of nodes"):
        BatchSimulator([units], scheduler=Scheduler(passes="per-event"), cluster=cluster)


# --- Vectors, slices and what is said -------------------------------------------------------------


def test_vectors_and_slices_stand_for_themselves(slices: list[Workload]) -> None:
    batch, rng = BatchSimulator(slices), np.random.default_rng(3)
    vectors = rng.uniform(-1, 1, (37, 6))
    values = batch.run(vectors)
    assert (batch.run(vectors, threads=2) == values).all()
    assert len(np.unique(values)) > 100
    backwards = BatchSimulator(slices[::-1], WEIGHTED_FEATURES[::-1]).run(vectors[:, ::-1])
    assert (backwards[:, ::-1] == values).all()
    own = rng.uniform(-1, 1, (5, len(slices), 6))
    for place, (found, part) in enumerate(zip(batch.run(own).T, slices, strict=True)):
        assert (found == BatchSimulator([part]).run(own[:, place])[:, 0]).all()


def test_weights_of_0_short_jobs_and_progress(slices: list[Workload]) -> None:
    """All weights 0 serve by submission; run times below tau count as it; all is told."""
    seen: list[int] = []
    values = BatchSimulator(slices).run([[0] * 6, [0, 0, 1, 0, 0, 0]] * 1500, progress=seen.append)
    assert (values[0] == values[1]).all()
    assert seen == sorted(seen)
    assert seen[-1] == 3000 * len(slices)
    assert len(seen) > 1
    result = hpcgym.simulate(slices[0], "saf")
    expected = bsld(result.wait, result.run_time, 60).mean()
    found = BatchSimulator(slices[:1], ["area"], tau=60).run([[-1]])
    assert found.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slices": []}, "slices: there must be at least one"),
        ({"slices": ["KTH-SP2"]}, "slices must be workloads, not 'KTH-SP2'"),
        ({"slices": [SMALL, SMALL.take([])]}, "slices: small has no jobs"),
        ({"slices": SMALL}, "slices must be several workloads; put a single one into a list"),
        ({"slices": [SMALL, replace(SMALL, processors=64)]}, "one machine, not of 32, 64 process"),
        ({"features": ["are"]}, "unknown feature 'are'; did you mean 'area'?"),
        ({"features": ["area", "area"]}, "features must be different names"),
        ({"scheduler": "esay"}, "unknown scheduler 'esay'"),
        ({"tau": 0}, "tau must be a number of seconds above 0, not 0"),
        ({"processors": 3}, "processors=3"),
        ({"scheduler": Scheduler(estimate="data-driven")}, "estimate='data-driven' and a batch"),
        ({"scheduler": Scheduler(policy_estimate=[1, 2])}, "estimates by name, not arrays"),
        ({"scheduler": Scheduler(allocation="best-fit")}, "allocation 'best-fit' is for machines"),
        ({"scheduler": Scheduler(quota="all:processors=1")}, "more than the quota all:processors="),
        ({"scheduler": Scheduler(maintenance="0/10:nodes=0")}, "a pool of processors has no nodes"),
        ({"scheduler": Scheduler(maintenance="0/10", hold=0.1)}, "hold and maintenance="),
        (
            {"features": ["energy_fairshare"], "cluster": Cluster(64, busy_power_w=0.0)},
            "without power there is no energy to share",
        ),
        (
            {"features": ["area", "f3"], "scheduler": Scheduler(dependencies="after")},
            "feature 'f3' looks at when the log says that jobs are",
        ),
    ],
)  # fmt: skip
def test_bad_arguments(slices: list[Workload], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((HpcgymError, WorkloadError)) as error:
        BatchSimulator(**{"slices": slices, **arguments})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("weights", "arguments", "message"),
    [
        ([1, 2, 3], {}, "must have the shape"),
        (np.ones((2, 5)), {}, r"must have the shape \(n_vectors, 6\) or \(n_vectors, 6, 6\)"),
        ([[np.nan] * 6], {}, "weights must be finite numbers"),
        ([["a"] * 6], {}, "weights must be numbers"),
        ([[1e303] * 6], {}, "beyond double precision"),
        ([[1e-300] * 6], {}, "beyond double precision"),
        (np.ones((1, 6)), {"metrics": "bsld"}, "unknown metric 'bsld'; did you mean"),
        (np.ones((1, 6)), {"threads": 0}, "threads must be a whole number of at least 1, not 0"),
    ],
)
def test_bad_weights(slices: list[Workload], weights: Any, arguments: Any, message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        BatchSimulator(slices).run(weights, **arguments)


def test_what_is_wrong_is_said_of_the_slice(moved: list[Workload]) -> None:
    after = Scheduler(dependencies="after")
    circle = moved[1].preceding_job.copy()
    circle[:2] = moved[1].job_number[[1, 0]]
    parts = [moved[0], moved[1].with_columns(preceding_job=circle)]
    with pytest.raises(WorkloadError, match=r"part 300: job 301 follows a job that follows itself"):
        BatchSimulator(parts, scheduler=after)
    with pytest.warns(WorkloadWarning, match="part 0 to part 600: preemption .* there is no job"):
        BatchSimulator(moved, scheduler=Scheduler(preemption="queue:2>3;2>7"))
    alone = [replace(moved[0], name="alone")]
    with pytest.warns(WorkloadWarning, match="alone: preemption .*: there is no job of: 7, 8"):
        BatchSimulator(alone, scheduler=Scheduler(preemption="queue:7>8"))


def test_what_no_slice_has_is_told_once(slices: list[Workload]) -> None:
    """A window of one slice is no mistake of the others; a quota of nobody is one."""
    begin = int(slices[2].submit_time[20])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BatchSimulator(slices, scheduler=Scheduler(maintenance=f"{begin}/{begin + 60}"))
    with pytest.warns(WorkloadWarning) as told:
        BatchSimulator(slices, scheduler=Scheduler(quota="queue=77:jobs=1", maintenance="1/2"))
    texts = [str(one.message) for one in told]
    assert "part 0 to part 2500: no job falls under these quotas: queue=77:jobs=1" in texts
    assert sum("no window is between" in text for text in texts) == 1
