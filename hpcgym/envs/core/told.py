"""What the schedule of a simulation is made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.core import arrays
from hpcgym.envs.core.cutting import Episode
from hpcgym.scheduler.limits import Limit
from hpcgym.simulation.preempting import StoppedRuns
from hpcgym.workload.model import Workload


def episode_of(name: str, episode_state: Any, begins: bool) -> Episode:
    """Return which rows of the workload an episode has, and how it began, by its EPISODE."""
    start, n = int(episode_state.origin), int(episode_state.jobs)
    return Episode(name, start, start + n, beginning=int(episode_state.beginning) if begins else -1)


class Now(NamedTuple):
    """What has happened in a simulation; it is not to be changed."""

    sim: Any  # one SIM
    progress: NDArray[np.void]  # (n_jobs,)
    idle: NDArray[np.void]  # groups of idle processors, where these are switched off
    ordered_by: NDArray[np.int64] | None  # (n_jobs,) [s], where it is learned


def now_of(batch: arrays.Batch, e: int) -> Now:
    """Return what the arrays say of simulation ``e``."""
    n = int(batch.episode_state["jobs"][e])
    ordered_by = batch.ordered_by[e, :n] if batch.ordered_by.size else None
    return Now(batch.sim[e], batch.progress[e, :n], batch.idle[e], ordered_by)


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
    stopped: StoppedRuns | None  # where jobs may stop others
    limits: tuple[Limit, ...]
    begins: bool  # whether it began with jobs that ran or waited

    @property
    def episode(self) -> Episode:
        """Which rows of the workload it has."""
        return episode_of(self.name, self.episode_state, self.begins)

    @property
    def first(self) -> int:
        """Where the jobs of the episode begin in the table."""
        return int(self.episode_state.start)
