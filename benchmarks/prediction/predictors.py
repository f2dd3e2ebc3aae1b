"""A predictor in Python that is compared with the built-in ones: by similar jobs."""

from __future__ import annotations

import math
from collections import deque
from typing import Any


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
