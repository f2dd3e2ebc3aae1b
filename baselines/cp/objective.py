"""What the models minimise, in whole numbers.

All objectives of the documents are a sum of waiting times, each divided by something of the job:
its expected duration (slowdown: Galleguillos 2020, section 2.2; Remediani 2017, equation 4.12) or
the expected wait of its queue (Remediani 2017, equations 4.6 and 4.14, which differ by a common
factor). CP-SAT counts in whole numbers, so the quotients 1/x are scaled.

**The scale** is the least common multiple of the divisors where that is small enough: all weights
are then exact. Otherwise it is the largest power of two for which the dearest schedule costs less
than 2**52, so that every objective is an exact double too. A weight is then off by at most half a
unit: with a horizon of 50 days and 50 jobs, one of them of one second, the scale is about 10**9 and
the weight of a job of a day is off by less than 0.005 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcgym.scheduler.dispatchers.view import PassView

#: No schedule may cost more: 2**53 is where doubles stop holding every whole number.
LARGEST = 2**52


@dataclass(frozen=True)
class Objective:
    """Cost = sum over jobs of factor x (wait + start) / divisor + own.

    Attributes
    ----------
    divisor : (q,) [s].
    wait : (q,) [s] up to now.
    factor, own : of the objective.
    """

    divisor: NDArray[np.float64]
    wait: NDArray[np.int64]
    factor: float
    own: float

    def weigh(self, places: NDArray[np.int64], horizon: int) -> Weights:
        """Return the weights of some jobs, scaled for starts up to the horizon [s]."""
        divisor = self.divisor[places]
        scale = _scale(divisor, horizon)
        whole = np.rint(scale / divisor).astype(np.int64)
        return Weights(divisor, self.wait[places], self.factor, self.own, scale, whole)


@dataclass(frozen=True)
class Weights(Objective):
    """The objective of the considered jobs, as the solver counts it.

    Attributes
    ----------
    scale : whole numbers per 1 / second.
    whole : (k,) int64, the weights for the solver: scale / divisor.
    """

    scale: int
    whole: NDArray[np.int64]

    def solver_cost(self, start: NDArray[np.int64]) -> int:
        """Return what the solver minimises: whole weights x starts [s from now]."""
        return int(self.whole @ start)

    def cost(self, start: NDArray[np.int64]) -> float:
        """Return the objective of the document at these starts [s from now]."""
        return float((self.factor * (self.wait + start) / self.divisor + self.own).sum())

    def as_cost(self, solver_cost: float) -> float:
        """Return the objective that a value of the solver stands for."""
        return (
            self.cost(np.zeros(len(self.wait), np.int64)) + self.factor * solver_cost / self.scale
        )


def slowdown(view: PassView) -> Objective:
    """Return those of sum (s - q + d) / d: Galleguillos 2020, 2.2; Remediani 2017, 4.12."""
    return Objective(np.maximum(view.duration, 1).astype(np.float64), view.wait, 1.0, 1.0)


def weighted_wait(view: PassView) -> Objective:
    """Return those of sum (max ewt / ewt) (s - q): Remediani 2017, equation 4.6 (CPH)."""
    return Objective(view.expected_wait, view.wait, view.max_expected_wait, 0.0)


def relative_wait(view: PassView) -> Objective:
    """Return those of sum (s - q) / ewt: Remediani 2017, equation 4.14 (pure CP)."""
    return Objective(view.expected_wait, view.wait, 1.0, 0.0)


def _scale(divisor: NDArray[np.float64], horizon: int) -> int:
    """Return the scale for these divisors and starts up to the horizon [s]."""
    whole = divisor == np.rint(divisor)
    at_most = int(LARGEST / max(horizon * float((1.0 / divisor).sum()), 1e-9))
    if whole.all():
        exact = 1
        for value in np.unique(divisor).astype(np.int64).tolist():
            exact = math.lcm(exact, value)
            if exact > at_most:
                break
        else:
            return exact
    return 1 << max(at_most.bit_length() - 1, 0)
