"""When running jobs are expected to end, by the predictions of a schedule and corrections."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hpcgym.reference.events import INCREMENTS

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.validation.schedules import Timeline, Times


class Pieces(NamedTuple):
    """Parts of runs over which a job is expected to end at one time, each (n_pieces,).

    Attributes
    ----------
    job : whose run it is.
    begin, stop : from and up to which place in the times of the schedule.
    end : [s] when the job is expected to end.
    """

    job: Times
    begin: Times
    stop: Times
    end: Times


def ends_are_told(result: Result, length: Times) -> bool:
    """Return whether it follows from a schedule when jobs are expected to end."""
    outlives = bool((result.predicted_run_time < length).any())
    return not outlives or result.scheduler.correction != "predicted-again"


def pieces_of(result: Result, line: Timeline) -> Pieces:
    """Return the parts of all runs: a prediction counts until it expires or the job ends."""
    job = np.arange(len(result.start))
    seconds, since = result.predicted_run_time.copy(), result.start.copy()
    parts = []
    for step in range(64):  # those that double are above the clock by then
        end = result.start[job] + seconds
        begin = np.maximum(np.searchsorted(line.time, since, "left"), line.start[job])
        stop = np.minimum(np.searchsorted(line.time, end, "left"), line.end[job])
        parts.append(Pieces(job, begin, stop, end))
        again = end < result.end[job]
        if not again.any():
            break
        job, since = job[again], end[again]
        seconds = _corrected(result, job, seconds[again], step)
    joined = Pieces(*map(np.concatenate, zip(*parts, strict=True)))
    return Pieces(*(column[joined.begin < joined.stop] for column in joined))


def _corrected(result: Result, job: Times, seconds: Times, step: int) -> Times:
    """Return the predictions, from the starts, in place of those that were too short."""
    requested: Times = result.workload.requested_time[job]
    correction = result.scheduler.correction
    if correction == "recursive-doubling":
        return 2 * seconds
    if correction == "incremental" and step < len(INCREMENTS):
        return np.minimum(result.predicted_run_time[job] + INCREMENTS[step], requested)
    return requested
