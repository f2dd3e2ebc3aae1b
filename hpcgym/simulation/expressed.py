"""Orders by expressions that are worked out anew at each pass, as a simulation takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.answers.expressed import Expressed
from hpcgym.scheduler.estimates.by_name import predicted_run_times
from hpcgym.scheduler.policies.expressions import Expression
from hpcgym.scheduler.policies.features import JobColumns
from hpcgym.scheduler.policies.operations import Program

if TYPE_CHECKING:
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


def make_expressed(
    workload: Workload,
    scheduler: Scheduler,
    learned: NDArray[np.int64] | None,
    ticks: int,
) -> Expressed | None:
    """Return the orders that are worked out anew, None if none is.

    Parameters
    ----------
    workload, scheduler : what is simulated, by which rules.
    learned : (n_jobs,) [s] the run times that policies look at, if they are learned.
    ticks : of its clock in a second.
    """
    if not any(scheduler.anew):
        return None
    times = learned
    if times is None:
        run_time = np.minimum(workload.run_time, workload.requested_time)
        estimate = scheduler.policy_estimate
        known = predicted_run_times(estimate, run_time, workload, "policy_estimate")
        # a copy: an array that is read only would be another type, and have all compiled anew
        times = np.array(workload.requested_time if known is None else known)
    columns = JobColumns(workload)
    first, second = (_program(expression, columns, times) for expression in scheduler.anew)
    again = np.array([int(scheduler.preemption is not None)])
    return Expressed(first, second, np.array([ticks]), again)


def _program(
    expression: Expression | None, columns: JobColumns, times: NDArray[np.int64]
) -> Program:
    """Return an expression as the engine takes it. Without an expression it has no steps."""
    if expression is not None:
        return expression.program(columns, times)
    none = np.zeros(0)
    return Program(none.astype(np.int64), none, np.zeros((2, 0)), times, none)
