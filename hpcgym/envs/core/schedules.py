"""The schedule of a simulation, from copies of its arrays: so it can be made later, or never."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.nodes.rows import row_of
from hpcgym.envs.core import arrays
from hpcgym.envs.core.episodes import Episode
from hpcgym.envs.core.simulations import Simulations
from hpcgym.schedule.result import Allocation, Result
from hpcgym.scheduler.limits import Limit
from hpcgym.simulation.nodes import allocation_of, assign_nodes, needs_on
from hpcgym.simulation.run import idle_processor_seconds
from hpcgym.workload.model import Workload


class State(NamedTuple):
    """What the schedule of a simulation is made of; what steps change is copied."""

    name: str  # of the episode
    workload: Workload | None  # None: the jobs of the episode as they are
    table: arrays.Table
    episode_state: Any  # one EPISODE; these three as in `Batch`
    sim: Any  # one SIM
    totals: NDArray[np.float64]
    progress: NDArray[np.void]  # (n_jobs,)
    jobs: NDArray[np.void] | None  # (n_jobs,) JOBS; None: those of the table
    idle: NDArray[np.void] | None  # where processors are switched off
    ordered_by: NDArray[np.int64] | None  # (n_jobs,) [s], where it is learned
    machine: Any  # the nodes, as the engine has them; None on a pool
    limits: tuple[Limit, ...]

    @property
    def episode(self) -> Episode:
        """Which rows of the workload it has."""
        start, n = int(self.episode_state.origin), int(self.episode_state.jobs)
        return Episode(self.name, start, start + n)


def state_of(simulations: Simulations, e: int) -> State:
    """Return what the schedule of simulation ``e`` is made of, as it is now."""
    batch, table = simulations.batch, simulations.table
    now: Any = batch.episode_state[e].copy()
    start, n = int(now.start), int(now.jobs)
    jobs, machine, limits = cast(Any, None), cast(Any, None), cast(Any, ())
    if simulations.machines is not None:
        machine = simulations.machines.row(e, start, n)
        jobs, limits = simulations.jobs(e).copy(), simulations.machines.limits[e]
    elif simulations.shared is not None:
        machine = simulations.shared.row(e, n)
    elif simulations.rooms is not None:
        nodes = row_of(simulations.rooms, e, start, start + n)
        machine = nodes._replace(held=nodes.held.copy(), cells=nodes.cells.copy())
    return State(
        simulations.names[e],
        simulations.episode(e) if simulations.hides(e) else None,
        table,
        now,
        batch.sim[e].copy(),
        batch.totals[e].copy(),
        batch.progress[e, :n].copy(),
        jobs,
        batch.idle[e].copy() if table.sim[0].managed else None,
        batch.ordered_by[e, :n].copy() if batch.ordered_by.size else None,
        machine,
        limits,
    )


def means_of(simulations: Simulations, told: State) -> dict[str, float]:
    """Return the metrics that the sums give at once, of the jobs that have started."""
    ran = jobs_before(told.progress, told.episode_state)
    jobs = max(int(told.episode_state.counted) - ran, 1)
    found = {
        "mean_bsld": told.totals[arrays.BSLD] / jobs,
        "mean_wait_s": told.totals[arrays.WAIT] / jobs,
        "energy_j": told.totals[arrays.ENERGY],
    }
    if simulations.shared is not None:
        found["makespan_s"] = told.totals[arrays.ELAPSED]
    return {name: float(value) for name, value in found.items()}


def jobs_before(progress: NDArray[np.void], episode_state: Any) -> int:
    """Return how many jobs ran when the episode began, as in an extract."""
    start = progress["start"]
    return int(np.count_nonzero((start >= 0) & (start < episode_state["begin"])))


def schedule_of(simulations: Simulations, told: State) -> Result:
    """Return the schedule of these simulations so far; jobs not started have start -1.

    Where run times are learned, the requested ones stand for jobs not submitted yet.
    """
    options, workload = simulations.options, told.workload
    cluster, scheduler = options.cluster, options.scheduler
    if workload is None:
        workload = simulations.episodes.workload_of(told.episode)
    progress, jobs = told.progress, told.jobs
    if jobs is None:
        first = int(told.episode_state.start)
        jobs = told.table.jobs[first : first + len(progress)].copy()
    if simulations.shared is not None:
        return simulations.shared.result(workload, jobs, progress, told.machine)
    seconds = None
    if told.idle is not None:
        seconds = idle_processor_seconds(told.sim.copy(), told.idle.copy())
    result = Result.of(workload, cluster, scheduler, jobs, progress, seconds, True)
    result = replace(result, policy_run_time=_policy_run_time(told, jobs))
    if simulations.machines is not None:
        start = int(told.episode_state.start)
        return simulations.machines.result(result, told.machine, start, told.limits)
    allocation: Allocation | None = None
    if told.machine is not None:
        allocation = allocation_of(told.machine)
    elif cluster.groups:
        needs = needs_on(workload, cluster)
        allocation = allocation_of(
            assign_nodes(jobs, progress, needs, cluster, scheduler, workload.initial)
        )
    return replace(result, allocation=allocation)


def _policy_run_time(told: State, jobs: NDArray[np.void]) -> NDArray[np.int64] | None:
    """Return what policies looked at if it was learned, (n_jobs,) [s]."""
    if told.ordered_by is None:
        return None
    learned, coming = told.ordered_by.copy(), int(told.sim.next)
    learned[coming:] = jobs["requested"][coming:]  # else those of an earlier episode
    learned.flags.writeable = False
    return learned
