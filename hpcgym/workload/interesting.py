"""Extracts of a trace that are worth a replay: intervals under stress."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError
from hpcgym.workload.extracts import recorded_run_time
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

_STARTS = 4  # intervals that are looked at begin so many times in their length
CRITERIA = ("utilization", "waiting", "jobs")


def interesting_extracts(
    workload: Workload, number: int = 5, length_s: int = 86_400
) -> pd.DataFrame:
    """Return intervals of a trace under stress, for :func:`hpcgym.workload.extract`.

    Glesser 2016, section 3.2.1, names what an interesting extract has: a high utilization, many
    requested resources in waiting state, and many jobs. So each interval has a place by each of the
    three, the share of all intervals that have no more (1: the top), and the worst of its three
    places is its rank. The document does not say how to weigh the three, nor how long an extract
    is; that is up to us.

    Parameters
    ----------
    workload : the trace, cleaned, which tells when jobs ran. Jobs of which it does not tell it are
        counted by their submissions only.
    number : of intervals, at most; none overlap.
    length_s : of each [s]. Intervals begin at each quarter of it from the first submission on, and
        end at the last at the latest.

    Returns
    -------
    extracts : a row for each, the best first: "begin_s" and "end_s" by the trace's clock;
        "utilization", the share of processor seconds in use; "waiting", the mean of the processors
        that waiting jobs requested, over the machine; "jobs", that were submitted; "rank".

    Raises
    ------
    WorkloadError : no whole numbers of at least 1, a trace that is shorter than an interval, or
        does not tell when jobs ran.
    """
    import pandas as pd

    if not isinstance(workload, Workload):
        raise WorkloadError(
            "interesting_extracts takes a workload, as of load_workload or result.as_workload(),"
            f" not a {type(workload).__name__}"
        )
    for name, value in (("number", number), ("length_s", length_s)):
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise WorkloadError(f"{name} must be a whole number of at least 1, not {value!r}")
    submit, wait, run = workload.submit_time, workload.wait_time, recorded_run_time(workload)
    known = (wait >= 0) & (run >= 1)
    if not known.any():
        raise WorkloadError(
            f"{workload.name} does not tell when jobs ran; a simulation does:"
            " hpcgym.simulate(workload).as_workload(), or the .swf file of hpcgym simulate --output"
        )
    first, last = int(submit.min()), int(submit.max()) + 1
    begins = np.arange(first, last - length_s + 1, max(length_s // _STARTS, 1))
    if not len(begins):
        raise WorkloadError(
            f"{workload.name} has submissions in {last - first} s, which is less than an interval"
            f" of {length_s} s"
        )
    started, size = (submit + wait)[known], workload.requested_processors[known]
    seconds = workload.processors * length_s
    ends = begins + length_s
    found = pd.DataFrame({"begin_s": begins, "end_s": ends})
    used = _processor_seconds(started, started + run[known], size, begins, ends)
    queued = _processor_seconds(submit[known], started, size, begins, ends)
    found["utilization"], found["waiting"] = used / seconds, queued / seconds
    submits = np.sort(submit)
    found["jobs"] = np.searchsorted(submits, ends) - np.searchsorted(submits, begins)
    found["rank"] = found[list(CRITERIA)].rank(method="max", pct=True).min(axis=1)
    return _apart(found, number)


def _processor_seconds(
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    size: NDArray[np.int64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the processor seconds of jobs within each of some intervals, (n,).

    Jobs have ``size`` processors from ``begin`` to ``end`` [s], each (n_jobs,).
    """
    times = np.concatenate([begin, end])
    order = np.argsort(times, kind="stable")
    times, change = times[order], np.concatenate([size, -size])[order]
    # between two times the level is constant, so the sum up to a time is a straight line
    sums = np.concatenate([[0], np.cumsum(np.cumsum(change)[:-1] * np.diff(times))])
    up_to_start, up_to_stop = (np.interp(at, times, sums) for at in (starts, stops))
    within: NDArray[np.float64] = up_to_stop - up_to_start
    return within


def _apart(found: pd.DataFrame, number: int) -> pd.DataFrame:
    """Return the best intervals of which none overlap; the earlier one where two are alike."""
    begins, ends = found["begin_s"].to_numpy(), found["end_s"].to_numpy()
    taken: list[int] = []
    for row in np.lexsort((begins, -found["rank"].to_numpy())).tolist():
        if all(ends[row] <= begins[other] or ends[other] <= begins[row] for other in taken):
            taken.append(row)
        if len(taken) == number:
            break
    return found.iloc[taken].reset_index(drop=True)
