"""Jobs whose past is the same, and whose future is another one."""

from __future__ import annotations

import numpy as np

from hpcgym.schedule.result import Result
from hpcgym.workload.model import Workload


def altered(workload: Workload, result: Result, now: int, seed: int) -> Workload:
    """Return the jobs with another future: what happens up to ``now`` [s] is known."""
    rng = np.random.default_rng(seed)
    n = int((workload.submit_time <= now).sum())
    names = ("submit_time", "run_time", "requested_time", "requested_processors", "user_id")
    columns = {name: workload.columns[name][:n].tolist() for name in names}
    for row in range(n):
        start = int(result.start[row])
        if start > now or result.end[row] > now:
            elapsed = max(now - start, 0)
            most = max(2 * columns["requested_time"][row], elapsed + 1)
            columns["run_time"][row] = int(rng.integers(elapsed + 1, most + 1))
    for _ in range(rng.integers(0, 6)):
        last = max(columns["submit_time"][-1], now)
        more = (last + 1 + rng.integers(0, 50), *rng.integers(1, 500, 2))
        more += (rng.integers(1, workload.processors + 1), rng.integers(-1, 2))
        for name, value in zip(names, more, strict=True):
            columns[name].append(int(value))
    columns["job_number"] = list(range(1, len(columns["submit_time"]) + 1))
    return Workload.from_columns(columns, processors=workload.processors)
