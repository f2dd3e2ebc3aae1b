"""What has happened in a simulation, and what its schedule is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.corun.state import CorunNodes
from hpcgym.engine.machines.limited.state import LimitedNodes
from hpcgym.envs.core.cutting import Episode
from hpcgym.scheduler.limits import Limit
from hpcgym.simulation.native_corun import take_corun
from hpcgym.simulation.native_limited import take_limited
from hpcgym.simulation.preempting import StoppedRuns
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym._engine import Simulation

Ints = NDArray[np.int64]


def episode_of(name: str, episode_state: Any, begins: bool) -> Episode:
    """Return which rows of the workload an episode has, and how it began, by its EPISODE."""
    start, n = int(episode_state.origin), int(episode_state.jobs)
    return Episode(name, start, start + n, beginning=int(episode_state.beginning) if begins else -1)


class NativeNow:
    """What has happened in a simulation, which goes on with its environment.

    It is asked when somebody wants to know; it stays as it is at the end of its episode.
    """

    def __init__(self, simulation: Simulation, hides: bool) -> None:
        self._simulation, self._hides = simulation, hides

    @property
    def free(self) -> int:
        """Units without a job."""
        return self._simulation.free

    @cached_property
    def _moment(self) -> list[int]:
        counts: list[int] = self._simulation.moment()["now"].tolist()
        return counts

    @property
    def next(self) -> int:
        """How many jobs have been submitted."""
        return self._moment[1]

    @property
    def started(self) -> int:
        """How many jobs have started."""
        return self._moment[2]

    @cached_property
    def schedule(self) -> dict[str, Ints]:
        """What became of each job so far."""
        return self._simulation.schedule()

    @property
    def ordered_by(self) -> Ints | None:
        """What policies look at, (n_jobs,) [s], where it is learned."""
        return self.schedule.get("ordered_by")

    def idle_seconds(self) -> dict[str, int]:
        """Return what processors without a job have done up to now [processor seconds]."""
        return {name: int(value[0]) for name, value in self._simulation.idle_seconds().items()}

    def jobs(self, told: NDArray[np.void]) -> NDArray[np.void]:
        """Return the jobs as the simulation has them, by those of the table, (n_jobs,) JOBS."""
        jobs = told.copy()
        if self._hides:
            jobs["run"] = self._simulation.run_times()
        for name in {"submit", "run", "requested"} & set(self.schedule):
            jobs[name] = self.schedule[name]
        return jobs

    def machine(self, row: Any) -> Any:
        """Return a row of the machine, with what the simulation has on record."""
        if isinstance(row, CorunNodes):
            take_corun(row, self.schedule)
        return take_limited(row, self.schedule) if isinstance(row, LimitedNodes) else row


@dataclass(frozen=True)
class State:
    """What the schedule of a simulation is made of; what steps change is copied."""

    name: str  # of the episode
    workload: Workload | None  # None: the jobs of the episode as they are
    episode_state: Any  # one EPISODE; this and the next as in `Batch`
    totals: NDArray[np.float64]
    now: NativeNow
    told_jobs: NDArray[np.void]  # (n_jobs,) JOBS, of the table or the machine
    row: Any  # of the machine, see :meth:`machine`; None on a pool
    stopped: StoppedRuns | None  # where jobs may stop others
    limits: tuple[Limit, ...]
    manages: bool  # whether idle processors are switched off
    begins: bool  # whether it began with jobs that ran or waited

    @property
    def episode(self) -> Episode:
        """Which rows of the workload it has."""
        return episode_of(self.name, self.episode_state, self.begins)

    @property
    def first(self) -> int:
        """Where the jobs of the episode begin in the table."""
        return int(self.episode_state.start)

    def schedule(self, jobs: NDArray[np.void]) -> dict[str, Ints]:
        """Return what became of each job, (n_jobs,); ``jobs`` are as the simulation has them."""
        names = ("submit", "run", "requested")
        return self.now.schedule | {name: np.ascontiguousarray(jobs[name]) for name in names}

    @cached_property
    def machine(self) -> Any:
        """The nodes, as the engine has them; None on a pool."""
        return self.now.machine(self.row)
