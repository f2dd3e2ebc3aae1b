"""The schedule of a simulation, from copies of its arrays: so it can be made later, or never."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine import state
from hpcgym.engine.node_rows import row_of
from hpcgym.envs import arrays
from hpcgym.envs.episodes import Episode
from hpcgym.node_simulation import allocation_of, assign_nodes, needs_on
from hpcgym.power.limits import Limit
from hpcgym.result import Allocation, Result
from hpcgym.simulation import idle_processor_seconds
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym.envs.simulations import Simulations


class State(NamedTuple):
    """What the schedule of a simulation is made of; what steps change is copied."""

    episode: Episode
    workload: Workload | None  # None: the jobs of the episode as they are
    jobs: NDArray[np.void]  # (n_jobs,) JOBS
    progress: NDArray[np.void]  # (n_jobs,)
    submitted: int
    idle: tuple[NDArray[np.int64], NDArray[np.void]] | None  # where processors are switched off
    ordered_by: NDArray[np.int64] | None  # (n_jobs,) [s], where it is learned
    machine: Any  # the nodes, as the engine has them; None on a pool
    limits: tuple[Limit, ...]
    started: int  # jobs that have
    totals: NDArray[np.float64]  # (N_TERMS,) sums over these

    def means(self) -> dict[str, float]:
        """Return the metrics that the sums give at once, of the jobs that have started."""
        jobs, shared = max(self.started, 1), len(self.totals) > arrays.ELAPSED
        found = {
            "mean_bsld": self.totals[arrays.BSLD] / jobs,
            "mean_wait_s": self.totals[arrays.WAIT] / jobs,
            "energy_j": self.totals[arrays.ENERGY],
        }
        if shared:
            found["makespan_s"] = self.totals[arrays.ELAPSED]
        return {name: float(value) for name, value in found.items()}


def state_of(simulations: Simulations, e: int) -> State:
    """Return what the schedule of simulation ``e`` is made of, as it is now."""
    batch, (start, n) = simulations.batch, simulations.rows(e)
    jobs, machine = simulations.jobs(e), cast(Any, None)
    limits: tuple[Limit, ...] = ()
    if simulations.machines is not None:
        machine = simulations.machines.row(e, start, n)
        jobs, limits = jobs.copy(), simulations.machines.limits[e]
    elif simulations.shared is not None:
        machine = simulations.shared.row(e, n)
    elif simulations.rooms is not None:
        nodes = row_of(simulations.rooms, e, start, start + n)
        machine = nodes._replace(held=nodes.held.copy(), cells=nodes.cells.copy())
    learned = batch.ordered_by[e, :n].copy() if batch.ordered_by.size else None
    managed = simulations.table.sim[state.MANAGED]
    n_terms = arrays.N_TERMS if simulations.shared is not None else arrays.ELAPSED
    return State(
        simulations.present(e),
        simulations.episode(e) if simulations.hides(e) else None,
        jobs,
        batch.progress[e, :n].copy(),
        int(batch.sim[e, state.NEXT]),
        (batch.sim[e].copy(), batch.idle[e].copy()) if managed else None,
        learned,
        machine,
        limits,
        int(batch.place[e, arrays.COUNTED]),
        batch.totals[e, :n_terms].copy(),
    )


def schedule_of(simulations: Simulations, told: State) -> Result:
    """Return the schedule of these simulations so far; jobs not started have start -1.

    Where run times are learned, the requested ones stand for jobs not submitted yet.
    """
    options, workload = simulations.options, told.workload
    cluster, scheduler = options.cluster, options.scheduler
    if workload is None:
        workload = simulations.episodes.workload_of(told.episode)
    jobs, progress = told.jobs.copy(), told.progress
    if simulations.shared is not None:
        return simulations.shared.result(workload, jobs, progress, told.machine)
    seconds = None if told.idle is None else idle_processor_seconds(*told.idle)
    result = Result.of(workload, cluster, scheduler, jobs, progress, seconds, True)
    if simulations.machines is not None:
        start = told.episode.start
        return simulations.machines.result(result, told.machine, start, told.limits)
    allocation: Allocation | None = None
    if told.machine is not None:
        allocation = allocation_of(told.machine)
    elif cluster.groups:
        needs = needs_on(workload, cluster)
        allocation = allocation_of(assign_nodes(jobs, progress, needs, cluster, scheduler))
    return replace(result, policy_run_time=_policy_run_time(told), allocation=allocation)


def _policy_run_time(told: State) -> NDArray[np.int64] | None:
    """Return what policies looked at if it was learned, (n_jobs,) [s]."""
    if told.ordered_by is None:
        return None
    learned, coming = told.ordered_by.copy(), told.submitted
    learned[coming:] = told.jobs["requested"][coming:]  # else those of an earlier episode
    learned.flags.writeable = False
    return learned
