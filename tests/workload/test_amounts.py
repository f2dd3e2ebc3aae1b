"""What jobs ask for at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from drawing import given
from drawing import strategies as st

from hpcgym.workload.amounts import most_at_once
from hpcgym.workload.model import Workload


def _most(workload: Workload, rows: Iterator[int]) -> int:
    """The most processors of some jobs at once, second by second of all starts."""
    jobs = list(rows)
    start = (workload.submit_time + workload.wait_time).tolist()
    end = [start[row] + int(workload.run_time[row]) for row in range(len(workload))]
    width = workload.requested_processors.tolist()
    return max(
        sum(width[row] for row in jobs if start[row] <= second < end[row])
        for second in (start[row] for row in jobs)
    )


@given(st.integers(0, 2**32), st.integers(1, 30))
def test_the_most_at_once(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    columns = {
        name: random.integers(low, high, n)
        for name, low, high in (
            ("submit_time", 0, 30), ("wait_time", 0, 9), ("run_time", 1, 9),
            ("requested_processors", 1, 5), ("user_id", 1, 4),
        )
    }  # fmt: skip
    jobs = Workload.from_columns(columns, processors=200)
    users = np.unique(jobs.user_id).tolist()
    start = jobs.submit_time + jobs.wait_time
    end = start + jobs.run_time
    most = most_at_once(start, end, jobs.requested_processors, jobs.user_id).tolist()
    assert most == [_most(jobs, (r for r in range(n) if jobs.user_id[r] == u)) for u in users]
