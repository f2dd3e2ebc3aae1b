"""Slicing a trace into weeks and months, each to be simulated from an empty machine.

The rule is that of the paper on index and mixed policies (Legrand, Trystram and Zrigui, sections
5.1 and 11): the first period is ignored as the machine's test phase, and jobs that started in one
period and ended in another are dropped. A job belongs to the period it was *submitted* in. (That is
the paper's text; its numbers come out without the dropping, and with 60 s in bounded slowdowns: see
``benchmarks/mixed_policies/README.md``.)

Periods count from the first submission of the log, wherever its clock begins: a log in seconds
since 1970 has the same weeks. The paper's count from time 0 of the log's clock, ``origin_s=0``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hpcgym.errors import WorkloadError
from hpcgym.workload.model import MAX_TIME, Workload

DAY_S = 86_400
WEEK_S = 7 * DAY_S
MONTH_S = 30 * DAY_S


def slices(
    workload: Workload,
    period_s: int,
    *,
    first: int = 1,
    label: str = "period",
    origin_s: int | None = None,
) -> list[Workload]:
    """Return the jobs of each period, by the period they were submitted in.

    A job is dropped if its *logged* start (submit + wait) and end (start + run) lie in different
    periods, and counted in the ``cleaning`` of its slice, which counts nothing else; an unknown
    wait counts as none. Periods without jobs are left out, so that the number of a period is that
    of its name, not its place in the list. Submit times stay those of the trace. A slice shares the
    memory of its columns with the others.

    Parameters
    ----------
    workload : the trace.
    period_s : length of a period, in seconds.
    first : number of the first period returned; period 0 begins at ``origin_s``.
    label : what a period is called: slices are named ``NAME LABEL NUMBER``.
    origin_s : when period 0 begins, on the trace's clock [s]; None: at the first submission of the
        log, ``workload.first_submit_s``.

    Raises
    ------
    WorkloadError : a period of less than a second, a time that is no whole number of seconds, no
        job in any period from ``first`` on, or an extract
        (:func:`hpcgym.workload.extracts.extract`).
    """
    if workload.initial is not None:
        raise WorkloadError(
            f"{workload.name} begins with jobs that run: a {label} begins with an empty machine,"
            " and is to be taken of the whole trace"
        )
    period_s = _whole("period_s", period_s)
    if period_s < 1:
        raise WorkloadError(f"period_s must be a whole number of at least 1, not {period_s}")
    origin = workload.first_submit_s if origin_s is None else _whole("origin_s", origin_s)
    submit = workload.submit_time - origin
    start = submit + np.maximum(workload.wait_time, 0)
    crosses = start // period_s != (start + np.maximum(workload.run_time, 0)) // period_s
    period = submit // period_s
    kept = workload.take(~crosses)
    kept_period = period[~crosses]
    parts = []
    for number in np.unique(kept_period[kept_period >= first]).tolist():
        begin, end = np.searchsorted(kept_period, [number, number + 1]).tolist()
        dropped = np.ptp(np.searchsorted(period, [number, number + 1])) - (end - begin)
        part = kept.take(slice(begin, end), name=f"{workload.name} {label} {number}")
        part = replace(part, cleaning={})
        parts.append(part.counted({f"dropped: crosses the end of a {label}": dropped}))
    if not parts:
        raise WorkloadError(
            f"{workload.name}: no job begins and ends within the same {label}, from {label} {first}"
            f" on ({label} 0 begins at {int(origin)} s)"
        )
    return parts


def _whole(argument: str, value: Any) -> int:
    """Return a time as an int, or say that it is no whole number of seconds."""
    try:
        if int(value) == value and abs(value) <= MAX_TIME:
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise WorkloadError(f"{argument} must be a whole number of seconds, not {value!r}")


def weeks(workload: Workload, origin_s: int | None = None) -> list[Workload]:
    """Return the weeks of a trace from week 1 on: 7 days each; see :func:`slices`."""
    return slices(workload, WEEK_S, label="week", origin_s=origin_s)


def months(workload: Workload, origin_s: int | None = None) -> list[Workload]:
    """Return the months of a trace from month 1 on: 30 days each; see :func:`slices`."""
    return slices(workload, MONTH_S, label="month", origin_s=origin_s)
