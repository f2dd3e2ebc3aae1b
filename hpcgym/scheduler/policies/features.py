"""The job features that policies weigh, each a line of one table.

A feature is known when a job is submitted, but for the time that the job waits: its value is
``static + wait / patience``. All look at the requested time, which the scheduler knows, or at a
predicted run time in its place, never at the actual one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError, WorkloadWarning, check_choice, warn_caller
from hpcgym.naming import NICE
from hpcgym.scheduler.policies import formulas
from hpcgym.workload.model import MISSING
from hpcgym.workload.names import names_of

if TYPE_CHECKING:
    from hpcgym.workload.model import Workload

Column = NDArray[np.float64]  # (n_jobs,)


class JobColumns:
    """What features are computed from: columns of a workload, (n_jobs,) float64, when asked for.

    ``times`` [s], (n_jobs,), stand for the requested times, where they are given.
    """

    def __init__(self, workload: Workload, times: NDArray[np.int64] | None = None):
        self._workload = workload
        self._times = workload.requested_time if times is None else times

    @cached_property
    def submit(self) -> Column:
        """Submit time [s], by the log's clock."""
        return self._workload.submit_time.astype(np.float64)

    @cached_property
    def since_first(self) -> Column:
        """Submit time [s], counted from the first submission of the whole log."""
        return self._workload.since_first_submit.astype(np.float64)

    @cached_property
    def requested(self) -> Column:
        """Requested time [s], or the run time that stands for it."""
        return self._times.astype(np.float64)

    @cached_property
    def processors(self) -> Column:
        """Number of processors requested."""
        return self._workload.requested_processors.astype(np.float64)

    @cached_property
    def nice(self) -> Column:
        """What users of Slurm take from the priority of each job, 0 where it is unknown."""
        told = self.field(NICE)
        return np.where(told == MISSING, 0.0, told)

    def field(self, name: str) -> Column:
        """Return a column of the log, by its name in the workload."""
        return self._workload.columns[name].astype(np.float64)

    def is_called(self, column: str, name: str) -> NDArray[np.bool_]:
        """Return whether the number of each job in a column is called so, (n_jobs,) bool.

        A number without a name in the log is called by its digits.

        Warns
        -----
        WorkloadWarning : the log has names, of which this is none, but nearly one.
        """
        names = names_of(self._workload, column)
        near = get_close_matches(name, names.values(), 1)
        if near and name not in names.values():
            warn_caller(
                f"{self._workload.name}: nothing is called {name!r} in {column}; did you mean"
                f" {near[0]!r}?",
                WorkloadWarning,
            )
        numbers = [number for number, called in names.items() if called == name]
        if name.isdecimal() and int(name) not in names and len(name) < 10:
            numbers.append(int(name))
        return np.isin(self._workload.columns[column], numbers)


@dataclass(frozen=True)
class Feature:
    """A named feature of a waiting job.

    Attributes
    ----------
    meaning : what it is, with its unit.
    source : where its formula comes from.
    static : the part that waiting does not change, (n_jobs,) float64; None means 0.
    patience : seconds of waiting that add 1, (n_jobs,) float64; None: waiting changes nothing.
    """

    meaning: str
    source: str
    static: Callable[[JobColumns], Column] | None = None
    patience: Callable[[JobColumns], Column] | None = None


def check_features(argument: str, names: Iterable[str], usage: bool = False) -> None:
    """Raise an HpcgymError unless these are names of features of jobs.

    ``usage``: they may depend on what users have used, too.
    """
    known = meanings(usage)
    for name in names:
        if not isinstance(name, str):
            raise HpcgymError(f"{argument} must be names of features, not {name!r}")
        if name in USER_FEATURES and not usage:
            raise HpcgymError(
                f"{argument}: {name!r} depends on what users have used, which nobody counts here"
            )
        check_choice(argument, name, known)


def meanings(usage: bool) -> dict[str, str]:
    """Return the features that weights may be for, name -> meaning.

    ``usage``: also those that depend on what users have used.
    """
    static = {name: feature.meaning for name, feature in FEATURES.items()}
    return {**static, **USER_FEATURES} if usage else static


_LEGRAND = "Legrand et al. 2018, section 4.1"
_TANG = "Tang et al., Cluster 2009"
_CARASTAN = "Carastan-Santos and de Camargo, SC 2017"

#: Name -> feature. The first six, in this order, are the features of Legrand et al. 2018.
FEATURES: dict[str, Feature] = {
    "processors": Feature("requested processors q", _LEGRAND, static=formulas.processors),
    "requested": Feature("requested time p [s]", _LEGRAND, static=formulas.requested),
    "wait": Feature("waiting time [s]", _LEGRAND, patience=lambda jobs: np.ones_like(jobs.submit)),
    "ratio": Feature("p / q [s]", _LEGRAND, static=formulas.ratio),
    "expansion": Feature(
        "expansion factor (wait + p) / p",
        _LEGRAND,
        static=formulas.one,
        patience=lambda jobs: jobs.requested,
    ),
    "area": Feature("p q [processor seconds]", _LEGRAND, static=formulas.area),
    "unicef": Feature("wait / (log2(q) p)", _TANG, patience=formulas.serial_patience),
    "f1": Feature("log10(p) q + 870 log10(s)", _CARASTAN, static=formulas.f1),
    "f2": Feature("sqrt(p) q + 25,600 log10(s)", _CARASTAN, static=formulas.f2),
    "f3": Feature("p q + 6,860,000 log10(s)", _CARASTAN, static=formulas.f3),
    "f4": Feature("p sqrt(q) + 530,000 log10(s)", _CARASTAN, static=formulas.f4),
}

#: Features of a job's user rather than the job: priorities of fair share, from 0 to 1, which change
#: when jobs end. Name -> meaning. Only simulations that keep books of usage know them.
USER_FEATURES: dict[str, str] = {
    "fairshare": "2^(-U / S) of the user's usage U of processors and share S",
    "energy_fairshare": "the same of the energy that the user's jobs have used",
}

#: Features of what the machine and the queue are like at a pass, from co-scheduling. Name ->
#: meaning. Only simulations in which jobs share nodes know them.
PASS_FEATURES: dict[str, str] = {
    "fit": "nodes that the job needs over those that have room for it; -1 if these are too few",
    "popularity": "other waiting jobs with which it would gain, over all others",
    "shortness": "the shortest requested time of all waiting jobs over its own",
}

#: The features that a vector of six weights is for, in order (Legrand et al. 2018, section 4.3).
WEIGHTED_FEATURES = tuple(FEATURES)[:6]
