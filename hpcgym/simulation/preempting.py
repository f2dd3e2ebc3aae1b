"""Machines on which some jobs may stop others, as the engine takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.cluster.failures import Failures
from hpcgym.engine.machines.kinds import NODES_PREEMPTING, POOL_PREEMPTING, Kind
from hpcgym.engine.machines.nodes.placement import CELLS
from hpcgym.engine.passes.preempting import SCALARS, VICTIMS, Preempting
from hpcgym.engine.passes.requeueing import LOST
from hpcgym.errors import WorkloadWarning, warn_caller
from hpcgym.schedule.lost_runs import LostRuns, lost_runs

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.engine.machines.nodes.placement import Nodes
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
    scalars["cancels"] = rule.mode == "cancel"
    scalars["most"] = min(len(workload), cluster.processors)
    room = 2 * int(scalars["most"][0])
    machine = Preempting(
        () if nodes is None else nodes,
        group,
        np.array(list(rule.levels.values())),
        may,
        np.zeros(len(may), np.bool_),
        np.zeros(len(workload), VICTIMS),
        np.empty(room, LOST),
        np.empty(2 * room, CELLS),
        scalars,
    )
    return (POOL_PREEMPTING if nodes is None else NODES_PREEMPTING), machine


def preempted_runs(machine: Preempting) -> LostRuns:
    """Return the runs that ended because others started, by job and time."""
    own: Any = machine.scalars[0]
    none = np.zeros(0, np.int64)
    return lost_runs(
        Failures(none, none, none), machine.lost[: own.lost], machine.cells[: own.cells]
    )
