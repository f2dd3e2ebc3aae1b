"""Speedups that are learned: of pairs never measured too, and by any regressor of river."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from mistakes import mistakes_of

from hpcgym.machine.speedups import (
    Heatmap,
    LearnedSpeedups,
    PairRegression,
    pair_features,
)

PAIRS = [("a", "b", 1.5), ("b", "a", 0.5), ("a", "a", 1.2), ("b", "c", 0.8), ("c", "c", 1.0)]


def learned(pairs: Any = PAIRS, **arguments: Any) -> LearnedSpeedups:
    model = LearnedSpeedups(["a", "b", "c"], **arguments)
    for code, beside, speedup in pairs:
        model.learn(code, beside, speedup)
    return model


# --- The regression -------------------------------------------------------------------------


def test_steps_by_hand() -> None:
    """First: three moves of 1/1, together shrunk to the error. Then 1/2, 1/2 and 1/1: by a half."""
    model = PairRegression()
    model.learn_one(pair_features("a", "b"), 0.6)
    third = pytest.approx(0.2, rel=1e-12)
    assert (model.intercept, model.weights) == (third, {"code=a": third, "beside=b": third})
    assert model.predict_one(pair_features("a", "b")) == pytest.approx(0.6)
    assert model.predict_one(pair_features("a", "c")) == pytest.approx(0.4)

    model.learn_one(pair_features("a", "c"), 1.2)  # the error is 0.8, the moves are 2
    assert model.intercept == pytest.approx(0.2 + 0.4 * 0.5)
    assert model.weights["code=a"] == pytest.approx(0.2 + 0.4 * 0.5)
    assert model.weights["beside=c"] == pytest.approx(0.4)
    assert model.weights["beside=b"] == third
    assert model.predict_one(pair_features("a", "c")) == pytest.approx(1.2)

    model.learn_one({"code=a": 0.5}, 0.4)  # 0.4 + 0.5 * 0.4 was predicted; S of a is 2.25
    assert model.intercept == pytest.approx(0.4 - 0.2 / 3)
    assert model.weights["code=a"] == pytest.approx(0.4 - 0.2 * 0.5 / 2.25)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("pqr"), st.just(0.0) | st.floats(1e-3, 1e3)),
            st.floats(-10, 10),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_a_step_never_goes_beyond_what_it_learns(pairs: Any) -> None:
    """The error after a step has the sign of that before, and is no larger."""
    model = PairRegression()
    for x, y in pairs:
        before = y - model.predict_one(x)
        model.learn_one(x, y)
        after = y - model.predict_one(x)
        tolerance = 1e-9 * (1 + abs(before))
        assert min(0.0, before) - tolerance <= after <= max(0.0, before) + tolerance


# --- Beliefs --------------------------------------------------------------------------------


def test_before_anything_is_learned_all_are_1() -> None:
    model = learned([])
    assert model.matrix().tolist() == [[1.0] * 3] * 3
    assert model.predict("a", "c") == 1.0
    assert model.learned == 0


def test_the_matrix_is_of_all_pairs_and_keeps_up() -> None:
    model = learned()
    before = model.matrix()
    assert before.shape == (3, 3)
    for row, code in enumerate(model.codes):
        for column, beside in enumerate(model.codes):
            assert before[row, column] == model.predict(code, beside)
    assert not before.flags.writeable
    assert model.matrix() is before
    model.learn("c", "a", 0.7)
    assert model.learned == 6
    assert model.predict("c", "a") == model.matrix()[2, 0] < before[2, 0]


def test_beliefs_stay_within_what_was_seen() -> None:
    """A good code beside a good neighbour: not yet better than any was."""
    model = learned([("a", "c", 2.0), ("c", "b", 2.0)])
    assert model.regressor.predict_one(pair_features("a", "b")) > math.log(2.0)
    assert model.predict("a", "b") == pytest.approx(2.0)
    assert model.matrix().max() == model.predict("a", "b")
    assert learned([("a", "b", 3.0)]).matrix().min() >= 1.0


def test_copies_go_on_alike() -> None:
    model = learned()
    model.matrix()
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.matrix().tolist() == model.matrix().tolist()
        assert not other.matrix().flags.writeable
        again = copy.deepcopy(model)
        for copied in (other, again):
            copied.learn("b", "b", 1.7)
        assert other.matrix().tolist() == again.matrix().tolist() != model.matrix().tolist()
        assert pickle.dumps(other) == pickle.dumps(again)


class Says:
    """A regressor that always says the same."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def predict_one(self, x: dict[str, float]) -> float:
        return float(self.value)

    def learn_one(self, x: dict[str, float], y: float) -> None:
        pass


def test_a_regressor_of_ones_own() -> None:
    """It predicts logarithms."""
    speedups = learned(regressor=Says(math.log(1.3))).matrix()
    np.testing.assert_allclose(speedups, 1.3, rtol=1e-15)
    greatest, least = (learned(regressor=Says(said)) for said in (math.inf, -7))
    assert greatest.predict("a", "b") == pytest.approx(1.5)
    assert least.predict("a", "b") == pytest.approx(0.5)
    assert learned([], regressor=Says(math.nan)).predict("a", "b") == 1.0  # it is not asked


# --- On measurements ------------------------------------------------------------------------


def ranks(values: Any) -> Any:
    return np.argsort(np.argsort(values))


def hide_half(heatmap: Heatmap, seed: int, model: LearnedSpeedups) -> tuple[float, float, float]:
    """Learn a random half of the pairs, in random order; look at the others.

    Returns the mean absolute error, that of the mean of what was learned, and the rank correlation.
    """
    pairs = np.argwhere(~np.isnan(heatmap.speedup))
    np.random.default_rng(seed).shuffle(pairs)
    learned_pairs, hidden = pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]
    for a, b in learned_pairs:
        model.learn(heatmap.codes[a], heatmap.codes[b], heatmap.speedup[a, b])
    truth, believed = (m[tuple(hidden.T)] for m in (heatmap.speedup, model.matrix()))
    mean = heatmap.speedup[tuple(learned_pairs.T)].mean()
    correlation = np.corrcoef(ranks(truth), ranks(believed))[0, 1]
    return np.abs(believed - truth).mean(), np.abs(mean - truth).mean(), correlation


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "file",
    [
        "lm-aris.compute-NAS.json",
        "lm-aris.compute-SPEC.json",
        "lm-remake-g5k.nancy.grvingt-NAS.json",
    ],
)
def test_hidden_pairs_are_foreseen(
    file: str, seed: int, measured: Callable[[str], Heatmap]
) -> None:
    heatmap = measured(file)
    error, of_mean, correlation = hide_half(heatmap, seed, LearnedSpeedups(heatmap.codes))
    assert error < 0.8 * of_mean
    assert correlation > 0.5


test_mistakes = mistakes_of(globals())
