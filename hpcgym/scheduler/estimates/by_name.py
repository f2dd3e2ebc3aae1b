"""Estimates of run times by name: formulas, heuristics and regression; and corrections."""

from __future__ import annotations

import copy
import math
import re
from collections import ChainMap
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, check_choice, is_number, unknown
from hpcgym.scheduler import allocations
from hpcgym.workload.columns import MAX_TIME

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload


# --- What a prediction of a job's run time may look at --------------------------------------------

#: Name -> meaning, at the job's submission. Features of users are about their ended jobs unless the
#: meaning says otherwise, and 0 as long as no run has ended. The order is that of the table.
JOB_FEATURES = {
    "requested": "requested time [s]",
    "last": "run time of the user's last job [s]",
    "last2": "run time of the last but one [s]",
    "last3": "run time of the last but two [s]",
    "ave2": "mean run time of the user's last two jobs, or of the one that there is [s]",
    "ave3": "mean run time of the last three, or of those that there are [s]",
    "ave_all": "mean run time of all jobs of the user [s]",
    "processors": "processors requested",
    "user_processors": "mean of the processors that the user's jobs requested",
    "relative_processors": "processors / user_processors",
    "running_processors": "mean of the processors of the user's running jobs",
    "running_jobs": "number of the user's running jobs",
    "longest_running": "how long the first started of them has run [s]",
    "total_running": "the sum of how long they have run [s]",
    "occupied": "sum of their processors",
    "break_time": "time since a job of the user ended [s]",
    "day_cos": "cosine of the time of day, 2 pi a day from the trace's time 0",
    "day_sin": "sine of the same",
    "week_cos": "cosine of the time of the week, 2 pi a week from the trace's time 0",
    "week_sin": "sine of the same",
}

#: Further inputs of predictors in Python: numbers as in the log, and how long the job has run [s]
#: when a prediction that was too short is to be replaced; 0 at submission.
JOB_FACTS = ("user", "group", "code", "queue", "job", "elapsed")

#: Inputs that are no numbers, for predictors that list them in an attribute ``asks_for``: NAME, the
#: name of a job's code, or its number in a log without names; REQUEST, a tuple of the number of
#: units and what each takes of every resource but memory, or the processors of jobs without units.
NAME, REQUEST = "name", "request"


# --- Predictors that are rules over a user's history ----------------------------------------------


class DataDriven:
    """The data-driven heuristic D of Remediani 2017, section 3.1.2: the first of six rules applies.

    The prediction is the run time of the last ended job of the user

    1. with the same name, queue, requested time and request;
    2. as 1, but the names only share a prefix;
    3. with the same name, queue and requested time;
    4. as 3, but the names only share a prefix;
    5. with the same name, or else a name that shares a prefix;
    6. without such a job, the prediction is the requested time.

    A request is the number of units of a job, and what each takes of every resource but memory:
    CPU, GPU, MIC and nodes on Eurora. A prefix has at least one character; longer shared prefixes
    come first. A program of the document's co-authors does the same
    (``misc/datadriven_predictor.py`` of github.com/cgalleguillosm/cp_dispatchers).

    In logs that name no codes a number takes the place of the name, and has no prefix. All jobs of
    unknown name count as having the same name.
    """

    asks_for = (NAME, REQUEST)

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
    """Yield the keys by which a job is like others, the most important rule first."""
    user, name = x["user"], x[NAME]
    where = (x["queue"], x["requested"])
    prefixes = [name[:end] for end in range(len(name), 0, -1)] if isinstance(name, str) else []
    for rule, alike in ((1, (*where, x[REQUEST])), (3, where), (5, ())):
        yield (rule, user, name, *alike)
        for prefix in prefixes:
            yield (rule + 1, user, prefix, *alike)


# --- Learned regression of run times --------------------------------------------------------------

#: Names of the branches of a loss and of the weightings of jobs: their codes are their places.
BRANCHES = ("absolute", "squared", "exponential")
WEIGHTINGS = ("1", "long", "wide", "small", "large")

_PREFIX = "regression"


@dataclass(frozen=True)
class Regression:
    """An on-line regression of run times (Glesser 2016, section 7.3.2), compiled.

    A prediction is f = w . Phi(x): the products of up to ``degree`` features, weighted. Each job
    that ends is learned by one step of NAG (Ross, Mineiro and Langford 2013) on the loss

        weight * over(f - p - threshold)    if f is longer than the run time p + threshold,
        weight * under(p + threshold - f)   else,

    plus ``l2`` / 2 times the sum of squares of w. The predicted run time is abs(f), in whole
    seconds, from 1 to the requested time.

    Attributes
    ----------
    over, under : the cost of a prediction that is z [s] too long, or too short: "absolute"
        (scale z), "squared" (scale z^2) or "exponential" (exp(scale z)).
    over_scale, under_scale : above 0.
    threshold : [s] predictions up to so much too long count as too short.
    weight : weight of a job, q its processors: "1", "long" 5 + log(p/q), "wide" 5 + log(q/p),
        "small" 11 + log(1/(q p)), "large" 1 + log(q p) (table 7.3, where the last is without 1).
    eta : the learning rate.
    l2 : the cost of large weights.
    features : names of :data:`hpcgym.scheduler.estimates.JOB_FEATURES`.
    degree : 1 or 2.

    ``eta`` and ``l2`` are by default those of the published campaign.

    Raises
    ------
    HpcgymError : a value that is not one of these.

    Examples
    --------
    >>> from hpcgym.scheduler.estimates import Regression
    >>> print(Regression.parse("e-loss"))
    regression:over=squared,under=absolute,weight=large
    """

    over: str = "squared"
    under: str = "squared"
    over_scale: float = 1.0
    under_scale: float = 1.0
    threshold: float = 0.0
    weight: str = "1"
    eta: float = 5000.0
    l2: float = 4e9
    features: tuple[str, ...] = tuple(JOB_FEATURES)
    degree: int = 2

    def __post_init__(self) -> None:
        for name, known in (("over", BRANCHES), ("under", BRANCHES), ("weight", WEIGHTINGS)):
            if getattr(self, name) not in known:
                raise HpcgymError(unknown(name, getattr(self, name), known))
        for name in ("over_scale", "under_scale", "threshold", "eta", "l2"):
            value = _number(name, getattr(self, name), name in ("threshold", "l2"))
            object.__setattr__(self, name, value)
        object.__setattr__(self, "features", _features(self.features))
        if self.degree not in (1, 2):
            raise HpcgymError(f"degree must be 1 or 2, not {self.degree!r}")

    @classmethod
    def parse(cls, text: str) -> Regression:
        """Return the regression that a text stands for.

        Parameters
        ----------
        text : "e-loss" (equation 7.3: squared over, absolute under, large jobs weigh more),
            "regression", or "regression:" and attributes parted by commas, as ``str`` gives it;
            features are joined by "+".

        Raises
        ------
        HpcgymError : an unknown attribute, or a value that it cannot have.
        """
        if text == "e-loss":
            return cls(over="squared", under="absolute", weight="large")
        head, _, tail = text.partition(":")
        if head != _PREFIX:
            raise HpcgymError(unknown("regression", text, ("e-loss", "regression:over=...")))
        given: dict[str, Any] = {}
        for part in filter(None, tail.split(",")):
            name, sign, value = part.partition("=")
            if not sign:
                raise HpcgymError(
                    f"{text!r}: {part!r} is no attribute=value; commas part attributes, and "
                    "features are joined by '+', as in features=requested+ave2"
                )
            if name not in [field.name for field in fields(cls)]:
                raise HpcgymError(unknown(f"attribute in {text!r}", name, _NAMES))
            given[name] = _read(name, value)
        return cls(**given)

    def __str__(self) -> str:
        """Return the text that :meth:`parse` takes."""
        usual = type(self)()
        parts = [
            f"{field.name}={_write(getattr(self, field.name))}"
            for field in fields(self)
            if getattr(self, field.name) != getattr(usual, field.name)
            or field.name in ("over", "under", "weight")
        ]
        return f"{_PREFIX}:{','.join(parts)}"


_NAMES = [field.name for field in fields(Regression)]
_TEXTS = ("over", "under", "weight")


def _number(name: str, value: Any, may_be_0: bool) -> float:
    """Return a number of at least 0, or above it."""
    good = is_number(value) and math.isfinite(value)
    if not good or value < 0 or (value == 0 and not may_be_0):
        least = "of at least 0" if may_be_0 else "above 0"
        raise HpcgymError(f"{name} must be a number {least}, not {value!r}")
    return float(value)


def _features(names: Any) -> tuple[str, ...]:
    """Return names of features, checked."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise HpcgymError(f"features must be names of features, at least one, not {names!r}")
    for name in names:
        check_choice("feature", name, JOB_FEATURES)
    if len(set(names)) < len(names):
        raise HpcgymError("features: a feature is named twice")
    return tuple(names)


def _read(name: str, text: str) -> Any:
    """Return the value of an attribute that a text gives."""
    if name in _TEXTS:
        return text
    if name == "features":
        return tuple(text.split("+"))
    try:
        return int(text) if name == "degree" else float(text)
    except ValueError:
        raise HpcgymError(f"{name} must be a number, not {text!r}") from None


def _write(value: Any) -> str:
    """Return an attribute's value as a text."""
    if isinstance(value, tuple):
        return "+".join(value)
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


# --- The estimates of running times by name -------------------------------------------------------

#: A prediction less than this [s] below a whole second is rounded up to it: it is a rounded sum.
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
    "requested": allocations.TO_REQUESTED,
    "incremental": allocations.INCREMENTAL,
    "recursive-doubling": allocations.DOUBLING,
    "predicted-again": allocations.AGAIN,
    "kill": allocations.KILL,
    "next-second": allocations.UNCORRECTED,
}


@runtime_checkable
class Predictor(Protocol):
    """A learner of run times: a regressor of river, or any object with these two methods."""

    def predict_one(self, x: dict[str, Any]) -> float:
        """Return the run time [s] of a job with features ``x``.

        ``x`` has the names of :data:`hpcgym.scheduler.estimates.JOB_FEATURES` and of
        :data:`hpcgym.scheduler.estimates.JOB_FACTS`.
        """

    def learn_one(self, x: dict[str, Any], y: float) -> Any:
        """Learn from a job that has ended, had features ``x`` and ran for ``y`` [s]."""


@dataclass(frozen=True)
class NamedEstimate:
    """An estimate that has a name.

    Attributes
    ----------
    meaning : description in lists of names.
    label : description in tables and pictures; ``{last}`` stands for a number.
    known : a function of requested times and actual run times that returns the predictions,
        (n_jobs,) int64 [s], if they are known beforehand; else None.
    predictor : a function that returns a new predictor in Python, if one learns; else None.
    last : for a formula, how many of the user's last run times it looks at.
    by_class : whether a formula looks at ratios; else none are kept.
    """

    meaning: str
    label: str
    known: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]] | None = None
    predictor: Callable[[], Predictor] | None = None
    last: int = 0
    by_class: bool = False


#: Name -> estimate that is a formula over what is remembered of users, in the order of the engine,
#: which has the formulas. Predictions are whole seconds, from 1 to the requested time, which also
#: replaces results that are no number. The first stands for ave1, ave2, ave3 and so on.
FORMULAS = {
    "ave2": NamedEstimate(
        "the mean of the user's last two ended jobs, at most the requested time; the requested "
        "time while there are not two (Tsafrir et al. 2007; Glesser 2016, section 7.2.2; L2 of "
        "Galleguillos et al. 2020). ave1, ave3 and so on: of the last one, three ...",
        "mean of the user's last {last} run times",
        last=2,
    ),
    "user-ratio": NamedEstimate(
        "requested time x the mean of run time / requested time of the user's ended jobs",
        "requested times x the user's mean ratio",
    ),
    "typical-ratio": NamedEstimate(
        "requested time x the geometric mean of run time / requested time of the user's ended "
        "jobs, and of those as wide, the latest counting most",
        "requested times x the user's typical ratio",
        by_class=True,
    ),
}

#: Name -> estimate whose predictions are known when jobs are submitted, and never too short.
KNOWN = {
    "requested": NamedEstimate(
        "the requested time", "requested times", lambda requested, run: requested
    ),
    "double-requested": NamedEstimate(
        "twice the requested time",
        "twice the requested times",
        lambda requested, run: np.minimum(2 * requested, MAX_TIME),
    ),
    "clairvoyant": NamedEstimate(
        "the actual run time, which no real scheduler knows",
        "actual run times",
        lambda requested, run: run,
    ),
}

#: Name -> estimate that learns in another way than by a formula; regressions are compiled.
_OTHERS = {
    "data-driven": NamedEstimate(
        "the last ended job of the user that is most alike, by name, queue, requested "
        "time and processors (D: Remediani 2017, section 3.1.2)",
        "the user's last job that was most alike",
        predictor=DataDriven,
    ),
    "e-loss": NamedEstimate(
        "regression learned on-line with the E-Loss (Glesser 2016, section 7.5.3)",
        "run times learned with the E-Loss",
    ),
    "regression": NamedEstimate(
        "regression learned on-line; regression:over=...,under=...,weight=... says how",
        "run times learned by regression",
    ),
}

#: Name -> estimate of a job's run time when it is submitted; ``meaning`` describes it. All entries
#: of the three tables are estimates, also those that are added later.
ESTIMATES: Mapping[str, NamedEstimate] = ChainMap[str, Any](_OTHERS, FORMULAS, KNOWN)


#: An estimate as users give it; checked, it is a name, an array or a predictor.
Estimate = str | Sequence[float] | NDArray[Any] | Regression | Predictor


def check_estimate(estimate: Any, argument: str = "estimate") -> Estimate:
    """Return an estimate as a known name, a read-only array or a copy of a predictor.

    Raises
    ------
    HpcgymError : an unknown name, a class in place of a predictor, or predictions that are no list
        of finite numbers from 0 to 2^53 s.
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
    if (given > MAX_TIME).any():
        job = int((given > MAX_TIME).argmax())
        raise HpcgymError(f"{argument} holds {given[job]:g} s for job {job}, beyond 2^53 s")
    if given.flags.writeable:
        given = given.copy()
        given.flags.writeable = False
    return given


def _check_name(name: str, argument: str) -> str:
    """Return the name of an estimate, checked; that of a regression in full."""
    if name.startswith("regression:"):
        return str(Regression.parse(name))
    if name not in ESTIMATES and average_of(name) is None:
        raise HpcgymError(unknown(argument, name, ESTIMATES, "an array of seconds"))
    return name


def average_of(name: str) -> int | None:
    """Return the number k of jobs that ``ave<k>`` is the mean of, None for another name."""
    match = re.fullmatch(r"ave([1-9]\d{0,3})", name)
    return int(match[1]) if match else None


def formula_of(name: str) -> tuple[str, NamedEstimate] | None:
    """Return an estimate's name in the table, and its formula with the number of run times.

    None for an estimate that is no formula.
    """
    last = average_of(name)
    if last is not None:
        return "ave2", replace(FORMULAS["ave2"], last=last)
    return (name, FORMULAS[name]) if name in FORMULAS else None


def label_of(name: str) -> str:
    """Return the label of an estimate in tables and pictures."""
    if name == "ave1":
        return "the user's last run time"
    named = formula_of(name)
    if named is not None:
        return named[1].label.format(last=named[1].last)
    return ESTIMATES[name].label if name in ESTIMATES else name


def learns(estimate: Estimate) -> bool:
    """Return whether the run times become known during the simulation."""
    if isinstance(estimate, str):
        return estimate not in KNOWN
    return not isinstance(estimate, np.ndarray)


def knows_run_times(estimate: Estimate) -> bool:
    """Return whether an estimate looks at actual run times, or at those of given jobs."""
    if isinstance(estimate, str):
        known = KNOWN[estimate].known if estimate in KNOWN else None
        second = np.ones(1, np.int64)
        return known is not None and bool(
            known(3 * second, second)[0] != known(3 * second, 2 * second)[0]
        )
    return isinstance(estimate, np.ndarray)


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
    estimate : as :func:`check_estimate` returns it. Predictions in an array, (n_jobs,) [s], are
        rounded down to whole seconds, at least 1, as learned ones are.
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
