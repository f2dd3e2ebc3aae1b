"""Estimates that learn, as the engine takes them, and what they have learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import fields_of
from hpcgym.scheduler import allocations
from hpcgym.scheduler.estimates import by_name
from hpcgym.scheduler.policies.features import FEATURES, USER_FEATURES
from hpcgym.scheduler.policies.index import IndexPolicy
from hpcgym.workload.columns import distinct

if TYPE_CHECKING:
    from hpcgym.scheduler.rules import Scheduler


# --- What is learned of run times in a simulation -------------------------------------------------
#
# Memory has a row for each user, ratios one for all jobs, then one for each user, then one for
# each class: jobs of a user with the same number of processors.

# `Estimators.kinds`: how run times are predicted, by each of the two estimates. From BY_FORMULA on:
# places in the table of formulas.
KNOWN, FROM_OUTSIDE, BY_REGRESSION, BY_FORMULA = range(4)

# columns of a user's memory: in NUMBER the number of ended jobs, from LAST on run times [s]
NUMBER, LAST = 0, 5
LEAST_LAST = 3  # run times that are needed for the features
N_SEEN = len(by_name.JOB_FEATURES)

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
    is_of: NDArray[np.int64]  # (2,) whether the second is for orders, and for candidates
    hold: NDArray[
        np.float64
    ]  # (4,) of hpcgym.scheduler.backfilling, or (0,) where no job is held back


class LearnedState(NamedTuple):
    """What a simulation has learned, and the weights of features in its orders."""

    memory: NDArray[np.float64]  # (n_users, LAST + n)
    ratios: NDArray[np.float64]  # (1 + n_users + n_classes, 2) run time / requested time, or (0, 2)
    model: NDArray[np.float64]  # (2, N_ROWS, n_terms)
    model_sums: NDArray[np.float64]  # (2, 2)
    weights: NDArray[np.float64]  # (2, N_FEATURES) of the features of the two orders


def told_of_learning(by: Estimators, learner: LearnedState) -> dict[str, NDArray[Any]]:
    """Return how run times are predicted, and what is known of them, as ``Model`` takes it."""
    names = ("kinds", "last", "looks", "chosen", "classes", "asked", "is_of", "hold")
    return {
        **{name: getattr(by, name) for name in names},
        "loss": by.loss.view(np.int64),
        "weights": learner.weights,
        **knowledge(by, learner),
    }


def knowledge(by: Estimators, learner: LearnedState) -> dict[str, NDArray[np.float64]]:
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
    return count_terms(int((by.chosen[which] >= 0).sum()), int(by.loss[which]["degree"]))


def count_terms(n_features: int, degree: int) -> int:
    """Return the number of terms of degree 0 up to ``degree``, 1 or 2, of so many features."""
    return 1 + n_features + (n_features * (n_features + 1) // 2 if degree == 2 else 0)


def term_places(places: Sequence[int], n_features: int, degree: int) -> NDArray[np.intp]:
    """Return where the terms of some features, at increasing places, stand among those of all."""
    at = np.array(places, np.intp)
    linear = np.concatenate([[0], 1 + at])
    if degree == 1:
        return linear
    first, second = np.triu_indices(len(at))
    i, j = at[first], at[second]
    before = i * n_features - i * (i - 1) // 2  # products whose first feature stands before i
    return np.concatenate([linear, 1 + n_features + before + (j - i)])


# --- Estimates that learn, as the engine takes them; what has been learned ------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """What a simulation has learned of run times, from which another one can go on.

    Attributes
    ----------
    estimates : the two estimates that learned, in words.
    memory : user -> sums over the user's jobs and last run times, (n,) float64; see
        :mod:`hpcgym.scheduler.estimates.learning`.
    ratios : (), (user,) or (user, processors) -> number of jobs and sum of the logarithms of run
        time / requested time, (2,) float64.
    model : (2, 3, n_terms) float64, the regressions' weights, scales and sums of squares.
    model_sums : (2, 2) float64, their norms and numbers of steps.
    predictors : the two predictors in Python, or None; the next simulation goes on with copies.
    """

    estimates: tuple[str, str]
    memory: Mapping[int, NDArray[np.float64]]
    ratios: Mapping[tuple[int, ...], NDArray[np.float64]]
    model: NDArray[np.float64]
    model_sums: NDArray[np.float64]
    predictors: tuple[by_name.Predictor | None, by_name.Predictor | None]

    def __repr__(self) -> str:
        known = sum(row[NUMBER] > 0 for row in self.memory.values())
        return f"Learned({' and '.join(self.estimates)}, {known} users)"


def learning_rules(
    scheduler: Scheduler, asks: bool, logs_ends: bool = False, counts: bool = False
) -> dict[str, int]:
    """Return the rules of learning as the engine takes them.

    ``logs_ends``: ends are noted in any case; ``counts``: scores depend on usage, and so the
    simulator asks for them, as for predictions, at submissions and after ends.
    """
    return {
        "learns": int(asks or counts),
        "renews": _renews(scheduler, counts),
        "logs": int(asks or logs_ends or counts),
    }


def _renews(scheduler: Scheduler, counts: bool) -> int:
    """Return when the simulator stops before a pass for new scores, as the engine takes it."""
    if any(scheduler.anew):
        return allocations.EACH_TIME
    # run times of jobs that come after others have ended are predicted before the pass
    moved = scheduler.moves_submissions and by_name.learns(scheduler.estimate)
    renews = by_name.learns(scheduler.second_estimate) or counts or moved
    return allocations.AFTER_ENDS if renews else allocations.NEVER


def looks_at_time(index: IndexPolicy) -> bool:
    """Return whether a policy looks at requested times, or at run times that replace them."""
    if index.expression is not None:
        return index.expression.looks_at_time
    return index.cubed or not {"processors", "wait", *USER_FEATURES}.issuperset(index.weights)


def make_estimators(
    scheduler: Scheduler,
    users: NDArray[np.int64],
    processors: NDArray[np.int64],
    counted: NDArray[np.int64],
    size: int,
) -> Estimators:
    """Return how the simulator is to predict run times.

    Parameters
    ----------
    scheduler : the rules.
    users : (n_jobs,) numbered from 0.
    processors : (n_jobs,) that jobs ask for.
    counted : (n_jobs,) the number that the simulator counts instead: nodes, if jobs have their own.
    size : processors of the machine.
    """
    specs, of_orders = (
        [*map(_spec, two_estimates(scheduler))],
        by_name.learns(scheduler.policy_estimate),
    )
    judged_by = scheduler.candidate_estimate
    of_candidates = judged_by is not None and by_name.learns(judged_by)
    hold = scheduler.hold if of_orders else None
    chosen = np.full((2, N_SEEN), -1, np.int64)
    for k, spec in enumerate(specs):
        chosen[k, : len(spec.chosen)] = spec.chosen
    return Estimators(
        kinds=np.array([spec.kind for spec in specs]),
        last=np.array([spec.last for spec in specs]),
        loss=np.concatenate([spec.loss for spec in specs]),
        chosen=chosen,
        looks=np.array(
            [
                of_orders and order is not None and anew is None and looks_at_time(order)
                for order, anew in zip(scheduler.orders, scheduler.anew, strict=True)
            ],
            np.int64,
        ),
        classes=_classes(specs, users, processors),
        asked=np.array([] if np.array_equal(processors, counted) else processors, np.int64),
        is_of=np.array([of_orders, of_candidates], np.int64),
        hold=np.zeros(0) if hold is None else hold.numbers(size),
    )


def _classes(
    specs: Sequence[_Spec], users: NDArray[np.int64], processors: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return a number from 0 for each user and number of processors, (n_jobs,) or (0,)."""
    if not any(spec.by_class for spec in specs):
        return np.zeros(0, np.int64)
    widths = distinct(processors)[1]
    together = users * (int(widths.max(initial=0)) + 1) + widths
    return distinct(together)[1]


def make_learner(scheduler: Scheduler, n_users: int, classes: NDArray[np.int64]) -> LearnedState:
    """Return a learner that has learned nothing yet; ``classes``: of the estimators."""
    specs = [*map(_spec, two_estimates(scheduler))]
    n_terms = max(spec.n_terms for spec in specs)
    memory = LAST + max(LEAST_LAST, *(spec.last for spec in specs))
    n_ratios = 2 + n_users + int(classes.max(initial=-1)) if len(classes) else 0
    weights = np.zeros((2, len(FEATURES)))
    for half, order in enumerate(scheduler.orders):
        given = {} if order is None else order.weights
        for name in FEATURES.keys() & given.keys():  # what usage adds is counted elsewhere
            weights[half, list(FEATURES).index(name)] = given[name]
    return LearnedState(
        memory=np.zeros((n_users, memory)),
        ratios=np.zeros((n_ratios, 2)),
        model=np.zeros((2, N_ROWS, n_terms)),
        model_sums=np.tile([0.0, 1.0], (2, 1)),
        weights=weights,
    )


def two_estimates(scheduler: Scheduler) -> tuple[by_name.Estimate, by_name.Estimate]:
    """Return the two estimates of a scheduler."""
    return scheduler.estimate, scheduler.second_estimate


class _Spec(NamedTuple):
    """One of the two estimates, as the simulator takes it."""

    kind: int
    loss: NDArray[np.void]
    last: int = 0
    chosen: tuple[int, ...] = ()
    n_terms: int = 0
    by_class: bool = False


def _spec(estimate: by_name.Estimate) -> _Spec:
    """Return how run times of an estimate are predicted."""
    loss = np.zeros(1, LOSS)
    if not by_name.learns(estimate):
        return _Spec(KNOWN, loss)
    if not isinstance(estimate, str) or by_name.predictor_of(estimate) is not None:
        return _Spec(FROM_OUTSIDE, loss)
    named = by_name.formula_of(estimate)
    if named is not None:
        name, formula = named
        kind = BY_FORMULA + list(by_name.FORMULAS).index(name)
        return _Spec(kind, loss, formula.last, by_class=formula.by_class)
    regression = by_name.Regression.parse(estimate)
    for name in ("over_scale", "under_scale", "threshold", "eta", "l2", "degree"):
        loss[name] = getattr(regression, name)
    loss["over"] = by_name.BRANCHES.index(regression.over)
    loss["under"] = by_name.BRANCHES.index(regression.under)
    loss["weighting"] = by_name.WEIGHTINGS.index(regression.weight)
    chosen = tuple(list(by_name.JOB_FEATURES).index(name) for name in regression.features)
    n_terms = count_terms(len(chosen), regression.degree)
    return _Spec(BY_REGRESSION, loss, chosen=chosen, n_terms=n_terms)


def in_words(scheduler: Scheduler) -> tuple[str, str]:
    """Return the two estimates of a scheduler as words, the same for equal regressions."""
    of_policies = scheduler.second_estimate is scheduler.policy_estimate
    words = scheduler.describe()
    second = words["policy_estimate" if of_policies else "candidate_estimate"]
    return _canonical(str(words["estimate"])), _canonical(str(second))


def _canonical(estimate: str) -> str:
    """Return the full text of a regression's name, and other words as they are."""
    regression = estimate == "e-loss" or estimate.partition(":")[0] == "regression"
    return str(by_name.Regression.parse(estimate)) if regression else estimate
