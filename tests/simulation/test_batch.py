"""Many weights on many slices at once: the schedules of ``simulate``, which oracles prove."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, assume, given, settings
from drawing import strategies as st
from extract_strategies import parts_of, recorded
from mistakes import mistakes_of, why_not
from node_strategies import machines, node_schedulers, workloads_for
from restrictions import DRAWN
from share_strategies import heeded
from strategies import WEIGHTS, schedulers, workloads

import hpcgym
from hpcgym.baselines import SCHEDULERS
from hpcgym.errors import WorkloadWarning
from hpcgym.machine import Cluster, NodeGroup, find_cluster
from hpcgym.schedule.metrics import bsld
from hpcgym.scheduler.policies import FEATURES, WEIGHTED_FEATURES, FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.batch import METRICS, BatchSimulator
from hpcgym.workload.model import Workload

pytestmark = DRAWN
NAMES = list(METRICS)
SLOW = pytest.mark.slow
ENGINE = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=200)
#: Of features in another order than their table has, usage in the middle.
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
        for part, scores in zip(parts, row, strict=True):
            metrics = hpcgym.simulate(part, cluster=cluster, **own).metrics
            expected = [metrics[name] for name in NAMES]
            assert scores.tolist() == pytest.approx(expected, rel=1e-12, nan_ok=True)


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


@SLOW
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
    if why_not(BatchSimulator, [part], scheduler=Scheduler(**rules), cluster=machine):
        why = why_not(hpcgym.simulate, part, cluster=machine, **rules)
        assert re.search("finds no room on the nodes|cannot run still", why)
        return
    vectors = vectors_of(data, WEIGHTED_FEATURES)
    assert_same([part], WEIGHTED_FEATURES, rules, vectors, machine)


@SLOW
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
        {"correction": "kill", "threshold": 5000},
        {"backfill": "conservative"},
        {"hold": 0.1},
        {"passes": "per-event", "backfill": "until-shadow"},
        {"allocation": "random:3", "estimate": "double-requested", "correction": "incremental"},
        {"backfill": "slurm:bf_interval=300+bf_max_job_test=20"},
        {"estimate": "e-loss", "policy_estimate": "user-ratio", "quota": "user:jobs=3"},
        {"fair_share": FairShare(40_000), "preemption": "queue:2>3>4"},
        {"fair_share": FairShare(40_000, formula="fair-tree"), "dependencies": "after"},
    ],
    ids=str,
)
@pytest.mark.parametrize("cluster", [None, "8x2x4"])
@pytest.mark.parametrize("order", ["sjbf", *(pytest.param(o, marks=SLOW) for o in ("fcfs", "saf"))])
def test_long_queues(
    rules: dict[str, Any], cluster: Any, order: str, moved: list[Workload]
) -> None:
    """Of vectors with waiting, without, and of waiting alone."""
    if (rules.get("allocation") is not None) > (cluster is not None):
        pytest.skip("a pool has no nodes to choose from")
    if rules.get("passes") == "per-event" and cluster is not None:
        pytest.skip("single events are of pools")
    if cluster is not None and "maintenance" in rules:
        rules = {**rules, "maintenance": "30000/90000:nodes=0-3"}
    features = ("fairshare" if "fair_share" in rules else "area", "wait", "requested")
    machine = None if cluster is None else find_cluster(cluster)
    vectors = [(-1.0, 0, 0), (0, 2, 0), (-1, 5, 0), (0, 0, -1), (0, 0, 0)]
    assert_same(moved, features, {**rules, "backfill_order": order}, vectors, machine)


@SLOW
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
    for place, (scores, part) in enumerate(zip(batch.run(own).T, slices, strict=True)):
        assert (scores == BatchSimulator([part]).run(own[:, place])[:, 0]).all()


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
    score = BatchSimulator(slices[:1], ["area"], tau=60).run([[-1]])
    assert score.item() == pytest.approx(expected, rel=1e-12)


def in_a_circle(moved: list[Workload]) -> list[Workload]:
    """Return slices, in the second of which jobs follow each other."""
    circle = moved[1].preceding_job.copy()
    circle[:2] = moved[1].job_number[[1, 0]]
    return [moved[0], moved[1].with_columns(preceding_job=circle)]


def test_what_is_in_no_slice_is_said_of_it(moved: list[Workload]) -> None:
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
    with pytest.warns(WorkloadWarning) as caught:
        BatchSimulator(slices, scheduler=Scheduler(quota="queue=77:jobs=1", maintenance="1/2"))
    texts = [str(warning.message) for warning in caught]
    assert "part 0 to part 2500: no job falls under these quotas: queue=77:jobs=1" in texts
    assert sum("no window is between" in text for text in texts) == 1


test_mistakes = mistakes_of(globals(), fixtures=("moved",))
