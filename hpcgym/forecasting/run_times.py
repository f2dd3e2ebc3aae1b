"""How long jobs may run: distributions, learned from the jobs that have ended.

That requested times say little, and a user's last jobs much, is known since Smith, Taylor and
Foster, "Using run-time predictions to estimate queue wait times and improve scheduler performance",
JSSPP 1999, who look at jobs of one user, one size, one request, and so on. Here three such classes
are mixed, the narrowest first: jobs of the user with the same request, by their run times; jobs of
the user, and all jobs, by the share of their requests that they ran. Each class has a weight that
grows with the jobs that it has; what is left is even over what was requested. The numbers were
tuned on the first halves of KTH-SP2 and SDSC-SP2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.workload.columns import Ints
from hpcgym.workload.extracts import recorded_run_time
from hpcgym.workload.model import Workload

Floats = NDArray[np.float64]

#: How many of the last jobs of a class count: with the user's request, of the user, of all.
N_SAME, N_USER, N_ALL = 20, 30, 300
#: Factor of older jobs for each newer one of the user.
DECAY = 0.9
#: A class of n jobs has n / (n + this) of what narrower classes leave; all jobs have this share.
PRIOR_SAME, PRIOR_USER, SHARE_ALL = 1.5, 4.0, 0.97
#: How alike, in one future, are the ranks of run times: within a class, and within a user.
#: Correlations of a Gaussian copula, without which forecasts are too sure.
SAME_RHO, USER_RHO = 0.3, 0.2
_EVEN = np.linspace(0.1, 1.0, 10)
_LEAST_EVEN = 0.02


class Distribution(NamedTuple):
    """Of a run time.

    Attributes
    ----------
    values : (n,) int64 [s], rising.
    cumulative : (n,) float64, the probability of each value or less; the last is 1.
    """

    values: Ints
    cumulative: Floats

    def quantile(self, level: Floats | float) -> Ints:
        """Return the least values [s] whose probability is at least a level, or levels."""
        places = np.minimum(self.cumulative.searchsorted(level), len(self.values) - 1)
        seconds: Ints = self.values[places]
        return seconds


class RunTimes:
    """Distributions of run times, by the jobs that have ended at each time.

    Parameters
    ----------
    jobs : with their waits and run times; others of which these are not known are left out.
    """

    def __init__(self, jobs: Workload) -> None:
        jobs = jobs.take((jobs.wait_time >= 0) & (jobs.run_time >= 1) & (jobs.requested_time >= 1))
        run = recorded_run_time(jobs)
        end = jobs.submit_time + jobs.wait_time + run
        order = np.argsort(end, kind="stable")
        self._end = end[order]
        self._ratio = (run / jobs.requested_time)[order]
        by_user = order[np.argsort(jobs.user_id[order], kind="stable")]
        self._users, first = np.unique(jobs.user_id[by_user], return_index=True)
        self._first = np.append(first, len(by_user))
        self._known: dict[tuple[int, ...], Distribution] = {}
        self._known_at = -1
        self._of_users = [
            column[by_user] for column in (end, run, jobs.requested_time, jobs.requested_processors)
        ]

    def typical_ratio(self, time: int) -> float:
        """Return the median share of their requests that the last jobs ran which had ended [s]."""
        n = int(self._end.searchsorted(time, "right"))
        return float(np.median(self._ratio[max(n - N_ALL, 0) : n])) if n else 1.0

    def of(
        self, user: int, requested: int, processors: int, time: int, elapsed: int = 0
    ) -> Distribution:
        """Return how long a job may run in all, as known at a time.

        Parameters
        ----------
        user, requested, processors : of the job; the requested time [s] is the most that it runs.
        time : [s] at which it is known; only jobs that had ended by then count.
        elapsed : [s] for how long it has run: it runs at least so long.
        """
        if time != self._known_at:
            self._known, self._known_at = {}, time
        asked = user, requested, processors, elapsed
        if asked not in self._known:
            self._known[asked] = self._distribution(*asked, time)
        return self._known[asked]

    def _distribution(
        self, user: int, requested: int, processors: int, elapsed: int, time: int
    ) -> Distribution:
        """Return what :meth:`of` does, worked out."""
        end, run, request, width = self._of_user(user)
        n = int(end.searchsorted(time, "right"))
        same = np.flatnonzero((request[:n] == requested) & (width[:n] == processors))[-N_SAME:]
        known = int(self._end.searchsorted(time, "right"))
        lately = min(n, N_USER)
        narrow = (
            (run[same[::-1]].astype(np.float64), len(same) / (len(same) + PRIOR_SAME)),
            (_last(run / request, n, N_USER) * requested, lately / (lately + PRIOR_USER)),
        )
        values, weights, left = [], [], 1.0
        for x, share in narrow:
            if len(x):
                decayed = DECAY ** np.arange(len(x))
                values.append(x)
                weights.append(decayed * (left * share / decayed.sum()))
                left -= left * share
        if known:
            x = _last(self._ratio, known, N_ALL) * requested
            values.append(x)
            weights.append(np.full(len(x), left * SHARE_ALL / len(x)))
            left -= left * SHARE_ALL
        values.append(elapsed + max(requested - elapsed, 0) * _EVEN)
        weights.append(np.full(len(_EVEN), max(left, _LEAST_EVEN) / len(_EVEN)))
        # rounded first: a share of a request may be a whole number
        seconds = np.ceil(np.concatenate(values).round(6))
        whole: Ints = np.clip(seconds, 1, requested).astype(np.int64)
        possible = whole >= elapsed
        whole, weight = whole[possible], np.concatenate(weights)[possible]
        order = whole.argsort(kind="stable")
        cumulative = weight[order].cumsum()
        return Distribution(whole[order], cumulative / cumulative[-1])

    def medians(self, jobs: Workload, start: Ints, time: int) -> Ints:
        """Return the medians of the run times of jobs, (n_jobs,) int64 [s].

        Parameters
        ----------
        jobs, start, time : as of :meth:`sample`.
        """
        return np.array([known.quantile(0.5) for known in self._each(jobs, start, time)], np.int64)

    def _each(self, jobs: Workload, start: Ints, time: int) -> Iterator[Distribution]:
        """Yield the distribution of each job."""
        elapsed = np.where(start >= 0, time - start, 0).tolist()
        columns = jobs.user_id, jobs.requested_time, jobs.requested_processors
        each = zip(*(column.tolist() for column in columns), elapsed, strict=True)
        for user, requested, processors, so_long in each:
            yield self.of(user, requested, processors, time, so_long)

    def sample(
        self, jobs: Workload, start: Ints, time: int, number: int, seed: Sequence[int]
    ) -> Ints:
        """Draw the run times of jobs in some futures, (number, n_jobs) int64 [s].

        Jobs of one user, and more so those with one request, run long together. With the same seed
        further jobs, behind these, do not change what is drawn of these.

        Parameters
        ----------
        jobs : that run or wait.
        start : (n_jobs,) [s] when they started, -1 of those that wait.
        time : [s] at which this is all known.
        """
        columns = jobs.user_id, jobs.requested_time, jobs.requested_processors
        users = [*dict.fromkeys(jobs.user_id.tolist())]
        asked = [*zip(*(column.tolist() for column in columns), strict=True)]
        same = {key: k for k, key in enumerate(dict.fromkeys(asked))}
        of_user = {user: k for k, user in enumerate(users)}
        drawing = [np.random.default_rng([*seed, stream]) for stream in range(4)]
        sizes = (len(asked), len(users), len(same))
        own, by_user, by_same = (
            rng.standard_normal((n, number)) for rng, n in zip(drawing, sizes, strict=False)
        )
        z = np.sqrt(1 - SAME_RHO - USER_RHO) * own
        z += np.sqrt(USER_RHO) * by_user[[of_user[user] for user, *_ in asked]]
        z += np.sqrt(SAME_RHO) * by_same[[same[key] for key in asked]]
        # each future has one of equally likely parts of a job's distribution: its rank among all
        rank = z.argsort(axis=1).argsort(axis=1)
        level = (rank + drawing[-1].random(rank.shape)) / number
        drawn = np.empty((number, len(asked)), np.int64)
        for j, known in enumerate(self._each(jobs, start, time)):
            drawn[:, j] = known.quantile(level[j])
        return drawn

    def _of_user(self, user: int) -> list[NDArray[np.int64]]:
        """Return end, run time, request [s] and processors of a user's jobs, by their ends."""
        k = int(self._users.searchsorted(user))
        known = k < len(self._users) and self._users[k] == user
        rows = slice(*self._first[k : k + 2].tolist()) if known else slice(0, 0)
        return [column[rows] for column in self._of_users]


def _last(values: Floats, n: int, most: int) -> Floats:
    """Return the last of the first n values, the latest first, at most so many."""
    return values[max(n - most, 0) : n][::-1]
