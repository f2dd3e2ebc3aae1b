"""The regression of pairs is one of river's, and river's others learn speedups too."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from hpcgym.machine.speedups import LearnedSpeedups, PairRegression, generate_speedups

pytest.importorskip("river")

from river import base, checks, datasets, evaluate, linear_model, metrics, optim, tree


class OfRiver(PairRegression, base.Regressor):  # type: ignore[misc]
    """The regression needs no river; with its base class it is one of river's."""


@pytest.fixture
def no_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """River's checks import scikit-learn for data sets that regressors are not checked with."""
    package: Any = types.ModuleType("sklearn")
    package.datasets = types.ModuleType("sklearn.datasets")
    monkeypatch.setitem(sys.modules, "sklearn", package)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", package.datasets)


@pytest.mark.usefixtures("no_scikit_learn")
def test_the_checks_of_river() -> None:
    estimator = OfRiver()
    assert estimator._unit_test_skips() == set()
    assert len(list(checks.yield_checks(estimator))) >= 25
    checks.check_estimator(estimator)


def test_it_learns_what_river_has() -> None:
    error = evaluate.progressive_val_score(datasets.TrumpApproval(), OfRiver(), metrics.MAE())
    assert error.get() < 2.0  # per cent


@pytest.mark.parametrize(
    "regressor",
    [
        OfRiver(),
        linear_model.LinearRegression(optim.SGD(0.1)),
        linear_model.BayesianLinearRegression(),
        tree.HoeffdingTreeRegressor(grace_period=20),
    ],
    ids=lambda regressor: type(regressor).__name__,
)
def test_regressors_of_river_learn(regressor: Any) -> None:
    """Each pair, seen thirty times: the error is less than that of the mean of all."""
    heatmap = generate_speedups(6, 1.1, 0.15, 1)
    model = LearnedSpeedups(heatmap.codes, regressor)
    rng = np.random.default_rng(0)
    for _ in range(30):
        for a, b in rng.permutation(np.argwhere(heatmap.filled)):
            model.learn(heatmap.codes[a], heatmap.codes[b], heatmap.speedup[a, b])
    of_mean = np.abs(heatmap.speedup - heatmap.mean_speedup).mean()
    assert 0 < np.abs(model.matrix() - heatmap.speedup).mean() < 0.8 * of_mean
