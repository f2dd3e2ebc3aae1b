"""What a scheduler knew of a job at each pass of its wait: the simulation again, with eyes open.

The simulation itself keeps nothing of this, so that it costs nothing where nobody asks. It is run
again up to the job's submission, and from there on one pass at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.schedule.result import Result
from hpcgym.simulation.continued import again


class Pass(NamedTuple):
    """What stood at the end of a pass.

    Attributes
    ----------
    time : [s] of the workload's clock.
    ahead : queued jobs that were to be served before the job.
    head : row of the job that could not start and stood first, -1 if there was none.
    shadow : [s] when it can start by predicted ends; -1 if it had no reservation.
    extra : processors that it leaves free then.
    free : processors.
    before : as ``ahead``, with those that were back-filled in the pass.
    """

    time: int
    ahead: int
    head: int
    shadow: int
    extra: int
    free: int
    before: int


def can_watch(result: Result) -> bool:
    """Return whether the passes of a schedule can be made again, one at a time.

    They can on pools and on nodes of their own under an order of the queue; not under limits, where
    jobs share nodes, where nodes fail, or where a dispatcher or a function says what starts.
    """
    others = (result.limits, result.coschedule, result.lost, result.dispatcher)
    outside = result.outside or callable(result.scheduler.policy)
    return all(other is None for other in others) and not outside


def watch(result: Result, job: int) -> list[Pass]:
    """Return what stood at the end of each pass from the job's submission up to its start.

    ``job``: its row. The last pass is the one at which it starts.
    """
    simulation, _ = again(result)
    arrays = simulation.arrays
    submit, start = int(result.workload.submit_time[job]), int(result.start[job])
    simulation.drive(submit - 1)
    waited = np.flatnonzero((result.workload.submit_time <= start) & (result.start >= submit))
    passes: list[Pass] = []

    def note() -> None:
        sim = arrays.sim
        plans = sim.tested > 0 or sim.depth == state.UNLIMITED
        head = -1 if plans else int(sim.head)
        # a head that has started since is not cleared
        stands = head >= 0 and int(arrays.progress[head].start) < 0
        promised = stands and sim.depth > 0
        passes.append(
            Pass(
                int(sim.time),
                _ahead(arrays, waited, job),
                head if stands else -1,
                int(sim.shadow) if promised else -1,
                int(sim.extra) if promised else 0,
                int(sim.free) if sim.free >= 0 else 0,
                _ahead(arrays, waited, job, with_filled=True),
            )
        )

    simulation.after_pass = note
    simulation.drive(start)
    return passes


def _ahead(
    arrays: state.Prepared, rows: NDArray[np.int64], job: int, with_filled: bool = False
) -> int:
    """Return how many queued jobs of some rows come before a job in primary order.

    ``with_filled``: those that have just been back-filled count as well.
    """
    sim, progress = arrays.sim, arrays.progress[rows]
    waits = progress["start"] < 0
    if with_filled:
        waits |= (progress["start"] == sim.time) & (progress["marks"] // state.BACKFILLED % 2 == 1)
    queued = rows[waits & (rows < int(sim.next))]
    if job not in queued:
        return 0
    order = _place_keys(arrays, queued)
    mine = int(np.flatnonzero(queued == job)[0])
    before = np.zeros(len(queued), np.bool_)
    undecided = np.ones(len(queued), np.bool_)
    for key in order:
        before |= undecided & (key < key[mine])
        undecided &= key == key[mine]
    return int(before.sum())


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
