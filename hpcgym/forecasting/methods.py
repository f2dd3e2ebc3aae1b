"""All methods that say when a job starts, one submission after another, as they learn.

What each says is known before the job has started, and what is learned of it only afterwards: of
recalibration and pool at once, of boosting from time to time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hpcgym.forecasting import boosting
from hpcgym.forecasting.boosting import Boosting, Submissions, Trees
from hpcgym.forecasting.forecasts import quantiles
from hpcgym.forecasting.pool import Pool, Recalibration
from hpcgym.forecasting.scores import LEVELS, Floats, logs_of, places
from hpcgym.workload.columns import Ints
from hpcgym.workload.model import Workload

#: From so many of the last jobs boosting learns, and from so few it does not.
TAUGHT, LEAST = 3000, 100
_SHOWN = (0.05, 0.25, 0.5, 0.75, 0.95)
#: Of boosting over the errors of a few hundred forecasts.
_FEW = Trees(rounds=25, leaves=7, rate=0.12, least=20)


class AtSubmission(NamedTuple):
    """What was simulated at the submission of a job.

    Attributes
    ----------
    row : of the job, in the log.
    samples : (n_futures,) float64 [s] its waits in the futures, rising.
    requested, median : [s] its waits in the futures of these points.
    recent : (n_levels,) quantiles [s] of waits of jobs like it.
    """

    row: int
    samples: Floats
    requested: float
    median: float
    recent: Floats


class LearnedBy(NamedTuple):
    """What boosting learns, and what it sees beside the state at a submission.

    Attributes
    ----------
    before : the method that is said as long as nothing has been learned.
    point : the wait [s] whose errors are learned, of jobs that were forecast; None: waits are
        learned themselves, of all jobs that have started.
    sees : what else is seen.
    """

    before: str
    point: Callable[[AtSubmission], float] | None = None
    sees: Callable[[AtSubmission], list[float]] = lambda moment: []


class Method(NamedTuple):
    """A way to say when a job starts.

    Attributes
    ----------
    says : what it says of a wait.
    quantiles : what it says, (n_levels,) [s], of what was simulated and the levels at which
        recalibration looks; None: it is learned, or mixed of others.
    learner : what is learned; None: nothing.
    pooled : whether the pool weighs it. The first of these is trusted until others are better.
    """

    says: str
    quantiles: Callable[[AtSubmission, Floats], Floats] | None = None
    learner: LearnedBy | None = None
    pooled: bool = False


def _same(wait: float) -> Floats:
    """Return the quantiles of a point."""
    return np.full(len(LEVELS), wait)


def _told(moment: AtSubmission) -> list[float]:
    """Return what boosting sees of futures: quantiles, spread, how often at once, and points."""
    logs = logs_of(moment.samples)
    return [
        *logs_of(quantiles(moment.samples, _SHOWN)),
        logs.std(),
        (moment.samples == 0).mean(),
        *logs_of(np.array([moment.requested, moment.median])),
    ]


#: All methods, by name, in the order in which tables have them. The next one is a row here.
TABLE = {
    "futures": Method(
        "quantiles of futures, at levels recalibrated by forecasts whose jobs had started",
        lambda m, levels: quantiles(m.samples, levels.tolist()),
        pooled=True,
    ),
    "futures, raw": Method(
        "quantiles of futures", lambda m, _: quantiles(m.samples, LEVELS.tolist())
    ),
    "requested": Method(
        "a future in which all run as long as requested, and none come: a point",
        lambda m, _: _same(m.requested),
    ),
    "median": Method(
        "one in which all run for the medians of their distributions, and none come: a point",
        lambda m, _: _same(m.median),
    ),
    "recent": Method(
        "quantiles of the last 100 waits of jobs that were alike in processors and request",
        lambda m, _: m.recent,
        pooled=True,
    ),
    "boosting": Method(
        "quantiles by boosting over the state, from waits of jobs that had started",
        learner=LearnedBy("recent"),
        pooled=True,
    ),
    "median, learned": Method(
        "the point of medians, and its errors by boosting over the state",
        learner=LearnedBy(
            "futures", lambda m: m.median, lambda m: logs_of(np.array([m.median])).tolist()
        ),
        pooled=True,
    ),
    "futures, learned": Method(
        "the median of futures, and its errors by boosting over state and futures",
        learner=LearnedBy("futures", lambda m: float(quantiles(m.samples, [0.5])[0]), _told),
        pooled=True,
    ),
    "pool": Method(
        "weighed means of futures, recent and the last three, by how good each has been"
    ),
}
#: Method -> what it says of a wait.
METHODS = {name: method.says for name, method in TABLE.items()}
_LEARNERS = {name: method.learner for name, method in TABLE.items() if method.learner is not None}
#: Those that need scikit-learn.
LEARNED = tuple(_LEARNERS)


class _Said(NamedTuple):
    """What was said of a job that has not started, and what boosting saw."""

    moment: AtSubmission
    x: Floats
    quantiles: dict[str, Floats]


class Methods:
    """What each method says of jobs of a log, in the order of their submission.

    Parameters
    ----------
    log : with waits and run times; nothing is looked at before it has happened.
    processors : of the machine.
    taught : jobs that boosting learns from once they have started, rising rows of the log.
    seed : of draws among equals.

    Attributes
    ----------
    pool : with its weights.
    """

    def __init__(self, log: Workload, processors: int, taught: Ints, seed: int) -> None:
        self._log, self._seed = log, seed
        self._began = log.submit_time + log.wait_time
        self._past = Recalibration()
        self._pending: list[tuple[int, int, _Said]] = []
        self._started: list[_Said] = []
        self._learns = boosting.is_there()
        self._state = Submissions(log, processors) if self._learns else None
        self._taught = taught
        self._taught_x = self._seen(taught)
        pooled = [name for name, method in TABLE.items() if method.pooled]
        self.pool = Pool([name for name in pooled if self._learns or name not in LEARNED])

    def says(self, moments: Sequence[AtSubmission]) -> list[dict[str, Floats]]:
        """Return what each method says of jobs, (n_levels,) [s] by its name.

        Boosting learns anew before the first of them, from all jobs that have started by then.

        Parameters
        ----------
        moments : later than those before.
        """
        if not moments:
            return []
        rows = np.array([moment.row for moment in moments])
        x = self._seen(rows)
        self._settle(int(self._log.submit_time[rows[0]]))
        learned = self._learned(moments, x) if self._learns else {}
        forecasts = []
        for k, moment in enumerate(moments):
            self._settle(int(self._log.submit_time[moment.row]))
            said = self._simulated(moment) | {name: each[k] for name, each in learned.items()}
            if self._learns:  # who has learned nothing yet says what another says
                said = {name: said[learner.before] for name, learner in _LEARNERS.items()} | said
            said["pool"] = self.pool.quantiles(said)
            began = int(self._began[moment.row])
            heapq.heappush(self._pending, (began, moment.row, _Said(moment, x[k], said)))
            forecasts.append(said)
        return forecasts

    def _simulated(self, moment: AtSubmission) -> dict[str, Floats]:
        """Return what is said by simulation, and by recent waits."""
        levels = self._past.levels(int(self._log.user_id[moment.row]))
        return {
            name: method.quantiles(moment, levels)
            for name, method in TABLE.items()
            if method.quantiles is not None
        }

    def _learned(self, moments: Sequence[AtSubmission], x: Floats) -> dict[str, Floats]:
        """Return what boosting says of each job after it has learned anew, (n, n_levels) [s]."""
        time, by_method = self._log.submit_time[moments[0].row], {}
        known = np.flatnonzero(self._began[self._taught] < time)[-TAUGHT:]
        past = [said.moment for said in self._started]
        for name, (_, point_of, sees) in _LEARNERS.items():
            if (len(known) if point_of is None else len(past)) < LEAST:
                continue
            if point_of is None:
                model = Boosting()
                model.learn(self._taught_x[known], self._wait(self._taught[known]))
                by_method[name] = model.quantiles(x)
                continue
            model = Boosting(_FEW)
            seen = np.array([said.x for said in self._started])
            then, now = (np.array([point_of(m) for m in of]) for of in (past, moments))
            before, behind = (
                np.column_stack([own, np.array([sees(m) for m in of])])
                for own, of in ((seen, past), (x, moments))
            )
            model.learn(before, self._wait(np.array([m.row for m in past])), point=then)
            by_method[name] = model.quantiles(behind, point=now)
        return by_method

    def _settle(self, time: int) -> None:
        """Learn from the forecasts whose jobs had started before a time [s]."""
        while self._pending and self._pending[0][0] < time:
            _, row, said = heapq.heappop(self._pending)
            wait, rng = self._wait(np.array([row])), np.random.default_rng([self._seed, row])
            (place,) = places(said.moment.samples[np.newaxis], wait, rng)
            self._past.learn(place, int(self._log.user_id[row]))
            self.pool.learn(said.quantiles, float(wait[0]))
            self._started.append(said)

    def _seen(self, rows: Ints) -> Floats:
        """Return what boosting sees of each job, (n, n_features)."""
        if self._state is None:
            return np.zeros((len(rows), 0))
        return self._state.features(rows)

    def _wait(self, rows: Ints) -> Floats:
        wait: Floats = self._log.wait_time[rows].astype(np.float64)
        return wait
