"""Machines under quotas: what may run at once, as the engine takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.kinds import NODES_UNDER_QUOTAS, POOL_UNDER_QUOTAS, Kind
from hpcgym.engine.passes.quotas import SCALARS, Quotas
from hpcgym.errors import HpcgymWarning, WorkloadError, WorkloadWarning, warn_caller
from hpcgym.scheduler.capabilities import check_scheduler

if TYPE_CHECKING:
    from hpcgym.engine.machines.nodes.placement import Nodes
    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload

_NO_BOUND = 2**62


def under_quotas(
    workload: Workload, scheduler: Scheduler, nodes: Nodes | None
) -> tuple[Kind, Quotas]:
    """Return the kind of machine on which a scheduler keeps its quotas, and the machine.

    Parameters
    ----------
    nodes : None: a pool of processors.

    Raises
    ------
    HpcgymError : rules that do not go with quotas.
    WorkloadError : a job that exceeds a quota by itself, and would wait for ever.

    Warns
    -----
    WorkloadWarning : quotas that are of no job.
    HpcgymWarning : EASY on nodes, whose reservation is another under quotas.
    """
    extract = () if workload.initial is None else ("extract",)
    check_scheduler(scheduler, "pool" if nodes is None else "nodes", *extract)
    width = np.array(workload.requested_processors)
    counts: list[NDArray[np.int64]] = []
    left: list[NDArray[np.int64]] = []
    n_counts, of_none = 0, []
    for quota in scheduler.quotas:
        count = quota.counted(workload)
        bound = _NO_BOUND if quota.processors is None else quota.processors
        of_none += [] if (count >= 0).any() else [str(quota)]
        wide = (count >= 0) & (width > bound)
        if wide.any():
            job = int(wide.argmax())
            raise WorkloadError(
                f"{workload.name}: {workload.called(job)} asks for {width[job]} processors, more"
                f" than the quota {quota} lets run: it would wait for ever. So it is with"
                f" {np.count_nonzero(wide):,} of {len(workload):,} jobs"
            )
        counts.append(np.where(count >= 0, n_counts + count, -1))
        most = np.array([_NO_BOUND if quota.jobs is None else quota.jobs, bound])
        left.append(np.tile(most, (int(count.max(initial=-1)) + 1, 1)))
        n_counts += len(left[-1])
    if of_none:
        warn_caller(f"{workload.name}: quotas of no job: {'; '.join(of_none)}", WorkloadWarning)
    if nodes is not None and scheduler.reserves_one:
        warn_caller(
            "under quotas EASY's reservation is of nodes by name, and not a promise of room:"
            " compare with a quota that bounds nothing, such as all:jobs=1000000",
            HpcgymWarning,
        )
    machine: Any = () if nodes is None else nodes
    kept = Quotas(
        machine,
        np.ascontiguousarray(np.column_stack(counts), np.int64),
        width,
        np.concatenate(left).astype(np.int64),
        np.zeros(1, SCALARS),
    )
    return (POOL_UNDER_QUOTAS if nodes is None else NODES_UNDER_QUOTAS), kept
