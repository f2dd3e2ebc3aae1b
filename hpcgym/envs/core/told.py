"""What the schedule of a simulation is made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.core import arrays
from hpcgym.envs.core.episodes import Episode
from hpcgym.scheduler.limits import Limit
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

    @property
    def first(self) -> int:
        """Where the jobs of the episode begin in the table."""
        return int(self.episode_state.start)
