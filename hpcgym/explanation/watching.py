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

from hpcgym.engine import state
from hpcgym.engine.passes.restricted import Restricted
from hpcgym.errors import HpcgymWarning
from hpcgym.schedule.result import Result
from hpcgym.scheduler.quotas import Quota
from hpcgym.simulation.continued import again
from hpcgym.simulation.driver import Simulation


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


def watch(result: Result, job: int, going_on: Callable[[], None] = lambda: None) -> list[Pass]:
    """Return what stood at the end of each pass from the job's submission up to its start.

    ``job``: its row. The last pass is the one at which it starts. ``going_on`` is called after
    each; what it raises ends this.
    """
    simulation, _ = again(result)
    arrays = simulation.arrays
    submit, start = int(result.workload.submit_time[job]), int(result.start[job])
    simulation.drive(submit - 1)
    waited = np.flatnonzero((result.workload.submit_time <= start) & (result.start >= submit))
    passes: list[Pass] = []
    known = result.scheduler.quotas

    def note() -> None:
        ahead, before = (
            _place_of(job, arrays, queued(arrays, waited, with_filled=filled))
            for filled in (False, True)
        )
        exceeded = exceeding(simulation, queued(arrays, np.array([job])))
        quotas = tuple(known[place] for place in np.flatnonzero(exceeded.any(axis=0)))
        missed = job in unseen(result, simulation, waited)
        passes.append(Pass(moment_of(arrays), ahead, before, missed, quotas))
        going_on()

    simulation.after_pass = note
    simulation.drive(start)
    return passes


def moment_of(arrays: state.Prepared) -> Moment:
    """Return what stands now, at the end of a pass."""
    sim = arrays.sim
    # under quotas there is one reservation, or none, and yet a plan; Slurm's have no first of all
    several = sim.depth > 1 or sim.every > 0
    plans = sim.depth == state.UNLIMITED or (sim.tested > 0 and several)
    head = -1 if plans else int(sim.head)
    # a head that has started since is not cleared
    stands = head >= 0 and int(arrays.progress[head].start) < 0
    promised = stands and sim.depth > 0
    return Moment(
        int(sim.time),
        head if stands else -1,
        int(sim.shadow) if promised else -1,
        int(sim.extra) if promised else 0,
        int(sim.free) if sim.free >= 0 else 0,
        bool(sim.every == 0 or sim.look == sim.time + sim.every),
    )


def exceeding(simulation: Simulation, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which quotas each of some jobs would exceed if it started now, (k, K) bool."""
    if not isinstance(simulation.machine, Restricted):
        return np.zeros((len(rows), 0), np.bool_)
    kept = simulation.machine.quotas
    count = kept.counts[rows]
    row, quota = np.nonzero(count >= 0)
    jobs, processors = kept.left[count[row, quota]].T
    found = np.zeros(count.shape, np.bool_)
    found[row, quota] = (jobs < 1) | (processors < kept.processors[rows[row]])
    return found


def queued(
    arrays: state.Prepared, rows: NDArray[np.int64], *, with_filled: bool = False
) -> NDArray[np.int64]:
    """Return those of some rows that are in the queue, int64.

    ``with_filled``: those that have just been back-filled count as well.
    """
    rows = rows[rows < int(arrays.sim.next)]
    start = arrays.progress["start"][rows]
    waits = start < 0
    if with_filled:
        filled = arrays.progress["marks"][rows] // state.BACKFILLED % 2 == 1
        waits |= (start == arrays.sim.time) & filled
    return rows[waits]


def unseen(result: Result, simulation: Simulation, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which queued jobs a pass of Slurm's that back-fills does not look at, int64.

    ``rows``: of all jobs that were queued as the pass began, and perhaps of others.
    """
    slurm, arrays = result.scheduler.slurm, simulation.arrays
    if slurm is None:
        return np.zeros(0, np.int64)
    rows = queued(arrays, rows, with_filled=True)
    rows = rows[np.argsort(places(arrays, rows))]
    if slurm.bf_max_job_user == 0:
        return rows[slurm.bf_max_job_test :]
    barred = exceeding(simulation, rows).any(axis=1) & (arrays.progress["start"][rows] < 0)
    users = result.workload.user_id[rows].tolist()
    of_user, seen = dict.fromkeys(users, 0), list[int]()
    for place, user in enumerate(users):
        if of_user[user] < slurm.bf_max_job_user and len(seen) < slurm.bf_max_job_test:
            seen.append(place)
            of_user[user] += not barred[place]
    return np.delete(rows, seen)


def places(arrays: state.Prepared, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of some queued jobs come before each of them in primary order, int64."""
    found = np.empty(len(rows), np.int64)
    found[np.lexsort(_place_keys(arrays, rows)[::-1])] = np.arange(len(rows))
    return found


def _place_of(job: int, arrays: state.Prepared, rows: NDArray[np.int64]) -> int:
    """Return how many queued jobs come before one; 0 if it is not in the queue."""
    mine = np.flatnonzero(rows == job)
    return int(places(arrays, rows)[mine[0]]) if len(mine) else 0


def _place_keys(arrays: state.Prepared, rows: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    """Return what queued jobs are ordered by, the most important first; less is earlier."""
    sim, jobs = arrays.sim, arrays.jobs
    waiting = (sim.time - jobs["submit"][rows]).astype(np.float64)
    keys: list[NDArray[np.float64]] = []
    if sim.threshold >= 0:
        starved = waiting > sim.threshold
        keys += [np.where(starved, 0.0, 1.0), np.where(starved, rows, 0.0)]
    if sim.primary == state.KEYED:
        keys.append(np.unique(arrays.keys[rows], return_inverse=True)[1].astype(np.float64))
    elif sim.primary >= state.SCORED:
        scores = arrays.scores[rows]
        x = waiting / scores["patience"]
        cubed = sim.primary == state.CUBED
        keys.append(-(scores["score"] * x**3 if cubed else scores["score"] + x))
    return [*keys, rows.astype(np.float64)]
