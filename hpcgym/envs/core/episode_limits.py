"""The limits of power and energy that hold in an episode, and the machine that keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hpcgym.cluster import Cluster, NodeGroup, find_cluster
from hpcgym.envs.core.limited_machines import CONTROLS
from hpcgym.envs.core.options import read_policy_features
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap, check_limits
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.limited_machine import may_switch
from hpcgym.simulation.prepare import machine_of
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

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
