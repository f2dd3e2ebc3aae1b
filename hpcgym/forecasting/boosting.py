"""Forecasts that are learned: boosting of quantiles over what is known when a job is submitted.

Nothing is simulated, and no rules are asked: trees see the queue, what runs, and how jobs like it
have fared. The learner is scikit-learn's histogram gradient boosting, of the pinball loss, a model
for each of some levels (Friedman, "Greedy function approximation: a gradient boosting machine",
Annals of Statistics 2001).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from hpcgym.errors import HpcgymError, installing
from hpcgym.forecasting.scores import LEVELS, Floats, logs_of, waits_of
from hpcgym.units import DAY_S, HOUR_S
from hpcgym.workload.columns import Ints
from hpcgym.workload.extracts import recorded_run_time
from hpcgym.workload.model import Workload

#: Levels of which a model is fitted each; those between are interpolated.
FITTED: Floats = np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])
#: Last jobs by which a run time is supposed: with the user's request, of the user, of all; and how
#: many jobs of the first two count as much as what is supposed otherwise.
_LAST, _PRIORS = (10, 10, 300), (1.5, 4.0)
#: Last starts whose waits are looked at.
_STARTS = 30
_UNKNOWN = np.int64(2**62)


def is_there() -> bool:
    """Return whether the learner is installed."""
    return find_spec("sklearn") is not None


class Trees(NamedTuple):
    """How much boosting learns.

    Attributes
    ----------
    rounds, leaves : trees of each level, and leaves of each tree.
    rate : how much each tree adds.
    least : number of forecasts in a leaf.
    """

    rounds: int = 40
    leaves: int = 15
    rate: float = 0.16
    least: int = 30


class Boosting:
    """Quantiles of waits, or of how much longer they are than a point says, learned at once.

    Parameters
    ----------
    trees : how much it learns.

    Raises
    ------
    HpcgymError : scikit-learn is not installed.
    """

    def __init__(self, trees: Trees | None = None) -> None:
        if not is_there():
            raise HpcgymError(f"boosting needs scikit-learn: {installing('forecast')}")
        self._trees = Trees() if trees is None else trees
        self._models: list[Any] = []

    def learn(self, x: Floats, wait: Floats, *, point: Floats | None = None) -> None:
        """Learn anew from jobs that have started.

        Parameters
        ----------
        x : (n, n_features) what was known when each was submitted.
        wait : (n,) [s] for how long each waited.
        point : (n,) [s] what a forecast said of each: then its errors are learned.
        """
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits

        y = logs_of(wait) if point is None else logs_of(wait) - logs_of(point)
        with threadpool_limits(1):
            self._models = [
                HistGradientBoostingRegressor(
                    loss="quantile",
                    quantile=level,
                    early_stopping=False,
                    max_features=0.7,
                    max_iter=self._trees.rounds,
                    max_leaf_nodes=self._trees.leaves,
                    learning_rate=self._trees.rate,
                    min_samples_leaf=self._trees.least,
                    max_bins=63,  # twice as fast as with 255, and as good
                    random_state=0,
                ).fit(x, y)
                for level in FITTED.tolist()
            ]

    def quantiles(self, x: Floats, *, point: Floats | None = None) -> Floats:
        """Return quantiles of waits at all levels that are scored, (n, n_levels) [s].

        Parameters
        ----------
        x, point : as of :meth:`learn`.
        """
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            fitted = np.stack([model.predict(x) for model in self._models], axis=1)
        fitted.sort(axis=1)
        logs = np.array([np.interp(LEVELS, FITTED, row) for row in fitted])
        if point is not None:
            logs += logs_of(point)[:, np.newaxis]
        return waits_of(np.maximum(logs, 0))


class Submissions:
    """What is known when jobs of a log are submitted, as a learner sees it.

    Parameters
    ----------
    log : with waits and run times; -1 of jobs that had not started, or ended, when it was written.
    processors : of the machine.
    """

    def __init__(self, log: Workload, processors: int) -> None:
        self._processors = processors
        self._submit, self._user = log.submit_time, log.user_id
        self._width, self._asked = log.requested_processors, log.requested_time
        started, ended = log.wait_time >= 0, log.run_time >= 1
        self._began = np.where(started, log.submit_time + log.wait_time, _UNKNOWN)
        run = recorded_run_time(log)
        self._end = np.where(started & ended, self._began + run, _UNKNOWN)
        self._last_end = np.maximum.accumulate(self._end)
        self._run, self._spread = self._supposed(run)
        order = np.argsort(self._began, kind="stable")
        self._starts = self._began[order]
        self._waits = log.wait_time[order].astype(np.float64)

    def features(self, rows: Ints) -> Floats:
        """Return what is known when each of some jobs is submitted, (n, n_features)."""
        return np.array([self._of(int(row)) for row in rows], np.float64)

    def _of(self, row: int) -> list[float]:
        time, width = int(self._submit[row]), int(self._width[row])
        # those before it that have not ended; all before the first of these had
        first = int(self._last_end.searchsorted(time, "right"))
        left = np.arange(first, row)
        left = left[self._end[left] > time]
        runs = self._began[left] < time
        r, q = left[runs], left[~runs]
        wide_r, wide_q = self._width[r], self._width[q]
        elapsed = time - self._began[r]
        left_asked = np.maximum(self._asked[r] - elapsed, 1)
        supposed = self._run[r] - elapsed
        left_run = np.where(supposed > 0, supposed, left_asked / 2)
        free = self._processors - int(wide_r.sum())
        asked_q, run_q = wide_q * self._asked[q], wide_q * self._run[q]
        area = width * int(self._asked[row])
        smaller, shorter = asked_q <= area, self._run[q] <= self._run[row]
        mine_r, mine_q = self._user[r] == self._user[row], self._user[q] == self._user[row]
        n = int(self._starts.searchsorted(time))
        lately = self._waits[max(n - _STARTS, 0) : n]
        waited = lately[lately > 0]
        per = 1 / self._processors
        return [
            width,
            self._asked[row],
            self._run[row],
            self._spread[row],
            area,
            time % DAY_S / HOUR_S,
            time // DAY_S % 7,
            free,
            len(r),
            len(q),
            wide_q.sum(),
            asked_q.sum() * per,
            run_q.sum() * per,
            smaller.sum(),
            asked_q[smaller].sum() * per,
            run_q[smaller].sum() * per,
            run_q[shorter].sum() * per,
            (wide_r * left_asked).sum() * per,
            (wide_r * left_run).sum() * per,
            _room(left_asked, wide_r, width - free),
            _room(left_run, wide_r, width - free),
            mine_r.sum(),
            mine_q.sum(),
            wide_r[mine_r].sum(),
            asked_q[mine_q].sum() * per,
            time - self._submit[q[0]] if len(q) else 0,
            wide_q[0] if len(q) else 0,
            wide_q.max() if len(q) else 0,
            (wide_q <= width).sum(),
            np.median(lately) if len(lately) else 0,
            np.median(waited) if len(waited) else 0,
            len(waited) / max(len(lately), 1),
        ]

    def _supposed(self, run: Ints) -> tuple[Floats, Floats]:
        """Return for how long each job may run as known at its submission [s], and how unsure.

        Geometric means over the last jobs that had ended by then: of the user with the same
        request, of the user, of all.
        """
        asked = np.maximum(self._asked, 1)
        ratio = np.log(np.maximum(run, 1) / asked)
        request = np.stack([self._user, self._asked, self._width])
        same = np.unique(request, axis=1, return_inverse=True)[1].reshape(-1)
        mean, spread = self._lately(np.zeros(len(run), np.int64), ratio, _LAST[2])[:2]
        for group, last, prior in zip((self._user, same), _LAST[1::-1], _PRIORS[::-1], strict=True):
            lately, around, number = self._lately(group, ratio, last)
            share = number / (number + prior)
            mean = share * lately + (1 - share) * mean
            spread = share * around + (1 - share) * spread
        return np.exp(mean) * asked, spread

    def _lately(self, group: Ints, value: Floats, last: int) -> tuple[Floats, Floats, Floats]:
        """Return mean, standard deviation and number of the last ended of the group of each job."""
        by_end = np.lexsort((self._end, group))
        of, end = group[by_end], self._end[by_end]
        begin = of.searchsorted(group)
        # ended by its submission: its place among those of the group, by their ends
        both = np.concatenate([end, self._submit]), np.concatenate([of, group])
        merged = np.lexsort((np.repeat([0, 1], len(of)), *both))
        ended = np.cumsum(merged < len(of))
        known = np.empty(len(of), np.int64)
        asks = merged >= len(of)
        known[merged[asks] - len(of)] = ended[asks]
        # parts of 2^-20 add up exactly: no later job is seen, not in a last bit either
        exact = [np.rint(power[by_end] * 2**20) / 2**20 for power in (value, value**2)]
        sums = [np.concatenate([[0.0], np.cumsum(power)]) for power in exact]
        from_ = np.maximum(known - last, begin)
        number = known - from_
        mean, square = ((total[known] - total[from_]) / np.maximum(number, 1) for total in sums)
        return mean, np.sqrt(np.maximum(square - mean**2, 0)), number.astype(np.float64)


def _room(left: Floats, widths: Ints, needed: int) -> float:
    """Return how long it takes until so many processors more are free, if nobody else starts."""
    if needed <= 0 or not len(left):
        return 0.0
    order = left.argsort()
    k = int(widths[order].cumsum().searchsorted(needed))
    return float(left[order[min(k, len(order) - 1)]])
