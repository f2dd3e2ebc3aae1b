"""Machines on which some jobs may stop others, as the engine takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.cluster.failures import Failures
from hpcgym.engine.machines.kinds import NODES_PREEMPTING, POOL_PREEMPTING, Kind
from hpcgym.engine.machines.nodes.placement import CELLS
from hpcgym.engine.passes.preempting import (
    CANCEL,
    REQUEUE,
    SCALARS,
    SUSPEND,
    VICTIMS,
    Preempting,
)
from hpcgym.engine.passes.requeueing import LOST
from hpcgym.engine.passes.suspending import SUSPENDED
from hpcgym.errors import WorkloadWarning, warn_caller
from hpcgym.schedule.lost_runs import lost_runs, pieces_of

_MODES = {"requeue": REQUEUE, "cancel": CANCEL, "suspend": SUSPEND}

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.engine.machines.nodes.placement import Nodes
    from hpcgym.engine.state import Prepared
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


def preempting(
    workload: Workload, scheduler: Scheduler, cluster: Cluster, nodes: Nodes | None
) -> tuple[Kind, Preempting]:
    """Return the kind of machine on which some jobs may stop others, and the machine.

    Parameters
    ----------
    nodes : None: a pool of processors.

    Warns
    -----
    WorkloadWarning : no job may stop another, or none is called so.
    """
    rule = scheduler.preempts
    assert rule is not None
    group, may = rule.groups(workload), rule.may
    there = np.bincount(group[group >= 0], minlength=len(may)) > 0
    if not (may & there & there[:, np.newaxis]).any():
        warn_caller(f"{workload.name}: preemption {rule}: no job may stop another", WorkloadWarning)
    elif not there.all():
        absent = [name for name, here in zip(rule.levels, there, strict=True) if not here]
        text = f"{workload.name}: preemption {rule}: there is no job of {', '.join(absent)}"
        warn_caller(text, WorkloadWarning)
    scalars = np.zeros(1, SCALARS)
    scalars["highest"] = max(rule.levels.values())
    scalars["mode"] = _MODES[rule.mode]
    scalars["most"] = min(len(workload), cluster.processors)
    room = 2 * int(scalars["most"][0])
    machine = Preempting(
        () if nodes is None else nodes,
        group,
        np.array(list(rule.levels.values())),
        may,
        np.zeros(len(may), np.bool_),
        np.zeros(len(workload), VICTIMS),
        np.zeros(len(workload), SUSPENDED),
        np.empty(room, LOST),
        np.empty(2 * room, CELLS),
        scalars,
    )
    return (POOL_PREEMPTING if nodes is None else NODES_PREEMPTING), machine


def for_result(machine: Preempting, arrays: Prepared) -> dict[str, Any]:
    """Return what a result tells of runs that ended because others started, by its attributes."""
    own: Any = machine.scalars[0]
    none = np.zeros(0, np.int64)
    runs = lost_runs(
        Failures(none, none, none), machine.lost[: own.lost], machine.cells[: own.cells]
    )
    if own.mode != SUSPEND:
        return {"lost": runs}
    pieces = pieces_of(runs)
    moved = np.ascontiguousarray(arrays.progress["start"])
    start = moved.copy()
    start[pieces.job[::-1]] = pieces.start[::-1]  # of several pieces of a job the first
    return {"pieces": pieces, "start": start, "suspended": moved - start}
