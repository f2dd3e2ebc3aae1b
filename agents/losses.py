"""Losses of predicted run times, as components of river, and what the loss of a job counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from river import optim

from hpcgym.errors import HpcgymError, check_choice
from hpcgym.scheduler.estimates import Regression
from hpcgym.scheduler.estimates.by_name import LARGEST_EXPONENT, WEIGHTINGS


def job_weight(weight: str, run: float, processors: float) -> float:
    """Return what the loss of a job counts (Glesser 2016, table 7.3).

    Parameters
    ----------
    weight : with p = ``run`` and q = ``processors``: "1" is 1, "long" 5 + log(p / q), "wide"
        5 + log(q / p), "small" 11 - log(q p), "large" 1 + log(q p).
    run : run time [s], taken as at least 1.
    processors : taken as at least 1.

    Raises
    ------
    HpcgymError : an unknown weight.
    """
    check_choice("weight", weight, WEIGHTINGS)
    p, q = math.log(max(run, 1.0)), math.log(max(processors, 1.0))
    weights = (1.0, 5.0 + (p - q), 5.0 + (q - p), 11.0 - (q + p), 1.0 + (q + p))
    return weights[WEIGHTINGS.index(weight)]


def processors_of(x: Mapping[Any, Any], weight: str) -> float:
    """Return the feature "processors", 1 where it is missing and no weight of jobs needs it.

    Raises
    ------
    HpcgymError : it is missing, and ``weight`` needs it.
    """
    if weight != "1" and "processors" not in x:
        raise HpcgymError(f'weight "{weight}" needs the feature "processors"')
    return float(x.get("processors", 1.0))


class BranchLoss(optim.losses.RegressionLoss):
    """A loss with one branch for over-predictions and one for under-predictions.

    With e = prediction - truth - threshold it is over(e) where e > 0, under(-e) where e < 0, and 0
    where e = 0. A branch of scale c is c e, c e^2 or exp(c e).

    Two absolute branches with ``over_scale`` 1 - p and ``under_scale`` p are the pinball loss of
    the quantile p: under it a model learns the run time below which a share p of such jobs ends.

    Parameters
    ----------
    over, under : "absolute", "squared" or "exponential" (whose exponents are cut off at 300).
    over_scale, under_scale : the factors c.
    threshold : how much too long a prediction may be [s] and still count as an under-prediction.

    Raises
    ------
    HpcgymError : an unknown branch, or a scale that it cannot have.
    """

    def __init__(
        self,
        over: str = "squared",
        under: str = "squared",
        over_scale: float = 1.0,
        under_scale: float = 1.0,
        threshold: float = 0.0,
    ) -> None:
        Regression(over, under, over_scale, under_scale, threshold)  # checks them
        self.over = over
        self.under = under
        self.over_scale = over_scale
        self.under_scale = under_scale
        self.threshold = threshold

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss, of numbers or elementwise of arrays."""
        error = y_pred - y_true - self.threshold
        over = _loss(self.over, self.over_scale, abs(error))
        under = _loss(self.under, self.under_scale, abs(error))
        return _by_sign(error, over, under)

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        """Return the derivative of the loss by the prediction, of numbers or arrays."""
        error = y_pred - y_true - self.threshold
        over = _slope(self.over, self.over_scale, abs(error))
        under = _slope(self.under, self.under_scale, abs(error))
        return _by_sign(error, over, -under)


class ELoss(BranchLoss):
    """The E-Loss: squared above, absolute below.

    In Glesser 2016, equation 7.3, it is weighted by the area of jobs, which is no part of a loss
    in river: models take the weight "large" as an argument.
    """

    def __init__(self) -> None:
        super().__init__("squared", "absolute")


def _loss(branch: str, scale: float, size: Any) -> Any:
    if branch == "absolute":
        return scale * size
    if branch == "squared":
        return scale * size * size
    return np.exp(np.minimum(scale * size, LARGEST_EXPONENT))


def _slope(branch: str, scale: float, size: Any) -> Any:
    if branch == "absolute":
        return scale
    if branch == "squared":
        return 2.0 * scale * size
    return scale * np.exp(np.minimum(scale * size, LARGEST_EXPONENT))


def _by_sign(error: Any, over: Any, under: Any) -> Any:
    if isinstance(error, np.ndarray):
        return np.where(error > 0.0, over, np.where(error < 0.0, under, 0.0))
    if error > 0.0:
        return over
    return under if error < 0.0 else 0.0
