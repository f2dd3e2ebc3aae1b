"""What was predicted and promised, for :mod:`hpcgym.validation.validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.scheduler.hold import Hold
from hpcgym.validation.orders import policy_name
from hpcgym.validation.schedules import Times, cases
from hpcgym.workload.warm_start import decided

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result


def check_predictions(result: Result, actual: Times) -> list[str]:
    """Compare the predicted run times with the scheduler's estimates."""
    requested, found = result.workload.requested_time, []
    of_policy = result.policy_run_time
    rules = result.scheduler
    for estimate, predicted, what in (
        (rules.estimate, result.predicted_run_time, "predicted to run"),
        (rules.policy_estimate, of_policy, "ordered as if it ran"),
    ):
        expected = known_beforehand(estimate, requested, actual)
        if predicted is None:
            if expected is None:
                found.append("there are no predictions that the policy looked at")
        elif expected is None:
            wrong = (predicted < 1) | (predicted > requested)
            text = f"job {{}} is {what} {{}} s although it requests {{}} s"
            found += cases(wrong, text, predicted, requested)
        else:
            text = f"job {{}} is {what} {{}} s instead of {{}} s"
            found += cases(predicted != expected, text, predicted, expected)
    return found


def known_beforehand(estimate: Any, requested: Times, actual: Times) -> Times | None:
    """Return the predictions of an estimate that does not learn, None of one that does."""
    if isinstance(estimate, str):
        return {
            "requested": requested,
            "double-requested": np.minimum(2 * requested, 2**53),  # the clock's last second
            "clairvoyant": actual,
        }.get(estimate)
    if hasattr(estimate, "predict_one"):
        return None
    # what is less than a microsecond below a whole second is that second
    seconds: Times = np.clip(np.asarray(estimate, float) + 1e-6, 1, 2**53).astype(np.int64)
    return seconds


def check_promises(result: Result) -> list[str]:
    """Check which jobs may and must be promised a start, and that none lies before submission."""
    reserved, submit = result.reserved_start, result.workload.submit_time
    promised = reserved != -1
    found = cases(
        promised & (reserved < submit),
        "job {} is promised {} s, before its submission at {} s",
        reserved,
        submit,
    )
    if result.scheduler.backfill == "none":
        found += cases(promised, "job {} is promised a start without backfilling")
        found += cases(result.backfilled, "job {} is marked as backfilled without backfilling")
    if result.scheduler.backfill == "conservative":
        text = "job {} has no reservation under conservative backfilling"
        found += cases(~promised & decided(result.workload), text)
    return found


def reservations_are_guaranteed(result: Result, length: Times) -> bool:
    """Return whether a promised start can never be missed under this scheduler and workload."""
    if bool(np.any(result.predicted_run_time < length)):
        return False
    scheduler = result.scheduler
    if scheduler.backfill == "conservative":
        return True
    hold = Hold.parse(scheduler.hold)
    if hold is not None and hold.looks_at_estimate:
        times = known_beforehand(scheduler.policy_estimate, result.workload.requested_time, length)
        if times is None:  # what a job holds back may grow as it waits
            return False
    if scheduler.slurm is not None:  # which jobs end together in its plans changes as some end
        return False
    one = scheduler.reserves_one or scheduler.plans_anew
    return one and policy_name(scheduler.policy) == "fcfs"


def check_reservations(result: Result) -> list[str]:
    """Find jobs that start later than promised."""
    bound, initial = result.reserved_start != -1, result.workload.initial
    if initial is not None and initial.ongoing is not None:
        # others were promised beside jobs that are no part of the extract
        bound = bound & (result.workload.submit_time >= initial.begin)
    return cases(
        bound & (result.start > result.reserved_start),
        "job {} starts at {} s although it was promised {} s",
        result.start,
        result.reserved_start,
    )
