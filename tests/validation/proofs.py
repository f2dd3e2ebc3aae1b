"""Schedules that are to be proved, on a pool and on nodes, and what changes an entry of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from few_jobs import few_jobs

import hpcgym
from hpcgym.machine import Cluster, NodeGroup
from hpcgym.schedule.result import Result
from hpcgym.validation.validate import ScheduleError, validate_schedule
from hpcgym.workload.model import Workload

#: Four processors; job 1 blocks the queue, jobs 2 and 3 can be backfilled, job 4 is killed.
#:
#: EASY:   processor 3 |2 2 . . . 1 1 1 1 1
#:         processor 2 |0 0 0 0 0 1 1 1 1 1
#:         processor 1 |0 0 0 0 0 1 1 1 1 1 4 4 4
#:         processor 0 |0 0 0 0 0 1 1 1 1 1 4 4 4   (one column: 10 s; job 3 follows job 2)
POOL = few_jobs(
    *(4, [0, 0, 0, 10, 20], [50, 50, 20, 30, 60], [3, 4, 1, 1, 2]), requested=[50, 60, 20, 30, 30]
)
#: Two nodes of 4 cores, one of them with 2 GPUs.
MACHINE = Cluster(
    groups=(NodeGroup("gpu", 1, {"core": 4, "gpu": 2}), NodeGroup("plain", 1, {"core": 4}))
)


def on_nodes(*jobs: tuple[int, int, int, int, int]) -> Workload:
    """A workload of rows (submit, run, units, cores a unit, GPUs a unit)."""
    submit, run, units, core, gpu = (np.array(column) for column in zip(*jobs, strict=True))
    columns = {"submit_time": submit, "run_time": run, "requested_time": run}
    demands = {"core": core, "gpu": gpu}
    return Workload.from_columns(columns, processors=8, units=units, per_unit=demands)


#: Job 0 has a GPU until 10 and job 1 waits for both; jobs 2, 3 and 4 can be backfilled.
#:
#: EASY:  core 3 of gpu    |2 .|1 1
#:        core 2 of gpu    |2 4|1 1
#:        core 1 of gpu    |0 0|. .
#:        core 0 of gpu    |0 0|. .
#:        cores of plain   |3 3|3 3 3 3 ...   (one column: 5 s; job 3 begins at 1)
NODES = on_nodes(
    (0, 10, 1, 2, 1), (0, 10, 1, 2, 2), (0, 5, 1, 2, 0), (1, 30, 2, 2, 0), (2, 5, 1, 1, 0)
)


def scheduled(jobs: Workload, backfill: str = "easy", **words: Any) -> Result:
    place = {"cluster": MACHINE} if jobs.units is not None else {}
    return hpcgym.simulate(jobs, backfill=backfill, **place | words)


def moved(result: Result, job: int, start: int) -> Result:
    """The same result with one job started at another time."""
    starts = result.start.copy()
    starts[job] = start
    return replace(result, start=starts)


def entry(name: str, job: int, value: Any) -> Callable[[Result], Result]:
    """Change one entry of a column, of one that follows from others too."""

    def change(result: Result) -> Result:
        values = getattr(result, name).copy()
        values[job] = value
        changed = replace(result)
        vars(changed)[name] = values
        return changed

    return change


def violations(result: Result) -> tuple[str, ...]:
    """Return what is wrong with a schedule: nothing if it can be proved."""
    try:
        validate_schedule(result)
    except ScheduleError as error:
        return error.violations
    return ()


def under(**rules: Any) -> Callable[[Result], Result]:
    """Let a result be of other rules."""
    return lambda result: replace(result, scheduler=result.scheduler.but(**rules))
