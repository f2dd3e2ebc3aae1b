"""The regression as components of river, and compiled: one model, and a good citizen of river."""

from __future__ import annotations

import copy
import doctest
import math
import pickle
import random
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from river import checks, compose, datasets, evaluate, linear_model, metrics, optim, preprocessing

from hpcgym import HpcgymError, Scheduler, load_workload, simulate
from hpcgym.agents import runtime_regression
from hpcgym.agents.refitted import Mean, Refitted
from hpcgym.agents.runtime_regression import (
    NAG,
    BranchLoss,
    ELoss,
    NAGRegression,
    RuntimeRegression,
    job_weight,
    river_pipeline,
)
from hpcgym.scheduler.estimates import JOB_FEATURES, Regression
from hpcgym.scheduler.estimates.by_name import BRANCHES, WEIGHTINGS
from hpcgym.sweep import BatchSimulator

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


def both(**arguments: Any) -> tuple[RuntimeRegression, Any]:
    """The regression compiled, and put together from parts of river."""
    return RuntimeRegression(**arguments), river_pipeline(**arguments)


# --- losses ---------------------------------------------------------------------------------


@pytest.mark.parametrize("under", BRANCHES)
@pytest.mark.parametrize("over", BRANCHES)
def test_a_loss_has_two_branches(over: str, under: str) -> None:
    loss = BranchLoss(over, under, over_scale=0.5, under_scale=0.25, threshold=2.0)
    values = {
        "absolute": lambda scale, error: scale * error,
        "squared": lambda scale, error: scale * error**2,
        "exponential": lambda scale, error: math.exp(scale * error),
    }
    errors, y = [-7.0, -1.0, 0.0, 1.0, 5.0], 10.0
    wanted = [
        values[over](0.5, e) if e > 0 else values[under](0.25, -e) if e < 0 else 0.0 for e in errors
    ]
    predictions = [y + 2.0 + e for e in errors]
    assert [loss(y, f) for f in predictions] == pytest.approx(wanted)
    h = 1e-6
    slopes = [(loss(y, f + h) - loss(y, f - h)) / (2 * h) for f in predictions]
    slopes[2] = 0.0
    assert [loss.gradient(y, f) for f in predictions] == pytest.approx(slopes, rel=1e-5)
    # arrays are treated alike
    truths = np.full(len(errors), y)
    assert loss(truths, np.array(predictions)) == pytest.approx(wanted)
    assert loss.gradient(truths, np.array(predictions)) == pytest.approx(slopes, rel=1e-5)


def test_the_e_loss() -> None:
    loss = ELoss()
    assert (loss(100.0, 130.0), loss(100.0, 70.0)) == (900.0, 30.0)
    assert (loss.gradient(100.0, 130.0), loss.gradient(100.0, 70.0)) == (60.0, -1.0)
    assert loss.mean_func(3.0) == 3.0


def test_exponents_are_cut_off() -> None:
    loss = BranchLoss("exponential", "exponential")
    assert loss.gradient(0.0, 1e9) == -loss.gradient(1e9, 0.0) == math.exp(300.0)


def test_two_absolute_branches_are_a_quantile_loss() -> None:
    ours, rivers = BranchLoss("absolute", "absolute", 0.1, 0.9), optim.losses.Quantile(0.9)
    for f in (3.0, 8.0):
        assert ours.gradient(5.0, f) == pytest.approx(rivers.gradient(5.0, f))
    assert ours(5.0, 8.0) == pytest.approx(0.3)
    assert ours(5.0, 3.0) == pytest.approx(1.8)


def test_weights_of_jobs() -> None:
    found = [job_weight(name, 3600.0, 8) for name in WEIGHTINGS]
    p, q = math.log(3600.0), math.log(8)
    assert found == pytest.approx([1.0, 5 + p - q, 5 + q - p, 11 - p - q, 1 + p + q])
    assert job_weight("large", 0.0, 0) == 1.0
    with pytest.raises(HpcgymError, match=r"unknown weight 'larg'; did you mean 'large'\?"):
        job_weight("larg", 1.0, 1)


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


@pytest.mark.parametrize("name", MODELS)
def test_fast_and_plain_agree(name: str) -> None:
    fast, plain = both(**MODELS[name])
    for k, (x, y) in enumerate(stream(600)):
        assert fast.predict_one(x) == pytest.approx(plain.predict_one(x), rel=1e-6, abs=1e-6)
        if k % 3:  # jobs end later than they are submitted
            fast.learn_one(x, y, w=1.0 + k % 2)
            plain.learn_one(x, y, w=1.0 + k % 2)
    assert fast.predict_one(x) != 0.0


@pytest.mark.parametrize("name", MODELS)
def test_they_agree_as_features_come_and_go(name: str) -> None:
    fast, plain = both(**MODELS[name])
    chance = random.Random(0)
    for k, (x, y) in enumerate(stream(400)):
        present = list(x)[: 2 + k // 80]  # one more now and then
        chance.shuffle(present)
        kept = {i: x[i] for i in present if k < 50 or chance.random() < 0.8 or i == "processors"}
        kept["processors"] = x["processors"]
        assert fast.predict_one(x) == pytest.approx(plain.predict_one(x), rel=1e-6, abs=1e-6)
        assert fast.predict_one(kept) == pytest.approx(plain.predict_one(kept), rel=1e-6, abs=1e-6)
        fast.learn_one(kept, y)
        plain.learn_one(kept, y)


class Both:
    """A predictor that asks the two, and keeps their answers."""

    def __init__(self, fast: RuntimeRegression, plain: Any) -> None:
        self.fast, self.plain = fast, plain
        self.answers: list[tuple[float, float]] = []

    def __deepcopy__(self, memo: Any) -> Both:
        return self

    def predict_one(self, x: dict[str, Any]) -> float:
        x = {name: x[name] for name in JOB_FEATURES}
        self.answers.append((self.fast.predict_one(x), self.plain.predict_one(x)))
        return self.answers[-1][0]

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        x = {name: x[name] for name in JOB_FEATURES}
        self.fast.learn_one(x, y)
        self.plain.learn_one(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["e-loss", "absolute"])
def test_they_agree_on_a_real_trace(name: str, trace: Callable[[str], Path]) -> None:
    jobs = load_workload(trace("KTH-SP2-1996-2.swf.gz"))
    models = Both(*both(**MODELS[name]))
    simulate(jobs.take(slice(0, 1500)), Scheduler(estimate=models, correction="incremental"))
    fast, plain = np.array(models.answers).T
    assert len(fast) == 1500
    assert fast == pytest.approx(plain, rel=1e-6, abs=1e-6)
    assert len(set(fast.astype(int))) > 100


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


@pytest.mark.parametrize("make", [RuntimeRegression, river_pipeline])
def test_it_looks_at_the_features_named(make: Any) -> None:
    names = ("f2", "processors", "f0")
    model, chosen = make(weight="large", features=names, **KEEN), make(weight="large", **KEEN)
    everything = make(weight="large", **KEEN)
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
    pipeline = river_pipeline()
    last = pipeline["NAGRegression"]
    for name in ("over", "under", "over_scale", "under_scale", "threshold"):
        assert getattr(last.loss, name) == getattr(model, name)
    found = last.l2, last.optimizer.learning_rate, last.weight
    assert found == (model.l2, model.eta, model.weight)


# --- a good citizen of river ----------------------------------------------------------------

ESTIMATORS: dict[str, Any] = {
    "compiled": RuntimeRegression(),
    "compiled, linear": RuntimeRegression(degree=1, **KEEN),
    "compiled, some features": RuntimeRegression(
        features=("f0", "f3", "processors", "gallup", "ordinal_date", "age"), **KEEN
    ),
    "NAGRegression": NAGRegression(),
    "NAGRegression, absolute": NAGRegression(NAG(10.0), optim.losses.Absolute(), l2=0.0),
    "pipeline": river_pipeline(**KEEN),
    "refitted": Refitted(Mean(), every=50, window=100),
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
    with pytest.raises(ValueError, match="not a mutable attribute"):
        other.mutate({"degree": 1})


def test_it_works_with_what_river_has() -> None:
    model = preprocessing.StandardScaler() | RuntimeRegression(degree=1, **KEEN)
    error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    assert error.get() < 1.0  # per cent


def test_the_optimiser_learns_with_other_losses_of_river() -> None:
    model = preprocessing.StandardScaler() | NAGRegression(NAG(20.0), optim.losses.Huber(), l2=0.0)
    model = compose.TransformerUnion(compose.Select("gallup"), compose.Select("ipsos")) | model
    error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    assert error.get() < 40.0


def test_batches_are_learned_row_by_row() -> None:
    import pandas as pd

    jobs = list(stream(40))
    table = pd.DataFrame([x for x, _ in jobs])
    truths = pd.Series([y for _, y in jobs], name="run")
    weights = pd.Series(np.linspace(0.5, 2.0, len(jobs)))
    for w in (3.0, weights):
        batch, single = NAGRegression(NAG(20.0), l2=0.5), NAGRegression(NAG(20.0), l2=0.5)
        batch.learn_many(table, truths, w)
        for (x, y), weight in zip(jobs, weights * 0 + w, strict=True):
            single.learn_one(x, y, weight)
        assert batch.weights == single.weights
        predictions = batch.predict_many(table)
        assert predictions.name == "run"
        assert predictions[7] == pytest.approx(single.predict_one(jobs[7][0]))


# --- mistakes -------------------------------------------------------------------------------


def test_the_optimiser_must_see_features() -> None:
    model = linear_model.LinearRegression(NAG())
    with pytest.raises(HpcgymError, match="use it in NAGRegression"):
        model.learn_one({"x": 1.0}, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"over": "square"}, "unknown over 'square'; did you mean 'squared'"),
        ({"under": None}, "unknown under None"),
        ({"weight": "area"}, "unknown weight 'area'"),
        ({"over_scale": 0.0}, "over_scale must be a number above 0"),
        ({"eta": -1.0}, "eta must be a number above 0"),
        ({"l2": math.nan}, "l2 must be a number of at least 0"),
        ({"degree": 3}, "degree must be 1 or 2, not 3"),
        ({"features": "requested"}, "features must be None or different names.* not 'requested'"),
        ({"features": ()}, "features must be None or different names, at least one"),
        ({"features": ("last", "last")}, "features must be None or different names"),
        ({"features": ("last",), "weight": "long"}, 'weight "long" needs the feature "processors"'),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        RuntimeRegression(**arguments)
    with pytest.raises(HpcgymError, match=message):
        river_pipeline(**arguments)


@pytest.mark.parametrize("make", [RuntimeRegression, river_pipeline])
def test_a_weighting_needs_processors(make: Any) -> None:
    model = make(weight="large")
    with pytest.raises(HpcgymError, match='weight "large" needs the feature "processors"'):
        model.learn_one({"requested": 60.0}, 30.0)
    assert model.predict_one({"requested": 60.0}) == 0.0


def test_a_batch_of_simulations_says_that_it_asks_no_model() -> None:
    slices = [load_workload("lublin:jobs=20,processors=64")]
    message = "='RuntimeRegression in Python' and a batch do not go together: no Python runs inside"
    with pytest.raises(HpcgymError, match=f"^estimate{message}"):
        BatchSimulator(slices, scheduler=Scheduler(estimate=RuntimeRegression()))
    with pytest.raises(HpcgymError, match=f"^policy_estimate{message}"):
        BatchSimulator(slices, scheduler=Scheduler(policy_estimate=RuntimeRegression()))


def test_examples() -> None:
    found = doctest.testmod(runtime_regression)
    assert found.attempted > 0
    assert found.failed == 0
