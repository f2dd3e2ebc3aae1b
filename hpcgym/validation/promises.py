"""What heads of a queue in order of submission were promised: worked out from starts alone.

The *head* is the first job that waits once all has happened in a second. If it does not fit, it
starts at the latest at its *shadow time*: when enough running jobs will have ended, by the times
that they requested. A job behind it in the queue keeps this promise if it has ended by then, or if
it takes only processors that are free beside the head then, together with others that start in that
second. This is EASY's rule (Lifka 1995; Mu'alem and Feitelson 2001), worked out anew without
trusting who made the schedule.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


class Promises(NamedTuple):
    """What heads were promised, and which jobs did not keep it.

    Attributes
    ----------
    promised : (n_jobs,) int64 [s], the first shadow time of each job as head; -1 of one that never
        was left waiting as head.
    delays : (n_jobs,) bool, jobs that start ahead of the head, and delay it by requested times.
    """

    promised: NDArray[np.int64]
    delays: NDArray[np.bool_]

    def broken(self, start: NDArray[np.int64], jobs: NDArray[np.bool_]) -> float:
        """Return the share of some promised jobs that start later; 0 if none is promised."""
        bound = jobs & (self.promised >= 0)
        late = bound & (start > self.promised)
        return int(late.sum()) / max(int(bound.sum()), 1)


def promises_to_heads(result: Result) -> Promises:
    """Return what heads were promised in a schedule of a pool, in order of submission.

    No job may run longer than it requests: longer ones are stopped then. Time in proportion to the
    jobs and, for each that starts ahead of a head, to those that run.
    """
    jobs, start = result.workload, result.start
    width = jobs.requested_processors.tolist()
    begin, end = start.tolist(), (start + result.run_time).tolist()
    by_then = (start + jobs.requested_time).tolist()
    promised = np.full(len(jobs), -1)
    delays = np.zeros(len(jobs), np.bool_)
    submit = jobs.submit_time.tolist()
    times = np.unique(np.concatenate([jobs.submit_time, start, start + result.run_time])).tolist()
    starts = np.argsort(start, kind="stable").tolist()
    ends = np.lexsort((start, end)).tolist()
    running: list[tuple[int, int]] = []  # requested end and job, the first to end first
    free, head, last, started, ended = result.cluster.processors, 0, -1, 0, 0
    for now in times:
        while ended < len(ends) and end[ends[ended]] <= now and begin[ends[ended]] < now:
            job = ends[ended]
            del running[bisect_left(running, (by_then[job], job))]
            free += width[job]
            ended += 1
        new = []
        while started < len(starts) and begin[starts[started]] == now:
            new.append(starts[started])
            started += 1
        while head < len(begin) and begin[head] <= now:
            head += 1
        waits = head < len(begin) and submit[head] <= now
        ahead = [job for job in new if waits and job > head]
        for job in new:
            if not (waits and job > head):
                insort(running, (by_then[job], job))
                free -= width[job]
        if waits and (ahead or head != last):
            shadow, extra = _shadow(width[head], free, running, width, now)
            if head != last:
                promised[head], last = shadow, head
            longer = [job for job in ahead if by_then[job] > shadow]
            if sum(width[job] for job in longer) > extra:
                delays[longer] = True
        for job in ahead:
            insort(running, (by_then[job], job))
            free -= width[job]
    return Promises(promised, delays)


def _shadow(
    needed: int, free: int, running: list[tuple[int, int]], width: list[int], now: int
) -> tuple[int, int]:
    """Return when so many processors will be free, and how many more are free then."""
    shadow = now
    for by_then, job in running:
        if by_then > shadow:
            if free >= needed:
                break
            shadow = by_then
        free += width[job]
    return shadow, free - needed
