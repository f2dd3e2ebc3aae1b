"""Models that learn from a whole table, refitted on a schedule so that they learn on-line."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base

from hpcgym.errors import HpcgymError


class Mean:
    """The mean of what was learned: all that a model must have to be refitted."""

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> None:  # noqa: N803
        """Learn from a table (n, n_features) and n truths."""
        self.mean = float(np.mean(y))

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: N803
        """Return n predictions for a table (n, n_features)."""
        return np.full(len(X), self.mean)

    def __repr__(self) -> str:
        return "Mean()"


class Refitted(base.Regressor):
    """A model with ``fit(X, y)`` and ``predict(X)``, as those of scikit-learn, as one of river.

    It keeps the last observations, and every so many of them a copy of the model is fitted to all
    that it has kept. Before the first time, it predicts the mean of these, and 0 without any.

    The columns of X are the features in the order of their first appearance, all of them numbers;
    a missing one is 0, and one that appeared after the last fit counts nothing.

    Beside the fits, it costs a call of ``predict`` with one row for each prediction, a job a call
    in a simulation: of a linear model of scikit-learn 0.2 ms, of a forest of 100 trees 5 ms, so 2
    to 3 minutes for the 28,000 jobs of KTH-SP2.

    Parameters
    ----------
    model : it stays as it is; copies are fitted.
    every : number of observations from one fit to the next.
    window : number of observations that are kept; None: all.

    Raises
    ------
    HpcgymError : a model without these methods, a class of models, or numbers below 1.

    Examples
    --------
    >>> from hpcgym.agents.refitted import Mean, Refitted
    >>> model = Refitted(Mean(), every=2)
    >>> for y in (1.0, 3.0, 8.0):
    ...     model.learn_one({"requested": 60.0}, y)
    >>> model.predict_one({"requested": 60.0})
    2.0
    """

    def __init__(self, model: Any, every: int = 1000, window: int | None = 10_000) -> None:
        if isinstance(model, type):  # it has the methods of its objects, but nothing to fit
            name = model.__name__
            raise HpcgymError(f"model must be a model, not the class {name}; give {name}()")
        if not (hasattr(model, "fit") and hasattr(model, "predict")):
            raise HpcgymError(f"model must have methods fit and predict, which {model!r} lacks")
        if every < 1:
            raise HpcgymError(f"every must be at least 1, not {every!r}")
        if window is not None and window < 1:
            raise HpcgymError(f"window must be None or at least 1, not {window!r}")
        self.model = model
        self.every = every
        self.window = window
        self._names: dict[base.typing.FeatureName, None] = {}
        self._rows: deque[tuple[list[float], float]] = deque(maxlen=window)
        self._until_fit = every
        self._fitted: Any = None
        self._n_columns = 0

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": Mean()}

    def predict_one(self, x: Mapping[base.typing.FeatureName, Any]) -> float:
        """Return the prediction of the model as it was fitted last."""
        if self._fitted is None:
            return fmean(y for _, y in self._rows) if self._rows else 0.0
        row = [float(x.get(name, 0.0)) for name in islice(self._names, self._n_columns)]
        return float(self._fitted.predict(np.array([row]))[0])

    def learn_one(self, x: Mapping[base.typing.FeatureName, Any], y: float) -> None:
        """Keep that features ``x`` came with ``y``, and fit a copy of the model if it is time."""
        self._names.update(dict.fromkeys(x))
        self._rows.append(([float(x.get(name, 0.0)) for name in self._names], float(y)))
        self._until_fit -= 1
        if self._until_fit == 0:
            self._until_fit = self.every
            self._fit()

    def _fit(self) -> None:
        """Fit a copy of the model to what is kept."""
        self._n_columns = len(self._names)
        table = np.zeros((len(self._rows), self._n_columns))
        for line, (row, _) in zip(table, self._rows, strict=True):
            line[: len(row)] = row  # features that appeared later are 0
        fitted = copy.deepcopy(self.model)
        fitted.fit(table, np.array([y for _, y in self._rows]))
        self._fitted = fitted
