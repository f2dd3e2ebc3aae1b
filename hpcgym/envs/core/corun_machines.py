"""Nodes that jobs share behind an environment: their arrays, times in seconds, results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.engine.machines.corun.files.rows import make_file_rows
from hpcgym.engine.machines.corun.rows import N_BESIDE, CorunRows, make_rows, row_of
from hpcgym.engine.machines.corun.state import PART, CorunNodes
from hpcgym.engine.rows import shared_arrays
from hpcgym.envs.core.corun_options import Corun
from hpcgym.envs.core.machines import MachineParts, Machines
from hpcgym.envs.core.node_books import keeps_books
from hpcgym.envs.core.options import Options
from hpcgym.envs.core.tables import Common
from hpcgym.envs.core.told import State
from hpcgym.schedule.places import Allocation
from hpcgym.schedule.result import Result
from hpcgym.simulation.corun import (
    check_machine,
    shared_nodes,
    shared_result,
    tasks_of,
    ticks_a_second,
)
from hpcgym.simulation.corun_files import check_files, files_of, slowest_in_congestion
from hpcgym.workload.codes import codes_of
from hpcgym.workload.model import Workload


class CorunMachines(Machines):
    """The nodes of many simulations in which jobs share them.

    Attributes
    ----------
    rows : as of all machines.
    ticks : in a second: the clock of the simulations counts them.
    units : parts of all nodes, which the simulations count as others count processors.
    widths : (n_rows,) int64, of each job of the table the parts that it takes.
    """

    terms = (*Machines.terms, "elapsed_s")

    def __init__(
        self, corun: Corun, options: Options, workload: Workload, number: int, longest: int
    ) -> None:
        cluster, scheduler = options.cluster, options.scheduler
        self._corun = corun
        self.cluster, self.counted = cluster, cluster.processors
        self.books, self.n_booked = keeps_books(options), 0
        cores, sockets = check_machine(cluster)
        code = codes_of(workload, corun.speedups.codes)
        tasks, parts = tasks_of(workload, scheduler, cluster.nodes, cores, sockets, code)
        check_files(cluster, corun.speedups, scheduler)
        files = files_of(cluster, corun.speedups, workload, code)
        congested = slowest_in_congestion(cluster, corun.speedups, files)
        busiest = _busiest(workload, longest)
        self.ticks = ticks_a_second(busiest, corun.speedups, congested=congested)
        self.units = cluster.nodes * parts
        self.widths = tasks["nodes"] * np.where(tasks["placement"] == PART, 1, parts)
        one = shared_nodes(scheduler, corun.speedups, tasks[:0], cluster.nodes, parts)
        part = cores // sockets // max(parts, 2) * sockets
        self.rows: CorunRows = make_rows(
            one,
            tasks,
            workload.requested_processors,
            np.array([cores, part, part], np.int64),
            number,
            longest,
            corun.neighbours,
            None if files is None else make_file_rows(files, number, longest),
        )
        self.parts = MachineParts(corun=self.rows)

    def prepared(self, common: Common) -> Common:
        """Return jobs in ticks and parts of nodes, in place of seconds and processors."""
        jobs = common.jobs.copy()
        for name in ("submit", "run", "requested"):
            jobs[name] *= self.ticks
        jobs["processors"] = self.widths
        assert common.predicted is not None  # none are learned
        return common._replace(jobs=jobs, predicted=common.predicted * self.ticks)

    @property
    def telling(self) -> tuple[NDArray[Any], ...]:
        """Constant arrays that tell one machine from another, for fingerprints."""
        io = () if self.rows.io is None else shared_arrays(self.rows.io)
        return (*shared_arrays(self.rows), *io)

    def listed(self, e: int) -> NDArray[np.int64]:
        """Return the jobs of simulation ``e`` that are listed as neighbours, then -1; (M,)."""
        rows: NDArray[np.int64] = self.rows.neighbours[e].copy()
        rows[self.rows.books[e, N_BESIDE] :] = -1
        return rows

    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what is listed in all simulations, (n, M), and how much of it counts, (n,)."""
        return self.rows.neighbours.copy(), self.rows.books[:, N_BESIDE].copy()

    def free_processors(self, free: int, running: NDArray[np.int64]) -> int:
        """Return how many processors have no job."""
        return self.cluster.processors - int(running.sum())

    def row(self, e: int, start: int, n: int) -> CorunNodes:
        """Return the nodes of simulation ``e``, whose episode has ``n`` jobs.

        What a schedule is made of are copies.
        """
        machine, usual = row_of(self.rows, e, n), self.rows.usual[start : start + n]
        tasks = machine.tasks.copy()
        for name in ("nodes", "placement", "code"):
            tasks[name] = usual[name]
        return machine._replace(
            tasks=tasks, cells=self.rows.cells[e, : usual["nodes"].sum()].copy()
        )

    def schedule(
        self, told: State, workload: Workload, jobs: NDArray[np.void], options: Options
    ) -> Result:
        """Return the schedule of a simulation so far; jobs not started have start -1.

        Those that run end as they will if nobody comes or goes beside them.
        """
        known = told.schedule(jobs)
        found = shared_result(
            workload, options.scheduler, options.cluster, self._corun.speedups, known,
            told.machine, self.ticks,
        )  # fmt: skip
        started = known["start"] >= 0
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
