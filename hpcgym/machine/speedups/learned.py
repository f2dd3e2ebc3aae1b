"""Speedups that are learned while jobs run: a scheduler's beliefs, also of pairs never measured.

A pair is a dict of numbers, as river's models take them: which code it is, and which is beside it.
So what has been seen of a code beside some tells what it may do beside others. Models learn
logarithms of speedups: twice as fast is as far from 1 as half as fast, what codes and neighbours do
adds up (:mod:`hpcgym.machine.speedups.files`), and the 0 that models begin with is a speedup of 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from hpcgym.elementary import exp, log
from hpcgym.errors import HpcgymError, unknown
from hpcgym.machine.speedups.heatmap import Floats, positive


class Regressor(Protocol):
    """What learns speedups: any regressor of river, or another object with these two methods."""

    def predict_one(self, x: dict[str, float]) -> float:
        """Return the logarithm of the speedup of a pair with features ``x``."""

    def learn_one(self, x: dict[str, float], y: float) -> object:
        """Learn that ``y`` was the logarithm of the speedup of a pair with features ``x``."""


def pair_features(code: str, beside: str) -> dict[str, float]:
    """Return what a regressor is told of a pair: "code=NAME" and "beside=NAME", both 1.

    A regressor that knows more of codes looks it up by these names.
    """
    return {f"code={code}": 1.0, f"beside={beside}": 1.0}


class PairRegression:
    """A linear regression that is learned by stochastic gradient, one pair at a time.

    ::

        y = intercept + sum over features of weight * feature

    With y a logarithm of speedup and :func:`pair_features`, a code has a sensitivity and its
    neighbour a pressure. A pair is learned by one step down its squared error e: the weight of
    feature x moves by e x / S, where S is the sum of the squares of x so far. So what was seen
    often moves little, and no feature needs scaling. If all moves together would change the
    prediction by more than e, they are shrunk so that it changes by e.

    It has the interface of river's regressors, and needs no river.

    Attributes
    ----------
    intercept, weights : 0 before anything is learned.
    squares : the sum of the squares of each feature.
    learned : the number of pairs.
    """

    def __init__(self) -> None:
        self.intercept = 0.0
        self.weights: dict[str, float] = {}
        self.squares: dict[str, float] = {}
        self.learned = 0

    def predict_one(self, x: Mapping[str, float]) -> float:
        """Return the prediction for features ``x``; those never seen count nothing."""
        # rounded once, so that the order of features does not matter
        return math.fsum(
            [self.intercept, *(self.weights.get(name, 0.0) * value for name, value in x.items())]
        )

    def learn_one(self, x: Mapping[str, float], y: float) -> None:
        """Learn that features ``x`` came with ``y``."""
        error = y - self.predict_one(x)
        self.learned += 1
        steps = {}
        shares = [1.0 / self.learned]  # of the error, that each move alone would take away
        for name, value in x.items():
            self.squares[name] = self.squares.get(name, 0.0) + value * value
            if self.squares[name] > 0:  # else it was always 0
                steps[name] = value / self.squares[name]
                shares.append(value * steps[name])
        error /= max(math.fsum(shares), 1.0)
        self.intercept += error / self.learned
        for name, step in steps.items():
            self.weights[name] = self.weights.get(name, 0.0) + error * step


class LearnedSpeedups:
    """What a scheduler believes of speedups after those it has been told.

    Parameters
    ----------
    codes : their names, each once.
    regressor : what learns logarithms of speedups, such as any regressor of river; it is used
        itself, not a copy. None: a new :class:`PairRegression`.

    Attributes
    ----------
    learned : how many speedups it has been told.

    Raises
    ------
    HpcgymError : no codes, one that stands twice, or a regressor without the two methods.
    """

    def __init__(self, codes: Sequence[str], regressor: Regressor | None = None) -> None:
        if isinstance(codes, str) or not codes or len(set(codes)) < len(codes):
            raise HpcgymError(f"codes must be different names, at least one, not {codes!r}")
        model: Any = PairRegression() if regressor is None else regressor
        for method in ("predict_one", "learn_one"):
            if not callable(getattr(model, method, None)):
                raise HpcgymError(f"regressor: a {type(model).__name__} has no {method}")
        self.codes = tuple(codes)
        self.regressor: Regressor = model
        self.learned = 0
        self._range = (0.0, 0.0)  # of the logarithms learned, and 0
        self._matrix: Floats | None = None

    def __getstate__(self) -> dict[str, Any]:
        # copies work the matrix out anew: an array comes out of a pickle writable
        return {**vars(self), "_matrix": None}

    def predict(self, code: str, beside: str) -> float:
        """Return the believed speedup of a code beside another.

        1 before anything is learned; later it is never beyond what has been seen of any pair, or 1,
        whatever the regressor says.

        Raises
        ------
        HpcgymError : a code that is not one of ``codes``, or a regressor that returns no number.
        """
        self._check(code, beside)
        return self._bounded(code, beside)

    def learn(self, code: str, beside: str, speedup: float) -> None:
        """Learn a speedup that a code had beside another.

        Raises
        ------
        HpcgymError : a code that is not one of ``codes``, or a speedup that is no number above 0.
        """
        self._check(code, beside)
        logarithm = log(positive(f"speedup of {code!r} beside {beside!r}", speedup))
        self.regressor.learn_one(pair_features(code, beside), logarithm)
        least, most = self._range
        self._range = min(least, logarithm), max(most, logarithm)
        self.learned += 1
        self._matrix = None

    def matrix(self) -> Floats:
        """Return all believed speedups, (C, C) float64, read-only: [a, b] of code a beside code b.

        Raises
        ------
        HpcgymError : a regressor that returns no number.
        """
        if self._matrix is None:
            size = len(self.codes)
            believed = np.fromiter(self._all(), np.float64, size * size).reshape(size, size)
            believed.flags.writeable = False
            self._matrix = believed
        return self._matrix

    def _all(self) -> Iterator[float]:
        """Yield the believed speedups of all pairs, row by row."""
        for code in self.codes:
            for beside in self.codes:
                yield self._bounded(code, beside)

    def _bounded(self, code: str, beside: str) -> float:
        """Return what the regressor predicts, within the range of what has been seen."""
        if not self.learned:
            return 1.0
        predicted = float(self.regressor.predict_one(pair_features(code, beside)))
        if math.isnan(predicted):
            raise HpcgymError(
                f"the regressor, a {type(self.regressor).__name__}, predicts no number for"
                f" {code!r} beside {beside!r}"
            )
        least, most = self._range
        return exp(min(max(predicted, least), most))

    def _check(self, *codes: str) -> None:
        for code in codes:
            if code not in self.codes:
                raise HpcgymError(unknown("code", code, self.codes))
