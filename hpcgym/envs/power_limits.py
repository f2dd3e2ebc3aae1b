"""The environments in which an agent steers a machine under limits of power and energy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from hpcgym.envs.core.base import (
    CONTROLS,
    DEFAULT_WORKLOAD,
    WEIGHTS_KIND,
    Definition,
    Limited,
    check_moving,
    read_interval,
    read_options,
    read_policy_features,
)
from hpcgym.envs.page import page
from hpcgym.envs.single import SchedulingEnv
from hpcgym.envs.vector import SchedulingVectorEnv
from hpcgym.errors import HpcgymError, check_choice, check_each_once
from hpcgym.machine import Cluster, NodeGroup, find_cluster
from hpcgym.scheduler.limits import EnergyBudget, Limit, PowerCap, check_limits
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.whole_nodes import may_switch
from hpcgym.units import DAY_S, HOUR_S
from hpcgym.workload.io.swf_header import clock_of
from hpcgym.workload.load import jobs_and_machine
from hpcgym.workload.model import Workload

# --- Limits of an episode -------------------------------------------------------------------------

Limits = tuple[Limit, ...]


def _daily_caps(watts: float, begin: int, end: int, clock: int, workload: Workload) -> Limits:
    """Return caps from one hour to another on days up to the last submission of an episode.

    ``clock``: the time of the week at the trace's time 0 [s].
    """
    first, last = (int(workload.submit_time[k]) + clock for k in (0, -1))
    days = range(first // DAY_S, last // DAY_S + 1)
    windows = [(day * DAY_S + HOUR_S * begin, day * DAY_S + HOUR_S * end) for day in days]
    return tuple(
        PowerCap(watts, max(start - clock, 0), stop - clock)
        for start, stop in windows
        if stop > first and start <= last
    )


def _one_budget(given: Callable[[int, int], Limit], workload: Workload) -> Limits:
    """Return the budget from the first to the last submission of an episode."""
    return (given(int(workload.submit_time[0]), int(workload.submit_time[-1]) + 1),)


def _from_first_submission(given: Limits, workload: Workload) -> Limits:
    """Return limits by the clock of an episode's jobs."""
    first, moved_limits = int(workload.submit_time[0]), []
    for limit in given:
        times = {name: getattr(limit, name, None) for name in ("start", "end", "announced")}
        moved = {name: time + first for name, time in times.items() if time is not None}
        moved_limits.append(replace(limit, **moved))
    return tuple(moved_limits)


def _hours(hours: Any) -> tuple[int, int]:
    """Return two hours of a day, checked."""
    listed = list(hours) if isinstance(hours, Iterable) and not isinstance(hours, str) else []
    whole = [hour for hour in listed if isinstance(hour, int) and 0 <= hour <= 24]
    if len(listed) != 2 or len(whole) != 2 or whole[0] >= whole[1]:
        raise HpcgymError(f"hours must be two whole hours of a day, as (8, 20), not {hours!r}")
    return whole[0], whole[1]


# --- Arguments ------------------------------------------------------------------------------------


def read_power_cap(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    share: float = 0.6,
    hours: tuple[int, int] = (8, 20),
    power: str = "dvfs",
    **arguments: Any,
) -> Definition:
    """Return what the environment is by its arguments; others are for ``read_steering``."""
    given = _with_nodes(workload, arguments, "curie")
    watts, clock = PowerCap.of(given["cluster"], share).watts, clock_of(given["workload"])
    usual = partial(_daily_caps, watts, *_hours(hours), clock)
    return read_steering(usual, False, power=power, **given)


def read_energy_budget(
    workload: Any = DEFAULT_WORKLOAD,
    *,
    share: float = 0.6,
    period: int = 600,
    shutdown: bool = False,
    power: str = "none",
    **arguments: Any,
) -> Definition:
    """Return what the environment is by its arguments; others are for ``read_steering``."""
    given = _with_nodes(workload, arguments, "taurus")
    budget = partial(EnergyBudget.of, given["cluster"], share, period=period, shutdown=shutdown)
    budget(0, 1)  # checks
    return read_steering(partial(_one_budget, budget), shutdown, power=power, **given)


def _with_nodes(workload: Any, arguments: Mapping[str, Any], usual: str) -> dict[str, Any]:
    """Return arguments with the workload loaded and a machine that has nodes.

    Where ``cluster`` is a number or not given, that is a node of one core for each processor, with
    the power of a node of the machine ``usual``.
    """
    settled = dict(arguments)
    processors, cluster = settled.pop("processors", None), settled.pop("cluster", None)
    workload, machine = jobs_and_machine(workload, cluster, processors)
    if cluster is None or str(cluster).isdecimal():
        power = find_cluster(usual).groups[0].power
        machine = Cluster(groups=(NodeGroup(usual, machine.processors, {"core": 1}, power),))
    return {**settled, "workload": workload, "cluster": machine}


def read_steering(
    usual: Callable[[Workload], Limits],
    shutdown: bool,
    /,
    *,
    limits: Any = None,
    controls: Sequence[str] = CONTROLS,
    policy_features: Sequence[str] = (),
    interval: Any = "hour",
    **arguments: Any,
) -> Definition:
    """Return what an environment under limits is; other arguments are for ``read_options``.

    Parameters
    ----------
    usual : returns the limits of an episode's jobs, where none are given.
    shutdown : whether the usual limits switch idle nodes off.
    limits : limits whose times count from the episode's first submission; or a function of the
        episode's jobs that returns limits by their clock.
    """
    if isinstance(controls, str) or not isinstance(controls, Sequence):
        raise HpcgymError(f"controls must be names of controls, not {controls!r}")
    for name in controls:
        check_choice("controls", name, CONTROLS)
    check_each_once("controls", controls)
    none = isinstance(policy_features, Sequence) and not policy_features
    features = () if none else read_policy_features(policy_features)
    if not controls and not features:
        raise HpcgymError("controls and policy_features: at least one must be named")
    held = read_interval(interval)
    if held[0] == "pass":
        raise HpcgymError("interval: controls hold for stretches of time, not for single passes")
    power, cluster = Scheduler(power=arguments["power"]).power, arguments["cluster"]
    if limits is None:
        limits_of = usual
        switches = power in ("shut", "mix") or cluster.shutdown_after_s is not None
    elif callable(limits):  # it may give budgets that switch nodes off
        limits_of, switches = limits, True
    else:
        given = check_limits(limits)
        limits_of = partial(_from_first_submission, given)
        switches = may_switch(Scheduler(power=power), cluster, given)
    limited = Limited(tuple(controls), limits_of, switches or shutdown or "nodes" in controls)
    options = read_options(**arguments)
    check_moving(interval, features, options.scheduler)
    n_numbers = len(controls) + len(features)
    return Definition(
        WEIGHTS_KIND,
        options,
        spaces.Box(-1.0, 1.0, (n_numbers,), np.float32),
        {"controls": tuple(controls), "policy_features": features},
        # the weights of features come first in simulations, and last in actions
        np.roll(np.arange(n_numbers), len(features)),
        features=features,
        interval=held,
        limited=limited,
    )


# --- The environments -----------------------------------------------------------------------------


class SteeringEnv(SchedulingEnv):
    """What the environments under limits share: controls, and weights of features."""

    action_kind: ClassVar[str] = "power"
    passes_on = (read_steering, read_options)
    controls: tuple[str, ...]
    policy_features: tuple[str, ...]


@page
class PowerCapEnv(SteeringEnv):
    """Steer a machine whose power is capped at times: frequencies, nodes, the power in use.

    Id: `"hpcgym/PowerCap-v1"`.

    ## Description

    Each day from 8 to 20 h the machine may draw no more than a share of its greatest power (Glesser
    2016, chapter 4). The rule `power` keeps the caps whatever the agent does: by `"dvfs"` a job
    starts at the highest frequency that all caps allow that it may run into. The agent decides how
    fast jobs run, which nodes are off and how much power to use; with `policy_features` also the
    order of the queue.

    Each job has nodes of its own. By default each processor of the workload is a node of the
    machine `curie`: eight frequencies, switched off and on at once.

    {Description}

    ## Action Space

    {Actions under limits}

    ## Starting State

    {Starting State} All nodes are on.

    ## Arguments

    | `share` | `0.6` | the cap, as a share of the greatest power |
    | `hours` | `(8, 20)` | hours of the day between which the cap holds |
    | `power` | `"dvfs"` | how limits are kept: a name of `hpcgym.scheduler.rules.POWER`, see \
`docs/power.md` |
    """

    read_arguments = staticmethod(read_power_cap)


@page
class EnergyBudgetEnv(SteeringEnv):
    """Steer a machine that may use only a given amount of energy in the episode.

    Id: `"hpcgym/EnergyBudget-v1"`.

    ## Description

    From the first to the last submission of an episode, the machine may use a share of the energy
    that it would use with all nodes busy (Glesser 2016, chapter 5). A job starts only if the budget
    suffices for all that is certain then, so only idle nodes can exceed it. The agent decides when
    to use the energy: what the rule `powercap` does not draw at night is lost, and an agent that
    uses too much too early has to wait for the end.

    Each job has nodes of its own. By default each processor of the workload is a node of the
    machine `taurus`: one frequency, 7 s to switch off and 152 s to switch on.

    {Description}

    ## Action Space

    {Actions under limits}

    ## Starting State

    {Starting State} All nodes are on.

    ## Arguments

    | `share` | `0.6` | the budget, as a share of the energy with all nodes busy |
    | `period` | `600` | [s] between two readings of the meter, for rules that read it |
    | `shutdown` | `False` | whether idle nodes are switched off at once |
    | `power` | `"none"` | how limits are kept: a name of `hpcgym.scheduler.rules.POWER`, see \
`docs/power.md` |
    """

    read_arguments = staticmethod(read_energy_budget)


class PowerCapVector(SchedulingVectorEnv):
    """Many environments :class:`PowerCapEnv` in one."""

    single = PowerCapEnv


class EnergyBudgetVector(SchedulingVectorEnv):
    """Many environments :class:`EnergyBudgetEnv` in one."""

    single = EnergyBudgetEnv
