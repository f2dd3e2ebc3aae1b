"""What those who answer a simulation of the native engine are told, and predictors in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.answers.expressed import Expressed
from hpcgym.engine.answers.shares import Shares
from hpcgym.scheduler.estimates import learned
from hpcgym.scheduler.estimates.formulas import FORMULAS

if TYPE_CHECKING:
    from hpcgym._engine import Simulation
    from hpcgym.simulation.predictions import Learning

Arrays = dict[str, NDArray[Any]]


def has_kinds(kinds: NDArray[np.int64]) -> bool:
    """Return whether the native engine predicts run times by two kinds of estimates: it has all."""
    return bool((kinds < learned.BY_FORMULA + len(FORMULAS)).all())


def told_of(
    learning: Learning | None, shares: Shares | None, expressed: Expressed | None
) -> dict[str, Any]:
    """Return what a model is told of those who answer: arguments of ``Model``."""
    told: dict[str, Any] = {}
    if learning is not None:
        told["learning"] = told_of_learning(learning.estimators, learning.learner)
    if shares is not None:
        told["accounts"] = told_of_accounts(shares)
    if expressed is not None:
        programs = (expressed.first, expressed.second)
        told["expressions"] = [one.told(int(expressed.ticks[0])) for one in programs]
    return told


def told_of_accounts(shares: Shares) -> Arrays:
    """Return what there is to know of users' accounts before the first event."""
    names = "owner rate parent share part kinds weights capacity damping used recent"
    told = {name: getattr(shares, name) for name in names.split()}
    return told | {"book": shares.book.view(np.int64)}


def told_of_learning(by: learned.Estimators, learner: learned.Learner) -> Arrays:
    """Return how run times are predicted, and what has been learned before."""
    names = ("kinds", "last", "looks", "chosen", "classes", "asked", "hold")
    told = {name: getattr(by, name) for name in names}
    for k, name in enumerate(("terms", "second_terms")):
        told[name] = learner.model[k, :, : n_terms(by, k)].ravel()
    return told | {
        "loss": by.loss.view(np.int64),
        "weights": learner.weights,
        "memory": learner.memory,
        "ratios": learner.ratios,
        "sums": learner.model_sums,
    }


def n_terms(by: learned.Estimators, which: int) -> int:
    """Return how many terms one of the two estimates has, 0 if it is no regression."""
    if by.kinds[which] != learned.BY_REGRESSION:
        return 0
    return learned.n_terms(int((by.chosen[which] >= 0).sum()), int(by.loss[which]["degree"]))


def learned_by(learning: Learning, native: Simulation) -> Arrays:
    """Return what a simulation has learned, under the names of those who learn in the kernels."""
    found, model = native.learned(), np.zeros_like(learning.learner.model)
    for k, name in enumerate(("terms", "second_terms")):
        n = n_terms(learning.estimators, k)
        model[k, :, :n] = found[name].reshape(learned.N_ROWS, n)
    return {
        "memory": found["memory"],
        "ratios": found["ratios"],
        "model": model,
        "model_sums": found["sums"],
        "ordered_by": native.schedule().get("ordered_by", np.zeros(0, np.int64)),
    }


def take_learned(learning: Learning, native: Simulation) -> None:
    """Learn from all jobs that have ended, and write what has been learned where it is kept."""
    learning.teach(native)
    for name, values in learned_by(learning, native).items():
        kept = getattr(learning.learner, name)
        kept[...] = values.reshape(kept.shape)
