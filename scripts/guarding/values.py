"""The values of rules, by the names that cases have: the library's own, and some made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from guarding import library

PURE = (
    "fcfs", "lcfs", "spf", "lpf", "sqf", "lqf", "saf", "laf", "sexp", "lexp", "srf", "lrf",
    "sjf", "wfp3", "unicef", "f1", "f2", "f3", "f4",
)  # fmt: skip
BY_USAGE = ("fairshare", "energy-fairshare", "fs+efs")
BY_PASS = ("filler", "popularity", "sjf-filler", "popularity-filler")

#: Policies that have no name of the library.
WEIGHTS: dict[str, Any] = {
    "weights": (0.1, -0.2, 0.0, 0.0, 0.0, 0.7),
    "weights-too": (-1.0, 1 / 3, 20.0, 0.5, -0.1, 0.0),
    "weights-wait": (0.0, 0.0, 1.0, 0.0, -600.0, 0.0),
    "mapping": {"area": -1.0, "wait": 50.0, "f1": -0.5},
    "mapping-unicef": {"unicef": 3.0, "expansion": 0.25, "f2": -1e-3},
    "mixed-usage": {"fairshare": 1.0, "wait": 1e-5},
    "mixed-energy": {"energy_fairshare": 0.5, "fairshare": 0.25, "requested": -1e-4},
    "pass-weights": {"fit": 0.5, "shortness": 1.0, "popularity": -0.25},
}
MIXED_USAGE = ("mixed-usage", "mixed-energy")
USAGE = (*BY_USAGE, *MIXED_USAGE)


def policy(name: str) -> Any:
    """Return a policy by name."""
    return WEIGHTS.get(name, name)


class Longest:
    """The longest run time of the user so far, whatever was predicted before."""

    def __init__(self) -> None:
        self.longest: dict[int, float] = {}

    def predict_one(self, x: Mapping[str, Any]) -> float:
        """Return a prediction [s]."""
        known = self.longest.get(x["user"], float(x["requested"]))
        return max(known, float(x.get("elapsed", 0)))

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        """Learn how long a job has run."""
        self.longest[x["user"]] = max(y, self.longest.get(x["user"], 0))


class Odd:
    """Predictions that are negative, no numbers, or far too long, in turns."""

    def __init__(self) -> None:
        self.ended = 0

    def predict_one(self, x: Mapping[str, Any]) -> float:
        """Return a prediction [s]."""
        return (-float(x["requested"]) / 2, float("nan"), 1e12, 0.0)[self.ended % 4]

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        """Count the jobs that have ended."""
        self.ended += 1


def _same(name: str, workload: Any) -> str:
    """Return the name, which needs no workload."""
    return name


def _given(workload: Any, seed: int) -> Any:
    """Return a given prediction for each job: too short, right, too long, beyond the request."""
    factors = np.array([0, 1, 5, 10, 10, 20, 70])
    chosen = factors[np.random.default_rng(seed).integers(len(factors), size=len(workload))]
    return workload.run_time * chosen // 10


_Make = Callable[[Any], Any]
_NAMED = (
    "requested", "clairvoyant", "double-requested", "ave2", "ave1", "ave3", "user-ratio",
    "typical-ratio", "data-driven", "e-loss", "regression",
)  # fmt: skip
_QUANTILE = "regression:over=absolute,under=absolute,over_scale=0.2,under_scale=0.8"
_FEW = "regression:over=absolute,under=exponential,under_scale=0.001,l2=0,features=requested+ave2"
#: Estimates of run times by name; a function of the workload.
ESTIMATES: dict[str, _Make] = {
    **{name: partial(_same, name) for name in _NAMED},
    "quantile": lambda workload: f"{_QUANTILE},weight=wide,threshold=30",
    "few-features": lambda workload: f"{_FEW},weight=small,degree=1",
    "loss": lambda workload: library.Regression("absolute", "squared", weight="long", eta=100.0),
    "given": lambda workload: _given(workload, 1),
    "given-too": lambda workload: _given(workload, 2),
    "longest": lambda workload: Longest(),
    "odd": lambda workload: Odd(),
    "own-data-driven": lambda workload: library.DataDriven(),
}
KNOWN = ("requested", "clairvoyant", "double-requested", "given", "given-too")
AVERAGES = ("ave1", "ave2", "ave3")
LEARNED = tuple(name for name in ESTIMATES if name not in (*KNOWN, *AVERAGES))

#: Rules of fair share by name.
SHARES: dict[str, Any] = {
    "usual": None,
    "for-ever": "half_life_s=inf",
    "day": "half_life_s=86400,damping=0.5",
    "minutes": "half_life_s=60",
    "users": library.FairShare(half_life_s=7200, shares={1: 2, 0: 0.5}),
    "groups": library.FairShare(half_life_s=36_000, accounts="group", shares={"group:1": 3}),
    "tree": library.FairShare(
        damping=2.0,
        shares={"physics": 3, 2: 5},
        accounts={0: "physics", 1: "physics", 2: "biology", "physics": "science"},
    ),
}

THRESHOLDS: dict[str, Any] = {"none": None, "0": 0, "100": 100, "7200": 7200, "half-day": 43_200.5}

HOLDS: dict[str, Any] = {
    "none": None,
    "0.2": 0.2,
    "both": {"share": 0.3, "from_s": 600, "factor": 20, "erode_s": 7200, "by": "both"},
}

#: Which values of a rule are made here, and how.
_MADE: dict[str, Mapping[str, Any]] = {
    "policy": WEIGHTS,
    "backfill_order": WEIGHTS,
    "fair_share": SHARES,
    "threshold": THRESHOLDS,
    "hold": HOLDS,
    "maintenance": {"whole": "30/90", "part": "30/90:processors=3"},
    "pairs_above": {"none": None, "0.9": 0.9, "1": 1, "1.1": 1.1},
}


def rules_of(row: Mapping[str, str], names: tuple[str, ...], workload: Any) -> dict[str, Any]:
    """Return the rules of a row, as ``simulate`` takes them; "-" stands for one that is not given.

    Parameters
    ----------
    row : factor -> name of its value.
    names : the factors that are rules.
    workload : whose run times are estimated.
    """
    rules = {}
    for name in names:
        given = row.get(name, "-")
        if given == "-":
            continue
        if name in ("estimate", "policy_estimate"):
            rules[name] = ESTIMATES[given](workload)
        else:
            rules[name] = _MADE.get(name, {}).get(given, given)
    return rules
