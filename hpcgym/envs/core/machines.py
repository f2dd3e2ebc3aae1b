"""The machines behind an environment, and the schedules that they make.

Pools and nodes, nodes of jobs' own, under limits or under none, and nodes that jobs share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Simulation
from hpcgym.envs.core.base import Corun, Limited, Options
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.reward import ENERGY
from hpcgym.envs.core.shapes import Shapes
from hpcgym.envs.core.slices import Episode
from hpcgym.errors import HpcgymError
from hpcgym.machine.power_plans import greatest_w, idle_w, powers_of
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.estimates.by_name import learns
from hpcgym.scheduler.limits import Limit, check_limits
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.shared_nodes import check_files, check_machine, pool_rules
from hpcgym.scheduler.whole_nodes import (
    check_for_limits,
    warn_of_own_nodes,
)
from hpcgym.simulation.corun import (
    shared_nodes,
    shared_result,
    slowest_in_congestion,
    ticks_a_second,
)
from hpcgym.simulation.driver import with_jobs
from hpcgym.simulation.limited import (
    machine_without_limits,
    own_nodes_of,
    told_of_limits,
    with_limits,
    with_machine,
)
from hpcgym.simulation.nodes import is_pool, nodes_of_table
from hpcgym.simulation.prepare import MachineUnits
from hpcgym.simulation.results import result_of, with_nodes
from hpcgym.workload.checks import needs_on
from hpcgym.workload.model import Workload

BUSY = 0  # in `watts`, of processors that are busy, idle, off, being switched off and on

# --- The schedule of a simulation, of which little is copied --------------------------------------


@dataclass(frozen=True)
class ScheduleState:
    """What the schedule of a simulation is made of; what steps change is copied.

    Attributes
    ----------
    name : of the episode.
    episodes, episode : of its log, and which rows of the workload it has.
    machines : of its log.
    workload : None: the jobs of the episode as they are.
    episode_state : one EPISODE; this and ``totals`` as of ``World.batch``.
    simulation : it goes on with its environment, and stays as it is at the end of its episode.
    jobs : (n_jobs,) JOBS that it was told of.
    rules : by which it goes.
    limits : of the episode.
    counts : (n_jobs,) whether a job counts, of those of the slice; None: all do.
    """

    name: str
    episodes: Episodes
    episode: Episode
    machines: Machines
    workload: Workload | None
    episode_state: Any
    totals: NDArray[np.float64]
    simulation: Simulation
    jobs: NDArray[np.void]
    rules: Mapping[str, int]
    limits: tuple[Limit, ...]
    counts: NDArray[np.bool_] | None = None

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


# --- The machines behind an environment -----------------------------------------------------------

Records = dict[str, NDArray[np.int64]]

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
    size : how many processors or nodes energy and observations are divided by.
    books : whether energy is what nodes draw, and what stands above them.
    terms : names of the terms of rewards.
    own_rules : of schedulers, which have a meaning on such machines alone.
    mean_speedup : (C,) as in :func:`hpcgym.envs.core.model.table_of`.

    Raises
    ------
    HpcgymError : rules with which environments know no nodes.
    WorkloadError : a job that never fits.
    """

    terms: ClassVar[tuple[str, ...]] = ("bsld", "wait_s", "energy_j")
    own_rules: ClassVar[tuple[str, ...]] = ()
    mean_speedup: NDArray[np.float64] = np.zeros(0)
    n_booked = 0  # of how many nodes energy is counted one by one

    def __init__(self, options: Options, workload: Workload) -> None:
        self.options, self.cluster = options, options.cluster
        cluster, scheduler = options.cluster, options.scheduler
        self.size = cluster.processors
        self.units = MachineUnits(cluster.processors, workload.requested_processors)
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
        return greatest_w(self.cluster) / self.size if self.books else None

    @property
    def watts(self) -> NDArray[np.float64]:
        """What a processor draws, as in :func:`hpcgym.envs.core.model.table_of`."""
        watts = np.array([getattr(self.cluster, name) for name in _WATTS])
        if self.busy_w is not None:
            watts[BUSY] = self.busy_w
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

    def limits_from(
        self, jobs_of: Callable[[], Workload], start: int
    ) -> tuple[tuple[Limit, ...], Records | None]:
        """Return the limits of an episode whose jobs stand from row ``start`` on, if there are any.

        And the same as the engine takes them.
        """
        return (), None

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

    def schedule(self, state: ScheduleState, workload: Workload) -> Result:
        """Return the schedule of a simulation so far; jobs not started have start -1.

        Where run times are learned, the requested ones stand for jobs not submitted yet.
        """
        return with_nodes(schedule_of_queue(state, workload, self.options), state.schedule)


def schedule_of_queue(state: ScheduleState, workload: Workload, options: Options) -> Result:
    """Return the schedule where jobs have their processors alone, without their nodes."""
    native, schedule, given = state.simulation, state.schedule, (options.cluster, options.scheduler)
    if "ordered_by" not in schedule:
        so_far = result_of(native, schedule, state.rules, workload, *given, outside=True)
        return replace(so_far, outside_orders=_only_orders(state))
    schedule = dict(schedule)  # nothing has been learned for jobs that are to come
    for name in ("predicted", "ordered_by"):
        learned = schedule[name].copy()
        learned[state.come :] = schedule["requested"][state.come :]
        learned.flags.writeable = False
        schedule[name] = learned
    result = result_of(native, schedule, state.rules, workload, *given, outside=True)
    of_policies, of_candidates = (
        options.scheduler.policy_estimate,
        options.scheduler.candidate_estimate,
    )
    return replace(
        result,
        policy_run_time=schedule["ordered_by"] if learns(of_policies) else None,
        candidate_run_time=schedule["ordered_by"]
        if of_candidates is not None and learns(of_candidates)
        else None,
        outside_orders=_only_orders(state),
    )


def _only_orders(state: ScheduleState) -> bool:
    """Return whether an agent orders the queue, and keeps no job from starting otherwise."""
    return not (state.rules["picks"] or state.rules.get("proposes"))


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
    rewarded = any(weights[ENERGY] for weights in options.rewards.weights)
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
    return powers and (rewarded or not (alike and options.scheduler.asks_for_predictions))


class SubmittedMachines(Machines):
    """The machines of many simulations of which an agent submits the jobs of a user.

    Attributes
    ----------
    every : the jobs with all that they may ask for, which the engine is told beforehand.
    """

    terms = (*Machines.terms, "turnaround_s")

    def __init__(self, shapes: Shapes, options: Options, workload: Workload) -> None:
        self.every = shapes.with_all(workload)
        super().__init__(options, self.every)


# --- Machines whose jobs have nodes of their own behind an environment ----------------------------


class LimitedMachines(Machines):
    """The machines of many simulations whose jobs have nodes of their own.

    Raises
    ------
    HpcgymError : rules that do not go with nodes of one's own or with limits, or nodes that are
        not alike or without a power.
    WorkloadError : a job that cannot be simulated.
    """

    own_rules = ("power",)
    place, books = "whole nodes", False

    def __init__(self, limited: Limited, options: Options, workload: Workload) -> None:
        scheduler, cluster = options.scheduler, options.cluster
        has_limits = limited.limits_of is not None
        check_for_limits(scheduler, has_limits)
        if not has_limits:
            check_scheduler(scheduler, "environments on nodes")
        unknown = [group.name for group in cluster.groups if group.power is None]
        if not has_limits and unknown:
            raise HpcgymError(
                "with nodes of their own for jobs (shutdown_after_s, allocation='contiguous')"
                f" environments count what nodes draw, and group {unknown[0]!r} has no power;"
                " give it one: power=NodePower(...), or [group.power] in its file"
            )
        self.limited, self.options = limited, options
        own = self._own = own_nodes_of(needs_on(workload, cluster), cluster)
        self.cluster, self.units, self.size = own.cluster, own.units, cluster.nodes
        if not has_limits:
            warn_of_own_nodes(own.needs, cluster, scheduler)
        self._machine = machine_without_limits(
            workload, scheduler, cluster, own.power, own.units.widths, limited.switches
        )._replace(controlled=has_limits)
        self.told = {"limited": self._machine.told}

    @property
    def busy_w(self) -> float:
        """What a node draws at most [W], with its part of what stands above them."""
        most_mw = self.size * int(self._machine.drawn_mw[-1]) + self._machine.components_mw
        return most_mw / 1000 / self.size

    def limits_from(
        self, jobs_of: Callable[[], Workload], start: int
    ) -> tuple[tuple[Limit, ...], Records | None]:
        """Return the limits of an episode, as above.

        Raises
        ------
        HpcgymError : invalid limits, limits that need nodes to be switched off where they stay on,
            or under which a job can never start.
        """
        limits_of, workload = self.limited.limits_of, jobs_of()
        given = () if limits_of is None else check_limits(limits_of(workload))
        scheduler, cluster = self.options.scheduler, self.options.cluster
        if any(getattr(limit, "shutdown", False) for limit in given) and not self.limited.switches:
            raise HpcgymError("limits: budgets with shutdown need the control 'nodes'")
        jobs = self._machine.part(start, start + len(workload))
        machine = with_limits(jobs, workload, scheduler, cluster, self._own.power, given)
        return given, told_of_limits(machine.caps, machine.budgets)

    def free_processors(self, free: int, running: NDArray[np.int64]) -> int:
        """Return how many processors the free nodes have."""
        return free * (self.cluster.processors // self.cluster.nodes)

    def finds_room(
        self, simulation: Simulation, rows: NDArray[np.int64], start: int
    ) -> NDArray[np.bool_]:
        """Return which of these waiting jobs find enough nodes now, whatever limits say."""
        fit: NDArray[np.bool_] = self._machine.widths[start + rows] <= simulation.free
        return fit

    def schedule(self, state: ScheduleState, workload: Workload) -> Result:
        """Return the schedule of a simulation so far, with nodes, levels and limits."""
        result, schedule = schedule_of_queue(state, workload, self.options), state.schedule
        start, stop = state.first, state.first + len(result.start)
        begun, predicted = result.start >= 0, schedule["predicted_at_highest"]
        asked = np.where(begun, predicted, result.predicted_run_time)
        result = replace(result, predicted_run_time=asked)
        units, a_node = self._own.needs[start:stop, 0], self._own.a_node[start:stop]
        machine = self._machine.part(start, stop)
        return with_machine(result, machine, schedule, units, a_node, state.limits)


# --- Nodes that jobs share behind an environment: times in seconds, results -----------------------


class CorunMachines(Machines):
    """The nodes of many simulations in which jobs share them; these count parts of nodes."""

    terms = (*Machines.terms, "elapsed_s")
    place = "shared nodes"

    def __init__(self, corun: Corun, options: Options, episodes: Episodes) -> None:
        cluster, scheduler, workload = options.cluster, options.scheduler, episodes.workload
        self.options, self.cluster, self.size = options, cluster, cluster.processors
        self._speedups, self.books = corun.speedups, keeps_books(options)
        cores, sockets = check_machine(cluster)
        check_files(cluster, corun.speedups, scheduler)
        shared = shared_nodes(workload, scheduler, cluster, corun.speedups, cores, sockets)
        self._nodes, parts = shared, shared.parts
        congested = slowest_in_congestion(cluster, corun.speedups, shared.files)
        busiest = _busiest(workload, episodes.longest)
        ticks = ticks_a_second(busiest, corun.speedups, congested=congested)
        self.units = MachineUnits(cluster.nodes * parts, shared.units, ticks)
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
        return pool_rules(self.options.scheduler)

    def free_processors(self, free: int, running: NDArray[np.int64]) -> int:
        """Return how many processors have no job."""
        return self.cluster.processors - int(running.sum())

    def finds_room(
        self, simulation: Simulation, rows: NDArray[np.int64], start: int
    ) -> NDArray[np.bool_]:
        """Return which of these waiting jobs would find room now."""
        return simulation.fits(rows.tolist()).astype(np.bool_)

    def schedule(self, state: ScheduleState, workload: Workload) -> Result:
        """Return the schedule of a simulation so far; jobs not started have start -1.

        Those that run end as they will if nobody comes or goes beside them.
        """
        schedule, nodes = state.schedule, self._nodes.part(state.first, state.first + len(workload))
        result = shared_result(
            workload, self.options.scheduler, self.cluster, self._speedups, schedule, nodes,
            self.units.ticks,
        )  # fmt: skip
        started = schedule["start"] >= 0
        if started.all():
            return replace(result, outside=True)
        run, allocation = result.coschedule, result.allocation
        assert run is not None
        assert allocation is not None
        return replace(
            result,
            start=np.where(started, result.start, -1.0),
            run_time=np.where(started, result.run_time, run.compact_s),
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
