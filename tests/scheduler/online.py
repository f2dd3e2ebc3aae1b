"""Cases of predictions that are learned, and what compares them with the slow ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracle import Simulation, jobs_of

from hpcgym import load_workload
from hpcgym.scheduler.estimates import Regression
from hpcgym.workload.model import Workload

EASY = load_workload("lublin:jobs=250,processors=32,seed=2,load=1.3")
BUSY = load_workload("lublin:jobs=400,processors=64,seed=1,load=2")
ELOSS = Regression.parse("e-loss")


def named(workload: Workload) -> Workload:
    """Return the jobs with numbers, from 1, by which predictors know them."""
    users = workload.user_id * (10**9 if len(workload) % 2 else 1)
    return workload.with_columns(job_number=np.arange(1, len(workload) + 1), user_id=users)


def assert_same(result: Any, slow: Simulation) -> None:
    """Compare all that the oracle records of a schedule."""
    assert result.predicted_run_time.tolist() == [job.predicted for job in slow.jobs]
    if result.policy_run_time is not None:
        assert result.policy_run_time.tolist() == [job.policy_time for job in slow.jobs]
    assert result.start.tolist() == [job.start for job in slow.jobs]
    assert result.end.tolist() == [job.end for job in slow.jobs]
    assert result.backfilled.tolist() == [job.backfilled for job in slow.jobs]
    assert result.reserved_start.tolist() == [job.reserved_start for job in slow.jobs]


def oracle(workload: Workload, rules: dict[str, Any], before: Any = None) -> Simulation:
    simulation = Simulation(jobs_of(workload), workload.processors, **rules)
    if before is not None:
        simulation.go_on(before)
    simulation.run()
    return simulation
