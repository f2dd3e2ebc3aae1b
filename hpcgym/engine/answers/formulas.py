"""Estimates that are formulas over what is remembered of users: one table, compiled into one chain.

An estimate is added here and nowhere else: names, words, help and what the simulator calls are made
of :data:`FORMULAS`. The formulas become one compiled function, which calls that of a number. What
:func:`hpcgym.simulate` compiles has those of the table as it is then; environments and batches have
those of the table as it stands here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.compilation import jit_part
from hpcgym.engine.answers.histories import LAST, NUMBER, RATIOS, typical_ratio


class Remembered(NamedTuple):
    """What a formula may look at, beside the requested time of a job."""

    memory: NDArray[
        np.float64
    ]  # (LAST + n,) of the job's user: NUMBER, RUN, ..., LAST of histories
    ratios: NDArray[np.float64]  # (1 + n_users + n_classes, 2) of all users, or (0, 2)
    of_user: np.int64  # the row of `ratios` of the job's user
    of_class: np.int64  # that of its class
    last: np.int64  # how many run times the estimate looks at, as `Formula.last` or its name says


@dataclass(frozen=True)
class Formula:
    """An estimate that learns by remembering, compiled.

    Attributes
    ----------
    meaning : what it is, in lists of names.
    label : what it takes run times to be, in tables and pictures; ``{last}`` stands for a number.
    predict : a function of ``jit_part`` that takes a requested time [s] and :class:`Remembered`,
        and returns seconds. They are cut to whole ones, from 1 to the requested time, which also
        stands for what is no number.
    last : how many of the user's last run times it looks at.
    by_class : whether it looks at ratios; else none are kept.
    """

    meaning: str
    label: str
    predict: Any
    last: int = 0
    by_class: bool = False


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


#: Name -> estimate. The first stands for ave1, ave2, ave3 and so on.
FORMULAS = {
    "ave2": Formula(
        "the mean of the user's last two ended jobs, at most the requested time; the requested "
        "time while there are not two (Tsafrir et al. 2007; Glesser 2016, section 7.2.2; L2 of "
        "Galleguillos et al. 2020). ave1, ave3 and so on: of the last one, three ...",
        "mean of the user's last {last} run times",
        mean_of_last,
        last=2,
    ),
    "user-ratio": Formula(
        "requested time x the mean of run time / requested time of the user's ended jobs",
        "requested times x the user's mean ratio",
        by_user_ratio,
    ),
    "typical-ratio": Formula(
        "requested time x the geometric mean of run time / requested time of the user's ended "
        "jobs, and of those as wide, the latest counting most",
        "requested times x the user's typical ratio",
        by_typical_ratio,
        by_class=True,
    ),
}


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


def chain() -> Any:
    """Return the compiled function of the table as it is now: number, requested time, known."""
    return _chain(tuple(formula.predict for formula in FORMULAS.values()))


#: That of the table as it stands above, for what is compiled as modules are imported: whatever is
#: put into the table later, code that is kept under a hash of these sources has only these.
BUILT_IN = chain()
_BUILT_IN = dict(FORMULAS)


def is_built_in(name: str) -> bool:
    """Return whether environments and batches know a formula of the table."""
    return FORMULAS[name] is _BUILT_IN.get(name)
