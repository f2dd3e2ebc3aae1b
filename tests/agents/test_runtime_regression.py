"""The regression compiled, against itself as it is written down."""

from __future__ import annotations

import copy
import doctest
import itertools
import math
import pickle
import random
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of
from river import checks, datasets, evaluate, metrics, preprocessing

from hpcgym import HpcgymError, Scheduler, load_workload, simulate
from hpcgym.agents import runtime_regression
from hpcgym.agents.runtime_regression import RuntimeRegression
from hpcgym.scheduler.estimates import JOB_FEATURES, Regression
from hpcgym.simulation.batch import BatchSimulator

KEEN: dict[str, Any] = {"eta": 20.0, "l2": 0.0}
Observation = tuple[dict[str, Any], float]


def stream(n: int, n_features: int = 6, seed: int = 0) -> Iterator[Observation]:
    """Features of very different sizes, whole numbers among them, and run times."""
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(-3, 5, n_features)
    for _ in range(n):
        z = rng.standard_normal(n_features)
        x: dict[str, Any] = {f"f{i}": float(a) for i, a in enumerate(z * size)}
        x["processors"] = int(rng.integers(1, 100))
        yield x, float(abs(3000.0 * z[0] + 1000.0 * z[1] * z[2] + 10.0 * x["processors"]))


class Plain:
    """The regression with its terms by name (Ross et al. 2013, algorithm 2)."""

    def __init__(self, **settings: Any) -> None:
        self.settings: dict[str, Any] = {**vars(Regression()), **settings}
        self.weights: dict[Any, float] = {}
        self.scale: dict[Any, float] = {}
        self.squares: dict[Any, float] = {}
        self.norm, self.steps = 0.0, 0

    def terms(self, x: dict[str, Any]) -> dict[Any, float]:
        degrees = range(self.settings["degree"] + 1)
        names = sorted(x)
        products = [p for d in degrees for p in itertools.combinations_with_replacement(names, d)]
        return {product: math.prod(x[name] for name in product) for product in products}

    def predict_one(self, x: dict[str, Any]) -> float:
        return sum(self.weights.get(k, 0.0) * value for k, value in self.terms(x).items())

    def slope(self, error: float) -> float:
        side, size = "over" if error > 0 else "under", abs(error)
        branch, scale = self.settings[side], self.settings[f"{side}_scale"]
        slopes = {"absolute": scale, "squared": 2 * scale * size}
        slopes["exponential"] = scale * math.exp(min(scale * size, 300.0))
        return math.copysign(slopes[branch], error) if error else 0.0

    def learn_one(self, x: dict[str, Any], y: float, w: float = 1.0) -> None:
        p, q = math.log(max(y, 1.0)), math.log(max(x.get("processors", 1.0), 1.0))
        counts = {"1": 1.0, "long": 5 + p - q, "wide": 5 + q - p, "small": 11 - q - p}
        w *= {**counts, "large": 1 + q + p}[self.settings["weight"]]
        terms = self.terms(x)
        for k, value in terms.items():
            scale = self.scale.get(k, 0.0)
            if abs(value) > scale:
                self.weights[k] = self.weights.get(k, 0.0) * scale / abs(value)
                self.scale[k] = scale = abs(value)
            if scale > 0:
                self.norm += (value / scale) ** 2
        slope = w * self.slope(self.predict_one(x) - y - self.settings["threshold"])
        self.steps += 1
        rate = self.settings["eta"] * math.sqrt(self.steps / self.norm)
        for k, value in terms.items():
            own = slope * value + self.settings["l2"] * self.weights.get(k, 0.0)
            self.squares[k] = self.squares.get(k, 0.0) + own * own
            if self.squares[k] > 0:
                self.weights[k] -= rate * own / (self.scale[k] * math.sqrt(self.squares[k]))


def both(**arguments: Any) -> tuple[RuntimeRegression, Plain]:
    return RuntimeRegression(**arguments), Plain(**arguments)


# --- one model ------------------------------------------------------------------------------

MODELS: dict[str, dict[str, Any]] = {
    "e-loss": {"under": "absolute", "weight": "large"},
    "published": {"over_scale": 1e4, "threshold": 600.0, "weight": "wide"},
    "absolute": {"over": "absolute", "under": "absolute", "weight": "small", **KEEN},
    "exponential": {
        "over": "exponential",
        "under": "exponential",
        "over_scale": 1e-4,
        "under_scale": 1e-5,
        "weight": "long",
        "eta": 100.0,
        "l2": 0.5,
    },
    "squared": {**KEEN},
    "linear": {"degree": 1, **KEEN},
}


@pytest.mark.parametrize("come_and_go", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_fast_and_plain_agree(name: str, come_and_go: bool) -> None:
    fast, plain = both(**MODELS[name])
    chance = random.Random(0)
    for k, (x, y) in enumerate(stream(400)):
        seen = x
        if come_and_go:  # one feature more now and then, of which some are missing
            present = [*list(x)[: 2 + k // 80], "processors"]
            seen = {i: x[i] for i in present if i == "processors" or chance.random() < 0.8}
        for features in (x, seen):
            assert fast.predict_one(features) == pytest.approx(
                plain.predict_one(features), 1e-6, 1e-6
            )
        if k % 3:  # jobs end later than they are submitted
            fast.learn_one(seen, y, w=1.0 + k % 2)
            plain.learn_one(seen, y, w=1.0 + k % 2)
    assert fast.predict_one(x) != 0.0


@pytest.mark.slow
def test_the_simulation_learns_the_same() -> None:
    jobs = load_workload("lublin:jobs=500,processors=64,seed=1,load=2")
    arguments: dict[str, Any] = {"over": "squared", "under": "absolute", "weight": "large"}
    for estimate, threshold in (("e-loss", 0.0), (Regression(**arguments, threshold=60.0), 60.0)):
        inside = simulate(jobs, Scheduler(estimate=estimate))
        model = RuntimeRegression(**arguments, threshold=threshold, features=tuple(JOB_FEATURES))
        outside = simulate(jobs, Scheduler(estimate=model))
        assert (inside.start == outside.start).all()
        assert (inside.predicted_run_time == outside.predicted_run_time).all()
        assert (inside.start != simulate(jobs, Scheduler()).start).any()


def test_it_looks_at_the_features_named() -> None:
    names = ("f2", "processors", "f0")
    given: dict[str, Any] = {"weight": "large", **KEEN}
    model, chosen = RuntimeRegression(**given, features=names), RuntimeRegression(**given)
    everything = RuntimeRegression(**given)
    for x, y in stream(50):
        some = {name: x[name] for name in names}
        model.learn_one(x, y)
        chosen.learn_one(some, y)
        everything.learn_one(x, y)
        expected = pytest.approx(chosen.predict_one(some))
        assert model.predict_one(x) == expected != everything.predict_one(x)


def test_a_named_feature_may_be_missing() -> None:
    model, plain = RuntimeRegression(features=("a", "b"), **KEEN), RuntimeRegression(**KEEN)
    for x in ({"a": 2.0, "c": 5.0}, {"c": 1.0, "b": 3.0}, {"b": 1.0, "a": 7.0}):
        model.learn_one(x, 9.0)
        plain.learn_one({name: x[name] for name in x if name != "c"}, 9.0)
        assert model.predict_one(x) == pytest.approx(plain.predict_one(x))


def test_the_defaults_are_those_of_the_simulation() -> None:
    inside = Regression()
    model = RuntimeRegression()
    for name in model._get_params().keys() - {"features"}:
        assert getattr(model, name) == getattr(inside, name)
    assert model.features is None  # of whatever stream it is put to


# --- a good citizen of river ----------------------------------------------------------------

ESTIMATORS: dict[str, Any] = {
    "compiled": RuntimeRegression(),
    "compiled, linear": RuntimeRegression(degree=1, **KEEN),
    "compiled, some features": RuntimeRegression(
        features=("f0", "f3", "processors", "gallup", "ordinal_date", "age"), **KEEN
    ),
}


@pytest.fixture
def no_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """River's checks import scikit-learn for data sets that regressors are not checked with."""
    package: Any = types.ModuleType("sklearn")
    package.datasets = types.ModuleType("sklearn.datasets")
    monkeypatch.setitem(sys.modules, "sklearn", package)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", package.datasets)


@pytest.mark.slow
@pytest.mark.usefixtures("no_scikit_learn")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_checks_of_river(name: str) -> None:
    estimator = ESTIMATORS[name]
    assert estimator._unit_test_skips() == set()
    assert len(list(checks.yield_checks(estimator))) >= 25
    checks.check_estimator(estimator)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_copies_go_on_alike(name: str) -> None:
    model, fresh = ESTIMATORS[name].clone(), ESTIMATORS[name].clone()
    jobs = list(stream(130))
    for x, y in jobs[:120]:
        model.learn_one(x, y)
    pickled, copied, clone = pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.clone()
    for x, y in jobs[120:]:
        expected = model.predict_one(x)
        assert expected not in (0.0, clone.predict_one(x))
        assert clone.predict_one(x) == fresh.predict_one(x)
        for other in (pickled, copied):
            assert other.predict_one(x) == expected
            other.learn_one(x, y)
        model.learn_one(x, y)


def test_parameters_that_are_mutated_count() -> None:
    mutated, other = RuntimeRegression(under_scale=3.0, l2=1.0), RuntimeRegression(eta=7.0, l2=2.0)
    other.mutate({"under_scale": 3.0, "eta": 5000.0, "l2": 1.0})
    for x, y in stream(30):
        mutated.learn_one(x, y)
        other.learn_one(x, y)
        assert mutated.predict_one(x) == other.predict_one(x)


def test_it_works_with_what_river_has() -> None:
    model = preprocessing.StandardScaler() | RuntimeRegression(degree=1, **KEEN)
    error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    assert error.get() < 1.0  # per cent


# --- mistakes -------------------------------------------------------------------------------


def test_examples() -> None:
    tested = doctest.testmod(runtime_regression)
    assert tested.attempted > 0
    assert tested.failed == 0


test_mistakes = mistakes_of(globals(), BatchSimulator, errors=(HpcgymError, ValueError))
