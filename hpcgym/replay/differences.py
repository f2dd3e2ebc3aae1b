"""How two schedules of the same jobs differ, job by job: a replayed and a simulated one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.replay.run import Replay
from hpcgym.schedule.result import Result

if TYPE_CHECKING:
    import pandas as pd

#: [s] up to which two starts count as the same.
CLOSE_S = 60

#: Why the starts of a job differ, in the column ``why``.
SAME, REPLAYED, SIMULATED, FOLLOWS = "", "replayed first", "simulated first", "follows"


def table_of(replay: Replay) -> pd.DataFrame:
    """Return both schedules job by job.

    Columns: job_number, requested_processors, submit_time, run_time, requested_time, start_time,
    simulated_start_time and difference, the first less the second, all int64 and times in seconds;
    and why, a text. It is empty where the starts are at most :data:`CLOSE_S` apart. Else "replayed
    first" or "simulated first" where up to then the same jobs ran in both schedules: only here
    their rules parted, and the one that is named started the job. "follows": they had parted
    before.
    """
    import pandas as pd

    replayed, simulated = replay
    columns = replayed.workload.columns
    return pd.DataFrame(
        {
            "job_number": columns["job_number"],
            "requested_processors": columns["requested_processors"],
            "submit_time": columns["submit_time"],
            "run_time": replayed.run_time,
            "requested_time": columns["requested_time"],
            "start_time": replayed.start,
            "simulated_start_time": simulated.start,
            "difference": replayed.start - simulated.start,
            "why": why(replayed, simulated),
        }
    )


def why(replayed: Result, simulated: Result) -> list[str]:
    """Return why the starts of each job differ; see :func:`table_of`."""
    difference = replayed.start - simulated.start
    apart = np.flatnonzero(np.abs(difference) > CLOSE_S)
    found = [SAME] * len(difference)
    begins = _where_they_part(
        np.minimum(replayed.start, simulated.start)[apart],
        np.maximum(replayed.end, simulated.end)[apart],
    )
    for job, begin in zip(apart.tolist(), begins.tolist(), strict=True):
        first = REPLAYED if difference[job] < 0 else SIMULATED
        found[job] = first if begin else FOLLOWS
    return found


def _where_they_part(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of some spans begin while none of the others is under way."""
    order = np.argsort(begin, kind="stable")
    latest = np.maximum.accumulate(end[order])
    parts = np.ones(len(begin), np.bool_)
    parts[order[1:]] = begin[order[1:]] >= latest[:-1]
    return parts


def facts_of(replay: Replay) -> dict[str, Any]:
    """Return what can be said of the differences.

    Returns
    -------
    "jobs"; "same_starts", the share of starts that are the same to the second; "close_starts", that
    of starts at most :data:`CLOSE_S` apart; "median_difference_s" and "largest_difference_s",
    without their signs; "parted", how many times the schedules parted while the same jobs ran in
    both; "mean_bsld" and "simulated_mean_bsld", and "mean_bsld_ratio", the first over the second.
    """
    replayed, simulated = replay
    apart = np.abs(replayed.start - simulated.start)
    mean, other = float(replayed.bsld.mean()), float(simulated.bsld.mean())
    parted = [one for one in why(replayed, simulated) if one in (REPLAYED, SIMULATED)]
    return {
        "jobs": len(apart),
        "same_starts": float((apart == 0).mean()),
        "close_starts": float((apart <= CLOSE_S).mean()),
        "median_difference_s": float(np.median(apart)),
        "largest_difference_s": int(apart.max()),
        "parted": len(parted),
        "mean_bsld": mean,
        "simulated_mean_bsld": other,
        "mean_bsld_ratio": mean / other,
    }
