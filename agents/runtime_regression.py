"""Learned regression of run times, as a model of river.

The regression is that of Glesser 2016, section 7.3.2: a weighted sum of the products of up to two
features, learned one job at a time by the normalised adaptive gradient (NAG; Ross, Mineiro and
Langford, "Normalized Online Learning", UAI 2013, algorithm 2) under a loss with one branch for
over-predictions and one for under-predictions. A ``hpcgym.scheduler.estimates.Regression`` is the
same inside a simulation.

Examples
--------
>>> from hpcgym.agents.runtime_regression import RuntimeRegression
>>> model = RuntimeRegression(eta=1000.0, l2=0.0)
>>> for k in range(1000):
...     x = {"requested": 600.0 + k % 7, "processors": 1.0 + k % 3}
...     model.learn_one(x, 0.5 * x["requested"] + 10.0 * x["processors"])
>>> round(model.predict_one({"requested": 602.0, "processors": 2.0}))
322
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base

from hpcgym._engine import learn_by, predict_by
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.estimates import Regression
from hpcgym.scheduler.estimates.by_name import BRANCHES, WEIGHTINGS
from hpcgym.scheduler.estimates.learning import LOSS, N_ROWS, count_terms, term_places


class RuntimeRegression(base.Regressor):
    """The regression on arrays, compiled: as fast as dictionaries of features can be read.

    All that ``x`` holds are features, which must be numbers. As in river's linear models, one that
    is new joins with a weight of 0 when learned, and counts nothing before. The terms of one that
    is missing have no part in the sum, and learn nothing; this is not the same as a feature of 0,
    whose weights are drawn towards 0 by ``l2``.

    In a simulation ``x`` also holds :data:`hpcgym.scheduler.estimates.JOB_FACTS`, numbers of users
    and jobs among them, of which a weighted sum makes no sense: name the ``features``. With the
    loss ``over="squared", under="absolute", weight="large"`` and ``features=tuple(JOB_FEATURES)``
    it makes exactly the predictions of the estimate "e-loss".

    Parameters
    ----------
    over, under : of predictions that are too long, and too short: "absolute", "squared" or
        "exponential" (whose exponents are cut off at 300). With e = prediction - truth - threshold
        the loss is over(e) where e > 0, and under(-e) where e < 0: c e, c e^2 or exp(c e).
    over_scale, under_scale : the factors c. Two absolute branches with 1 - p and p learn the run
        time below which a share p of such jobs ends.
    threshold : how much too long a prediction may be [s] and still count as too short.
    weight : what the loss of a job counts (Glesser 2016, table 7.3), with p its run time, which is
        ``y``, and q its processors, which must be among the features: "1", "long" 5 + log(p / q),
        "wide" 5 + log(q / p), "small" 11 - log(q p), "large" 1 + log(q p).
    eta : how fast to learn.
    l2 : half of it, times the sum of the squares of the weights, is added to each loss.
    degree : 1, the features; 2, their products too.
    features : names of the features to look at, such as ``tuple(JOB_FEATURES)``; None: all of x.

    Raises
    ------
    HpcgymError : a value that is not one of these.
    """

    def __init__(
        self,
        over: str = "squared",
        under: str = "squared",
        over_scale: float = 1.0,
        under_scale: float = 1.0,
        threshold: float = 0.0,
        weight: str = "1",
        eta: float = 5000.0,
        l2: float = 4e9,
        degree: int = 2,
        features: Sequence[base.typing.FeatureName] | None = None,
    ) -> None:
        branches = (over, under, over_scale, under_scale, threshold)
        Regression(*branches, weight, eta, l2, degree=degree)  # checks them
        if features is not None:
            _check_features(features, weight)
        self.over = over
        self.under = under
        self.over_scale = over_scale
        self.under_scale = under_scale
        self.threshold = threshold
        self.weight = weight
        self.eta = eta
        self.l2 = l2
        self.degree = degree
        self.features = features
        self._places: dict[base.typing.FeatureName, int] = {}
        self._terms = np.zeros((N_ROWS, 1))
        self._totals = np.array([0.0, 1.0])

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"over_scale", "under_scale", "threshold", "eta", "l2"}

    def predict_one(self, x: Mapping[base.typing.FeatureName, Any]) -> float:
        """Return the prediction for features ``x``."""
        values = np.array([x.get(name, 0.0) for name in self._places], np.float64)
        return predict_by(values, self._loss(), self._terms)

    def learn_one(self, x: Mapping[base.typing.FeatureName, Any], y: float, w: float = 1.0) -> None:
        """Learn that features ``x`` came with ``y``; the loss counts ``w`` times that of the job.

        Raises
        ------
        HpcgymError : ``weight`` needs the feature "processors", and it is missing.
        """
        if self.features is not None:
            x = {name: x[name] for name in self.features if name in x}
        _processors_of(x, self.weight)  # it must be there before anything is learned
        if x.keys() == self._places.keys():
            self._terms = self._learn(x, self._places, self._terms, y, w)
            return
        self._make_room(x)
        known = [name for name in self._places if name in x]
        places = [self._places[name] for name in known]
        terms = term_places(places, len(self._places), self.degree)
        self._terms[:, terms] = self._learn(x, known, self._terms.take(terms, axis=1), y, w)

    def _learn(
        self, x: Any, names: Iterable[Any], terms: NDArray[np.float64], y: float, w: float
    ) -> NDArray[np.float64]:
        """Learn with the terms of some features, in place; return them."""
        values = np.array([x[name] for name in names], np.float64)
        processors = _processors_of(x, self.weight)
        learn_by(values, self._loss(), terms, self._totals, float(y), processors, float(w))
        return terms

    def _loss(self) -> NDArray[np.int64]:
        """Return the loss as the engine takes it: parameters may have been mutated."""
        record = np.zeros(1, LOSS)
        record[0] = (
            BRANCHES.index(self.over),
            self.over_scale,
            BRANCHES.index(self.under),
            self.under_scale,
            self.threshold,
            WEIGHTINGS.index(self.weight),
            self.eta,
            self.l2,
            self.degree,
        )
        return record.view(np.int64)

    def _make_room(self, x: Iterable[Any]) -> None:
        """Take the features seen for the first time behind the others, with weights of 0."""
        before = len(self._places)
        for name in x:
            self._places.setdefault(name, len(self._places))
        if len(self._places) == before:
            return
        terms = np.zeros((N_ROWS, count_terms(len(self._places), self.degree)))
        terms[:, term_places(range(before), len(self._places), self.degree)] = self._terms
        self._terms = terms


def _processors_of(x: Mapping[Any, Any], weight: str) -> float:
    """Return the feature "processors", 1 where it is missing and no weight of jobs needs it.

    Raises
    ------
    HpcgymError : it is missing, and ``weight`` needs it.
    """
    if weight != "1" and "processors" not in x:
        raise HpcgymError(f'weight "{weight}" needs the feature "processors"')
    return float(x.get("processors", 1.0))


def _check_features(features: Sequence[base.typing.FeatureName], weight: str) -> None:
    """Raise an error for names that cannot be chosen."""
    if isinstance(features, str) or not features or len(set(features)) < len(features):
        raise HpcgymError(
            f"features must be None or different names, at least one, not {features!r}"
        )
    _processors_of(dict.fromkeys(features, 1.0), weight)
