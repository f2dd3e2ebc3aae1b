"""Proofs that no quota was exceeded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


def check_quotas(result: Result) -> list[str]:
    """Find quotas that were exceeded, and when first, in O(n log n) for each."""
    found = []
    width = result.workload.requested_processors
    for quota in result.scheduler.quotas:
        group = quota.counted(result.workload)
        rows = np.flatnonzero(group >= 0)
        both = np.concatenate([rows, rows])
        sign = np.repeat([-1, 1], len(rows))
        time = np.concatenate([result.end[rows], result.start[rows]])
        order = np.lexsort((sign, time, group[both]))  # of one second, ends come first
        both, sign, time = both[order], sign[order], time[order]
        # each group ends with nothing that runs, so that sums may go on from group to group
        for what, bound, amount in (
            ("jobs run", quota.jobs, np.ones_like(both)),
            ("processors are busy", quota.processors, width[both]),
        ):
            used = np.cumsum(sign * amount)
            over = used > bound if bound is not None else np.zeros(len(used), np.bool_)
            if over.any():
                at = int(over.argmax())
                found.append(f"quota {quota}: at {time[at]} s {used[at]} {what}")
    return found
