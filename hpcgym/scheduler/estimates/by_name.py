"""The estimates of running times by name, and the corrections of estimates that were too short."""

from __future__ import annotations

import copy
import re
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, unknown
from hpcgym.scheduler import codes
from hpcgym.scheduler.estimates.formulas import FORMULAS, Formula
from hpcgym.scheduler.estimates.heuristics import DataDriven
from hpcgym.scheduler.estimates.regression import Regression
from hpcgym.workload.model import MAX_TIME

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

#: A prediction that is less than this below a whole second [s] is that second: it is a rounded sum.
ROUNDED_S = 1e-6

#: Name -> what is predicted once a job has run as long as predicted (Glesser 2016, section 7.4.2).
CORRECTIONS = {
    "requested": "the requested time",
    "incremental": "the first prediction + 1 min, 5 min, 15 min, 30 min, 1 h, ... 100 h in turn, "
    "at most the requested time",
    "recursive-doubling": "twice the running time so far",
    "predicted-again": "what the estimate, which must be one that learns, then says; the requested "
    "time if that has passed",
    "kill": "nothing: the job is killed (Galleguillos et al. 2020, section 2.1)",
    "next-second": "that it ends in the next second, again and again "
    "(Galleguillos et al. 2020, section 2.2); only dispatchers reckon so",
}

CORRECTION_CODES = {
    "requested": codes.TO_REQUESTED,
    "incremental": codes.INCREMENTAL,
    "recursive-doubling": codes.DOUBLING,
    "predicted-again": codes.AGAIN,
    "kill": codes.KILL,
    "next-second": codes.UNCORRECTED,
}


@runtime_checkable
class Predictor(Protocol):
    """What learns run times: a regressor of river, or anything with these two methods."""

    def predict_one(self, x: dict[str, Any]) -> float:
        """Return the run time [s] of a job with features ``x``.

        ``x`` has the names of :data:`hpcgym.scheduler.estimates.JOB_FEATURES` and of
        :data:`hpcgym.scheduler.estimates.JOB_FACTS`.
        """

    def learn_one(self, x: dict[str, Any], y: float) -> Any:
        """Learn from a job that has ended, had features ``x`` and ran for ``y`` [s]."""


@dataclass(frozen=True)
class Named:
    """An estimate that is no :class:`hpcgym.scheduler.estimates.formulas.Formula`.

    Attributes
    ----------
    meaning : what it is, in lists of names.
    label : what it takes run times to be, in tables and pictures.
    known : returns the predictions, (n_jobs,) int64 [s], of requested times and actual run times,
        where they are known beforehand; else None.
    predictor : returns a new predictor in Python, where one learns; else None.
    """

    meaning: str
    label: str
    known: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]] | None = None
    predictor: Callable[[], Predictor] | None = None


#: Name -> estimate whose predictions are known when jobs are submitted, and never too short.
KNOWN = {
    "requested": Named("the requested time", "requested times", lambda requested, run: requested),
    "double-requested": Named(
        "twice the requested time",
        "twice the requested times",
        lambda requested, run: np.minimum(2 * requested, MAX_TIME),
    ),
    "clairvoyant": Named(
        "the actual run time, which no real scheduler knows",
        "actual run times",
        lambda requested, run: run,
    ),
}

#: Name -> estimate that learns in another way than by a formula; regressions are compiled.
_OTHERS = {
    "data-driven": Named(
        "the last ended job of the user that is most alike, by name, queue, requested "
        "time and processors (D: Remediani 2017, section 3.1.2)",
        "the user's last job that was most alike",
        predictor=DataDriven,
    ),
    "e-loss": Named(
        "regression learned on-line with the E-Loss (Glesser 2016, section 7.5.3)",
        "run times learned with the E-Loss",
    ),
    "regression": Named(
        "regression learned on-line; regression:over=...,under=...,weight=... says how",
        "run times learned by regression",
    ),
}

#: Name -> what a job's running time is taken to be when it is submitted; ``meaning`` says it.
#: Whatever is put into one of the three tables is an estimate from then on.
ESTIMATES: Mapping[str, Named | Formula] = ChainMap[str, Any](_OTHERS, FORMULAS, KNOWN)


#: An estimate as users give it; checked, it is a name, an array or a predictor.
Estimate = str | Sequence[float] | NDArray[Any] | Regression | Predictor


def check_estimate(estimate: Any, argument: str = "estimate") -> Estimate:
    """Return an estimate as a known name, an array that nobody can change or a copy of a predictor.

    Raises
    ------
    HpcgymError : an unknown name, a class in place of a predictor, or predictions that are no list
        of finite numbers.
    """
    if isinstance(estimate, str):
        return _check_name(estimate, argument)
    if isinstance(estimate, type):  # a class has the methods of its objects, but cannot be asked
        name = estimate.__name__
        raise HpcgymError(f"{argument} must be a predictor, not the class {name}; give {name}()")
    if isinstance(estimate, Regression):
        return str(estimate)
    if isinstance(estimate, Predictor):
        return copy.deepcopy(estimate)
    try:
        given = np.asarray(estimate)
    except ValueError:  # lists of unequal length
        given = np.asarray(None)
    if given.ndim != 1:
        raise HpcgymError(
            f"{argument} must be a name, an array of one number of seconds a job, or have "
            "predict_one and learn_one"
        )
    if given.dtype.kind not in "iuf" or not np.isfinite(given).all():
        raise HpcgymError(f"{argument} must hold finite numbers of seconds")
    if (given < 0).any():
        raise HpcgymError(f"{argument} must not hold negative times; give requested times instead")
    if given.flags.writeable:
        given = given.copy()
        given.flags.writeable = False
    return given


def _check_name(name: str, argument: str) -> str:
    """Return the name of an estimate, checked; a regression's in full."""
    if name.startswith("regression:"):
        return str(Regression.parse(name))
    if name not in ESTIMATES and average_of(name) is None:
        raise HpcgymError(unknown(argument, name, ESTIMATES, "an array of seconds"))
    return name


def average_of(name: str) -> int | None:
    """Return the number k of jobs that ``ave<k>`` is the mean of, None for another name."""
    found = re.fullmatch(r"ave([1-9]\d{0,3})", name)
    return int(found[1]) if found else None


def formula_of(name: str) -> tuple[str, Formula] | None:
    """Return the name in the table and the formula of an estimate, with its number of run times.

    None for an estimate that is no formula.
    """
    last = average_of(name)
    if last is not None:
        return "ave2", replace(FORMULAS["ave2"], last=last)
    return (name, FORMULAS[name]) if name in FORMULAS else None


def label_of(name: str) -> str:
    """Return what an estimate of that name takes run times to be, in tables and pictures."""
    if name == "ave1":
        return "the user's last run time"
    found = formula_of(name)
    if found is not None:
        return found[1].label.format(last=found[1].last)
    return ESTIMATES[name].label if name in ESTIMATES else name


def learns(estimate: Estimate) -> bool:
    """Return whether the run times become known during the simulation."""
    if isinstance(estimate, str):
        return estimate not in KNOWN
    return not isinstance(estimate, np.ndarray)


def predictor_of(estimate: Estimate) -> Predictor | None:
    """Return a predictor in Python for an estimate, a copy of its own; None if it is compiled."""
    if isinstance(estimate, str):
        named = _OTHERS.get(estimate)
        return named.predictor() if named is not None and named.predictor is not None else None
    return copy.deepcopy(estimate) if isinstance(estimate, Predictor) else None


def predicted_run_times(
    estimate: Estimate,
    run_time: NDArray[np.int64],
    workload: Workload,
    argument: str = "estimate",
) -> NDArray[np.int64] | None:
    """Return the predictions that are known beforehand, None if they arise in the simulation.

    Parameters
    ----------
    estimate : as :func:`check_estimate` returns it; predictions, shape (n_jobs,) in seconds, are
        rounded down to whole seconds as learned ones are, at least 1.
    run_time : (n_jobs,) int64 [s], the actual run times.
    argument : what an error calls the estimate.

    Raises
    ------
    HpcgymError : an array of another shape.
    """
    if learns(estimate):
        return None
    if isinstance(estimate, str):
        known = KNOWN[estimate].known
        assert known is not None
        return known(workload.requested_time, run_time)
    assert isinstance(estimate, np.ndarray)
    if estimate.shape != run_time.shape:
        raise HpcgymError(
            f"{argument} has {len(estimate):,} predictions, the workload {len(run_time):,} jobs"
        )
    # exact: no time is beyond 2**53, the whole numbers that float64 holds
    seconds = np.clip(estimate.astype(np.float64) + ROUNDED_S, 1, MAX_TIME)
    return seconds.astype(np.int64)
