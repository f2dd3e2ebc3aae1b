"""Learned regression of run times, as components of river: loss, optimiser, models.

The model is that of Glesser 2016, section 7.3.2: a weighted sum of the products of up to two
features, learned one job at a time by the normalised adaptive gradient (NAG) under a loss with one
branch for over-predictions and one for under-predictions.

It is here twice. :func:`river_pipeline` is put together from river's parts and those below, each of
which works elsewhere in river too. :class:`RuntimeRegression` is the same model on arrays,
compiled: equal predictions, some sixty times faster. A ``hpcgym.scheduler.estimates.Regression`` is
it once more, inside a simulation.

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

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base, compose, feature_extraction, linear_model, optim, utils

from hpcgym._engine import learn_by, predict_by
from hpcgym.agents.losses import BranchLoss, ELoss, job_weight, processors_of
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.estimates import Regression
from hpcgym.scheduler.estimates.by_name import BRANCHES, WEIGHTINGS
from hpcgym.scheduler.estimates.learning import LOSS, N_ROWS, count_terms, term_places

__all__ = [
    "NAG",
    "BranchLoss",
    "ELoss",
    "NAGRegression",
    "RuntimeRegression",
    "job_weight",
    "river_pipeline",
]


class NAG(optim.base.Optimizer):
    """Normalised adaptive gradient: no feature needs scaling, and each learns at its own rate.

    It must see the features before each step, which optimisers of river are not shown: a model that
    uses it calls ``observe(w, x)`` first, as :class:`NAGRegression` does.

    Parameters
    ----------
    lr : the learning rate, eta of the paper.

    Attributes
    ----------
    scale : the largest absolute value of each feature so far.
    squares : the sum of squared gradients of each feature.
    norm : the sum of the squares of all scaled features so far.

    References
    ----------
    S. Ross, P. Mineiro and J. Langford, "Normalized Online Learning", UAI 2013, algorithm 2.
    """

    def __init__(self, lr: float | optim.base.Scheduler = 5000.0) -> None:
        super().__init__(lr)
        self.scale: dict[base.typing.FeatureName, float] = {}
        self.squares: dict[base.typing.FeatureName, float] = {}
        self.norm = 0.0

    def observe(self, w: Any, x: Mapping[base.typing.FeatureName, float]) -> None:
        """Let the weights ``w`` fit features that are larger than any before."""
        for name, value in x.items():
            scale = self.scale.get(name, 0.0)
            if abs(value) > scale:
                w[name] *= scale / abs(value)
                self.scale[name] = scale = abs(value)
            if scale > 0.0:
                self.norm += (value / scale) ** 2

    def _step_with_dict(self, w: Any, g: Any) -> Any:
        rate = self.learning_rate
        if self.norm > 0.0:
            rate *= math.sqrt((self.n_iterations + 1) / self.norm)
        for name, slope in g.items():
            squares = self.squares.get(name, 0.0) + slope * slope
            self.squares[name] = squares
            if squares > 0.0:
                w[name] -= rate * slope / (self._scale_of(name) * math.sqrt(squares))
        return w

    def _scale_of(self, name: base.typing.FeatureName) -> float:
        if name not in self.scale:
            raise HpcgymError("NAG must see the features before a step: use it in NAGRegression")
        return self.scale[name]


class NAGRegression(linear_model.LinearRegression):
    """Linear regression of river whose optimiser sees the features.

    It has no intercept, which other optimisers would learn: give it a feature that is always 1, as
    ``PolynomialExtender(include_bias=True)`` does. A batch is learned row by row.

    Parameters
    ----------
    optimizer : None: ``NAG()``.
    loss : None: ``ELoss()``.
    l2 : half of it, times the sum of the squares of the weights, is added to each loss.
    weight : what the loss of a job counts, as of :class:`RuntimeRegression`; "processors" must come
        as they are, not scaled.

    Raises
    ------
    HpcgymError : an unknown weight.
    """

    def __init__(
        self,
        optimizer: NAG | None = None,
        loss: optim.losses.RegressionLoss | None = None,
        l2: float = 4e9,
        weight: str = "1",
    ) -> None:
        job_weight(weight, 1.0, 1.0)  # checks it
        self.weight = weight
        super().__init__(
            optimizer=NAG() if optimizer is None else optimizer,
            loss=ELoss() if loss is None else loss,
            l2=l2,
            intercept_lr=0.0,
            clip_gradient=math.inf,
        )

    def _fit(self, x: Any, y: Any, w: Any, get_grad: Any) -> None:
        w *= job_weight(self.weight, y, processors_of(x, self.weight))
        self.optimizer.observe(self._weights, x)
        super()._fit(x, y, w, get_grad)  # type: ignore[no-untyped-call]

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:  # noqa: N803
        """Learn from the rows of a table, one after the other; ``w`` is a number or a column."""
        table, truths = utils.dataframe.into_frame(X), utils.dataframe.into_series(y)
        self._y_name = truths.name
        column = not isinstance(w, int | float)
        weights = utils.dataframe.into_series(w).to_list() if column else [w] * len(truths)
        for x, truth, weight in zip(table.iter_rows(named=True), truths, weights, strict=True):
            self.learn_one(x, truth, weight)

    def _unit_test_skips(self) -> set[str]:
        return set()  # a batch is no mean step here


def river_pipeline(
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
) -> compose.Pipeline:
    """Return the regression put together from parts of river.

    Parameters
    ----------
    over, under, over_scale, under_scale, threshold, weight, eta, l2, degree, features : as of
        :class:`RuntimeRegression`.

    Raises
    ------
    HpcgymError : a value that is not one of these.
    """
    branches = (over, under, over_scale, under_scale, threshold)
    Regression(*branches, weight, eta, l2, degree=degree)  # checks them
    terms = feature_extraction.PolynomialExtender(degree=degree, include_bias=True)
    model = terms | NAGRegression(NAG(eta), BranchLoss(*branches), l2, weight)
    if features is None:
        return model
    _check_features(features, weight)
    return compose.Select(*features) | model


def _check_features(features: Sequence[base.typing.FeatureName], weight: str) -> None:
    """Raise an error for names that cannot be chosen."""
    if isinstance(features, str) or not features or len(set(features)) < len(features):
        raise HpcgymError(
            f"features must be None or different names, at least one, not {features!r}"
        )
    processors_of(dict.fromkeys(features, 1.0), weight)


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
    over, under, over_scale, under_scale, threshold : the loss, as of :class:`BranchLoss`.
    weight : what the loss of a job counts, as of :func:`job_weight`: "1", or "long", "wide",
        "small" or "large", for which ``y`` is the run time and "processors" must be among the
        features.
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
        processors_of(x, self.weight)  # it must be there before anything is learned
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
        processors = processors_of(x, self.weight)
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
