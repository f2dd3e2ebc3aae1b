"""The machines behind an environment: pools of processors, or nodes; the base of other kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.cluster.power_plans import greatest_w, idle_w
from hpcgym.cluster.powers import powers_of
from hpcgym.envs.core import arrays
from hpcgym.envs.core.options import Options
from hpcgym.errors import HpcgymError
from hpcgym.schedule.result import Result
from hpcgym.scheduler.estimates.learning import asks_for_predictions
from hpcgym.scheduler.limits import Limit
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.nodes import is_pool, nodes_of_table
from hpcgym.simulation.prepare import Units
from hpcgym.simulation.run import result_of, with_nodes
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym._engine import Simulation
    from hpcgym.envs.core.schedules import State

# in the order of what steps say that processors do
_WATTS = ("busy_power_w", "idle_power_w", "off_power_w", "shutdown_w", "boot_w")


class Machines:
    """The machines of many simulations: pools of processors, or nodes that several jobs may be on.

    Other kinds are subclasses, which override what differs.

    Attributes
    ----------
    told : what the engine is told of them: arguments of a model; of nodes, what they are made of.
    cluster : the machine, with what the simulations do of its rules.
    place : of :data:`hpcgym.scheduler.capabilities.PLACES`: which kind of machine they are.
    units : what the simulations count of a machine, and by which clock.
    counted : how many units, processors or nodes, energy and observations are divided by.
    books : whether energy is what nodes draw, and what stands above them.
    terms : names of the terms of rewards.
    own_rules : of schedulers, which have a meaning on such machines alone.
    limits_of : returns the limits of an episode's jobs; None: it has none.
    mean_speedup : (C,) as in :class:`hpcgym.envs.core.arrays.Table`.

    Raises
    ------
    HpcgymError : rules with which environments know no nodes.
    WorkloadError : a job that never fits.
    """

    terms: ClassVar[tuple[str, ...]] = ("bsld", "wait_s", "energy_j")
    own_rules: ClassVar[tuple[str, ...]] = ()
    limits_of: Any = None
    mean_speedup: NDArray[np.float64] = np.zeros(0)
    n_booked = 0  # of how many nodes energy is counted one by one

    def __init__(self, options: Options, workload: Workload) -> None:
        self.options, self.cluster = options, options.cluster
        cluster, scheduler = options.cluster, options.scheduler
        self.counted = cluster.processors
        self.units = Units(cluster.processors, workload.requested_processors)
        self.books = keeps_books(options, is_pool(cluster, workload, scheduler))
        self.n_booked = cluster.nodes if self.books else 0
        nodes = nodes_of_table(workload, cluster, scheduler, self.books)
        self.place, self.told = "pool", dict[str, Any]()
        if nodes is not None:
            self.place, self.told = "nodes", {"nodes": nodes}

    @property
    def rules(self) -> Scheduler:
        """The rules that a simulation is told."""
        return self.options.scheduler

    @property
    def busy_w(self) -> float | None:
        """What a unit draws at most [W]; None: what the cluster says of processors."""
        return greatest_w(self.cluster) / self.counted if self.books else None

    @property
    def watts(self) -> NDArray[np.float64]:
        """What a processor draws, as in :class:`hpcgym.envs.core.arrays.Table`."""
        watts = np.array([getattr(self.cluster, name) for name in _WATTS])
        if self.busy_w is not None:
            watts[arrays.BUSY] = self.busy_w
        return watts

    @property
    def node_watts(self) -> NDArray[np.float64]:
        """What jobs add to nodes, as there."""
        if not self.books:
            return np.zeros((0, 2))
        powers = powers_of(self.cluster)
        more = powers.busy[np.arange(len(powers.top)), powers.top] - powers.idle
        each = np.where(powers.whole, more, more / powers.cores)
        return np.column_stack([each, powers.whole])[self.cluster.group_of]

    @property
    def still_w(self) -> NDArray[np.float64]:
        """What the machine draws idle, as there."""
        return np.array([idle_w(self.cluster) if self.books else 0.0])

    def set_next(self, e: int, jobs_of: Callable[[], Workload], start: int) -> None:
        """Note the next episode of simulation ``e``, with these jobs from row ``start`` on."""

    def next_limits(self, e: int) -> dict[str, NDArray[np.int64]] | None:
        """Return the limits of the next episode of simulation ``e``, as the engine takes them."""
        return None

    def began(self, e: int) -> None:
        """Note that simulation ``e`` has begun the episode that was to come next."""

    def limits_now(self, e: int) -> tuple[Limit, ...]:
        """Return the limits of the present episode of simulation ``e``."""
        return ()

    def take_limits(self, e: int, limits: tuple[Limit, ...]) -> None:
        """Note the limits under which simulation ``e`` goes on, in an episode of its own."""

    def free_processors(self, free: int, running: NDArray[np.int64]) -> int:
        """Return how many processors are free, where the simulation has so many units free.

        ``running``: the requested processors of the jobs that run.
        """
        return free

    def finds_room(
        self, simulation: Simulation, rows: NDArray[np.int64], start: int
    ) -> NDArray[np.bool_] | None:
        """Return which jobs of an episode, all waiting, would fit now; None: ``pass_view`` knows.

        ``start``: the first row of the episode.
        """
        return None

    def schedule(self, told: State, workload: Workload) -> Result:
        """Return the schedule of a simulation so far; jobs not started have start -1.

        Where run times are learned, the requested ones stand for jobs not submitted yet.
        """
        return with_nodes(schedule_of_queue(told, workload, self.options), told.schedule)


def schedule_of_queue(told: State, workload: Workload, options: Options) -> Result:
    """Return the schedule where jobs have their processors alone, without their nodes."""
    native, schedule, given = told.simulation, told.schedule, (options.cluster, options.scheduler)
    if "ordered_by" not in schedule:
        return result_of(native, schedule, told.rules, workload, *given, outside=True)
    schedule = dict(schedule)  # nothing has been learned for jobs that are to come
    for name in ("predicted", "ordered_by"):
        learned = schedule[name].copy()
        learned[told.come :] = schedule["requested"][told.come :]
        learned.flags.writeable = False
        schedule[name] = learned
    result = result_of(native, schedule, told.rules, workload, *given, outside=True)
    return replace(result, policy_run_time=schedule["ordered_by"])


def keeps_books(options: Options, alike: bool = False) -> bool:
    """Return whether energy is counted by what nodes and what stands above them draw.

    ``alike``: the cores could be a pool of processors. While run times are learned they are, unless
    energy is rewarded: books need nodes. Where jobs may be stopped there are no books.

    Raises
    ------
    HpcgymError : a reward for energy that cannot be counted as metrics count it.
    """
    cluster, measured = options.cluster, options.workload.columns.get("power_w")
    powers = any(group.power is not None for group in cluster.groups) or bool(cluster.levels)
    rewarded = any(weights[arrays.ENERGY] for weights in options.rewards.weights)
    if rewarded and measured is not None and (measured >= 0).any():
        raise HpcgymError(
            "reward 'energy': measured powers of jobs, power_w, count only where jobs have"
            " nodes of their own; workload.with_columns(power_w=...) of -1 leaves them out"
        )
    if options.scheduler.preemption is not None:
        if powers and rewarded:
            raise HpcgymError(
                "reward 'energy': what a job adds to what nodes draw is counted when it starts, and"
                " with preemption no start is final"
            )
        return False
    return powers and (rewarded or not (alike and asks_for_predictions(options.scheduler)))
