"""What those who answer a simulation of the native engine are told, and predictors in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.answers import nag
from hpcgym.engine.answers.expressed import Expressed
from hpcgym.engine.answers.formulas import FORMULAS, is_built_in
from hpcgym.engine.answers.online import BY_FORMULA, BY_REGRESSION, Estimators, Learner
from hpcgym.engine.answers.shares import Shares

if TYPE_CHECKING:
    from hpcgym._engine import Simulation
    from hpcgym.engine.orders.operations import Program
    from hpcgym.simulation.predictions import Learning

Arrays = dict[str, NDArray[Any]]
BUILT_IN = 3  # formulas that the native engine has: the first of the table


def has_formulas(learning: Learning | None) -> bool:
    """Return whether the native engine has the formulas by which run times are predicted."""
    return learning is None or has_kinds(learning.estimators.kinds)


def has_kinds(kinds: NDArray[np.int64]) -> bool:
    """Return the same of two kinds of estimates."""
    names = list(FORMULAS)
    places = [int(kind) - BY_FORMULA for kind in kinds if kind >= BY_FORMULA]
    return all(place < BUILT_IN and is_built_in(names[place]) for place in places)


def told_of(
    learning: Learning | None, shares: Shares | None, expressed: Expressed | None
) -> dict[str, Any]:
    """Return what a model is told of those who answer: arguments of ``Model``."""
    told: dict[str, Any] = {}
    if learning is not None:
        told["learning"] = told_of_learning(learning.estimators, learning.learner)
    if shares is not None:
        names = "owner rate parent share part kinds weights capacity damping used recent"
        told["accounts"] = {name: getattr(shares, name) for name in names.split()}
        told["accounts"]["book"] = shares.book.view(np.int64)
    if expressed is not None:
        programs = (expressed.first, expressed.second)
        told["expressions"] = [_told_of_program(one, expressed.ticks) for one in programs]
    return told


def told_of_learning(by: Estimators, learner: Learner) -> Arrays:
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


def n_terms(by: Estimators, which: int) -> int:
    """Return how many terms one of the two estimates has, 0 if it is no regression."""
    if by.kinds[which] != BY_REGRESSION:
        return 0
    return nag.n_terms(int((by.chosen[which] >= 0).sum()), int(by.loss[which]["degree"]))


def _told_of_program(program: Program, ticks: NDArray[np.int64]) -> Arrays:
    return {
        "codes": program.codes,
        "numbers": program.numbers,
        "columns": np.ascontiguousarray(program.columns),
        "n_columns": np.array([len(program.columns)]),
        "times": program.times,
        "ticks": ticks,
    }


def learned_by(learning: Learning, native: Simulation) -> Arrays:
    """Return what a simulation has learned, under the names of those who learn in the kernels."""
    found, model = native.learned(), np.zeros_like(learning.learner.model)
    for k, name in enumerate(("terms", "second_terms")):
        n = n_terms(learning.estimators, k)
        model[k, :, :n] = found[name].reshape(nag.N_ROWS, n)
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
