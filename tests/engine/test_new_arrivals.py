"""Passes that look only at jobs that came since the last one, beside plain ones that look at all.

So does EASY while no job has ended and the head is the same, whatever order it backfills in.
"""

from __future__ import annotations

import numpy as np
import pytest
from few_jobs import few_jobs

from hpcgym import simulate
from hpcgym.elementary import log
from hpcgym.workload.model import Workload

PROCESSORS = 32


def drawn(seed: int) -> Workload:
    """Jobs of which several come in one second while the head waits for the end of a long one."""
    draw = np.random.default_rng(seed)
    n = 150
    submit = np.cumsum(draw.choice([0, 0, 0, 1, 2, 40], n))
    run = draw.choice([1, 2, 3, 5, 30, 400], n)
    requested = run * draw.choice([1, 1, 2, 5], n)
    wide = draw.choice([1, 1, 2, 3, 8, 20, 32], n)
    return few_jobs(PROCESSORS, submit.tolist(), run.tolist(), wide.tolist(), requested.tolist())


def plain_starts(jobs: Workload) -> list[int]:
    """Starts by loops over all jobs at each event: fcfs, the best score is backfilled first."""
    columns = jobs.columns
    submit, run, requested, wide = (
        columns[name].tolist()
        for name in ("submit_time", "run_time", "requested_time", "requested_processors")
    )
    starts = [-1] * len(submit)
    times = set(submit)
    while times:
        now = min(times)
        times.remove(now)
        runs = [j for j, start in enumerate(starts) if start >= 0 and start + run[j] > now]
        waits = [j for j, start in enumerate(starts) if start < 0 and submit[j] <= now]

        def free_of(running: list[int]) -> int:
            return PROCESSORS - sum(wide[j] for j in running)

        def begin(j: int, now: int = now, runs: list[int] = runs, waits: list[int] = waits) -> None:
            starts[j] = now
            times.add(now + run[j])
            runs.append(j)
            waits.remove(j)

        while waits and wide[waits[0]] <= free_of(runs):
            begin(waits[0])
        if not waits:
            continue
        head = waits[0]
        by_end = sorted({starts[j] + requested[j] for j in runs})
        left = {t: free_of([j for j in runs if starts[j] + requested[j] > t]) for t in by_end}
        shadow = next(t for t in by_end if left[t] >= wide[head])
        extra = left[shadow] - wide[head]
        scores = {j: float(log(now - submit[j] + 60.0)) - requested[j] / 3600 for j in waits[1:]}
        for j in sorted(scores, key=lambda j: (-scores[j], j)):
            is_late = now + requested[j] > shadow
            if wide[j] > free_of(runs) or (is_late and wide[j] > extra):
                continue
            extra -= wide[j] * is_late
            begin(j)
    return starts


@pytest.mark.parametrize("seed", range(6))
def test_new_jobs_are_backfilled_as_if_all_were_looked_at(seed: int) -> None:
    jobs = drawn(seed)
    given = simulate(jobs, "easy", backfill_order="log(wait+60)-requested/3600")
    assert given.start.tolist() == plain_starts(jobs)
