"""Predictors in Python that tests give to simulations, and a policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hpcgym._engine import learn_by, predict_by
from hpcgym.scheduler.estimates import JOB_FEATURES, Regression, learning
from hpcgym.scheduler.estimates.by_name import BRANCHES, WEIGHTINGS


class Crooked:
    """Predicts nonsense that the last bit of all it was told changes; copies share its log."""

    SHARES = (0.0, 1e-3, 0.1, 0.3, 0.5, 0.9, 1.0, 1.5, -0.4, float("nan"), float("-inf"))

    def __init__(self, log: list[Any] | None = None, state: int = 0) -> None:
        self.log: list[Any] = [] if log is None else log
        self.state = state

    def __deepcopy__(self, memo: Any) -> Crooked:
        return type(self)(self.log, self.state)

    def predict_one(self, x: dict[str, Any]) -> float:
        self.log.append(("predict", dict(x)))
        numbers = [x[name] for name in (*JOB_FEATURES, "user", "elapsed")]
        return self.SHARES[hash((self.state, *numbers)) % len(self.SHARES)] * x["requested"]

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        self.log.append(("learn", dict(x), y))
        numbers = [x[name] for name in (*JOB_FEATURES, "user", "elapsed")]
        self.state = hash((self.state, *numbers, y))


class Told:
    """Predicts what a function makes of the features, and learns nothing."""

    def __init__(self, function: Callable[[dict[str, Any]], Any]) -> None:
        self.function = function

    def predict_one(self, x: dict[str, Any]) -> Any:
        return self.function(x)

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        pass


class CompiledRegression:
    """A Regression by the engine's steps; the rest of the protocol is in Python."""

    def __init__(self, rules: Regression) -> None:
        self.rules = rules
        n = learning.count_terms(len(rules.features), rules.degree)
        self.terms, self.totals = np.zeros((learning.N_ROWS, n)), np.array([0.0, 1.0])
        self.loss = np.zeros(1, learning.LOSS)
        for name in ("over_scale", "under_scale", "threshold", "eta", "l2", "degree"):
            self.loss[name] = getattr(rules, name)
        self.loss["over"] = BRANCHES.index(rules.over)
        self.loss["under"] = BRANCHES.index(rules.under)
        self.loss["weighting"] = WEIGHTINGS.index(rules.weight)

    def own(self, x: dict[str, Any]) -> Any:
        return np.array([x[name] for name in self.rules.features], np.float64)

    def predict_one(self, x: dict[str, Any]) -> float:
        return predict_by(self.own(x), self.loss.view(np.int64), self.terms)

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        loss, width = self.loss.view(np.int64), float(x["processors"])
        learn_by(self.own(x), loss, self.terms, self.totals, y, width)


ELOSS = Regression.parse("e-loss")
#: Eager ones, which are often wrong within a few jobs.
REGRESSIONS = (
    ELOSS,
    Regression("absolute", "squared", weight="small", eta=0.5, l2=0.0, threshold=3),
    Regression("exponential", "absolute", 0.01, 2, weight="wide", eta=1, l2=1, degree=1),
    Regression(features=("last", "requested", "occupied"), weight="long", eta=2, l2=0.0),
)


class Whim:
    """An order that nobody would want, another at each pass; also as the slow simulator has it."""

    def begin(self, simulation: Any = None) -> None:
        """Its order changes with time; jobs that are stopped in a pass come last in it."""
        if simulation is None:
            return
        schedule = simulation.schedule

        def with_a_note(now: int) -> None:
            self.simulation, self.lost_before = simulation, len(simulation.lost)
            schedule(now)

        simulation.schedule = with_a_note

    def __call__(self, view: Any, now: int = -1) -> Any:
        if now >= 0:  # the slow simulator asks for the score of a job
            stopped = self.simulation.lost[self.lost_before :]
            last = any(number == view.number for number, *_ in stopped)
            return -math.inf if last else self.score(now, view.number)
        return [self.score(view.time, job) for job in view.job.tolist()]

    @staticmethod
    def score(now: int, job: int) -> int:
        return (now * 7919 + job * 104729) % 1009
