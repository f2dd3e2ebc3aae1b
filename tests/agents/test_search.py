"""Searches ask for what they promise, and find the least of plain functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from mistakes import mistakes_of

from hpcgym.agents import search
from hpcgym.agents.search import (
    WeightUnits,
    candidates,
    features_of,
    normalised,
    rounded,
    searching,
    spread,
    units_of,
)
from hpcgym.agents.settings import METHODS, XnesSettings
from hpcgym.scheduler.policies import FEATURES, WEIGHTED_FEATURES
from hpcgym.workload import load_workload

TRACE = load_workload("lublin:jobs=500,processors=64,seed=0")
PLAN = XnesSettings(budget=200, samples=50, restarts=4, sigma=0.1, penalty=1.0)


def run(
    plan: XnesSettings,
    function: Any,
    n_features: int = 4,
    seed: int = 0,
    units: WeightUnits | None = None,
) -> tuple[Any, Any]:
    """All vectors of a search, and what it asked with them."""
    units = WeightUnits(np.ones(n_features), np.zeros(0, np.int64)) if units is None else units
    steps = searching(replace(plan, seed=seed), units)
    asked, vectors = [], []
    question = next(steps)
    while True:
        asked.append(question)
        vectors.append(question.vectors)
        try:
            question = steps.send(function(question.vectors))
        except StopIteration:
            return np.concatenate(vectors), asked


def far_from(target: Any) -> Any:
    """The angle between a vector and a target, of which no size matters: as with policies."""

    def value(vectors: Any) -> Any:
        cosine = vectors @ target / np.linalg.norm(vectors, axis=1) / np.linalg.norm(target)
        return 2.0 - cosine

    return value


# --- Vectors --------------------------------------------------------------------------------


def test_pure_policies_come_before_random_vectors() -> None:
    tried = candidates(np.random.default_rng(0), 2, 50)
    assert tried[:4].tolist() == [[1, 0], [-1, 0], [0, 1], [0, -1]]
    assert tried.shape == (50, 2)
    np.testing.assert_allclose(np.abs(tried).sum(axis=1), 1)
    few = candidates(np.random.default_rng(0), 2, 3)
    assert few.tolist() == tried[:3].tolist()
    other = candidates(np.random.default_rng(1), 2, 50)
    assert (other[4:] != tried[4:]).any()
    used = (candidates(np.random.default_rng(0), 6, 2012)[12:] != 0).sum(axis=1)
    assert np.bincount(used, minlength=7)[1:].min() > 20  # features are left out


def test_spreads_make_every_feature_count() -> None:
    tried = candidates(np.random.default_rng(0), 6, 400)[12:]
    weights = normalised(tried / spread([TRACE], WEIGHTED_FEATURES))
    area, expansion = weights[:, 5], weights[:, 4]
    size = float(np.std(TRACE.requested_time * TRACE.requested_processors))
    both = (area != 0) & (expansion != 0)
    larger = np.abs(area[both]) * size > np.abs(expansion[both])
    assert 0.1 < np.mean(larger) < 0.9


def test_every_feature_has_a_spread() -> None:
    spreads = dict(zip(FEATURES, spread([TRACE], tuple(FEATURES)), strict=True))
    assert 1.0 not in spreads.values()  # which stands for none
    requested, area = TRACE.requested_time, TRACE.requested_time * TRACE.requested_processors
    assert spreads["area"] == pytest.approx(np.std(area))
    assert spreads["wait"] == pytest.approx(np.mean(requested))
    assert spreads["expansion"] == pytest.approx(np.mean(requested) / np.median(requested))
    single_job = [TRACE.take(slice(0, 1))]
    assert spread(single_job, ("area", "processors")).tolist() == [1, 1]


@given(
    st.lists(
        st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6), min_size=1, max_size=7
    ).filter(any)
)
def test_sizes_of_normalised_weights_add_up_to_one_exactly(vector: list[float]) -> None:
    weights = normalised(np.array([vector]))[0]
    for order in (weights, weights[::-1], np.sort(weights)):
        total = 0.0
        for weight in order:
            total += abs(weight)
        assert total == 1.0
    np.testing.assert_array_equal(weights, normalised(weights[None])[0])
    exact = np.array(vector) / np.abs(vector).sum()
    np.testing.assert_allclose(weights, exact, rtol=0, atol=2.0**-49)


def test_rounding_joins_what_differs_by_rounding_only() -> None:
    value = np.array([12.3456789, 1e-9, 3e12])
    assert (rounded(value * (1 + 1e-15)) == rounded(value)).all()
    assert (rounded(value * (1 + 1e-6)) != rounded(value)).all()
    np.testing.assert_allclose(rounded(value), value, rtol=1e-9)


# --- Searches -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [1, 7, 8, 99, 200])
def test_the_budget_is_met_exactly(method: str, budget: int) -> None:
    plan = replace(PLAN, method=method, budget=budget)
    vectors, asked = run(plan, far_from(np.array([3.0, -1, 2, 0.5])))
    assert vectors.shape == (budget, 4)
    assert all(question.restart <= 4 for question in asked)


@pytest.mark.parametrize("method", ["xnes", "cma-es"])
def test_runs_begin_at_different_good_vectors(method: str) -> None:
    value = far_from(np.array([3.0, -1, 2, 0.5]))
    _, asked = run(replace(PLAN, method=method), value)
    assert [question.restart for question in asked if question.generation == 1] == [1, 2, 3, 4]
    random = np.concatenate([question.vectors for question in asked if question.restart == 0])
    first = next(question for question in asked if question.restart == 1)
    best = random[np.argmin(value(random))]
    assert np.abs(first.vectors.mean(axis=0) - best).max() < 0.2
    assert first.step_size == 0.1


def test_a_method_that_does_not_tell_its_step_size(monkeypatch: pytest.MonkeyPatch) -> None:
    class Secretive:
        def __init__(self, *arguments: Any) -> None:
            self.inside = make(*arguments)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            return getattr(self.inside, name)

    value = far_from(np.array([3.0, -1, 2, 0.5]))
    expected, _ = run(PLAN, value)
    make = search._optimiser
    monkeypatch.setattr(search, "_optimiser", Secretive)
    vectors, asked = run(PLAN, value)
    np.testing.assert_array_equal(vectors, expected)
    assert {question.step_size for question in asked} == {None}


@pytest.mark.parametrize(("method", "most"), [("xnes", 0.002), ("cma-es", 0.002), ("random", 0.2)])
def test_searches_find_the_least(method: str, most: float) -> None:
    value = far_from(np.array([3.0, -1, 2, 0.5]))
    plan = replace(PLAN, method=method, budget=500, samples=100, restarts=2)
    vectors, _ = run(plan, value)
    assert value(vectors).min() - 1 < most


def test_the_plain_form_of_the_document() -> None:
    """No random vectors, one run from 0."""
    plan = replace(PLAN, samples=0, restarts=1, budget=2000, sigma=1.0)
    value = far_from(np.array([3.0, -1, 2, 0.5]))
    vectors, asked = run(plan, value)
    assert {question.restart for question in asked} <= {1, 2}  # 2: it had converged
    first = [question for question in asked if question.restart == 1]
    assert [question.generation for question in first] == list(range(1, len(first) + 1))
    assert value(vectors).min() - 1 < 1e-4


def test_some_vectors_are_in_the_units_of_their_features() -> None:
    features = ("wait", "area", "requested", "processors")
    units = units_of("spread", [TRACE], features)
    np.testing.assert_array_equal(units.scale, spread([TRACE], features))
    assert units.natural.tolist() == [0, 2, 3]
    target = np.array([0.5, 0.0, -0.3, -0.4])

    def value(vectors: Any) -> Any:
        weights = vectors / units.scale
        return np.where(weights[:, 1] != 0, 10.0, far_from(target)(weights))

    vectors, asked = run(PLAN, value, units=units)
    assert len(vectors) == 200
    weights = np.concatenate([q.vectors for q in asked if q.restart == 0])[-15:] / units.scale
    assert (weights[:, 1] == 0).all()
    sizes = np.abs(weights[:, [0, 2, 3]])
    largest = sizes.max(axis=1, keepdims=True)
    assert (sizes / largest > 0.01).mean() > 0.9  # uniform over a cube
    # populations are those of all features, so that searches side by side keep step
    assert {len(q.vectors) for q in asked if q.restart == 1} == {8}
    # the best of them is where the first run begins, which goes on over its features only
    first = np.concatenate([q.vectors for q in asked if q.restart == 1]) / units.scale
    assert (first[:, 1] == 0).all()
    assert value(vectors).min() - 1 < 0.1


def test_units_where_own_ones_are_of_no_use() -> None:
    assert len(units_of("spread", [TRACE], ("area", "wait")).natural) == 0
    none = units_of("none", [TRACE], ("area", "wait", "requested"))
    assert none.scale.tolist() == [1, 1, 1]
    assert len(none.natural) == 0


def test_rounding_of_values_changes_no_way() -> None:
    """As between the batch and an environment, which sum in different orders."""
    value = far_from(np.array([3.0, -1, 2, 0.5]))
    noise = np.random.default_rng(0)
    exact = run(PLAN, lambda v: np.round(value(v), 2))[0]
    noisy = run(
        PLAN, lambda v: np.round(value(v), 2) * (1 + 1e-15 * noise.integers(-3, 4, len(v)))
    )[0]
    np.testing.assert_array_equal(exact, noisy)


# --- Arguments ------------------------------------------------------------------------------


def test_features_by_the_name_of_a_set_or_their_own() -> None:
    assert features_of("xnes3") == ("processors", "requested", "wait")
    assert features_of("xnes6") == WEIGHTED_FEATURES
    assert features_of("area,wait") == features_of(["area", "wait"]) == ("area", "wait")
    assert features_of("area") == ("area",)


test_mistakes = mistakes_of(globals())
