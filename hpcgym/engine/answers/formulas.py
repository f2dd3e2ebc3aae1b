"""Estimates that are formulas over what is remembered of users, compiled into one chain."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit_part
from hpcgym.engine.answers.histories import typical_ratio
from hpcgym.scheduler.estimates.learned import LAST, NUMBER, RATIOS


class Remembered(NamedTuple):
    """What a formula may look at, beside the requested time of a job."""

    memory: NDArray[
        np.float64
    ]  # (LAST + n,) of the job's user: NUMBER, RUN, ..., LAST of histories
    ratios: NDArray[np.float64]  # (1 + n_users + n_classes, 2) of all users, or (0, 2)
    of_user: np.int64  # the row of `ratios` of the job's user
    of_class: np.int64  # that of its class
    last: np.int64  # how many run times the estimate looks at, see `Formula.last`


@jit_part
def mean_of_last(requested, known):
    """Return the mean run time of a user's last jobs [s]; without enough, the requested time."""
    if known.memory[NUMBER] < known.last:
        return np.float64(requested)
    total = 0.0
    for k in range(known.last):
        total += known.memory[LAST + k]
    return math.floor(total / known.last)


@jit_part
def by_user_ratio(requested, known):
    """Return the requested time x the mean of run time / requested time of a user's jobs."""
    if known.memory[NUMBER] > 0:
        return requested * (known.memory[RATIOS] / known.memory[NUMBER])
    return np.float64(requested)


@jit_part
def by_typical_ratio(requested, known):
    """Return the requested time x the geometric mean of ratios, of a user's jobs and a class."""
    return requested * typical_ratio(known.ratios, known.of_user, known.of_class)


@jit_part
def _nothing(number, requested, known):
    """Return no number: there is no such formula."""
    return np.nan


@cache
def _chain(formulas: tuple[Any, ...]) -> Any:
    """Return one compiled function of several, which calls the one of a number, from 0."""
    if not formulas:
        return _nothing
    # compiled code holds no tuple of functions: each holds the one before
    before, formula, place = _chain(formulas[:-1]), formulas[-1], len(formulas) - 1

    @jit_part
    def predict(number, requested, known):
        """Return the seconds that formula ``number`` predicts."""
        if number == place:
            return formula(requested, known)
        return before(number, requested, known)

    return predict


#: The compiled function of all, in the order of the table: number, requested time, known.
BUILT_IN = _chain((mean_of_last, by_user_ratio, by_typical_ratio))
