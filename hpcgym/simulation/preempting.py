"""Machines on which some jobs may stop others, as the engine takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.failures import Failures
from hpcgym.engine.machines.nodes.placement import CELLS
from hpcgym.engine.passes.preempting import (
    CANCEL,
    REQUEUE,
    SCALARS,
    SUSPEND,
    VICTIMS,
)
from hpcgym.engine.passes.preempting_rows import PreemptingRows
from hpcgym.engine.passes.requeueing import LOST
from hpcgym.engine.passes.suspending import SUSPENDED
from hpcgym.engine.state import FOREVER
from hpcgym.errors import RuleWarning, warn_caller
from hpcgym.schedule.lost_runs import lost_runs, pieces_of
from hpcgym.simulation.quotas import called_together

_MODES = {"requeue": REQUEUE, "cancel": CANCEL, "suspend": SUSPEND}

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.scheduler.preemption import Preemption
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


def preempting(workload: Workload, scheduler: Scheduler) -> dict[str, NDArray[np.int64]]:
    """Return who may stop whom, as ``Model`` takes it.

    Warns
    -----
    RuleWarning : no job may stop another, or none is called so.
    """
    rule = scheduler.preempts
    assert rule is not None
    return {
        "group": np.concatenate(warn_of_absent([workload], rule)),
        "level": np.array(list(rule.levels.values())),
        "may": rule.may.astype(np.int64),
        "exempt": rule.exempt_of_groups,
        "mode": np.array([_MODES[rule.mode]]),
    }


def preempting_rows(
    slices: Sequence[Workload], scheduler: Scheduler, cluster: Cluster, number: int, longest: int
) -> PreemptingRows | None:
    """Return who may stop whom in that many simulations of slices; None where nobody may.

    Their table has the jobs of one slice after the other. A simulation has at most ``longest``.

    Warns
    -----
    RuleWarning : no job of any slice may stop another, or none is called so.
    """
    rule = scheduler.preempts
    if rule is None:
        return None
    groups = warn_of_absent(slices, rule)
    begin = np.zeros(1, SCALARS)
    begin["highest"] = max(rule.levels.values())
    begin["mode"] = _MODES[rule.mode]
    begin["exempts"] = bool(rule.exempt)
    begin["exempt_until"] = FOREVER
    begin["most"] = most = cluster.processors  # each run, and each of its cells, has one
    return PreemptingRows(
        group=np.concatenate(groups),
        level=np.array(list(rule.levels.values())),
        may=rule.may,
        exempt=rule.exempt_of_groups,
        begin=begin,
        blocked=np.zeros((number, len(rule.may)), np.bool_),
        noted=np.zeros((number, len(rule.may)), np.bool_),
        victims=np.zeros((number, longest), VICTIMS),
        suspended=np.zeros((number, longest), SUSPENDED),
        lost=np.zeros((number, 2 * most), LOST),
        cells=np.zeros((number, 4 * most), CELLS),
        scalars=np.zeros((number, 1), SCALARS),
        wasted=np.zeros((number, 2), np.int64),
    )


def warn_of_absent(slices: Sequence[Workload], rule: Preemption) -> list[NDArray[np.int64]]:
    """Return the group of each job of slices, by who may stop whom; -1: of none.

    Warns
    -----
    RuleWarning : no job of any slice may stop another, or names are of no job.
    """
    groups = [rule.groups(one) for one in slices]
    name, may = called_together(slices), rule.may
    rows = [np.bincount(group[group >= 0], minlength=len(may)) > 0 for group in groups]
    there: NDArray[np.bool_] = np.array(rows)
    if not (may & there[:, :, np.newaxis] & there[:, np.newaxis, :]).any():
        warn_caller(f"{name}: preemption {rule}: no job may stop another", RuleWarning)
        return groups
    present = np.flatnonzero(np.count_nonzero(there, axis=0)).tolist()
    absent = [called for place, called in enumerate(rule.levels) if place not in present]
    if absent:
        text = f"{name}: preemption {rule}: there is no job of {', '.join(absent)}"
        warn_caller(text, RuleWarning)
    return groups


class StoppedRuns(NamedTuple):
    """The log of runs that others ended, as the engine keeps it.

    Attributes
    ----------
    mode : REQUEUE, CANCEL or SUSPEND.
    lost, cells : LOST and CELLS.
    """

    mode: int
    lost: NDArray[np.void]
    cells: NDArray[np.void]


def stopped_runs(rows: PreemptingRows, e: int) -> StoppedRuns:
    """Return a copy of the log of simulation ``e``."""
    own: Any = rows.scalars[e, 0]
    return StoppedRuns(own.mode, rows.lost[e, : own.lost].copy(), rows.cells[e, : own.cells].copy())


def with_longer_log(rows: PreemptingRows, size: int) -> PreemptingRows:
    """Return the same with room for so many stopped runs in each simulation, and their cells."""
    times = -(-size // rows.lost.shape[1])
    logs = {}
    for name in ("lost", "cells"):
        log = getattr(rows, name)
        more = np.zeros((len(log), (times - 1) * log.shape[1]), log.dtype)
        logs[name] = np.concatenate([log, more], axis=1)
    return rows._replace(**logs)


def for_result(stopped: StoppedRuns, moved: NDArray[np.int64]) -> dict[str, Any]:
    """Return what a result tells of runs that ended because others started, by its attributes.

    ``moved``: (n_jobs,) [s] when jobs started, later by the time for which they were suspended.
    """
    none = np.zeros(0, np.int64)
    # what ends for good is in the schedule
    begun_anew = stopped.lost[:0] if stopped.mode == CANCEL else stopped.lost
    runs = lost_runs(Failures(none, none, none), begun_anew, stopped.cells)
    if stopped.mode != SUSPEND:
        return {"lost": runs}
    pieces = pieces_of(runs)
    moved = np.ascontiguousarray(moved)
    start = moved.copy()
    start[pieces.job[::-1]] = pieces.start[::-1]  # of several pieces of a job the first
    return {"pieces": pieces, "start": start, "suspended": moved - start}
