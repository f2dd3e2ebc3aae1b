"""An interval of a trace to be studied alone, from the state that the machine was in.

This is the replay method of Glesser 2016, section 3.2, as simulation: running and queued jobs are
put back, and what happened before is kept for the counters of fair share. What the method cannot
do holds here too (section 3.2.2): failures of the machine and the reaction of users to other
waiting times are not replayed, so that schedules of an extract compare with each other, and not
with what was recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError
from hpcgym.workload.model import MAX_TIME, Workload
from hpcgym.workload.warm_start import Initial

UNKNOWN = "dropped: submitted before the extract, and nobody knows when it ran"
OVER_USED = "repaired: ran at the beginning on processors that others had; queued"
NO_NODES = "repaired: ran at the beginning, where the machine had no nodes left for it; queued"


def extract(workload: Workload, start: float, end: float | None = None) -> Workload:
    """Return the jobs of [start, end), and the state of the machine at ``start``, by the trace.

    What a trace recorded of a job that was submitted before ``start``, its waiting time and its run
    time, at most the requested time, says what it is at ``start``:

    - *running* if it had started before ``start`` and ended after; it keeps its start and its end.
    - *queued* if it started at ``start`` or later; it keeps its submit time, and may start from
      ``start`` on, when the scheduler looks at the queue for the first time.
    - *past* if it had ended, at ``start`` at the latest. It is no job of the extract, but kept
      in ``Workload.initial``, for fair share and for run times that are learned.

    Nothing goes unsaid in the ``cleaning`` of the extract, which counts nothing else: a job with an
    unknown waiting or run time that was submitted before ``start`` is dropped; where a trace has
    more jobs running than processors, those that started last and do not fit are queued.

    Parameters
    ----------
    workload : the trace, cleaned.
    start, end : [s] of the trace's clock, whole seconds; without ``end``, up to the last
        submission. Jobs submitted from ``end`` on are not in the extract.

    Returns
    -------
    part : the running, queued and submitted jobs, with ``part.initial``.

    Raises
    ------
    WorkloadError : times that are no whole seconds, or in the wrong order; no job in the extract;
        a trace that does not tell when jobs ran; an extract of an extract.
    """
    begin, last = interval(start, end)
    if workload.initial is not None:
        raise WorkloadError(f"{workload.name} is an extract itself: take one of the whole trace")
    submit, wait, run = workload.submit_time, workload.wait_time, recorded_run_time(workload)
    before = submit < begin
    known = (wait >= 0) & (run >= 1)
    if before.any() and not known[before].any():
        raise WorkloadError(
            f"{workload.name} does not tell when jobs ran, so nobody knows the state at {begin} s;"
            " simulate the whole and go on from there: hpcgym.continued(result, start, end)"
        )
    began = submit + wait
    runs = before & known & (began < begin) & (began + run > begin)
    fits = _fitting(workload, began, runs)
    past = before & known & (began + run <= begin)
    kept = (before & known & ~past) | (~before & (submit < last))
    if not kept.any():
        raise nothing_there(workload, begin, end)
    waits = np.where(runs & ~fits, begin - submit, wait)
    jobs = replace(workload.with_columns(wait_time=waits), cleaning={})
    jobs = jobs.take(kept, name=named(workload, begin, end))
    started = np.where(fits, began, -1)[kept]
    state = Initial(begin, started, workload.take(past, name=f"{workload.name} before {begin}"))
    counts = {UNKNOWN: int((before & ~known).sum()), OVER_USED: int((runs & ~fits).sum())}
    return replace(jobs, initial=state).counted(counts)


def without_nodes(workload: Workload, job: int) -> Workload:
    """Return an extract in which a job that was said to run waits, and is counted."""
    initial = workload.initial
    assert initial is not None
    start, wait = initial.start.copy(), workload.wait_time.copy()
    start[job], wait[job] = -1, initial.begin - workload.submit_time[job]
    queued = replace(workload.with_columns(wait_time=wait), initial=replace(initial, start=start))
    return queued.counted({NO_NODES: 1})


def interval(start: Any, end: Any) -> tuple[int, int]:
    """Return the two times of an extract [s], checked; a time beyond all where there is no end."""
    begin = _whole("start", start)
    last = MAX_TIME + 1 if end is None else _whole("end", end)
    if last <= begin:
        raise WorkloadError(f"end must be later than start, {begin} s, not {last} s")
    return begin, last


def nothing_there(workload: Workload, begin: int, end: float | None) -> WorkloadError:
    """Return the error that no job is in an interval, which tells where there are some."""
    until = "on" if end is None else f"to {int(end)} s"
    text = f"{workload.name} has no job from {begin} s {until}"
    if len(workload):
        submit = workload.submit_time
        text += f"; it has submissions from {submit.min()} s to {submit.max()} s of its clock"
    return WorkloadError(text)


def named(workload: Workload, begin: int, end: float | None) -> str:
    """Return what an extract is called."""
    return f"{workload.name} from {begin}" + ("" if end is None else f" to {int(end)}")


def recorded_run_time(workload: Workload) -> NDArray[np.int64]:
    """Return how long jobs run, at most their requested time where that is known, (n_jobs,) [s]."""
    requested, run = workload.requested_time, workload.run_time
    return np.where(requested > 0, np.minimum(run, requested), run)


def _whole(what: str, time: Any) -> int:
    """Return a time as an int [s], checked."""
    try:
        seconds = int(time)
    except (TypeError, ValueError, OverflowError):
        seconds = -1
    if seconds != time or not 0 <= seconds <= MAX_TIME:
        raise WorkloadError(
            f"{what} must be a whole number of seconds of the trace's clock, from 0 on, not"
            f" {time!r}"
        )
    return seconds


def _fitting(
    workload: Workload, began: NDArray[np.int64], runs: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which of the jobs that run have room, in the order of their starts, (n_jobs,)."""
    fits = np.zeros(len(workload), np.bool_)
    free = workload.processors
    rows = np.flatnonzero(runs)
    for job in rows[np.argsort(began[rows], kind="stable")].tolist():
        width = int(workload.requested_processors[job])
        fits[job] = width <= free
        free -= width * int(fits[job])
    return fits
