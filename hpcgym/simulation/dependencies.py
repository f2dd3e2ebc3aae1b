"""Jobs that follow others: as the engine takes them, and the schedule in which they came."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.engine.passes.dependencies import COMING, SCALARS, Dependencies
from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning, warn_caller
from hpcgym.scheduler.policies.index import parse_policy
from hpcgym.simulation.prepare import rankings
from hpcgym.workload.dependencies import followed, think_times

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload

_BY_SUBMISSION = {"submit", "clock", "f1", "f2", "f3", "f4"}


def make_dependencies(
    workload: Workload, scheduler: Scheduler, arrays: state.Prepared
) -> Dependencies:
    """Return which jobs are to follow which; none where the scheduler lets none.

    All jobs come from there then: for the loop of events, they have all been submitted.

    Raises
    ------
    HpcgymError : an order that looks at when the log says that jobs are submitted.
    WorkloadError : jobs that follow each other, or think times beyond the clock.

    Warns
    -----
    WorkloadWarning : jobs that follow jobs that are not there, or no jobs that follow others.
    """
    n = len(workload) if scheduler.dependencies != "none" else 0
    empty = np.full(n, -1, np.int64)
    made = Dependencies(
        empty,
        empty.copy(),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, COMING),
        np.zeros(2, np.int64),
        np.zeros(1, SCALARS),
    )
    if scheduler.dependencies == "none":
        return made
    made.by_arrival[:] = _orders_of_arrival(workload, scheduler)
    other = _others(workload)
    made.think[:] = think_times(workload, other, scheduler.dependencies)
    total = float(made.think.sum(dtype=np.float64))
    if total > state.LATEST_TIME:
        raise WorkloadError(f"{workload.name}: think times are {total:.3g} s together, over 2^53 s")
    if scheduler.dependencies == "after":
        made.earliest[:] = workload.submit_time
    for job in np.flatnonzero(other >= 0)[::-1].tolist():
        made.next[job] = made.first[other[job]]
        made.first[other[job]] = job
    free = np.flatnonzero(other < 0)  # by time, which makes a heap
    made.coming["time"][: len(free)] = workload.submit_time[free]
    made.coming["job"][: len(free)] = free
    own: Any = made.scalars[0]
    own.coming = len(free)
    arrays.sim.next = n
    if arrays.sim.correction == state.KILL:  # who is submitted by the loop is cut there
        arrays.jobs["run"] = np.minimum(arrays.jobs["run"], arrays.progress["predicted"])
    return made


def _orders_of_arrival(workload: Workload, scheduler: Scheduler) -> list[bool]:
    """Return whether the primary, and the secondary, order is that of submission.

    Raises
    ------
    HpcgymError : an order that looks at when jobs are submitted otherwise.
    """
    found = []
    rules = ("policy", "backfill_order")
    for rule, ranking in zip(rules, rankings(workload, scheduler), strict=True):
        arrival = ranking is not None and ranking.by_submission
        found.append(arrival)
        if arrival or ranking is None:
            continue
        policy = parse_policy(getattr(scheduler, rule))
        names = set(policy.weights)
        if policy.expression is not None:
            names |= {step.name for step in policy.expression.steps if step.name}
        # an order by waiting alone that is not that of submission is its reverse
        if names == {"wait"} or not names.isdisjoint(_BY_SUBMISSION):
            raise HpcgymError(
                f"{rule}={scheduler.describe()[rule]!r} looks at when the log says that jobs are"
                f" submitted, and dependencies={scheduler.dependencies!r} changes that"
            )
    return found


def _others(workload: Workload) -> NDArray[np.int64]:
    """Return the row of the job that each follows, -1: none, (n_jobs,); warn of what is odd."""
    other = followed(workload)
    missing = (workload.preceding_job > 0) & (other < 0)
    if missing.any():
        warn_caller(
            f"{workload.name}: {np.count_nonzero(missing):,} jobs follow jobs that are not there:"
            " they are submitted when the log says",
            WorkloadWarning,
        )
    elif not (other >= 0).any():
        warn_caller(
            f"{workload.name}: no job follows another: the log has no preceding_job",
            WorkloadWarning,
        )
    ahead = other
    for _ in range(len(other).bit_length()):  # twice as far each time
        ahead = np.where(ahead >= 0, ahead[ahead], -1)
    if (ahead >= 0).any():
        job = int((ahead >= 0).argmax())
        raise WorkloadError(
            f"{workload.name}: {workload.called(job)} follows a job that follows itself, and would"
            f" never come. So it is with {np.count_nonzero(ahead >= 0):,} jobs"
        )
    return other


def as_came(result: Result, arrays: state.Prepared) -> Result:
    """Return a schedule with its jobs in the order in which they came, and submitted then."""
    if result.scheduler.dependencies == "none":
        return result
    came = arrays.jobs["submit"]
    order = np.argsort(came, kind="stable")
    columns = ("start", "run_time", "predicted_run_time", "reserved_start", "backfilled")
    rows = {name: getattr(result, name)[order] for name in columns}
    for one in rows.values():
        one.flags.writeable = False
    held, rules = result.allocation, result.scheduler
    given = {rule: getattr(rules, rule) for rule in ("estimate", "policy_estimate")}
    moved = {rule: one[order] for rule, one in given.items() if isinstance(one, np.ndarray)}
    return replace(
        result,
        scheduler=rules.but(**moved) if moved else rules,
        workload=result.workload.take(order).with_columns(submit_time=came[order]),
        allocation=None if held is None else held.rows(order),
        **rows,
    )
