"""Proofs that jobs come into the queue as soon as quotas of submitted jobs let them, not before."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.validation.dependencies import due_times, ended_by
from hpcgym.validation.quotas import groups_of, most_at_once
from hpcgym.validation.schedules import cases

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

Ints = NDArray[np.int64]
Key = tuple[int, int]  # a quota, and a number of those that count together


def check_submitted(result: Result) -> list[str]:
    """Find quotas of submitted jobs that were exceeded, and jobs that came too early or too late.

    When each job comes follows from when the jobs are due and when others end. It is worked out
    anew where all due times are known (:func:`hpcgym.validation.dependencies.due_times`), and all
    ends of a second come first; else it is only proved that no quota was exceeded. Jobs that run or
    wait at the beginning of an extract may exceed one, but then nobody comes.
    """
    quotas = [quota for quota in result.scheduler.quotas if quota.submitted is not None]
    most = [quota.submitted or 0 for quota in quotas]
    groups = [groups_of(result.workload, quota) for quota in quotas]
    submit, end = result.workload.submit_time, ended_by(result)
    found = []
    for quota, bound, group in zip(quotas, most, groups, strict=True):
        rows = np.flatnonzero(group >= 0)
        time, used = most_at_once(group[rows], submit[rows], end[rows])
        over = (used > bound) & (np.diff(used, prepend=0) > 0) & (time >= result.begin)
        if over.any():
            at = int(over.argmax())
            found.append(f"quota {quota}: at {time[at]} s {used[at]} jobs run or wait")
    due, place = due_times(result)
    if (place < 0).any() or result.scheduler.passes == "per-event":
        return found
    columns = zip(*(group.tolist() for group in groups), strict=True)
    keys = [[(k, number) for k, number in enumerate(numbers) if number >= 0] for numbers in columns]
    came = _came(due, place, end, keys, most, result.begin)
    text = "job {} is submitted at {} s, and should be at {} s"
    return [*found, *cases(submit != came, text, submit, came)]


def _came(
    due: Ints, place: Ints, end: Ints, keys: list[list[Key]], most: list[int], begin: int
) -> Ints:
    """Return when each job comes into the queue, (n_jobs,) [s]; -1: never.

    Who waits outside is kept under one key of which there is no place; only those of keys that get
    places are looked at, in the order in which they were due.

    Parameters
    ----------
    due, place, end : (n_jobs,) [s] when each is due, its place in the log, [s] when it ends.
    keys : of each job, those that count it.
    most : of each quota.
    begin : [s] of the schedule; who was due before has come, whatever quotas say.
    """
    came = np.full(len(due), -1, np.int64)
    taken: dict[Key, int] = {}
    outside: dict[Key, list[tuple[int, int, int]]] = {}
    ending = np.argsort(end, kind="stable").tolist()
    coming = np.lexsort((place, due)).tolist()
    ending.reverse()
    coming.reverse()

    def try_to_come(row: int, time: int) -> None:
        for key in keys[row]:
            if time >= begin and taken.get(key, 0) >= most[key[0]]:
                line = outside.setdefault(key, [])
                heapq.heappush(line, (int(due[row]), int(place[row]), row))
                return
        came[row] = time
        for key in keys[row]:
            taken[key] = taken.get(key, 0) + 1

    for time in np.union1d(due, end).tolist():
        freed = set()
        while ending and end[ending[-1]] == time:
            row = ending.pop()
            for key in keys[row] if came[row] >= 0 else ():
                taken[key] -= 1
                freed.add(key)
        while lines := [
            (outside[key][0], key)
            for key in freed
            if outside.get(key) and taken[key] < most[key[0]]
        ]:
            heapq.heappop(outside[min(lines)[1]])
            try_to_come(min(lines)[0][2], time)
        while coming and due[coming[-1]] == time:
            try_to_come(coming.pop(), time)
    return came
