"""Regressors of river learn speedups, as ours does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcgym.machine.speedups import LearnedSpeedups, generate_speedups

pytest.importorskip("river")

from river import linear_model, optim, tree


@pytest.mark.parametrize(
    "regressor",
    [
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
