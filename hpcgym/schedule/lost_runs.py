"""Runs of jobs that a failure of a node, or another job, ended: a schedule of all runs as jobs.

Pieces of jobs that were suspended are runs, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.failures import Failures
from hpcgym.schedule.node_states import OFF, NodeStates
from hpcgym.schedule.places import Allocation

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

Ints = NDArray[np.int64]


class LostRuns(NamedTuple):
    """What failures of nodes, or preemption, have done to a schedule; k runs, by job and time.

    Attributes
    ----------
    failures : of which the schedule was told; none under preemption.
    job : (k,) int64.
    start, end : (k,) int64 [s]; the run was lost, or suspended, at ``end``.
    first : (k + 1,) int64; run i had the cells ``first[i]`` up to ``first[i + 1]``, exclusive; it
        had none on a pool.
    node, units : (m,) int32, of each cell.
    """

    failures: Failures
    job: Ints
    start: Ints
    end: Ints
    first: Ints
    node: NDArray[np.int32]
    units: NDArray[np.int32]


def lost_runs(failures: Failures, schedule: Mapping[str, Ints]) -> LostRuns:
    """Return the runs that a ``schedule`` of the engine has lost, by job and time."""
    job, start, end = (schedule[f"lost_{name}"] for name in ("job", "start", "end"))
    order, none = np.lexsort((end, job)), np.zeros(0, np.int32)
    cells = Allocation(np.zeros(len(job) + 1, np.int64), none, none)  # a pool has none
    if "lost_node" in schedule:
        node, units = (schedule[f"lost_{name}"].astype(np.int32) for name in ("node", "units"))
        cells = Allocation(schedule["lost_first"], node, units)
    return LostRuns(failures, job[order], start[order], end[order], *cells.rows(order))


def pieces_of(lost: LostRuns) -> LostRuns:
    """Return pieces of runs as they were, of what the engine logs.

    It moves the start of a job that goes on by the time for which it was suspended: up to the end
    of each piece, the job has run since that start.
    """
    ran = lost.end - lost.start
    again = np.append(False, lost.job[1:] == lost.job[:-1])[: len(lost.job)]
    before = np.where(again, np.append(0, ran[:-1])[: len(ran)], 0)
    return lost._replace(start=lost.end - (ran - before))


def ran_before(result: Result) -> Ints:
    """Return how long each job had run when its last piece began, (n_jobs,) [s]."""
    pieces, ran = result.pieces, np.zeros(len(result.start), np.int64)
    if pieces is not None:
        np.add.at(ran, pieces.job, pieces.end - pieces.start)
    return ran


def last_starts(result: Result) -> Ints:
    """Return when the last run, or piece, of each job started, (n_jobs,) [s]."""
    if result.suspended is None:
        return result.start
    return result.start + result.suspended + ran_before(result)


def of_jobs(lost: LostRuns | None, order: Ints) -> LostRuns | None:
    """Return the runs of jobs that stand in another order now, (n_jobs,) their rows before."""
    if lost is None:
        return None
    rows = np.empty_like(order)
    rows[order] = np.arange(len(order))
    job = rows[lost.job]
    by_job = np.argsort(job, kind="stable")
    held = Allocation(lost.first, lost.node, lost.units).rows(by_job)
    return LostRuns(lost.failures, job[by_job], lost.start[by_job], lost.end[by_job], *held)


def of_some(lost: LostRuns | None, kept: NDArray[np.bool_]) -> LostRuns | None:
    """Return the runs of the jobs that are kept, (n_jobs,), by their rows among these."""
    if lost is None:
        return None
    left = of_those(lost, kept[lost.job])
    return left._replace(job=(np.cumsum(kept) - 1)[left.job])


def of_those(lost: LostRuns, kept: NDArray[np.bool_]) -> LostRuns:
    """Return the runs that are kept, (k,)."""
    rows = np.flatnonzero(kept)
    held = Allocation(lost.first, lost.node, lost.units).rows(rows)
    return LostRuns(lost.failures, lost.job[rows], lost.start[rows], lost.end[rows], *held)


def down(failures: Failures) -> NodeStates | None:
    """Return when nodes are down, as the books know it: then they are off. None if never."""
    if not len(failures):
        return None
    state = np.full(len(failures), OFF)
    return NodeStates(failures.node, state, failures.time, failures.repaired)


def cut_short(result: Result) -> NDArray[np.bool_]:
    """Return which jobs ran for less than they would have by themselves, (n_jobs,)."""
    length = np.minimum(result.workload.run_time, result.workload.requested_time)
    if result.scheduler.correction == "kill":
        length = np.minimum(length, result.predicted_run_time)
    short: NDArray[np.bool_] = result.run_time < length
    return short


def queued_at(result: Result) -> tuple[Ints, Ints]:
    """Return since when each run that ended so had waited, (k,), each last one, (n_jobs,) [s]."""
    lost, submit = result.interrupted, result.workload.submit_time
    assert lost is not None
    again = np.append(False, lost.job[1:] == lost.job[:-1])[: len(lost.job)]
    since = np.where(again, np.append(0, lost.end[:-1])[: len(lost.job)], submit[lost.job])
    last = submit.copy()
    np.maximum.at(last, lost.job, lost.end)
    return since, last


def runs_of(result: Result) -> tuple[Result, Ints]:
    """Return the schedule of all runs, and the job of each.

    A run that follows a lost one is submitted when that was lost. The runs are sorted by that,
    then by job.
    """
    lost, held = result.interrupted, result.allocation
    assert lost is not None
    n = len(result.start)
    since = np.concatenate(queued_at(result))
    job = np.concatenate([lost.job, np.arange(n)])
    order = np.lexsort((job, since))
    allocation = None
    if held is not None:
        allocation = Allocation(
            np.concatenate([lost.first, len(lost.node) + held.first[1:]]),
            np.concatenate([lost.node, held.node]),
            np.concatenate([lost.units, held.units]),
        ).rows(order)
    start = np.concatenate([lost.start, last_starts(result)])[order]
    end = np.concatenate([lost.end, result.end])[order]
    job = job[order]
    columns = {"submit_time": since[order]}
    if result.pieces is not None:  # no piece is killed, but for the last
        whole = result.workload.run_time - ran_before(result)
        columns["run_time"] = np.concatenate([lost.end - lost.start, whole])[order]
    workload = result.workload.take(job).with_columns(**columns)
    if workload.initial is not None:  # at its beginning no later runs
        running = np.where(workload.initial.start == start, start, -1)
        workload = replace(workload, initial=replace(workload.initial, start=running))
    return replace(
        result,
        workload=workload,
        start=start,
        run_time=end - start,
        predicted_run_time=result.predicted_run_time[job],
        reserved_start=result.reserved_start[job],
        backfilled=result.backfilled[job],
        allocation=allocation,
        lost=None,
        pieces=None,
        suspended=None,
    ), job
