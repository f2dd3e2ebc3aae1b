"""Predictors in Python that are compared with the built-in ones: classes, drift, quantiles."""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from typing import Any

import numpy as np

#: What jobs are alike by, the wider class first.
CLASSES: dict[str, tuple[tuple[str, ...], ...]] = {
    "all jobs": ((),),
    "request": (("requested",),),
    "request, width": (("requested",), ("requested", "processors")),
    "group": (("group",),),
    "user": (("user",),),
    "user, width": (("user",), ("user", "processors")),
}


class Ratios:
    """Requested time x a geometric mean of run time / requested time, by classes of jobs.

    With the classes "user, width" it is the estimate "typical-ratio": see ``docs/prediction.md``.

    Parameters
    ----------
    classes : a name of CLASSES.
    decay : what a job counts when the next of its class has ended.
    drift : whether a class forgets what it knows when river's ADWIN sees its mean change.
    """

    PRIOR = 1.0

    def __init__(self, classes: str, decay: float = 0.95, drift: bool = False) -> None:
        self._classes, self._decay, self._drift = CLASSES[classes], decay, drift
        self._all = [0.0, 0.0]
        self._known: dict[tuple[Any, ...], list[float]] = {}
        self._detectors: dict[tuple[Any, ...], Any] = {}

    def predict_one(self, x: dict[str, Any]) -> float:
        """Return the predicted run time [s]."""
        mean = self._all[1] / self._all[0] if self._all[0] else 0.0
        means = []
        for fields in self._classes:
            weight, total = self._known.get(_key(fields, x), (0.0, 0.0))
            mean = (total + self.PRIOR * mean) / (weight + self.PRIOR)
            means.append(mean)
        ratio = math.exp(sum(means) / len(means))
        return float(x["requested"]) * ratio

    def learn_one(self, x: dict[str, Any], y: float) -> Ratios:
        """Learn from a job that ran for ``y`` [s]."""
        ratio = math.log(y / x["requested"])
        self._all = [self._all[0] + 1.0, self._all[1] + ratio]
        for fields in self._classes:
            key = _key(fields, x)
            if self._drift and self._changed(key, ratio):
                self._known[key] = [0.0, 0.0]
            weight, total = self._known.get(key, (0.0, 0.0))
            self._known[key] = [self._decay * weight + 1.0, self._decay * total + ratio]
        return self

    def _changed(self, key: tuple[Any, ...], ratio: float) -> bool:
        """Return whether the mean of a class has changed, as far as can be told."""
        from river.drift import ADWIN

        if key not in self._detectors:
            self._detectors[key] = ADWIN()
        self._detectors[key].update(ratio)
        return bool(self._detectors[key].drift_detected)


class Similar:
    """Requested time x a geometric mean of run time / requested time, of jobs like this one.

    Of the user's last 40 ended jobs, the k-th last weighs e^(-0.05 k), times 0.3 with another
    number of processors and times 0.4 with another requested time. The mean of all jobs with the
    same requested time weighs 0.5 more. While no such job has ended, that of all jobs does.
    """

    LAST, DECAY, OTHER_WIDTH, OTHER_REQUEST, PRIOR = 40, 0.05, 0.3, 0.4, 0.5

    def __init__(self) -> None:
        self._users: dict[Any, deque[tuple[float, Any, Any]]] = {}
        self._requests: dict[Any, list[float]] = {}
        self._all = [0.0, 0.0]

    def predict_one(self, x: dict[str, Any]) -> float:
        """Return the predicted run time [s]."""
        weight, total = self._requests.get(x["requested"], self._all)
        weights = self.PRIOR
        ratios = self.PRIOR * (total / weight if weight else 0.0)
        for k, (ratio, width, requested) in enumerate(self._users.get(x["user"], ())):
            one = math.exp(-self.DECAY * k)
            one *= 1.0 if width == x["processors"] else self.OTHER_WIDTH
            one *= 1.0 if requested == x["requested"] else self.OTHER_REQUEST
            weights += one
            ratios += one * ratio
        return float(x["requested"]) * math.exp(ratios / weights)

    def learn_one(self, x: dict[str, Any], y: float) -> Similar:
        """Learn from a job that ran for ``y`` [s]."""
        ratio = math.log(y / x["requested"])
        for sums in (self._all, self._requests.setdefault(x["requested"], [0.0, 0.0])):
            sums[0] += 1.0
            sums[1] += ratio
        last = self._users.setdefault(x["user"], deque(maxlen=self.LAST))
        last.appendleft((ratio, x["processors"], x["requested"]))
        return self


def _key(fields: tuple[str, ...], x: dict[str, Any]) -> tuple[Any, ...]:
    """Return the class of a job."""
    return (*fields, *(x[name] for name in fields))


class RatioQuantile:
    """Requested time x a quantile of run time / requested time of the user's last jobs.

    With share p, a job is predicted to run so long that the like of it ended by then with
    probability p.

    Parameters
    ----------
    share : p, from 0 to 1.
    """

    LAST = 50

    def __init__(self, share: float) -> None:
        self._share = share
        self._order: dict[int, deque[float]] = {}
        self._sorted: dict[int, list[float]] = {}

    def predict_one(self, x: dict[str, Any]) -> float:
        """Return the predicted run time [s], the requested time without a job of the user."""
        known = self._sorted.get(x["user"])
        if not known:
            return float(x["requested"])
        return float(x["requested"]) * float(np.quantile(known, self._share))

    def learn_one(self, x: dict[str, Any], y: float) -> RatioQuantile:
        """Learn from a job that ran for ``y`` [s]."""
        order = self._order.setdefault(x["user"], deque())
        known = self._sorted.setdefault(x["user"], [])
        order.append(y / x["requested"])
        insort(known, order[-1])
        if len(order) > self.LAST:
            known.remove(order.popleft())
        return self
