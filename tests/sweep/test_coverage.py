"""Full coverage of the space of weights has the value of each vector, simulated or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import HealthCheck, given, settings
from drawing import strategies as st
from strategies import workloads

import hpcgym
from hpcgym.baselines import SCHEDULERS
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.rules import Scheduler
from hpcgym.sweep import BatchSimulator, cover, coverage
from hpcgym.sweep.coverage import THREE
from hpcgym.workload.model import Workload

pytestmark = pytest.mark.slow


def simulated(workload: Workload, points: int, features: tuple[str, ...], **arguments: Any) -> Any:
    """The same by a simulation of each vector, in whole numbers that have no common divisor."""
    axis = np.arange(1 - points, points, 2)
    cube = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    vectors = cube // np.maximum(np.gcd.reduce(cube, axis=1), 1)[:, np.newaxis]
    vectors = vectors / np.maximum(np.abs(vectors).sum(axis=1, keepdims=True), 1)
    values = BatchSimulator([workload], features, **arguments).run(vectors)
    return values.reshape(points, points, points)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    workloads(),
    st.sampled_from(["none", "easy"]),
    st.sampled_from(["fcfs", "sjbf", "spf", "lexp", "laf"]),
    st.sampled_from(["requested", "clairvoyant"]),
    st.sampled_from([None, 0, 20, 2000]),
    st.sampled_from([5, 8, 20]),
    st.sampled_from([THREE, ("wait", "area", "f1"), ("requested", "wait", "processors")]),
    st.sampled_from([5, 40, 1500]),
)
def test_every_vector_has_the_value_of_its_simulation(
    workload: Workload,
    backfill: str,
    order: str,
    estimate: str,
    threshold: int | None,
    points: int,
    features: tuple[str, ...],
    tile: int,
) -> None:
    rules = Scheduler("fcfs", backfill, order, estimate, threshold=threshold)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "_TILE", tile)
        coverage.grid.cache_clear()
        covered = cover(workload, features, rules, points=points)
    coverage.grid.cache_clear()
    best = BatchSimulator([workload], features, rules).run([covered.weights])
    assert best.item() == covered.best
    assert (covered.values == simulated(workload, points, features, scheduler=rules)).all()


@pytest.mark.parametrize("load", [0.6, 1.2])
@pytest.mark.parametrize("threshold", [None, 30_000])
def test_a_busy_machine(load: float, threshold: int | None) -> None:
    workload = hpcgym.load_workload(f"lublin:jobs=500,processors=64,seed=2,load={load}")
    rules = SCHEDULERS["spf"].but(threshold=threshold)
    covered = cover(workload, THREE, rules, points=20)
    assert (covered.values == simulated(workload, 20, THREE, scheduler=rules)).all()
    assert len(np.unique(covered.values)) > 20
    assert covered.simulations < 20**3


def test_the_best_vector() -> None:
    workload = hpcgym.load_workload("lublin:jobs=400,processors=64,seed=1,load=1")
    covered = cover(workload, points=10, threads=1)
    assert covered.values.shape == (10, 10, 10)
    assert covered.best == covered.values.min()
    assert np.abs(covered.weights).sum() == pytest.approx(1)
    policy = dict(zip(THREE, covered.weights, strict=True))
    again = hpcgym.simulate(workload, SCHEDULERS["spf"].but(policy=policy))
    assert again.metrics["mean_bsld"] == pytest.approx(covered.best, rel=1e-12)
    assert (cover(workload, points=10, threads=2).values == covered.values).all()


def test_tiles_hold_all_directions_once() -> None:
    sphere = coverage.grid(100).sphere
    assert len(sphere.corners) == 600  # cut as the weeks of a real study
    assert sphere.first[-1] == len(sphere.weights) == 948_152
    assert np.abs(sphere.weights).sum(axis=1) == pytest.approx(1)
    for tile in range(0, 600, 7):
        inside = sphere.places[sphere.first[tile] : sphere.first[tile + 1]]
        low, high = sphere.corners[tile].min(axis=0), sphere.corners[tile].max(axis=0)
        assert (inside >= low - 1e-12).all()
        assert (inside <= high + 1e-12).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": ["wait"]}, "coverage is of three, not of 1"),
        ({"features": ["area", "wait", "expansion"]}, "only 'wait', not 'expansion'"),
        ({"points": 1}, "points must be a whole number from 2 to 1000, not 1"),
        ({"metric": "bsld"}, "unknown metric 'bsld'"),
        ({"metric": "utilization"}, "unknown metric 'utilization'"),
        ({"scheduler": Scheduler(passes="per-event")}, "per-event' and coverage do not go"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    workload = hpcgym.load_workload("lublin:jobs=20,processors=8,seed=0")
    with pytest.raises(HpcgymError, match=message):
        cover(workload, **arguments)


@pytest.mark.parametrize("rule", ["estimate", "policy_estimate"])
@pytest.mark.parametrize(
    "estimate", ["ave1", "ave2", "user-ratio", "typical-ratio", "e-loss", "regression"]
)
def test_estimates_that_learn_are_refused(estimate: str, rule: str) -> None:
    workload = hpcgym.load_workload("lublin:jobs=20,processors=8,seed=0")
    rules = Scheduler(**{rule: estimate})
    with pytest.raises(HpcgymError, match=f"^{rule}=.* and coverage do not go together"):
        cover(workload, scheduler=rules, points=2)
