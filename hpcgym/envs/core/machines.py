"""The machines behind an environment: pools of processors, or nodes; the base of other kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.power_plans import greatest_w
from hpcgym.engine.machines.nodes.rows import row_of
from hpcgym.engine.passes.preempting_rows import PreemptingRows
from hpcgym.engine.passes.restricted_rows import RestrictedRows
from hpcgym.engine.rows import shared_arrays
from hpcgym.envs.core.node_books import keeps_books
from hpcgym.envs.core.options import Options
from hpcgym.envs.core.tables import Common
from hpcgym.envs.core.told import State
from hpcgym.schedule.places import Allocation
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import Limit
from hpcgym.simulation.dependencies import as_came
from hpcgym.simulation.nodes import (
    assign_nodes,
    is_pool,
    needs_on,
    node_needs,
    rooms_for,
)
from hpcgym.simulation.preempting import for_result
from hpcgym.simulation.restricted import restricted_rows
from hpcgym.workload.model import Workload


class MachineParts(NamedTuple):
    """What the engine is told of machines."""

    rooms: Any = None
    kept: Any = None
    limited: Any = None
    corun: Any = None


class Machines:
    """The machines of many simulations: pools of processors, or nodes that several jobs may be on.

    Other kinds are subclasses, which override what differs.

    Attributes
    ----------
    rows : a NamedTuple of arrays with a row for each simulation; None on a pool.
    cluster : the machine, with what the simulations do of its rules.
    units : what the simulations count of a machine: here processors.
    counted : how many units, processors or nodes, energy and observations are divided by.
    kept : quotas and windows, with rows for all simulations; None without any.
    parts : what the engine is told of the machines.
    books : whether energy is what nodes draw, and what stands above them.
    n_booked : of how many nodes it is counted one by one.
    ticks : of the simulations' clock in a second.
    terms : names of the terms of rewards.
    own_rules : of schedulers, which have a meaning on such machines alone.
    limits_of : returns the limits of an episode's jobs; None: it has none.

    Raises
    ------
    HpcgymError : rules with which environments know no nodes.
    WorkloadError : a job that never fits.
    """

    terms: ClassVar[tuple[str, ...]] = ("bsld", "wait_s", "energy_j")
    own_rules: ClassVar[tuple[str, ...]] = ()
    limits_of: Any = None
    kept: RestrictedRows | None = None
    ticks = 1
    parts: MachineParts

    def __init__(self, options: Options, workload: Workload, number: int, longest: int) -> None:
        cluster = self.cluster = options.cluster
        self.units = self.counted = cluster.processors
        scheduler = options.scheduler
        self.books = keeps_books(options, is_pool(cluster, workload, scheduler))
        self.n_booked = cluster.nodes if self.books else 0
        needs = node_needs(cluster, workload, scheduler, self.books)
        self.rows: Any = None
        if needs is not None:
            holders = len(needs) - len(workload)
            requested = np.concatenate([workload.requested_time, np.zeros(holders, np.int64)])
            self.rows = rooms_for(needs, requested, cluster, scheduler, number, longest, holders)
        self.kept = restricted_rows(
            [workload], scheduler, cluster, number, not self.is_pool, longest
        )
        self.parts = MachineParts(rooms=self.rows, kept=self.kept)

    @property
    def is_pool(self) -> bool:
        """Whether processors are all alike, and jobs on no nodes."""
        return self.rows is None

    @property
    def busy_w(self) -> float | None:
        """What a unit draws at most [W]; None: what the cluster says of processors."""
        return greatest_w(self.cluster) / self.counted if self.books else None

    @property
    def telling(self) -> tuple[NDArray[Any], ...]:
        """Constant arrays that tell one machine from another, for fingerprints."""
        told: tuple[NDArray[Any], ...] = ()
        if self.rows is not None:
            told = (self.rows.needs, self.rows.capacity, self.rows.begin)
        for part in (self.kept, self._stops):
            told += () if part is None else shared_arrays(part)
        return told

    def prepared(self, common: Common) -> Common:
        """Return the jobs in the units and the clock of the simulations."""
        return common

    def set_next(self, e: int, jobs_of: Callable[[], Workload], start: int) -> None:
        """Note the next episode of simulation ``e``, with these jobs from row ``start`` on."""

    def began(self, e: int) -> None:
        """Note that simulation ``e`` has begun the episode that was to come next."""

    def limits_now(self, e: int) -> tuple[Limit, ...]:
        """Return the limits of the present episode of simulation ``e``."""
        return ()

    def take_limits(self, e: int, limits: tuple[Limit, ...]) -> None:
        """Note the limits under which simulation ``e`` goes on, in an episode of its own."""

    def listed(self, e: int) -> NDArray[np.int64] | None:
        """Return the running jobs of simulation ``e`` that are listed as neighbours."""
        return None

    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return what is listed in all simulations, (n, M), and how much of it counts, (n,)."""
        return None

    def free_processors(self, free: int, running: NDArray[np.int64]) -> int:
        """Return how many processors are free, where the simulation has so many units free.

        ``running``: the requested processors of the jobs that run.
        """
        return free

    def finds_room(self, rows: NDArray[np.int64], free: int) -> NDArray[np.bool_] | None:
        """Return which jobs of the table, all waiting, would fit now; None: ``pass_view`` knows.

        ``free``: units of their simulation.
        """
        return None

    @property
    def _stops(self) -> PreemptingRows | None:
        """Who may stop whom; None: nobody."""
        return None if self.kept is None else self.kept.stops

    def row(self, e: int, start: int, n: int) -> Any:
        """Return the machine of simulation ``e`` for its ``n`` jobs from row ``start`` on.

        What a schedule is made of are copies. None on a pool.
        """
        if self.rows is None:
            return None
        nodes = row_of(self.rows, e, start, start + n)
        held, most = nodes.held.copy(), np.minimum(nodes.needs[:, 0], len(nodes.free))
        held["first"] = np.cumsum(most) - most
        return nodes._replace(held=held, cells=nodes.cells.copy())

    def schedule(
        self, told: State, workload: Workload, jobs: NDArray[np.void], options: Options
    ) -> Result:
        """Return the schedule of a simulation so far; jobs not started have start -1.

        Where run times are learned, the requested ones stand for jobs not submitted yet.
        """
        cluster, scheduler = options.cluster, options.scheduler
        result = schedule_of_queue(told, workload, jobs, options)
        if told.machine is not None:
            result = replace(result, allocation=Allocation.of(told.now.schedule))
        elif cluster.groups:
            needs = needs_on(workload, cluster)
            known = told.schedule(jobs), needs, cluster, scheduler, workload.initial
            result = replace(result, allocation=assign_nodes(*known))
        if told.stopped is not None:
            result = replace(result, **for_result(told.stopped, told.now.schedule["start"]))
        return as_came(result, jobs["submit"])


def schedule_of_queue(
    told: State, workload: Workload, jobs: NDArray[np.void], options: Options
) -> Result:
    """Return the schedule where jobs have their processors alone, without their nodes."""
    seconds = None
    if told.manages:
        seconds = told.now.idle_seconds()
    result = Result.of(
        workload, options.cluster, options.scheduler, told.schedule(jobs), seconds, True
    )
    return replace(result, policy_run_time=_policy_run_time(told, jobs))


def _policy_run_time(told: State, jobs: NDArray[np.void]) -> NDArray[np.int64] | None:
    """Return what policies looked at if it was learned, (n_jobs,) [s]."""
    known = told.now.ordered_by
    if known is None:
        return None
    learned, coming = known.copy(), told.now.next
    learned[coming:] = jobs["requested"][coming:]  # else those of an earlier episode
    learned.flags.writeable = False
    return learned
