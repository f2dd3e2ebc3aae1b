"""The schedule of a simulation, of which little is copied: so it can be made later, or never."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER, Simulation
from hpcgym.envs.core import arrays
from hpcgym.envs.core.cutting import Episode
from hpcgym.envs.core.simulations import Simulations
from hpcgym.schedule.result import Result
from hpcgym.schedule.within import metrics_within
from hpcgym.scheduler.limits import Limit
from hpcgym.simulation.driver import with_jobs
from hpcgym.workload.model import Workload


@dataclass(frozen=True)
class State:
    """What the schedule of a simulation is made of; what steps change is copied.

    Attributes
    ----------
    name : of the episode.
    episode : which rows of the workload it has.
    workload : None: the jobs of the episode as they are.
    episode_state : one EPISODE; this and ``totals`` as in ``Batch``.
    simulation : it goes on with its environment, and stays as it is at the end of its episode.
    jobs : (n_jobs,) JOBS that it was told of.
    rules : by which it goes.
    limits : of the episode.
    """

    name: str
    episode: Episode
    workload: Workload | None
    episode_state: Any
    totals: NDArray[np.float64]
    simulation: Simulation
    jobs: NDArray[np.void]
    rules: Mapping[str, int]
    limits: tuple[Limit, ...]

    @cached_property
    def schedule(self) -> dict[str, NDArray[np.int64]]:
        """What became of each job so far."""
        return with_jobs(self.simulation.schedule(), self.jobs, self.rules)

    @property
    def first(self) -> int:
        """Where the jobs of the episode begin in the table."""
        return int(self.episode_state.start)

    @property
    def come(self) -> int:
        """How many jobs have been submitted."""
        return int(self.simulation.moment()["submitted"].item())


def state_of(simulations: Simulations, e: int) -> State:
    """Return what the schedule of simulation ``e`` is made of, as it is now."""
    batch = simulations.batch
    return State(
        simulations.names[e],
        simulations.present(e),
        simulations.episode(e) if simulations.hides(e) else None,
        batch.episode_state[e : e + 1].copy()[0],  # a record by itself is slow to copy
        batch.totals[e].copy(),
        simulations.simulation(e),
        simulations.told_jobs(e),
        simulations.told.rules,
        simulations.machines.limits_now(e),
    )


def means_of(simulations: Simulations, told: State) -> dict[str, float]:
    """Return the metrics that the sums give at once, of the jobs that count and have started."""
    now = told.episode_state
    first, last, start = int(now.counts_first), int(now.counting), told.schedule["start"]
    paid = np.count_nonzero(start[first:last] >= int(now.begin))
    if now.truncated:
        last = min(last, told.come)
        paid += np.count_nonzero(start[first:last] < 0)
    jobs = max(int(paid), 1)
    found = {
        "mean_bsld": told.totals[arrays.BSLD] / jobs,
        "mean_wait_s": told.totals[arrays.WAIT] / jobs,
        "energy_j": told.totals[arrays.ENERGY],
    }
    if "elapsed_s" in simulations.machines.terms:
        found["makespan_s"] = told.totals[arrays.ELAPSED]
    return {name: float(value) for name, value in found.items()}


def jobs_before(start: NDArray[np.int64], episode_state: Any) -> int:
    """Return how many jobs ran when the episode began, as in an extract; ``start``: of jobs [s]."""
    return int(np.count_nonzero((start >= 0) & (start < episode_state["begin"])))


def metrics_of(simulations: Simulations, told: State) -> dict[str, float | int]:
    """Return the metrics of an episode that has ended: of its slice, where it is more than that."""
    result, now = schedule_of(simulations, told), told.episode_state
    if now.of_slice == 0 and now.truncated == 0:
        return result.metrics
    end = None if now.until == FOREVER else int(now.until)
    return metrics_within(result, int(now.counts_first), int(now.counting), end)


def schedule_of(simulations: Simulations, told: State) -> Result:
    """Return the schedule of these simulations so far; jobs not started have start -1.

    Where run times are learned, the requested ones stand for jobs not submitted yet.
    """
    workload = told.workload
    if workload is None:
        workload = simulations.episodes.workload_of(told.episode)
    return simulations.machines.schedule(told, workload)
