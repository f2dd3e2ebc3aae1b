"""What can be proved of levels that change while jobs run.

For :mod:`hpcgym.validation.validate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.schedule.level_changes import pieces_of
from hpcgym.validation.schedules import Mask, Times, cases

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

_MILLION = 10**6
_UNITS = 10**9  # of work in a second at the highest level


def check_changes(result: Result) -> list[str]:
    """Find changes to no level, or not one after the other between a job's start and its end."""
    if result.level_changes is None:
        return []
    columns = [np.asarray(column) for column in result.level_changes]
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        return ["level changes are three arrays of one length"]
    if any(column.dtype.kind not in "iu" for column in columns):
        return ["level changes are whole numbers"]
    job, _, level = result.level_changes
    power = result.cluster.groups[0].power if result.cluster.groups else None
    levels = 1 if power is None else power.levels
    wrong = cases(
        (level < 0) | (level >= levels),
        f"job {{1}} goes on at level {{2}}, and there are {levels}",
        np.asarray(job),
        np.asarray(level),
    )
    try:
        pieces_of(result)
    except HpcgymError as error:
        return [*wrong, str(error)]
    return wrong


def lengths_with_changes(result: Result, length: Times) -> Times:
    """Return how long jobs take at the levels at which they run: whole seconds, rounded up.

    A job does a whole number of units of work in each second, ceil(10^15 / slowdown), the slowdown
    in millionths, and 10^9 units for each second that it would take at the highest level.

    Parameters
    ----------
    length : (n_jobs,) [s] at the highest frequency.
    """
    power = result.cluster.groups[0].power
    if power is None or result.frequency is None:
        return length
    job, begin, end, level = pieces_of(result)
    factor = power.slowdowns_of(result.workload.slowdown[job])[np.arange(len(job)), level]
    speed = -(-_UNITS * _MILLION // np.rint(factor * _MILLION).astype(np.int64))
    last = np.append(job[1:] != job[:-1], True)
    left = length * _UNITS
    np.subtract.at(left, job[~last], (speed * (end - begin))[~last])
    whole: Times = begin[last] - result.start - (-left // speed[last])
    return whole


def check_changed_levels(result: Result, lowest: int, highest: int, happens: Times) -> list[str]:
    """Find changes when nothing happens, or to a level that the rule does not use.

    ``happens`` are the times at which something does [s].
    """
    assert result.level_changes is not None
    job, time, level = result.level_changes
    return [
        *cases(
            (level < lowest) | (level > highest),
            f"job {{1}} goes on at level {{2}}, which {result.scheduler.power!r} does not use",
            job,
            level,
        ),
        *cases(
            ~np.isin(time, happens),
            "the level of job {1} changes at {2} s, when nothing happens",
            job,
            time,
        ),
    ]


def fast_when(result: Result, lowest: int, times: Times) -> Mask:
    """Return from which of some times to the next jobs run above the lowest level."""
    _, begin, end, level = pieces_of(result)
    change: NDArray[Any] = np.zeros(len(times), np.int64)
    fast = level > lowest
    np.add.at(change, np.searchsorted(times, begin[fast]), 1)
    np.subtract.at(change, np.searchsorted(times, end[fast]), 1)
    found: Mask = np.cumsum(change)[:-1] > 0
    return found
