"""Who ran while a job waited: before its first start, and after each time it was stopped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.explanation.stops import all_runs, whom_others_stopped
from hpcgym.schedule.result import Result

Ints = NDArray[np.int64]
#: Whether a run began by stopping others: no; perhaps, as others may have stopped them; surely.
NO, PERHAPS, SURELY = range(3)


class Meanwhile(NamedTuple):
    """A run of each job that ran while another waited, (k,), by their starts.

    Of several runs of a job it is the one that began by stopping others, or else the first.

    Attributes
    ----------
    row : of the job, int64.
    start, end : [s].
    before : whether the run had begun before that wait did, bool.
    resumed : whether the job had been suspended and went on then, bool.
    marked : whether the schedule tells of this run if it was back-filled, bool: it tells that of
        one run of each job.
    stopped : whether it began by stopping others: NO, PERHAPS or SURELY, int64.
    """

    row: Ints
    start: Ints
    end: Ints
    before: NDArray[np.bool_]
    resumed: NDArray[np.bool_]
    marked: NDArray[np.bool_]
    stopped: Ints


def waits_of(result: Result, job: int) -> list[tuple[int, int]]:
    """Return from when until when a job waited, by time [s]; ``job`` is its row."""
    runs, of = all_runs(result)
    mine = np.flatnonzero(of == job)
    since, until = runs.workload.submit_time[mine], runs.start[mine]
    spans = zip(since.tolist(), until.tolist(), strict=True)
    return sorted(span for span in spans if span[0] < span[1])


def meanwhile(result: Result, job: int) -> Meanwhile:
    """Return who ran while a job waited; ``job`` is its row."""
    runs, of = all_runs(result)
    spans = waits_of(result, job)
    found = [np.zeros((0, 2), np.int64)]
    for begin, end in spans:
        run = np.flatnonzero((runs.start < end) & (runs.end > begin) & (of != job))
        run = run[np.argsort(runs.start[run], kind="stable")]
        found.append(np.stack((run, np.full(len(run), begin)), axis=1))
    run, since = np.concatenate(found).T
    stopped = _stopped(result, runs.start[run], of[run], spans)
    # of each job the run that stopped others, or else the first
    order = np.lexsort((np.arange(len(run)), -stopped, of[run]))
    kept = order[np.unique(of[run][order], return_index=True)[1]]
    kept = kept[np.argsort(runs.start[run[kept]], kind="stable")]
    row, start, end = of[run[kept]], runs.start[run[kept]], runs.end[run[kept]]
    suspends = result.pieces is not None
    resumed = (start > result.start[row]) & suspends
    marked = ~resumed if suspends else end == result.end[row]
    return Meanwhile(row, start, end, start < since[kept], resumed, marked, stopped[kept])


def _stopped(result: Result, start: Ints, row: Ints, spans: list[tuple[int, int]]) -> Ints:
    """Return whether runs began by stopping others, (k,): NO, PERHAPS or SURELY."""
    known: dict[tuple[int, int], int] = {}
    for victim in whom_others_stopped(result, spans):
        for by in victim.by:
            key = by, victim.time
            known[key] = max(known.get(key, NO), SURELY if len(victim.by) == 1 else PERHAPS)
    pairs = zip(row.tolist(), start.tolist(), strict=True)
    return np.array([known.get(pair, NO) for pair in pairs], np.int64)
