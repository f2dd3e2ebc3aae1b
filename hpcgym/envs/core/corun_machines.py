"""Nodes that jobs share behind an environment: times in seconds, results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.machines import Machines, keeps_books
from hpcgym.envs.core.options import Options
from hpcgym.schedule.places import Allocation
from hpcgym.schedule.result import Result
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.corun import as_on_a_pool, check_machine, shared_result
from hpcgym.simulation.corun_machine import (
    check_files,
    shared_nodes,
    slowest_in_congestion,
    ticks_a_second,
)
from hpcgym.simulation.prepare import Units
from hpcgym.speedups import Heatmap
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym._engine import Simulation
    from hpcgym.envs.core.schedules import State


@dataclass(frozen=True)
class Corun:
    """What an environment says of nodes that jobs share.

    Attributes
    ----------
    speedups : the true ones, which the scheduler knows.
    neighbours : M, how many running jobs are listed.
    """

    speedups: Heatmap
    neighbours: int


class CorunMachines(Machines):
    """The nodes of many simulations in which jobs share them; these count parts of nodes."""

    terms = (*Machines.terms, "elapsed_s")
    place = "shared nodes"

    def __init__(self, corun: Corun, options: Options, episodes: Episodes) -> None:
        cluster, scheduler, workload = options.cluster, options.scheduler, episodes.workload
        self.options, self.cluster, self.counted = options, cluster, cluster.processors
        self._speedups, self.books = corun.speedups, keeps_books(options)
        cores, sockets = check_machine(cluster)
        check_files(cluster, corun.speedups, scheduler)
        shared = shared_nodes(workload, scheduler, cluster, corun.speedups, cores, sockets)
        self._nodes, parts = shared, shared.parts
        congested = slowest_in_congestion(cluster, corun.speedups, shared.files)
        busiest = _busiest(workload, episodes.longest)
        ticks = ticks_a_second(busiest, corun.speedups, congested=congested)
        self.units = Units(cluster.nodes * parts, shared.units, ticks)
        sharing = shared.told
        self.mean_speedup = sharing["believed"].mean(axis=1)
        part = cores // sockets // max(parts, 2) * sockets
        sharing |= {
            "watts": self.watts[:2],
            "node_watts": self.node_watts.ravel(),
            "cores": np.array([cores, part, part], np.int64),
            "processors": np.array(workload.requested_processors),
        }
        self.told = {"sharing": sharing}

    @property
    def rules(self) -> Scheduler:
        """The rules that a simulation is told."""
        return as_on_a_pool(self.options.scheduler)

    def free_processors(self, free: int, running: NDArray[np.int64]) -> int:
        """Return how many processors have no job."""
        return self.cluster.processors - int(running.sum())

    def finds_room(
        self, simulation: Simulation, rows: NDArray[np.int64], start: int
    ) -> NDArray[np.bool_]:
        """Return which of these waiting jobs would find room now."""
        return simulation.fits(rows.tolist()).astype(np.bool_)

    def schedule(self, told: State, workload: Workload) -> Result:
        """Return the schedule of a simulation so far; jobs not started have start -1.

        Those that run end as they will if nobody comes or goes beside them.
        """
        schedule, nodes = told.schedule, self._nodes.part(told.first, told.first + len(workload))
        found = shared_result(
            workload, self.options.scheduler, self.cluster, self._speedups, schedule, nodes,
            self.units.ticks,
        )  # fmt: skip
        started = schedule["start"] >= 0
        if started.all():
            return replace(found, outside=True)
        run, allocation = found.coschedule, found.allocation
        assert run is not None
        assert allocation is not None
        return replace(
            found,
            start=np.where(started, found.start, -1.0),
            run_time=np.where(started, found.run_time, run.compact_s),
            allocation=_of_started(allocation, started),
            coschedule=run._replace(end_ticks=np.where(started, run.end_ticks, -1)),
            outside=True,
        )


def _busiest(workload: Workload, longest: int) -> Workload:
    """Return so many jobs after one another that request most time; the clock must hold them."""
    total = np.concatenate([[0.0], np.cumsum(workload.requested_time, dtype=np.float64)])
    first = int((total[longest:] - total[: len(total) - longest]).argmax())
    jobs = workload.take(slice(first, first + longest))
    return jobs.with_columns(submit_time=np.full(len(jobs), workload.submit_time.max(initial=0)))


def _of_started(allocation: Allocation, started: NDArray[np.bool_]) -> Allocation:
    """Return the nodes of the jobs that have started; the others have none yet."""
    counts = np.diff(allocation.first)
    cells = np.repeat(started, counts)
    first = np.concatenate([[0], np.cumsum(np.where(started, counts, 0))])
    return Allocation(first, allocation.node[cells], allocation.units[cells])
