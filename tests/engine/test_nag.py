"""The regression's terms, losses and steps, against the same written out in plain Python."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from hpcgym._engine import learn_by, predict_by
from hpcgym.scheduler.estimates import learning
from hpcgym.scheduler.estimates.by_name import BRANCHES, WEIGHTINGS
from hpcgym.scheduler.estimates.learning import LOSS

KEEN: dict[str, Any] = {"eta": 20.0, "l2": 0.0}


def loss_record(
    over: str = "squared",
    under: str = "squared",
    scales: tuple[float, float] = (1.0, 1.0),
    threshold: float = 0.0,
    weight: str = "1",
    eta: float = 5000.0,
    l2: float = 4e9,
    degree: int = 2,
) -> Any:
    codes = BRANCHES.index(over), BRANCHES.index(under), WEIGHTINGS.index(weight)
    record = np.zeros(1, LOSS)
    record[0] = (codes[0], scales[0], codes[1], scales[1], threshold, codes[2], eta, l2, degree)
    return record


def terms_of(x: Any, degree: int) -> list[float]:
    """The terms of features: each is what is predicted where it alone has a weight, of 1."""
    x, loss = np.array(x, np.float64), loss_record(degree=degree).view(np.int64)
    values = []
    for place in range(learning.count_terms(len(x), degree)):
        terms = np.zeros((learning.N_ROWS, learning.count_terms(len(x), degree)))
        terms[0, place] = 1.0
        values.append(predict_by(x, loss, terms))
    return values


def gradient(loss: Any, prediction: float, y: float, processors: float = 1.0) -> float:
    """What is learned of a job that ran for ``y``, where one term of 1 predicts all."""
    loss = loss.copy()
    loss["degree"], loss["l2"], loss["eta"] = 1, 0.0, 1.0
    terms, totals = np.array([[prediction], [1.0], [0.0]]), np.array([0.0, 1.0])
    learn_by(np.zeros(0), loss.view(np.int64), terms, totals, y, processors)
    weight, _, squares = terms[:, 0]
    return math.copysign(math.sqrt(squares), prediction - weight)


def loss_value(branch: str, scale: float, error: float) -> float:
    """A branch of the loss, as the contract of the losses has it."""
    values = {"absolute": scale * error, "squared": scale * error**2}
    return values[branch] if branch in values else math.exp(scale * error)


class Plain:
    """Algorithm 2 of Ross, Mineiro and Langford (2013), line by line, over a list of terms."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss[0]
        self.w: dict[int, float] = {}
        self.s: dict[int, float] = {}
        self.g: dict[int, float] = {}
        self.norm = 0.0
        self.t = 0

    def terms(self, x: list[float]) -> list[float]:
        products = itertools.combinations_with_replacement(x, 2)
        return [1.0, *x] + ([a * b for a, b in products] if self.loss.degree == 2 else [])

    def predict(self, x: list[float]) -> float:
        return math.fsum(self.w.get(i, 0.0) * value for i, value in enumerate(self.terms(x)))

    def slope(self, error: float) -> float:
        """The loss's slope by differences, so that it cannot share a mistake."""
        loss, step = self.loss, 1e-4
        side = (loss.over, loss.over_scale) if error > 0 else (loss.under, loss.under_scale)
        size, h = abs(error), step * max(1.0, abs(error))
        branch = BRANCHES[side[0]]
        up, down = loss_value(branch, side[1], size + h), loss_value(branch, side[1], size - h)
        return math.copysign((up - down) / (2 * h), error) if error else 0.0

    def learn(self, x: list[float], y: float, weight: float) -> None:
        phi = self.terms(x)
        self.t += 1
        for i, value in enumerate(phi):
            if abs(value) > self.s.get(i, 0.0):
                self.w[i] = self.w.get(i, 0.0) * self.s.get(i, 0.0) / abs(value)
                self.s[i] = abs(value)
        self.norm += sum((v / self.s[i]) ** 2 for i, v in enumerate(phi) if self.s.get(i, 0.0))
        slope = self.slope(self.predict(x) - y - self.loss.threshold)
        for i, value in enumerate(phi):
            g = weight * slope * value + self.loss.l2 * self.w.get(i, 0.0)
            self.g[i] = self.g.get(i, 0.0) + g**2
            if self.g[i]:
                root = math.sqrt(self.norm * self.g[i] / self.t)
                self.w[i] -= self.loss.eta * g / (self.s[i] * root)


class Fast:
    """The engine's regression."""

    def __init__(self, loss: Any, n_features: int) -> None:
        self.loss = loss.view(np.int64)
        n = learning.count_terms(n_features, int(loss["degree"][0]))
        self.terms, self.totals = np.zeros((learning.N_ROWS, n)), np.array([0.0, 1.0])

    def predict(self, x: list[float]) -> float:
        return predict_by(np.array(x), self.loss, self.terms)

    def learn(self, x: list[float], y: float, weight: float = 1.0, processors: float = 1.0) -> None:
        learn_by(np.array(x), self.loss, self.terms, self.totals, y, processors, weight)


def stream(n: int, n_features: int, seed: int = 0) -> list[tuple[list[float], float, float]]:
    """Features of very different sizes, many of them 0; truths; weights."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-3, 4, n_features)
    x = rng.standard_normal((n, n_features)) * size * (rng.random((n, n_features)) < 0.8)
    x[: n // 3, 1] = 0.0  # one that turns up late
    scaled = x / size
    y = 3.0 + scaled[:, 0] - 2.0 * scaled[:, 1] + scaled[:, 1] * scaled[:, 2]
    weights = rng.uniform(0.5, 2.0, n)
    return [
        (list(map(float, a)), float(b), float(c)) for a, b, c in zip(x, y, weights, strict=True)
    ]


def test_the_number_of_terms_of_the_published_features() -> None:
    assert learning.count_terms(20, 2) == 231


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("some", [[], [0], [3], [0, 4], [1, 2, 3], [0, 1, 2, 3, 4]])
def test_places_of_terms(some: list[int], degree: int) -> None:
    x = np.array([2.0, 3.0, 5.0, 7.0, 11.0])
    every = np.array(terms_of(x, degree))
    assert list(every[learning.term_places(some, 5, degree)]) == terms_of(x[some], degree)


def test_slopes_stay_finite() -> None:
    loss = loss_record("exponential", "exponential", scales=(1.0, 1.0))
    assert gradient(loss, 1e9, 0.0) == pytest.approx(math.exp(300), rel=1e-12)
    assert gradient(loss, 1e6, 0.0) == gradient(loss, 1e9, 0.0) == -gradient(loss, 0.0, 1e9)
    fast = Fast(loss, 2)
    for _ in range(3):
        fast.learn([1e6, 1e-6], 1e9, 1e3)
    assert np.isfinite(fast.terms).all()
    assert fast.terms[0].any()


def test_weights_of_jobs() -> None:
    p, q = 3600.0, 8.0
    wanted = {
        "1": 1.0,
        "long": 5 + math.log(p / q),
        "wide": 5 + math.log(q / p),
        "small": 11 + math.log(1 / (q * p)),
        "large": 1 + math.log(q * p),
    }
    assert tuple(wanted) == WEIGHTINGS
    for name, weight in wanted.items():
        loss = loss_record("absolute", "absolute", weight=name)
        assert gradient(loss, p + 1, p, q) == pytest.approx(weight, rel=1e-12)
    # a job of no time counts as one of a second
    assert gradient(loss_record("absolute", weight="large"), 1.0, 0.0, 0.0) == 1.0


LOSSES: dict[str, dict[str, Any]] = {
    "published": {},
    "e-loss": {"under": "absolute", **KEEN},
    "absolute": {"over": "absolute", "under": "absolute", "scales": (0.2, 0.8), **KEEN},
    "squared": {"scales": (3.0, 0.1), "threshold": 0.5, "eta": 1.0, "l2": 0.3},
    "exponential": {"over": "exponential", "under": "exponential", "scales": (0.1, 0.2), **KEEN},
    "mixed": {"over": "absolute", "under": "exponential", "scales": (2.0, 0.05), "eta": 3.0},
}


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("name", LOSSES)
def test_learning_is_the_published_algorithm(name: str, degree: int) -> None:
    loss = loss_record(degree=degree, **LOSSES[name])
    plain, fast = Plain(loss), Fast(loss, 6)
    for x, y, weight in stream(200, 6):
        assert fast.predict(x) == pytest.approx(plain.predict(x), rel=1e-6, abs=1e-6)
        plain.learn(x, y, weight)
        fast.learn(x, y, weight)
    assert np.abs(fast.terms[0]).min() > 0.0
    assert fast.totals == pytest.approx([plain.norm, plain.t + 1])
