"""From what the engine says of a simulation to its result, on any machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError
from hpcgym.machine.failures import Failures
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation, down, lost_runs, of_jobs, of_those, pieces_of
from hpcgym.scheduler.restrictions import are_budgets
from hpcgym.scheduler.rules import PREDICTING, Scheduler
from hpcgym.simulation.nodes import assign_nodes
from hpcgym.words import counted
from hpcgym.workload.checks import needs_on

if TYPE_CHECKING:
    from hpcgym._engine import Simulation as Native
    from hpcgym.machine.pool import Cluster
    from hpcgym.scheduler.restrictions import Preemption
    from hpcgym.workload.model import Workload

Columns = Mapping[str, NDArray[np.int64]]


def result_of(
    native: Native,
    schedule: Columns,
    rules: Mapping[str, int],
    workload: Workload,
    cluster: Cluster,
    scheduler: Scheduler,
    outside: bool = False,
) -> Result:
    """Return the result of a simulation as it is now, by its schedule; without nodes.

    ``rules`` : those that the engine was told. ``outside`` : whether the order of the queue is not
    the scheduler's.

    Raises
    ------
    WorkloadError : more seconds of processors that are switched off than are counted; jobs that
        wait for ever (:func:`check_ended`).
    """
    if not outside:
        check_ended(workload, scheduler, schedule["start"])
    seconds = None
    if rules.get("managed") and len(workload):
        span = native.time - int(workload.submit_time[0])
        if cluster.processors * span >= 2**63:
            raise WorkloadError(
                f"shutdown_after_s: {cluster.processors:,} processors during {span:,} s are more "
                "processor seconds than the simulator counts"
            )
        seconds = {name: int(total[0]) for name, total in native.idle_seconds().items()}
    return Result.of(workload, cluster, scheduler, schedule, seconds, outside)


def check_ended(workload: Workload, scheduler: Scheduler, start: NDArray[np.int64]) -> None:
    """Raise a WorkloadError if jobs wait for ever, as budgets are used up."""
    never = np.flatnonzero(start < 0)
    if not never.size:
        return
    budgets = [quota for quota in scheduler.quota if are_budgets([quota])]
    raise WorkloadError(
        f"{workload.name}: {counted(len(never), 'job')} would wait for ever, the first"
        f" {workload.called(int(never[0]))}: the quota {'; '.join(map(str, budgets))} is used up."
        " With half-life=7d before the colon what has been used is forgotten, as in Slurm"
    )


def with_nodes(
    result: Result,
    schedule: Columns,
    needs: NDArray[np.int64] | None = None,
    failures: Failures | None = None,
) -> Result:
    """Return a result with the nodes of jobs, and the runs that others, or failures, have ended.

    Its jobs stand in the order in which they came.

    ``needs`` : what they ask of nodes, if that is known; ``failures`` : of these nodes.
    """
    cluster, rules, workload = result.cluster, result.scheduler, result.workload
    if cluster.groups and "cell_first" in schedule:
        result = replace(result, allocation=Allocation.of(schedule))
    elif cluster.groups:
        asked = needs_on(workload, cluster) if needs is None else needs
        allocation = assign_nodes(schedule, asked, cluster, rules, workload.initial)
        result = replace(result, allocation=allocation)
    if rules.preemption is not None or failures is not None:
        result = replace(result, **_lost(rules.preemption, schedule, failures))
    if failures is not None:
        result = replace(result, node_states=down(failures))
    return as_came(result, schedule["submit"])


def _lost(rule: Preemption | None, schedule: Columns, failures: Failures | None) -> dict[str, Any]:
    """Return what a result tells of runs that others, or failures, ended, by its attributes.

    In the ``schedule`` of a simulation jobs have started later by the time for which they were
    suspended.
    """
    none = np.zeros(0, np.int64)
    runs = lost_runs(Failures(none, none, none) if failures is None else failures, schedule)
    if rule is not None and rule.mode == "cancel":  # what ends for good is in the schedule
        runs = of_those(runs, runs.start != schedule["start"][runs.job])
    if rule is None or rule.mode != "suspend":
        return {"lost": runs}
    pieces, moved = pieces_of(runs), schedule["start"]
    start = moved.copy()
    start[pieces.job[::-1]] = pieces.start[::-1]  # of several pieces of a job the first
    return {"pieces": pieces, "start": start, "suspended": moved - start}


def as_came(result: Result, came: NDArray[np.int64]) -> Result:
    """Return a schedule with its jobs in the order in which they ``came``, (n_jobs,) [s].

    They are submitted then; ``given`` has them as they were.
    """
    if not result.scheduler.moves_submissions:
        return result
    order = np.argsort(came, kind="stable")
    columns = ["start", "run_time", "predicted_run_time", "reserved_start", "backfilled"]
    columns += [
        name
        for name in ("policy_run_time", "candidate_run_time", "frequency")
        if getattr(result, name) is not None
    ]
    rows = {name: getattr(result, name)[order] for name in columns}
    for column in rows.values():
        column.flags.writeable = False
    held, rules = result.allocation, result.scheduler
    given = {rule: getattr(rules, rule) for rule in PREDICTING}
    moved: dict[str, Any] = {
        rule: times[order] for rule, times in given.items() if isinstance(times, np.ndarray)
    }
    return replace(
        result,
        scheduler=rules.but(**moved) if moved else rules,
        given=result.workload,
        workload=result.workload.take(order).with_columns(submit_time=came[order]),
        allocation=None if held is None else held.rows(order),
        coschedule=None if result.coschedule is None else result.coschedule.take(order),
        lost=of_jobs(result.lost, order),
        pieces=of_jobs(result.pieces, order),
        suspended=None if result.suspended is None else result.suspended[order],
        **rows,
    )
