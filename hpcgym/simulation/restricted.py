"""Machines with quotas, windows and jobs that follow others, as the engine takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.engine import state
from hpcgym.engine.machines.kinds import NODES_RESTRICTED, POOL_RESTRICTED, Kind
from hpcgym.engine.passes.restricted import Restricted
from hpcgym.errors import HpcgymError, HpcgymWarning, warn_caller
from hpcgym.scheduler.capabilities import check_scheduler
from hpcgym.simulation.dependencies import make_dependencies, submit_none
from hpcgym.simulation.quotas import make_quotas
from hpcgym.simulation.windows import closings, make_windows

if TYPE_CHECKING:
    from hpcgym.cluster.pool import Cluster
    from hpcgym.engine.machines.nodes.placement import Nodes
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload


def check_restricted(
    workload: Workload, scheduler: Scheduler, arrays: state.Prepared, on_nodes: bool
) -> state.Prepared:
    """Return the arrays of a simulation with room for plans around windows.

    Raises
    ------
    HpcgymError : rules that do not go with quotas or windows, or predictions that may be too short
        for windows.

    Warns
    -----
    HpcgymWarning : EASY on nodes, whose reservation is another then.
    """
    extract = () if workload.initial is None else ("extract",)
    check_scheduler(scheduler, "nodes" if on_nodes else "pool", *extract)
    if on_nodes and scheduler.reserves_one:
        warn_caller(
            "with quotas, windows or dependencies EASY's reservation is of nodes by name, and not a"
            " promise of room: compare with a quota that bounds nothing, such as all:jobs=1000000",
            HpcgymWarning,
        )
    if not scheduler.windows:
        return arrays
    if arrays.sim.correction not in (state.UNCORRECTED, state.KILL):
        raise HpcgymError(
            f"estimate={scheduler.describe()['estimate']!r} may be too short, and a job would run"
            " into a window: take 'requested', or correction='kill', which ends it in time"
        )
    more = np.empty(4 * len(scheduler.windows), state.PROFILE)
    return arrays._replace(profile=np.concatenate([arrays.profile, more]))


def restricted(
    workload: Workload,
    scheduler: Scheduler,
    cluster: Cluster,
    nodes: Nodes | None,
    arrays: state.Prepared,
) -> tuple[Kind, Restricted]:
    """Return the kind of machine on which a scheduler keeps quotas and windows, and the machine.

    Where jobs follow others, they come from the machine, and not as ``arrays`` of the simulation
    say, which are changed.

    Parameters
    ----------
    nodes : None: a pool of processors.

    Raises
    ------
    HpcgymError : windows that the machine cannot have, or an order that looks at when jobs are
        submitted.
    WorkloadError : a job that exceeds a quota by itself, or follows itself, and would wait for
        ever.

    Warns
    -----
    WorkloadWarning : quotas that are of no job, windows before the first job or after the last,
        jobs that follow jobs that are not there.
    """
    machine: Any = () if nodes is None else nodes
    closed = closings(workload, scheduler, cluster)
    kept = Restricted(
        machine,
        make_quotas(workload, scheduler.quotas),
        make_windows(workload, closed, nodes is not None),
        make_dependencies(workload, scheduler),
    )
    if scheduler.dependencies != "none":
        submit_none(arrays)
    return (POOL_RESTRICTED if nodes is None else NODES_RESTRICTED), kept
