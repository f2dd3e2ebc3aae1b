"""What is learned of run times in a simulation, and how, as the engine takes it.

Memory has a row for each user, ratios one for all jobs, then one for each user, then one for each
class: jobs of a user with the same number of processors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import fields_of
from hpcgym.scheduler.estimates.features import JOB_FEATURES

# `Estimators.kinds`: how run times are predicted, for what there are two of. From BY_FORMULA on:
# places in the table of formulas.
KNOWN, FROM_OUTSIDE, BY_REGRESSION, BY_FORMULA = range(4)

# columns of a user's memory: at first how many of his jobs have ended, from LAST on run times [s]
NUMBER, LAST = 0, 5
LEAST_LAST = 3  # run times that are needed for the features
N_SEEN = len(JOB_FEATURES)

N_ROWS = 3  # of the terms of a regression: weights, scales, sums of squared gradients

#: Of a regression; ``over`` and ``under`` are places in BRANCHES, ``weighting`` in WEIGHTINGS.
LOSS = np.dtype((np.record, fields_of("Loss")))


class Estimators(NamedTuple):
    """How run times are predicted; an entry for each of the two estimates."""

    kinds: NDArray[np.int64]  # (2,) KNOWN, FROM_OUTSIDE ...
    last: NDArray[np.int64]  # (2,) how many run times are looked at, where it is a formula
    loss: NDArray[np.void]  # (2,) LOSS, where it is BY_REGRESSION
    chosen: NDArray[np.int64]  # (2, N_SEEN) places of its features; behind them -1
    looks: NDArray[np.int64]  # (2,) whether the first and the second order look at predictions
    classes: NDArray[np.int64]  # (n_jobs,) a number for each user and number of processors, or (0,)
    asked: NDArray[np.int64]  # (n_jobs,) processors of jobs where these count nodes, else (0,)
    hold: NDArray[np.float64]  # (4,) of hpcgym.scheduler.hold, or (0,) where no job is held back


class Learner(NamedTuple):
    """What a simulation has learned, and the weights of features in its orders."""

    memory: NDArray[np.float64]  # (n_users, LAST + n)
    ratios: NDArray[np.float64]  # (1 + n_users + n_classes, 2) run time / requested time, or (0, 2)
    model: NDArray[np.float64]  # (2, N_ROWS, n_terms)
    model_sums: NDArray[np.float64]  # (2, 2)
    weights: NDArray[np.float64]  # (2, N_FEATURES) of the features of the two orders


def told_of_learning(by: Estimators, learner: Learner) -> dict[str, NDArray[Any]]:
    """Return how run times are predicted, and what is known of them, as ``Model`` takes it."""
    names = ("kinds", "last", "looks", "chosen", "classes", "asked", "hold")
    return {
        **{name: getattr(by, name) for name in names},
        "loss": by.loss.view(np.int64),
        "weights": learner.weights,
        **knowledge(by, learner),
    }


def knowledge(by: Estimators, learner: Learner) -> dict[str, NDArray[np.float64]]:
    """Return what has been learned, by the names of ``Simulation.learned``."""
    first, second = (learner.model[k, :, : terms_of(by, k)].ravel() for k in range(2))
    return {
        "memory": learner.memory,
        "ratios": learner.ratios,
        "terms": first,
        "second_terms": second,
        "sums": learner.model_sums,
    }


def terms_of(by: Estimators, which: int) -> int:
    """Return how many terms one of the two estimates has, 0 if it is no regression."""
    if by.kinds[which] != BY_REGRESSION:
        return 0
    return n_terms(int((by.chosen[which] >= 0).sum()), int(by.loss[which]["degree"]))


def n_terms(n_features: int, degree: int) -> int:
    """Return the number of terms of degree 0 up to ``degree``, 1 or 2, of so many features."""
    return 1 + n_features + (n_features * (n_features + 1) // 2 if degree == 2 else 0)


def term_places(places: Sequence[int], n_features: int, degree: int) -> NDArray[np.intp]:
    """Return where the terms of some features, at increasing places, stand among those of all."""
    some = np.array(places, np.intp)
    linear = np.concatenate([[0], 1 + some])
    if degree == 1:
        return linear
    first, second = np.triu_indices(len(some))
    i, j = some[first], some[second]
    before = i * n_features - i * (i - 1) // 2  # products whose first feature stands before i
    return np.concatenate([linear, 1 + n_features + before + (j - i)])
