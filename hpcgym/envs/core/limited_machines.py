"""Machines whose jobs have nodes of their own behind an environment, and limits of episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import FOREVER
from hpcgym.cluster import Cluster, NodeGroup, find_cluster
from hpcgym.envs.core.machines import Machines, schedule_of_queue
from hpcgym.envs.core.options import Options, read_policy_features
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.schedule.result import Result
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap, check_limits
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.limited import (
    check_for_limits,
    check_possible,
    check_power_rule,
    takes_whole_nodes,
    units_a_node,
    warn_of_own_nodes,
    with_machine,
)
from hpcgym.simulation.limited_machine import (
    limit_records,
    machine_without_limits,
    may_switch,
    node_power,
    told_of_limits,
)
from hpcgym.simulation.nodes import needs_on
from hpcgym.simulation.prepare import Units, machine_of
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    from hpcgym._engine import Simulation
    from hpcgym.envs.core.schedules import State


class Limited(NamedTuple):
    """What an environment says of a machine whose jobs have nodes of their own.

    Attributes
    ----------
    controls : names of CONTROLS, in the order of the action.
    limits_of : returns the limits of an episode's jobs, in seconds of their clock; None: it has
        none, and nothing is said of power.
    switches : whether nodes may be switched off at all.
    """

    controls: tuple[str, ...]
    limits_of: Callable[[Workload], tuple[Limit, ...]] | None
    switches: bool


def own_nodes(options: Options) -> Limited | None:
    """Return what is said of a machine without limits if jobs have nodes of their own on it."""
    check_power_rule(options.scheduler, None)
    if not takes_whole_nodes(options.cluster, options.scheduler, None):
        return None
    return Limited((), None, options.cluster.shutdown_after_s is not None)


#: What an agent may set.
CONTROLS = ("frequency", "nodes", "power")


class LimitedMachines(Machines):
    """The machines of many simulations whose jobs have nodes of their own.

    Attributes
    ----------
    limits : of the present episode of each simulation.

    Raises
    ------
    HpcgymError : rules that do not go with nodes of one's own or with limits, or nodes that are
        not alike or without a power.
    WorkloadError : a job that cannot be simulated.
    """

    own_rules = ("power",)
    place, books = "whole nodes", False

    def __init__(self, limited: Limited, options: Options, workload: Workload, number: int) -> None:
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
        self.limits_of = limited.limits_of
        # nodes are switched off, not processors
        self.cluster = replace(cluster, shutdown_after_s=None)
        self.counted = cluster.nodes
        self._power, needs = node_power(cluster), needs_on(workload, cluster)
        self._asked, self._a_node = needs[:, 0], units_a_node(needs, cluster)
        if not has_limits:
            warn_of_own_nodes(needs, cluster, scheduler)
        self.units = Units(cluster.nodes, -(-self._asked // self._a_node))
        self._machine = machine_without_limits(
            workload, scheduler, cluster, self._power, self.units.widths, limited.switches
        )._replace(controlled=has_limits)
        self.told = {"limited": self._machine.told}
        self.limits: list[tuple[Limit, ...]] = [()] * number
        self._next_limits = list(self.limits)
        self._next: dict[int, dict[str, NDArray[np.int64]]] = {}

    @property
    def busy_w(self) -> float:
        """What a node draws at most [W], with its part of what stands above them."""
        most_mw = self.counted * int(self._machine.drawn_mw[-1]) + self._machine.components_mw
        return most_mw / 1000 / self.counted

    def set_next(self, e: int, jobs_of: Callable[[], Workload], start: int) -> None:
        """Set the limits of the next episode of simulation ``e``, which begins at row ``start``.

        Raises
        ------
        HpcgymError : limits that are none, that need nodes to be switched off where they stay on,
            or under which a job can never start.
        """
        limits_of, workload, machine = self.limited.limits_of, jobs_of(), self._machine
        given = () if limits_of is None else check_limits(limits_of(workload))
        scheduler, cluster = self.options.scheduler, self.options.cluster
        if any(getattr(limit, "shutdown", False) for limit in given) and not self.limited.switches:
            raise HpcgymError("limits: budgets with shutdown need the control 'nodes'")
        caps, budgets = limit_records(scheduler, cluster, self._power, machine, given)
        if (caps["end"] == FOREVER).any():
            part = machine.part(start, start + len(workload))
            check_possible(workload, part._replace(caps=caps))
        self._next[e], self._next_limits[e] = told_of_limits(caps, budgets), given

    def next_limits(self, e: int) -> dict[str, NDArray[np.int64]] | None:
        """Return the limits of the next episode of simulation ``e``, as the engine takes them."""
        return self._next.get(e)

    def limits_now(self, e: int) -> tuple[Limit, ...]:
        """Return the limits of the present episode of simulation ``e``."""
        return self.limits[e]

    def take_limits(self, e: int, limits: tuple[Limit, ...]) -> None:
        """Note the limits under which simulation ``e`` goes on, in an episode of its own."""
        self.limits[e] = limits

    def began(self, e: int) -> None:
        """Note that simulation ``e`` has begun the episode that was to come next."""
        self.limits[e] = self._next_limits[e]

    def free_processors(self, free: int, running: NDArray[np.int64]) -> int:
        """Return how many processors the free nodes have."""
        return free * (self.cluster.processors // self.cluster.nodes)

    def finds_room(
        self, simulation: Simulation, rows: NDArray[np.int64], start: int
    ) -> NDArray[np.bool_]:
        """Return which of these waiting jobs find enough nodes now, whatever limits say."""
        found: NDArray[np.bool_] = self._machine.widths[start + rows] <= simulation.free
        return found

    def schedule(self, told: State, workload: Workload) -> Result:
        """Return the schedule of a simulation so far, with nodes, levels and limits."""
        result, schedule = schedule_of_queue(told, workload, self.options), told.schedule
        start, stop = told.first, told.first + len(result.start)
        begun, predicted = result.start >= 0, schedule["predicted_at_highest"]
        asked = np.where(begun, predicted, result.predicted_run_time)
        result = replace(result, predicted_run_time=asked)
        units, a_node = self._asked[start:stop], self._a_node[start:stop]
        machine = self._machine.part(start, stop)
        return with_machine(result, machine, schedule, units, a_node, told.limits)


DAY = 86_400  # [s]
LimitsOf = Callable[[Workload], tuple[Limit, ...]]


def read_machine(workload: Any, arguments: Mapping[str, Any], usual: str) -> dict[str, Any]:
    """Return the arguments with the workload loaded and a machine that has nodes.

    Without ``cluster`` that is a node of one core for each processor, with the power of a node of
    the machine ``usual``.
    """
    settled = dict(arguments)
    processors, cluster = settled.pop("processors", None), settled.pop("cluster", None)
    if not isinstance(workload, Workload):
        workload = load_workload(workload, processors=processors, cluster=cluster)
    machine = machine_of(workload, cluster, processors)
    if cluster is None:
        power = find_cluster(usual).groups[0].power
        nodes = NodeGroup(usual, machine.processors, {"core": 1}, power)
        machine = Cluster(groups=(nodes,))
    return {**settled, "workload": workload, "cluster": machine}


def read_controls(controls: Any, policy_features: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what an agent sets, and the features of the queue that it weighs, checked."""
    if isinstance(controls, str) or not isinstance(controls, Sequence):
        raise HpcgymError(f"controls must be names of controls, not {controls!r}")
    for name in controls:
        check_choice("controls", name, CONTROLS)
    if len(set(controls)) < len(controls):
        raise HpcgymError("controls: a control is named twice")
    none = isinstance(policy_features, Sequence) and not policy_features
    features = () if none else read_policy_features(policy_features)
    if not controls and not features:
        raise HpcgymError("controls and policy_features: at least one must be named")
    return tuple(controls), features


@dataclass(frozen=True)
class FromFirstSubmission:
    """Limits whose times count from the first submission of each episode."""

    given: tuple[Limit, ...]

    def __call__(self, workload: Workload) -> tuple[Limit, ...]:
        """Return the limits by the clock of an episode's jobs."""
        return tuple(shifted(limit, first_submit(workload)) for limit in self.given)


@dataclass(frozen=True)
class DailyCaps:
    """A cap each day between two hours, on days up to the last submission.

    ``clock`` is the time of the week at the trace's time 0 [s].
    """

    watts: float
    begin: int
    end: int
    clock: int

    def __call__(self, workload: Workload) -> tuple[Limit, ...]:
        """Return the caps of an episode's jobs."""
        first, last = first_submit(workload) + self.clock, last_submit(workload) + self.clock
        days = range(first // DAY, last // DAY + 1)
        windows = [(day * DAY + 3600 * self.begin, day * DAY + 3600 * self.end) for day in days]
        return tuple(
            PowerCap(self.watts, max(start - self.clock, 0), stop - self.clock)
            for start, stop in windows
            if stop > first and start <= last
        )


@dataclass(frozen=True)
class OneBudget:
    """A budget for all the time from the first to the last submission of an episode."""

    cluster: Cluster
    share: float
    period: int
    shutdown: bool

    def __call__(self, workload: Workload) -> tuple[Limit, ...]:
        """Return the budget of an episode's jobs."""
        start, end = first_submit(workload), last_submit(workload) + 1
        kept = {"period": self.period, "shutdown": self.shutdown}
        return (EnergyBudget.of(self.cluster, self.share, start, end, **kept),)


def read_limits(limits: Any, usual: LimitsOf) -> LimitsOf:
    """Return what gives the limits of an episode.

    Parameters
    ----------
    limits : None: ``usual``; limits whose times count from the episode's first submission; or a
        function of the episode's jobs that returns limits by their clock.
    """
    if limits is None:
        return usual
    return limits if callable(limits) else FromFirstSubmission(check_limits(limits))


def first_submit(workload: Workload) -> int:
    """Return when the first job is submitted [s]."""
    return int(workload.submit_time[0])


def last_submit(workload: Workload) -> int:
    """Return when the last job is submitted [s]."""
    return int(workload.submit_time[-1])


def shifted(limit: Limit, seconds: int) -> Limit:
    """Return a limit that holds so much later."""
    end = None if limit.end is None else limit.end + seconds
    if isinstance(limit, EnergyBudget):
        assert end is not None
        return replace(limit, start=limit.start + seconds, end=end)
    announced = None if limit.announced is None else limit.announced + seconds
    return replace(limit, start=limit.start + seconds, end=end, announced=announced)


def daily_caps(cluster: Cluster, share: float, hours: Any, clock: int) -> LimitsOf:
    """Return what caps the power at a share each day between two hours, up to the last submission.

    ``clock`` is the time of the week at the trace's time 0 [s].

    Raises
    ------
    HpcgymError : hours that are no two whole hours of a day in their order.
    """
    return DailyCaps(PowerCap.of(cluster, share).watts, *_hours(hours), clock)


def one_budget(cluster: Cluster, share: float, period: int, shutdown: bool) -> LimitsOf:
    """Return what gives a budget for all the time from the first to the last submission."""
    EnergyBudget.of(cluster, share, 0, 1, period=period, shutdown=shutdown)  # checks
    return OneBudget(cluster, share, period, shutdown)


def _hours(hours: Any) -> tuple[int, int]:
    """Return two hours of a day, checked."""
    listed = list(hours) if isinstance(hours, Iterable) and not isinstance(hours, str) else []
    whole = [hour for hour in listed if isinstance(hour, int) and 0 <= hour <= 24]
    if len(listed) != 2 or len(whole) != 2 or whole[0] >= whole[1]:
        raise HpcgymError(f"hours must be two whole hours of a day, as (8, 20), not {hours!r}")
    return whole[0], whole[1]


def switches_nodes(
    cluster: Cluster, controls: tuple[str, ...], limits: Any, shutdown: bool, power: str
) -> bool:
    """Return whether nodes may be switched off: by the agent, the machine, ``power`` or a budget.

    A function of one's own may give budgets that say so.
    """
    if "nodes" in controls or shutdown or callable(limits):
        return True
    if limits is None:  # the usual ones
        return power in ("shut", "mix") or cluster.shutdown_after_s is not None
    given = tuple(limits) if isinstance(limits, Iterable) else ()
    return may_switch(Scheduler(power=power), cluster, given)
