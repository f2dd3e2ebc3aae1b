"""Models that learn from a whole table learn on-line, on a schedule."""

from __future__ import annotations

import doctest
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hpcgym.agents import refitted
from hpcgym.agents.refitted import Mean, Refitted
from hpcgym.errors import HpcgymError


class LeastSquares:
    """Least squares with an intercept, that counts its fits."""

    fits: int = 0

    def fit(self, X: Any, y: Any) -> LeastSquares:  # noqa: N803
        self.shape = X.shape
        self.fits += 1
        self.weights = np.linalg.lstsq(np.c_[np.ones(len(X)), X], y, rcond=None)[0]
        return self

    def predict(self, X: Any) -> Any:  # noqa: N803
        return np.c_[np.ones(len(X)), X] @ self.weights


def line(n: int, start: float = 0.0) -> Iterator[tuple[dict[str, Any], float]]:
    for k in itertools.islice(itertools.count(start), int(n)):
        yield {"a": k % 7, "b": (k * k) % 11}, 5.0 + 2.0 * (k % 7) - 3.0 * ((k * k) % 11)


def test_refitted_on_schedule() -> None:
    given = LeastSquares()
    model = Refitted(given, every=20, window=30)
    assert model.predict_one({"a": 1.0}) == 0.0
    for k, (x, y) in enumerate(line(19)):
        model.learn_one(x, y)
        assert model.predict_one(x) == pytest.approx(np.mean([y for _, y in line(k + 1)]))
    shapes = []
    for x, y in line(61, 19.0):
        model.learn_one(x, y)
        assert model.predict_one(x) == pytest.approx(y)
        shapes.append(model._fitted.shape)
    assert [len(list(same)) for _, same in itertools.groupby(shapes)] == [20, 41]
    assert shapes[0] == (20, 2)
    assert shapes[-1] == (30, 2)  # the window
    assert model._fitted.fits == 1
    assert given.fits == 0


def test_a_window_forgets() -> None:
    model, all_of_it = Refitted(Mean(), every=1, window=5), Refitted(Mean(), every=1, window=None)
    for k in range(20):
        model.learn_one({}, float(k))
        all_of_it.learn_one({}, float(k))
    assert model.predict_one({}) == 17.0
    assert all_of_it.predict_one({}) == 9.5


def test_features_of_refitted_models_come_and_go() -> None:
    model = Refitted(LeastSquares(), every=10)
    for x, y in line(5):
        model.learn_one({"a": x["a"]}, y + 3.0 * x["b"])
    for x, y in line(5, 5.0):
        model.learn_one({"b": x["b"], "a": x["a"]}, y)
    assert model.predict_one({"b": 4.0, "a": 2.0}) == pytest.approx(5.0 + 4.0 - 12.0)
    assert model.predict_one({"a": 2.0, "new": 9.0}) == pytest.approx(9.0)
    model.learn_one({"a": 2.0, "new": 9.0}, 1.0)  # the last fit did not know it
    assert model.predict_one({"a": 2.0, "new": 9.0}) == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": 3}, "model must have methods fit and predict, which 3 lacks"),
        ({"model": Mean}, r"model must be a model, not the class Mean; give Mean\(\)"),
        ({"every": 0}, "every must be at least 1, not 0"),
        ({"window": 0}, "window must be None or at least 1, not 0"),
    ],
)
def test_bad_arguments_of_refitted(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        Refitted(**{"model": Mean(), **arguments})


def test_examples() -> None:
    found = doctest.testmod(refitted)
    assert found.attempted > 0
    assert found.failed == 0
