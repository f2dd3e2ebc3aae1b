"""Proofs that no quota was exceeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.workload.names import names_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.quotas import Quota
    from hpcgym.workload.model import Workload


#: Words of rules -> columns of jobs, not taken from where rules are read.
COLUMNS = {"qos": "queue", "user": "user_id", "group": "group_id", "code": "executable"}


def check_quotas(result: Result) -> list[str]:
    """Find quotas that were exceeded, and when first, in O(n log n) for each."""
    found = []
    width = result.workload.requested_processors
    for quota in result.scheduler.quotas:
        group = groups_of(result.workload, quota)
        rows = np.flatnonzero(group >= 0)
        for what, bound, amount in (
            ("jobs run", quota.jobs, np.ones_like(rows)),
            ("processors are busy", quota.processors, width[rows]),
        ):
            times = (result.start[rows], result.end[rows])
            time, used = most_at_once(group[rows], *times, amount)
            # those that run at the beginning of an extract may exceed it, but then nobody starts
            started = (np.diff(used, prepend=0) > 0) & (time >= result.begin)
            over = started & (used > (np.inf if bound is None else bound))
            if over.any():
                at = int(over.argmax())
                found.append(f"quota {quota}: at {time[at]} s {used[at]} {what}")
    return found


def most_at_once(
    group: NDArray[np.int64],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    amount: NDArray[np.int64] | int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return times at which something changes, [s], and what each group has then, both (2 n,).

    Parameters
    ----------
    group, begin, end : (n,) who has it together, and from when to when [s].
    amount : (n,) how much of it, or that for all.
    """
    sign = np.repeat([-1, 1], len(group))
    time = np.concatenate([end, begin])
    change = sign * np.tile(np.broadcast_to(amount, group.shape), 2)
    order = np.lexsort((sign, time, np.tile(group, 2)))  # of one second, ends come first
    # each group ends with nothing, so that sums may go on from group to group
    return time[order], np.cumsum(change[order])


def groups_of(workload: Workload, quota: Quota) -> NDArray[np.int64]:
    """Return a number for the jobs that count together, -1 of those that do not count, (n_jobs,).

    Worked out job by job, unlike where quotas are kept.
    """
    needed = {*quota.each, *(word for word, _ in quota.where)}
    columns = {word: workload.columns[COLUMNS.get(word, word)].tolist() for word in needed}
    names = {word: names_of(workload, COLUMNS.get(word, word)) for word in needed}
    numbers: dict[tuple[int, ...], int] = {}
    found = np.full(len(workload), -1, np.int64)
    for row in range(len(workload)):
        of = {word: columns[word][row] for word in needed}
        if "array" in quota.each and of["array"] < 0:  # those in none are not an array of their own
            continue
        if all(names[word].get(of[word], str(of[word])) == name for word, name in quota.where):
            key = tuple(of[word] for word in quota.each)
            found[row] = numbers.setdefault(key, len(numbers))
    return found
