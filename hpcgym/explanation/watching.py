"""What a scheduler knew of jobs at each pass of their wait: the simulation again, with eyes open.

The simulation itself keeps nothing of this, so that it costs nothing where nobody asks. It is run
again, one pass at a time from where it matters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymWarning
from hpcgym.schedule.result import Result
from hpcgym.scheduler.codes import UNLIMITED
from hpcgym.scheduler.quotas import Quota
from hpcgym.simulation.continued import again

Rows = NDArray[np.int64]  # rows of jobs, (k,)


class Moment(NamedTuple):
    """What stood at the end of a pass, whoever asks.

    Attributes
    ----------
    time : [s] of the workload's clock.
    head : row of the job that could not start and stood first, -1 if there was none.
    shadow : [s] when it can start by predicted ends; -1 if it had no reservation.
    extra : processors that it leaves free then; 0 under quotas, which do not count them.
    free : processors.
    looked : whether the pass looked at all that it looks at, and not only from the first job to
        one that did not fit, as most of Slurm's do.
    """

    time: int
    head: int
    shadow: int
    extra: int
    free: int
    looked: bool


class Pass(NamedTuple):
    """What stood at the end of a pass, for one job.

    Attributes
    ----------
    at : what stood then, whoever asks.
    ahead : queued jobs that were to be served before the job.
    before : as ``ahead``, with those that were back-filled in the pass.
    unseen : whether a pass that back-fills does not look at the job, as Slurm's may not.
    quotas : those that the job would have exceeded, had it started; in their order.
    """

    at: Moment
    ahead: int
    before: int
    unseen: bool
    quotas: tuple[Quota, ...]


def why_not_watched(result: Result) -> str:
    """Return why the passes of a schedule cannot be made again, in words; nothing if they can.

    They can on pools and on nodes of their own under an order of the queue; not under limits, where
    jobs share nodes, where nodes fail, around windows, where jobs follow or stop others, where
    quotas say when jobs are submitted, or where a dispatcher or a function says what starts.
    """
    rules = result.scheduler
    stopped = result.interrupted is not None
    reasons = {
        "under limits of power or energy": result.limits is not None,
        "where jobs share nodes": result.coschedule is not None,
        "where jobs may stop others (preemption)": stopped and rules.preemption is not None,
        "where nodes fail": stopped,
        "where a dispatcher says what starts": result.dispatcher is not None,
        "where the order of the queue came from outside": result.outside,
        "where a function orders the queue": callable(rules.policy),
        "with maintenance windows": bool(rules.windows),
        "where jobs follow others (dependencies)": rules.dependencies != "none",
        "under quotas of submitted jobs": rules.moves_submissions,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


@contextmanager
def said_before() -> Iterator[None]:
    """Leave out warnings of simulations that are made again: the first has said them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HpcgymWarning)
        yield


class Watched:
    """The simulation of a schedule, made again, and what stands at the end of each pass.

    Parameters
    ----------
    result : of :func:`hpcgym.simulate`, for which :func:`why_not_watched` says nothing.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        self._driven = again(result)
        self._native = self._driven.native
        self.come = 0  #: jobs that have been submitted

    def go_on(self, until: int) -> None:
        """Simulate up to a time [s], and look at no pass."""
        self._driven.drive(until)

    def each_pass(self, until: int) -> Iterator[Moment]:
        """Yield what stands at the end of each pass up to a time [s]."""
        while self._driven.drive(until, 1):
            yield self._moment()

    def queued(self, rows: Rows, *, with_filled: bool = False) -> Rows:
        """Return those of some rows that are in the queue.

        ``with_filled``: those that have just been back-filled count as well.
        """
        rows = rows[rows < self.come]
        known = self._native.progress(rows)
        waits = known["start"] < 0
        if with_filled:
            waits |= (known["start"] == self._native.time) & (known["backfilled"] > 0)
        return rows[waits]

    def before(self, job: int, rows: Rows) -> int:
        """Return how many queued jobs come before one; 0 if it is not in the queue."""
        mine = np.flatnonzero(self._native.in_order(rows) == job)
        return int(mine[0]) if len(mine) else 0

    def exceeding(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which quotas each of some jobs would exceed if it started now, (k, K) bool."""
        shape = len(rows), len(self.result.scheduler.quotas)
        return self._native.exceeded(rows).reshape(shape) > 0

    def unseen(self, rows: Rows) -> Rows:
        """Return which queued jobs a pass of Slurm's that back-fills does not look at.

        ``rows``: of all jobs that were queued as the pass began, and perhaps of others.
        """
        slurm = self.result.scheduler.slurm
        if slurm is None:
            return np.zeros(0, np.int64)
        rows = self._native.in_order(self.queued(rows, with_filled=True))
        if slurm.bf_max_job_user == 0:
            return rows[slurm.bf_max_job_test :]
        barred = self.exceeding(rows).any(axis=1) & (self._native.progress(rows)["start"] < 0)
        users = self.result.workload.user_id[rows].tolist()
        of_user, seen = dict.fromkeys(users, 0), list[int]()
        for place, user in enumerate(users):
            if of_user[user] < slurm.bf_max_job_user and len(seen) < slurm.bf_max_job_test:
                seen.append(place)
                of_user[user] += not barred[place]
        return np.delete(rows, seen)

    def _moment(self) -> Moment:
        """Return what stands now, at the end of a pass."""
        known, rules = self._native.moment(), self._driven.told.rules
        depth, every = rules["depth"], rules.get("every", 0)
        names = ("time", "submitted", "free", "head", "shadow", "extra")
        time, self.come, free, head, shadow, extra = (known[name].item() for name in names)
        # under quotas there is one reservation, or none, and yet a plan; Slurm's have no first
        several = depth > 1 or every > 0
        if depth == UNLIMITED or (rules.get("tested", 0) > 0 and several):
            head = -1
        # a head that has started since is not cleared
        stands = head >= 0 and self._native.start(head) < 0
        promised = stands and depth > 0
        looked = every == 0 or known["next_look"] == time + every
        return Moment(
            time,
            head if stands else -1,
            shadow if promised else -1,
            extra if promised else 0,
            max(free, 0),
            bool(looked),
        )


def watch(result: Result, job: int, going_on: Callable[[], None] = lambda: None) -> list[Pass]:
    """Return what stood at the end of each pass from the job's submission up to its start.

    ``job``: its row. The last pass is the one at which it starts. ``going_on`` is called after
    each; what it raises ends this.
    """
    watched = Watched(result)
    submit, start = int(result.workload.submit_time[job]), int(result.start[job])
    watched.go_on(submit - 1)
    waited = np.flatnonzero((result.workload.submit_time <= start) & (result.start >= submit))
    passes: list[Pass] = []
    known = result.scheduler.quotas
    for at in watched.each_pass(start):
        ahead, before = (
            watched.before(job, watched.queued(waited, with_filled=filled))
            for filled in (False, True)
        )
        exceeded = watched.exceeding(watched.queued(np.array([job])))
        quotas = tuple(known[place] for place in np.flatnonzero(exceeded.any(axis=0)))
        passes.append(Pass(at, ahead, before, job in watched.unseen(waited), quotas))
        going_on()
    return passes
