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

#: Method -> what it says of a wait.
METHODS = {
    "futures": "quantiles of futures, at levels recalibrated by forecasts whose jobs had started",
    "futures, raw": "quantiles of futures",
    "requested": "a future in which all run as long as requested, and none come: a point",
    "median": "one in which all run for the medians of their distributions, and none come: a point",
    "recent": "quantiles of the last 100 waits of jobs that were alike in processors and request",
    "boosting": "quantiles by boosting over the state, from waits of jobs that had started",
    "median, learned": "the point of medians, and its errors by boosting over the state",
    "futures, learned": "the median of futures, and its errors by boosting over state and futures",
    "pool": "weighed means of futures, recent and the last three, by how good each has been",
}
#: Those that need scikit-learn.
LEARNED = ("boosting", "median, learned", "futures, learned")
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
        self._models: dict[str, Boosting] = {}
        self._learns = boosting.is_there()
        self._state = Submissions(log, processors) if self._learns else None
        self._taught = taught
        self._taught_x = self._seen(taught)
        self.pool = Pool(["futures", "recent", *(LEARNED if self._learns else ())])

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
                said = (
                    {"boosting": said["recent"]}
                    | dict.fromkeys(LEARNED[1:], said["futures"])
                    | said
                )
            said["pool"] = self.pool.quantiles(said)
            began = int(self._began[moment.row])
            heapq.heappush(self._pending, (began, moment.row, _Said(moment, x[k], said)))
            forecasts.append(said)
        return forecasts

    def _simulated(self, moment: AtSubmission) -> dict[str, Floats]:
        """Return what is said by simulation, and by recent waits."""
        levels = self._past.levels(int(self._log.user_id[moment.row]))
        return {
            "futures": quantiles(moment.samples, levels.tolist()),
            "futures, raw": quantiles(moment.samples, LEVELS.tolist()),
            "requested": np.full(len(LEVELS), moment.requested),
            "median": np.full(len(LEVELS), moment.median),
            "recent": moment.recent,
        }

    def _learned(self, moments: Sequence[AtSubmission], x: Floats) -> dict[str, Floats]:
        """Return what boosting says of each job after it has learned anew, (n, n_levels) [s]."""
        time, by_method = self._log.submit_time[moments[0].row], {}
        known = np.flatnonzero(self._began[self._taught] < time)[-TAUGHT:]
        if len(known) >= LEAST:
            model = Boosting()
            model.learn(self._taught_x[known], self._wait(self._taught[known]))
            by_method["boosting"] = model.quantiles(x)
        if len(self._started) >= LEAST:
            past = [said.moment for said in self._started]
            seen = np.array([said.x for said in self._started])
            wait = self._wait(np.array([moment.row for moment in past]))
            for name, (point_of, beside) in _ERRORS.items():
                model = Boosting(_FEW)
                then, now = (np.array([point_of(m) for m in of]) for of in (past, moments))
                before, behind = (
                    np.column_stack([own, np.array([beside(m) for m in of])])
                    for own, of in ((seen, past), (x, moments))
                )
                model.learn(before, wait, point=then)
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


def _told(moment: AtSubmission) -> list[float]:
    """Return what boosting sees of futures: quantiles, spread, how often at once, and points."""
    logs = logs_of(moment.samples)
    return [
        *logs_of(quantiles(moment.samples, _SHOWN)),
        logs.std(),
        (moment.samples == 0).mean(),
        *logs_of(np.array([moment.requested, moment.median])),
    ]


#: Method -> the point whose errors are learned, and what is seen of it beside the state.
_ERRORS: dict[
    str, tuple[Callable[[AtSubmission], float], Callable[[AtSubmission], list[float]]]
] = {
    "median, learned": (lambda m: m.median, lambda m: logs_of(np.array([m.median])).tolist()),
    "futures, learned": (lambda m: float(quantiles(m.samples, [0.5])[0]), _told),
}
