"""Many weights on many slices at once: the schedules of the oracle, and of ``simulate``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, given, settings
from drawing import strategies as st
from strategies import WEIGHTS, schedulers, workloads
from worth import worth

import hpcgym
from hpcgym.baselines import SCHEDULERS
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.schedule.metrics import bsld
from hpcgym.scheduler.policies import FEATURES, WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.sweep import BatchSimulator
from hpcgym.sweep.batch import METRICS
from hpcgym.workload.model import Workload

VECTORS = st.tuples(*[WEIGHTS] * 6).filter(any)


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Workload], dict[str, Any], list[Any]]:
    """One to three slices of one machine, the rules of a scheduler, and weights."""
    first = draw(workloads())
    others = draw(st.lists(workloads(max_processors=first.processors), max_size=2))
    parts = [first] + [
        Workload.from_columns(dict(part.columns), processors=first.processors, name="other")
        for part in others
    ]
    rules = draw(schedulers(first))
    if not isinstance(rules["estimate"], str):
        rules["estimate"] = "ave2"
    if not isinstance(rules["backfill_order"], str) and not any(rules["backfill_order"]):
        rules["backfill_order"] = "sjbf"
    return parts, rules, draw(st.lists(VECTORS, min_size=1, max_size=3))


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(batches())
def test_metrics_are_those_of_the_oracle(
    case: tuple[list[Workload], dict[str, Any], list[Any]],
) -> None:
    parts, rules, vectors = case
    scheduler = Scheduler(**{**rules, "policy": "fcfs"})
    batch = BatchSimulator(parts, WEIGHTED_FEATURES, scheduler)
    values = batch.run(vectors, list(METRICS))
    assert values.shape == (len(vectors), len(parts), len(METRICS))
    for v, vector in enumerate(vectors):
        for s, part in enumerate(parts):
            jobs = simulate_pool(jobs_of(part), part.processors, **{**rules, "policy": vector})
            expected = worth(jobs, part.processors)
            found = dict(zip(METRICS, values[v, s].tolist(), strict=True))
            assert found == pytest.approx(expected, rel=1e-12)


@pytest.fixture(scope="module")
def slices() -> list[Workload]:
    trace = hpcgym.load_workload("lublin:jobs=3000,processors=64,seed=5,load=1.1")
    return [trace.take(slice(k, k + 500), name=f"part {k}") for k in range(0, 3000, 500)]


def test_metrics_are_those_of_simulate(slices: list[Workload]) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.uniform(-1, 1, (4, len(FEATURES))) * (rng.random((4, len(FEATURES))) < 0.6)
    rules = SCHEDULERS["spf"].but(threshold=40_000)
    batch = BatchSimulator(slices, tuple(FEATURES), rules)
    values = batch.run(vectors, list(METRICS))
    for v, vector in enumerate(vectors):
        policy = dict(zip(FEATURES, vector, strict=True))
        for s, part in enumerate(slices):
            metrics = hpcgym.simulate(part, rules.but(policy=policy)).metrics
            expected = [metrics[name] for name in METRICS]
            assert values[v, s].tolist() == pytest.approx(expected, rel=1e-12)


EAGER = "regression:over=absolute,under=squared,weight=small,eta=1,l2=0"


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    batches(),
    *[st.sampled_from(["ave3", "typical-ratio", "e-loss", EAGER, "clairvoyant"])] * 2,
    st.lists(WEIGHTS, min_size=len(FEATURES), max_size=len(FEATURES)).filter(any),
)
def test_predictions_are_those_of_simulate(
    case: tuple[list[Workload], dict[str, Any], Any],
    estimate: str,
    policy_estimate: str,
    vector: list[float],
) -> None:
    parts, rules, _ = case
    rules |= {"policy": "fcfs", "estimate": estimate, "policy_estimate": policy_estimate}
    batch = BatchSimulator(parts, tuple(FEATURES), Scheduler(**rules))
    values = batch.run([vector, vector], list(METRICS))  # each begins with nothing learned
    assert (values[0] == values[1]).all()
    rules["policy"] = dict(zip(FEATURES, vector, strict=True))
    for s, part in enumerate(parts):
        metrics = hpcgym.simulate(part, **rules).metrics
        expected = [metrics[name] for name in METRICS]
        assert values[0, s].tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_threads_change_no_prediction(slices: list[Workload]) -> None:
    rules = Scheduler(estimate="e-loss", policy_estimate="user-ratio", backfill_order="lexp")
    batch = BatchSimulator(slices, scheduler=rules)
    vectors = np.random.default_rng(3).uniform(-1, 1, (7, 6))
    alone = batch.run(vectors, threads=1)
    assert (alone == batch.run(vectors, threads=2)).all()
    for v, s in ((0, 0), (6, 5), (3, 2)):
        result = hpcgym.simulate(slices[s], rules.but(policy=tuple(vectors[v])))
        assert alone[v, s] == pytest.approx(result.metrics["mean_bsld"], rel=1e-12)


def test_the_order_of_features_makes_no_difference(slices: list[Workload]) -> None:
    vectors = np.random.default_rng(2).uniform(-1, 1, (3, 6))
    backwards = BatchSimulator(slices, WEIGHTED_FEATURES[::-1]).run(vectors[:, ::-1])
    assert (BatchSimulator(slices).run(vectors) == backwards).all()


def test_threads_change_nothing(slices: list[Workload]) -> None:
    batch = BatchSimulator(slices)
    vectors = np.random.default_rng(3).uniform(-1, 1, (37, 6))
    alone = batch.run(vectors, threads=1)
    assert (alone == batch.run(vectors, threads=2)).all()
    assert (alone == batch.run(vectors)).all()
    assert len(np.unique(alone)) > 100


def test_slices_can_have_vectors_of_their_own(slices: list[Workload]) -> None:
    batch = BatchSimulator(slices)
    vectors = np.random.default_rng(4).uniform(-1, 1, (5, len(slices), 6))
    values = batch.run(vectors)
    for s, part in enumerate(slices):
        assert (values[:, s] == BatchSimulator([part]).run(vectors[:, s])[:, 0]).all()


def test_no_slice_depends_on_the_others(slices: list[Workload]) -> None:
    vectors = np.random.default_rng(5).uniform(-1, 1, (3, 6))
    together = BatchSimulator(slices).run(vectors)
    assert (BatchSimulator(slices[::-1]).run(vectors)[:, ::-1] == together).all()


def test_all_weights_0_serve_by_submission(slices: list[Workload]) -> None:
    values = BatchSimulator(slices).run([[0] * 6, [0, 0, 1, 0, 0, 0]])
    assert (values[0] == values[1]).all()


def test_tau_is_what_short_run_times_count_as(slices: list[Workload]) -> None:
    part = slices[0]
    result = hpcgym.simulate(part, "saf")
    expected = bsld(result.wait, result.run_time, 60).mean()
    found = BatchSimulator([part], ["area"], tau=60).run([[-1]])
    assert found.item() == pytest.approx(expected, rel=1e-12)


def test_progress_goes_up_to_all(slices: list[Workload]) -> None:
    seen: list[int] = []
    BatchSimulator(slices).run(np.ones((3000, 6)), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 3000 * len(slices)
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"slices": []}, "slices: there must be at least one"),
        ({"slices": ["KTH-SP2"]}, "slices must be workloads, not 'KTH-SP2'"),
        ({"features": ["are"]}, "unknown feature 'are'; did you mean 'area'?"),
        ({"features": ["area", "area"]}, "features must be different names"),
        ({"scheduler": "esay"}, "unknown scheduler 'esay'"),
        ({"tau": 0}, "tau must be a number of seconds above 0, not 0"),
        ({"processors": 3}, "processors=3"),
        ({"scheduler": Scheduler(estimate="data-driven")}, "estimate='data-driven' and a batch"),
        ({"scheduler": Scheduler(policy_estimate=[1, 2])}, "estimates by name, not arrays"),
        ({"scheduler": Scheduler(allocation="best-fit")}, "allocation 'best-fit' is for machines"),
    ],
)
def test_bad_arguments(slices: list[Workload], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((HpcgymError, WorkloadError)) as error:
        BatchSimulator(**{"slices": slices, **arguments})
    assert message in str(error.value)


def test_slices_of_different_machines(slices: list[Workload]) -> None:
    other = hpcgym.load_workload("lublin:jobs=10,processors=32,seed=0")
    with pytest.raises(HpcgymError, match="one machine, not of 32, 64 processors"):
        BatchSimulator([slices[0], other])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2, 3], "must have the shape"),
        (np.ones((2, 5)), r"must have the shape \(n_vectors, 6\) or \(n_vectors, 6, 6\)"),
        ([[np.nan] * 6], "weights must be finite numbers"),
        ([["a"] * 6], "weights must be numbers"),
        ([[1e303] * 6], "beyond double precision"),
        ([[1e-300] * 6], "beyond double precision"),
    ],
)
def test_bad_weights(slices: list[Workload], weights: Any, message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        BatchSimulator(slices).run(weights)


def test_bad_metric_and_threads(slices: list[Workload]) -> None:
    batch = BatchSimulator(slices)
    with pytest.raises(HpcgymError, match="unknown metric 'bsld'; did you mean"):
        batch.run(np.ones((1, 6)), "bsld")
    with pytest.raises(HpcgymError, match="threads must be a whole number of at least 1, not 0"):
        batch.run(np.ones((1, 6)), threads=0)
