"""Predictors that are rules over a user's history."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Any


class DataDriven:
    """The data-driven heuristic D of Remediani 2017, section 3.1.2: six rules, the first that fits.

    The prediction is the run time of the user's last ended job

    1. with the same name, queue, requested time and processors,
    2. the same, but for names that only begin alike,
    3. with the same name, queue and requested time,
    4. the same, but for names that only begin alike,
    5. with the same name, else with one that begins alike,
    6. and without one of these, the requested time.

    The name is what ``x["code"]`` holds: a text, or the number that logs of the Standard
    Workload Format have. Names begin alike if they are the same up to a number at their end
    ("run_12" and "run_7"); a number as a whole begins like no other. Jobs of unknown name, as in
    logs that have none, are all taken to have the same.
    """

    def __init__(self) -> None:
        self._run_times: dict[tuple[Hashable, ...], float] = {}

    def predict_one(self, x: dict[str, Any]) -> float:
        """Return the run time [s] of a job, from the last one that was most like it."""
        for key in _profiles(x):
            if key in self._run_times:
                return self._run_times[key]
        return float(x["requested"])

    def learn_one(self, x: dict[str, Any], y: float) -> DataDriven:
        """Remember a job that has ended and ran for ``y`` [s]."""
        for key in _profiles(x):
            self._run_times[key] = y
        return self


def _profiles(x: dict[str, Any]) -> Iterator[tuple[Hashable, ...]]:
    """Yield what a job is alike others in, the most important rule first."""
    user, name = x["user"], x["code"]
    stem = re.sub(r"\d+$", "", name) if isinstance(name, str) else name
    where = (x["queue"], x["requested"])
    yield (1, user, name, *where, x["processors"])
    yield (2, user, stem, *where, x["processors"])
    yield (3, user, name, *where)
    yield (4, user, stem, *where)
    yield (5, user, name)
    yield (6, user, stem)
