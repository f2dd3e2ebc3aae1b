"""What a workload is like: machine, load, widths, estimates, arrivals, users; and what is odd."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.dates import zone_of
from hpcgym.errors import DroppedJobsWarning, WorkloadWarning, warn_caller
from hpcgym.headers import header_number
from hpcgym.names import MEMORY
from hpcgym.units import DAY_S, HOUR_S, duration
from hpcgym.words import counted
from hpcgym.workload.amounts import AMOUNTS, asks_of_running
from hpcgym.workload.cleaning import CUT, most_busy
from hpcgym.workload.columns import MISSING
from hpcgym.workload.io.swf_header import called, names_of
from hpcgym.workload.model import REORDERED, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

Floats = NDArray[np.float64]

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

#: Status of SWF in words.
_STATUS = {0: "failed", 1: "completed", 5: "cancelled", MISSING: "not told"}

#: What is counted by numbers or names -> the column, and what a number without a name is called.
SHARES = {
    "users": ("user_id", "user"),
    "groups": ("group_id", "group"),
    "queues": ("queue", "queue"),
    "partitions": ("partition", "partition"),
}

SHOWN = 10  # of each of them, those with most processor seconds

# what makes a warning: shares of jobs
_TOUCHED = 0.03
_EXACT = 0.95
_DROPPED = "dropped: "
#: [s] that a job may run beyond its limit without a warning. Slurm looks each 30 s for jobs that
#: are over theirs, and gives them 30 s more (KillWait of its page "slurm.conf").
GRACE_S = 60
#: The beginnings of repairs that give jobs a limit which their users did not request.
_INVENTED = ("repaired: requested_time ", "repaired: time limit ")
# of a log's head: how many jobs it should have, and which share of them makes it thin
_LEAST_HEAD = 30
_THIN = 0.5


def summary(workload: Workload) -> dict[str, Any]:
    """Return what a workload is like, as JSON can hold it; times in seconds.

    Parameters
    ----------
    workload : cleaned jobs: with run times, processors and requested times.

    Returns
    -------
    facts : "name", "processors", "jobs", "days" from the first to the last submission; "begin",
        when that was; "load", processor seconds that were submitted over those that the machine had
        in that time, None of a single time; "run_time_s", "processors_of_jobs" and "wait_s", their
        mean, median, 95th percentile and maximum; "widths", shares of jobs and of processor
        seconds; "estimates", how exact requested times are; "arrivals" by hour and weekday, None
        where the log does not tell when it began; "status"; "resources", how many jobs ask for each
        resource of units or licence, the most of one job, and hours of it; "users", "groups",
        "queues" and "partitions", the first ten by processor seconds.
    """
    area = workload.run_time.astype(np.float64) * workload.requested_processors
    wait = workload.wait_time
    span = int(workload.submit_time[-1] - workload.submit_time[0])
    return {
        "name": workload.name,
        "processors": workload.processors,
        "jobs": len(workload),
        "days": span / DAY_S,
        **_calendar(workload),
        "load": float(area.sum() / (workload.processors * span)) if span else None,
        "processor_hours": float(area.sum() / HOUR_S),
        "run_time_s": _spread(workload.run_time),
        "processors_of_jobs": _spread(workload.requested_processors),
        "wait_s": _spread(wait[wait >= 0]),
        "widths": _widths(workload, area),
        "estimates": _estimates(workload),
        "status": {
            _STATUS.get(number, f"status {number}"): jobs
            for number, jobs in _counts(workload.status)
        },
        "resources": _resources(workload),
        **{key: shares(workload, column, kind, area) for key, (column, kind) in SHARES.items()},
    }


def _resources(workload: Workload) -> dict[str, dict[str, Any]]:
    """Return how many jobs ask for each resource or licence, the most of one, and its hours."""
    return {
        name: {
            "jobs": int(np.count_nonzero(asked)),
            "most": int(asked.max()),
            "hours": float((asked.astype(np.float64) * workload.run_time).sum() / HOUR_S),
        }
        for name, asked in asks_of_running(workload).items()
        if name not in (*AMOUNTS, MEMORY)
    }


def oddities(workload: Workload, raw: Workload) -> list[str]:
    """Return facts in a log that make results doubtful, a line for each.

    Parameters
    ----------
    workload : the cleaned jobs.
    raw : the same before cleaning, as the file has them.
    """
    facts = doubts(workload, raw)
    busy = most_busy(workload.columns)
    if busy > workload.processors:
        facts.append(
            f"its jobs had {busy:,} processors at once, more than the {workload.processors:,} of"
            " its machine: is that its size?"
        )
    early = int(np.count_nonzero(raw.wait_time < MISSING))
    if early:
        facts.append(f"{counted(early, 'job')} started before being submitted: negative waits")
    untold = float((workload.wait_time < 0).mean())
    if untold > _TOUCHED:
        facts.append(f"{_percent(untold)} of the jobs have no start in the log")
    if head := _thin_head(workload):
        facts.append(head)
    if _began(workload.header) is None:
        facts.append("it has no date of its beginning: hours and weekdays are unknown")
    return facts


def _thin_head(workload: Workload) -> str:
    """Return a remark, with a remedy, if a log begins with a few jobs from before its time.

    ``sacct -S`` prints the jobs that had not ended at a time: of earlier jobs only those that
    waited or ran for long. So no job ends before that time, and few jobs are submitted.
    """
    at = workload.submit_time
    ends = at + workload.wait_time + workload.run_time
    first_end = int(ends[workload.wait_time >= 0].min(initial=at[-1]))
    early = int(np.searchsorted(at, first_end))
    rest, span = len(at) - early, int(at[-1]) - first_end
    usual = rest / span * (first_end - at[0]) if span > 0 else 0.0
    if usual < _LEAST_HEAD or early > _THIN * usual:
        return ""
    return (
        f"its first {duration(first_end - at[0])} have {counted(early, 'job')}, none of which ended"
        f" in that time, and not {usual:,.0f} as the rest has: the log begins with what had not"
        f" ended, as sacct -S selects; simulate --from {first_end} begins behind it"
    )


def warn_of_doubts(workload: Workload, raw: Workload) -> None:
    """Warn of the :func:`doubts` about a log: a line about cleaning, and one about other facts."""
    touched = _touched(workload, raw)
    if touched:
        more = f"; {len(touched) - 1} more such remarks" if len(touched) > 1 else ""
        details = touched if more else ()
        drops = f"jobs were {_DROPPED}" in touched[0]
        category = DroppedJobsWarning if drops else WorkloadWarning
        warn_caller(f"{workload.name}: {touched[0]}{more}", category, details)
    for line in _known_future(workload):
        warn_caller(f"{workload.name}: {line}", WorkloadWarning)


def warn_of_dropped(kept: Workload, workload: Workload) -> None:
    """Warn if many of some jobs were dropped."""
    if len(workload) - len(kept) > _TOUCHED * len(workload):
        before = replace(workload, cleaning={})
        gone = {k: n for k, n in kept.cleaning.items() if workload.cleaning.get(k, 0) != n}
        (line,) = _touched(replace(kept, cleaning=gone), before)
        warn_caller(f"{workload.name}: {line}", DroppedJobsWarning)


def doubts(workload: Workload, raw: Workload) -> list[str]:
    """Return those of :func:`oddities` that matter to simulations, a line for each.

    They are cleaning that touches many jobs, and requested times that are the run times. Parameters
    are those of that function.
    """
    return [*_touched(workload, raw), *_known_future(workload)]


def _touched(workload: Workload, raw: Workload) -> list[str]:
    """Return how reading and cleaning changed many of the jobs, the worst first.

    First come all dropped jobs together, then limits that no user requested, then other repairs.
    """
    most = _TOUCHED * len(raw)
    cleaning = sorted(workload.cleaning.items(), key=lambda item: -item[1])
    dropped, repairs, limits = dict[str, int](), list[str](), list[str]()
    for reason, number in cleaning:
        if reason.startswith(_DROPPED):
            if raw.cleaning.get(reason, 0) != number:  # else of lines that are no jobs
                dropped[reason.removeprefix(_DROPPED)] = number
            continue
        # of what is missing, cleaning repairs or drops what is needed, and is told itself
        if reason == CUT and _run_late(raw) <= most:
            continue
        untold = reason == REORDERED or reason.startswith(("not used: ", "repaired: missing "))
        if not untold and number > most:
            invented = reason.startswith(_INVENTED)
            line = f"{_percent(number / len(raw))} of the jobs were {reason}"
            (limits if invented else repairs).append(line)
    total = sum(dropped.values())
    if total > most:
        shares = [f"{why} ({_percent(number / len(raw))})" for why, number in dropped.items()]
        why = ", ".join(shares if len(shares) > 1 else dropped)
        limits.insert(0, f"{_percent(total / len(raw))} of the jobs were {_DROPPED}{why}")
    return limits + repairs


def _run_late(raw: Workload) -> int:
    """Return how many jobs ran for longer than a scheduler takes to end them at their limits."""
    over = raw.run_time - raw.requested_time
    return int(((over > GRACE_S) & (raw.requested_time > 0)).sum())


def _known_future(workload: Workload) -> list[str]:
    """Return that requested times are the run times, if so."""
    exact = float((workload.requested_time == workload.run_time).mean())
    if exact < _EXACT:
        return []
    return [
        f"{_percent(exact)} of the requested times are the run times: schedulers know the future,"
        " and predictions are worth nothing"
    ]


def shares(workload: Workload, column: str, kind: str, area: Floats) -> dict[str, Any]:
    """Return how many there are in a column, and the first by processor seconds.

    Parameters
    ----------
    column : of numbers, such as ``user_id``.
    kind : what one without a name is called.
    area : processor seconds of each job, (n_jobs,).

    Returns
    -------
    "number", and "first": of each its "name", "jobs", and its "area", a share of all.
    """
    names = names_of(workload, column)
    numbers, place = np.unique(workload.columns[column], return_inverse=True)
    place = place.reshape(-1)
    jobs = np.bincount(place, minlength=len(numbers))
    taken = np.bincount(place, area, len(numbers)) / max(area.sum(), 1.0)
    order = [k for k in np.argsort(-taken, kind="stable").tolist() if numbers[k] != MISSING]
    first = [
        {
            "name": called(names, kind, int(numbers[k])),
            "jobs": int(jobs[k]),
            "area": float(taken[k]),
        }
        for k in order[:SHOWN]
    ]
    return {"number": len(order), "first": first}


def _calendar(workload: Workload) -> dict[str, Any]:
    """Return when the first job was submitted, and how many were by hour and by weekday."""
    began = _began(workload.header)
    if began is None:
        return {"begin": None, "arrivals": None}
    import pandas as pd

    zone, _ = zone_of(workload.header)
    seconds = workload.submit_time[workload.submit_time >= 0] + began
    times = pd.DatetimeIndex(pd.to_datetime(seconds, unit="s", utc=True)).tz_convert(zone)
    hours = np.bincount(times.hour, minlength=24).tolist()
    days = np.bincount(times.day_of_week, minlength=7).tolist()
    return {
        "begin": times[0].isoformat(),
        "arrivals": {"hours": hours, "weekdays": dict(zip(WEEKDAYS, days, strict=True))},
    }


def _began(header: Mapping[str, list[str]]) -> int | None:
    """Return when second 0 was, in seconds since 1970; None where the log does not tell it."""
    return header_number(header, "UnixStartTime")


def _spread(values: NDArray[Any]) -> dict[str, float] | None:
    """Return mean, median, 95th percentile and maximum; None of nothing."""
    if not values.size:
        return None
    median, high = np.percentile(values, [50, 95])
    return {
        "mean": float(values.mean()),
        "median": float(median),
        "p95": float(high),
        "max": float(values.max()),
    }


def _widths(workload: Workload, area: Floats) -> dict[str, Any]:
    """Return shares of jobs and of processor seconds by powers of 8, and of powers of 2."""
    width = workload.requested_processors
    edges = [1]
    while edges[-1] < width.max():
        edges.append(edges[-1] * 8)
    place = np.searchsorted(edges, width)
    jobs = np.bincount(place, minlength=len(edges)) / width.size
    taken = np.bincount(place, area, len(edges)) / max(area.sum(), 1.0)
    lows = [1, *(edge + 1 for edge in edges[:-1])]
    names = [f"{a}" if a == b else f"{a} to {b}" for a, b in zip(lows, edges, strict=True)]
    return {
        "classes": [
            {"processors": name, "jobs": float(j), "area": float(a)}
            for name, j, a in zip(names, jobs, taken, strict=True)
        ],
        "powers_of_2": float(((width & (width - 1)) == 0).mean()),
    }


def _estimates(workload: Workload) -> dict[str, float]:
    """Return how run times are over requested times: means, and shares of jobs."""
    run, requested = workload.run_time, np.maximum(workload.requested_time, 1)
    ratio = run / requested
    return {
        "mean_accuracy": float(ratio.mean()),
        "median_accuracy": float(np.median(ratio)),
        "exact": float((run == requested).mean()),
        "below_a_tenth": float((ratio < 0.1).mean()),
        "killed": float(workload.killed.mean()),
    }


def _counts(values: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the values of a column and how often each is there, the most frequent first."""
    numbers, jobs = np.unique(values, return_counts=True)
    order = np.argsort(-jobs, kind="stable")
    return list(zip(numbers[order].tolist(), jobs[order].tolist(), strict=True))


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
