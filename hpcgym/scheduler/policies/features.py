"""The features of jobs that policies weigh, and how much they differ between jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import values_of
from hpcgym.elementary import log2
from hpcgym.errors import HpcgymError, WorkloadWarning, unknown, warn_caller
from hpcgym.names import NICE
from hpcgym.scheduler.policies.operations import FEATURE
from hpcgym.workload.amounts import asked_of
from hpcgym.workload.columns import MISSING
from hpcgym.workload.io.swf_header import clock_of, names_of
from hpcgym.workload.model import Workload

# --- The job features that policies weigh, each a line of one table -------------------------------
#
# Only waiting changes a feature after a job is submitted: its value is ``static + wait /
# patience``; the engine has the formulas. Features look at the requested time, or at a predicted
# run time in its place, never at the actual run time.

Column = NDArray[np.float64]  # (n_jobs,)

_MOST_NAMES = 8  # in a message


class JobColumns:
    """Columns of a workload that features are computed from, (n_jobs,) float64, made on demand.

    ``times`` [s], (n_jobs,), replace the requested times if they are given.
    """

    def __init__(self, workload: Workload, times: NDArray[np.int64] | None = None):
        self._workload = workload
        self.times = workload.requested_time if times is None else times

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
        """Requested time [s], or the run time that replaces it."""
        return self.times.astype(np.float64)

    @cached_property
    def processors(self) -> Column:
        """Number of processors requested."""
        return self._workload.requested_processors.astype(np.float64)

    @cached_property
    def nice(self) -> Column:
        """Slurm's nice value of each job, which lowers its priority; 0 where it is unknown."""
        values = self.field(NICE)
        return np.where(values == MISSING, 0.0, values)

    def feature(self, name: str) -> Column:
        """Return the part of a feature that waiting does not change."""
        if name in ("requested", "processors"):
            return self.requested if name == "requested" else self.processors
        codes, numbers = np.array([FEATURE]), np.array([list(FEATURES).index(name)], np.float64)
        return self.values_of(codes, numbers, [])

    def values_of(
        self, codes: NDArray[np.int64], numbers: NDArray[np.float64], columns: list[Column]
    ) -> Column:
        """Return the value of operations on features and columns at submission; -inf: no number."""
        rows = np.arange(len(self.times))
        return values_of(self.told(codes, numbers, columns), len(rows), rows, np.zeros(len(rows)))

    def told(
        self, codes: NDArray[np.int64], numbers: NDArray[np.float64], columns: list[Column]
    ) -> dict[str, NDArray[Any]]:
        """Return operations on features and columns as the engine takes them."""
        told = np.array([*self._always, *columns]) if columns else self._always
        return {
            "codes": codes,
            "numbers": numbers,
            "columns": told,
            "n_columns": np.array([len(told)]),
            "times": self.times,
            "clock": np.array([clock_of(self._workload)]),
        }

    @cached_property
    def _always(self) -> NDArray[np.float64]:
        """What the engine is told in any case, (2, n_jobs)."""
        return np.array([self.since_first, self.processors])

    def field(self, name: str) -> Column:
        """Return a column of the log, by its name in the workload."""
        return self._workload.columns[name].astype(np.float64)

    def asked(self, amount: str) -> Column:
        """Return how much each job asks for of an amount, such as ``gpu``.

        Warns
        -----
        WorkloadWarning : no job asks for any.
        """
        asked = asked_of(self._workload, [amount])[:, 0]
        if not asked.any() and amount not in self._workload.per_unit:
            warn_caller(f"no job asks for {amount!r}", WorkloadWarning)
        return asked.astype(np.float64)

    def is_called(self, column: str, name: str, beside: Iterable[str] = ()) -> NDArray[np.bool_]:
        """Return whether each job has this name in a column, (n_jobs,) bool.

        A number without a name in the log has its digits as a name. Those named ``beside`` it are
        not meant by it.

        Warns
        -----
        WorkloadWarning : the log does not have this name, but a similar one.
        """
        names = names_of(self._workload, column)
        near = get_close_matches(name, names.values(), 1)
        if near and name not in names.values() and near[0] not in beside:
            text = f"nothing is called {name!r} in {column}; did you mean {near[0]!r}?"
            warn_caller(text, WorkloadWarning)  # of a log, in the same words for all its slices
        return self.are_called(column, (name,))

    def are_called(self, column: str, called: Iterable[str]) -> NDArray[np.bool_]:
        """Return whether each job has one of these names, without a warning."""
        names, called = names_of(self._workload, column), {*called}
        numbers = [number for number, name in names.items() if name in called]
        digits = [int(name) for name in called if name.isdecimal() and len(name) < 10]
        numbers += [number for number in digits if number not in names]
        return np.isin(self._workload.columns[column], numbers)

    def check_called(self, column: str, texts: Sequence[str]) -> None:
        """Warn if the log has none of these names in a column, nor a similar one.

        Warns
        -----
        WorkloadWarning : none of the texts is a name, a similar name or a number.
        """
        names = sorted(set(names_of(self._workload, column).values()))
        if any(text.isdecimal() or get_close_matches(text, names, 1) for text in texts):
            return
        asked = " or ".join(map(repr, texts[:_MOST_NAMES]))
        has = f"has {', '.join(names[:_MOST_NAMES])}" if names else "has no names there"
        warn_caller(f"nothing is called {asked} in {column}; the log {has}", WorkloadWarning)


@dataclass(frozen=True)
class Feature:
    """A named feature of a waiting job.

    Attributes
    ----------
    meaning : what it is, with its unit.
    patience : seconds of waiting that add 1, (n_jobs,) float64; None: waiting changes nothing.
    """

    meaning: str
    patience: Callable[[JobColumns], Column] | None = None


def check_features(
    argument: str, names: Iterable[str], usage: bool = False, also: str = ""
) -> None:
    """Raise an HpcgymError unless these are names of features of jobs.

    ``usage``: features that depend on users' usage are known, too; ``also``: what else is allowed.
    """
    known = meanings(usage)
    for name in names:
        if not isinstance(name, str):
            raise HpcgymError(f"{argument} must be names of features, not {name!r}")
        if name in USER_FEATURES and not usage:
            raise HpcgymError(
                f"{argument}: {name!r} depends on what users have used, which is not counted here"
            )
        if name not in known:
            raise HpcgymError(unknown(argument, name, known, also))


def meanings(usage: bool) -> dict[str, str]:
    """Return the features that weights may be for, name -> meaning.

    ``usage``: also those that depend on what users have used.
    """
    static = {name: feature.meaning for name, feature in FEATURES.items()}
    return {**static, **USER_FEATURES} if usage else static


#: Name -> feature, in the order of the engine. The first six are those of Legrand et al. 2018,
#: section 4.1; unicef is of Tang et al., Cluster 2009, f1 to f4 of Carastan-Santos and de Camargo,
#: SC 2017, with s the seconds since the first submission of the whole log.
FEATURES: dict[str, Feature] = {
    "processors": Feature("requested processors q"),
    "requested": Feature("requested time p [s]"),
    "wait": Feature("waiting time [s]", lambda jobs: np.ones_like(jobs.submit)),
    "ratio": Feature("p / q [s]"),
    "expansion": Feature("expansion factor (wait + p) / p", lambda jobs: jobs.requested),
    "area": Feature("p q [processor seconds]"),
    # log2 of one processor is 0: a serial job that has waited at all comes before all others
    "unicef": Feature(
        "wait / (log2(q) p)",
        lambda jobs: np.maximum(log2(jobs.processors) * jobs.requested, 1e-200),
    ),
    "f1": Feature("log10(p) q + 870 log10(s)"),
    "f2": Feature("sqrt(p) q + 25,600 log10(s)"),
    "f3": Feature("p q + 6,860,000 log10(s)"),
    "f4": Feature("p sqrt(q) + 530,000 log10(s)"),
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

#: The state at a pass, read once before any job starts in it: of the machine and the queue, of each
#: waiting job, of its user. Name -> meaning, in the order of the engine. Only expressions may name
#: them, in simulations that know such a state.
STATE: dict[str, str] = {
    "free": "share of the machine that is free, 0 to 1",
    "free_1h": "the same in an hour, by predicted ends, if nothing starts",
    "queued": "number of waiting jobs",
    "behind": "time [s] for which these would fill the machine, by their requested times",
    "hour": "hour of the day, 0 to 24, by UnixStartTime of the log; without it 0 s is Monday 0 h",
    "weekday": "day of the week, 0 (Monday) to 6",
    "machine_size": "what `free` is a share of: processors of the machine",
    "fits": "1 if the job fits what is free, else 0",
    "leaves": "share of the machine that it would leave free; 0 if it does not fit",
    "user_running": "number of running jobs of its user",
    "user_waiting": "number of waiting jobs of its user, with it",
    "last_run": "run time [s] of its user's last ended job; its requested time without one",
    "mean_run": "mean run time [s] of its user's last five ended jobs; likewise",
    "spread_run": "standard deviation of these [s]; 0 without any",
    "known_runs": "number of its user's ended jobs, at most five",
}
#: The names of STATE with the same value for all jobs.
STATE_OF_ALL = frozenset(
    {"free", "free_1h", "queued", "behind", "hour", "weekday", "machine_size"}
)
#: The names of STATE that depend on what is free on the machine.
STATE_OF_MACHINE = frozenset({"free", "free_1h", "fits", "leaves"})
#: Name of STATE -> how many last run times of each user it needs.
RUNS_LOOKED_AT = {"last_run": 1, "mean_run": 5, "spread_run": 5, "known_runs": 5}
#: The names of STATE that depend on users.
STATE_OF_USERS = frozenset({"user_running", "user_waiting", *RUNS_LOOKED_AT})


def runs_looked_at(state: Iterable[str]) -> int:
    """Return how many last run times of each user these names of STATE need."""
    return max((RUNS_LOOKED_AT.get(name, 0) for name in state), default=0)


#: The features that a vector of six weights is for, in order (Legrand et al. 2018, section 4.3).
WEIGHTED_FEATURES = tuple(FEATURES)[:6]


# --- Features of jobs as the compiled sums of mixed policies take them ----------------------------


class Weighed(NamedTuple):
    """The features of all jobs, as the engine adds them up."""

    static: NDArray[np.float64]  # (n_jobs, n_features) the parts that waiting does not change
    formulas: NDArray[np.int64]  # (n_features,) places in the table of features
    places: NDArray[np.int64]  # (n_features,) places of the weights
    serial: NDArray[np.float64]  # (n_jobs,) [s] patience of the feature unicef, or (0,)


def weighed(columns: JobColumns, features: tuple[str, ...], n_jobs: int) -> Weighed:
    """Return the arrays for weights over these features, in the order of the table of features.

    Features that depend on users' usage are left out: usage is added to scores later. In that order
    sums equal those of :func:`hpcgym.scheduler.policies.index.rank` to the last bit. The engine
    knows how features depend on waiting.
    """
    names = sorted(FEATURES.keys() & set(features), key=list(FEATURES).index)
    static = np.zeros((n_jobs, len(names)))
    for k, name in enumerate(names):
        static[:, k] = columns.feature(name)
    patience = FEATURES["unicef"].patience
    assert patience is not None
    return Weighed(
        static=static,
        formulas=np.array([list(FEATURES).index(name) for name in names], np.int64),
        places=np.array([features.index(name) for name in names], np.int64),
        serial=patience(columns) if "unicef" in names else np.zeros(0),
    )


def names_of_jobs(workload: Workload) -> list[tuple[str, str, str]]:
    """Return each job's names of user, group and partition in the log, or their numbers."""
    columns = []
    for column in ("user_id", "group_id", "partition"):
        names = names_of(workload, column)
        numbers = workload.columns[column].tolist()
        columns.append([names.get(number, str(number)) for number in numbers])
    return list(zip(*columns, strict=True))


# --- How much features differ between jobs --------------------------------------------------------


def spread(slices: Sequence[Workload], features: Sequence[str]) -> NDArray[np.float64]:
    """Return roughly how much each feature differs between waiting jobs, (n_features,).

    Weights are divided by it, because areas are a million times as large as expansion factors and
    would be all that counts. Waiting times are not known before the simulation: the mean requested
    time stands for them. Nor is users' usage: its priorities, 0 to 1, count as 1.
    """
    jobs = [JobColumns(part) for part in slices]
    wait = float(np.mean(np.concatenate([part.requested for part in jobs])))
    sizes = []
    for name in features:
        if name in USER_FEATURES:
            sizes.append(1.0)
            continue
        size = float(np.std(np.concatenate([part.feature(name) for part in jobs])))
        patience = FEATURES[name].patience
        if patience is not None:
            size += wait / float(np.median(np.concatenate([patience(part) for part in jobs])))
        sizes.append(size if 0 < size < np.inf else 1.0)
    return np.array(sizes)
