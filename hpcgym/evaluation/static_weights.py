"""The best weights that never change: a random search on training slices only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcgym.policy import FEATURES
from hpcgym.policy.features import JobColumns
from hpcgym.scheduler import Scheduler
from hpcgym.simulation import simulate
from hpcgym.workload import Workload

Weights = dict[str, float]


def best_static(
    training: Sequence[Workload],
    features: Sequence[str],
    scheduler: Scheduler,
    budget: int,
    seed: int,
    step: Callable[[str], None],
) -> Weights:
    """Return the weights with the least mean BSLD over slices, the first tried of equals.

    Parameters
    ----------
    training : slices to choose by.
    features : names of :data:`hpcgym.policy.FEATURES`.
    scheduler : all rules but the policy.
    budget : number of vectors tried; each is simulated on every slice.
    seed : of the random vectors.
    step : called before each vector.
    """
    best: Weights = {}
    least = np.inf
    for number, weights in enumerate(candidates(training, features, budget, seed), start=1):
        step(f"choosing static weights, {number} of {budget}")
        rules = scheduler.but(policy=weights)
        mean = float(np.mean([simulate(part, rules).bsld.mean() for part in training]))
        if mean < least:
            best, least = weights, mean
    return best


def candidates(
    training: Sequence[Workload], features: Sequence[str], budget: int, seed: int
) -> list[Weights]:
    """Return vectors to try, whose weights have sizes that add up to 1: ||w||_1 = 1 (document 002).

    The pure policies come first, one feature with +1 or -1. The others have a random half of the
    features, at least one, with weights of the Laplace distribution, which is uniform over
    ||w||_1 = 1; each is divided by the spread of its feature among the training jobs, because areas
    are a million times as large as expansion factors and would be all that counts.
    """
    pure = [{name: sign} for name in features for sign in (1.0, -1.0)]
    number = max(budget - len(pure), 0)
    rng = np.random.default_rng(seed)
    drawn = rng.laplace(size=(number, len(features)))
    used = rng.random(drawn.shape) < 0.5
    used[np.arange(number), rng.integers(len(features), size=number)] = True
    weights = np.where(used, drawn / _spread(training, features), 0.0)
    weights /= np.abs(weights).sum(axis=1, keepdims=True)
    mixed = [
        {name: float(w) for name, w in zip(features, row, strict=True) if w} for row in weights
    ]
    return [*pure, *mixed][:budget]


def _spread(training: Sequence[Workload], features: Sequence[str]) -> NDArray[np.float64]:
    """Return how much each feature differs between waiting jobs, about.

    How long they wait is not known before the simulation: taken to be as long as the mean job.
    """
    jobs = [JobColumns(part) for part in training]
    wait = float(np.mean(np.concatenate([part.requested for part in jobs])))
    spread = []
    for name in features:
        feature = FEATURES[name]
        size = 0.0
        if feature.static is not None:
            size += float(np.std(np.concatenate([feature.static(part) for part in jobs])))
        if feature.patience is not None:
            patience = np.concatenate([feature.patience(part) for part in jobs])
            size += wait / float(np.median(patience))
        spread.append(size if 0 < size < np.inf else 1.0)
    return np.array(spread)
