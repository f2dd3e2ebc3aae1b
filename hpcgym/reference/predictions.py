"""What is predicted of a job from those that have ended, as slowly and obviously as can be said.

Rule 3 of :mod:`hpcgym.reference`, and Glesser 2016, chapter 7. Jobs have ``submit``, ``start`` and
``end`` [s], ``processors``, ``requested`` and ``actual`` [s], and a ``user``.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hpcgym.elementary import cos, sin

DECAY = Decimal("0.95")
MICROSECOND = Fraction(1, 10**6)


def mean(values: Sequence[float]) -> float:
    """Return the mean of some values, 0 without any."""
    total = 0.0
    for value in values:  # sum() rounds otherwise in some versions of Python
        total += value
    return total / len(values) if values else 0.0


def features(job: Any, now: int, past: Sequence[Any], running: Sequence[Any]) -> dict[str, float]:
    """Table 7.2 of Glesser 2016, in its order; ``past`` are the user's ended jobs, in order."""
    runs = [other.actual for other in reversed(past)]  # the last first
    mine = [other for other in running if other.user == job.user and other is not job]
    # a job may wait for nodes that boot; an extract knows jobs that started later
    elapsed = [max(now - other.start - getattr(other, "paused", 0), 0) for other in mine]
    widths = [other.processors for other in mine]
    usual = mean([other.processors for other in past])
    day, week = 2 * math.pi * (now % 86_400 / 86_400), 2 * math.pi * (now % 604_800 / 604_800)
    return {
        "requested": job.requested,
        "last": runs[0] if runs else 0,
        "last2": runs[1] if len(runs) > 1 else 0,
        "last3": runs[2] if len(runs) > 2 else 0,
        "ave2": mean(runs[:2]),
        "ave3": mean(runs[:3]),
        "ave_all": mean(runs),
        "processors": job.processors,
        "user_processors": usual,
        "relative_processors": job.processors / usual if past else 0,
        "running_processors": mean(widths),
        "running_jobs": len(mine),
        "longest_running": max(elapsed, default=0),
        "total_running": sum(elapsed),
        "occupied": sum(widths),
        # jobs of an earlier simulation may have ended later
        "break_time": max(now - past[-1].end, 0) if past else 0,
        "day_cos": cos(day),
        "day_sin": sin(day),
        "week_cos": cos(week),
        "week_sin": sin(week),
    }


class Estimator:
    """One estimate: of ``hpcgym.simulate``, but those by regression, which are to be predictors."""

    def __init__(self, estimate: Any) -> None:
        self.estimate = estimate
        self.predictor: Any = None
        if isinstance(estimate, str) and estimate == "typical-ratio":
            self.predictor = TypicalRatio()
        if hasattr(estimate, "predict_one"):
            self.predictor = copy.deepcopy(estimate)
        known = ("requested", "double-requested", "clairvoyant")
        words = isinstance(estimate, str) and estimate not in known
        self.learns = words or self.predictor is not None

    def predict(
        self, job: Any, now: int, past: Sequence[Any], running: Sequence[Any], elapsed: int = 0
    ) -> int:
        """Return whole seconds: known beforehand, or by what has ended, up to the request."""
        if self.estimate == "requested":
            return int(job.requested)
        if self.estimate == "double-requested":
            return int(2 * job.requested)
        if self.estimate == "clairvoyant":
            return int(job.actual)
        if isinstance(self.estimate, str) and self.predictor is None:
            return cut(by_history(self.estimate, job, past), job)
        if self.predictor is None:
            return max(whole_seconds(self.estimate[job.number]), 1)
        x = features(job, now, past, running)
        job.seen = job.seen or x  # as it was at first
        return cut(self.predictor.predict_one(known_of(job, x, elapsed)), job)

    def learn(self, job: Any) -> None:
        """Learn a job that has ended, as it was seen when it was submitted."""
        if self.predictor is not None:
            self.predictor.learn_one(known_of(job, job.seen, 0), float(job.actual))


def known_of(job: Any, x: dict[str, float], elapsed: int) -> dict[str, Any]:
    """Return what a predictor is told of a job."""
    return {**x, "user": job.user, "job": job.number + 1, "elapsed": elapsed}


def by_history(name: str, job: Any, past: Sequence[Any]) -> int | Fraction:
    """Return a prediction by the user's ended jobs: "user-ratio" or "ave2" and so on."""
    if name == "user-ratio":
        if not past:
            return int(job.requested)
        whole = math.lcm(*(other.requested for other in past))  # fractions are added slowly
        ratios = sum(other.actual * (whole // other.requested) for other in past)
        return Fraction(job.requested * ratios, whole * len(past))
    k = int(name.removeprefix("ave"))
    last = [other.actual for other in past[-k:]]
    return int(sum(last) // k if len(last) == k else job.requested)


class TypicalRatio:
    """Requested time x a geometric mean: of the user's ratios, and of those as wide, averaged.

    Both are decayed means, in which one job of the wider class counts once: of the user, of all.
    All to 28 digits.
    """

    def __init__(self) -> None:
        # user, processors, logarithm of the ratio
        self.ended: list[tuple[int, float, Decimal]] = []
        self.total = Decimal(0)

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        """Learn how a request was used."""
        ratio = (Decimal(y) / Decimal(x["requested"])).ln()
        self.ended.append((x["user"], x["processors"], ratio))
        self.total += ratio

    def predict_one(self, x: dict[str, Any]) -> Decimal:
        """Return the prediction for one job."""
        everyone = self.total / max(len(self.ended), 1)
        mine = [(width, ratio) for user, width, ratio in self.ended if user == x["user"]]
        of_user = self.shrunk([ratio for _, ratio in mine], everyone)
        as_wide = [ratio for width, ratio in mine if width == x["processors"]]
        return Decimal(x["requested"]) * ((of_user + self.shrunk(as_wide, of_user)) / 2).exp()

    def shrunk(self, ratios: Sequence[Decimal], wider: Decimal) -> Decimal:
        """Return a decayed mean, in which the wider class counts as one job."""
        count = total = Decimal(0)
        for ratio in ratios:
            count, total = count * DECAY + 1, total * DECAY + ratio
        return (total + wider) / (count + 1)


def cut(seconds: float | Decimal | Fraction, job: Any) -> int:
    """From 1 s to the requested time, which also stands for what is no number."""
    if math.isnan(seconds) or math.isinf(seconds):
        return int(job.requested)
    return int(min(max(whole_seconds(abs(Fraction(seconds))), 1), job.requested))


def whole_seconds(seconds: float | Decimal | Fraction) -> int:
    """Round down, but that less than a microsecond below a whole second is that second."""
    return math.floor(Fraction(seconds) + MICROSECOND)
