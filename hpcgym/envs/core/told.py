"""What has happened in a simulation, and what its schedule is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.state import PROGRESS, RUNNING
from hpcgym.envs.core import arrays
from hpcgym.envs.core.cutting import Episode
from hpcgym.scheduler.limits import Limit
from hpcgym.simulation.kernel_passes import listed
from hpcgym.simulation.native import taken, write_progress
from hpcgym.simulation.preempting import StoppedRuns
from hpcgym.simulation.run import idle_processor_seconds
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym._engine import Simulation

Ints = NDArray[np.int64]


def episode_of(name: str, episode_state: Any, begins: bool) -> Episode:
    """Return which rows of the workload an episode has, and how it began, by its EPISODE."""
    start, n = int(episode_state.origin), int(episode_state.jobs)
    return Episode(name, start, start + n, beginning=int(episode_state.beginning) if begins else -1)


class Now(NamedTuple):
    """What has happened in a simulation of the kernels; it is not to be changed."""

    sim: Any  # one SIM
    progress: NDArray[np.void]  # (n_jobs,)
    idle: NDArray[np.void]  # groups of idle processors, where these are switched off
    ordered_by: Ints | None  # (n_jobs,) [s], where it is learned

    @property
    def free(self) -> int:
        """Units without a job."""
        return int(self.sim["free"])

    @property
    def next(self) -> int:
        """How many jobs have been submitted."""
        return int(self.sim["next"])

    @property
    def started(self) -> int:
        """How many jobs have started."""
        return int(self.sim["started"])

    def idle_seconds(self) -> dict[str, int]:
        """Return what processors without a job have done up to now [processor seconds]."""
        return idle_processor_seconds(self.sim.copy(), self.idle.copy())

    def jobs(self, told: NDArray[np.void]) -> NDArray[np.void]:
        """Return the jobs as the simulation has them, by those of the table, (n_jobs,) JOBS."""
        return told.copy()

    def machine(self, row: Any) -> Any:
        """Return what a machine has on record; ``row`` is a copy of that of the simulation."""
        return row

    def kept(self) -> Now:
        """Return the same, as it stays whatever happens then."""
        idle, known = self.idle.copy(), self.ordered_by
        return Now(
            self.sim.copy(), self.progress.copy(), idle, None if known is None else known.copy()
        )


class NativeNow:
    """The same of a simulation of the native engine, which goes on with its environment.

    It is asked when somebody wants to know; it stays as it is at the end of its episode.
    """

    def __init__(self, simulation: Simulation, hides: bool) -> None:
        self._simulation, self._hides = simulation, hides

    @property
    def free(self) -> int:  # noqa: D102
        return self._simulation.free

    @cached_property
    def _moment(self) -> list[int]:
        counts: list[int] = self._simulation.moment()["now"].tolist()
        return counts

    @property
    def next(self) -> int:  # noqa: D102
        return self._moment[1]

    @property
    def started(self) -> int:  # noqa: D102
        return self._moment[2]

    @cached_property
    def schedule(self) -> dict[str, Ints]:
        """What became of each job so far."""
        return self._simulation.schedule()

    @cached_property
    def progress(self) -> NDArray[np.void]:  # noqa: D102
        progress = np.zeros(len(self.schedule["start"]), PROGRESS)
        write_progress(self.schedule, progress)
        return progress

    @property
    def ordered_by(self) -> Ints | None:  # noqa: D102
        return self.schedule.get("ordered_by")

    def idle_seconds(self) -> dict[str, int]:  # noqa: D102
        return {name: int(value[0]) for name, value in self._simulation.idle_seconds().items()}

    def jobs(self, told: NDArray[np.void]) -> NDArray[np.void]:  # noqa: D102
        jobs = told.copy()
        if self._hides:
            jobs["run"] = self._simulation.run_times()
        for name in {"submit", "run", "requested"} & set(self.schedule):
            jobs[name] = self.schedule[name]
        return jobs

    def machine(self, row: Any) -> Any:  # noqa: D102
        return None if row is None else taken(row, self.schedule)

    def kept(self) -> NativeNow:  # noqa: D102
        return self


def now_of(batch: arrays.Batch, e: int) -> Now:
    """Return what the arrays say of simulation ``e``."""
    n = int(batch.episode_state["jobs"][e])
    ordered_by = batch.ordered_by[e, :n] if batch.ordered_by.size else None
    return Now(batch.sim[e], batch.progress[e, :n], batch.idle[e], ordered_by)


def running_of(batch: arrays.Batch, e: int) -> tuple[Ints, Ints]:
    """Return the running jobs of simulation ``e`` by the arrays, and their predicted ends."""
    return listed(batch.blocks[e], batch.entries[e], RUNNING)


@dataclass(frozen=True)
class State:
    """What the schedule of a simulation is made of; what steps change is copied."""

    name: str  # of the episode
    workload: Workload | None  # None: the jobs of the episode as they are
    episode_state: Any  # one EPISODE; this and the next as in `Batch`
    totals: NDArray[np.float64]
    now: Now | NativeNow
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

    @property
    def progress(self) -> NDArray[np.void]:
        """What became of each job, (n_jobs,)."""
        return self.now.progress

    @cached_property
    def machine(self) -> Any:
        """The nodes, as the engine has them; None on a pool."""
        return self.now.machine(self.row)
