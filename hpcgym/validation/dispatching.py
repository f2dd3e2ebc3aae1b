"""What is proved of schedules whose dispatcher takes time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.validation.schedules import Timeline, Times, cases
from hpcgym.workload.warm_start import decided

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.dispatchers.calls import Dispatching


def check_call_numbers(result: Result) -> list[str]:
    """Find jobs that start by a call that there is not, where a dispatcher takes time."""
    told = result.dispatching
    if told is None:
        return []
    n_jobs, n_calls = len(result.workload), len(told.time)
    if told.call.shape != (n_jobs,) or told.seconds.shape != (n_calls,):
        return [f"the calls of {n_jobs} jobs, and the seconds of {n_calls} calls, do not match"]
    placed = (told.call >= 0) & (told.call < n_calls)
    return cases(
        np.where(decided(result.workload), ~placed, told.call != -1),
        f"job {{}} starts by call {{}} of {n_calls}",
        told.call,
    )


def check_calls(result: Result, line: Timeline, delays: tuple[int, int]) -> list[str]:
    """Find calls of a dispatcher at wrong times, and jobs that do not start by their call.

    ``delays`` : of jobs that wait for processors to be switched on, see
    :func:`hpcgym.validation.idle_power.delays_s`.
    """
    told = result.dispatching
    assert told is not None
    return [
        *_check_times(told, line.time[line.submission | line.termination]),
        *_check_seconds(result, told),
        *_check_starts(result, told, delays),
    ]


def _check_times(told: Dispatching, events: Times) -> list[str]:
    """Find calls while another is thought about, and such that nothing has led to."""
    answered = told.time + told.seconds
    early = np.append(False, told.time[1:] < answered[:-1])
    # the first event after the call before, which is thought about while it happens
    after = np.searchsorted(events, told.time[:-1], "right")
    next_event = np.append(events, np.iinfo(np.int64).max)[after]
    meanwhile = np.append(False, (told.time[1:] == answered[:-1]) & (next_event <= told.time[1:]))
    return [
        *cases(early, "call {} is at {} s, before the answer to the one before", told.time),
        *cases(
            ~(np.isin(told.time, events) | meanwhile),
            "call {} is at {} s, when no job is submitted or ends, nor did while it was thinking",
            told.time,
        ),
    ]


def _check_seconds(result: Result, told: Dispatching) -> list[str]:
    """Compare how long calls take with a number of seconds, if the rule is one."""
    rule, text = result.scheduler.dispatch_time, "call {} takes {} s"
    if isinstance(rule, int | float):
        seconds = math.ceil(rule - 1e-6)
        return cases(told.seconds != seconds, f"{text} instead of {seconds} s", told.seconds)
    return cases(told.seconds < 0, text, told.seconds)


def _check_starts(result: Result, told: Dispatching, delays: tuple[int, int]) -> list[str]:
    """Find jobs that were not there when the dispatcher was asked, or start at another time."""
    ours, submit = decided(result.workload), result.workload.submit_time
    answered = told.decided + told.late
    waits = result.start - answered
    by_answer = (waits == 0) | ((waits >= delays[0]) & (waits <= delays[1]))
    return [
        *cases(
            ours & (submit > told.decided),
            "job {} starts by a call at {} s, before its submission at {} s",
            told.decided,
            submit,
        ),
        *cases(
            ours & ~by_answer,
            "job {} starts at {} s instead of {} s, when the answer is there",
            result.start,
            answered,
        ),
    ]
